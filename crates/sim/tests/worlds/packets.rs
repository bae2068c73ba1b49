//! The record of every packet agrees with the summary, and recording changes nothing.
use crate::harness::{self, parse, run};
use narrows_core::Time;
use narrows_results::packets::{Capture, PacketKind, PacketLog, What};
use narrows_scenario::Scenario;

const LINKS: &str = "duration = \"5s\"\nwarmup = \"0s\"\n\
    [[hop]]\nname = \"up\"\nrate = \"8mbit\"\ndelay = \"5ms\"\nloss = 0.002\nqueue = \"QUEUE\"\n\
    [[hop]]\nname = \"back\"\nrate = \"1mbit\"\nqueue = \"fifo\"\n";

fn scenario(queue: &str, flow: &str) -> Scenario {
    over(&LINKS.replace("QUEUE", queue), flow)
}

fn over(links: &str, flow: &str) -> Scenario {
    let back = if flow.contains("udp") { "" } else { "back = [\"back\"]\n" };
    let flow = format!("[[flow]]\nname = \"f\"\ncount = 2\nrtt = \"40ms\"\nroute = [\"up\"]\n{back}{flow}\n");
    parse(&format!("{links}{flow}"))
}

fn recorded(scenario: &Scenario, capture: Capture) -> PacketLog {
    let (result, log) = harness::recorded(scenario, capture);
    assert_eq!(result, run(scenario), "recording changes nothing");
    log
}

fn count(log: &PacketLog, is_it: impl Fn(What) -> bool) -> u64 {
    log.events.iter().filter(|event| is_it(event.what)).count() as u64
}

#[test]
fn packets_add_up_to_the_summary() {
    let udp = "transport = \"udp\"\ntraffic = { kind = \"poisson\", rate = \"6mbit\" }";
    let ecn = "transport = { kind = \"tcp\", ecn = true }";
    let flows = [("fq_codel", ecn), ("fifo", ""), ("codel", "transport = \"quic\""), ("pie", "controller = \"bbr\"")];
    for (queue, flow) in flows.into_iter().chain([("fifo", udp)]) {
        let scenario = scenario(queue, flow);
        let log = recorded(&scenario, Capture::default());
        let summary = run(&scenario).summary;
        for (hop, figures) in (0..).zip(&summary.hops) {
            assert_eq!(count(&log, |what| what == What::Enqueued(hop)), figures.offered_packets, "{queue} {flow}");
            assert_eq!(count(&log, |what| matches!(what, What::Dropped(at, _) if at == hop)), figures.drops.total);
            assert_eq!(count(&log, |what| what == What::Marked(hop)), figures.marks);
        }
        let again =
            log.packets.iter().filter(|packet| packet.kind == PacketKind::Data && packet.retransmission).count() as u64;
        assert_eq!(again, summary.flows.iter().filter_map(|flow| flow.retransmits).sum::<u64>(), "{queue} {flow}");
        let times = || log.events.iter().filter(|event| !matches!(event.what, What::Dequeued(_) | What::Marked(_)));
        assert!(times().is_sorted_by_key(|event| event.at));
    }
}

#[test]
fn a_window_and_a_limit_bound_the_record() {
    let scenario = scenario("fifo", "");
    let ms = |ms| Time::ZERO + narrows_core::Span::ms(ms);
    let whole = recorded(&scenario, Capture::default());
    let part = recorded(&scenario, Capture { from: ms(1000), until: Some(ms(2000)), ..Capture::default() });
    let expected: Vec<_> = whole.packets.iter().filter(|packet| (ms(1000)..ms(2000)).contains(&packet.sent)).collect();
    assert_eq!(part.packets.len(), expected.len());
    let places = |log: &PacketLog, packet| (log.stream_offset(packet), packet.number, packet.ip_len);
    assert!(part.packets.iter().zip(expected).all(|(a, b)| places(&part, a) == places(&whole, b)));
    let first = recorded(&scenario, Capture { limit: 100, ..Capture::default() });
    assert_eq!(first.packets, whole.packets[..100]);
    assert_eq!(first.missed, whole.packets.len() as u64 - 100);
    assert!(first.cut().is_some() && whole.cut().is_none());
}

#[test]
fn acknowledgments_are_as_long_on_the_link_as_in_the_record() {
    // 52 bytes of headers, then 4 and 8 for each SACK block (Linux `tcp_established_options`).
    let links = LINKS.replace("QUEUE", "fifo").replace("loss = 0.002", "loss = 0.05");
    let scenario = over(&links, "controller = \"bbr\"");
    let log = recorded(&scenario, Capture::default());
    let acks = || log.packets.iter().filter(|packet| packet.kind == PacketKind::Ack);
    assert!(acks().all(|ack| ack.ip_len == 52 + [0, 12, 20, 28][usize::from(ack.ranges)]));
    let most = acks().map(|ack| ack.ranges).max();
    assert_eq!(most, Some(3), "timestamps leave room for three blocks");
    let sent = log.events.iter().filter(|event| event.what == What::Dequeued(1));
    let bytes: u32 = sent.map(|event| log.packets[event.packet as usize].ip_len).sum();
    let carried = run(&scenario).summary.hops[1].utilisation * 1e6 / 8.0 * 5.0;
    assert!((carried - f64::from(bytes)).abs() < 100.0, "{carried} B on the link, {bytes} in the record");
}
