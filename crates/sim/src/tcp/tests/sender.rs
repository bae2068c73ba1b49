//! Tests of a sender alone: the segments that it sends, given acknowledgments written by hand.
use crate::tcp::recovery::{State, Timer};
use crate::tcp::{AckSegment, Sender, Transmission};
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered;
use narrows_core::{Rng, Span, Time};
use narrows_scenario::transport::{Recovery, TcpParams};

/// The path's RTT.
pub(super) const RTT: Span = Span::ms(100);

/// An established connection with unlimited data.
fn bulk() -> Sender {
    with(TcpParams::default(), None)
}

pub(super) fn with(params: TcpParams, bytes: Option<u64>) -> Sender {
    under("cubic", params, bytes)
}

fn under(controller: &str, params: TcpParams, bytes: Option<u64>) -> Sender {
    let mut sender = Sender::new(&params);
    let controller = ControllerConfig::named(controller).expect("it is registered");
    sender.established(&controller, Some(RTT), at(0), Rng::stream(1, "sender"));
    sender.write(bytes, at(0));
    sender
}

pub(super) fn at(ms: u64) -> Time {
    Time::ZERO + Span::ms(ms)
}

/// All segments that may be sent now.
pub(super) fn burst(sender: &mut Sender, now: Time) -> Vec<Transmission> {
    std::iter::from_fn(|| sender.poll_transmit(now)).collect()
}

fn numbers(out: &[Transmission]) -> Vec<u64> {
    out.iter().map(|out| out.seq).collect()
}

pub(super) fn ack(ack: u64) -> AckSegment {
    AckSegment { ack, ..AckSegment::default() }
}

/// The timestamp of a segment sent at this time.
fn echo_of(sent: Time) -> u32 {
    (sent.as_ns() / 1_000_000) as u32
}

/// An acknowledgment with absolute SACK blocks, the latest first.
pub(super) fn sack(ack: u64, blocks: &[(u64, u64)]) -> AckSegment {
    let mut segment = AckSegment { ack, blocks: blocks.len() as u8, ..AckSegment::default() };
    for (slot, &(start, end)) in segment.sacks.iter_mut().zip(blocks) {
        *slot = ((start - ack) as u32, (end - ack) as u32);
    }
    segment
}

/// Lets the sender's timer expire; returns its time, its kind, and the segments sent.
pub(super) fn expire(sender: &mut Sender) -> (Time, Timer, Vec<Transmission>) {
    let (due, timer) = sender.timer().expect("a timer runs");
    sender.on_timer(due);
    (due, timer, burst(sender, due))
}

/// Sends a window and loses its first segment; the others arrive one by one. After each acknowledgment the sender sends at most `most`
/// segments at once. In all it has then sent what `expected` says for the number of segments delivered, ± 3.
fn lose_the_first_of(sender: &mut Sender, window: u32, most: usize, expected: impl Fn(u64) -> u64) {
    assert_eq!(burst(sender, at(0)).len(), window as usize);
    let mut sent = 0;
    for n in 2..=u64::from(window) {
        let now = at(100) + Span::us(n);
        let _ = sender.on_ack(&sack(0, &[(1, n)]), now);
        let out = burst(sender, now).len();
        assert!(out <= most, "{out} at once");
        sent += out as u64;
        assert!(sent.abs_diff(expected(n)) <= 3, "{sent} sent for {n} delivered");
    }
}

/// Slow-start threshold, segments.
fn ssthresh(sender: &Sender) -> Option<f64> {
    sender.meters().unwrap().ssthresh
}

#[test]
fn regression_an_acknowledgment_just_after_a_retransmission_is_no_round_trip() {
    // The original is acknowledged shortly after the retransmission. These 2 ms used to be taken as an RTT and became the
    // minimum. The peer echoes the original's timestamp, 0.
    let mut sender = bulk();
    assert_eq!(burst(&mut sender, at(0)).len(), 10);
    let mut last = at(0);
    while sender.stats().timeouts == 0 {
        let (due, _, _) = expire(&mut sender);
        last = due;
    }
    let now = last + Span::ms(2);
    assert_eq!(sender.on_ack(&ack(1), now), Some(now.since(at(0))));
    assert_eq!(sender.rtt.min(), Some(RTT));
}

// ---- timeouts

#[test]
fn timeouts_in_a_row_double_up_to_two_minutes() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    // First a probe with new data, two RTTs and two ticks later. Then the timer starts again.
    let (due, timer, out) = expire(&mut sender);
    assert_eq!((due, timer, numbers(&out)), (at(208), Timer::Probe, vec![10]));
    let (mut last, mut gaps) = (due, Vec::new());
    for _ in 0..11 {
        let (due, timer, out) = expire(&mut sender);
        assert_eq!(timer, Timer::Retransmit);
        assert_eq!(numbers(&out), [0], "the first segment again, alone");
        gaps.push(due.since(last));
        last = due;
    }
    // An RTO of RTT + 4 · RTT / 2 (RFC 6298 §2.2).
    let doubled: Vec<Span> = (0..11).map(|n| (Span::ms(300) * (1 << n)).min(Span::s(120))).collect();
    assert_eq!(gaps, doubled);
    assert_eq!(sender.stats().timeouts, 11);
    // An RTT sample ends the backoff: here from a segment that was sent once.
    let _ = sender.on_ack(&ack(11), last + RTT);
    assert_eq!(sender.expiries, 0);
}

#[test]
fn timers_in_ticks_expire_as_those_of_linux() {
    let ticks = TcpParams { ticks: true, ..TcpParams::default() };
    let mut sender = with(ticks.clone(), None);
    let _ = burst(&mut sender, at(0));
    // A probe after two RTTs and 2 ms: 51 ticks, and the timer expires with the next.
    assert_eq!(expire(&mut sender).0, at(208));
    // 300, 600 and 1200 ms expire at multiples of 32 ms, and 2400 at one of 256.
    assert_eq!([(); 4].map(|()| expire(&mut sender).0), [512, 1120, 2336, 4864].map(at));
    // The reordering timer: a quarter of the minimum RTT and 2 ms are 27 ms, seven ticks.
    let mut sender = with(ticks, None);
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&sack(0, &[(1, 2)]), at(100));
    let (due, timer, _) = expire(&mut sender);
    assert_eq!((due, timer), (at(132), Timer::Reorder));
}

#[test]
fn a_timeout_is_undone_when_an_original_arrives() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let (window, mut last) = (sender.cwnd, at(0));
    while sender.stats().timeouts == 0 {
        last = expire(&mut sender).0;
    }
    assert_eq!((sender.state, sender.cwnd), (State::Loss, 1));
    // The second segment was never retransmitted, so this acknowledges the originals.
    let _ = sender.on_ack(&ack(2), last + Span::ms(5));
    assert_eq!(sender.state, State::Open);
    assert!(sender.cwnd >= window, "{} of {window}", sender.cwnd);
    assert!(!burst(&mut sender, last + Span::ms(5)).iter().any(|out| out.retransmitted), "nothing was lost");
}

#[test]
fn a_timeout_is_not_undone_when_retransmissions_arrive() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let mut now = at(0);
    while sender.stats().timeouts == 0 {
        now = expire(&mut sender).0;
    }
    // Only the first segment arrives, and then F-RTO's new data; everything between is missing.
    let resent = echo_of(now);
    now += RTT;
    let _ = sender.on_ack(&AckSegment { echo: resent, ..ack(1) }, now);
    let tried = burst(&mut sender, now);
    assert_eq!(numbers(&tried), [11, 12]);
    now += RTT;
    let _ = sender.on_ack(&sack(1, &[(11, 13)]), now);
    assert_eq!(sender.state, State::Loss);
    assert_eq!(
        burst(&mut sender, now)[0],
        Transmission { seq: 1, len: 1448, retransmitted: true, cwr: false, extra_segments: 0 }
    );
}

// ---- losses

#[test]
fn three_selective_acknowledgments_repair_a_loss_at_once() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&sack(0, &[(1, 2)]), at(100));
    let _ = sender.on_ack(&sack(0, &[(1, 3)]), at(100));
    assert!(!burst(&mut sender, at(100)).iter().any(|out| out.retransmitted), "two may be reordering");
    let _ = sender.on_ack(&sack(0, &[(1, 4)]), at(100));
    assert_eq!((sender.state, sender.board.lost_out()), (State::Recovery, 1));
    assert_eq!(
        burst(&mut sender, at(100))[0],
        Transmission { seq: 0, len: 1448, retransmitted: true, cwr: false, extra_segments: 0 }
    );
}

#[test]
fn without_selective_acknowledgments_a_round_trip_repairs_one_loss() {
    // Segments 0, 3 and 5 of ten are lost.
    let mut sender = with(TcpParams { sack: false, ..TcpParams::default() }, Some(10 * 1448));
    assert_eq!(burst(&mut sender, at(0)).len(), 10);
    for duplicate in 1..=7 {
        sender.on_ack(&ack(0), at(100 + duplicate));
        let sent = numbers(&burst(&mut sender, at(100 + duplicate)));
        assert_eq!(sent, if duplicate == 3 { vec![0] } else { vec![] }, "duplicate {duplicate}");
    }
    // Each partial acknowledgment shows the next hole (RFC 6582 §3.2).
    for (now, acknowledged) in [(200, 3), (300, 5)] {
        sender.on_ack(&ack(acknowledged), at(now));
        assert_eq!(numbers(&burst(&mut sender, at(now))), [acknowledged]);
    }
    sender.on_ack(&ack(10), at(400));
    assert_eq!((sender.state, sender.board.inflight()), (State::Open, 0));
}

#[test]
fn one_selective_acknowledgment_repairs_a_loss_after_the_reordering_window() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&sack(0, &[(1, 2)]), at(100));
    let (due, timer, out) = expire(&mut sender);
    // A quarter of the minimum RTT, and two ticks (Linux `TCP_TIMEOUT_MIN`).
    assert_eq!((due, timer), (at(100) + Span::ms(25) + Span::ms(8), Timer::Reorder));
    assert_eq!((sender.state, numbers(&out)[0]), (State::Recovery, 0));
    assert_eq!(sender.stats().timeouts, 0);
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again() {
    let mut sender =
        with(TcpParams { initial_window: narrows_core::params::Packets(20), ..TcpParams::default() }, None);
    assert_eq!(burst(&mut sender, at(0)).len(), 20);
    let _ = sender.on_ack(&sack(0, &[(1, 4)]), at(100));
    assert_eq!(numbers(&burst(&mut sender, at(100))), [0, 20, 21]);
    // All others arrive. After the retransmission the reduced window lets more new data go.
    let _ = sender.on_ack(&sack(0, &[(1, 20)]), at(101));
    assert_eq!(numbers(&burst(&mut sender, at(101)))[0], 22);
    // The first of those arrives, but the retransmission does not.
    let _ = sender.on_ack(&sack(0, &[(1, 23)]), at(201));
    let again = burst(&mut sender, at(201));
    assert_eq!((again[0].seq, again[0].retransmitted), (0, true));
    assert_eq!((sender.stats().retransmits, sender.stats().timeouts), (2, 0));
}

// ---- recovery as in Linux 2.6

fn older(initial_window: u32, bytes: Option<u64>) -> Sender {
    let params = TcpParams {
        initial_window: narrows_core::params::Packets(initial_window),
        recovery: Recovery::Fack,
        ..TcpParams::default()
    };
    with(params, bytes)
}

#[test]
fn forward_acknowledgments_find_what_is_three_behind_the_last_one_received() {
    let mut sender = older(10, None);
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&sack(0, &[(2, 3)]), at(100));
    assert_eq!((sender.state, sender.board.lost_out()), (State::Disorder, 0), "two behind");
    // Segment 4 has arrived, so that 0 and 1 are lost and 3 may be late. One acknowledgment lets out one segment.
    let _ = sender.on_ack(&sack(0, &[(4, 5), (2, 3)]), at(100));
    assert_eq!((sender.state, sender.board.lost_out()), (State::Recovery, 2));
    assert_eq!(numbers(&burst(&mut sender, at(100))), [0]);
}

#[test]
fn forward_acknowledgments_find_a_lost_retransmission() {
    let mut sender = older(10, None);
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&sack(0, &[(1, 4)]), at(100));
    assert_eq!(numbers(&burst(&mut sender, at(100)))[0], 0);
    // What was sent before the retransmission says nothing about it; the first segment sent after it does.
    let _ = sender.on_ack(&sack(0, &[(1, 10)]), at(101));
    assert_eq!(sender.board.lost_out(), 1);
    let new = burst(&mut sender, at(101));
    assert!(new.iter().all(|out| !out.retransmitted), "{new:?}");
    let _ = sender.on_ack(&sack(0, &[(1, 11)]), at(201));
    let again = burst(&mut sender, at(201));
    assert_eq!((again[0].seq, again[0].retransmitted), (0, true));
}

#[test]
fn an_older_sender_leaves_its_window_to_a_controller_that_sets_it() {
    let params = TcpParams { recovery: Recovery::Fack, ..TcpParams::default() };
    let mut sender = under("bbr", params, None);
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&sack(0, &[(1, 5)]), at(100));
    assert_eq!((sender.state, sender.board.lost_out()), (State::Recovery, 1));
    let _ = burst(&mut sender, at(100));
    let _ = sender.on_ack(&ack(sender.recover), at(201));
    assert_eq!((sender.state, sender.is_below_window()), (State::Open, false));
}

#[test]
fn an_older_sender_waits_for_the_timeout_when_its_tail_is_lost() {
    let mut sender = older(10, Some(3 * 1448));
    assert_eq!(burst(&mut sender, at(0)).len(), 3);
    let (due, timer, out) = expire(&mut sender);
    assert_eq!((due, timer), (at(0) + sender.rtt.timeout(), Timer::Retransmit));
    assert_eq!(numbers(&out), [0]);
}

#[test]
fn an_older_sender_sends_with_every_second_acknowledgment_until_its_window_is_reduced() {
    let window = 100;
    let mut sender = older(window, None);
    // CUBIC's window comes down to 70 segments, which takes 60 acknowledgments.
    let expected = |n| if n < 60 { n / 2 } else { n - 30 };
    lose_the_first_of(&mut sender, window, 1, expected);
    let _ = sender.on_ack(&ack(sender.recover), at(201));
    assert_eq!((sender.state, sender.cwnd), (State::Open, 70));
}

#[test]
fn an_older_sender_comes_back_in_slow_start_after_many_losses() {
    let mut sender = older(100, None);
    let _ = burst(&mut sender, at(0));
    // Segments 0 to 39 are lost, and all retransmissions are acknowledged at once.
    for n in 41..=100 {
        let now = at(100) + Span::us(n);
        let _ = sender.on_ack(&sack(0, &[(40, n)]), now);
        let _ = burst(&mut sender, now);
    }
    let _ = sender.on_ack(&ack(100), at(201));
    assert_eq!((sender.state, ssthresh(&sender)), (State::Open, Some(70.0)));
    let (ended, inflight) = (sender.cwnd, sender.board.inflight());
    assert_eq!(ended, inflight + 3);
    // A segment for each acknowledgment, up to the controller's window.
    let windows: Vec<u32> = (0..60)
        .map(|n| {
            let now = at(300) + Span::us(n);
            let _ = burst(&mut sender, now);
            let _ = sender.on_ack(&ack(sender.board.una() + 1), now);
            sender.cwnd
        })
        .collect();
    let expected: Vec<u32> = (1..=60).map(|n| (ended + n).min(70)).collect();
    assert_eq!(windows[..], expected[..]);
}

#[test]
fn regression_a_retransmission_has_a_whole_timeout() {
    // The timer used to run on from the last cumulative acknowledgment. If a queue made RTT and timeout equal, it expired while
    // the first retransmission was in flight, once per recovery.
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&sack(0, &[(1, 4)]), at(250));
    assert_eq!(burst(&mut sender, at(250))[0].seq, 0);
    assert_eq!(sender.timer(), Some((at(250) + sender.rtt.timeout(), Timer::Retransmit)));
    // An acknowledgment of data sent before that restarts the timer,
    let _ = sender.on_ack(&sack(0, &[(1, 10)]), at(300));
    let _ = burst(&mut sender, at(300));
    assert_eq!(sender.timer(), Some((at(300) + sender.rtt.timeout(), Timer::Retransmit)));
    // but one of data sent afterwards does not, although the segment is retransmitted again.
    let _ = sender.on_ack(&sack(0, &[(1, 11)]), at(500));
    assert_eq!(sender.timer(), Some((at(300) + sender.rtt.timeout(), Timer::Retransmit)));
}

#[test]
fn a_window_is_reduced_in_proportion_to_what_arrives() {
    let window = 100;
    let params = TcpParams { initial_window: narrows_core::params::Packets(window), ..TcpParams::default() };
    let mut sender = with(params, None);
    // RFC 9937: seven segments for every ten delivered, CUBIC's factor.
    lose_the_first_of(&mut sender, window, 2, |n| n * 7 / 10);
    // Everything sent before the reduction began is acknowledged.
    let _ = sender.on_ack(&AckSegment { echo: 200, ..ack(sender.recover) }, at(201));
    assert_eq!(sender.state, State::Open);
    assert_eq!((sender.cwnd, ssthresh(&sender)), (70, Some(70.0)));
}

#[test]
fn regression_a_probe_comes_no_later_than_the_timeout_and_before_it() {
    // With one segment in flight the probe's time was later than the timeout's, and the timeout came instead. RFC 8985 §7.2 and
    // Linux's `tcp_schedule_loss_probe` then send the probe at the timeout's time.
    let mut sender = with(TcpParams::default(), Some(1448));
    let _ = burst(&mut sender, at(0));
    let (due, timer, out) = expire(&mut sender);
    assert_eq!((due, timer, numbers(&out)), (at(300), Timer::Probe, vec![0]));
    assert_eq!(sender.stats().timeouts, 0);
    let (due, timer, _) = expire(&mut sender);
    assert_eq!((due, timer), (at(600), Timer::Retransmit));
}

#[test]
fn a_probe_repairs_a_lost_tail() {
    let mut sender = with(TcpParams::default(), Some(5 * 1448));
    assert_eq!(burst(&mut sender, at(0)).len(), 5);
    let _ = sender.on_ack(&ack(4), at(100));
    let (due, timer, out) = expire(&mut sender);
    // Two RTTs and 200 ms for a delayed acknowledgment would be later than the timeout.
    assert_eq!((due, timer), (at(100 + 300), Timer::Probe));
    assert_eq!(out, [Transmission { seq: 4, len: 1448, retransmitted: true, cwr: false, extra_segments: 0 }]);
    let _ = sender.on_ack(&ack(5), due + RTT);
    assert_eq!(sender.stats().timeouts, 0);
    assert_eq!(sender.timer(), None);
    // The next acknowledgment shows that the probe repaired a loss: the window is reduced (RFC 8985 §7.4.2).
    sender.write(Some(1448), due + RTT);
    let before = sender.cwnd;
    assert_eq!(numbers(&burst(&mut sender, due + RTT)), [5]);
    let _ = sender.on_ack(&ack(6), due + RTT + RTT);
    assert!(sender.cwnd < before && ssthresh(&sender).is_some());
}

#[test]
fn a_probe_of_what_had_arrived_reduces_nothing() {
    let mut sender = with(TcpParams::default(), Some(5 * 1448));
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&ack(4), at(100));
    let (due, _, _) = expire(&mut sender);
    // A late acknowledgment of the original, and then the probe's, which has a D-SACK.
    let _ = sender.on_ack(&ack(5), due + Span::ms(1));
    let _ = sender.on_ack(&AckSegment { duplicate: true, ..ack(5) }, due + RTT);
    sender.write(Some(1448), due + RTT);
    let _ = burst(&mut sender, due + RTT);
    let _ = sender.on_ack(&ack(6), due + RTT + RTT);
    assert_eq!(ssthresh(&sender), None);
}

// ---- marks, pacing, what is not ours

#[test]
fn marks_reduce_the_window_once_per_round_trip() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let echo = |n| AckSegment { ece: true, ..ack(n) };
    let _ = sender.on_ack(&echo(2), at(100));
    let once = ssthresh(&sender);
    assert!(once.is_some_and(|ssthresh| ssthresh < 10.0));
    let mut sent = burst(&mut sender, at(100));
    for n in [4, 6, 8, 10] {
        let _ = sender.on_ack(&echo(n), at(100 + n));
        sent.extend(burst(&mut sender, at(100 + n)));
        assert_eq!(ssthresh(&sender), once, "the same window's marks");
    }
    assert_eq!(sent.iter().filter(|out| out.cwr).count(), 1, "the peer hears of it once");
    assert!(sent[0].cwr, "with the first new segment");
    // The next round: segments sent after the reduction are acknowledged, and the peer still echoes marks.
    let last = sent.last().expect("new segments left").seq + 1;
    let _ = sender.on_ack(&echo(last), at(250));
    let _ = burst(&mut sender, at(250));
    assert_ne!(ssthresh(&sender), once);
    assert_eq!(sender.stats().retransmits, 0);
}

#[test]
fn pacing_lets_one_packet_out_at_a_time_after_the_first_ten() {
    let mut sender = with(TcpParams { pacing: true, ..TcpParams::default() }, None);
    assert_eq!(burst(&mut sender, at(0)).len(), 10);
    let _ = sender.on_ack(&ack(10), at(100));
    let (mut now, mut left) = (at(100), Vec::new());
    while now < at(150) {
        let out = burst(&mut sender, now);
        assert!(out.len() <= 1, "{} back to back", out.len());
        left.extend(out.iter().map(|_| now));
        let Some(next) = sender.next_pace(now) else { break };
        assert!(next > now);
        sender.on_pace(next);
        now = next;
    }
    // Twice the window of 20 per RTT in slow start: a packet every 2.5 ms.
    let gaps: Vec<_> = left.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.len() >= 15, "{gaps:?}");
    assert!(gaps[2..].iter().all(|gap| (Span::us(2400)..Span::us(2600)).contains(gap)), "{gaps:?}");
}

#[test]
fn acknowledgments_of_nothing_sent_and_of_the_past_change_nothing() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&ack(4), at(100));
    let _ = burst(&mut sender, at(100));
    let (window, inflight, timer) = (sender.cwnd, sender.board.inflight(), sender.timer());
    for stray in [ack(3), ack(1000)] {
        assert_eq!(sender.on_ack(&stray, at(101)), None);
        assert_eq!((sender.cwnd, sender.board.inflight(), sender.timer()), (window, inflight, timer));
    }
}

// ---- reordering

/// A D-SACK for these segments, which have been acknowledged.
fn duplicate(acknowledged: u64, range: (u64, u64)) -> AckSegment {
    let mut segment = AckSegment { duplicate: true, blocks: 1, echo: 10_000, ..ack(acknowledged) };
    segment.sacks[0] = ((range.0.wrapping_sub(acknowledged)) as u32, (range.1.wrapping_sub(acknowledged)) as u32);
    segment
}

/// A sender of ten segments, the first of which is declared lost and sent again at 100 ms.
fn recovering() -> Sender {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&sack(0, &[(1, 4)]), at(100));
    assert_eq!((sender.state, burst(&mut sender, at(100))[0].seq), (State::Recovery, 0));
    sender
}

#[test]
fn a_recovery_is_undone_when_the_original_was_late() {
    let mut sender = recovering();
    let window = 10;
    assert!(sender.cwnd < window, "{}", sender.cwnd);
    // The hole is filled; the timestamp is that of the original (Eifel).
    let _ = sender.on_ack(&AckSegment { echo: 0, ..ack(4) }, at(110));
    assert_eq!((sender.state, sender.board.lost_out()), (State::Open, 0));
    assert!(sender.cwnd >= window, "{}", sender.cwnd);
    // From now on three segments beyond a hole are no loss.
    let sent = burst(&mut sender, at(110));
    assert!(!sent.is_empty() && sent.iter().all(|out| !out.retransmitted));
    let _ = sender.on_ack(&AckSegment { echo: 0, ..sack(4, &[(5, 9)]) }, at(112));
    assert_eq!((sender.state, sender.board.lost_out()), (State::Disorder, 0));
}

#[test]
fn a_recovery_is_undone_when_its_retransmissions_arrived_twice() {
    let mut sender = recovering();
    // The retransmission's timestamp says nothing: the recovery ends with a smaller window.
    let _ = sender.on_ack(&AckSegment { echo: 10_000, ..ack(sender.recover) }, at(200));
    let reduced = sender.cwnd;
    assert!(sender.state == State::Open && reduced < 10, "{:?} {reduced}", sender.state);
    let _ = burst(&mut sender, at(200));
    // The original comes after it.
    let _ = sender.on_ack(&duplicate(sender.board.una(), (0, 1)), at(201));
    assert!(sender.cwnd >= 10, "{} after {reduced}", sender.cwnd);
}

#[test]
fn copies_that_the_network_makes_undo_nothing() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_ack(&duplicate(4, (0, 1)), at(100));
    assert_eq!(sender.state, State::Open);
    assert_eq!(sender.reordering_window(), RTT / 4);
}

#[test]
fn duplicates_widen_the_reordering_window_once_per_round_trip() {
    let mut sender = recovering();
    let _ = sender.on_ack(&AckSegment { echo: 0, ..ack(4) }, at(110));
    let _ = sender.on_ack(&AckSegment { echo: 0, ..ack(10) }, at(111));
    assert_eq!(sender.reordering_window(), RTT / 4);
    let mut now = at(110);
    for steps in [2u64, 3] {
        let sent = burst(&mut sender, now);
        let first = sender.board.una();
        now += RTT;
        // The hole is declared lost after the window, and sent again; then both arrive.
        let _ = sender.on_ack(&AckSegment { echo: 10_000, ..sack(first, &[(first + 1, first + 4)]) }, now);
        while sender.state != State::Recovery {
            now = expire(&mut sender).0;
        }
        now += Span::ms(1);
        let all = sent.last().map_or(first, |out| out.seq + 1).max(sender.recover);
        let _ = sender.on_ack(&AckSegment { echo: 10_000, ..ack(all) }, now);
        let more = burst(&mut sender, now);
        now += RTT;
        let last = more.last().expect("the window is open").seq;
        let _ = sender.on_ack(&AckSegment { ..duplicate(last + 1, (first, first + 1)) }, now);
        let window = (sender.rtt.min().expect("there are samples") / 4) * steps;
        assert_eq!(
            sender.reordering_window(),
            window.min(sender.rtt.smoothed().expect("there are samples")),
            "{steps}"
        );
    }
}
