//! A sender alone: what it sends, and what it makes of acknowledgments that are written by hand.
use crate::tcp::recovery::{State, Timer};
use crate::tcp::{AckSegment, Outgoing, Sender};
use narrows_core::congestion::ControllerConfig;
use narrows_core::{Rng, Span, Time};
use narrows_scenario::transport::TcpParams;

/// The path's RTT.
const RTT: Span = Span::ms(100);

/// A connection that has just been established, with data without end.
fn bulk() -> Sender {
    with(TcpParams::default(), None)
}

fn with(params: TcpParams, bytes: Option<u64>) -> Sender {
    let mut sender = Sender::new(&params);
    let cubic = ControllerConfig::named("cubic").expect("cubic is registered");
    sender.established(&cubic, Some(RTT), at(0), Rng::stream(1, "sender"));
    sender.write(bytes, at(0));
    sender
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::ms(ms)
}

/// All that goes out now.
fn burst(sender: &mut Sender, now: Time) -> Vec<Outgoing> {
    std::iter::from_fn(|| sender.poll_transmit(now)).collect()
}

fn numbers(out: &[Outgoing]) -> Vec<u64> {
    out.iter().map(|out| out.seq).collect()
}

fn ack(ack: u64) -> AckSegment {
    AckSegment { ack, ..AckSegment::default() }
}

/// With selective blocks, absolute, the latest first.
fn sack(ack: u64, blocks: &[(u64, u64)]) -> AckSegment {
    let mut segment = AckSegment { ack, blocks: blocks.len() as u8, ..AckSegment::default() };
    for (slot, &(start, end)) in segment.sacks.iter_mut().zip(blocks) {
        *slot = ((start - ack) as u32, (end - ack) as u32);
    }
    segment
}

/// Lets the sender's timer expire; when that was, and what it sent.
fn expire(sender: &mut Sender) -> (Time, Timer, Vec<Outgoing>) {
    let (due, timer) = sender.timer.expect("a timer runs");
    sender.on_timer(due);
    (due, timer, burst(sender, due))
}

#[test]
fn regression_an_acknowledgment_just_after_a_retransmission_is_no_round_trip() {
    // The original is acknowledged a moment after it was sent again: 2 ms were taken for an RTT, and became the minimum.
    let mut sender = bulk();
    assert_eq!(burst(&mut sender, at(0)).len(), 10);
    let mut last = at(0);
    while sender.stats().timeouts == 0 {
        let (due, _, _) = expire(&mut sender);
        last = due;
    }
    assert_eq!(sender.on_ack(&ack(1), last + Span::ms(2)), None);
    assert_eq!(sender.rtt.min(), Some(RTT));
}
