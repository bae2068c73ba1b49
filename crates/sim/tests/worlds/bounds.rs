//! Parameters at their bounds, two at a time: time never runs backwards, no round trip is shorter than the base RTT, and no
//! packet is invented or forgotten.
use crate::harness::check;
use narrows_core::congestion::ControllerConfig;
use narrows_core::params::{ParamSpec, Unit, WORDS};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Entry;
use narrows_core::registry::Registered;
use narrows_core::{Rng, Time};
use narrows_scenario::{NoTraces, Scenario, Traffic, Transport};
use narrows_sim::{Run, Unwatched, Wanted, Watch};
use proptest::prelude::*;

/// Calls of the watch after which a long run is ended; each is 65 536 events or a sample.
const MAX_TICKS: u32 = 40;

/// A parameter at one of its bounds: its place in the scenario, and its value as text.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Extreme {
    section: Section,
    /// The kind that has the parameter; empty for a plain key.
    kind: &'static str,
    name: &'static str,
    value: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Section {
    Hop,
    Flow,
    Queue,
    Controller,
    Transport,
    Traffic,
}

/// Plain keys of hops and flows, with their bounds, which are the same in every scenario.
const PLAIN: &[(Section, &str, &[&str])] = &[
    (Section::Hop, "rate", &["1bit", "1000gbit"]),
    (Section::Hop, "delay", &["0s", "300ms"]),
    (Section::Hop, "jitter", &["0s", "20ms"]),
    (Section::Hop, "overhead", &["0B", "1000B"]),
    (Section::Hop, "loss", &["0.0", "0.9999"]),
    (Section::Hop, "release", &["end", "start"]),
    (Section::Hop, "burst", &["0B", "1000000000B"]),
    (Section::Flow, "count", &["1", "300"]),
    (Section::Flow, "rtt", &["1us", "3600s"]),
    (Section::Flow, "start", &["0s", "1ns"]),
];

/// The minimum and maximum of a parameter, or all of its words.
fn bounds(spec: &ParamSpec) -> Vec<String> {
    match spec.unit {
        Unit::Switch => vec!["true".into(), "false".into()],
        Unit::Choice(words) | Unit::Kind(words) => words.iter().map(|word| (*word).to_owned()).collect(),
        _ => {
            let range = spec.allowed.split(" to ").map(str::to_owned).collect::<Vec<_>>();
            let words = WORDS.iter().filter(|word| spec.allowed.contains(*word)).map(|word| (*word).to_owned());
            if range.len() == 2 { range } else { words.collect() }
        }
    }
}

fn of_kinds(section: Section, entries: Vec<Entry>) -> impl Iterator<Item = Extreme> {
    entries.into_iter().flat_map(move |Entry { name: kind, params, .. }| {
        let extremes = params.into_iter().flat_map(move |spec| {
            let bare = spec.unit.is_bare();
            let value = move |bound: String| {
                if bare && !WORDS.contains(&bound.as_str()) { bound } else { format!("\"{bound}\"") }
            };
            bounds(&spec).into_iter().map(move |bound| Extreme { section, kind, name: spec.name, value: value(bound) })
        });
        extremes.collect::<Vec<_>>()
    })
}

fn extremes() -> Vec<Extreme> {
    let plain = PLAIN.iter().flat_map(|&(section, name, bounds)| {
        let bare = matches!(name, "loss" | "count");
        let value = move |bound: &&str| if bare { (*bound).to_owned() } else { format!("\"{bound}\"") };
        bounds.iter().map(move |bound| Extreme { section, kind: "", name, value: value(bound) })
    });
    plain
        .chain(of_kinds(Section::Queue, QueueConfig::entries()))
        .chain(of_kinds(Section::Controller, ControllerConfig::entries()))
        .chain(of_kinds(Section::Transport, Transport::entries()))
        .chain(of_kinds(Section::Traffic, Traffic::entries()))
        .collect()
}

/// The contents of the sections of one hop or of one flow.
struct Part {
    plain: Keys,
    kinds: Vec<(Section, &'static str, Keys)>,
}

/// Keys with their values as text.
type Keys = Vec<(&'static str, String)>;

impl Part {
    fn takes(&self, extreme: &Extreme) -> bool {
        let other = self.kinds.iter().find(|(section, ..)| *section == extreme.section);
        other.is_none_or(|&(_, kind, _)| kind == extreme.kind)
            && !self.plain.iter().any(|(name, _)| extreme.kind.is_empty() && *name == extreme.name)
    }

    fn set(&mut self, extreme: &Extreme) {
        let Extreme { section, kind, name, value } = extreme.clone();
        if kind.is_empty() {
            self.plain.retain(|&(other, _)| other != name);
            return self.plain.push((name, value));
        }
        match self.kinds.iter_mut().find(|(other, ..)| *other == section) {
            Some((_, _, params)) => params.push((name, value)),
            None => self.kinds.push((section, kind, vec![(name, value)])),
        }
    }

    fn write(&self, into: &mut String) {
        for (name, value) in &self.plain {
            *into += &format!("{name} = {value}\n");
        }
        for (section, kind, params) in &self.kinds {
            let key = format!("{section:?}").to_lowercase();
            let params: String = params.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
            *into += &format!("{key} = {{ kind = \"{kind}\"{params} }}\n");
        }
    }
}

/// Two hops and two groups of flows that contain both extremes, side by side if one section cannot have both.
fn scenario(one: &Extreme, other: &Extreme, duration: &str, rtt: &str, loss: &str) -> String {
    let part = || Part { plain: Vec::new(), kinds: Vec::new() };
    let (mut hops, mut flows) = ([part(), part()], [part(), part()]);
    hops.iter_mut().for_each(|hop| hop.plain.push(("rate", "\"3mbit\"".into())));
    hops[1].plain.push(("loss", loss.into()));
    flows.iter_mut().for_each(|flow| flow.plain.push(("rtt", format!("\"{rtt}\""))));
    for (index, extreme) in [one, other].into_iter().enumerate() {
        let parts = match extreme.section {
            Section::Hop | Section::Queue => &mut hops,
            _ => &mut flows,
        };
        let place = if parts[0].takes(extreme) || extreme.kind.is_empty() && index == 0 { 0 } else { 1 };
        parts[place].set(extreme);
    }
    let mut text = format!("duration = \"{duration}\"\n");
    for (n, hop) in hops.iter().enumerate() {
        text += &format!("[[hop]]\nname = \"h{n}\"\n");
        hop.write(&mut text);
        if hop.kinds.is_empty() {
            text += "queue = \"fifo\"\n";
        }
    }
    for (n, flow) in flows.iter().enumerate() {
        text += &format!("[[flow]]\nname = \"f{n}\"\nroute = [\"h0\", \"h1\"]\n");
        flow.write(&mut text);
        let has = |section| flow.kinds.iter().find(|(other, ..)| *other == section);
        // Some controllers and kinds of traffic need a certain transport.
        let splits = has(Section::Controller)
            .is_some_and(|&(_, kind, _)| ControllerConfig::named(kind).is_some_and(|controller| controller.splits()));
        let datagrams = has(Section::Traffic).is_some_and(|&(_, kind, _)| ["cbr", "poisson"].contains(&kind));
        match has(Section::Transport) {
            None if splits => text += "transport = \"quic\"\n",
            None if datagrams => text += "transport = \"udp\"\n",
            Some((_, "udp", _)) if has(Section::Traffic).is_none() => text += "traffic = \"cbr\"\n",
            _ => {}
        }
    }
    text
}

/// Ends runs that would take long.
struct DelayedAck(u32);

impl Watch for DelayedAck {
    fn tick(&mut self, _now: Time) -> bool {
        self.0 += 1;
        self.0 < MAX_TICKS
    }
}

#[test]
fn every_parameter_of_every_kind_is_among_them() {
    let all = extremes();
    let count = |section| all.iter().filter(|extreme| extreme.section == section).count();
    let ranged: usize = [QueueConfig::entries(), ControllerConfig::entries(), Transport::entries(), Traffic::entries()]
        .into_iter()
        .flatten()
        .flat_map(|entry| entry.params)
        .filter(|spec| spec.allowed.contains(" to "))
        .count();
    assert!(all.len() >= 2 * ranged + PLAIN.len(), "{} of {ranged} parameters with a range", all.len());
    for section in
        [Section::Hop, Section::Flow, Section::Queue, Section::Controller, Section::Transport, Section::Traffic]
    {
        assert!(count(section) > 0, "{section:?}");
    }
    // Nearly every pair must give a valid scenario; otherwise the property below tests little.
    let mut rng = Rng::stream(1, "pairs");
    let mut pick = || &all[rng.below(all.len() as u64) as usize];
    let legal = |text: &String| Scenario::parse(text, "bounds.toml", &NoTraces).is_ok();
    let texts: Vec<String> = (0..500).map(|_| scenario(pick(), pick(), "1s", "2s", "0.01")).collect();
    let runnable = texts.iter().filter(|text| legal(text)).count();
    assert!(runnable > 400, "{runnable} of 500: {:?}", texts.iter().find(|text| !legal(text)));
}

/// The first packet of a call is lost, and the next report is due before another packet arrives.
#[test]
fn a_call_that_begins_with_a_loss_reports_on_time() {
    let text = "duration = \"2s\"\n[[hop]]\nname = \"h\"\nrate = \"3mbit\"\nloss = 0.2\nqueue = \"fifo\"\n\
                [[flow]]\nname = \"call\"\nrtt = \"301ms\"\nroute = [\"h\"]\ntransport = \"udp\"\n\
                traffic = { kind = \"video\", report_interval = \"10ms\" }\n";
    let scenario = Scenario::parse(text, "call.toml", &NoTraces).expect("it is legal");
    for seed in 1..=20 {
        let scenario = Scenario { seed, ..scenario.clone() };
        let result = narrows_sim::run(&scenario, &Wanted::RESULT, &mut Unwatched).expect("nobody ends it early").result;
        check(&scenario, &result);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_parameters_at_their_bounds_break_nothing(
        one in prop::sample::select(extremes()),
        other in prop::sample::select(extremes()),
        duration in prop::sample::select(vec!["100ms", "2s", "40s"]),
        rtt in prop::sample::select(vec!["301ms", "3s"]),
        loss in prop::sample::select(vec!["0.0", "0.01", "0.2"]),
    ) {
        let text = scenario(&one, &other, duration, rtt, loss);
        let parsed = Scenario::parse(&text, "bounds.toml", &NoTraces);
        // Some pairs contradict each other; parsing reports that.
        prop_assume!(parsed.is_ok());
        let Ok(scenario) = parsed else { unreachable!() };
        if let Ok(Run { result, .. }) = narrows_sim::run(&scenario, &Wanted::RESULT, &mut DelayedAck(0)) {
            check(&scenario, &result);
        }
    }
}
