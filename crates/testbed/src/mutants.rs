//! Controllers that are wrong on purpose: each [case](crate::cases) names those that must fail it, so that a case which nothing fails is
//! seen to be worthless.
use narrows_core::Bytes;
use narrows_core::congestion::{
    Ack, CongestionController, Loss, LossKind, Marks, PacketFeedback, PathHint, RateSample, Reduction, SendLimits,
    Sent, Subflows, Underuse, bbr::Bbr, bbr3::Bbr3, cubic::Cubic, new_reno::NewReno, prague::Prague,
};
use narrows_core::extensions::Extensions;
use narrows_core::{Rate, Rng, Span, Time};
use std::sync::Once;

/// A fault: what it does in place of what the controller would have heard or said.
trait Fault: Default + Send + 'static {
    fn on_sent<C: CongestionController>(&mut self, control: &mut C, event: &Sent) {
        control.on_sent(event);
    }

    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        control.on_ack(event);
    }

    fn on_loss<C: CongestionController>(&mut self, control: &mut C, event: &Loss) {
        control.on_loss(event);
    }

    fn on_spurious<C: CongestionController>(&mut self, control: &mut C, now: Time) {
        control.on_spurious(now);
    }

    fn on_underuse<C: CongestionController>(&mut self, control: &mut C, event: &Underuse) {
        control.on_underuse(event);
    }

    fn limits(&self, limits: SendLimits) -> SendLimits {
        limits
    }
}

/// A controller with a fault.
struct Mutant<C: CongestionController, F> {
    control: C,
    fault: F,
}

impl<C: CongestionController, F: Fault> CongestionController for Mutant<C, F> {
    type Params = C::Params;
    const REDUCTION: Reduction = C::REDUCTION;
    const PACKET_FEEDBACK: bool = C::PACKET_FEEDBACK;
    const RATES: bool = C::RATES;
    const EVERY_SENT: bool = C::EVERY_SENT;
    const PACES: bool = C::PACES;
    const SPLITS: bool = C::SPLITS;
    const MARKS: Marks = C::MARKS;

    fn new(params: &C::Params, path: &PathHint, now: Time, rng: Rng) -> Self {
        Mutant { control: C::new(params, path, now, rng), fault: F::default() }
    }

    fn on_sent(&mut self, event: &Sent) {
        self.fault.on_sent(&mut self.control, event);
    }

    fn on_ack(&mut self, event: &Ack) {
        self.fault.on_ack(&mut self.control, event);
    }

    fn on_loss(&mut self, event: &Loss) {
        self.fault.on_loss(&mut self.control, event);
    }

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        self.control.on_packet_feedback(event);
    }

    fn on_spurious(&mut self, now: Time) {
        self.fault.on_spurious(&mut self.control, now);
    }

    fn on_underuse(&mut self, event: &Underuse) {
        self.fault.on_underuse(&mut self.control, event);
    }

    fn on_timer(&mut self, now: Time) {
        self.control.on_timer(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.control.next_timer()
    }

    fn send_limits(&self) -> SendLimits {
        self.fault.limits(self.control.send_limits())
    }

    fn subflows(&self) -> Option<&dyn Subflows> {
        self.control.subflows()
    }
}

/// A full-sized packet.
const PACKET: u64 = 1448;

/// Losses and marks change nothing; a timeout does.
#[derive(Default)]
struct NoReduction;

impl Fault for NoReduction {
    fn on_loss<C: CongestionController>(&mut self, control: &mut C, event: &Loss) {
        if event.kind == LossKind::Timeout {
            control.on_loss(event);
        }
    }

    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        control.on_ack(&Ack { lost: Bytes(0), marked: 0, ..*event });
    }
}

/// Marks change nothing.
#[derive(Default)]
struct IgnoresMarks;

impl Fault for IgnoresMarks {
    fn on_loss<C: CongestionController>(&mut self, control: &mut C, event: &Loss) {
        if event.kind != LossKind::Ecn {
            control.on_loss(event);
        }
    }

    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        control.on_ack(&Ack { marked: 0, ..*event });
    }
}

/// Every acknowledgment counts eight times.
#[derive(Default)]
struct FastGrowth;

impl Fault for FastGrowth {
    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        control.on_ack(&Ack { acked: Bytes(event.acked.0 * 8), ..*event });
    }
}

/// After the first loss nothing makes the window grow again.
#[derive(Default)]
struct NoGrowth {
    lost: bool,
}

impl Fault for NoGrowth {
    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        if !self.lost {
            control.on_ack(event);
        }
    }

    fn on_loss<C: CongestionController>(&mut self, control: &mut C, event: &Loss) {
        self.lost = true;
        control.on_loss(event);
    }
}

/// Never more than ten packets in flight.
#[derive(Default)]
struct Timid;

impl Fault for Timid {
    fn limits(&self, limits: SendLimits) -> SendLimits {
        SendLimits { cwnd: limits.cwnd.min(Bytes(10 * PACKET)), ..limits }
    }
}

/// Twice the window and twice the rate.
#[derive(Default)]
struct Greedy;

impl Fault for Greedy {
    fn limits(&self, limits: SendLimits) -> SendLimits {
        let pacing = limits.pacing.map(|rate| Rate::bit(rate.as_bps() * 2));
        SendLimits { cwnd: Bytes(limits.cwnd.0 * 2), pacing, ..limits }
    }
}

/// Half the window and half the rate.
#[derive(Default)]
struct Half;

impl Fault for Half {
    fn limits(&self, limits: SendLimits) -> SendLimits {
        let pacing = limits.pacing.map(|rate| Rate::bit(rate.as_bps() / 2));
        SendLimits { cwnd: Bytes((limits.cwnd.0 / 2).max(PACKET)), pacing, ..limits }
    }
}

/// What it says at ten seconds, it says for ever.
#[derive(Default)]
struct Frozen {
    since: Option<SendLimits>,
}

/// When it freezes.
const FREEZES: Span = Span::s(10);

impl Fault for Frozen {
    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        control.on_ack(event);
        if self.since.is_none() && event.now >= Time::ZERO + FREEZES {
            self.since = Some(control.send_limits());
        }
    }

    fn limits(&self, limits: SendLimits) -> SendLimits {
        self.since.unwrap_or(limits)
    }
}

/// A loss is a timeout.
#[derive(Default)]
struct Panics;

impl Fault for Panics {
    fn on_loss<C: CongestionController>(&mut self, control: &mut C, event: &Loss) {
        control.on_loss(&Loss { kind: LossKind::Timeout, first: true, ..*event });
    }
}

/// Nothing is paced.
#[derive(Default)]
struct NoPacing;

impl Fault for NoPacing {
    fn limits(&self, limits: SendLimits) -> SendLimits {
        SendLimits { pacing: None, ..limits }
    }
}

/// A spurious reduction is not taken back.
#[derive(Default)]
struct NoUndo;

impl Fault for NoUndo {
    fn on_spurious<C: CongestionController>(&mut self, _control: &mut C, _now: Time) {}
}

/// An unused window stays as it was.
#[derive(Default)]
struct NoDecay;

impl Fault for NoDecay {
    fn on_underuse<C: CongestionController>(&mut self, _control: &mut C, _event: &Underuse) {}
}

/// It does not notice that the application was idle.
#[derive(Default)]
struct NoIdle;

impl Fault for NoIdle {
    fn on_sent<C: CongestionController>(&mut self, control: &mut C, event: &Sent) {
        control.on_sent(&Sent { idle: None, ..*event });
    }
}

/// A rate that the application limited counts as the path's.
#[derive(Default)]
struct NoLimited;

impl Fault for NoLimited {
    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        let rate = RateSample { app_limited: false, ..event.rate };
        control.on_ack(&Ack { rate, ..*event });
    }
}

/// Never more in flight than the paced rate fills in the lowest RTT.
#[derive(Default)]
struct NoExtra {
    min_rtt: Option<Span>,
}

impl Fault for NoExtra {
    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        control.on_ack(event);
        self.min_rtt = self.min_rtt.into_iter().chain(event.rtt).min();
    }

    fn limits(&self, limits: SendLimits) -> SendLimits {
        let bdp = limits.pacing.zip(self.min_rtt).map(|(rate, rtt)| rate.bytes_in(rtt).max(Bytes(4 * PACKET)));
        SendLimits { cwnd: bdp.map_or(limits.cwnd, |bdp| limits.cwnd.min(bdp)), ..limits }
    }
}

/// The first rate below half of the one before stays.
#[derive(Default)]
struct StaysLow {
    peak: Rate,
    low: Option<Rate>,
}

impl Fault for StaysLow {
    fn on_ack<C: CongestionController>(&mut self, control: &mut C, event: &Ack) {
        control.on_ack(event);
        let Some(rate) = control.send_limits().pacing else { return };
        if rate.as_bps() * 2 < self.peak.as_bps() {
            self.low.get_or_insert(rate);
        }
        self.peak = self.peak.max(rate);
    }

    fn limits(&self, limits: SendLimits) -> SendLimits {
        SendLimits { pacing: self.low.or(limits.pacing), ..limits }
    }
}

/// After a timeout never more than ten packets in flight.
#[derive(Default)]
struct NoReturn {
    timed_out: bool,
}

impl Fault for NoReturn {
    fn on_loss<C: CongestionController>(&mut self, control: &mut C, event: &Loss) {
        self.timed_out |= event.kind == LossKind::Timeout;
        control.on_loss(event);
    }

    fn limits(&self, limits: SendLimits) -> SendLimits {
        if self.timed_out { Timid.limits(limits) } else { limits }
    }
}

macro_rules! faults {
    ($($name:literal $Fault:ident $what:literal;)*) => {
        /// The faults: name, and what the controller does.
        pub const FAULTS: &[(&str, &str)] = &[$( ($name, $what), )*];

        fn all() -> Extensions {
            let extensions = Extensions::new();
            $(
                let extensions = extensions
                    .controller::<Mutant<NewReno, $Fault>>(concat!("new_reno_", $name), $what)
                    .controller::<Mutant<Cubic, $Fault>>(concat!("cubic_", $name), $what)
                    .controller::<Mutant<Bbr, $Fault>>(concat!("bbr_", $name), $what)
                    .controller::<Mutant<Bbr3, $Fault>>(concat!("bbr3_", $name), $what)
                    .controller::<Mutant<Prague, $Fault>>(concat!("prague_", $name), $what);
            )*
            extensions
        }
    };
}

faults! {
    "no_reduction" NoReduction "Losses and marks change nothing.";
    "ignores_marks" IgnoresMarks "Marks change nothing.";
    "fast_growth" FastGrowth "Every acknowledgment counts eight times.";
    "no_growth" NoGrowth "After the first loss the window never grows again.";
    "timid" Timid "Never more than ten packets in flight.";
    "greedy" Greedy "Twice the window and twice the rate.";
    "half" Half "Half the window and half the rate.";
    "frozen" Frozen "Window and rate stay what they are at ten seconds.";
    "panics" Panics "Takes every loss for a timeout.";
    "no_pacing" NoPacing "Nothing is paced.";
    "no_undo" NoUndo "A spurious reduction is not taken back.";
    "no_decay" NoDecay "An unused window stays as it was.";
    "no_idle" NoIdle "Does not notice that the application was idle.";
    "no_limited" NoLimited "Takes a rate that the application limited for the path's.";
    "no_extra" NoExtra "Never more in flight than the paced rate fills in the lowest RTT.";
    "no_return" NoReturn "After a timeout never more than ten packets in flight.";
    "stays_low" StaysLow "The first rate below half of the one before stays.";
}

/// Adds the mutants to the registry of controllers, under names such as `cubic_no_reduction`.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| all().extend(&[]).expect("their names are free"));
}
