//! Segmentation offload: packets of several segments, which stay together until the receiver has them (Linux TSO and GSO with
//! devices that split nothing).
//!
//! A packet has as many segments as leave in about a millisecond (`tcp_tso_autosize`), at most half the window
//! (`tcp_cwnd_test`). If the window has room for less, the sender waits for the next acknowledgment, provided that one is
//! expected soon (`tcp_tso_should_defer`). Lost segments that were in one packet are sent again in one.
use super::recovery::State;
use super::sender::{Sender, Transmission};
use narrows_core::{Rate, Span, Time};

/// Payload that fits into a packet with room for all headers, bytes (Linux `sk_gso_max_size`).
const MOST_PAYLOAD: u32 = 65_215;
/// A packet carries what is sent in this part of a second (Linux `sk_pacing_shift`).
const PER_SECOND_SHIFT: u32 = 10;
/// Per this many microseconds of minimum RTT, as a power of two, the allowance for short paths is halved (Linux
/// `tcp_tso_rtt_log`).
const RTT_SHIFT: u32 = 9;
/// Minimum number of segments, if there are as many (Linux `tcp_min_tso_segs`).
const MIN_SEGMENTS: u32 = 2;
/// BBR sends single segments below this rate (`bbr_min_tso_rate`).
const BBR_SINGLE_BELOW: Rate = Rate::kbit(1200);
/// A sender waits only if it has sent within this time, and if an acknowledgment is expected within it.
const WAIT: Span = Span::ms(1);
/// A sender with room for this share of its window, 1 / 3, does not wait (Linux `tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// The state of a sender of such packets.
pub(super) struct Offload {
    /// Maximum number of segments in a packet.
    most: u32,
    /// Segments in the first two buffers of Linux's write queue. A packet is made of the first, which takes what it lacks from the second.
    first: u32,
    second: u32,
    is_bbr: bool,
    /// Data wait for more of the window.
    pub(super) waits: bool,
}

impl Offload {
    /// With up to `most` segments of `mss` bytes; `None` if that is one.
    pub(super) fn new(most: u32, mss: u32) -> Option<Offload> {
        let most = most.min(MOST_PAYLOAD / mss.max(1));
        (most > 1).then_some(Offload { most, first: 0, second: 0, is_bbr: false, waits: false })
    }

    /// The connection's controller is known.
    pub(super) fn expect(&mut self, controller: &str) {
        self.is_bbr = controller == "bbr";
    }

    /// The application has handed over this many segments that are not sent, `None` for any number. Each buffer holds as many
    /// as possible.
    fn fill(&mut self, unsent: Option<u64>) {
        let unsent = unsent.map_or(u32::MAX, |unsent| u32::try_from(unsent).unwrap_or(u32::MAX));
        if self.first == 0 {
            (self.first, self.second) = (self.second, 0);
        }
        if self.first == 0 || unsent <= self.first {
            self.first = self.most.min(unsent);
            self.second = 0;
        }
        if self.second == 0 {
            self.second = self.most.min(unsent - self.first);
        }
    }

    /// Lets the first buffer grow to this many segments, as far as there are any (Linux `tcp_grow_skb`).
    fn grow(&mut self, segments: u32) {
        let moved = segments.saturating_sub(self.first).min(self.second);
        (self.first, self.second) = (self.first + moved, self.second - moved);
    }
}

impl Sender {
    /// The next packet of a sender with segmentation offload.
    #[inline(never)]
    pub(super) fn choose_large(&mut self, now: Time) -> Option<Transmission> {
        if self.probe_now {
            self.probe_now = false;
            let probe = self.send_probe(now)?;
            self.pace(now, probe.len);
            return Some(probe);
        }
        let resend = self.board.waits_to_be_resent() && !self.frto_probes;
        let room = self.cwnd.saturating_sub(self.board.inflight());
        if room == 0 || (!resend && !self.has_new()) || self.pacer.gate() > now {
            return None;
        }
        let goal = self.segments_per_packet();
        let out = if resend { self.resend_large(now, goal) } else { self.send_large(now, goal, room) }?;
        self.pace(now, out.len);
        Some(out)
    }

    fn send_large(&mut self, now: Time, goal: u32, room: u32) -> Option<Transmission> {
        let unsent = self.unsent.map(|bytes| bytes.div_ceil(u64::from(self.mss)));
        let offered = self.offered.saturating_sub(self.board.out());
        let quota = room.min((self.cwnd / 2).max(1)).min(goal);
        let is_offered = room < offered;
        let room = room.min(offered);
        let offload = self.offload.as_mut()?;
        offload.fill(unsent);
        offload.grow(quota);
        let first = offload.first;
        let is_last = unsent.is_some_and(|unsent| unsent <= u64::from(first));
        if first > 1 && self.is_worth_waiting(first, is_last, goal, room, now) {
            self.offload.as_mut()?.waits = is_offered;
            return None;
        }
        let count = quota.min(first).min(offered);
        let mut packet = self.send_new(now)?;
        for _ in 1..count {
            let Some(one) = self.send_new(now) else { break };
            packet.len += one.len;
            packet.extra_segments += 1;
        }
        if let Some(offload) = &mut self.offload {
            offload.first -= u32::from(packet.extra_segments) + 1;
        }
        Some(packet)
    }

    /// The lost segments that were last sent at the same time as the first of them.
    fn resend_large(&mut self, now: Time, goal: u32) -> Option<Transmission> {
        let first = self.board.next_to_resend()?;
        let sent = self.board.record(first).sent;
        let mut packet = self.resend_next(now)?;
        while u32::from(packet.extra_segments) + 1 < goal && self.board.inflight() < self.cwnd {
            let next = packet.seq + u64::from(packet.extra_segments) + 1;
            let is_full = packet.len == (u32::from(packet.extra_segments) + 1) * self.mss;
            if !is_full || self.board.next_to_resend() != Some(next) || self.board.record(next).sent != sent {
                break;
            }
            packet.len += self.resend(next, now).len;
            packet.extra_segments += 1;
        }
        Some(packet)
    }

    /// Maximum number of segments in a packet now (Linux `tcp_tso_autosize`).
    fn segments_per_packet(&self) -> u32 {
        let Some(offload) = &self.offload else { return 1 };
        let rate = self.controller.as_ref().and_then(|controller| controller.pacing());
        let rate = rate.unwrap_or_else(|| self.linux_pacing_rate());
        if rate == Rate::ZERO {
            return offload.most;
        }
        let least = if offload.is_bbr && rate < BBR_SINGLE_BELOW { 1 } else { MIN_SEGMENTS };
        let short = self.rtt.min().map_or(u64::MAX, |rtt| (rtt.as_ns() / 1000) >> RTT_SHIFT);
        let allowance = if short < 32 { MOST_PAYLOAD >> short } else { 0 };
        let bytes = ((rate.as_bps() / 8) >> PER_SECOND_SHIFT) + u64::from(allowance);
        let segments = bytes.min(u64::from(MOST_PAYLOAD)) as u32 / self.mss;
        segments.max(least).min(offload.most)
    }

    /// Whether the sender waits for more room in its window, instead of filling the present `room` (Linux `tcp_tso_should_defer`).
    /// The first buffer has `first` segments.
    fn is_worth_waiting(&self, first: u32, is_last: bool, goal: u32, room: u32, now: Time) -> bool {
        if matches!(self.state, State::Recovery | State::Loss)
            || now.since(self.last_sent.max(self.pacer.gate())) > WAIT
        {
            return false;
        }
        let is_large = u64::from(room) * WINDOW_DIVISOR >= u64::from(self.cwnd);
        if room >= goal || (!is_last && room >= first) || is_large || self.board.out() == 0 {
            return false;
        }
        let srtt = self.rtt.smoothed().unwrap_or(Span::ZERO);
        let expected = self.board.record(self.board.una()).sent + srtt;
        expected.since(now) <= WAIT.min(srtt / 2)
    }
}
