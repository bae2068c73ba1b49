//! When a receiver acknowledges, and the contents of its acknowledgments.
use crate::tcp::receiver::Arrival;
use crate::tcp::{AckSegment, Incoming, Receiver};
use narrows_core::params::Packets;
use narrows_core::{Bytes, Span, Time};
use narrows_scenario::Family;
use narrows_scenario::transport::TcpParams;

const RTT: Span = Span::ms(100);

/// Without quick acknowledgments, and with a buffer that does not let the window grow.
fn calm() -> TcpParams {
    let [receive_buffer, receive_buffer_max] = [Bytes(2304); 2];
    TcpParams { quick_acks: Packets(0), receive_buffer, receive_buffer_max, ..TcpParams::default() }
}

pub(super) fn settled() -> Receiver {
    Receiver::new(&calm(), Family::V4, RTT)
}

pub(super) fn us(us: u64) -> Time {
    Time::ZERO + Span::us(us)
}

/// A segment that is sent for the first time, with its number as timestamp.
pub(super) fn plain(seq: u64) -> Incoming {
    Incoming { seq, len: 1448, stamp: seq as u32, marked: false, cwr: false }
}

/// A segment arrives; returns the acknowledgment, if there is one.
pub(super) fn arrives(receiver: &mut Receiver, seq: u64, now: Time) -> Option<AckSegment> {
    let Arrival { acknowledge, .. } = receiver.on_segment(plain(seq), now);
    acknowledge.then(|| receiver.acknowledge())
}

pub(super) fn blocks(ack: &AckSegment) -> Vec<(u64, u64)> {
    ack.sacks().collect()
}

#[test]
fn every_second_segment_is_acknowledged() {
    let mut receiver = settled();
    let acks: Vec<_> = (0..6).map(|n| arrives(&mut receiver, n, us(n)).map(|ack| ack.ack)).collect();
    assert_eq!(acks, [None, Some(2), None, Some(4), None, Some(6)]);
}

#[test]
fn the_first_sixteen_segments_are_acknowledged_one_by_one() {
    let mut receiver = Receiver::new(&TcpParams { quick_acks: Packets(16), ..calm() }, Family::V4, RTT);
    let prompt: Vec<_> = (0..24).filter(|&n| arrives(&mut receiver, n, us(n)).is_some()).collect();
    let expected: Vec<u64> = (0..16).chain([17, 19, 21, 23]).collect();
    assert_eq!(prompt, expected);
}

#[test]
fn sixteen_more_are_acknowledged_one_by_one_after_a_pause_longer_than_a_timeout() {
    let params = TcpParams { quick_acks: Packets(16), ..calm() };
    // A round trip of 100 ms and the 200 ms that a timeout adds at least.
    let singles = |pause: Span| {
        let mut receiver = Receiver::new(&params, Family::V4, RTT);
        let at = |n: u64| if n < 40 { us(n) } else { us(39) + pause };
        (0..80).filter(|&n| arrives(&mut receiver, n, at(n)).is_some()).filter(|&n| n >= 40).collect::<Vec<u64>>()
    };
    let every_second: Vec<u64> = (0..20).map(|n| 41 + 2 * n).collect();
    let sixteen_first: Vec<u64> = (40..56).chain((0..12).map(|n| 57 + 2 * n)).collect();
    assert_eq!(singles(Span::ms(300)), every_second);
    // Linux counts in ticks of 4 ms.
    assert_eq!(singles(Span::ms(304)), sixteen_first);
}

#[test]
fn sixteen_more_are_acknowledged_one_by_one_after_an_old_segment() {
    let mut receiver = Receiver::new(&TcpParams { quick_acks: Packets(16), ..calm() }, Family::V4, RTT);
    for n in 0..40 {
        let _ = arrives(&mut receiver, n, us(n));
    }
    assert!(arrives(&mut receiver, 7, us(40)).is_some_and(|ack| ack.duplicate), "the old one is reported");
    // That report is the first of the sixteen.
    let prompt: Vec<u64> = (40..60).filter(|&n| arrives(&mut receiver, n, us(n)).is_some()).collect();
    assert_eq!(prompt, (40..55).chain([56, 58]).collect::<Vec<u64>>());
}

#[test]
fn segments_beyond_a_hole_do_not_end_a_pause() {
    let mut receiver = Receiver::new(&TcpParams { quick_acks: Packets(16), ..calm() }, Family::V4, RTT);
    for n in 0..40 {
        let _ = arrives(&mut receiver, n, us(n));
    }
    // One segment is lost, and those behind it arrive until it is sent again.
    for n in 41..60 {
        let _ = arrives(&mut receiver, n, us(n * 10_000));
    }
    let _ = arrives(&mut receiver, 40, us(600_000)).expect("the hole is filled");
    assert!(arrives(&mut receiver, 60, us(600_001)).is_some() && arrives(&mut receiver, 61, us(600_002)).is_some());
}

/// The number of segments that are acknowledged one by one at the start of a connection.
fn one_by_one(receive_buffer: Bytes, len: u32) -> u64 {
    let params = TcpParams { receive_buffer, receive_buffer_max: receive_buffer, ..TcpParams::default() };
    let mut receiver = Receiver::new(&params, Family::V4, RTT);
    let prompt = |receiver: &mut Receiver, seq| {
        let arrival = receiver.on_segment(Incoming { len, ..plain(seq) }, us(seq));
        arrival.acknowledge.then(|| receiver.acknowledge()).is_some()
    };
    (0..100_000).find(|&seq| !prompt(&mut receiver, seq)).expect("it ends")
}

#[test]
fn every_segment_is_acknowledged_while_the_window_grows() {
    // The window grows from half of 16 MiB to 158/256 of them, by two segments with each one; the sixteen of the start follow. A
    // kernel acknowledged about 690.
    assert_eq!(one_by_one(Bytes(16 << 20), 1448), 674 + 16);
    assert_eq!(one_by_one(Bytes(2304), 1448), 16);
    // Segments of 100 B do not make the window grow. With 600 B less than half of the memory is payload, so it cannot grow.
    assert_eq!(one_by_one(Bytes(16 << 20), 100), 16);
    assert_eq!(one_by_one(Bytes(16 << 20), 600), 16);
}

#[test]
fn a_stock_receivers_buffer_grows_with_the_flow() {
    // Slow start in bursts of 10, 20, 40 … segments, one per round trip, with Linux's default `tcp_rmem`: 4096 131072 6291456.
    // Until the fourth burst nearly all segments are acknowledged one by one, about 140; with a fixed buffer of 128 KiB 22 are.
    let stock = |most| {
        let params = TcpParams { receive_buffer: Bytes(128 << 10), receive_buffer_max: most, ..TcpParams::default() };
        let mut receiver = Receiver::new(&params, Family::V4, RTT);
        let (mut seq, mut single, mut acknowledged) = (0, 0, 0);
        for round in 0..4 {
            for _ in 0..10 << round {
                let at = Time::ZERO + RTT * (round + 1) + Span::us(seq);
                if receiver.on_segment(Incoming { len: 1448, ..plain(seq) }, at).acknowledge {
                    let ack = receiver.acknowledge().ack;
                    single += u64::from(ack == acknowledged + 1);
                    acknowledged = ack;
                }
                seq += 1;
            }
        }
        (single, seq)
    };
    assert_eq!(stock(Bytes(6 << 20)), (138, 150));
    assert_eq!(stock(Bytes(128 << 10)).0, 22);
}

#[test]
fn an_acknowledgment_ends_every_wait() {
    // The timer of compressed acknowledgments stayed set after the last hole was filled.
    let mut receiver = settled();
    for seq in 1..5 {
        let _ = arrives(&mut receiver, seq, us(seq));
    }
    assert_eq!(receiver.next_timer(), Some(us(1004)));
    let ack = arrives(&mut receiver, 0, us(10)).expect("the last hole is filled");
    assert_eq!((ack.ack, receiver.next_timer()), (5, None));
    assert!(!receiver.is_overdue(us(1004)));
}

#[test]
fn a_lone_segment_is_acknowledged_with_the_tick_after_40_ms() {
    let mut receiver = settled();
    assert!(arrives(&mut receiver, 0, us(0)).is_none());
    assert_eq!(receiver.next_timer(), Some(us(44_000)));
    assert!(!receiver.is_overdue(us(43_999)));
    assert!(receiver.is_overdue(us(44_000)));
    assert_eq!(receiver.acknowledge().ack, 1);
    assert_eq!(receiver.next_timer(), None);
}

#[test]
fn the_last_hole_filled_is_acknowledged_at_once() {
    let mut receiver = settled();
    let _ = arrives(&mut receiver, 1, us(0));
    let ack = arrives(&mut receiver, 0, us(1)).expect("at once");
    assert_eq!((ack.ack, blocks(&ack)), (2, vec![]));
    // Then every second one is acknowledged again.
    assert!(arrives(&mut receiver, 2, us(2)).is_none());
}

#[test]
fn the_most_recent_range_comes_first_and_three_fit() {
    let mut receiver = settled();
    let mut said = Vec::new();
    for seq in [2, 4, 6] {
        said.push(blocks(&arrives(&mut receiver, seq, us(seq)).expect("one of the first duplicates")));
    }
    assert_eq!(said, [vec![(2, 3)], vec![(4, 5), (2, 3)], vec![(6, 7), (4, 5), (2, 3)]]);
    // A fourth range replaces the oldest. A segment between two ranges joins them.
    let _ = arrives(&mut receiver, 8, us(8));
    assert_eq!(blocks(&receiver.acknowledge()), [(8, 9), (6, 7), (4, 5)]);
    let _ = arrives(&mut receiver, 3, us(9));
    assert_eq!(blocks(&receiver.acknowledge()), [(2, 5), (8, 9), (6, 7)]);
}

/// A segment arrives; returns all acknowledgments that are sent because of it.
fn takes(receiver: &mut Receiver, seq: u64, now: Time) -> Vec<(u64, Vec<(u64, u64)>)> {
    let first = receiver.must_report(seq, seq + 1).then(|| receiver.acknowledge());
    first.into_iter().chain(arrives(receiver, seq, now)).map(|ack| (ack.ack, blocks(&ack))).collect()
}

/// A receiver whose next acknowledgments are compressed; segment 0 is missing, and 1 to 3 have arrived.
fn compressing() -> Receiver {
    let mut receiver = settled();
    for seq in 1..4 {
        assert_eq!(takes(&mut receiver, seq, us(0)).len(), 1, "the first three duplicates are sent at once");
    }
    receiver
}

#[test]
fn a_new_range_that_would_displace_another_lets_the_compressed_acknowledgment_go_first() {
    // Linux since 5.8: a range is reported before the third one after it begins.
    let mut receiver = compressing();
    let at = |seq| us(1 + seq / 13);
    let sent: Vec<_> = [5, 6, 8, 9, 11, 13].map(|seq| takes(&mut receiver, seq, at(seq))).into();
    let two = (0, vec![(5, 7), (1, 4)]);
    let three = (0, vec![(8, 10), (5, 7), (1, 4)]);
    assert_eq!(sent, [vec![], vec![], vec![two], vec![], vec![three], vec![]]);
    // Segment 11 waited for nothing, because the acknowledgment before it took the place of its own. 13 is compressed.
    assert_eq!(receiver.next_timer(), Some(us(1002)));
    assert_eq!(takes(&mut receiver, 15, us(3)), [(0, vec![(13, 14), (11, 12), (8, 10)])]);
    assert_eq!(receiver.next_timer(), None);
}

#[test]
fn an_extended_range_is_reported_at_once_unless_it_is_one_of_the_last_two() {
    let mut receiver = compressing();
    for seq in [6, 9] {
        let _ = takes(&mut receiver, seq, us(1));
    }
    assert_eq!(takes(&mut receiver, 7, us(2)), [], "the second of the ranges");
    let third = takes(&mut receiver, 4, us(3));
    assert_eq!(third, [(0, vec![(6, 8), (9, 10), (1, 5)])], "extended, and not the first yet");
    // A segment that closes the gap between two ranges joins them.
    assert_eq!(takes(&mut receiver, 5, us(4)), []);
    assert_eq!(blocks(&receiver.acknowledge()), [(1, 8), (9, 10)]);
}

#[test]
fn what_is_forgotten_does_not_come_back_with_a_neighbour() {
    let mut receiver = settled();
    for seq in [2, 4, 6, 8, 10] {
        let _ = takes(&mut receiver, seq, us(seq));
    }
    // Linux remembers four ranges. The fifth, of segment 2, is not joined by segment 3.
    let _ = takes(&mut receiver, 3, us(20));
    assert_eq!(blocks(&receiver.acknowledge()), [(3, 5), (10, 11), (8, 9)]);
}

#[test]
fn duplicates_beyond_a_hole_are_compressed_and_reported_by_their_own_numbers() {
    let mut receiver = compressing();
    assert_eq!(receiver.on_segment(plain(2), us(1)), Arrival { is_new: false, acknowledge: false });
    let ack = receiver.acknowledge();
    assert!(ack.duplicate);
    assert_eq!(ack.blocks().collect::<Vec<_>>(), [(2, 3), (1, 4)]);
    assert_eq!(blocks(&ack), [(1, 4)], "a D-SACK reports nothing new");
    // One that was acknowledged cumulatively lies before the acknowledgment number.
    let _ = takes(&mut receiver, 0, us(2));
    let _ = receiver.on_segment(plain(1), us(3));
    let ack = receiver.acknowledge();
    assert_eq!((ack.ack, ack.blocks().collect::<Vec<_>>()), (4, vec![(1, 2)]));
}

#[test]
fn an_acknowledgment_is_longer_by_its_blocks() {
    // RFC 2018 §3 beside timestamps: two bytes of padding, two of the option, eight for each of at most three blocks.
    let mut receiver = settled();
    let mut lengths = vec![receiver.acknowledge().ip_len(52)];
    for seq in [2, 4, 6, 8] {
        let _ = arrives(&mut receiver, seq, us(seq));
        lengths.push(receiver.acknowledge().ip_len(52));
    }
    assert_eq!(lengths, [52, 64, 72, 80, 80]);
    // A D-SACK is a block, too.
    let mut receiver = settled();
    let _ = arrives(&mut receiver, 0, us(0));
    assert_eq!(arrives(&mut receiver, 0, us(1)).expect("at once").ip_len(52), 64);
}

#[test]
fn a_duplicate_is_told_once_in_place_of_a_block() {
    let mut receiver = settled();
    let _ = arrives(&mut receiver, 0, us(0));
    for seq in [2, 4, 6] {
        let _ = arrives(&mut receiver, seq, us(seq));
    }
    for (seq, acknowledge, told) in [(0, true, [(6, 7), (4, 5)]), (4, false, [(4, 5), (6, 7)])] {
        let arrival = receiver.on_segment(plain(seq), us(10));
        assert_eq!(arrival, Arrival { is_new: false, acknowledge });
        let ack = receiver.acknowledge();
        assert!(ack.duplicate);
        assert_eq!((ack.ack, blocks(&ack)), (1, told.into()));
        assert!(!receiver.acknowledge().duplicate);
    }
}

#[test]
fn after_three_duplicates_more_are_gathered_for_a_millisecond() {
    let mut receiver = settled();
    let prompt: Vec<_> = (1..8).filter(|&n| arrives(&mut receiver, n, us(100 * n)).is_some()).collect();
    assert_eq!(prompt, [1, 2, 3]);
    // Compression began with the fourth.
    assert_eq!(receiver.next_timer(), Some(us(1400)));
    assert!(receiver.is_overdue(us(1400)));
    let ack = receiver.acknowledge();
    assert_eq!((ack.ack, blocks(&ack)), (0, vec![(1, 8)]));
    // At most 44 are compressed into one.
    let late: Vec<_> = (8..60).filter(|&n| arrives(&mut receiver, n, us(1500)).is_some()).collect();
    assert_eq!(late, [52]);
}

#[test]
fn gathering_takes_no_more_than_a_third_of_a_short_rtt() {
    let mut receiver = Receiver::new(&calm(), Family::V4, Span::us(300));
    for seq in 1..5 {
        let _ = arrives(&mut receiver, seq, us(0));
    }
    assert_eq!(receiver.next_timer(), Some(us(100)));
}

#[test]
fn without_compression_every_duplicate_is_answered() {
    let params = TcpParams { sack_compression: Span::ZERO, ..calm() };
    let mut receiver = Receiver::new(&params, Family::V4, RTT);
    assert!((1..50).all(|n| arrives(&mut receiver, n, us(n)).is_some()));
}

#[test]
fn a_mark_is_echoed_until_it_is_answered() {
    let mut receiver = settled();
    let echoes = |receiver: &mut Receiver, seq, marked, cwr| {
        receiver
            .on_segment(Incoming { marked, cwr, ..plain(seq) }, us(seq))
            .acknowledge
            .then(|| receiver.acknowledge().ece)
    };
    assert_eq!(echoes(&mut receiver, 0, false, false), None);
    // The first mark is reported at once, and so is the next segment: two acknowledgments.
    assert_eq!(echoes(&mut receiver, 1, true, false), Some(true));
    assert_eq!(echoes(&mut receiver, 2, false, false), Some(true));
    assert_eq!(echoes(&mut receiver, 3, true, false), None);
    assert_eq!(echoes(&mut receiver, 4, false, false), Some(true));
    assert_eq!(echoes(&mut receiver, 5, false, true), None);
    assert_eq!(echoes(&mut receiver, 6, false, false), Some(false));
    // A segment with both CWR and a mark reports a new mark.
    assert_eq!(echoes(&mut receiver, 7, true, true), Some(true));
}

#[test]
fn the_timestamp_echoed_is_that_of_the_first_segment_not_acknowledged_before() {
    // RFC 7323 §4.3: (A) delayed acknowledgments, (B) a hole, (C) a filled hole.
    let mut receiver = settled();
    let echo = |receiver: &mut Receiver, seq, stamp| {
        let segment = Incoming { stamp, ..plain(seq) };
        receiver.on_segment(segment, us(seq)).acknowledge.then(|| receiver.acknowledge().echo)
    };
    assert_eq!(echo(&mut receiver, 0, 10), None);
    assert_eq!(echo(&mut receiver, 1, 11), Some(10));
    assert_eq!(echo(&mut receiver, 3, 13), Some(10));
    assert_eq!(echo(&mut receiver, 4, 14), Some(10));
    assert_eq!(echo(&mut receiver, 2, 20), Some(20));
}
