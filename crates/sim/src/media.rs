//! A [video call](narrows_world::call) as an endpoint of the simulator.
use crate::endpoint::{Armed, Arrival, Endpoint, HeaderBits, Outgoing, Place, Records};
use crate::segment::{Returning, Segment};
use narrows_core::queue::parts::flow_table::mix;
use narrows_core::{Ecn, Span, Time};
use narrows_world::call::Call;
use narrows_world::meters::SenderStats;

/// Both ends of a call.
pub(crate) struct Media {
    pub(crate) call: Call,
    pub(crate) armed: Armed,
    pub(crate) ecn: Ecn,
    /// The flow's number, if every packet has a new source port; it keeps flows apart.
    pub(crate) new_port_of: Option<u32>,
}

impl Endpoint for Media {
    fn armed(&mut self) -> Option<&mut Armed> {
        Some(&mut self.armed)
    }

    fn on_packet(&mut self, segment: &Segment, payload: u32, marked: bool, now: Time) -> Arrival {
        let Some(missing) = self.call.on_packet(segment.seq, marked, now) else {
            return Arrival { new: 0, acknowledge: false, complete: false };
        };
        Arrival { new: payload, acknowledge: missing > 0, complete: false }
    }

    fn datagram_sent(&self, segment: &Segment) -> Option<Time> {
        self.call.sent(segment.seq)
    }

    fn next_ack(&self) -> Option<Time> {
        self.call.next_report()
    }

    fn overdue(&mut self, now: Time) -> Option<u8> {
        self.call.next_report().filter(|&at| at <= now).map(|_| 0)
    }

    fn acknowledge(&mut self, _subflow: u8, now: Time) -> Returning {
        Returning::Report(self.call.report(now))
    }

    fn write(&mut self, _bytes: Option<u64>, now: Time) {
        self.call.capture(now);
    }

    fn stop(&mut self) {
        self.call.stop();
    }

    fn on_ack(&mut self, ack: &Returning, now: Time) -> Option<Span> {
        let Returning::Report(report) = ack else { return None };
        self.call.on_report(report, now)
    }

    fn poll_transmit(&mut self, place: &mut Place, header: u32, now: Time) -> Option<Outgoing> {
        let leaving = self.call.poll_transmit(header, now)?;
        if let Some(flow) = self.new_port_of {
            let hash = &mut place.meta.hash;
            *hash = mix(hash.wrapping_add(1), flow);
        }
        let transit = narrows_world::network::Transit::new(leaving.ip_len, 0);
        let segment = Segment { seq: leaving.number, transit, ..Segment::default() };
        Some(Outgoing { segment, bits: HeaderBits { ecn: self.ecn, spin: false } })
    }

    fn next_pace(&self, now: Time) -> Option<Time> {
        self.call.next_departure(now)
    }

    fn stats(&self) -> SenderStats {
        self.call.stats()
    }

    fn reset_stats(&mut self) {
        self.call.reset_stats();
    }

    fn records(&mut self) -> Records<'_> {
        let target_rate = Some(self.call.target_rate());
        Records { target_rate, video: Some(self.call.record()), ..Records::default() }
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Media>() + self.call.heap_bytes()
    }
}
