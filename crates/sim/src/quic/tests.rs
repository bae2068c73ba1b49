use super::*;
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered;
use narrows_core::{Rng, Span, Time};
use narrows_scenario::transport::{PacketNumbers, QuicParams};

const RTT: Span = Span::ms(100);

fn at(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

/// A sender with unlimited data on an established connection.
fn bulk() -> Sender {
    let mut sender = Sender::new(&QuicParams::default(), Rng::stream(1, "pacing"));
    sender.write(None);
    let config = ControllerConfig::named("new_reno").unwrap();
    sender.established(&config, Some(RTT), at(0), Rng::stream(1, "controller"));
    sender
}

fn burst(sender: &mut Sender, now: Time) -> Vec<u64> {
    core::iter::from_fn(|| sender.poll_transmit(now)).map(|out| out.number).collect()
}

/// An acknowledgment of packets in (first, last) ranges, the highest range first, without delay.
fn frame(ranges: &[(u64, u64)]) -> AckFrame {
    let largest = ranges[0].1;
    let mut frame = AckFrame { largest, count: ranges.len() as u8, ..AckFrame::default() };
    for (slot, &(first, last)) in frame.ranges.iter_mut().zip(ranges) {
        *slot = ((largest - last) as u32, (last + 1 - first) as u32);
    }
    frame
}

#[test]
fn the_initial_window_leaves_at_once_and_the_rest_is_paced() {
    let mut sender = bulk();
    assert_eq!(burst(&mut sender, at(0)), (0..10).collect::<Vec<_>>());
    assert_eq!(sender.on_frame(&frame(&[(0, 1)]), at(100)), Some(RTT));
    // Slow start: two more packets than were acknowledged. They are 100 ms / 24 apart, at twice 12 packets per RTT.
    assert_eq!(burst(&mut sender, at(100)), [10]);
    let gap = sender.next_pace(at(100)).unwrap().since(at(100));
    assert!((4.1..4.3).contains(&gap.as_ms_f64()), "{gap}");
    sender.on_pace(at(100) + gap);
    assert_eq!(burst(&mut sender, at(100) + gap), [11]);
}

#[test]
fn three_packets_later_means_lost_and_one_reduction_covers_a_window() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_frame(&frame(&[(1, 2)]), at(100));
    assert_eq!(sender.stats().retransmits, 0, "two later are not enough");
    let _ = sender.on_frame(&frame(&[(1, 3)]), at(101));
    let halved = sender.meters().unwrap().cwnd;
    // In slow start the window is 12 packets after the first frame and 13 after the second. The loss is handled first: half of
    // 12.
    assert_eq!(halved, 6.0);
    // Packet 4 is lost, too, but was sent before the reduction.
    let _ = sender.on_frame(&frame(&[(5, 7), (1, 3)]), at(102));
    assert_eq!(sender.meters().unwrap().cwnd, halved);
    assert_eq!(sender.meters().unwrap().inflight, Some(2.0), "8 and 9");
    // Lost data are retransmitted before new data, under new numbers.
    let again: Vec<_> = core::iter::from_fn(|| sender.poll_transmit(at(200))).map(|out| out.chunk).collect();
    assert_eq!(again[0], 0);
    assert_eq!(sender.stats().retransmits, 1);
}

#[test]
fn nine_eighths_of_an_rtt_mean_lost() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    let _ = sender.on_frame(&frame(&[(1, 1)]), at(100));
    // Sent at 0 with an RTT of 100 ms.
    assert_eq!(sender.next_timer(), Some(Time::from_ns(112_500_000)));
    sender.on_timer(Time::from_ns(112_500_000));
    assert_eq!(sender.meters().unwrap().inflight, Some(8.0));
    assert_eq!(sender.stats().timeouts, 0);
}

#[test]
fn silence_is_probed_twice_as_late_each_time() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    // 100 + 4 · 50 + 25 ms after the last packet (§6.2.1).
    assert_eq!(sender.next_timer(), Some(at(325)));
    sender.on_timer(at(325));
    assert_eq!(burst(&mut sender, at(325)), [10, 11], "two probes, whatever the window");
    assert_eq!(sender.next_timer(), Some(at(325 + 650)));
    sender.on_timer(at(975));
    assert_eq!(burst(&mut sender, at(975)), [12, 13]);
    assert_eq!(sender.stats().timeouts, 2);
    let before = sender.meters().unwrap().cwnd;
    // Everything before the first probe was lost, but 325 ms are less than three timeouts, 975 ms.
    let _ = sender.on_frame(&frame(&[(13, 13)]), at(1075));
    assert!(sender.meters().unwrap().cwnd < before);
    assert!(sender.meters().unwrap().cwnd >= 2.0);
}

#[test]
fn persistent_congestion_begins_again_with_two_packets() {
    let mut sender = bulk();
    let _ = burst(&mut sender, at(0));
    for ms in [325, 975, 2275] {
        sender.on_timer(at(ms));
        let _ = burst(&mut sender, at(ms));
    }
    // Packets 0 to 14 span 2275 ms, more than 3 · 325.
    let _ = sender.on_frame(&frame(&[(15, 15)]), at(2375));
    let window = sender.meters().unwrap().cwnd;
    assert!(window <= 3.0, "{window}");
}

#[test]
fn a_receiver_answers_every_second_packet_and_gaps_at_once() {
    let mut receiver = Receiver::new(&QuicParams::default(), Rng::stream(1, "acknowledgments"));
    let arrive = |receiver: &mut Receiver, number: u64, now| {
        receiver.on_packet(Incoming { subflow: 0, number, chunk: number as u32, marked: false }, now).acknowledge
    };
    assert!(!arrive(&mut receiver, 0, at(0)));
    assert_eq!(receiver.next_timer(), Some(at(25)));
    assert!(arrive(&mut receiver, 1, at(1)));
    assert_eq!(receiver.acknowledge(0, at(1)).ranges().collect::<Vec<_>>(), [(0, 1)]);
    assert!(arrive(&mut receiver, 3, at(2)), "2 is missing");
    let frame = receiver.acknowledge(0, at(5));
    assert_eq!((frame.ranges().collect::<Vec<_>>(), frame.delay_us), (vec![(3, 3), (0, 1)], 3000));
    assert!(!arrive(&mut receiver, 4, at(6)));
    assert_eq!(receiver.overdue(at(31)), Some(0));
}

#[test]
fn a_chunk_counts_once_on_whichever_subflow() {
    let mut receiver = Receiver::new(&QuicParams::default(), Rng::stream(1, "acknowledgments"));
    let mut arrive = |subflow, number, chunk| {
        receiver.on_packet(Incoming { subflow, number, chunk, marked: false }, at(0)).chunk.is_some()
    };
    let came = [arrive(0, 0, 0), arrive(1, 0, 2), arrive(0, 1, 1), arrive(1, 1, 1), arrive(1, 2, 2), arrive(0, 2, 3)];
    assert_eq!(came, [true, true, true, false, false, true]);
}

/// A receiver with these parameters, which packets of 1 Mbit/s reach: (subflow, number, chunk), one per millisecond.
fn acknowledged(params: &QuicParams, packets: &[(u8, u64, u32)]) -> Vec<bool> {
    let mut receiver = Receiver::new(params, Rng::stream(1, "acknowledgments"));
    let mut all = Vec::new();
    for (n, &(subflow, number, chunk)) in (0..).zip(packets) {
        let acknowledge = receiver.on_packet(Incoming { subflow, number, chunk, marked: false }, at(n)).acknowledge;
        if acknowledge {
            let _ = receiver.acknowledge(subflow, at(n));
            if let Some(other) = receiver.overdue(at(n)) {
                let _ = receiver.acknowledge(other, at(n));
            }
        }
        all.push(acknowledge);
    }
    all
}

#[test]
fn with_common_packet_numbers_overtaken_packets_do_not_count() {
    let common = QuicParams { packet_numbers: PacketNumbers::Common, ..QuicParams::default() };
    // In the order of sending each second one is acknowledged, whichever subflow it comes over.
    let in_order = [(0, 0, 0), (1, 0, 1), (0, 1, 2), (0, 2, 3)];
    assert_eq!(acknowledged(&common, &in_order), [false, true, false, true]);
    // The second subflow's packets overtake those of the first: only they count.
    let overtaken = [(1, 0, 1), (0, 0, 0), (1, 1, 3), (0, 1, 2), (1, 2, 5), (1, 3, 6)];
    assert_eq!(acknowledged(&common, &overtaken), [false, false, true, false, false, true]);
    assert_eq!(acknowledged(&QuicParams::default(), &overtaken), [false, false, true, true, false, true]);
}

#[test]
fn with_common_packet_numbers_both_subflows_are_acknowledged_with_the_delay_of_the_latest_packet() {
    let common = QuicParams { packet_numbers: PacketNumbers::Common, ..QuicParams::default() };
    let mut receiver = Receiver::new(&common, Rng::stream(1, "acknowledgments"));
    let packet = |subflow, number, chunk| Incoming { subflow, number, chunk, marked: false };
    assert!(!receiver.on_packet(packet(0, 0, 0), at(0)).acknowledge);
    assert!(receiver.on_packet(packet(1, 0, 1), at(3)).acknowledge);
    assert_eq!(receiver.acknowledge(1, at(3)).delay_us, 0);
    assert_eq!(receiver.overdue(at(3)), Some(0), "the other one is due with it");
    assert_eq!(receiver.acknowledge(0, at(3)).delay_us, 0, "not the 3 ms of its own packet");
    assert_eq!(receiver.overdue(at(100)), None);
}

#[test]
fn a_due_acknowledgment_is_sent_by_chance_and_differs_by_seed() {
    let by_chance = |seed| {
        let (ack_every, ack_chance) = (narrows_core::params::Packets(1), 0.5);
        let params = QuicParams { ack_every, ack_chance, ..QuicParams::default() };
        let mut receiver = Receiver::new(&params, Rng::stream(seed, "acknowledgments"));
        let mut acknowledge = |n: u32| {
            let packet = Incoming { subflow: 0, number: n.into(), chunk: n, marked: false };
            let due = receiver.on_packet(packet, at(n.into())).acknowledge;
            due.then(|| receiver.acknowledge(0, at(n.into()))).is_some()
        };
        (0..1000).map(&mut acknowledge).collect::<Vec<_>>()
    };
    let sent = by_chance(1).iter().filter(|&&sent| sent).count();
    assert!((450..550).contains(&sent), "{sent} of 1000");
    assert_ne!(by_chance(1), by_chance(2));
}
