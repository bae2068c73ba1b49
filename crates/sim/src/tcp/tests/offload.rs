//! Packets of several segments: how large a sender makes them, when it waits, and what a receiver makes of them.
use super::receiver::{arrives, blocks, plain, settled, us};
use super::sender::{RTT, ack, at, burst, expire, sack, with};
use crate::tcp::{AckSegment, Incoming, Receiver, Transmission};
use narrows_core::params::Packets;
use narrows_core::{Span, Time};
use narrows_scenario::transport::TcpParams;

const MSS: u32 = 1448;

fn large(window: u32) -> TcpParams {
    TcpParams { gso_max_segs: Packets(45), initial_window: Packets(window), ..TcpParams::default() }
}

/// The numbers of segments in packets.
fn sizes(out: &[Transmission]) -> Vec<u32> {
    out.iter().map(|packet| u32::from(packet.extra_segments) + 1).collect()
}

/// A packet of several full-sized segments arrives; returns the acknowledgment, if there is one.
fn arrive(receiver: &mut Receiver, first: u64, segments: u8, now: Time) -> Option<AckSegment> {
    let packet = Incoming { len: u32::from(segments) * MSS, ..plain(first) };
    let acknowledge = receiver.on_large_packet(packet, segments - 1, MSS, now, |_, _| {});
    acknowledge.then(|| receiver.acknowledge())
}

// ---- the sender

#[test]
fn a_packet_carries_what_is_sent_in_a_millisecond() {
    // Twice the window per round trip: 2 × 400 × 1448 B in 100 ms are 11.3 MiB/s, so 11.3 kB, which are 7.8 segments.
    let out = burst(&mut with(large(400), None), at(0));
    assert_eq!(sizes(&out)[..56], [7; 56]);
    assert_eq!(sizes(&out).iter().sum::<u32>(), 400);
    assert_eq!(out[1], Transmission { seq: 7, len: 7 * MSS, retransmitted: false, cwr: false, extra_segments: 6 });
}

#[test]
fn a_packet_has_two_segments_at_least_and_half_the_window_at_most() {
    assert_eq!(sizes(&burst(&mut with(large(10), None), at(0))), [2; 5]);
    assert_eq!(sizes(&burst(&mut with(large(3), None), at(0))), [1; 3]);
    // 65 215 bytes have room for 45 segments.
    assert_eq!(sizes(&burst(&mut with(large(4000), None), at(0)))[0], 45);
}

#[test]
fn the_last_packet_carries_what_is_left() {
    let out = burst(&mut with(large(400), Some(u64::from(9 * MSS + 100))), at(0));
    assert_eq!(sizes(&out), [7, 3]);
    assert_eq!(out[1].len, 2 * MSS + 100);
}

#[test]
fn a_sender_waits_for_an_acknowledgment_that_is_near() {
    let mut sender = with(large(370), None);
    let _ = burst(&mut sender, at(0));
    // The first two segments are acknowledged after a round trip. Slow start lets four more go, and a packet would have seven.
    let now = at(100);
    let _ = sender.on_ack(&ack(2), now);
    assert_eq!(sizes(&burst(&mut sender, now)), [4], "nothing was sent for a round trip, so nothing waits");
    let _ = sender.on_ack(&ack(4), now + Span::us(10));
    assert_eq!(sizes(&burst(&mut sender, now + Span::us(10))), [0; 0], "the next acknowledgment is due now");
    let _ = sender.on_ack(&ack(6), now + Span::us(20));
    assert_eq!(sizes(&burst(&mut sender, now + Span::us(20))), [7], "there is room for eight now");
}

#[test]
fn a_sender_does_not_wait_for_an_acknowledgment_that_is_far() {
    let mut sender = with(large(370), None);
    let _ = burst(&mut sender, at(0));
    let now = at(100);
    let _ = sender.on_ack(&ack(2), now);
    let _ = burst(&mut sender, now);
    // Everything of the first round is acknowledged. What is in flight was sent now, so the next acknowledgment is a round trip away.
    let _ = sender.on_ack(&ack(370), now);
    let out = sizes(&burst(&mut sender, now));
    assert!(out[out.len() - 1] < out[0], "the last packet is not a full one: {out:?}");
    assert_eq!(sender.board.inflight(), sender.cwnd);
}

#[test]
fn lost_segments_of_a_packet_are_sent_again_together() {
    let mut sender = with(large(400), None);
    let _ = burst(&mut sender, at(0));
    let now = at(100);
    let _ = sender.on_ack(&ack(7), now);
    let _ = burst(&mut sender, now);
    // The packet of segments 7 to 13 is lost.
    let _ = sender.on_ack(&sack(7, &[(14, 35)]), now);
    let again: Vec<_> = burst(&mut sender, now).into_iter().filter(|packet| packet.retransmitted).collect();
    // 1.2 windows per round trip now: a packet has up to four.
    let packet = |seq, segments| Transmission {
        seq,
        len: segments * MSS,
        retransmitted: true,
        cwr: false,
        extra_segments: segments as u8 - 1,
    };
    assert_eq!(again, [packet(7, 4), packet(11, 3)]);
    assert_eq!(sender.stats().retransmits, 7, "segments are counted, as in Linux");
}

#[test]
fn a_loss_probe_and_the_first_after_a_timeout_are_single_segments() {
    let mut sender = with(large(400), Some(u64::from(14 * MSS)));
    assert_eq!(sizes(&burst(&mut sender, at(0))), [7, 7]);
    while sender.stats().timeouts == 0 {
        assert!(sizes(&expire(&mut sender).2).iter().all(|&size| size == 1));
    }
}

#[test]
fn large_packets_are_paced_as_a_whole() {
    let mut sender = with(TcpParams { pacing: true, ..large(400) }, None);
    let out = burst(&mut sender, at(0));
    // The first ten segments leave unpaced: a packet of seven, and one that is paced with its tenth.
    assert_eq!(sizes(&out), [7, 7]);
    let gate = sender.next_pace(at(0)).expect("the third waits");
    // Seven segments at 8 segments per millisecond.
    assert_eq!(gate.since(at(0)), RTT * 7 / 800);
}

// ---- the receiver

#[test]
fn a_large_packet_is_acknowledged_once() {
    let mut receiver = settled();
    let acks: Vec<_> = [0, 7, 14].map(|first| arrive(&mut receiver, first, 7, us(first)).map(|ack| ack.ack)).into();
    assert_eq!(acks, [Some(7), Some(14), Some(21)]);
}

#[test]
fn large_packets_behind_a_hole_are_one_range_and_one_duplicate_each() {
    let mut receiver = settled();
    let _ = arrive(&mut receiver, 0, 2, us(0));
    // Three duplicates at once; the fourth is compressed. Segments are not counted.
    let acks: Vec<_> = [9, 16, 23, 30].map(|first| arrive(&mut receiver, first, 7, us(first))).into();
    let told = acks.iter().map(|ack| ack.as_ref().map(blocks)).collect::<Vec<_>>();
    assert_eq!(told, [Some(vec![(9, 16)]), Some(vec![(9, 23)]), Some(vec![(9, 30)]), None]);
    let filled = arrive(&mut receiver, 2, 7, us(40)).expect("the hole is filled");
    assert_eq!((filled.ack, blocks(&filled)), (37, vec![]));
}

#[test]
fn what_has_come_before_is_told_to_be_old() {
    let mut receiver = settled();
    let mut new = Vec::new();
    let _ = arrives(&mut receiver, 2, us(0));
    let packet = Incoming { len: 3 * MSS - 48, ..plain(0) };
    assert!(receiver.on_large_packet(packet, 2, MSS, us(1), |number, len| new.push((number, len))));
    assert_eq!(new, [(0, Some(MSS)), (1, Some(MSS)), (2, None)]);
    assert!(receiver.acknowledge().duplicate);
}
