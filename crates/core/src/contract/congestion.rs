//! The laws of congestion controllers.
//!
//! A byte string is read as the events of a connection: each byte is an event that a transport may see next. Events that cannot happen
//! at that point are skipped, so that every string is legal and strings shrink well. The model below keeps a transport's state and
//! checks after each event:
//!
//! - the window is at least one packet, two after a loss or a mark; a pacing rate is not zero, a burst holds a packet
//! - the same events give the same limits
//! - a timer that is asked for lies ahead once it has been served
//! - shares of subflows are between 0 and 1 and add up to 1
//! - the load that it offers to a bottleneck is bounded by what the bottleneck takes ([`check_offered`])
//! - reduced to a part, the window is at most that part and at least two packets, unless the controller says that it cannot reduce it
//!
//! and for controllers whose window the transport reduces ([`Reduction::Proportional`]):
//!
//! - no growth during a reduction, on acknowledgments that may not raise, or when the window did not limit the sender
//! - growth per acknowledgment by what it acknowledged at most, in slow start; by one packet more beyond it
//! - a loss or mark never raises the window; after a timeout it is what is in flight and a few packets
//! - underuse never raises it; undoing a reduction brings back no more than there was
use super::bottleneck;
use super::params::{self, at_bounds, ensure, variants};
use crate::congestion::open::ControllerTraits;
use crate::congestion::{
    Ack, Controller, ControllerConfig, Flight, Loss, LossKind, PacketFeedback, PacketOutcome, PathHint, Phase,
    RateSample, Reduction, SendLimits, Sent, Underuse,
};
use crate::registry::Registered;
use crate::{Bytes, Rate, Rng, Span, Time};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Plays a script against every variant of a controller: its defaults, and each switch and choice set to each of its values.
pub fn check_run(default: &ControllerConfig, script: &[u8]) -> Result<(), String> {
    let with =
        |config: &ControllerConfig| check_run_with(config, script).map_err(|law| format!("{law}; with {config}"));
    variants(default, |config| config.params_mut()).iter().try_for_each(with)
}

/// Plays a script against any registered controller with its defaults; the first byte chooses it.
pub fn check_any(script: &[u8]) -> Result<(), String> {
    let (&choice, script) = script.split_first().unwrap_or((&0, &[]));
    let names = ControllerConfig::NAMES;
    let name = names[usize::from(choice) % names.len()];
    ControllerConfig::named(name)
        .map_or(Ok(()), |config| check_run_with(&config, script))
        .map_err(|law| format!("{name}: {law}"))
}

/// Plays a script against a controller with these parameters.
pub fn check_run_with(config: &ControllerConfig, script: &[u8]) -> Result<(), String> {
    let mut bytes = script.iter().copied();
    let mut model = Model::new(config, bytes.next().unwrap_or(0));
    let mut step = 0;
    while let Some(op) = bytes.next() {
        let amount = u64::from(bytes.next().unwrap_or(1));
        model.play(op, amount).map_err(|law| format!("step {step} ({op}, {amount}): {law}"))?;
        step += 1;
    }
    Ok(())
}

/// Whatever the parameters are, what is offered to a bottleneck is bounded by what it takes (see `bottleneck`).
pub fn check_offered(default: &ControllerConfig) -> Result<(), String> {
    at_bounds(default, |config| config.params_mut()).iter().try_for_each(bottleneck::check_offered)
}

/// Parameters: the defaults are valid and survive being written and read; absurd values are refused.
pub fn check_parameters(default: &ControllerConfig) -> Result<(), String> {
    params::check(default, |config| config.params_mut())
}

/// A controller of this choice starts with its path's initial window, unless it measures first.
pub fn check_start(config: &ControllerConfig) -> Result<(), String> {
    let name = config.name();
    ensure(config.to_string() == name, || format!("{name} is shown as {config}"))?;
    config.validate().map_err(|e| e.to_string())?;
    let path = path(0);
    let plan = config.build(&path, Time::ZERO, Rng::stream(1, name)).send_limits();
    // A detector that measures by itself starts at a rate of its own.
    let measures = config.splits() && plan.pacing.is_some();
    ensure(measures || plan.cwnd == path.initial_window, || {
        format!("starts with {}, not {}", plan.cwnd, path.initial_window)
    })
}

/// The path of a script, by its first byte.
fn path(kind: u8) -> PathHint {
    let initial = [10, 1, 3, 100][usize::from(kind >> 1 & 3)];
    PathHint {
        mss: MSS,
        initial_window: MSS * initial,
        rtt: (kind & 8 > 0).then_some(Span::ms(20)),
        paced: kind & 1 > 0,
        resume: None,
    }
}

/// Payload of a full-sized packet here.
const MSS: Bytes = Bytes(1000);
/// Packets beyond what is in flight that a window may hold after a timeout (RFC 5681 §3.1: one; RFC 9002 §7.6.2: two).
const AFTER_TIMEOUT: u64 = 4;

/// A transport's state, in packets, and two copies of a controller that must agree.
struct Model {
    traits: ControllerTraits,
    subject: Controller,
    twin: Controller,
    now: Time,
    srtt: Span,
    min_rtt: Option<Span>,
    una: u64,
    nxt: u64,
    /// Acknowledged selectively, lost and not yet retransmitted: parts of `una..nxt`.
    sacked: u64,
    lost: u64,
    delivered: u64,
    /// Lost in all.
    total_lost: u64,
    last_sent: Time,
    /// Packets in flight: when each was sent, over which subflow; and those that were taken for lost.
    underway: VecDeque<(Sent, u64)>,
    missing: Vec<(Sent, u64)>,
    /// End of the recovery episode.
    recovery: Option<u64>,
    in_timeout: bool,
    /// The largest window there has been.
    highest: Bytes,
}

impl Model {
    fn new(config: &ControllerConfig, kind: u8) -> Model {
        let (path, now) = (path(kind), Time::from_ns(u64::from(kind) << 24));
        let make = || config.build(&path, now, Rng::stream(7, "contract"));
        let subject = make();
        let highest = subject.send_limits().cwnd;
        Model {
            traits: config.traits(),
            subject,
            twin: make(),
            now,
            srtt: Span::ms(20),
            min_rtt: None,
            una: 0,
            nxt: 0,
            sacked: 0,
            lost: 0,
            delivered: 0,
            total_lost: 0,
            last_sent: now,
            underway: VecDeque::new(),
            missing: Vec::new(),
            recovery: None,
            in_timeout: false,
            highest,
        }
    }

    fn inflight(&self) -> u64 {
        self.nxt - self.una - self.sacked - self.lost
    }

    fn window(&self) -> u64 {
        self.subject.send_limits().cwnd.0 / MSS.0
    }

    /// One byte of a script, with the next as its amount.
    fn play(&mut self, op: u8, amount: u64) -> Result<(), String> {
        match op % 16 {
            0..=3 => self.send(1 + amount % 64)?,
            4..=6 => self.ack(1 + amount % 4, op, false)?,
            7 => self.ack(1 + amount, op, false)?,
            8 => self.ack(1 + amount % 8, op, true)?,
            9 => self.now += Span::us(100 * amount),
            10 => self.now += Span::ms(20 * amount),
            11 => self.lose(1 + amount % 8, LossKind::Loss)?,
            12 if amount.is_multiple_of(2) => self.lose(0, LossKind::Ecn)?,
            12 => self.time_out()?,
            13 => self.undo()?,
            14 if amount.is_multiple_of(4) => self.reduce_cwnd()?,
            14 => self.disuse(amount)?,
            _ => {
                // A whole round trip of a saturated path, so that windows get far from where they began.
                for _ in 0..self.window().min(64) {
                    self.send(2)?;
                    self.now += Span::us(50 * (1 + amount % 40));
                    self.ack(2, op, false)?;
                }
            }
        }
        self.serve_timer()
    }

    fn both(&mut self, act: impl Fn(&mut Controller)) -> Result<(SendLimits, SendLimits), String> {
        let before = self.subject.send_limits();
        act(&mut self.subject);
        act(&mut self.twin);
        let after = self.subject.send_limits();
        ensure(after == self.twin.send_limits(), || {
            format!("the same events give {after:?} and {:?}", self.twin.send_limits())
        })?;
        ensure(self.subject.next_timer() == self.twin.next_timer(), || "the same events give other timers".into())?;
        ensure(after.cwnd >= MSS, || format!("a window of {}", after.cwnd))?;
        ensure(after.pacing.is_none_or(|rate| rate > Rate::ZERO), || "a pacing rate of zero".into())?;
        ensure(self.traits.paces || after.pacing.is_none(), || "a pacing rate of one that never paces".into())?;
        let subflows = self.subject.subflows();
        ensure(subflows.is_some() == self.traits.splits, || "subflows of one that does not split, or none".into())?;
        if let Some(subflows) = subflows {
            let [first, second] = subflows.split().shares;
            let is_share = |share: f64| (0.0..=1.0).contains(&share);
            ensure(is_share(first) && is_share(second) && (first + second - 1.0).abs() < 1e-9, || {
                format!("shares of {first} and {second}")
            })?;
        }
        ensure(after.burst >= MSS, || format!("bursts of {}", after.burst))?;
        self.highest = self.highest.max(after.cwnd);
        Ok((before, after))
    }

    fn send(&mut self, most: u64) -> Result<(), String> {
        for _ in 0..most {
            if self.inflight() >= self.window().max(1) {
                break;
            }
            let idle = (self.inflight() == 0).then(|| self.now.since(self.last_sent));
            let retransmit = self.lost > 0;
            if retransmit {
                self.lost -= 1;
            } else {
                self.nxt += 1;
            }
            self.last_sent = self.now;
            let sent = Sent {
                now: self.now,
                bytes: MSS,
                inflight: MSS * self.inflight(),
                retransmit,
                idle,
                app_limited: idle.is_some(),
                subflow: if self.traits.splits { (self.nxt % 2) as u8 } else { 0 },
            };
            if retransmit {
                self.missing.pop();
            }
            self.underway.push_back((sent, self.total_lost));
            if self.traits.every_sent || idle.is_some() {
                self.both(|c| c.on_sent(&sent))?;
            } else {
                // Only one copy hears of it, which must make no difference.
                self.subject.tell_sent(sent);
                self.both(|_| {})?;
            }
        }
        Ok(())
    }

    /// Acknowledges packets in flight: cumulatively, with what had been selected before, or selectively.
    fn ack(&mut self, packets: u64, op: u8, selective: bool) -> Result<(), String> {
        let prior = self.inflight();
        let packets = packets.min(prior);
        if packets == 0 {
            return Ok(());
        }
        // Selection needs something missing below it.
        let selective = selective && packets < self.nxt - self.una - self.sacked;
        if selective {
            self.sacked += packets;
        } else if self.lost > 0 {
            self.una += packets;
        } else {
            self.una += packets + core::mem::take(&mut self.sacked);
        }
        self.delivered += packets;
        // In the end the whole episode has been acknowledged, lost packets included.
        let in_reduction = self.recovery.is_some() && !self.in_timeout;
        if self.recovery.is_some_and(|end| self.una >= end) {
            self.recovery = None;
            self.in_timeout = false;
        }
        self.tell(packets, Some(op & 16 == 0))?;
        let event = self.ack_event(packets, prior, op, selective, in_reduction);
        self.check_growth(&event, packets)
    }

    /// What became of the oldest packets in flight: delivered, with their RTTs or without, or lost.
    fn tell(&mut self, packets: u64, delivered: Option<bool>) -> Result<(), String> {
        for _ in 0..packets {
            let Some((sent, lost_before)) = self.underway.pop_front() else { break };
            let outcome = match delivered {
                Some(timed) => PacketOutcome::Delivered { rtt: timed.then(|| self.now.since(sent.now)) },
                None => {
                    self.missing.push((sent, lost_before));
                    PacketOutcome::Lost
                }
            };
            if self.traits.packet_feedback {
                let Sent { now: sent, subflow, inflight, app_limited, .. } = sent;
                let flight = Flight { inflight, lost: MSS * (self.total_lost - lost_before), app_limited };
                let fate = PacketFeedback { now: self.now, sent, bytes: MSS, subflow, flight, outcome };
                self.both(|c| c.on_packet_feedback(&fate))?;
            }
        }
        Ok(())
    }

    fn ack_event(&mut self, packets: u64, prior: u64, op: u8, selective: bool, in_reduction: bool) -> Ack {
        let rtt = (op & 16 == 0).then(|| Span::ms(20) + Span::us(500 * u64::from(op >> 5) * (prior % 32)));
        self.min_rtt = [self.min_rtt, rtt].into_iter().flatten().min();
        self.srtt = rtt.map_or(self.srtt, |rtt| (self.srtt * 7 + rtt) / 8);
        Ack {
            now: self.now,
            acked: MSS * packets,
            lost: Bytes::ZERO,
            // With accurate feedback; controllers that react only to losses ignore it.
            marked: if op & 128 > 0 { packets.div_ceil(2) as u32 } else { 0 },
            total_lost: MSS * self.total_lost,
            rtt,
            srtt: self.srtt,
            min_rtt: self.min_rtt.unwrap_or(self.srtt),
            prior_inflight: MSS * prior,
            inflight: MSS * self.inflight(),
            una: MSS * self.una,
            nxt: MSS * self.nxt,
            delivered: MSS * self.delivered,
            in_reduction,
            phase: match (self.recovery, self.in_timeout) {
                (None, _) => Phase::Open,
                (Some(_), false) => Phase::Recovery,
                (Some(_), true) => Phase::Timeout,
            },
            edt: self.now + Span::us(100 * u64::from(op >> 5)),
            may_raise: !selective,
            cwnd_limited: 2 * prior >= self.window(),
            rate: RateSample {
                delivered: MSS * prior,
                interval: self.srtt,
                prior_delivered: MSS * self.delivered.saturating_sub(prior),
                prior_inflight: MSS * prior,
                lost: MSS * self.lost,
                app_limited: false,
            },
        }
    }

    fn check_growth(&mut self, event: &Ack, packets: u64) -> Result<(), String> {
        let (before, after) = self.both(|c| c.on_ack(event))?;
        if self.traits.reduction == Reduction::Own {
            return Ok(());
        }
        let grown = || format!("{} grows to {} on {event:?}", before.cwnd, after.cwnd);
        if event.in_reduction || !event.may_raise || !event.cwnd_limited {
            return ensure(after.cwnd <= before.cwnd, grown);
        }
        let slow_start = after.ssthresh.is_none_or(|ssthresh| after.cwnd < ssthresh);
        let most = packets + u64::from(!slow_start);
        ensure(after.cwnd <= before.cwnd + MSS * most, grown)
    }

    fn lose(&mut self, packets: u64, kind: LossKind) -> Result<(), String> {
        let packets = packets.min(self.inflight());
        if self.recovery.is_some() || self.inflight() == 0 || (kind == LossKind::Loss && packets == 0) {
            return Ok(());
        }
        self.lost += packets;
        self.total_lost += packets;
        self.recovery = Some(self.nxt);
        self.tell(packets, None)?;
        let event = self.loss_event(packets, kind, true);
        let (before, after) = self.both(|c| c.on_loss(&event))?;
        ensure(after.cwnd >= MSS * 2, || format!("{} after {kind:?}", after.cwnd))?;
        let limit = before.cwnd.max(MSS * 2);
        ensure(self.traits.reduction == Reduction::Own || after.cwnd <= limit, || {
            format!("{} rises to {} on {kind:?}", before.cwnd, after.cwnd)
        })
    }

    fn time_out(&mut self) -> Result<(), String> {
        if self.nxt == self.una {
            return Ok(());
        }
        let first = self.recovery.is_none();
        // All but what was sent just now.
        let (all, recent) = (self.inflight(), self.inflight() % 3);
        self.lost += all - recent;
        self.total_lost += all - recent;
        self.recovery = Some(self.nxt);
        self.in_timeout = true;
        self.tell(all - recent, None)?;
        let event = self.loss_event(all - recent, LossKind::Timeout, first);
        let (_, after) = self.both(|c| c.on_loss(&event))?;
        let limit = MSS * (recent + AFTER_TIMEOUT);
        ensure(self.traits.reduction == Reduction::Own || after.cwnd <= limit, || {
            format!("{} after a timeout", after.cwnd)
        })
    }

    fn loss_event(&self, packets: u64, kind: LossKind, first: bool) -> Loss {
        let inflight = MSS * self.inflight();
        Loss {
            now: self.now,
            kind,
            lost: MSS * packets,
            total_lost: MSS * self.total_lost,
            inflight,
            nxt: MSS * self.nxt,
            first,
        }
    }

    fn undo(&mut self) -> Result<(), String> {
        if self.recovery.is_none() {
            return Ok(());
        }
        // The packets that were declared lost are in flight.
        self.recovery = None;
        self.in_timeout = false;
        self.lost = 0;
        self.underway.extend(self.missing.drain(..));
        let (now, highest) = (self.now, self.highest);
        let (before, after) = self.both(|c| c.on_spurious(now))?;
        let restored = before.cwnd <= after.cwnd && after.cwnd <= highest;
        ensure(self.traits.reduction == Reduction::Own || restored, || {
            format!("{} becomes {} when undone, after at most {highest}", before.cwnd, after.cwnd)
        })
    }

    /// A detector asks for a reduction.
    fn reduce_cwnd(&mut self) -> Result<(), String> {
        let now = self.now;
        let before = self.subject.send_limits();
        let obeys = self.subject.reduce_cwnd(7, 8, now);
        ensure(obeys == self.twin.reduce_cwnd(7, 8, now), || "one is cut, its twin is not".into())?;
        let after = self.subject.send_limits();
        let limit = Bytes(before.cwnd.0 * 7 / 8).max(MSS * 2);
        let is_kept = if obeys { after.cwnd <= limit } else { after == before };
        ensure(is_kept, || format!("asked for 7/8 of {before:?}, it says {obeys} and has {after:?}"))
    }

    fn disuse(&mut self, amount: u64) -> Result<(), String> {
        if self.recovery.is_some() {
            return Ok(());
        }
        let event = if self.nxt == self.una {
            Underuse::Idle { idle: Span::ms(20 * amount), rto: Span::ms(220) }
        } else {
            Underuse::Limited { used: MSS * self.inflight() }
        };
        let (before, after) = self.both(|c| c.on_underuse(&event))?;
        ensure(self.traits.reduction == Reduction::Own || after.cwnd <= before.cwnd, || {
            format!("{} rises to {} on {event:?}", before.cwnd, after.cwnd)
        })
    }

    fn serve_timer(&mut self) -> Result<(), String> {
        let now = self.now;
        if self.subject.next_timer().is_some_and(|at| at <= now) {
            self.both(|c| c.on_timer(now))?;
            let next = self.subject.next_timer();
            ensure(next.is_none_or(|at| at > now), || format!("a timer served at {now:?} asks for {next:?}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "params! declares public structs")]
mod tests {
    use super::*;
    use crate::congestion::CongestionController;
    use crate::congestion::{Split, Subflows};
    use crate::detector::{Events, Verdict};

    params! {
        /// Which law is broken.
        pub struct Sin {
            /// Its number; absurd values are let through.
            pub sin: u32 = 0;
        }
    }

    /// A fixed window of ten packets that keeps every law but one.
    struct Sinner {
        sin: u32,
        cwnd: u64,
        timer: Option<Time>,
        noise: u64,
    }

    std::thread_local! {
        /// What differs between two copies of one controller.
        static COPIES: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
    }

    impl CongestionController for Sinner {
        type Params = Sin;

        fn new(p: &Sin, _path: &PathHint, _now: Time, _rng: Rng) -> Sinner {
            let noise = COPIES.replace(COPIES.get() + 1) % 2;
            Sinner { sin: p.sin, cwnd: 10, timer: None, noise }
        }

        fn on_ack(&mut self, ack: &Ack) {
            let packets = ack.acked.0 / MSS.0;
            self.cwnd += match self.sin {
                1 if ack.in_reduction => 1,
                2 if !ack.may_raise => 1,
                3 if !ack.cwnd_limited => 1,
                4 if ack.may_raise && ack.cwnd_limited && !ack.in_reduction => packets + 1,
                5 => self.noise,
                _ => 0,
            };
            if self.sin == 6 {
                self.timer = Some(ack.now);
            }
        }

        fn on_loss(&mut self, loss: &Loss) {
            self.cwnd = match (self.sin, loss.kind) {
                (7, LossKind::Timeout) => 10,
                (_, LossKind::Timeout) => 1,
                (8, _) => self.cwnd + 1,
                (9, _) => 1,
                _ => self.cwnd.max(2),
            };
        }

        fn on_spurious(&mut self, _now: Time) {
            self.cwnd = if self.sin == 10 { self.cwnd * 100 } else { self.cwnd };
        }

        fn on_underuse(&mut self, _event: &Underuse) {
            self.cwnd += u64::from(self.sin == 11);
        }

        fn reduce_cwnd(&mut self, _numerator: u64, _denominator: u64, _now: Time) -> bool {
            self.cwnd += u64::from(self.sin == 16);
            self.sin == 15
        }

        fn subflows(&self) -> Option<&dyn Subflows> {
            (self.sin == 17).then_some(self)
        }

        fn next_timer(&self) -> Option<Time> {
            self.timer
        }

        fn send_limits(&self) -> SendLimits {
            SendLimits {
                cwnd: MSS * if self.sin == 12 { 0 } else { self.cwnd },
                ssthresh: None,
                pacing: (self.sin == 13).then_some(Rate::ZERO),
                burst: MSS * u64::from(self.sin != 14),
            }
        }
    }

    impl Subflows for Sinner {
        fn split(&self) -> Split {
            Split { shares: [1.0, 0.0], jitter: 0.0, independent: false }
        }
        fn verdict(&self) -> Verdict {
            Verdict::NONE
        }
        fn events(&self) -> Events {
            Events::default()
        }
    }

    #[test]
    fn every_broken_law_is_found() {
        let mut rng = Rng::stream(1, "scripts");
        let scripts: Vec<Vec<u8>> = (0..50).map(|_| (0..600).map(|_| (rng.next_u32() >> 24) as u8).collect()).collect();
        let found = |sin: u32| {
            let mut config = ControllerConfig::custom::<Sinner>("sinner", "");
            config.set("sin", &sin.to_string()).unwrap();
            scripts.iter().any(|script| check_run_with(&config, script).is_err())
        };
        assert!(!found(0), "a fixed window keeps all laws");
        for sin in 1..=17 {
            assert!(found(sin), "law {sin} can be broken unseen");
        }
    }

    #[test]
    fn parameters_without_a_range_are_found() {
        params! {
            /// Everything goes.
            pub struct Loose {
                /// Any number.
                pub x: f64 = 1.0;
            }
        }
        struct Any;
        impl CongestionController for Any {
            type Params = Loose;
            fn new(_: &Loose, _: &PathHint, _: Time, _: Rng) -> Any {
                Any
            }
            fn on_ack(&mut self, _: &Ack) {}
            fn on_loss(&mut self, _: &Loss) {}
            fn send_limits(&self) -> SendLimits {
                SendLimits { cwnd: MSS, ssthresh: None, pacing: None, burst: MSS }
            }
        }
        assert!(check_parameters(&ControllerConfig::custom::<Any>("any", "")).is_err());
    }
}
