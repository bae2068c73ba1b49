//! A run in steps is the run at once, and what it shows between two steps adds up.
use crate::harness::{parse, series};
use crate::random;
use narrows_core::queue::Observer;
use narrows_core::{FlowId, Span, Time};
use narrows_results::packets::{Capture, What};
use narrows_scenario::{NoTraces, RateSpec, Scenario, TraceSource, Transport};
use narrows_sim::{Place, Session, Unwatched, Wanted};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// As an environment for learning runs it.
const NO_FIGURES: Wanted = Wanted { figures: false, ..Wanted::RESULT };

fn scenario(duration: &str) -> Scenario {
    let text = format!(
        "duration = \"{duration}\"\n[[hop]]\nname = \"h\"\nrate = \"10mbit\"\nqueue = \"codel\"\nloss = 0.01\n\
         [[flow]]\nname = \"f\"\ncount = 3\nrtt = \"40ms\"\nroute = [\"h\"]\n"
    );
    Scenario::parse(&text, "session.toml", &NoTraces).expect("it is legal")
}

#[test]
fn steps_do_not_change_what_happens() {
    let mut at_once = Session::new(scenario("5s"), &NO_FIGURES);
    at_once.advance(Time::ZERO + Span::s(5)).unwrap();
    let mut in_steps = Session::new(scenario("5s"), &NO_FIGURES);
    let mut step = Span::us(1);
    while in_steps.now() < Time::ZERO + Span::s(5) {
        in_steps.advance(in_steps.now() + step).unwrap();
        step = (step * 3 / 2 + Span::us(1)).min(Span::ms(7));
    }
    assert!(at_once.events() > 3000, "{}", at_once.events());
    assert_eq!(at_once.events(), in_steps.events());
    assert_eq!(at_once.now(), in_steps.now());
}

#[test]
fn the_end_of_the_scenario_is_the_end() {
    let mut session = Session::new(scenario("1s"), &NO_FIGURES);
    session.advance(Time::ZERO + Span::s(9)).unwrap();
    assert_eq!(session.now(), Time::ZERO + Span::s(1));
}

/// What happens in a run at once and in a session of random steps, as the number of events: each retransmission, timer and
/// acknowledgment is one, so another order of simultaneous events shows in it.
fn events(scenario: &Scenario, steps: &[u64]) -> (u64, u64) {
    let at_once = narrows_sim::run(scenario, &Wanted::RESULT, &mut Unwatched).expect("nobody ends it early").result;
    let mut session = Session::new(scenario.clone(), &NO_FIGURES);
    for step in steps.iter().cycle() {
        session.advance(session.now() + Span::us(*step)).expect("it keeps to its budget");
        if session.now() == Time::ZERO + scenario.duration {
            break;
        }
    }
    (session.events(), at_once.summary.cost.events)
}

/// Hundreds of flows with many simultaneous events: a run that may use two threads.
fn many_flows() -> impl Strategy<Value = String> {
    let hop = (prop::sample::select(vec![240u32, 600, 1200]), prop::sample::select(vec!["fifo", "fq_codel", "codel"]));
    let groups = prop::collection::vec((130u32..200, 5u64..20, any::<bool>(), 0u64..3), 2..=3);
    (hop, groups).prop_map(|((mbit, queue), groups)| {
        let mut text = format!(
            "duration = \"200ms\"\nwarmup = \"50ms\"\n[[hop]]\nname = \"h\"\nrate = \"{mbit}mbit\"\nqueue = \"{queue}\"\n\
             delay = \"1ms\"\n"
        );
        for (n, (count, rtt, udp, start)) in groups.into_iter().enumerate() {
            let traffic =
                if udp { "traffic = { kind = \"cbr\", rate = \"1200kbit\", packet = \"1500B\" }\ntransport = \"udp\"" } else { "" };
            text += &format!(
                "[[flow]]\nname = \"g{n}\"\ncount = {count}\nrtt = \"{rtt}ms\"\nstart = \"{start}ms\"\nroute = [\"h\"]\n{traffic}\n"
            );
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_is_the_run_at_once(
        text in prop_oneof![1 => random::scenario(), 1 => many_flows()],
        seed in 0u64..1000,
        steps in prop::collection::vec(1u64..100_000, 1..20),
    ) {
        let (session, at_once) = events(&parse(&format!("seed = {seed}\n{text}")), &steps);
        prop_assert_eq!(session, at_once);
    }

    #[test]
    fn a_session_leaves_the_run_at_once_and_its_packets(
        text in random::scenario(),
        seed in 0u64..1000,
        steps in prop::collection::vec(1u64..400_000, 1..20),
    ) {
        let scenario = in_single_segments(&format!("seed = {seed}\n{text}"));
        let wanted = Wanted::packets(Capture { recovery: true, ..Capture::default() });
        let mut session = Session::new(scenario.clone(), &wanted);
        for step in steps {
            session.advance(session.now() + Span::us(step)).expect("it keeps to its budget");
        }
        let at_once = narrows_sim::run(&scenario, &wanted, &mut Unwatched).expect("nobody ends it early");
        prop_assert!(session.finish().expect("it keeps to its budget") == at_once);
    }

    #[test]
    fn every_packet_that_was_sent_is_delivered_or_dropped_or_shown(
        text in random::scenario(),
        seed in 0u64..1000,
        steps in prop::collection::vec(1u64..400_000, 1..20),
        opportunities in prop::option::of(prop::collection::vec(0u64..100_000, 1..100)),
    ) {
        let mut scenario = in_single_segments(&format!("seed = {seed}\n{text}"));
        if let Some(mut opportunities) = opportunities {
            // A trace sends long packets in parts.
            opportunities.sort_unstable();
            let opportunities = opportunities.into_iter().map(Span::us).collect();
            scenario.hops[0].rate =
                RateSpec::Trace { source: TraceSource::File("t".into()), opportunities, period: Span::ms(100) };
        }
        let mut session = Session::new(scenario, &Wanted::packets(Capture::default()));
        for step in steps {
            session.advance(session.now() + Span::us(step)).expect("it keeps to its budget");
            adds_up(&session);
        }
    }
}

/// Packets of several segments cannot be recorded. Copies are not, and the record of a packet ends where one of its bits was changed.
fn in_single_segments(text: &str) -> Scenario {
    let mut scenario = parse(text);
    for hop in &mut scenario.hops {
        (hop.duplicate, hop.corrupt) = (None, None);
    }
    for flow in &mut scenario.flows {
        if let Transport::Tcp(tcp) = &mut flow.transport {
            tcp.gso_max_segs.0 = 1;
        }
    }
    scenario
}

/// The packets of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Account {
    sent: u64,
    delivered: u64,
    dropped: u64,
    queued: u64,
    in_flight: u64,
}

/// Compares what a session shows of each packet with the last event in the log, which is kept apart from it.
fn adds_up(session: &Session) {
    let log = session.log().expect("it records");
    let mut last = vec![What::Sent; log.packets.len()];
    for event in &log.events {
        last[event.packet as usize] = event.what;
    }
    let mut accounts = vec![Account::default(); log.flows.len()];
    for (packet, last) in log.packets.iter().zip(&last) {
        let account = &mut accounts[packet.flow as usize];
        account.sent += 1;
        account.delivered += u64::from(*last == What::Arrived);
        account.dropped += u64::from(matches!(last, What::Dropped(..)));
    }
    let (mut shown, mut lengths) = (BTreeMap::new(), vec![0; log.hops.len()]);
    for view in session.packets() {
        let index = view.recorded.expect("the capture covers every packet");
        assert!(shown.insert(index, view).is_none(), "{view:?} is shown twice");
        let packet = &log.packets[index];
        let facts = (packet.flow as usize, packet.kind, packet.ip_len, packet.subflow);
        assert_eq!((view.flow, view.kind, view.ip_len, view.subflow), facts);
        let account = &mut accounts[view.flow];
        let (at, earliest, latest) = match view.place {
            // A queue's decision about a packet is recorded when the link hands it over.
            Place::Queue { hop, since } => {
                lengths[hop] += 1;
                (What::Enqueued(hop as u16), packet.sent, since)
            }
            Place::Link { hop, since } => (What::Enqueued(hop as u16), packet.sent, since),
            Place::Propagation { hop, arrives } => (What::Forwarded(hop as u16), session.now(), arrives),
            Place::Return { arrives } => {
                assert!(!packet.kind.is_forward(), "{view:?}");
                let crossed = matches!(last[index], What::Forwarded(_));
                (if crossed { last[index] } else { What::Sent }, session.now(), arrives)
            }
        };
        assert_eq!(last[index], at, "{view:?}");
        assert!(earliest <= latest, "{view:?} at {:?}", session.now());
        let is_queued = matches!(view.place, Place::Queue { .. });
        account.queued += u64::from(is_queued);
        account.in_flight += u64::from(!is_queued);
    }
    for account in accounts {
        let Account { sent, delivered, dropped, queued, in_flight } = account;
        assert_eq!(queued + in_flight + delivered + dropped, sent, "{account:?} at {:?}", session.now());
    }
    let backlogs = (0..lengths.len()).map(|hop| session.backlog(hop).packets);
    assert!(backlogs.eq(lengths.iter().copied()), "{lengths:?} packets are shown in the queues");
}

/// The gauges of a queue as they are read.
#[derive(Default)]
struct Gauges(BTreeMap<&'static str, f64>);

impl Observer for Gauges {
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.0.insert(name, value);
    }

    fn flow_gauge(&mut self, _: FlowId, _: &'static str, _: f64) {}
}

#[test]
fn gauges_windows_and_queue_lengths_are_those_of_the_series() {
    let text = "duration = \"2s\"\nwarmup = \"0s\"\n[record]\ngauges = true\ninterval = \"100ms\"\n\
                [[hop]]\nname = \"h\"\nrate = \"10mbit\"\nqueue = \"pie\"\n\
                [[flow]]\nname = \"f\"\nrtt = \"40ms\"\nroute = [\"h\"]\n";
    let mut session = Session::new(parse(text), &Wanted::RESULT);
    assert!(session.log().is_none() && session.meters(0).is_none(), "nothing is recorded or established");
    // A sample is due then, and PIE's timer, every 15 ms, is not.
    session.advance(Time::ZERO + Span::ms(1400)).expect("it keeps to its budget");
    let (mut gauges, window) = (Gauges::default(), session.meters(0).expect("it is established").cwnd);
    session.observe(0, &mut gauges);
    let queued = f64::from(session.backlog(0).packets);
    assert!(queued > 1.0 && gauges.0.values().any(|value| *value > 0.0), "{queued} packets, {:?}", gauges.0);
    let result = session.finish().expect("it keeps to its budget").result;
    let at = |source: &str, metric: &str| {
        let points = series(&result, source, metric);
        points.iter().find(|(at, _)| (at - 1.4).abs() < 1e-9).expect("a point").1
    };
    assert_eq!((window, queued), (at("flow:f", "cwnd_packets"), at("hop:h", "queue_packets")));
    for (name, value) in gauges.0 {
        assert_eq!(value, at("hop:h", name), "{name}");
    }
}

#[test]
fn a_run_without_figures_has_its_cost() {
    let run = Session::new(scenario("1s"), &NO_FIGURES).finish().expect("it keeps to its budget");
    let summary = &run.result.summary;
    assert!(summary.hops.is_empty() && summary.flows.is_empty() && run.result.series.is_empty());
    let whole = narrows_sim::run(&scenario("1s"), &Wanted::RESULT, &mut Unwatched).expect("nobody ends it early");
    assert_eq!(summary.cost.events, whole.result.summary.cost.events);
}
