//! What a scenario says, for the controls of a page.
use narrows_core::params::ParamValue as _;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_scenario::model::{Flow, Hop};
use narrows_scenario::{Class, DelaySpec, RateSpec, Rtt, Scenario, Start, Transport};
use serde::Serialize;
use std::collections::BTreeMap;

/// A scenario.
#[derive(Serialize, Debug)]
pub(crate) struct Outline {
    name: String,
    duration: u64,
    warmup: u64,
    hops: Vec<HopOutline>,
    groups: Vec<Group>,
    /// The flows' names, of the first ones, and the group of each.
    flows: Vec<(String, usize)>,
    /// The number of all flows.
    count: u64,
}

/// A hop.
#[derive(Serialize, Debug)]
struct HopOutline {
    name: String,
    /// As text, at the start of the run.
    rate: String,
    rate_mbit: f64,
    /// The rate's steps, ns and Mbit/s; none for a trace.
    steps: Vec<(u64, f64)>,
    /// What decides when the link sends.
    mechanism: Option<Chosen>,
    delay_ms: f64,
    queue: Chosen,
    lanes: Lanes,
    /// The classes that share the rate, each after its parent.
    classes: Vec<ClassOutline>,
    /// By group of flows: the class whose queue its packets enter.
    class_of: Vec<usize>,
    loss: f64,
}

/// A class of a hop.
#[derive(Serialize, Debug)]
struct ClassOutline {
    name: String,
    parent: Option<usize>,
    rate: String,
    ceil: String,
    /// The queue of a class that is nobody's parent, and how it is drawn.
    leaf: Option<(&'static str, Lanes)>,
}

/// An entry of a registry with its parameters.
#[derive(Serialize, Debug)]
struct Chosen {
    kind: &'static str,
    /// As on the command line.
    text: String,
    params: BTreeMap<&'static str, String>,
}

/// How a queue's packets are drawn.
#[derive(Clone, Copy, Serialize, Debug)]
#[serde(rename_all = "snake_case")]
enum Lanes {
    /// In one lane.
    One,
    /// In one for each flow.
    Flows,
    /// In two, by their ECN field.
    Ecn,
}

/// A group of flows.
#[derive(Serialize, Debug)]
struct Group {
    name: String,
    count: u32,
    controller: Option<Chosen>,
    traffic: Chosen,
    transport: &'static str,
    ecn: bool,
    rtt_ms: [f64; 2],
    route: Vec<usize>,
    back: Vec<usize>,
    start: u64,
    stop: u64,
}

/// Flows whose names are listed.
const NAMED: usize = 200;

impl From<&Scenario> for Outline {
    fn from(scenario: &Scenario) -> Outline {
        let groups = scenario.flows.iter().enumerate();
        let named = groups.flat_map(|(group, flow)| {
            let name = |n: u32| if flow.count == 1 { flow.name.clone() } else { format!("{}.{n}", flow.name) };
            (0..flow.count).map(move |n| (name(n), group))
        });
        Outline {
            name: scenario.name.clone(),
            duration: scenario.duration.as_ns(),
            warmup: scenario.warmup.as_ns(),
            hops: scenario.hops.iter().map(|hop| HopOutline::of(hop, &scenario.flows)).collect(),
            flows: named.take(NAMED).collect(),
            groups: scenario.flows.iter().map(Group::from).collect(),
            count: scenario.flows.iter().map(|flow| u64::from(flow.count)).sum(),
        }
    }
}

impl HopOutline {
    fn of(hop: &Hop, flows: &[Flow]) -> HopOutline {
        let steps = match &hop.rate {
            RateSpec::Schedule(steps) => steps.iter().map(|&(at, rate)| (at.as_ns(), rate.as_mbit_f64())).collect(),
            RateSpec::Trace { .. } => Vec::new(),
        };
        HopOutline {
            name: hop.name.clone(),
            rate: hop.rate.initial().show(),
            rate_mbit: hop.rate.initial().as_mbit_f64(),
            steps,
            mechanism: hop.mechanism.as_ref().map(Chosen::from),
            delay_ms: DelaySpec::initial(&hop.delay).as_ms_f64(),
            queue: Chosen::from(&hop.queue),
            lanes: Lanes::from(&hop.queue),
            classes: classes(hop),
            class_of: flows.iter().filter_map(|flow| hop.leaf_of(flow.dscp)).collect(),
            loss: hop.loss.mean(),
        }
    }
}

fn classes(hop: &Hop) -> Vec<ClassOutline> {
    let all = hop.classes.iter().zip(hop.parents()).zip(hop.leaves());
    let outline = |((class, parent), is_leaf): ((&Class, Option<usize>), bool)| {
        let queue = class.queue.as_ref().unwrap_or(&hop.queue);
        let leaf = is_leaf.then(|| (queue.name(), Lanes::from(queue)));
        ClassOutline { name: class.name.clone(), parent, rate: class.rate.show(), ceil: class.ceil.show(), leaf }
    };
    all.map(outline).collect()
}

impl<T: Registered> From<&T> for Chosen {
    fn from(choice: &T) -> Chosen {
        let value = |name: &'static str| Some((name, choice.get(name)?));
        let params = choice.specs().iter().filter_map(|spec| value(spec.name)).collect();
        Chosen { kind: choice.name(), text: choice.to_string(), params }
    }
}

impl From<&QueueConfig> for Lanes {
    fn from(queue: &QueueConfig) -> Lanes {
        let traits = queue.traits();
        match (traits.splits_by_ecn, traits.isolates) {
            (_, true) => Lanes::Flows,
            (true, false) => Lanes::Ecn,
            (false, false) => Lanes::One,
        }
    }
}

impl From<&Flow> for Group {
    fn from(flow: &Flow) -> Group {
        let rtt = match flow.rtt {
            Rtt::Fixed(rtt) => [rtt, rtt],
            Rtt::Uniform(from, to) => [from, to],
        };
        let ecn = match &flow.transport {
            Transport::Tcp(tcp) => tcp.ecn,
            Transport::Quic(quic) => quic.ecn,
            Transport::Udp(_) => false,
        };
        let start = match flow.start {
            Start::At(at) | Start::Uniform(at, _) => at.as_ns(),
        };
        Group {
            name: flow.name.clone(),
            count: flow.count,
            controller: flow.controller.as_ref().map(Chosen::from),
            traffic: Chosen::from(&flow.traffic),
            transport: flow.transport.name(),
            ecn,
            rtt_ms: rtt.map(|rtt| rtt.as_ms_f64()),
            route: flow.route.clone(),
            back: flow.back.clone(),
            start,
            stop: flow.stop.as_ns(),
        }
    }
}
