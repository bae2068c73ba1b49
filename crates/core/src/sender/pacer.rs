//! Two pacers: when the next packet may leave, and on which subflow.
//!
//! [`Pacer`] is Linux's (`tcp_update_skb_after_send`): one gate for one flow. The first ten packets leave unpaced, and lateness
//! earns credit for up to half a packet, so that a coarse timer does not slow the flow down.
//!
//! [`SplitPacer`] divides the controller's rate over two subflows as its [`Split`] says. With one clock for both, the subflow
//! that is behind its share sends next, so that the division is exact whether the rate or the window limits the sender.
//! With a clock each, every subflow keeps its own rate. What holds up one clock holds up the other one as well, so that the packets of both
//! are mixed as they would have been in time. With a bucket each ([`SubflowPacing::Own`]) the division is only as exact as pacing limits
//! the sender.
use crate::congestion::Split;
use crate::{Bytes, Rate, Rng, Span, Time};

/// The pacing gate of a flow (Linux `tcp_update_skb_after_send`).
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    /// Nothing leaves before this.
    gate: Time,
    sent: u64,
}

/// The first packet that Linux paces (`tcp_update_skb_after_send`).
const FIRST_PACED: u64 = 10;
/// Subflows that a [`Split`] divides a rate over.
const SUBFLOWS: usize = 2;

impl Pacer {
    /// When the next packet may leave.
    #[inline]
    pub const fn gate(&self) -> Time {
        self.gate
    }

    /// Whether a packet has been sent yet.
    #[inline]
    pub const fn has_sent(&self) -> bool {
        self.sent > 0
    }

    /// Counts a packet, paced or not. [`Pacer::pace`] follows for a paced one.
    #[inline]
    pub fn count(&mut self) {
        self.sent += 1;
    }

    /// Closes the gate behind a packet that left at this rate.
    #[inline]
    pub fn pace(&mut self, now: Time, len: u32, rate: Rate) {
        let prior = self.gate;
        self.gate = prior.max(now);
        if self.sent >= FIRST_PACED && rate > Rate::ZERO {
            let gap = rate.tx_time(Bytes(u64::from(len))).unwrap_or(Span::ZERO);
            let credit = (gap / 2).min(self.gate.since(prior));
            self.gate += gap - credit;
        }
    }
}

choice! {
    /// How a connection's two subflows share its pacing.
    pub enum SubflowPacing {
        /// One clock: the subflow that is behind its share sends next, so that the division is exact.
        Common = "common",
        /// A leaky bucket for each, filled at its share of the window over the RTT. The next packet's subflow is drawn among those whose
        /// bucket holds a packet, so that the division is even where the window alone limits the sender (picoquic in 2022, with Tonopah).
        Own = "own",
    }
}

/// A subflow's leaky bucket. Its level is a time: it fills by a second per second, and a packet takes the time that it lasts at the
/// subflow's rate.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// When the bucket was empty, or would have been: its level is the time since.
    empty: Time,
    /// The time that a packet takes; `None`: the subflow has no share.
    packet: Option<Span>,
}

impl Bucket {
    /// When it holds a packet.
    fn gate(&self) -> Option<Time> {
        self.packet.map(|packet| self.empty + packet)
    }

    /// A packet takes its time, from a bucket that holds this number of packets at most.
    fn take(&mut self, most: u64, now: Time) {
        let packet = self.packet.unwrap_or(Span::ZERO);
        self.empty = self.empty.max(now - packet * most) + packet;
    }
}

/// The buckets of [`SubflowPacing::Own`].
#[derive(Clone, Copy, Debug, Default)]
struct Buckets {
    each: [Bucket; SUBFLOWS],
    /// Packets that each holds at most.
    most: u64,
    /// The subflow that sends next if both may.
    drawn: bool,
    now: Time,
}

impl Buckets {
    /// The subflow that sends next, and when it may; `None` if neither has a share.
    fn next(&self) -> Option<(u8, Time)> {
        let gates = self.each.map(|bucket| bucket.gate());
        let is_ready = |gate: Time| gate <= self.now;
        let second = match gates {
            [None, None] => return None,
            [first, None] => return first.map(|gate| (0, gate)),
            [None, second] => return second.map(|gate| (1, gate)),
            [Some(first), Some(second)] if is_ready(first) && is_ready(second) => self.drawn,
            [first, second] => second < first,
        };
        gates[usize::from(second)].map(|gate| (u8::from(second), gate))
    }
}

/// The pacing gates of a connection of one or two subflows.
pub struct SplitPacer {
    split: Option<Split>,
    /// No packet leaves before these. Only the first is used unless the subflows are independent.
    gates: [Time; SUBFLOWS],
    /// Bytes sent since the split changed, divided by the share: the subflow with the lower value sends next.
    served: [f64; SUBFLOWS],
    rng: Rng,
    grain: Grain,
    /// The subflow whose turn it is, where turns are longer than a packet.
    turn: u8,
    /// With [`SubflowPacing::Own`].
    buckets: Option<Buckets>,
}

/// How coarsely a sender's packets leave. A real sender's timers have a granularity, and packets leave in batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Grain {
    /// Granularity of the timer that lets paced packets go. What a late timer holds up is made up for.
    pub timer_slack: Span,
    /// A subflow sends for this long at the pacing rate before the other one catches up; zero: packet by packet.
    pub turn: Span,
}

impl Grain {
    /// Data of a turn at this pacing rate, in packets of at most `len` bytes.
    pub fn turn_bytes(self, rate: Rate, len: u32) -> u64 {
        let len = u64::from(len);
        rate.bytes_in(self.turn).0.clamp(len, TURN_PACKETS * len)
    }
}

/// A turn has at most this many packets: 60 kB, about what one system call can carry.
const TURN_PACKETS: u64 = 40;

impl SplitPacer {
    /// A pacer whose jitter comes from this stream.
    pub fn new(rng: Rng) -> SplitPacer {
        SplitPacer {
            split: None,
            gates: [Time::ZERO; SUBFLOWS],
            served: [0.0; SUBFLOWS],
            rng,
            grain: Grain::default(),
            turn: 0,
            buckets: None,
        }
    }

    /// Sends as coarsely as this.
    pub const fn coarsen(&mut self, grain: Grain) {
        self.grain = grain;
    }

    /// Every subflow has a bucket of its own, or both have one clock.
    pub fn set_pacing(&mut self, pacing: SubflowPacing, burst: u64) {
        self.buckets = (pacing == SubflowPacing::Own).then(|| Buckets { most: burst, ..Buckets::default() });
    }

    /// Whether every subflow has a bucket of its own.
    pub const fn has_buckets(&self) -> bool {
        self.buckets.is_some()
    }

    /// The time that a packet of each subflow takes from its bucket from now on; `None` for a subflow without a share.
    pub fn fill(&mut self, packets: [Option<Span>; SUBFLOWS], now: Time) {
        if let Some(buckets) = &mut self.buckets {
            buckets.now = now;
            buckets.each.iter_mut().zip(packets).for_each(|(bucket, packet)| bucket.packet = packet);
        }
    }

    /// The controller's split; `None` for a connection of one subflow.
    pub fn divide(&mut self, split: Option<Split>, now: Time) {
        if split == self.split {
            return;
        }
        let independent = |split: Option<Split>| split.is_some_and(|split| split.independent);
        match (independent(self.split), independent(split)) {
            (false, true) => self.gates = [self.gates[0].max(now); SUBFLOWS],
            (true, false) => self.gates[0] = now,
            _ => {}
        }
        self.split = split;
        self.served = [0.0; SUBFLOWS];
    }

    /// The subflow that sends next, and when it may.
    pub fn next(&self) -> (u8, Time) {
        let Some(split) = self.split else { return (0, self.gates[0]) };
        if let Some(next) = self.buckets.as_ref().filter(|_| !split.independent).and_then(Buckets::next) {
            return next;
        }
        let second = if split.independent {
            // When both are due the second comes first, because it has the higher rate.
            self.gates[1] <= self.gates[0]
        } else if self.grain.turn > Span::ZERO {
            // A subflow without a share has no turn.
            (self.turn == 1) == (split.shares[usize::from(self.turn)] > 0.0)
        } else {
            self.served[1] < self.served[0]
        };
        let gate = if split.independent { self.gates[usize::from(second)] } else { self.gates[0] };
        (u8::from(second), gate)
    }

    /// By how much a subflow has sent more than its share since the split changed: as bytes of both subflows together. Negative if the
    /// other one is ahead.
    pub fn lead(&self, subflow: u8) -> f64 {
        let index = usize::from(subflow);
        self.served[index] - self.served[1 - index]
    }

    /// A packet left on a subflow. `rate` is the rate of both together; `None` if unpaced.
    pub fn on_sent(&mut self, subflow: u8, len: u32, rate: Option<Rate>, now: Time) {
        let index = usize::from(subflow);
        if let Some(buckets) = &mut self.buckets {
            buckets.each[index].take(buckets.most, now);
            (buckets.now, buckets.drawn) = (now, self.rng.unit() < 0.5);
        }
        let (mut share, mut jitter, mut gate) = (1.0, 0.0, 0);
        if let Some(split) = self.split {
            self.served[index] += f64::from(len) / split.shares[index].max(1e-6);
            jitter = split.jitter;
            if split.independent {
                (share, gate) = (split.shares[index].max(1e-6), index);
            }
        }
        let turn = self.grain.turn_bytes(rate.unwrap_or(Rate::ZERO), len);
        if self.lead(self.turn) >= turn as f64 {
            self.turn = 1 - self.turn;
        }
        let Some(rate) = rate.filter(|&rate| rate > Rate::ZERO) else { return };
        let exact = rate.tx_time(Bytes(u64::from(len))).unwrap_or(Span::ZERO).as_secs_f64() / share;
        let factor = if jitter > 0.0 { 1.0 + jitter * (2.0 * self.rng.unit() - 1.0) } else { 1.0 };
        // Set to the present each by itself, late clocks would agree, and every batch begin with a packet of each subflow.
        let late = (now - self.grain.timer_slack).since(self.gates[gate]);
        if self.split.is_some_and(|split| split.independent) {
            self.gates.iter_mut().for_each(|gate| *gate += late);
        } else {
            self.gates[gate] += late;
        }
        self.gates[gate] += Span::from_secs_f64(exact * factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Sends packets of 1000 bytes at 8 Mbit/s, one per millisecond on average, whenever a timer of this grain lets them go; their subflows and times.
    fn sent(grain: Grain, shares: [f64; 2], packets: usize) -> Vec<(u8, Time)> {
        let mut pacer = SplitPacer::new(Rng::stream(1, "test"));
        pacer.coarsen(grain);
        pacer.divide(Some(Split { shares, jitter: 0.0, independent: false }), Time::ZERO);
        let mut all = Vec::new();
        while all.len() < packets {
            let (subflow, gate) = pacer.next();
            let last = all.last().map_or(Time::ZERO, |&(_, at)| at);
            let now = if gate > last { gate.rounded_up(grain.timer_slack) } else { last };
            pacer.on_sent(subflow, 1000, Some(Rate::mbit(8)), now);
            all.push((subflow, now));
        }
        all
    }

    #[test]
    fn a_coarse_timer_sends_in_batches_and_keeps_the_rate() {
        let grain = Grain { timer_slack: Span::ms(5), turn: Span::ZERO };
        let all = sent(grain, [0.5, 0.5], 1000);
        let last = all[999].1.since(Time::ZERO);
        assert!((990..=1005).contains(&(last.as_ns() / 1_000_000)), "{last}");
        assert!(all.iter().all(|(_, at)| at.as_ns() % 5_000_000 == 0));
        assert!(all.windows(6).all(|some| some[0].1 < some[5].1), "at most five at a time");
    }

    #[test]
    fn a_batch_that_comes_late_begins_as_its_packets_would_have_come_in_time() {
        // Eight packets are due at each tick, and four are made up for: both clocks are always late.
        let mut pacer = SplitPacer::new(Rng::stream(1, "test"));
        pacer.coarsen(Grain { timer_slack: Span::us(500), turn: Span::ZERO });
        let split = Split { shares: [1.0 / 3.0, 2.0 / 3.0], jitter: 0.5, independent: true };
        pacer.divide(Some(split), Time::ZERO);
        let mut leading = [0u32; 2];
        for tick in 1..=1000 {
            let now = Time::ZERO + Span::ms(1) * tick;
            let mut batch = 0;
            while pacer.next().1 <= now {
                let subflow = pacer.next().0;
                leading[usize::from(subflow)] += u32::from(batch < 2);
                pacer.on_sent(subflow, 1000, Some(Rate::mbit(64)), now);
                batch += 1;
            }
            assert!((1..=10).contains(&batch), "{batch} packets");
        }
        let share = f64::from(leading[0]) / f64::from(leading[0] + leading[1]);
        assert!(
            (0.30..0.37).contains(&share),
            "the slower subflow has a third of the first two of each batch: {share}"
        );
    }

    #[test]
    fn a_turn_lasts_as_long_as_it_says() {
        let grain = Grain { timer_slack: Span::ZERO, turn: Span::ms(4) };
        let subflows: Vec<u8> = sent(grain, [0.5, 0.5], 400).iter().map(|&(subflow, _)| subflow).collect();
        let turns: Vec<usize> = subflows.chunk_by(|one, next| one == next).map(<[u8]>::len).collect();
        // A subflow that is ahead by 4 ms of both subflows' data has sent 2 ms of them; the other catches up and goes ahead.
        assert!(turns[1..turns.len() - 1].iter().all(|&turn| turn == 4), "{turns:?}");
        assert_eq!(subflows.iter().filter(|&&subflow| subflow == 1).count(), 200);
    }

    /// Subflows of 1000 packets with buckets, that pacing would let go at one per millisecond; the window lets one go every `window` µs.
    fn drawn(window: u64, seed: u64) -> Vec<u8> {
        let mut pacer = SplitPacer::new(Rng::stream(seed, "test"));
        pacer.set_pacing(SubflowPacing::Own, 2);
        pacer.divide(Some(Split { shares: [0.6, 0.4], jitter: 0.0, independent: false }), Time::ZERO);
        let packets = [Some(Span::us(1667)), Some(Span::us(2500))];
        let mut last = Time::ZERO;
        let mut all = Vec::new();
        while all.len() < 1000 {
            let now = last + Span::us(window);
            pacer.fill(packets, now);
            let (_, gate) = pacer.next();
            let now = gate.max(now);
            pacer.fill(packets, now);
            let (subflow, gate) = pacer.next();
            assert!(gate <= now, "it may go now");
            pacer.on_sent(subflow, 1000, None, now);
            last = now;
            all.push(subflow);
        }
        all
    }

    #[test]
    fn subflows_with_buckets_keep_their_shares_only_as_far_as_pacing_limits_them() {
        let share = |window| drawn(window, 1).iter().filter(|&&subflow| subflow == 0).count() as f64 / 1000.0;
        assert!((0.595..0.605).contains(&share(0)), "pacing limits: {}", share(0));
        // A window that lets go nine tenths of it: part of the packets find both buckets ready.
        assert!((0.56..0.59).contains(&share(1111)), "the window limits, too: {}", share(1111));
        // Both buckets are always full: each packet is drawn.
        assert!((0.46..0.54).contains(&share(4000)), "only the window limits: {}", share(4000));
        assert_ne!(drawn(4000, 1), drawn(4000, 2), "another seed draws other subflows");
    }

    #[test]
    fn a_subflow_without_a_share_has_no_bucket() {
        let mut pacer = SplitPacer::new(Rng::stream(1, "test"));
        pacer.set_pacing(SubflowPacing::Own, 2);
        pacer.divide(Some(Split { shares: [0.0, 1.0], jitter: 0.0, independent: false }), Time::ZERO);
        pacer.fill([None, Some(Span::ms(1))], Time::ZERO);
        assert_eq!(pacer.next(), (1, Time::ZERO + Span::ms(1)));
    }

    #[test]
    fn a_subflow_without_a_share_has_no_turn() {
        let grain = Grain { timer_slack: Span::ZERO, turn: Span::ms(4) };
        assert!(sent(grain, [1.0, 0.0], 100).iter().all(|&(subflow, _)| subflow == 0));
        assert!(sent(grain, [0.0, 1.0], 100).iter().all(|&(subflow, _)| subflow == 1));
    }
}
