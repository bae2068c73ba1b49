//! A controller of `autorate` at a real shaper: which probe is due, what an answer says, and the shaper's rate.
//!
//! The controllers are those of the simulator. There the shaper itself stops at the limit of unconfirmed bytes; here it is slowed down to the lowest
//! rate.
use narrows_core::autorate::{AnyController, AutorateConfig, Reply, Shaped};
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_host::ReflectorAnswer;
use std::collections::VecDeque;

/// A probe that was sent.
#[derive(Clone, Copy)]
struct Probe {
    number: u16,
    sent: Time,
    passed: Bytes,
}

/// The controller and its probes.
pub(super) struct Follower {
    controller: AnyController,
    /// The shaper is behind the link, for what an interface receives.
    is_behind: bool,
    lowest: Rate,
    probes: VecDeque<Probe>,
    next_number: u16,
    next_probe: Time,
    next_interval: Time,
    confirmed: Bytes,
    last_answer: Time,
    /// Nanoseconds from midnight by the reflector's clock to the epoch of ours.
    offset: Option<i64>,
}

impl Follower {
    pub(super) fn new(config: &AutorateConfig, is_behind: bool, lowest: Rate, shaped: Shaped) -> Follower {
        let controller = config.build();
        Follower {
            is_behind,
            lowest,
            probes: VecDeque::new(),
            next_number: 0,
            next_probe: shaped.now,
            next_interval: shaped.now + controller.interval(),
            confirmed: shaped.passed,
            last_answer: shaped.now,
            offset: None,
            controller,
        }
    }

    /// Does what is due. Returns the number of the probe that is to be sent now, if one is.
    pub(super) fn due(&mut self, shaped: Shaped) -> Option<u16> {
        while self.next_interval <= shaped.now {
            self.controller.on_interval(Shaped { now: self.next_interval, ..shaped });
            self.next_interval += self.controller.interval();
        }
        let every = self.controller.probes_every().filter(|_| self.next_probe <= shaped.now)?;
        self.next_probe = shaped.now + every;
        if !self.controller.probes() {
            self.last_answer = shaped.now;
            return None;
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.probes.push_back(Probe { number, sent: shaped.now, passed: shaped.passed });
        if self.probes.len() > MOST_PROBES {
            self.probes.pop_front();
        }
        Some(number)
    }

    /// Takes an answer. Earlier probes without one count as lost.
    pub(super) fn on_answer(&mut self, answer: ReflectorAnswer, shaped: Shaped) {
        let Some(place) = self.probes.iter().position(|probe| probe.number == answer.number) else { return };
        let Some(Probe { sent, passed, .. }) = self.probes.drain(..=place).next_back() else { return };
        let heard = answer.heard;
        let reflected = answer.received_ms.map(|received| self.local(received, sent, heard));
        let reply = if self.is_behind {
            Reply { sent: reflected.unwrap_or(sent), arrived: heard, rtt: heard.since(sent), passed: shaped.passed }
        } else {
            Reply { sent, arrived: reflected.unwrap_or(heard), rtt: heard.since(sent), passed }
        };
        self.confirmed = self.confirmed.max(reply.passed);
        self.last_answer = heard;
        self.controller.on_reply(reply, Shaped { now: heard, ..shaped });
    }

    /// The shaper's rate. What has passed a shaper behind the link has crossed the link, so that nothing of it is unconfirmed.
    pub(super) fn rate(&self, passed: Bytes) -> Rate {
        let unconfirmed = passed.saturating_sub(self.confirmed);
        let limit = self.controller.unconfirmed().filter(|_| !self.is_behind);
        let stops = limit.is_some_and(|limit| unconfirmed >= limit);
        if stops { self.lowest } else { self.controller.rate().max(self.lowest) }
    }

    /// When something is due.
    pub(super) fn next(&self) -> Time {
        self.next_probe.min(self.next_interval)
    }

    /// How long no probe has been answered.
    pub(super) fn silence(&self, now: Time) -> Span {
        now.since(self.last_answer)
    }

    /// A time of the reflector's clock by ours. It is between the probe's departure and its answer: what is not shows that one of the clocks has
    /// drifted or was set.
    fn local(&mut self, received_ms: u32, sent: Time, heard: Time) -> Time {
        let [sent, heard] = [sent, heard].map(|time| time.as_ns() as i64);
        let received = i64::from(received_ms) * 1_000_000;
        let guess = received + self.offset.unwrap_or((sent + heard) / 2 - received);
        // Midnight has passed.
        let guess = guess + (sent - guess + DAY_NS / 2).div_euclid(DAY_NS) * DAY_NS;
        let local = guess.clamp(sent, heard);
        self.offset = Some(local - received);
        Time::from_ns(local as u64)
    }
}

/// Probes that may be on their way; older ones count as lost.
const MOST_PROBES: usize = 1024;
/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::registry::read;

    const MS: Span = Span::ms(1);

    /// A link of this many bytes per ms behind a shaper whose queue is never empty; its rate as text becomes a rate in Mbit/s.
    struct Model {
        follower: Follower,
        now: Time,
        passed: u64,
        queued: u64,
        /// Answers: when each is heard, its number, and when the reflector received it.
        answers: VecDeque<(Time, u16, Time)>,
        has_timestamps: bool,
    }

    impl Model {
        fn new(text: &str, has_timestamps: bool) -> Model {
            let config: AutorateConfig = read(text).expect("an autorate");
            let shaped = Shaped { now: Time::ZERO, passed: Bytes::ZERO, backlog: Bytes(1) };
            let follower = Follower::new(&config, false, Rate::mbit(2), shaped);
            Model { follower, now: Time::ZERO, passed: 0, queued: 0, answers: VecDeque::new(), has_timestamps }
        }

        fn shaped(&self) -> Shaped {
            Shaped { now: self.now, passed: Bytes(self.passed), backlog: Bytes(10_000) }
        }

        /// Runs for a time with a link of this rate. Returns the link's longest queue in the second half, ms, and the mean rate there.
        fn run(&mut self, ms: u64, link: Rate) -> (u64, Rate) {
            let (each, mut longest, mut from) = (link.bytes_in(MS).0, 0, 0);
            for step in 0..ms {
                let sent = self.follower.rate(Bytes(self.passed)).bytes_in(MS).0;
                (self.passed, self.queued) = (self.passed + sent, (self.queued + sent).saturating_sub(each));
                if step == ms / 2 {
                    (longest, from) = (0, self.passed);
                }
                longest = longest.max(self.queued.checked_div(each).unwrap_or(0));
                self.now += MS;
                if let Some(number) = self.follower.due(self.shaped()) {
                    let waits = MS * self.queued.checked_div(each).unwrap_or(100_000);
                    self.answers.push_back((self.now + waits + Span::ms(20), number, self.now + waits + Span::ms(10)));
                }
                while let Some((heard, number, received)) = self.answers.pop_front_if(|(at, ..)| *at <= self.now) {
                    // A little before midnight by a clock of its own.
                    let ms = (received.as_ns() / 1_000_000 + 86_399_000) % 86_400_000;
                    let received_ms = self.has_timestamps.then_some(ms as u32);
                    self.follower.on_answer(ReflectorAnswer { number, heard, received_ms }, self.shaped());
                }
            }
            (longest, Rate::over(Bytes(self.passed - from), MS * (ms - ms / 2)).expect("a time"))
        }
    }

    #[test]
    fn drain_follows_a_link_that_halves_and_recovers() {
        for has_timestamps in [true, false] {
            let mut model = Model::new("drain:min=2mbit,base=2mbit,max=100mbit", has_timestamps);
            for mbit in [20, 5, 20] {
                let (longest, rate) = model.run(8000, Rate::mbit(mbit));
                assert!(longest < 30, "{mbit} Mbit/s: {longest} ms in the link's queue");
                assert!(rate > Rate::kbit(mbit * 850), "{mbit} Mbit/s: {rate} used");
            }
        }
    }

    #[test]
    fn it_slows_down_when_answers_stop() {
        let mut model = Model::new("drain:min=2mbit,base=2mbit,max=100mbit", true);
        model.run(4000, Rate::mbit(20));
        assert!(model.follower.silence(model.now) < Span::ms(100));
        model.run(2000, Rate::ZERO);
        assert_eq!(model.follower.rate(Bytes(model.passed)), Rate::mbit(2), "the lowest rate");
        assert!(model.follower.silence(model.now) > Span::s(1));
    }

    #[test]
    fn cake_autorate_goes_down_when_probes_are_late_and_up_under_load() {
        let mut model = Model::new("cake_autorate:min=2mbit,base=10mbit,max=40mbit", false);
        let (_, rate) = model.run(10_000, Rate::mbit(30));
        assert!(rate > Rate::mbit(15), "{rate}");
        let (_, rate) = model.run(20_000, Rate::mbit(5));
        assert!(rate < Rate::mbit(6), "{rate}");
    }

    #[test]
    fn answers_of_others_and_second_answers_change_nothing() {
        let mut model = Model::new("drain", true);
        let number = model.follower.due(model.shaped()).expect("a probe at the start");
        let answer = ReflectorAnswer { number, heard: Time::ZERO + MS, received_ms: Some(7) };
        model.follower.on_answer(ReflectorAnswer { number: number.wrapping_add(9), ..answer }, model.shaped());
        assert_eq!(model.follower.probes.len(), 1);
        model.follower.on_answer(answer, model.shaped());
        let limit = model.follower.controller.unconfirmed();
        model.follower.on_answer(answer, Shaped { now: Time::ZERO + MS * 99, ..model.shaped() });
        assert_eq!(model.follower.controller.unconfirmed(), limit);
    }

    #[test]
    fn a_clock_that_was_set_is_believed_at_once() {
        let mut model = Model::new("drain", true);
        let at = |ms: u64| Time::ZERO + MS * ms;
        assert_eq!(model.follower.local(1000, at(100), at(120)), at(110), "in the middle at first");
        assert_eq!(model.follower.local(1105, at(200), at(220)), at(215));
        assert_eq!(model.follower.local(50_000, at(300), at(320)), at(320), "it was set forward");
        assert_eq!(model.follower.local(50_090, at(400), at(420)), at(410));
        assert_eq!(model.follower.local(3, at(500), at(520)), at(500), "it was set back");
    }
}
