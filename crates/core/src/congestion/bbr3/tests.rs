//! Transitions, with figures worked out by hand: packets of 1000 bytes, an RTT of 20 ms, five packets per ms at full speed:
//! a BDP of 100 packets.
use super::*;
use crate::Rate;
use crate::congestion::parts::testing;
use crate::congestion::{Flight, RateSample};
use std::vec::Vec;

const MSS: Bytes = Bytes(1000);
const RTT: Span = Span::ms(20);

/// A connection's books, in packets.
struct Connection {
    bbr: Bbr3,
    now: Time,
    delivered: u64,
    inflight: u64,
    phase: Phase,
    rtt: Span,
    /// Lost in the flight of the sampled packets, and what was in flight when they were sent.
    lost: u64,
    tx_inflight: u64,
    cwnd_limited: bool,
}

fn path() -> PathHint {
    PathHint { mss: MSS, initial_window: MSS * 10, rtt: Some(RTT), paced: false, resume: None }
}

impl Connection {
    fn new(path: &PathHint) -> Connection {
        Connection {
            bbr: Bbr3::new(&Bbr3Params::default(), path, Time::ZERO, Rng::stream(1, "bbr3")),
            now: Time::ZERO,
            delivered: 0,
            inflight: 100,
            phase: Phase::Open,
            rtt: RTT,
            lost: 0,
            tx_inflight: 100,
            cwnd_limited: true,
        }
    }

    /// A round trip later: packets acknowledged at once, at a rate in packets per RTT.
    fn round(&mut self, packets: u64, rate: u64) {
        self.now += RTT;
        self.ack(packets, rate, self.delivered);
    }

    fn ack(&mut self, packets: u64, rate: u64, prior_delivered: u64) {
        self.delivered += packets;
        let event = Ack {
            acked: MSS * packets,
            lost: MSS * self.lost,
            rtt: Some(self.rtt),
            srtt: RTT,
            min_rtt: RTT,
            inflight: MSS * self.inflight,
            delivered: MSS * self.delivered,
            phase: self.phase,
            cwnd_limited: self.cwnd_limited,
            rate: RateSample {
                delivered: MSS * rate,
                interval: RTT,
                prior_delivered: MSS * prior_delivered,
                prior_inflight: MSS * self.tx_inflight,
                lost: MSS * self.lost,
                app_limited: false,
            },
            ..testing::ack(self.now, packets)
        };
        self.bbr.on_ack(&event);
    }

    /// A packet that was sent with `inflight` in flight is lost, the `lost`-th since then.
    fn lose(&mut self, lost: u64, inflight: u64) {
        self.bbr.on_packet_feedback(&PacketFeedback {
            now: self.now,
            sent: self.now,
            bytes: MSS,
            subflow: 0,
            flight: Flight { inflight: MSS * inflight, lost: MSS * lost, app_limited: false },
            outcome: PacketOutcome::Lost,
        });
    }

    /// Through STARTUP and DRAIN at 100 packets in an RTT.
    fn steady() -> Connection {
        let mut c = Connection::new(&path());
        c.inflight = 150;
        for _ in 0..4 {
            c.round(100, 100);
        }
        assert!(matches!(c.bbr.state, State::Drain { .. }));
        c.inflight = 100;
        c.round(100, 100);
        assert_eq!(c.probing(), ProbePhase::Cruise, "the queue is gone when DRAIN ends");
        c
    }

    /// On to REFILL, by waiting, and a round trip further to UP.
    fn up() -> Connection {
        let mut c = Connection::steady();
        c.now += Span::s(3);
        c.round(100, 100);
        assert_eq!(c.probing(), ProbePhase::Refill);
        c.round(100, 100);
        assert_eq!(c.probing(), ProbePhase::Up);
        c
    }

    fn probing(&self) -> ProbePhase {
        match self.bbr.state {
            State::ProbeBw(phase) => phase,
            other => panic!("{other:?}"),
        }
    }

    fn cwnd(&self) -> u64 {
        self.bbr.send_limits().cwnd.0 / MSS.0
    }
}

fn packets_per_rtt(packets: u64) -> Bandwidth {
    Bandwidth::over(MSS * packets, MSS, RTT).expect("a round trip lasts")
}

#[test]
fn the_first_pacing_rate_is_277_hundredths_of_the_initial_window_in_an_rtt() {
    // 8388 · 2⁻²⁴ packets per µs; 8388 · 1000 · 709 / 256 = 23 230 828; · 1 000 000 / 2²⁴ = 1 384 665 B/s.
    assert_eq!(Connection::new(&path()).bbr.pacing_rate, 1_384_665);
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more_and_half_the_rate_drains() {
    let mut c = Connection::new(&path());
    c.inflight = 150;
    for (rate, rounds) in [(40, 0), (80, 0), (100, 0), (124, 1), (125, 0), (130, 1), (130, 2)] {
        c.round(100, rate);
        assert_eq!((c.bbr.state, c.bbr.pipe.rounds), (State::Startup, rounds), "{rate}");
    }
    c.round(100, 130);
    assert_eq!(c.bbr.state, State::Drain { since: 8 });
    assert_eq!(c.bbr.ssthresh, Some(130));
    // 109 051 · 1000 · 128 / 256 · 990 000 / 2²⁴: half of 6.5 MB/s less a percent.
    assert_eq!(c.bbr.pacing_rate, 3_217_473);
    // With the queue still there it ends after three round trips and one.
    for _ in 0..3 {
        c.round(100, 100);
        assert_eq!(c.bbr.state, State::Drain { since: 8 });
    }
    c.round(100, 100);
    assert_eq!(c.probing(), ProbePhase::Down);
}

#[test]
fn startup_ends_when_six_acknowledgments_of_a_round_in_recovery_tell_of_losses() {
    for (told, ends) in [(5, false), (6, true)] {
        let mut c = Connection::new(&path());
        c.round(50, 50);
        c.phase = Phase::Recovery;
        c.lose(1, 100);
        // More than two of a hundred.
        c.lost = 3;
        let sent_before = c.delivered - 50;
        for _ in 1..told {
            c.ack(5, 100, sent_before);
            assert_eq!(c.bbr.state, State::Startup);
        }
        let sent_after = c.delivered;
        c.ack(5, 100, sent_after);
        assert_eq!(c.bbr.state != State::Startup, ends, "{told}");
        if ends {
            // The BDP of 100 packets, and 100 packets were delivered in the round trip.
            assert_eq!(c.bbr.model.long, Some(100));
            // It was a mistake: back to STARTUP, without a bound.
            c.bbr.on_spurious(c.now);
            assert_eq!((c.bbr.state, c.bbr.model.long), (State::Startup, None));
        }
    }
}

#[test]
fn bounds_fall_to_what_is_delivered_or_to_seven_tenths_until_the_next_probe() {
    let mut c = Connection::steady();
    // Delivered in a round trip; then the bounds in packets per RTT and packets: 0.7 is 179/256 here. 200 are the window.
    for (delivered, bandwidth, inflight) in [(90, 90, 139), (50, 63, 97), (80, 80, 80)] {
        c.bbr.model.reset_signals();
        c.lose(1, 100);
        c.round(delivered, delivered);
        assert!(c.bbr.model.short.inflight != Some(inflight), "the round trip ends with what is sent from now on");
        c.bbr.cwnd = 200;
        c.round(delivered, delivered);
        assert_eq!(c.bbr.model.short.inflight, Some(inflight));
        let (bw, exact) = (c.bbr.bandwidth(), packets_per_rtt(bandwidth));
        assert!(bw <= exact && bw.0 * 1000 >= exact.0 * 995, "{bw:?} for {bandwidth} packets");
        assert!(c.cwnd() <= inflight);
    }
    c.now += Span::s(3);
    c.round(80, 80);
    assert_eq!(c.probing(), ProbePhase::Refill);
    assert_eq!(c.bbr.model.short, model::Bounds::default());
}

#[test]
fn probes_come_after_two_to_three_seconds_or_63_round_trips() {
    let mut c = Connection::steady();
    let since = c.now;
    let mut rounds = 0;
    while c.probing() == ProbePhase::Cruise {
        c.round(100, 100);
        rounds += 1;
    }
    // 63 round trips of 20 ms, one less if the count began with one.
    assert!((62..=63).contains(&rounds), "{rounds}");
    assert_eq!(c.now.since(since), RTT * rounds);
    // With 50 ms between acknowledgments of one round trip it is the time that counts.
    let mut c = Connection::steady();
    let since = c.now;
    while c.probing() == ProbePhase::Cruise {
        c.now += Span::ms(50);
        c.ack(1, 100, 0);
    }
    let waited = c.now.since(since);
    assert!(waited > Span::s(2) && waited <= Span::ms(3050), "{waited}");
}

#[test]
fn up_ends_when_the_bandwidth_stops_growing_and_down_when_the_queue_is_gone() {
    let mut c = Connection::up();
    // 83 886 · 1000 · 320 / 256 · 990 000 / 2²⁴: a quarter more than 5 MB/s, less a percent.
    assert_eq!(c.bbr.pacing_rate, 6_187_494);
    c.inflight = 130;
    for _ in 0..2 {
        c.round(100, 110);
        assert_eq!(c.probing(), ProbePhase::Up);
    }
    c.round(100, 110);
    assert_eq!(c.probing(), ProbePhase::Down);
    assert_eq!(c.bbr.model.peak(), packets_per_rtt(110));
    c.inflight = 111;
    c.round(100, 110);
    assert_eq!(c.probing(), ProbePhase::Down);
    c.inflight = 110;
    c.round(100, 110);
    assert_eq!(c.probing(), ProbePhase::Cruise);
}

#[test]
fn bandwidth_is_remembered_until_the_end_of_the_next_cycle() {
    let mut c = Connection::steady();
    c.inflight = 90;
    c.now += Span::s(3);
    // REFILL, UP, three round trips without growth.
    for _ in 0..5 {
        c.round(60, 60);
        assert_eq!(c.bbr.model.peak(), packets_per_rtt(100));
    }
    assert_eq!(c.probing(), ProbePhase::Down);
    // The last packets of the probe have been acknowledged a round trip later.
    c.round(60, 60);
    assert_eq!(c.bbr.model.peak(), packets_per_rtt(60));
}

#[test]
fn too_much_lost_in_a_probe_bounds_the_volume_and_ends_it() {
    let mut c = Connection::up();
    // Two of 120 are less than 2 %: 2.4. The third crosses it: with 119 and 2 before it, (0.02 · 119 − 2) / 0.98 = 0.39 of a packet.
    c.lose(2, 120);
    assert_eq!(c.bbr.model.long, None);
    c.lose(3, 120);
    assert_eq!((c.probing(), c.bbr.model.long), (ProbePhase::Down, Some(119)));
    assert!(c.bbr.cycle.was_too_much);
    // One reaction per probe.
    c.lose(50, 90);
    assert_eq!(c.bbr.model.long, Some(119));
    // It leaves 15 % while cruising: 119 − 17 = 102.
    assert_eq!(c.bbr.with_headroom(), Some(102));
    c.inflight = 90;
    c.round(100, 100);
    assert_eq!((c.probing(), c.cwnd()), (ProbePhase::Cruise, 102));
}

#[test]
fn a_probe_never_costs_more_than_beta() {
    let mut c = Connection::up();
    c.lose(3, 20);
    // 0.7 of the BDP of 100: 179/256.
    assert_eq!(c.bbr.model.long, Some(69));
}

#[test]
fn after_too_much_the_next_probe_stops_there_and_if_it_fits_goes_on() {
    let mut c = Connection::up();
    c.lose(3, 120);
    c.inflight = 90;
    // A lower RTT, so that PROBE_RTT does not come between.
    c.rtt = RTT - Span::us(1);
    c.ack(1, 100, 0);
    c.now += Span::s(3);
    c.round(100, 100);
    while c.probing() != ProbePhase::Up {
        c.round(100, 100);
    }
    c.inflight = 118;
    c.cwnd_limited = false;
    c.ack(1, 100, 0);
    assert_eq!(c.probing(), ProbePhase::Up);
    c.inflight = 119;
    c.ack(1, 100, 0);
    assert_eq!((c.probing(), c.bbr.cycle.was_too_much), (ProbePhase::Down, false));
    // A round trip later nothing was lost.
    c.round(100, 100);
    assert_eq!(c.probing(), ProbePhase::Refill);
}

#[test]
fn the_volume_climbs_by_one_two_and_four_packets_per_round_trip() {
    let mut c = Connection::up();
    c.bbr.model.long = Some(120);
    c.bbr.cwnd = 120;
    c.bbr.cycle.climb_from(120);
    let mut climbed = Vec::new();
    for _ in 0..3 {
        // A window of acknowledgments, in steps of ten; the last one begins a round trip.
        let (before, sent) = (c.bbr.model.long.unwrap(), c.delivered);
        let window = c.bbr.cwnd;
        for _ in 1..window / 10 {
            c.bbr.cwnd = c.bbr.model.long.unwrap();
            c.ack(10, 100, 0);
        }
        c.bbr.cwnd = c.bbr.model.long.unwrap();
        c.ack(10, 100, sent);
        climbed.push(c.bbr.model.long.unwrap() - before);
    }
    assert_eq!(climbed, [1, 2, 4]);
    assert_eq!(c.probing(), ProbePhase::Up, "while the volume limits, the bandwidth need not grow");
}

#[test]
fn what_was_in_flight_without_loss_is_safe() {
    let mut c = Connection::steady();
    c.bbr.model.long = Some(90);
    c.tx_inflight = 95;
    c.round(1, 100);
    assert_eq!(c.bbr.model.long, Some(95));
    // Not with 2 of 99 lost.
    (c.tx_inflight, c.lost) = (99, 2);
    c.round(1, 100);
    assert_eq!(c.bbr.model.long, Some(95));
}

#[test]
fn a_mark_in_a_probe_is_as_good_as_a_loss() {
    let mut c = Connection::up();
    let event = Loss {
        now: c.now,
        kind: LossKind::Ecn,
        lost: Bytes::ZERO,
        total_lost: Bytes::ZERO,
        inflight: MSS * 115,
        nxt: MSS * 1000,
        first: true,
    };
    c.bbr.on_loss(&event);
    assert_eq!((c.probing(), c.bbr.model.long), (ProbePhase::Down, Some(115)));
}

#[test]
fn a_probe_ended_by_mistake_begins_anew() {
    let mut c = Connection::up();
    c.lose(3, 120);
    c.bbr.on_spurious(c.now);
    assert_eq!((c.probing(), c.bbr.model.long), (ProbePhase::Refill, None));
}

#[test]
fn probe_rtt_comes_after_five_seconds_and_halves_what_is_in_flight() {
    let mut c = Connection::steady();
    let lowest = c.bbr.delay;
    let since = Time::ZERO;
    c.rtt = RTT + Span::us(10);
    while !matches!(c.bbr.state, State::ProbeRtt { .. }) {
        c.round(100, 100);
    }
    assert_eq!(c.now.since(since), Span::ms(5020));
    assert_eq!(c.bbr.delay.min_rtt_us(), lowest.min_rtt_us(), "the lowest of ten seconds stays");
    assert_eq!(c.cwnd(), 50);
    c.inflight = 51;
    c.round(50, 50);
    assert_eq!(c.bbr.state, State::ProbeRtt { down: None });
    c.inflight = 50;
    c.round(50, 50);
    let rest = c.now;
    while matches!(c.bbr.state, State::ProbeRtt { .. }) {
        c.round(50, 50);
    }
    assert_eq!(c.now.since(rest), Span::ms(220), "beyond 200 ms, at the next acknowledgment");
    assert_eq!(c.probing(), ProbePhase::Cruise);
    assert!(c.cwnd() >= 200, "the window is back: {}", c.cwnd());
    assert_eq!(c.bbr.bandwidth(), packets_per_rtt(100), "what was delivered meanwhile says nothing");
}

#[test]
fn after_a_timeout_the_window_comes_back_with_the_end_of_recovery() {
    let mut c = Connection::steady();
    let before = c.cwnd();
    c.bbr.on_loss(&Loss {
        now: c.now,
        kind: LossKind::Timeout,
        lost: MSS * 100,
        total_lost: MSS * 100,
        inflight: MSS * 2,
        nxt: MSS * 1000,
        first: true,
    });
    assert_eq!(c.cwnd(), 3);
    c.phase = Phase::Timeout;
    c.ack(2, 100, 0);
    assert_eq!(c.cwnd(), 5);
    c.phase = Phase::Open;
    c.ack(1, 100, 0);
    assert!(c.cwnd() >= before.min(200), "{} of {before}", c.cwnd());
}

#[test]
fn who_takes_over_cruises() {
    let c = Connection::new(&PathHint { resume: Some(Rate::mbit(40)), ..path() });
    assert_eq!((c.probing(), c.cwnd()), (ProbePhase::Cruise, 100));
    assert_eq!(c.bbr.bandwidth(), packets_per_rtt(100));
    assert_eq!(c.bbr.pacing_rate, c.bbr.bandwidth().bytes_per_second(MSS, Gain::ONE, 1));
}
