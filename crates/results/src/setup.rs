//! The conditions of a run as values: rates, base RTTs, and every parameter of queues, controllers, traffic and transports.
//!
//! A summary has them beside its figures, so that a row of a table needs no scenario file. Times are in ms (or s, where the key says
//! so), rates in Mbit/s, sizes in bytes; a limit or a word stays text.
use narrows_core::params::{ParamSpec, ParamValue as _, Unit};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_scenario::{Flow, Hop, RateSpec, Rtt, Scenario, Start};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The conditions of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Setup {
    /// Per hop.
    pub hops: Vec<PartSetup>,
    /// Per group of flows.
    pub flows: Vec<PartSetup>,
}

/// A hop or a group of flows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PartSetup {
    /// Its name.
    pub name: String,
    /// Its conditions by key.
    #[serde(flatten)]
    pub values: BTreeMap<String, Fact>,
}

/// A condition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// On or off.
    Switch(bool),
    /// In the unit that the key names.
    Number(f64),
    /// A name, or a value that is no number.
    Text(String),
    /// A kind and its parameters.
    Parts(BTreeMap<String, Fact>),
}

impl Setup {
    /// The conditions of a scenario. Starts and base RTTs are those of the file, before repeated runs draw their own.
    pub fn of(scenario: &Scenario) -> Setup {
        let scenario = scenario.undrawn();
        Setup {
            hops: scenario.hops.iter().map(hop).collect(),
            flows: scenario.flows.iter().map(|group| flow(group, &scenario)).collect(),
        }
    }
}

fn hop(hop: &Hop) -> PartSetup {
    let changes = match &hop.rate {
        RateSpec::Schedule(steps) => steps.len().saturating_sub(1),
        RateSpec::Trace { .. } => 0,
    };
    let kind = match &hop.rate {
        RateSpec::Schedule(_) => "schedule",
        RateSpec::Trace { .. } => "trace",
    };
    let effects = hop.effects_in_words();
    let words = |key| effects.iter().find(|effect| effect.0 == key).map(|effect| effect.1.clone()).unwrap_or_default();
    let values = [
        ("rate_mbit", Fact::Number(hop.rate.initial().as_mbit_f64())),
        ("rate_changes", Fact::Number(changes as f64)),
        ("rate_kind", Fact::Text(kind.to_owned())),
        ("delay_ms", ms(hop.delay.initial())),
        ("delay_changes", Fact::Number(hop.delay.0.len().saturating_sub(1) as f64)),
        ("jitter_ms", ms(hop.jitter)),
        ("overhead_bytes", Fact::Number(hop.overhead.0 as f64)),
        ("mpu_bytes", Fact::Number(hop.mpu.0 as f64)),
        ("atm", Fact::Text(hop.atm.show())),
        ("loss", hop.loss.independent().map_or_else(|| Fact::Text(words("loss")), Fact::Number)),
        ("release", Fact::Text(hop.release.show())),
        ("burst_bytes", Fact::Number(hop.burst.0 as f64)),
        ("queue", kind_of(&hop.queue)),
    ];
    let mut part = part(&hop.name, values);
    if !hop.classes.is_empty() {
        part.values.insert("queue".to_owned(), Fact::Text(hop.discipline()));
    }
    for (key, words) in effects.into_iter().filter(|effect| effect.0 != "loss") {
        part.values.insert(key.to_owned(), Fact::Text(words));
    }
    part
}

fn flow(flow: &Flow, scenario: &Scenario) -> PartSetup {
    let (Rtt::Fixed(rtt) | Rtt::Uniform(rtt, _)) = flow.rtt;
    let (Start::At(start) | Start::Uniform(start, _)) = flow.start;
    let route: Vec<&str> =
        flow.route.iter().filter_map(|&hop| scenario.hops.get(hop)).map(|hop| hop.name.as_str()).collect();
    let values = [
        ("base_rtt_ms", ms(rtt)),
        ("start_s", seconds(start)),
        ("stop_s", seconds(flow.stop)),
        ("route", Fact::Text(route.join(" "))),
        ("dscp", Fact::Number(f64::from(flow.dscp.0))),
        ("transport", kind_of(&flow.transport)),
    ];
    let mut part = part(&flow.name, values);
    let mut add = |key: &str, fact: Fact| part.values.insert(key.to_owned(), fact);
    if let Rtt::Uniform(_, longest) = flow.rtt {
        add("base_rtt_max_ms", ms(longest));
    }
    if let Start::Uniform(_, last) = flow.start {
        add("start_max_s", seconds(last));
    }
    if let Some(controller) = &flow.controller {
        add("controller", kind_of(controller));
    }
    match &flow.command {
        Some(command) => add("command", Fact::Text(command.text().to_owned())),
        None => add("traffic", kind_of(&flow.traffic)),
    };
    part
}

fn part<const N: usize>(name: &str, values: [(&str, Fact); N]) -> PartSetup {
    PartSetup { name: name.to_owned(), values: values.map(|(key, fact)| (key.to_owned(), fact)).into() }
}

/// A choice from a registry with all its parameters, each key with its unit: `target_ms`.
fn kind_of<K: Registered>(kind: &K) -> Fact {
    let mut parts: BTreeMap<String, Fact> = [("kind".to_owned(), Fact::Text(kind.name().to_owned()))].into();
    for spec in kind.specs() {
        if let Some(text) = kind.get(spec.name) {
            let (unit, fact) = parameter(&spec, &text);
            parts.insert(format!("{}{unit}", spec.name), fact);
        }
    }
    Fact::Parts(parts)
}

/// A parameter's unit, for its key, and its value. A word in place of a number (`off`, `auto`) stays a word.
fn parameter(spec: &ParamSpec, text: &str) -> (&'static str, Fact) {
    let known = match spec.unit {
        Unit::Span => ("_ms", Span::parse(text).map(ms)),
        Unit::Rate => ("_mbit", Rate::parse(text).map(|rate| Fact::Number(rate.as_mbit_f64()))),
        Unit::Bytes => ("_bytes", Bytes::parse(text).map(|bytes| Fact::Number(bytes.0 as f64))),
        Unit::Packets => ("_packets", text.trim_end_matches('p').parse().ok().map(Fact::Number)),
        Unit::Count | Unit::Number => ("", text.parse().ok().map(Fact::Number)),
        Unit::Switch => ("", text.parse().ok().map(Fact::Switch)),
        Unit::Limit | Unit::Choice(_) | Unit::Kind(_) => ("", None),
    };
    (known.0, known.1.unwrap_or_else(|| Fact::Text(text.to_owned())))
}

fn ms(span: Span) -> Fact {
    Fact::Number(span.as_ms_f64())
}

fn seconds(at: Time) -> Fact {
    Fact::Number(at.since(Time::ZERO).as_secs_f64())
}
