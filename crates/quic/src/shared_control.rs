//! One controller and one window for all paths of a connection, without a clock and without a network.
//!
//! noq has a controller for each path, and fills the lowest path that is not blocked first. So the division of the data is made by
//! blocking: a path whose turn it is not has no window. Turns change when a path is ahead of its share by about a millisecond's data, so
//! that packets still leave in batches. Where a detector wants each subflow paced on its own, a packet leaves when its path's jittered
//! clock says so and the other path has none that is due earlier. All that are due at a tick of a timer leave in that order.
//!
//! The first packets of a batch take all free places of a full queue, so no path may lead more batches than it should. noq's own pacers are
//! out of the way: each batch would begin with the path that had no tokens left for the one before. And each packet is a transmission of its
//! own: noq pauses after the transmission that completes twenty packets. If transmissions were a path's turns, that would be one of the
//! faster path in two of three cases, and the other path would lead two thirds of the batches.
use crate::PATHS;
use crate::event::{Event, What};
use crate::flights::Flights;
use narrows_core::congestion::{ControllerConfig, PathHint, SendLimits, Split, Subflows};
use narrows_core::detector::{Events, Verdict};
use narrows_core::sender::pacer::Grain;
use narrows_core::sender::packetwise::{InFlight, News, Packetwise};
use narrows_core::{Bytes, Rate, Rng, Span, Time};
use std::collections::VecDeque;

/// Window before the handshake is complete: RFC 9002 §7.2's, for the smallest datagrams that QUIC allows.
pub(crate) const HANDSHAKE_WINDOW: u64 = 10 * 1200;
/// RFC 9002 §7.2.
const INITIAL_WINDOW: u64 = 10;
/// Paths take turns of a millisecond, so that packets leave in batches. What a tick of tokio's timer, 1 to 2 ms, and an ordinary wait for the
/// processor hold up is made up for.
const GRAIN: Grain = Grain { timer_slack: Span::ms(5), turn: Span::ms(1) };
/// noq's pacing rate where our clocks decide when packets leave, as a multiple of the real one. Its bucket then never runs dry.
const UNPACED: u64 = 16;

/// A path is given up after this number of probe timeouts without an acknowledgment: three probes, each after twice the time of the one before
/// (RFC 9002 §6.2.1), and one for the answer. An overloaded queue may drop the first two.
const PATIENCE: u64 = 8;

/// What is fixed before a connection begins.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) controller: ControllerConfig,
    /// Takes over if a path is lost.
    pub(crate) fallback: ControllerConfig,
    /// Takes over on demand.
    pub(crate) then: Option<ControllerConfig>,
    pub(crate) seed: u64,
}

/// A connection's controller, driven by [`Event`]s.
pub(crate) struct SharedControl {
    settings: Settings,
    control: Option<Packetwise>,
    mtu: u32,
    /// The one path that carries data; `None`: both do.
    only: Option<u8>,
    /// The path whose packet has just left. The transmission ends with it if each path has a clock of its own.
    just_sent: Option<u8>,
    /// What the application lets it send, bytes; `None`: as much as the controller does.
    allowed: Option<u64>,
    paths: [Path; PATHS],
    /// Acknowledged, but the acknowledgments that came together have not ended.
    acked: Vec<(u64, InFlight)>,
    /// Acknowledged, but not yet reported to the controller, because losses may follow.
    news: Option<(News, Time)>,
    /// Detection has ended, because a path is lost.
    is_fallen_back: bool,
    /// The latest verdict that [`SharedControl::new_verdict`] has returned.
    told: Verdict,
    rtts: VecDeque<RttSample>,
}

/// The RTT of a packet, measured when its acknowledgment came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttSample {
    /// When, since the connection was made.
    pub at: Time,
    /// The path.
    pub path: u8,
    /// How long after the packet.
    pub rtt: Span,
}

/// RTT samples that are kept for whoever asks.
const SAMPLES: usize = 4096;

#[derive(Debug, Default)]
struct Path {
    flights: Flights,
    /// In flight, as the transport counts: also what was sent during the handshake.
    inflight: u64,
    /// When something was acknowledged last, or sent after nothing had been in flight.
    progress: Time,
}

/// How much a path may send, and how fast.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PathLimits {
    /// Bytes that may be in flight on the path.
    pub(crate) window: u64,
    pub(crate) ssthresh: Option<u64>,
    /// Bytes per second.
    pub(crate) pacing: Option<u64>,
    /// Bytes that may leave in one batch.
    pub(crate) batch: Option<u64>,
}

impl SharedControl {
    pub(crate) fn new(settings: Settings) -> SharedControl {
        SharedControl {
            settings,
            control: None,
            mtu: 1200,
            only: Some(0),
            just_sent: None,
            allowed: None,
            paths: [Path::default(), Path::default()],
            acked: Vec::new(),
            news: None,
            is_fallen_back: false,
            told: Verdict::NONE,
            rtts: VecDeque::with_capacity(SAMPLES),
        }
    }

    /// Something has happened.
    pub(crate) fn apply(&mut self, event: &Event) {
        let at = event.at;
        match event.what {
            What::Begin { rtt, mtu, both } => self.begin(Span::ns(rtt), mtu, both, at),
            What::Sent { path, number, bytes } => self.sent(path, number, bytes, at),
            What::Acknowledged { path, number, bytes } => {
                self.settle();
                let path = &mut self.paths[usize::from(path)];
                path.inflight = path.inflight.saturating_sub(u64::from(bytes));
                path.progress = at;
                self.acked.extend(path.flights.take(number).map(|packet| (number, packet)));
            }
            What::EndAcks { path, inflight, app_limited, largest } => {
                self.end_acks(path, inflight, app_limited, largest, at);
            }
            What::Lost { path, number, bytes } => self.lost(path, number, bytes, at),
            What::Congestion { path, persistent, ecn } => {
                if let (Some(control), None) = (&self.control, &self.news) {
                    self.news = Some((control.begin(path), at));
                }
                if let Some((news, _)) = &mut self.news {
                    news.persistent_congestion |= persistent;
                    news.marked += u32::from(ecn);
                }
            }
            What::Only { path } => self.fall_back(path, at),
            What::Switch => self.switch(at),
            What::Timer => {
                self.settle();
                self.on_timer(at);
            }
        }
    }

    fn begin(&mut self, rtt: Span, mtu: u32, both: bool, at: Time) {
        self.mtu = mtu;
        self.only = (!both).then_some(0);
        let window = INITIAL_WINDOW * u64::from(mtu);
        self.control = Some(self.start(&self.settings.controller, Some(rtt), window, at));
    }

    fn start(&self, config: &ControllerConfig, rtt: Option<Span>, window: u64, at: Time) -> Packetwise {
        let mss = Bytes(u64::from(self.mtu));
        let hint = PathHint { mss, initial_window: Bytes(window), rtt, paced: true, resume: None };
        let stream = |name| Rng::stream(self.settings.seed, name);
        Packetwise::new(config, &hint, at, stream("pacing"), stream("controller")).coarsened(GRAIN)
    }

    fn sent(&mut self, index: u8, number: u64, bytes: u32, at: Time) {
        self.settle();
        self.on_timer(at);
        self.allowed = self.allowed.map(|allowed| allowed.saturating_sub(u64::from(bytes)));
        let path = &mut self.paths[usize::from(index)];
        if path.inflight == 0 {
            path.progress = at;
        }
        path.inflight += u64::from(bytes);
        let Some(control) = &mut self.control else { return };
        let limits = control.controller().send_limits();
        control.has_data();
        let packet = control.on_sent(index, bytes, &limits, at);
        self.just_sent = Some(index);
        for gone in path.flights.push(number, packet) {
            control.forget(&gone);
        }
    }

    fn end_acks(&mut self, index: u8, inflight: u64, app_limited: bool, largest: u64, at: Time) {
        self.on_timer(at);
        let path = &mut self.paths[usize::from(index)];
        path.inflight = inflight;
        let Some(control) = &mut self.control else { return };
        if !self.acked.is_empty() {
            self.acked.sort_unstable_by_key(|&(number, _)| std::cmp::Reverse(number));
            let mut news = control.begin(index);
            for (number, packet) in self.acked.drain(..) {
                // noq does not report the receiver's delay, so the receiver is asked for next to none.
                let delay = (number == largest).then_some(Span::ZERO);
                control.acknowledged(&mut news, number, &packet, delay, at);
            }
            if let Some(rtt) = news.rtt {
                if self.rtts.len() == SAMPLES {
                    self.rtts.pop_front();
                }
                self.rtts.push_back(RttSample { at, path: index, rtt });
            }
            self.news = Some((news, at));
        }
        if inflight == 0 {
            // Of these the transport has counted some differently: probes of the path's MTU that were lost.
            for gone in path.flights.clear() {
                control.forget(&gone);
            }
        }
        if app_limited {
            control.limit_by_application();
        }
    }

    fn lost(&mut self, index: u8, number: u64, bytes: u32, at: Time) {
        if self.news.as_ref().is_some_and(|&(_, of)| of != at) {
            self.settle();
        }
        let path = &mut self.paths[usize::from(index)];
        path.inflight = path.inflight.saturating_sub(u64::from(bytes));
        let Some(control) = &mut self.control else { return };
        let Some(packet) = path.flights.take(number) else { return };
        let (news, _) = self.news.get_or_insert_with(|| (control.begin(index), at));
        control.lost(news, &packet, at);
    }

    /// One path is lost, and with it the detector's evidence.
    fn fall_back(&mut self, path: u8, at: Time) {
        self.settle();
        self.only = Some(path);
        let Some(control) = &self.control else { return };
        if !self.settings.controller.splits() || self.is_fallen_back {
            return;
        }
        self.is_fallen_back = true;
        let window = control.controller().send_limits().cwnd.0.max(INITIAL_WINDOW * u64::from(self.mtu));
        let rtt = control.rtt(path).min();
        self.paths.iter_mut().for_each(|path| drop(path.flights.clear()));
        self.paths[1 - usize::from(path)].inflight = 0;
        self.control = Some(self.start(&self.settings.fallback, rtt, window, at));
    }

    /// The second controller starts as on a new connection. What is in flight counts against its window and is not reported to it.
    fn switch(&mut self, at: Time) {
        self.settle();
        let (Some(control), Some(then)) = (&self.control, &self.settings.then) else { return };
        if self.is_fallen_back || (then.splits() && self.only.is_some()) {
            return;
        }
        let rtt = (0..PATHS as u8).filter_map(|path| control.rtt(path).min()).min();
        let window = INITIAL_WINDOW * u64::from(self.mtu);
        let next = self.start(then, rtt, window, at);
        self.paths.iter_mut().for_each(|path| drop(path.flights.clear()));
        self.acked.clear();
        self.control = Some(next);
    }

    /// Reports to the controller what the last acknowledgments and losses brought. noq declares losses after it has reported the
    /// acknowledgments, so this waits until something else happens.
    pub(crate) fn settle(&mut self) {
        if let (Some((news, at)), Some(control)) = (self.news.take(), &mut self.control) {
            control.finish(&news, at);
        }
    }

    fn on_timer(&mut self, at: Time) {
        if let Some(control) = &mut self.control {
            control.on_timer(at);
        }
    }

    /// No packet is begun after this many bytes from now on; `None`: as much as the controller lets.
    pub(crate) fn allow(&mut self, bytes: Option<u64>) {
        self.allowed = bytes;
    }

    /// When [`What::Timer`] is due.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.control.as_ref()?.controller().next_timer()
    }

    /// The split, if both paths carry data and each has a clock of its own.
    fn independent(&self) -> Option<Split> {
        self.split().filter(|split| split.independent)
    }

    /// When the next packet may leave, where the paths' clocks decide that.
    pub(crate) fn next_packet(&self) -> Option<Time> {
        self.independent().and(self.control.as_ref()).map(|control| control.next().1)
    }

    /// The bytes that may be in flight on a path now: [`PathLimits::window`], or nothing more after a packet that ends a transmission. The
    /// transport asks several times for each packet.
    pub(crate) fn window(&mut self, index: u8, now: impl FnOnce() -> Time) -> u64 {
        self.settle();
        let Some(control) = &self.control else { return HANDSHAKE_WINDOW };
        let (limits, split) = (control.controller().send_limits(), self.split());
        let has_just_sent = self.just_sent.take_if(|path| *path == index).is_some();
        let inflight = self.paths[usize::from(index)].inflight;
        if has_just_sent && split.is_some_and(|split| split.independent) {
            return inflight;
        }
        inflight + self.room(index, &limits, split, now)
    }

    /// What a path may do now.
    pub(crate) fn limits(&mut self, index: u8, now: impl FnOnce() -> Time) -> PathLimits {
        self.settle();
        let Some(control) = &self.control else {
            return PathLimits { window: HANDSHAKE_WINDOW, ssthresh: None, pacing: None, batch: None };
        };
        let (limits, split) = (control.controller().send_limits(), self.split());
        let share = split
            .map_or(1.0, |split| if split.independent { UNPACED as f64 } else { split.shares[usize::from(index)] });
        let rate = control.pacing_rate(&limits);
        let bytes = |rate: Rate| (rate.as_bps() as f64 / 8.0 * share) as u64;
        PathLimits {
            window: self.paths[usize::from(index)].inflight + self.room(index, &limits, split, now),
            ssthresh: limits.ssthresh.map(|ssthresh| ssthresh.0),
            pacing: rate.map(|rate| bytes(rate).max(1)),
            batch: split.and(rate).map(|rate| GRAIN.turn_bytes(rate, self.mtu)),
        }
    }

    /// How the data are divided, if both paths carry some.
    fn split(&self) -> Option<Split> {
        self.control.as_ref()?.split().filter(|_| self.only.is_none())
    }

    /// The bytes that a path may send now under these limits, whatever it has in flight.
    fn room(&self, index: u8, limits: &SendLimits, split: Option<Split>, now: impl FnOnce() -> Time) -> u64 {
        let Some(control) = &self.control else { return 0 };
        let may_send = match (self.only, split) {
            (Some(only), _) => only == index,
            (None, None) => index == 0,
            (None, Some(split)) => {
                let (next, at) = control.next();
                next == index && (!split.independent || at <= now())
            }
        };
        let counted = self.paths.iter().map(|path| path.inflight).sum::<u64>().max(control.inflight().0);
        let room = match may_send {
            false => 0,
            true if counted == 0 => limits.cwnd.0.max(u64::from(self.mtu)),
            true => limits.cwnd.0.saturating_sub(counted),
        };
        // A packet that is begun is sent in full.
        self.allowed.map_or(room, |allowed| room.min(allowed.next_multiple_of(self.mtu.into())))
    }

    /// The detector's verdict; `None` without a detector, or when a path is lost.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.control.as_ref()?.controller().subflows().map(Subflows::verdict)
    }

    /// The detections and recoveries so far; `None` without a detector.
    pub(crate) fn events(&self) -> Option<Events> {
        self.control.as_ref()?.controller().subflows().map(Subflows::events)
    }

    /// The RTT samples since the last call, the newest [`SAMPLES`] of them.
    pub(crate) fn take_rtts(&mut self) -> Vec<RttSample> {
        self.rtts.drain(..).collect()
    }

    /// The verdict, if the detector has decided again or changed its finding since the last call.
    pub(crate) fn new_verdict(&mut self) -> Option<Verdict> {
        let verdict = self.verdict().unwrap_or(Verdict::NONE);
        let is_new = verdict.decisions != self.told.decisions || verdict.finding != self.told.finding;
        self.told = verdict;
        is_new.then_some(verdict)
    }

    /// A path that has had nothing acknowledged for this long although it has data in flight and the other one does get acknowledgments.
    pub(crate) fn silent(&self, at: Time) -> Option<(u8, Span)> {
        let control = self.control.as_ref().filter(|_| self.only.is_none())?;
        let patience = (0..PATHS as u8).map(|path| control.rtt(path).probe_timeout(Span::ms(25))).max()? * PATIENCE;
        let waits = |path: &Path| if path.inflight == 0 { Span::ZERO } else { at.since(path.progress) };
        let [first, second] = self.paths.each_ref().map(waits);
        let (index, silence) = if first > second { (0, first) } else { (1, second) };
        let other = &self.paths[1 - index];
        // A path that waits for the other one's window has nothing in flight.
        let other_is_well = other.inflight == 0 || at.since(other.progress) < silence / 2;
        let is_alone = silence > patience.max(Span::s(1)) && other_is_well;
        is_alone.then_some((index as u8, silence))
    }

    /// The connection's state, for records.
    pub(crate) fn meters(&self) -> Option<Meters> {
        let control = self.control.as_ref()?;
        let limits = control.controller().send_limits();
        Some(Meters {
            cwnd: limits.cwnd,
            ssthresh: limits.ssthresh,
            inflight: control.inflight(),
            pacing: control.pacing_rate(&limits),
            srtt: control.srtt(),
            min_rtt: (0..PATHS as u8).filter_map(|path| control.rtt(path).min()).min(),
            mtu: Bytes(u64::from(self.mtu)),
        })
    }
}

/// The state of a connection's sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Meters {
    /// Congestion window of all paths together.
    pub cwnd: Bytes,
    /// Slow-start threshold, once there is one.
    pub ssthresh: Option<Bytes>,
    /// Data in flight on all paths.
    pub inflight: Bytes,
    /// Pacing rate of all paths together.
    pub pacing: Option<Rate>,
    /// Smoothed RTT of the path where it is lower.
    pub srtt: Option<Span>,
    /// Lowest RTT so far.
    pub min_rtt: Option<Span>,
    /// UDP payload of a full-sized packet, the unit that divides windows into packets.
    pub mtu: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::registry;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    #[test]
    fn regression_a_path_without_a_share_does_not_keep_the_turn() {
        // The ramp divides 1 : 2 and gives up; after that everything goes over the first path.
        let read = |text: &str| registry::read::<ControllerConfig>(text).expect("a controller");
        let controller = read("startup:detector=startup:patience=200ms");
        let mut shared = SharedControl::new(Settings { controller, fallback: read("cubic"), then: None, seed: 1 });
        let rtt = Span::ms(20).as_ns();
        shared.apply(&Event { at: Time::ZERO, what: What::Begin { rtt, mtu: 1200, both: true } });
        shared.apply(&Event { at: at(1), what: What::Sent { path: 0, number: 0, bytes: 1200 } });
        let mut may_send = |path| shared.limits(path, || at(1)).window > shared.paths[usize::from(path)].inflight;
        assert!(may_send(0) != may_send(1), "they take turns");
        shared.apply(&Event { at: at(21), what: What::Acknowledged { path: 0, number: 0, bytes: 1200 } });
        shared.apply(&Event { at: at(300), what: What::Timer });
        assert_eq!(shared.control.as_ref().and_then(Packetwise::split).map(|split| split.shares), Some([1.0, 0.0]));
        let windows = [0, 1].map(|path| shared.limits(path, || at(300)).window);
        assert!(windows[0] >= 1200 && windows[1] == 0, "{windows:?}");
    }

    #[test]
    fn what_is_lost_and_sent_again_counts_against_what_is_allowed() {
        let controller = registry::read("cubic").expect("a controller");
        let fallback = ControllerConfig::Cubic(Default::default());
        let mut shared = SharedControl::new(Settings { controller, fallback, then: None, seed: 1 });
        shared.apply(&Event { at: at(0), what: What::Begin { rtt: 1_000_000, mtu: 1200, both: false } });
        shared.allow(Some(3 * 1200 + 1));
        let mut number = 0;
        for round in 1..10 {
            while shared.limits(0, || at(round)).window >= shared.paths[0].inflight + 1200 {
                shared.apply(&Event { at: at(round), what: What::Sent { path: 0, number, bytes: 1200 } });
                number += 1;
            }
            let lost = What::Lost { path: 0, number: number - 1, bytes: 1200 };
            shared.apply(&Event { at: at(round), what: lost });
        }
        assert_eq!(number, 4);
        shared.allow(None);
        assert!(shared.limits(0, || at(10)).window >= shared.paths[0].inflight + 1200);
    }

    #[test]
    fn regression_a_batch_of_twenty_does_not_end_with_the_turn_of_a_path() {
        let (mut leaders, mut batches) = ([0u32; PATHS], 0);
        for seed in 1..=20 {
            let controller = registry::read("startup:detector=startup_sprt:window=1000").expect("a controller");
            let fallback = ControllerConfig::Cubic(Default::default());
            let mut shared = SharedControl::new(Settings { controller, fallback, then: None, seed });
            let rtt = Span::ms(100).as_ns();
            shared.apply(&Event { at: Time::ZERO, what: What::Begin { rtt, mtu: 1200, both: true } });
            let mut numbers = [0u64; PATHS];
            // Ten packets a millisecond, no longer than the first round trip. As the transport does: transmissions of the first path that may
            // send, until twenty packets are complete.
            for now in (1..24).map(|n| at(n * 4)) {
                let mut batch = Vec::new();
                loop {
                    let complete = batch.len();
                    for (index, number) in numbers.iter_mut().enumerate() {
                        while batch.len() == complete || batch.last() == Some(&index) {
                            if shared.window(index as u8, || now) <= shared.paths[index].inflight {
                                break;
                            }
                            let what = What::Sent { path: index as u8, number: *number, bytes: 1200 };
                            shared.apply(&Event { at: now, what });
                            *number += 1;
                            batch.push(index);
                        }
                    }
                    if batch.len() == complete || batch.len() >= 20 {
                        break;
                    }
                }
                if batch.len() >= 20 {
                    // The next one is about to begin.
                    let next = (0..PATHS)
                        .find(|&index| shared.limits(index as u8, || now).window > shared.paths[index].inflight);
                    next.into_iter().for_each(|next| (leaders[next], batches) = (leaders[next] + 1, batches + 1));
                }
            }
        }
        assert!(batches > 200, "{batches} batches");
        let first = f64::from(leaders[0]) / f64::from(batches);
        assert!((0.25..0.42).contains(&first), "a third of {batches} batches begin with the first path: {leaders:?}");
    }

    #[test]
    fn regression_packets_of_a_batch_mix_where_paths_have_clocks_of_their_own() {
        // Two packets a millisecond. A tick that comes later than is made up for leaves both clocks behind.
        for tick in [3, 12] {
            let controller = registry::read("startup:detector=startup_sprt:window=1000").expect("a controller");
            let fallback = ControllerConfig::Cubic(Default::default());
            let mut shared = SharedControl::new(Settings { controller, fallback, then: None, seed: 1 });
            let rtt = Span::ms(500).as_ns();
            shared.apply(&Event { at: Time::ZERO, what: What::Begin { rtt, mtu: 1200, both: true } });
            let (mut numbers, mut leaders, ticks) = ([0u64; PATHS], [0u32; PATHS], 480 / tick);
            // No longer than the first round trip, so that nothing is acknowledged.
            for now in (1..=ticks).map(|n| at(n * tick)) {
                // As the transport does: the first path that may send.
                let next = |shared: &mut SharedControl| {
                    let inflight = [0, 1].map(|index: usize| shared.paths[index].inflight);
                    (0..PATHS).find(|&index| shared.limits(index as u8, || now).window > inflight[index])
                };
                let mut sent = 0;
                while let Some(index) = next(&mut shared) {
                    let number = &mut numbers[index];
                    leaders[index] += u32::from(sent < 2);
                    sent += 1;
                    let what = What::Sent { path: index as u8, number: *number, bytes: 1200 };
                    shared.apply(&Event { at: now, what });
                    *number += 1;
                }
                assert!(sent > 0 && shared.next_packet().is_some_and(|packet| packet > now), "all that are due leave");
            }
            let third = |count: f64, of: f64| (0.25..0.42).contains(&(count / of));
            let [first, second] = numbers.map(|number| number as f64);
            assert!(third(first, first + second), "a third of all: {numbers:?}");
            let [first, second] = leaders.map(f64::from);
            assert!(third(first, first + second), "a third of the first two of each batch: {leaders:?}");
        }
    }
}
