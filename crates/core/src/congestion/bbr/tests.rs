//! Transitions, with figures worked out by hand: packets of 1000 bytes, an RTT of 20 ms, two packets per ms at full speed.
use super::*;
use crate::Rate;
use crate::congestion::RateSample;
use crate::congestion::parts::testing;
use std::collections::BTreeSet;

const MSS: Bytes = Bytes(1000);
const RTT: Span = Span::ms(20);

/// A connection's books, in packets.
struct Connection {
    bbr: Bbr,
    now: Time,
    delivered: u64,
    total_lost: u64,
    inflight: u64,
    phase: Phase,
}

fn path() -> PathHint {
    PathHint { mss: MSS, initial_window: MSS * 10, rtt: Some(RTT), paced: false, resume: None }
}

impl Connection {
    fn new(change: impl FnOnce(&mut BbrParams), path: &PathHint, seed: u64) -> Connection {
        let mut p = BbrParams { burst_budget: false, ..BbrParams::default() };
        change(&mut p);
        let bbr = Bbr::new(&p, path, Time::ZERO, Rng::stream(seed, "bbr"));
        Connection { bbr, now: Time::ZERO, delivered: 0, total_lost: 0, inflight: 10, phase: Phase::Open }
    }

    /// A round trip later: `packets` acknowledged at once, at `rate` packets in the RTT; the sampled packet was sent a round
    /// trip ago.
    fn round(&mut self, packets: u64, rate: u64) {
        self.now += RTT;
        self.ack(packets, 0, rate, self.delivered);
    }

    fn ack(&mut self, packets: u64, lost: u64, rate: u64, prior_delivered: u64) {
        let event = self.event(packets, lost, rate, prior_delivered);
        self.bbr.on_ack(&event);
    }

    fn event(&mut self, packets: u64, lost: u64, rate: u64, prior_delivered: u64) -> Ack {
        self.delivered += packets;
        self.total_lost += lost;
        Ack {
            acked: MSS * packets,
            lost: MSS * lost,
            total_lost: MSS * self.total_lost,
            rtt: Some(RTT),
            srtt: RTT,
            min_rtt: RTT,
            prior_inflight: MSS * (self.inflight + packets),
            inflight: MSS * self.inflight,
            delivered: MSS * self.delivered,
            phase: self.phase,
            rate: RateSample {
                delivered: MSS * rate,
                interval: RTT,
                prior_delivered: MSS * prior_delivered,
                prior_inflight: MSS * rate,
                lost: Bytes::ZERO,
                app_limited: false,
            },
            ..testing::ack(self.now, packets)
        }
    }

    /// Through STARTUP at 40 packets in an RTT; the round trips that it took.
    fn fill(&mut self) -> u32 {
        let mut rounds = 0;
        while self.bbr.mode == Mode::Startup {
            self.inflight = 90;
            self.round(40, 40);
            rounds += 1;
        }
        rounds
    }

    /// To PROBE_BW, in a phase of the cycle.
    fn probe(&mut self, phase: usize) {
        self.fill();
        self.inflight = 40;
        self.round(40, 40);
        assert!(matches!(self.bbr.mode, Mode::ProbeBw { .. }));
        self.enter(phase);
    }

    fn enter(&mut self, phase: usize) {
        self.bbr.mode = Mode::ProbeBw { phase, since: self.now };
        self.bbr.pacing_gain = CYCLE[phase];
    }

    fn phase(&self) -> usize {
        match self.bbr.mode {
            Mode::ProbeBw { phase, .. } => phase,
            other => panic!("{other:?}"),
        }
    }

    fn cwnd(&self) -> u64 {
        self.bbr.send_limits().cwnd.0 / MSS.0
    }
}

fn plain(_: &mut BbrParams) {}

#[test]
fn the_first_pacing_rate_is_the_initial_window_in_an_rtt_or_in_a_millisecond() {
    // 8388 · 2⁻²⁴ packets per µs; 8388 · 1000 · 739 / 256 = 24 213 796; · 990 000 / 2²⁴ = 1 428 822 B/s.
    let rate = |rtt| Connection::new(plain, &PathHint { rtt, ..path() }, 1).bbr.pacing_rate;
    assert_eq!(rate(Some(RTT)), 1_428_822);
    // 167 772: 484 310 578; 28 578 488.
    assert_eq!(rate(None), 28_578_488);
}

#[test]
fn without_an_rtt_the_first_sample_sets_the_rate() {
    let mut c = Connection::new(plain, &PathHint { rtt: None, ..path() }, 1);
    c.round(1, 1);
    assert!(c.bbr.has_seen_rtt);
    assert_eq!(c.bbr.pacing_rate, 1_428_822, "of the window before this acknowledgment");
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let mut c = Connection::new(plain, &path(), 1);
    for rate in [10, 20, 40] {
        c.round(rate, rate);
        assert_eq!((c.bbr.mode, c.bbr.pipe.rounds), (Mode::Startup, 0));
    }
    // 49 is less than 1.25 · 40, 50 is not.
    c.inflight = 120;
    for (rate, rounds) in [(49, 1), (50, 0), (50, 1), (62, 2)] {
        c.round(50, rate);
        assert_eq!(c.bbr.pipe.rounds, rounds, "{rate}");
    }
    // Half a round says nothing.
    let sent_before = c.delivered - 10;
    c.ack(10, 0, 62, sent_before);
    assert_eq!((c.bbr.mode, c.bbr.pipe.rounds), (Mode::Startup, 2));
    c.round(50, 62);
    assert_eq!(c.bbr.mode, Mode::Drain);
    // 62 in flight fill the pipe. DRAIN paces at 88 / 256: 52 009 · 1000 · 88 / 256 · 990 000 / 2²⁴.
    assert_eq!(c.bbr.ssthresh, Some(62));
    assert_eq!(c.bbr.pacing_rate, 1_054_961);
    c.inflight = 63;
    c.round(10, 62);
    assert_eq!(c.bbr.mode, Mode::Drain);
    c.inflight = 62;
    c.round(10, 62);
    assert!(matches!(c.bbr.mode, Mode::ProbeBw { .. }));
}

#[test]
fn a_sample_without_data_neither_ends_startup_nor_lowers_the_bandwidth() {
    let mut c = Connection::new(plain, &path(), 1);
    c.round(40, 40);
    for _ in 0..20 {
        c.now += RTT;
        let mut event = c.event(5, 0, 5, c.delivered);
        event.rate.app_limited = true;
        c.bbr.on_ack(&event);
    }
    assert_eq!(c.bbr.mode, Mode::Startup);
    assert_eq!(Some(c.bbr.peak()), Bandwidth::over(MSS * 40, MSS, RTT), "for longer than ten rounds");
}

#[test]
fn the_cycle_begins_anywhere_but_with_the_lower_rate() {
    let phases: BTreeSet<usize> = (0..200)
        .map(|seed| {
            let mut c = Connection::new(plain, &path(), seed);
            c.fill();
            c.inflight = 40;
            c.round(40, 40);
            c.phase()
        })
        .collect();
    assert_eq!(phases, BTreeSet::from([0, 2, 3, 4, 5, 6, 7]));
}

#[test]
fn a_quarter_more_lasts_until_it_is_in_flight_or_lost() {
    for (lost, inflight, next) in [(0, 49, 0), (0, 50, 1), (1, 45, 1)] {
        let mut c = Connection::new(plain, &path(), 1);
        c.probe(0);
        // After an RTT exactly it goes on in any case. Then 1.25 · 40, and two packets for a small BDP, have to be in flight with the
        // burst that leaves next: 2 000 000 · 1.25 · 0.99 B/s are 2 packets in 1/1024 s.
        c.inflight = inflight - 1;
        c.now += RTT;
        c.ack(1, lost, 40, 0);
        assert_eq!(c.phase(), 0);
        c.now += Span::us(1);
        c.ack(1, lost, 40, 0);
        assert_eq!(c.phase(), next, "{lost} lost, {inflight} in flight");
    }
}

#[test]
fn a_quarter_less_ends_when_the_queue_is_gone() {
    let mut c = Connection::new(plain, &path(), 1);
    c.probe(1);
    c.now += Span::ms(1);
    c.inflight = 40;
    c.ack(1, 0, 40, 0);
    assert_eq!(c.phase(), 1, "41 were in flight");
    c.inflight = 39;
    c.ack(1, 0, 40, 0);
    assert_eq!(c.phase(), 2);
    // What pacing holds back is not in the network: 39 + 4 − 2 · 1.5 ms.
    c.enter(1);
    c.inflight = 42;
    let event = c.event(1, 0, 40, 0);
    c.bbr.on_ack(&Ack { edt: event.now + Span::us(1400), ..event });
    assert_eq!(c.phase(), 1, "two of 43 will have been delivered");
    let event = c.event(1, 0, 40, 0);
    c.bbr.on_ack(&Ack { edt: event.now + Span::us(1600), ..event });
    assert_eq!(c.phase(), 2, "three of 43 will have been delivered");
}

#[test]
fn even_phases_last_an_rtt_and_the_window_is_two_bdps() {
    let mut c = Connection::new(plain, &path(), 1);
    c.probe(2);
    for phase in [3, 4, 5, 6, 7, 0] {
        c.now += RTT;
        c.ack(40, 0, 40, c.delivered);
        assert_eq!(c.phase(), (phase + 7) % 8);
        c.now += Span::us(1);
        c.ack(1, 0, 40, 0);
        assert_eq!(c.phase(), phase);
    }
    // Two BDPs of 40, the clumps of 40 packets that came at once, and the six packets that came a microsecond later.
    assert_eq!(c.bbr.aggregation.allowance(c.bbr.bandwidth()), 46);
    assert_eq!(c.cwnd(), 126 + 1, "80 + 45 made even, and this acknowledgment's packet");
    let mut without = Connection::new(|p| p.aggregation = false, &path(), 1);
    without.probe(2);
    without.round(40, 40);
    assert_eq!(without.cwnd(), 80);
    without.enter(0);
    without.ack(3, 0, 40, 0);
    assert_eq!(without.cwnd(), 82, "two packets more while probing");
}

#[test]
fn the_budget_is_three_bursts_to_an_even_number() {
    let mut c = Connection::new(|p| p.burst_budget = true, &path(), 1);
    c.probe(2);
    // 2 MB/s less a percent: 1933 B in 1/1024 s, one packet; at least two are reckoned with.
    assert_eq!(c.bbr.burst(), 2);
    assert_eq!(c.bbr.inflight_at(Gain::ONE), 46);
    assert_eq!(c.bbr.with_budget(41), 48);
    c.enter(0);
    assert_eq!(c.bbr.with_budget(41), 50);
}

#[test]
fn probe_rtt_rests_at_four_packets_for_200_ms_and_a_round_trip() {
    let mut c = Connection::new(|p| p.aggregation = false, &path(), 1);
    c.probe(2);
    c.bbr.min_rtt.seen = c.bbr.tick(c.now);
    let begin = c.now;
    // Ten seconds of an RTT that is a little longer; at 2501 ticks the lowest is too old.
    while !matches!(c.bbr.mode, Mode::ProbeRtt { .. }) {
        c.now += RTT;
        let event = c.event(40, 0, 40, c.delivered);
        c.bbr.on_ack(&Ack { rtt: Some(RTT + Span::us(5)), ..event });
    }
    assert_eq!(c.now.since(begin), Span::ms(10_020));
    assert_eq!(c.bbr.min_rtt.us, Some(20_005), "the old one is forgotten");
    assert_eq!(c.cwnd(), 4);
    // It begins when four packets are in flight.
    c.inflight = 5;
    c.round(10, 40);
    assert_eq!(c.bbr.mode, Mode::ProbeRtt { down: None });
    c.inflight = 4;
    c.round(1, 40);
    let rest = c.now;
    while matches!(c.bbr.mode, Mode::ProbeRtt { .. }) {
        assert_eq!(c.cwnd(), 4);
        // Four packets in an RTT: what it delivers now says nothing of the path.
        c.now += RTT;
        let event = c.event(4, 0, 4, c.delivered);
        c.bbr.on_ack(&Ack { rtt: Some(RTT + Span::us(9)), ..event });
    }
    assert_eq!(c.now.since(rest), Span::ms(220), "beyond 50 ticks, at the next acknowledgment");
    assert_eq!(Some(c.bbr.peak()), Bandwidth::over(MSS * 40, MSS, RTT));
    assert!(matches!(c.bbr.mode, Mode::ProbeBw { .. }));
    assert!(c.cwnd() >= 80, "two BDPs again, not {}", c.cwnd());
    assert_eq!(c.bbr.min_rtt.seen, c.bbr.tick(c.now));
}

#[test]
fn a_lone_packet_is_no_new_lowest_rtt() {
    let mut c = Connection::new(plain, &path(), 1);
    c.probe(2);
    c.bbr.idle_restart = true;
    c.now += Span::s(11);
    let mut event = c.event(1, 0, 1, c.delivered);
    event.rate.prior_inflight = MSS;
    c.bbr.on_ack(&Ack { rtt: Some(RTT * 3), ..event });
    assert_eq!(c.bbr.min_rtt.us, Some(20_000), "its acknowledgment may have been delayed");
    assert!(matches!(c.bbr.mode, Mode::ProbeBw { .. }), "and after idling there is no need to drain");
    // Two packets are acknowledged at once.
    let event = c.event(2, 0, 2, c.delivered);
    c.bbr.on_ack(&Ack { rtt: Some(RTT * 3), ..event });
    assert_eq!((c.bbr.min_rtt.us, c.cwnd()), (Some(60_000), 4));
}

#[test]
fn recovery_conserves_for_a_round_trip_and_gives_the_window_back() {
    let mut c = Connection::new(|p| p.aggregation = false, &path(), 1);
    c.probe(2);
    c.round(40, 40);
    assert_eq!(c.cwnd(), 80);
    let loss = |kind, c: &Connection| Loss {
        now: c.now,
        kind,
        lost: MSS,
        total_lost: MSS,
        inflight: MSS * c.inflight,
        nxt: MSS * 1000,
        first: true,
    };
    c.bbr.on_loss(&loss(LossKind::Loss, &c));
    (c.phase, c.inflight) = (Phase::Recovery, 30);
    c.ack(1, 3, 40, 0);
    assert_eq!(c.cwnd(), 31, "what is in flight and what was delivered");
    c.inflight = 32;
    c.ack(2, 1, 40, 0);
    assert_eq!(c.cwnd(), 34, "31 − 1, but not less than conserves");
    // The first packet sent in recovery is back: twice what is delivered from now on.
    let sent = c.delivered;
    c.ack(2, 0, 40, sent);
    assert_eq!(c.cwnd(), 36);
    c.phase = Phase::Open;
    c.ack(1, 0, 40, 0);
    assert_eq!(c.cwnd(), 80);
    // After a timeout one packet more than is in flight, and the window back in the end.
    c.inflight = 0;
    c.bbr.on_loss(&loss(LossKind::Timeout, &c));
    assert_eq!(c.cwnd(), 1);
    c.phase = Phase::Timeout;
    c.ack(2, 0, 40, 0);
    assert_eq!(c.cwnd(), 4);
    c.phase = Phase::Open;
    c.ack(1, 0, 40, 0);
    assert_eq!(c.cwnd(), 80);
}

#[test]
fn a_mistaken_timeout_begins_the_search_for_the_full_pipe_anew() {
    let mut c = Connection::new(plain, &path(), 1);
    for _ in 0..3 {
        c.round(40, 40);
    }
    assert_eq!(c.bbr.pipe.rounds, 2);
    c.bbr.on_spurious(c.now);
    c.round(40, 40);
    assert_eq!((c.bbr.pipe.rounds, c.bbr.mode), (0, Mode::Startup));
}

#[test]
fn after_idling_it_sends_at_the_bandwidth() {
    let mut c = Connection::new(plain, &path(), 1);
    c.probe(0);
    c.ack(1, 0, 40, 0);
    let sent = Sent {
        now: c.now + Span::s(1),
        bytes: MSS,
        inflight: MSS,
        retransmit: false,
        idle: Some(Span::s(1)),
        app_limited: true,
        subflow: 0,
    };
    let probing = c.bbr.pacing_rate;
    c.bbr.on_sent(&Sent { app_limited: false, ..sent });
    assert_eq!(c.bbr.pacing_rate, probing);
    c.bbr.on_sent(&sent);
    // 33 554 · 1000 · 990 000 / 2²⁴: a percent less than 2 MB/s.
    assert_eq!(c.bbr.pacing_rate, 1_979_974);
    assert!(c.bbr.idle_restart);
}

#[test]
fn who_takes_over_starts_in_steady_state() {
    let c = Connection::new(plain, &PathHint { resume: Some(Rate::mbit(16)), ..path() }, 1);
    // 16 Mbit/s are 2 packets per ms: a BDP of 40.
    assert!(matches!(c.bbr.mode, Mode::ProbeBw { .. }) && c.bbr.pipe.full);
    assert_eq!(Some(c.bbr.peak()), Bandwidth::over(MSS * 40, MSS, RTT));
    assert_eq!((c.cwnd(), c.bbr.ssthresh.is_some()), (40, true));
    assert_eq!(c.bbr.pacing_rate, c.bbr.peak().bytes_per_second(MSS, CYCLE[c.phase()], 1));
}
