//! Both ends of a TCP connection, as an [`Endpoint`].
use super::{Incoming, Receiver, Sender, Transmission as Sent, milliseconds};
use crate::endpoint::{Arrival, Connection, Endpoint, HeaderBits, Outgoing, Place, Records};
use crate::segment::{Returning, Segment};
use narrows_core::{Rng, Span, Time};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::network::Transit;

/// IP length of a SYN and its answer, bytes: IP 20, TCP 20, options 20.
const SYN_LEN: u32 = 60;
/// Linux `tcp_syn_linear_timeouts`, since 6.5.
const STEADY_SYNS: u32 = 4;

/// A TCP connection; its fields are in the order of their use, as in [`crate::host::Flow`].
#[repr(C)]
pub(crate) struct Tcp {
    pub(crate) receiver: Receiver,
    pub(crate) connection: Connection,
    pub(crate) spin: Spin,
    pub(crate) sender: Sender,
}

impl Endpoint for Tcp {
    fn handshake_len(&self) -> u32 {
        SYN_LEN
    }

    fn steady_syns(&self) -> u32 {
        if self.sender.is_old() { 0 } else { STEADY_SYNS }
    }

    #[inline(always)]
    fn connection(&mut self) -> Option<&mut Connection> {
        Some(&mut self.connection)
    }

    #[inline(always)]
    fn must_report(&mut self, segment: &Segment) -> bool {
        let end = segment.seq + 1 + u64::from(segment.transit.extra_segments);
        self.receiver.must_report(segment.seq, end)
    }

    #[inline(always)]
    fn on_packet(&mut self, segment: &Segment, payload: u32, marked: bool, now: Time) -> Arrival {
        let &Segment { seq, tag: stamp, cwr, .. } = segment;
        if segment.transit.extra_segments > 0 {
            return self.on_large_packet(segment, payload, marked, now);
        }
        let arrival = self.receiver.on_segment(Incoming { seq, len: payload, stamp, marked, cwr }, now);
        let new = arrival.is_new.then_some(payload);
        let complete = self.connection.receive(new, seq, now);
        Arrival { new: new.unwrap_or(0), acknowledge: arrival.acknowledge, complete }
    }

    #[inline(always)]
    fn next_ack(&self) -> Option<Time> {
        self.receiver.next_timer()
    }

    fn overdue(&mut self, now: Time) -> Option<u8> {
        self.receiver.is_overdue(now).then_some(0)
    }

    #[inline(always)]
    fn acknowledge(&mut self, _subflow: u8, _now: Time) -> Returning {
        Returning::Ack(self.receiver.acknowledge())
    }

    fn established(&mut self, rtt: Option<Span>, now: Time, rng: Rng) {
        self.sender.established(&self.connection.config, rtt, now, rng);
    }

    fn write(&mut self, bytes: Option<u64>, now: Time) {
        self.sender.write(bytes, now);
    }

    fn stop(&mut self) {
        self.sender.stop();
    }

    #[inline(always)]
    fn on_ack(&mut self, ack: &Returning, now: Time) -> Option<Span> {
        let Returning::Ack(ack) = ack else { return None };
        self.spin.on_ack(ack.ack);
        self.sender.on_ack(ack, now)
    }

    #[inline(always)]
    fn poll_transmit(&mut self, _place: &mut Place, header: u32, now: Time) -> Option<Outgoing> {
        let Sent { seq, len, cwr, extra_segments, .. } = self.sender.poll_transmit(now)?;
        self.spin.on_sent(seq + u64::from(extra_segments));
        let transit =
            Transit::new(len + header * (1 + u32::from(extra_segments)), 0).with_extra_segments(extra_segments);
        let segment = Segment { seq, transit, tag: milliseconds(now), cwr, ..Segment::default() };
        Some(Outgoing { segment, bits: HeaderBits { ecn: self.connection.ecn, spin: self.spin.value } })
    }

    #[inline(always)]
    fn next_timer(&self, _now: Time) -> Option<Time> {
        self.sender.next_timer()
    }

    #[inline(always)]
    fn needs_no_timer_before(&self, time: Time) -> bool {
        self.sender.needs_no_timer_before(time)
    }

    fn on_timer(&mut self, now: Time) {
        self.sender.on_timer(now);
    }

    #[inline(always)]
    fn next_pace(&self, now: Time) -> Option<Time> {
        self.sender.next_pace(now)
    }

    fn on_pace(&mut self, now: Time) {
        self.sender.on_pace(now);
    }

    fn meters(&self) -> Option<Meters> {
        self.sender.meters()
    }

    fn stats(&self) -> SenderStats {
        self.sender.stats()
    }

    fn reset_stats(&mut self) {
        self.sender.reset_stats();
    }

    fn records(&mut self) -> Records<'_> {
        Records { losses: Some(&mut self.sender.losses), ..Records::default() }
    }

    fn heap_bytes(&self) -> usize {
        self.sender.heap_bytes() + self.connection.heap_bytes()
    }
}

impl Tcp {
    /// The receiver gets a packet with several segments. They arrive at the same moment, and are acknowledged together.
    #[cold]
    #[inline(never)]
    fn on_large_packet(&mut self, segment: &Segment, payload: u32, marked: bool, now: Time) -> Arrival {
        let &Segment { seq, tag: stamp, cwr, transit: Transit { extra_segments, .. }, .. } = segment;
        let (mut new, mut complete) = (0, false);
        let packet = Incoming { seq, len: payload, stamp, marked, cwr };
        let mss = self.sender.mss();
        let acknowledge = self.receiver.on_large_packet(packet, extra_segments, mss, now, |number, len| {
            new += len.unwrap_or(0);
            complete |= self.connection.receive(len, number, now);
        });
        Arrival { new, acknowledge, complete }
    }
}

/// The bit that changes once per round trip, as a QUIC client computes it: when a segment sent with the present value has been
/// acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spin {
    pub(crate) value: bool,
    /// The first segment that has the present value.
    since: u64,
    /// The highest segment sent, plus one.
    sent: u64,
}

impl Spin {
    #[inline]
    pub(crate) fn on_sent(&mut self, seq: u64) {
        self.sent = self.sent.max(seq + 1);
    }

    /// Every segment before `ack` has arrived.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: u64) {
        if ack > self.since {
            self.value = !self.value;
            self.since = self.sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_bit_changes_when_its_first_segment_is_acknowledged() {
        let mut spin = Spin::default();
        let mut seen = Vec::new();
        for seq in 0..4 {
            spin.on_sent(seq);
        }
        for ack in 1..=8 {
            spin.on_ack(ack);
            spin.on_sent(ack + 3);
            seen.push(spin.value);
        }
        // Four segments are in flight. Segment 4 is the first with the new value, and acknowledgment 5 covers it.
        assert_eq!(seen, [true, true, true, true, false, false, false, false]);
    }
}
