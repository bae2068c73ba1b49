//! One arrival trace in two worlds: the live world's path makes the same decisions as the simulator about the same packets at the
//! same times, however late it is woken. Both use one `Network`. This test compares how they drive it: the simulator schedules
//! events, the path asks what is due. Figures and series are equal to the last bit.
use narrows_core::packet::Dscp;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Ecn, FlowId, HostId, PacketId, PacketMeta, Rng, Span, Time};
use narrows_host::layout::Layout;
use narrows_results::Series;
use narrows_results::input::TraceFiles;
use narrows_results::summary::{FlowSummary, HopSummary};
use narrows_scenario::transport::UdpEcn;
use narrows_scenario::{Scenario, Transport};
use narrows_sim::{Unwatched, Wanted};
use narrows_world::application::{Act, Application};
use narrows_world::build;
use narrows_world::meters::SenderStats;
use narrows_world::path::{Delivery, Path, PathObserver, Sampling};
use narrows_world::record::flow::FlowRecord;
use narrows_world::record::hop::capacity;

/// A datagram as the simulator's flow sends it.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Time,
    ip_len: u32,
    meta: PacketMeta,
    way: u16,
}

/// All datagrams of a scenario, by time.
fn arrivals(scenario: &Scenario, layout: &Layout) -> Vec<Arrival> {
    let mut all = Vec::new();
    let end = Time::ZERO + scenario.duration;
    for (number, flow) in layout.flows.iter().enumerate() {
        let group = &scenario.flows[flow.group];
        let Transport::Udp(udp) = &group.transport else { panic!("datagrams only") };
        let rng = build::member_stream(scenario, group, flow.member, "application");
        let mut application = Application::new(&group.traffic, rng);
        let meta = PacketMeta {
            hash: build::member_stream(scenario, group, flow.member, "hash").next_u32(),
            flow: FlowId(number as u32),
            // In this test all flows have the same two hosts.
            src: HostId(0),
            dst: HostId(1),
            dscp: group.dscp,
            ecn: match udp.ecn {
                UdpEcn::Off => Ecn::NotEct,
                UdpEcn::Ect0 => Ecn::Ect0,
                UdpEcn::Ect1 => Ecn::Ect1,
            },
            ..PacketMeta::default()
        };
        let mut acts = Some(flow.start);
        while let Some(at) = acts.filter(|&at| at < flow.stop && at <= end) {
            let (act, next) = application.act(at);
            let ip_len = match act {
                Act::Packet(ip_len) => Some(ip_len),
                Act::Message(payload) => Some(payload + group.transport.header().0 as u32),
                _ => None,
            };
            all.extend(ip_len.map(|ip_len| Arrival { at, ip_len, meta, way: flow.forward }));
            acts = next;
        }
    }
    all.sort_by_key(|arrival| arrival.at);
    all
}

/// The flows' records, as the simulator keeps them.
struct Flows {
    records: Vec<FlowRecord>,
    warmup: Time,
}

impl PathObserver for Flows {
    fn dropped(&mut self, meta: &PacketMeta, _: narrows_core::DropReason) {
        self.records[meta.flow.0 as usize].lost += 1;
    }

    fn copied(&mut self, _: PacketId, _: PacketId) {}

    fn sampled(&mut self, now: Time, spacing: Span) {
        self.records.iter_mut().for_each(|record| record.sample(now, spacing, None));
    }

    fn warmed_up(&mut self, now: Time) {
        assert_eq!(now, self.warmup);
        self.records.iter_mut().for_each(FlowRecord::restart);
    }
}

/// The parts of a result that must be the same in both worlds.
#[derive(PartialEq, Debug)]
struct Shown {
    hops: Vec<HopSummary>,
    flows: Vec<FlowSummary>,
    series: Vec<Series>,
}

fn simulated(scenario: &Scenario) -> Shown {
    let result = narrows_sim::run(scenario, &Wanted::RESULT, &mut Unwatched).expect("nobody ends it").result;
    let series = result.series.into_iter().filter(|series| series.source.starts_with("hop:")).collect();
    Shown { hops: result.summary.hops, flows: result.summary.flows, series }
}

/// The result of the live world's path when it is woken at this mean interval. Flows' series depend on the times of hand-over and
/// are left out.
fn replayed(scenario: &Scenario, apart: Span) -> Shown {
    let layout = Layout::new(scenario).expect("the live world has it");
    let lane = &layout.directions[0];
    let hops = &lane.hops;
    let (warmup, end) = (Time::ZERO + scenario.warmup, Time::ZERO + scenario.duration);
    let spacing = scenario.record.spacing(scenario.duration);
    let points = (scenario.duration.as_ns() / spacing.as_ns()) as usize + 1;
    let gauges = scenario.record.gauges.then_some(scenario.record.flows as usize);
    let mut path = Path::new(scenario, hops, &lane.routes, Bytes(1500), Sampling { spacing, warmup, points, gauges });
    let tracked = |n: usize| (n < scenario.record.flows as usize).then_some(points);
    let count = layout.flows.len();
    let digits = if count > 100 { 1 } else { 3 };
    let mut flows = Flows { records: (0..count).map(|n| FlowRecord::new(tracked(n), digits)).collect(), warmup };
    let mut rng = Rng::stream(scenario.seed, "wakes");
    let mut wake = Time::ZERO;
    let mut looks: Vec<Time> = Vec::new();
    while wake < end {
        wake += Span::from_secs_f64(apart.as_secs_f64() * rng.exponential()).max(Span::ns(1));
        looks.push(wake.min(end));
    }
    // A packet delivered just before the end of the warm-up does not count; one delivered exactly at the end does.
    looks.extend([warmup - Span::ns(1), warmup]);
    looks.sort_unstable();
    let mut looks = looks.into_iter().peekable();
    let header = |flow: FlowId| scenario.flows[layout.flows[flow.0 as usize].group].transport.header().0 as u32;
    // All routes end at the same hop, whose overhead the length still includes.
    let overhead = scenario.hops[hops[hops.len() - 1]].overhead.0 as u32;
    let look = |path: &mut Path, flows: &mut Flows, came: &[Time], now: Time| {
        path.advance(now, flows);
        while let Some(Delivery { id, queued: waited, at, .. }) = path.delivered() {
            let flow = path.meta(id).flow;
            flows.records[flow.0 as usize].datagram(at.since(came[id.index()]));
            let meta = path.release(id);
            let ip_len = meta.len - overhead;
            flows.records[meta.flow.0 as usize].received(ip_len, ip_len - header(meta.flow), waited);
        }
    };
    // When each packet in the path came, by its id.
    let mut came: Vec<Time> = Vec::new();
    for arrival in arrivals(scenario, &layout) {
        while let Some(now) = looks.next_if(|&now| now <= arrival.at) {
            look(&mut path, &mut flows, &came, now);
        }
        let id = path.insert(arrival.meta, arrival.ip_len, arrival.way);
        came.resize(came.len().max(id.index() + 1), Time::ZERO);
        came[id.index()] = arrival.at;
        path.offer(id, arrival.at, &mut flows);
    }
    for now in looks {
        look(&mut path, &mut flows, &came, now);
    }
    let names = scenario.flow_names();
    let mut summaries = Vec::new();
    for ((record, flow), name) in flows.records.into_iter().zip(&layout.flows).zip(&names) {
        let life = flow.stop.min(end).since(flow.start.max(warmup));
        let traffic = &scenario.flows[flow.group].traffic;
        let application = record.application(Some(traffic), None, None, end);
        summaries
            .push(FlowSummary { application, ..record.summary(name.clone(), "none", life, SenderStats::default()) });
    }
    let (mut figures, mut series) = (vec![None; hops.len()], vec![Vec::new(); hops.len()]);
    for (&hop, mut record) in hops.iter().zip(path.into_records()) {
        let spec = &scenario.hops[hop];
        let capacity = capacity(spec, warmup, end);
        figures[hop] = Some(record.summary(&spec.name, spec.queue.to_string(), capacity, end));
        series[hop] = record.series(&format!("hop:{}", spec.name), &names).collect();
    }
    Shown {
        hops: figures.into_iter().flatten().collect(),
        flows: summaries,
        series: series.into_iter().flatten().collect(),
    }
}

/// Reports the first difference between the worlds; all of them would fill pages.
fn assert_same(what: &str, scenario: &Scenario) -> Shown {
    let expected = simulated(scenario);
    // Nearly always in time; a few milliseconds late; and woken once or twice in the whole run.
    for apart in [Span::us(200), Span::ms(7), Span::ms(700)] {
        let got = replayed(scenario, apart);
        assert_eq!(got.hops, expected.hops, "{what}, woken every {apart:?}");
        assert_eq!(got.flows, expected.flows, "{what}, woken every {apart:?}");
        assert_eq!(got.series.len(), expected.series.len(), "{what}");
        for (got, expected) in got.series.iter().zip(&expected.series) {
            let differs = got.points.iter().zip(&expected.points).find(|(got, expected)| got != expected);
            assert!(got == expected, "{what}: {} of {}: {differs:?}", expected.metric, expected.source);
        }
    }
    expected
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "parity.toml", &TraceFiles(std::path::Path::new("")))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Four flows with random sending times, together 1.3 times 4 Mbit/s. Two of them use ECN.
fn flows(route: &str) -> String {
    let flow = |name: &str, traffic: &str, transport: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\nroute = {route}\nrtt = \"100ms\"\n\
             start = {{ uniform = [\"0s\", \"100ms\"] }}\ntraffic = {traffic}\ntransport = {transport}\n"
        )
    };
    flow("heavy", "{ kind = \"poisson\", rate = \"3mbit\", packet = \"1500B\" }", "\"udp\"")
        + &flow(
            "marked",
            "{ kind = \"poisson\", rate = \"1mbit\", packet = \"900B\" }",
            "{ kind = \"udp\", ecn = \"ect0\" }",
        )
        + &flow(
            "scalable",
            "{ kind = \"poisson\", rate = \"600kbit\", packet = \"700B\" }",
            "{ kind = \"udp\", ecn = \"ect1\" }",
        )
        + &flow("thin", "{ kind = \"thin\", size = \"172B\", interval = \"13ms\", jitter = 0.5 }", "\"udp\"")
        + &flow(
            "bursts",
            "{ kind = \"onoff\", rate = \"6mbit\", packet = \"1200B\", on = \"20ms\", off = \"150ms\" }",
            "\"udp\"",
        )
}

const HEAD: &str = "duration = \"4s\"\nwarmup = \"700ms\"\nseed = 3\n[record]\ninterval = \"50ms\"\ngauges = true\n";

#[test]
fn every_discipline_decides_as_it_does_in_the_simulator() {
    let links = [
        "rate = \"4mbit\"",
        "rate = \"4mbit\"\nrelease = \"start\"\nburst = \"4500B\"",
        "rate = [{ at = \"0s\", rate = \"5mbit\" }, { at = \"1300ms\", rate = \"0mbit\" }, { at = \"1500ms\", rate = \"3mbit\" }]",
    ];
    let (mut marks, mut drops) = (0, 0);
    for name in QueueConfig::NAMES {
        for link in links {
            let text = format!(
                "{HEAD}[[hop]]\nname = \"link\"\n{link}\nqueue = \"{name}\"\noverhead = \"18B\"\n{}",
                flows("[\"link\"]")
            );
            let shown = assert_same(&format!("{name} with {link}"), &parse(&text));
            assert!(shown.hops[0].packets > 1000 && shown.flows.len() == 5, "{name}: {:?}", shown.hops);
            marks += shown.hops[0].marks;
            drops += shown.hops[0].drops.total;
        }
    }
    assert!(marks > 1000 && drops > 1000, "{marks} marks and {drops} drops show little");
}

#[test]
fn chains_with_changing_delay_jitter_loss_and_a_trace_are_the_simulators() {
    let trace = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("parity.mahi");
    // 1500 B at each of these milliseconds: 8 in 24 ms are 4 Mbit/s.
    std::fs::write(&trace, "1\n1\n2\n9\n13\n20\n23\n24\n").expect("a trace");
    for queue in QueueConfig::NAMES {
        let text = format!(
            "{HEAD}[[hop]]\nname = \"radio\"\nrate = {{ trace = {trace:?} }}\nqueue = \"{queue}\"\ndelay = \"8ms\"\njitter = \"3ms\"\nloss = 0.02\n\
             [[hop]]\nname = \"line\"\nrate = \"3mbit\"\nqueue = \"{queue}\"\ndelay = [{{ at = \"0s\", delay = \"9ms\" }}, {{ at = \"1s\", delay = \"5ms\" }}]\n\
             jitter = \"5ms\"\noverhead = \"26B\"\n\
             [[hop]]\nname = \"last\"\nrate = \"100mbit\"\nqueue = \"fifo\"\nloss = 0.01\n\
             delay = [{{ at = \"0s\", delay = \"4ms\" }}, {{ at = \"700ms\", delay = \"0ms\" }}, {{ at = \"1500ms\", delay = \"3ms\" }}]\n{}{}",
            flows("[\"radio\", \"line\", \"last\"]"),
            flows("[\"line\", \"last\"]").replace("name = \"", "name = \"second_"),
        );
        let shown = assert_same(&format!("a chain of {queue}"), &parse(&text));
        assert!(shown.hops.iter().all(|hop| hop.packets > 1000 && hop.drops.total > 0), "{queue}: {:?}", shown.hops);
    }
}

#[test]
fn code_points_and_many_flows_are_told_apart_alike() {
    let many = "[[flow]]\nname = \"crowd\"\ncount = 200\nroute = [\"link\"]\nrtt = \"100ms\"\n\
                start = { uniform = [\"0s\", \"500ms\"] }\ntraffic = { kind = \"poisson\", rate = \"30kbit\", packet = \"300B\" }\n";
    for name in QueueConfig::NAMES {
        let text = format!(
            "{HEAD}flows = 4\n[[hop]]\nname = \"link\"\nrate = \"6mbit\"\nqueue = \"{name}\"\n{many}{}",
            flows("[\"link\"]").replace("rtt = ", "dscp = \"ef\"\nrtt = ")
        );
        let scenario = parse(&text);
        assert_eq!(scenario.flows[1].dscp, Dscp(46));
        assert_same(name, &Scenario { duration: Span::s(2), ..scenario });
    }
}

#[test]
fn what_arrives_when_a_shaper_may_send_comes_first_in_both_worlds() {
    // Each packet takes a millisecond. When a burst has filled the queue, each departure coincides with one arrival.
    let cbr = |name: &str, rate: &str, start: &str, stop: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\nroute = [\"first\", \"second\"]\nrtt = \"20ms\"\ntransport = \"udp\"\n\
             traffic = {{ kind = \"cbr\", rate = \"{rate}\", packet = \"1500B\" }}\nstart = \"{start}\"\nstop = \"{stop}\"\n"
        )
    };
    for queue in QueueConfig::NAMES {
        let hop = |name: &str| {
            format!("[[hop]]\nname = \"{name}\"\nrate = \"12mbit\"\nrelease = \"start\"\nqueue = \"{queue}\"\n")
        };
        let text = format!(
            "{}{}{}{}{}{}",
            // The path is woken at the end of the warm-up, which is not the time of a departure.
            HEAD.replace("700ms", "700500us"),
            hop("first"),
            hop("second"),
            cbr("even", "6mbit", "0s", "4s"),
            cbr("odd", "6mbit", "1ms", "4s"),
            cbr("burst", "1gbit", "300us", "1500us")
        );
        let shown = assert_same(queue, &parse(&text));
        assert!(shown.hops.iter().all(|hop| hop.packets > 3000), "{queue}: {:?}", shown.hops);
    }
}
