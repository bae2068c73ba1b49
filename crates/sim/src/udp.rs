//! Datagrams at the application's rate, without any feedback.
use crate::endpoint::{Arrival, Endpoint, HeaderBits, Outgoing, Place};
use crate::segment::{Returning, Segment};
use narrows_core::queue::parts::flow_table::mix;
use narrows_core::{Ecn, Time};
use narrows_world::network::Transit;

/// A source of datagrams and its sink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Udp {
    /// Payload of the next datagram, bytes.
    waiting: Option<u32>,
    /// The flow's number, if every packet has a new source port; it keeps flows apart.
    new_port_of: Option<u32>,
    ecn: Ecn,
}

impl Udp {
    /// `new_port_of` is the flow's number if each packet is to have a new source port.
    pub(crate) fn new(new_port_of: Option<u32>, ecn: Ecn) -> Udp {
        Udp { waiting: None, new_port_of, ecn }
    }
}

impl Endpoint for Udp {
    #[inline(always)]
    fn on_packet(&mut self, _segment: &Segment, payload: u32, _marked: bool, _now: Time) -> Arrival {
        Arrival { new: payload, acknowledge: false, complete: false }
    }

    #[inline(always)]
    fn datagram_sent(&self, segment: &Segment) -> Option<Time> {
        Some(Time::from_ns(segment.seq))
    }

    fn acknowledge(&mut self, _subflow: u8, _now: Time) -> Returning {
        unreachable!("datagrams ask for no acknowledgment")
    }

    fn write(&mut self, bytes: Option<u64>, _now: Time) {
        self.waiting = bytes.map(|bytes| bytes as u32);
    }

    #[inline(never)]
    fn poll_transmit(&mut self, place: &mut Place, header: u32, now: Time) -> Option<Outgoing> {
        let payload = self.waiting.take()?;
        if let Some(flow) = self.new_port_of {
            let hash = &mut place.meta.hash;
            *hash = mix(hash.wrapping_add(1), flow);
        }
        let transit = Transit::new(payload + header, 0);
        let segment = Segment { seq: now.as_ns(), transit, ..Segment::default() };
        Some(Outgoing { segment, bits: HeaderBits { ecn: self.ecn, spin: false } })
    }
}
