//! Whatever is legal can be written and read back; and the examples that people start from are legal.
use narrows_core::autorate::AutorateConfig;
use narrows_core::congestion::ControllerConfig;
use narrows_core::mechanism::MechanismConfig;
use narrows_core::netem::{Chance, Loss, Reorder};
use narrows_core::params::{Packets, ParamSpec, Unit};
use narrows_core::policer::{Exceed, Police};
use narrows_core::propagation::{Distribution, NamedDistribution};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Dscp, Rate, Span, Time};
use narrows_scenario::command::Fill;
use narrows_scenario::expect::{Expectation, Runs};
use narrows_scenario::model::Release;
use narrows_scenario::{
    CommandLine, DelaySpec, Family, Flow, Hop, NoTraces, RateSpec, Record, Rtt, Scenario, Start, Traffic, Transport,
};
use proptest::prelude::*;
use proptest::sample::select;

fn parse(text: &str) -> Result<Scenario, narrows_scenario::ScenarioError> {
    Scenario::parse(text, "dir/example.toml", &NoTraces)
}

#[test]
fn what_is_left_out_has_sensible_defaults() {
    let s = parse(
        r#"
        [[hop]]
        name = "a"
        rate = "10mbit"
        queue = "fifo"

        [[flow]]
        name = "f"
        rtt = "20ms"
        route = ["a"]

        [[flow]]
        name = "u"
        traffic = "cbr"
        rtt = "20ms"
        route = ["a"]
        "#,
    )
    .unwrap();
    assert_eq!(s.name, "example");
    assert_eq!((s.duration, s.warmup, s.seed), (Span::s(60), Span::ZERO, 1));
    assert_eq!(s.record, Record::default());
    assert_eq!(s.hops[0].rate, RateSpec::constant(Rate::mbit(10)));
    assert_eq!(
        (s.hops[0].delay.clone(), s.hops[0].loss.clone(), s.hops[0].release),
        (DelaySpec::constant(Span::ZERO), Loss::default(), Release::End)
    );
    let [tcp, udp] = s.flows.as_slice() else { panic!("two flows") };
    assert_eq!((tcp.count, tcp.start, tcp.stop), (1, Start::At(Time::ZERO), Time::ZERO + Span::s(60)));
    assert_eq!((tcp.traffic.name(), tcp.transport.name()), ("bulk", "tcp"));
    assert_eq!(tcp.controller, ControllerConfig::named("cubic"));
    for flow in [tcp, udp] {
        assert_eq!((&*flow.from, &*flow.to, flow.dscp), ("sender", "receiver", Dscp(0)));
    }
    assert_eq!((udp.transport.name(), &udp.controller), ("udp", &None));
}

#[test]
fn units_tables_and_schedules_are_read() {
    let s = parse(
        r#"
        name = "all of it"
        duration = "4min"
        warmup = "1.5s"
        seed = 0x10
        record = { interval = "100us", flows = 0 }
        hop = [{ name = "a", rate = [{ at = "0s", rate = "1.5mbit" }, { at = "3s", rate = "0bit" }, { at = "4s", rate = "1gbit" }],
                 delay = [{ at = "0s", delay = "2ms" }, { at = "30s", delay = "1ms" }],
                 queue = { kind = "fifo", limit = 30 }, release = "start", burst = "1514B" }]
        [[flow]]
        name = "f"
        count = 35
        rtt = { uniform = ["10ms", "30ms"] }
        start = { uniform = ["0s", "5s"] }
        route = ["a"]
        from = "phone"
        to = "server 1"
        dscp = "AF41"
        [flow.transport]
        kind = "tcp"
        initial_window = "3p"
        ecn = true
        "#,
    )
    .unwrap();
    let at = |s| Time::ZERO + Span::s(s);
    let steps = vec![(at(0), Rate::kbit(1500)), (at(3), Rate::ZERO), (at(4), Rate::gbit(1))];
    assert_eq!(s.hops[0].rate, RateSpec::Schedule(steps));
    assert_eq!(s.hops[0].delay, DelaySpec(vec![(at(0), Span::ms(2)), (at(30), Span::ms(1))]));
    assert_eq!(s.base_rtts(&s.flows[0]), (Span::ms(9), Span::ms(30)), "a millisecond less from 30 s on");
    assert_eq!(s.hops[0].queue.get("limit").as_deref(), Some("30p"));
    assert_eq!((s.hops[0].release, s.hops[0].burst), (Release::Start, Bytes(1514)));
    assert_eq!((s.seed, s.warmup, s.record.flows), (16, Span::ms(1500), 0));
    assert_eq!(s.flows[0].rtt, Rtt::Uniform(Span::ms(10), Span::ms(30)));
    assert_eq!(s.flows[0].start, Start::Uniform(at(0), at(5)));
    assert_eq!((&*s.flows[0].from, &*s.flows[0].to, s.flows[0].dscp), ("phone", "server 1", Dscp(34)));
    let Transport::Tcp(tcp) = &s.flows[0].transport else { panic!("tcp") };
    assert!(tcp.ecn && tcp.initial_window.0 == 3);
    assert_eq!(parse(&s.to_toml()), Ok(s));
}

#[test]
fn programs_need_neither_controller_nor_transport() {
    let text = r#"
        duration = "10s"
        hop = [{ name = "a", rate = "10mbit", queue = "fifo" }]
        [[flow]]
        name = "web"
        count = 2
        command = "iperf3 -c {peer} -t {duration} -p 520{n}"
        server = "iperf3 -s -1 -p 520{n} --logfile '/tmp/a \"b\".log'"
        rtt = "50ms"
        route = ["a"]
        start = { uniform = ["0s", "1s"] }
        [[flow]]
        name = "page"
        command = "curl http://{peer}/"
        controller = "bbr"
        transport = { kind = "tcp", ecn = true }
        rtt = "50ms"
        route = ["a"]
        "#;
    let s = parse(text).unwrap();
    let [web, page] = s.flows.as_slice() else { panic!("two flows") };
    assert_eq!((&web.controller, &web.traffic), (&None, &Traffic::Bulk(Default::default())));
    assert_eq!((page.controller.clone(), page.transport.name()), (ControllerConfig::named("bbr"), "tcp"));
    let [client, server] = web.programs().collect::<Vec<_>>()[..] else { panic!("two programs") };
    let fill = Fill { peer: "10.0.0.2".parse().unwrap(), duration: Span::s(9), n: 1 };
    let words = ["iperf3", "-c", "10.0.0.2", "-t", "9", "-p", "5201"];
    assert_eq!(client.argv(&fill), words);
    assert_eq!(server.argv(&fill).last().unwrap(), "/tmp/a \"b\".log");
    assert_eq!(s.validate(), Ok(()));
    let reason = "flow \"web\" runs a command: only the live world can do that; allowed here: traffic";
    assert_eq!(s.needs_live().as_deref(), Some(reason));
    let written = s.to_toml();
    assert!(!written.contains("traffic"), "{written}");
    assert_eq!(parse(&written), Ok(s.clone()));

    let mut both = s;
    both.flows[0].traffic = Traffic::named("web").unwrap();
    let message = "flow \"web\": traffic beside command: a program decides what it sends; allowed: one of the two";
    assert_eq!(both.validate().map_err(|error| error.to_string()), Err(message.to_owned()));
}

/// Texts for a parameter; some are out of its range.
fn text(spec: &ParamSpec) -> BoxedStrategy<String> {
    let scaled =
        |units: &'static [&'static str]| (0u64..20_000, select(units)).prop_map(|(n, u)| format!("{n}{u}")).boxed();
    match spec.unit {
        Unit::Span => scaled(&["ns", "us", "ms", "s"]),
        Unit::Rate => scaled(&["bit", "kbit", "mbit"]),
        Unit::Bytes => scaled(&["B", "KB"]),
        Unit::Packets => scaled(&["p", ""]),
        Unit::Limit => prop_oneof![scaled(&["p", "B", "KB"]), (0.0..1e6).prop_map(|x: f64| format!("{x}bdp"))].boxed(),
        Unit::Count => any::<u32>().prop_map(|n| n.to_string()).boxed(),
        Unit::Number => prop_oneof![0.0..1.0, -10.0..1e10].prop_map(|x: f64| x.to_string()).boxed(),
        Unit::Switch => any::<bool>().prop_map(|b| b.to_string()).boxed(),
        Unit::Choice(words) => select(words).prop_map(str::to_owned).boxed(),
        Unit::Kind(names) => (select(names), select(&["", ":hystart=false", ":dominant=0.7;x=1", ":dominant=0.7"][..]))
            .prop_map(|(name, params)| format!("{name}{params}"))
            .boxed(),
    }
}

macro_rules! any_kind {
    ($name:ident, $Type:ident) => {
        fn $name() -> BoxedStrategy<$Type> {
            let one = |entry: narrows_core::registry::Entry| {
                let texts: Vec<_> = entry.params.iter().map(|spec| proptest::option::of(text(spec))).collect();
                texts.prop_map(move |texts| {
                    let mut kind = $Type::named(entry.name).unwrap();
                    for (spec, text) in entry.params.iter().zip(texts) {
                        let before = kind.clone();
                        if text.is_some_and(|text| kind.set(spec.name, &text).is_err()) || kind.validate().is_err() {
                            kind = before;
                        }
                    }
                    kind
                })
            };
            proptest::strategy::Union::new($Type::entries().into_iter().map(one)).boxed()
        }
    };
}

any_kind!(any_queue, QueueConfig);
any_kind!(any_controller, ControllerConfig);
any_kind!(any_traffic, Traffic);
any_kind!(any_transport, Transport);

fn any_rate() -> impl Strategy<Value = RateSpec> {
    let steps = prop::collection::vec((1..u64::from(u32::MAX), 0..10_000_000_000u64), 0..4);
    let schedule = (1..10_000_000_000u64, steps, 1..1_000_000u64).prop_map(|(first, steps, last)| {
        let mut schedule = vec![(Time::ZERO, Rate::bit(first))];
        for (gap, rate) in steps {
            let (at, _) = schedule[schedule.len() - 1];
            schedule.push((at + Span::ns(gap), Rate::bit(rate)));
        }
        if let [_, .., end] = schedule.as_mut_slice() {
            end.1 = Rate::bit(last);
        }
        RateSpec::Schedule(schedule)
    });
    let aggregates = (1..=1024u32, 1..=1_000_000_000_000u64)
        .prop_map(|(packets, mean)| RateSpec::aggregates(packets, Rate::bit(mean)).expect("it takes some time"));
    prop_oneof![schedule, aggregates]
}

fn any_delay() -> impl Strategy<Value = DelaySpec> {
    let steps = prop::collection::vec((1..u64::from(u32::MAX), 0..u64::from(u32::MAX)), 0..3);
    (0..u64::from(u32::MAX), steps).prop_map(|(first, steps)| {
        let mut at = Time::ZERO;
        let later = steps.into_iter().map(|(gap, delay)| {
            at += Span::ns(gap);
            (at, Span::ns(delay))
        });
        DelaySpec(std::iter::once((Time::ZERO, Span::ns(first))).chain(later).collect())
    })
}

fn any_chance() -> impl Strategy<Value = Chance> {
    let correlation = prop_oneof![Just(0.0), 0.0..=1.0];
    (0.0..1.0, correlation).prop_map(|(share, correlation)| Chance { share, correlation })
}

fn any_loss() -> impl Strategy<Value = Loss> {
    let of_bursts = (0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0);
    let of_bursts = of_bursts.prop_map(|(p, r, bad, good)| Loss::Gemodel { p, r, bad, good });
    prop_oneof![any_chance().prop_map(Loss::Random), of_bursts]
}

/// Copies, changed bits, reordering, a limit, a policer.
type Rarer = (Option<Chance>, Option<Chance>, Option<Reorder>, Option<Packets>, Option<Police>);

fn any_effects() -> impl Strategy<Value = Rarer> {
    let reorder = (any_chance(), 1..100u32).prop_map(|(chance, gap)| Reorder { chance, gap });
    let limit = (1..1_000_000_000u32).prop_map(Packets);
    let police = (1..1_000_000_000_000u64, 1..1_000_000_000u64, select(vec![Exceed::Drop, Exceed::Mark]));
    let police = police.prop_map(|(rate, burst, exceed)| Police { rate: Rate::bit(rate), burst: Bytes(burst), exceed });
    use proptest::option::of;
    (of(any_chance()), of(any_chance()), of(reorder), of(limit), of(police))
}

/// A shaper for a mechanism: one of all, by the mechanism's name.
fn any_autorate(mechanism: MechanismConfig) -> AutorateConfig {
    let names = AutorateConfig::NAMES;
    AutorateConfig::named(names[mechanism.name().len() % names.len()]).unwrap()
}

/// Whether a mechanism may vary it.
fn is_constant(rate: &RateSpec) -> bool {
    matches!(rate, RateSpec::Schedule(steps) if steps.len() == 1) && rate.initial() > Rate::ZERO
}

fn any_hop() -> impl Strategy<Value = Hop> {
    use NamedDistribution::{Normal, Pareto, Paretonormal, Uniform};
    let distributions = [Uniform, Normal, Pareto, Paretonormal].map(Distribution::Named);
    let times = (any_delay(), 0.0..=1.0, select(distributions.to_vec()), any::<bool>());
    let mechanisms = select(MechanismConfig::NAMES.to_vec()).prop_map(|name| MechanismConfig::named(name).unwrap());
    let burst = (proptest::option::of(0..1_000_000u64), proptest::option::weighted(0.3, mechanisms));
    let plain = (times, 0..1000u64, (any_loss(), any_effects()), burst);
    (any_rate(), any_queue(), plain, "[a-zé0-9._+-]{1,12}").prop_map(
        |(
            rate,
            queue,
            ((delay, jitter, distribution, overtake), overhead, (loss, rarer), (burst, mechanism)),
            name,
        )| Hop {
            autorate: mechanism.clone().filter(|_| burst.is_none() && is_constant(&rate)).map(any_autorate),
            mechanism: mechanism.filter(|_| burst.is_none() && is_constant(&rate)),
            jitter: Span::ns((delay.min().as_ns() as f64 * jitter) as u64),
            delay,
            distribution,
            overtake,
            overhead: Bytes(overhead),
            loss,
            duplicate: rarer.0,
            corrupt: rarer.1,
            reorder: rarer.2,
            delay_limit: rarer.3,
            police: rarer.4,
            release: if burst.is_some() { Release::Start } else { Release::End },
            burst: Bytes(burst.unwrap_or(0)),
            ..Hop::new(name, rate, queue)
        },
    )
}

/// A client and perhaps a server, or nothing.
fn any_command() -> impl Strategy<Value = (Option<CommandLine>, Option<CommandLine>)> {
    let line = || "[a-z{}'\"\\\\ #é]{1,12}".prop_filter_map("a legal one", |text| CommandLine::parse(&text).ok());
    proptest::option::weighted(0.2, (line(), proptest::option::of(line())))
        .prop_map(|lines| lines.map_or((None, None), |(client, server)| (Some(client), server)))
}

fn any_flow(hops: usize) -> impl Strategy<Value = Flow> {
    let way = || prop::sample::subsequence((0..hops).collect::<Vec<_>>(), 0..=hops).prop_shuffle();
    let kinds = (any_controller(), any_traffic(), any_transport(), any_command());
    let times =
        (any::<u32>(), proptest::option::of(any::<u32>()), 0..4_000_000_000u64, proptest::option::of(any::<u32>()));
    (kinds, times, way(), way(), 1..100u32, any::<prop::sample::Index>(), 1..u64::MAX / 2).prop_map(
        move |(
            (controller, traffic, transport, (command, server)),
            (rtt, wide, start, late),
            mut route,
            back,
            count,
            hop,
            stop,
        )| {
            if route.is_empty() {
                route.push(hop.index(hops));
            }
            let transport = if traffic.carriers().contains(&transport.name()) {
                transport
            } else {
                Transport::named(traffic.carriers()[0]).unwrap()
            };
            let traffic = if command.is_some() { Traffic::Bulk(Default::default()) } else { traffic };
            let splits = transport.is_controlled() && controller.splits();
            let transport = if splits { Transport::named("quic").unwrap() } else { transport };
            // The worst case of 8 hops with the longest delays.
            let least = Span::s(40);
            let rtt = least + Span::ns(u64::from(rtt));
            let start = Time::from_ns(start);
            Flow {
                count,
                controller: transport.is_controlled().then_some(controller),
                traffic,
                command,
                server,
                rtt: wide.map_or(Rtt::Fixed(rtt), |wide| Rtt::Uniform(rtt, rtt + Span::ns(wide.into()))),
                route,
                back: back.clone(),
                subflow_route: if splits { back.clone() } else { Vec::new() },
                start: late.map_or(Start::At(start), |late| Start::Uniform(start, start + Span::ns(late.into()))),
                transport,
                family: if count % 2 == 0 { Family::V6 } else { Family::V4 },
                from: format!("h{}", count % 7),
                to: "b.1".into(),
                dscp: Dscp(count as u8 % 64),
                ..Flow::new("", rtt, start + Span::s(5) + Span::ns(stop))
            }
        },
    )
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    prop::collection::vec(any_hop(), 1..4).prop_flat_map(|hops| {
        let flows = prop::collection::vec(any_flow(hops.len()), 1..4);
        let plain = (
            ".{0,20}",
            10..10_000u64,
            0..9_999_999_999u64,
            any::<u64>(),
            proptest::option::of(1..1_000_000u64),
            (0..1000u32, any::<bool>()),
        );
        (Just(hops), flows, plain).prop_map(
            |(hops, mut flows, (name, duration, warmup, seed, interval, (record, gauges)))| {
                for (i, flow) in flows.iter_mut().enumerate() {
                    flow.name = format!("f{i}");
                }
                let interval = interval.map(Span::us);
                let record = Record { interval, flows: record, gauges };
                Scenario {
                    warmup: Span::ns(warmup),
                    seed,
                    record,
                    expects: expects(seed),
                    ..Scenario::new(name, Span::s(duration), hops, flows)
                }
            },
        )
    })
}

/// None, or one of each kind.
fn expects(seed: u64) -> Vec<Expectation> {
    let texts = ["bulk.goodput >= 90mbit", "sum(a b.rtt.p99)<20ms", "hop.x.utilisation == 95%"];
    let one = |(n, text): (usize, &str)| {
        let runs = if n == 1 { Runs::Mean } else { Runs::Each };
        Expectation { runs, ..Expectation::parse(text).expect("it is legal") }
    };
    texts.into_iter().enumerate().take(seed as usize % 4).map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_legal_is_written_and_read_back(s in any_scenario()) {
        prop_assume!(s.validate().is_ok());
        let text = s.to_toml();
        match parse(&text) {
            Ok(back) => prop_assert_eq!(back, s),
            Err(error) => prop_assert!(false, "{}\n{}", error, text),
        }
    }
}
