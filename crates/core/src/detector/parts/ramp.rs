//! Two subflows at r and 2r, doubled from interval to interval until a rule has seen enough.
//!
//! Each keeps its own time, with jittered gaps: with exact gaps the slower subflow's packet always comes just behind one of
//! the faster's, and in a shared queue without room it is always the one that is dropped.
use crate::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};

/// Intervals whose packets may still be under way.
pub const KEPT: usize = 8;
/// The rate stops doubling once it is more than this multiple of what arrives: both subflows then send far more than any share.
/// CoDel needs this overload before its drops distinguish two queues from one.
const PLENTY: u64 = 16;
/// Steps that begin before the first of them can be heard of: one lasts a round trip.
const UNHEARD: u64 = 2;
/// No doubling beyond this.
const FASTEST: Rate = Rate::gbit(100);
/// Shares of r and 2r.
const SHARES: [f64; 2] = [1.0 / 3.0, 2.0 / 3.0];
/// Shares while the first subflow leaves what it had to the second.
const LENDING: [f64; 2] = [0.02, 0.98];

/// One step of the ramp.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Its number, from 0.
    pub number: u64,
    /// When it began.
    pub start: Time,
    /// When the next one did.
    pub end: Time,
    /// Rate of the slower subflow.
    pub rate: Rate,
    /// Bytes sent per subflow.
    pub sent: [u64; 2],
    /// Of those, arrived.
    pub delivered: [u64; 2],
    /// Of those, lost.
    pub lost: [u64; 2],
    /// Bytes acknowledged between the end of the step before and its own, both one round trip later.
    pub received: [u64; 2],
    /// Bytes acknowledged in its time, whenever they were sent.
    pub arrived: u64,
}

impl Step {
    /// Whether all that was sent has been acknowledged or lost.
    pub fn is_settled(&self) -> bool {
        (0..2).all(|s| self.delivered[s] + self.lost[s] >= self.sent[s])
    }

    /// Whether each subflow sent more than half of what arrived of both. Then a fair queue gives both as much, whatever its length.
    pub fn is_saturated(&self) -> bool {
        2 * self.sent[0].min(self.sent[1]) > self.delivered[0] + self.delivered[1]
    }

    /// Whether each subflow sent about its share, a third and two thirds.
    pub fn is_split_in_three(&self) -> bool {
        let (first, all) = (self.sent[0], self.sent[0] + self.sent[1]);
        (all / 4..=all * 5 / 12).contains(&first)
    }

    /// Counts another step's packets in.
    pub fn add(&mut self, step: &Step) {
        for s in 0..2 {
            self.sent[s] += step.sent[s];
            self.delivered[s] += step.delivered[s];
            self.lost[s] += step.lost[s];
        }
    }

    /// What [`Self::ratio`] of what arrived would be if it had been served in turn: each gets what it sent, up to half, and what
    /// one leaves is the other's. `None` if nothing was sent or nothing arrived.
    pub fn fair_ratio(&self) -> Option<f64> {
        let (all, half) = (self.delivered[0] + self.delivered[1], (self.delivered[0] + self.delivered[1]) / 2);
        let first = self.sent[0].min(half.max(all.saturating_sub(self.sent[1])));
        self.ratio([first, all - first])
    }

    /// Standard error of the logarithm of the ratio in a shared queue: that of a relative risk, in packets of this size. `None`
    /// where nothing arrived of one of them.
    pub fn error(&self, packet: Bytes) -> Option<f64> {
        let part = |s: usize| packet.0 as f64 * (1.0 / self.delivered[s] as f64 - 1.0 / self.sent[s] as f64);
        (!self.delivered.contains(&0)).then(|| libm::sqrt((part(0) + part(1)).max(0.0)))
    }

    /// (first / sent by the first) ÷ (second / sent by the second): 2 when each gets as much as the other, 1 when each
    /// gets what it sent for. `None` if nothing was sent, or nothing came of either.
    pub fn ratio(&self, got: [u64; 2]) -> Option<f64> {
        let part = |s: usize| (self.sent[s] > 0).then(|| got[s] as f64 / self.sent[s] as f64);
        let (first, second) = part(0).zip(part(1))?;
        match (first > 0.0, second > 0.0) {
            (_, true) => Some(first / second),
            (true, false) => Some(f64::INFINITY),
            (false, false) => None,
        }
    }
}

/// The ramp.
#[derive(Clone, Debug)]
pub struct Ramp {
    steps: [Step; KEPT],
    /// How many have begun, and which is looked at next.
    begun: u64,
    looked: u64,
    ends: Time,
    jitter: f64,
    shares: [f64; 2],
    rtt: Option<Span>,
}

impl Ramp {
    /// The first step begins, at this rate of the slower subflow.
    pub fn new(rate: Rate, jitter: f64, rtt: Option<Span>, length: Span, now: Time) -> Ramp {
        let mut steps = [Step::default(); KEPT];
        steps[0] = Step { start: now, rate, ..Step::default() };
        Ramp { steps, begun: 1, looked: 0, ends: now + length, jitter, shares: SHARES, rtt }
    }

    /// Division of the sending rate over the subflows.
    pub const fn split(&self) -> Split {
        Split { shares: self.shares, jitter: self.jitter, independent: true }
    }

    /// The rate of both together.
    pub fn rate(&self) -> Rate {
        Rate::bit(self.current().rate.as_bps().saturating_mul(3))
    }

    /// The present step.
    pub fn current(&self) -> &Step {
        &self.steps[(self.begun - 1) as usize % KEPT]
    }

    /// When the present step ends.
    pub const fn ends(&self) -> Time {
        self.ends
    }

    /// Smoothed RTT of both subflows.
    pub const fn rtt(&self) -> Option<Span> {
        self.rtt
    }

    /// The rate of the slower subflow in a step that begins now: twice as much, unless what is sent is already plenty beside what
    /// arrived in the time of any step that is kept. What arrived of a step's packets would not tell: while a queue grows, all of them
    /// do, later.
    pub fn next_rate(&self, now: Time) -> Rate {
        let rate = self.current().rate;
        let kept = (self.begun.saturating_sub(KEPT as u64)..self.begun).map(|n| &self.steps[n as usize % KEPT]);
        let ended = |step: &Step| if step.number + 1 == self.begun { now } else { step.end };
        let came = kept.filter_map(|step| Rate::over(Bytes(step.arrived), ended(step).since(step.start))).max();
        let heard = came.filter(|&came| came > Rate::ZERO);
        let is_plenty = heard.map_or(self.begun > UNHEARD, |came| self.rate().as_bps() / PLENTY > came.as_bps());
        if is_plenty { rate } else { Rate::bit(rate.as_bps().saturating_mul(2)).min(FASTEST) }
    }

    /// The next step begins, at this rate of the slower subflow, for so long.
    pub fn step(&mut self, rate: Rate, now: Time, length: Span) {
        let last = (self.begun - 1) as usize % KEPT;
        self.steps[last].end = now;
        self.steps[self.begun as usize % KEPT] = Step { number: self.begun, start: now, rate, ..Step::default() };
        self.begun += 1;
        self.looked = self.looked.max(self.begun.saturating_sub(KEPT as u64));
        self.ends = now + length;
    }

    /// The next step begins in the same way, and none before it counts any more.
    pub fn restart(&mut self, rate: Rate, now: Time, length: Span) {
        self.step(rate, now, length);
        self.looked = self.begun - 1;
    }

    /// From now on the first subflow sends hardly anything, and the second all the rest of the rate.
    pub const fn lend(&mut self) {
        self.shares = LENDING;
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, event: &Sent) {
        let step = &mut self.steps[(self.begun - 1) as usize % KEPT];
        step.sent[usize::from(event.subflow & 1)] += event.bytes.0;
    }

    /// A packet was delivered or lost.
    pub fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        let subflow = usize::from(event.subflow & 1);
        if let PacketOutcome::Delivered { rtt: Some(rtt) } = event.outcome {
            self.rtt = Some(self.rtt.map_or(rtt, |old| (old * 7 + rtt) / 8));
        }
        let (rtt, oldest) = (self.rtt.unwrap_or(Span::ZERO), self.begun.saturating_sub(KEPT as u64));
        if let Some(number) = self.number_at(event.sent) {
            let step = &mut self.steps[number as usize % KEPT];
            match event.outcome {
                PacketOutcome::Delivered { .. } => step.delivered[subflow] += event.bytes.0,
                PacketOutcome::Lost => step.lost[subflow] += event.bytes.0,
            }
        }
        if let PacketOutcome::Delivered { .. } = event.outcome {
            self.steps[(self.begun - 1) as usize % KEPT].arrived += event.bytes.0;
        }
        if let PacketOutcome::Delivered { .. } = event.outcome
            && let Some(number) =
                (oldest..self.begun).rev().find(|&n| self.steps[n as usize % KEPT].start + rtt <= event.now)
        {
            self.steps[number as usize % KEPT].received[subflow] += event.bytes.0;
        }
    }

    /// The step in which a packet was sent then, if it is still kept.
    pub fn sent_in(&self, sent: Time) -> Option<&Step> {
        self.number_at(sent).map(|number| &self.steps[number as usize % KEPT])
    }

    fn number_at(&self, sent: Time) -> Option<u64> {
        let oldest = self.begun.saturating_sub(KEPT as u64);
        (oldest..self.begun).rev().find(|&number| self.steps[number as usize % KEPT].start <= sent)
    }

    /// The oldest complete step that has not been looked at, once all of it is accounted for.
    pub fn settled(&mut self) -> Option<Step> {
        let step = self.steps[self.looked as usize % KEPT];
        (self.looked + 1 < self.begun && step.is_settled()).then(|| {
            self.looked += 1;
            step
        })
    }

    /// The oldest complete step that has not been looked at, once a round trip has passed since its end.
    pub fn received(&mut self, now: Time) -> Option<Step> {
        let step = self.steps[self.looked as usize % KEPT];
        let heard = step.end + self.rtt.unwrap_or(Span::ZERO) <= now;
        (self.looked + 1 < self.begun && heard).then(|| {
            self.looked += 1;
            step
        })
    }
}

/// A measurement: a ramp, until a rule has seen enough or it has taken too long.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// None once it is over.
    ramp: Option<Ramp>,
    /// Without a verdict by then it is undecided.
    deadline: Time,
}

impl Measurement {
    /// It begins with this ramp.
    pub fn new(ramp: Ramp, patience: Span, now: Time) -> Measurement {
        Measurement { ramp: Some(ramp), deadline: now + patience }
    }

    /// Its ramp, unless it is over.
    pub const fn ramp(&self) -> Option<&Ramp> {
        self.ramp.as_ref()
    }

    /// The same, for what happens to it.
    pub const fn ramp_mut(&mut self) -> Option<&mut Ramp> {
        self.ramp.as_mut()
    }

    /// Whether it goes on although it has taken too long.
    pub fn is_late(&self, now: Time) -> bool {
        self.ramp.is_some() && now >= self.deadline
    }

    /// It is over.
    pub fn end(&mut self) {
        self.ramp = None;
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, event: &Sent) {
        if let Some(ramp) = &mut self.ramp {
            ramp.on_sent(event);
        }
    }

    /// When the present step ends, or patience does.
    pub fn next_timer(&self) -> Option<Time> {
        self.ramp.as_ref().map(|ramp| ramp.ends().min(self.deadline))
    }

    /// How what is sent is divided: once the measurement is over, all goes over the first subflow.
    pub fn split(&self) -> Split {
        self.ramp.as_ref().map_or(Split { shares: [1.0, 0.0], jitter: 0.0, independent: false }, Ramp::split)
    }

    /// The rate of both subflows together, while it goes on.
    pub fn sets_rate(&self) -> Option<Rate> {
        self.ramp.as_ref().map(Ramp::rate)
    }
}

/// Bytes over a time; `None` for no time at all.
pub fn rate_of(bytes: [u64; 2], span: Span) -> Option<Rate> {
    Rate::over(Bytes(bytes[0] + bytes[1]), span).filter(|&rate| rate > Rate::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_feedback::Flight;
    use alloc::vec::Vec;

    fn step(sent: [u64; 2], delivered: [u64; 2]) -> Step {
        Step { sent, delivered, ..Step::default() }
    }

    #[test]
    fn a_step_is_saturated_once_fair_service_would_halve_what_arrives() {
        // 10 and 20 sent, a link for 24: 10 and 14 would arrive, and the first loses nothing by being one of two.
        assert!(!step([10, 20], [10, 14]).is_saturated());
        // A link for 18: 9 each.
        assert!(step([10, 20], [9, 9]).is_saturated() && step([10, 20], [6, 12]).is_saturated());
    }

    #[test]
    fn few_packets_are_chance() {
        // √(1/2 − 1/4 + 1/4 − 1/16) = 0.661 and, with a hundred times as many packets, 0.0661; ln 2 = 0.693.
        let error = |n: u64, packet: u64| step([4 * n, 16 * n], [2 * n, 4 * n]).error(Bytes(packet)).unwrap();
        assert!(
            (error(1, 1) - 0.4375f64.sqrt()).abs() < 1e-12
                && (error(100, 1) - 0.04375f64.sqrt() / 10.0f64.sqrt()).abs() < 1e-12
        );
        assert!((error(100, 100) - error(1, 1)).abs() < 1e-12, "in packets, not in bytes");
        assert_eq!(step([4, 4], [0, 2]).error(Bytes(1)), None, "of nothing nothing is known");
    }

    #[test]
    fn fair_service_gives_what_is_asked_for_up_to_half() {
        // 24 of 10 and 20: the first gets its 10, the second 14. Of 18, and less, both half.
        assert_eq!(step([10, 20], [8, 16]).fair_ratio(), Some(20.0 / 14.0));
        assert_eq!(step([10, 20], [6, 12]).fair_ratio(), Some(2.0));
        assert_eq!(step([20, 10], [12, 8]).fair_ratio(), Some(0.5));
        // Nothing was lost: each subflow receives as much as it sent.
        assert_eq!(step([10, 20], [10, 20]).fair_ratio(), Some(1.0));
    }

    #[test]
    fn the_rate_doubles_only_while_something_is_heard() {
        let ms = |n: u64| Time::ZERO + Span::ms(n);
        let mut ramp = Ramp::new(Rate::mbit(1), 0.5, Some(Span::ms(10)), Span::ms(10), ms(0));
        let mut rates = Vec::new();
        for n in 1..=6 {
            let rate = ramp.next_rate(ms(10 * n));
            rates.push(rate.as_bps() / 1_000_000);
            ramp.step(rate, ms(10 * n), Span::ms(10));
        }
        assert_eq!(rates, [2, 4, 4, 4, 4, 4], "nothing is heard of any step");
        // 1250 B of the first step arrive in a hundredth of a second: 1 Mbit/s, and 12 are sent.
        let outcome = PacketOutcome::Delivered { rtt: Some(Span::ms(60)) };
        let heard = PacketFeedback {
            now: ms(65),
            sent: ms(5),
            bytes: Bytes(1250),
            subflow: 0,
            flight: Flight::default(),
            outcome,
        };
        ramp.on_packet_feedback(&heard);
        assert_eq!(ramp.next_rate(ms(70)), Rate::mbit(8));
        ramp.step(Rate::mbit(8), ms(70), Span::ms(10));
        assert_eq!(ramp.next_rate(ms(80)), Rate::mbit(8), "24 Mbit/s beside 1 is plenty");
    }

    #[test]
    fn steps_before_a_restart_are_not_looked_at() {
        let ms = |n: u64| Time::ZERO + Span::ms(n);
        let mut ramp = Ramp::new(Rate::mbit(1), 0.5, None, Span::ms(10), ms(0));
        ramp.step(Rate::mbit(2), ms(10), Span::ms(10));
        ramp.restart(Rate::mbit(2), ms(15), Span::ms(10));
        assert!(ramp.settled().is_none(), "the step under way is not over");
        ramp.step(Rate::mbit(4), ms(25), Span::ms(10));
        assert_eq!(ramp.settled().map(|step| (step.number, step.start)), Some((2, ms(15))));
    }

    #[test]
    fn steps_are_taken_together() {
        let mut all = step([10, 20], [5, 5]);
        all.add(&step([20, 40], [5, 5]));
        assert_eq!((all.sent, all.delivered, all.ratio(all.delivered)), ([30, 60], [10, 10], Some(2.0)));
    }
}
