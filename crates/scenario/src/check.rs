//! The rules for a scenario as a whole, beyond each value's own range, whether it was read from a file or built in code.
use crate::command::CommandLine;
use crate::dscp;
use crate::error::ScenarioError;
use crate::keys::{DELAYS, FlowKeys, HopKeys, INTERVALS, Loss, RATES, RTTS, RecordKeys, TopKeys};
use crate::limits::{FLOWS, HOPS, HOSTS, POINTS, RETURN_PATHS, STEPS};
use crate::model::{DelaySpec, Flow, Hop, RateSpec, Release, Rtt, Scenario, Start, TraceSource};
use crate::traffic::Traffic;
use crate::transport::Transport;
use narrows_core::congestion::ControllerConfig;
use narrows_core::params::{ParamError, ParamValue, Params};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span, Time};
use std::collections::{HashMap, HashSet};

/// The part of a scenario that contains a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Top,
    Record,
    Hop(usize),
    Flow(usize),
}

/// What is wrong, and the key that it concerns.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Fault {
    pub(crate) part: Part,
    pub(crate) key: String,
    pub(crate) message: String,
}

impl Scenario {
    /// Checks everything that [`Scenario::parse`] checks: ranges, routes, times, names, and combinations of keys.
    ///
    /// Worlds rely on it. Code that builds or changes a scenario calls it before the run.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        check(self).map_err(|fault| {
            let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
            let place = match fault.part {
                Part::Top => "scenario".to_owned(),
                Part::Record => "[record]".to_owned(),
                Part::Hop(i) => format!("hop \"{}\"", name(self.hops.get(i).map(|hop| hop.name.as_str()))),
                Part::Flow(i) => format!("flow \"{}\"", name(self.flows.get(i).map(|flow| flow.name.as_str()))),
            };
            ScenarioError::new(place, fault.message)
        })
    }
}

pub(crate) fn check(s: &Scenario) -> Result<(), Fault> {
    top(s)?;
    hop_names(&s.hops)?;
    for (i, hop) in s.hops.iter().enumerate() {
        check_hop(hop).map_err(|(key, message)| Fault { part: Part::Hop(i), key, message })?;
    }
    unique(s.flows.iter().map(|flow| flow.name.as_str()), Part::Flow)?;
    for (i, flow) in s.flows.iter().enumerate() {
        check_flow(s, flow).map_err(|(key, message)| Fault { part: Part::Flow(i), key, message })?;
    }
    hosts(s)?;
    single_names(s)
}

/// Hosts have valid names, and there are not too many of them.
fn hosts(s: &Scenario) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for (i, flow) in s.flows.iter().enumerate() {
        for (key, host) in [("from", &flow.from), ("to", &flow.to)] {
            let fault = |message| Err(Fault { part: Part::Flow(i), key: key.into(), message });
            if !is_name(host) {
                return fault(format!("{key} cannot be {host:?}; allowed: {NAMES}"));
            }
            seen.insert(host.as_str());
            if seen.len() > HOSTS {
                return fault(format!("more than {HOSTS} hosts; allowed: at most {HOSTS}"));
            }
        }
        if flow.dscp.0 > 63 {
            let message = format!("dscp cannot be {}; allowed: {}", flow.dscp.0, dscp::ALLOWED);
            return Err(Fault { part: Part::Flow(i), key: "dscp".into(), message });
        }
    }
    Ok(())
}

/// Hops have valid and distinct names, and there are not too many of them; checked before the routes that use them.
pub(crate) fn hop_names(hops: &[Hop]) -> Result<(), Fault> {
    if hops.len() > HOPS {
        let message = format!("{} hops; allowed: at most {HOPS}", hops.len());
        return Err(Fault { part: Part::Hop(HOPS), key: "name".into(), message });
    }
    unique(hops.iter().map(|hop| hop.name.as_str()), Part::Hop)
}

/// A key and what is wrong with its value.
type Wrong = (String, String);

fn wrong<T>(key: &str, message: impl Into<String>) -> Result<T, Wrong> {
    Err((key.into(), message.into()))
}

/// A parameter's error under its own name.
fn ranged(error: ParamError) -> Wrong {
    let got = error.got.replace('`', "\"");
    (error.name.clone(), format!("{} cannot be {got}; allowed: {}", error.name, error.allowed))
}

/// A parameter's error under the key that holds the kind.
fn inner<K: Registered>(kind: &K) -> Result<(), Wrong> {
    kind.validate().map_err(|error| {
        let (_, message) = ranged(error);
        (K::WHAT.to_owned(), format!("{} \"{}\": {message}", K::WHAT, kind.name()))
    })
}

fn top(s: &Scenario) -> Result<(), Fault> {
    let fault = |part| move |(key, message)| Fault { part, key, message };
    TopKeys::of(s).validate().map_err(ranged).map_err(fault(Part::Top))?;
    RecordKeys::of(&s.record).validate().map_err(ranged).map_err(fault(Part::Record))?;
    let result = if s.warmup >= s.duration {
        let message = format!("a warmup of {} leaves nothing of a duration of {}", s.warmup, s.duration);
        wrong("warmup", message + "; allowed: less than the duration")
    } else if s.hops.is_empty() {
        wrong("hop", "no [[hop]]; a scenario has at least one")
    } else if s.flows.is_empty() {
        wrong("flow", "no [[flow]]; a scenario has at least one")
    } else {
        Ok(())
    };
    result.map_err(fault(Part::Top))?;
    let Some(interval) = s.record.interval else { return Ok(()) };
    let result = if !(INTERVALS.0..=INTERVALS.1).contains(&interval) {
        wrong("interval", format!("interval cannot be \"{interval}\"; allowed: {} ..= {}", INTERVALS.0, INTERVALS.1))
    } else if s.duration.as_ns() / interval.as_ns() > POINTS {
        let least = Span::ns(s.duration.as_ns().div_ceil(POINTS));
        let message = format!("an interval of {interval} gives more than {POINTS} points in {}", s.duration);
        wrong("interval", format!("{message}; allowed: at least {least}"))
    } else {
        Ok(())
    };
    result.map_err(fault(Part::Record))
}

/// The allowed form of a name.
pub(crate) const NAMES: &str = "1 to 64 letters, digits, spaces (inside) and \"_\", \"-\", \".\", \"+\"";

fn is_name(name: &str) -> bool {
    let letters = name.chars().all(|c| c.is_alphanumeric() || " _-.+".contains(c));
    !name.is_empty() && name.chars().count() <= 64 && letters && name.trim() == name
}

fn unique<'a>(names: impl Iterator<Item = &'a str>, part: fn(usize) -> Part) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for (i, name) in names.enumerate() {
        let fault = |message| Err(Fault { part: part(i), key: "name".into(), message });
        if !is_name(name) {
            return fault(format!("name cannot be {name:?}; allowed: {NAMES}"));
        }
        if !seen.insert(name) {
            return fault(format!("name \"{name}\" is taken; names are unique"));
        }
    }
    Ok(())
}

/// Refuses names that are not unique: `bulk.3` cannot be both the fourth flow of the group `bulk` and a flow of its own.
fn single_names(s: &Scenario) -> Result<(), Fault> {
    let total: u64 = s.flows.iter().map(|flow| u64::from(flow.count)).sum();
    let returns = |flow: &Flow| u64::from(flow.count) * if flow.subflow_route.is_empty() { 1 } else { 2 };
    let paths: u64 = s.flows.iter().map(returns).sum();
    let many = |message| Err(Fault { part: Part::Flow(s.flows.len() - 1), key: "count".into(), message });
    if total > FLOWS {
        return many(format!("{total} flows in all; allowed: at most {FLOWS}"));
    }
    if paths > RETURN_PATHS {
        return many(format!(
            "{paths} paths back to senders, two for each flow with a subflow_route; allowed: at most {RETURN_PATHS}"
        ));
    }
    let counts: HashMap<&str, u32> = s.flows.iter().map(|flow| (flow.name.as_str(), flow.count)).collect();
    for (i, flow) in s.flows.iter().enumerate().filter(|(_, flow)| flow.count == 1) {
        let Some((group, number)) = flow.name.rsplit_once('.') else { continue };
        let number = number.parse::<u32>().ok().filter(|n| n.to_string() == number);
        let count = counts.get(group).copied().filter(|&count| count > 1).unwrap_or(0);
        if number.is_some_and(|n| n < count) {
            let message =
                format!("name \"{}\" is taken by one of the flows of \"{group}\"; names are unique", flow.name);
            return Err(Fault { part: Part::Flow(i), key: "name".into(), message });
        }
    }
    Ok(())
}

fn check_hop(hop: &Hop) -> Result<(), Wrong> {
    HopKeys::of(hop).validate().map_err(ranged)?;
    delays(&hop.delay).or_else(|(_, message)| wrong("delay", message))?;
    if hop.jitter > hop.delay.min() {
        let (jitter, delay) = (hop.jitter, hop.delay.min());
        let message = format!("jitter cannot be \"{jitter}\" with a delay of {delay}; allowed: at most the delay");
        return wrong("jitter", message);
    }
    if Loss::parse(&hop.loss.show()).is_none() {
        return wrong("loss", format!("loss cannot be {}; allowed: {}", hop.loss, Loss::allowed()));
    }
    if hop.burst > Bytes::ZERO && hop.release == Release::End {
        return wrong(
            "burst",
            "burst needs release = \"start\": a wire hands a packet over with its last bit and has no bursts",
        );
    }
    inner(&hop.queue)?;
    match &hop.rate {
        RateSpec::Schedule(steps) => schedule(steps).or_else(|(_, message)| wrong("rate", message)),
        RateSpec::Trace { source: TraceSource::Aggregates(packets, mean), .. } => {
            aggregates(*packets, *mean).or_else(|(key, message)| wrong("rate", format!("{key} {message}")))?;
            match RateSpec::aggregates(*packets, *mean).as_ref() == Some(&hop.rate) {
                true => Ok(()),
                false => wrong("rate", "aggregates have the opportunities that RateSpec::aggregates gives them"),
            }
        }
        RateSpec::Trace { opportunities, period, .. } => {
            let ordered = opportunities.windows(2).all(|pair| pair[0] <= pair[1]);
            let whole = opportunities.iter().chain([period]).all(|at| at.as_ns() % 1_000_000 == 0);
            match opportunities.last() {
                Some(last) if ordered && whole && last == period && *period > Span::ZERO => Ok(()),
                _ => wrong("rate", "a trace has ascending whole milliseconds; the last one is its period, more than 0"),
            }
        }
    }
}

/// The form of a rate step.
pub(crate) const RATE_STEP: &str = "{ at = \"0s\", rate = \"20mbit\" }";
/// The form of a delay step.
pub(crate) const DELAY_STEP: &str = "{ at = \"0s\", delay = \"10ms\" }";

/// Checks the rules that rate steps and delay steps share. The error names the step by its index.
fn in_steps<T>(key: &str, steps: &[(Time, T)], example: &str) -> Result<(), (usize, String)> {
    let fail = |i: usize, message: String| Err((i, message));
    let Some(first) = steps.first() else {
        return fail(0, format!("{key} has no steps; allowed: at least {example}"));
    };
    if steps.len() > STEPS {
        return fail(STEPS, format!("{} steps of {key}; allowed: at most {STEPS}", steps.len()));
    }
    if first.0 != Time::ZERO {
        return fail(0, format!("the first step of {key} is at \"{}\"; allowed: \"0s\"", show(first.0)));
    }
    match steps.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
        Some(i) => {
            let (at, before) = (show(steps[i + 1].0), show(steps[i].0));
            fail(i + 1, format!("at cannot be \"{at}\" after \"{before}\"; allowed: times that increase"))
        }
        None => Ok(()),
    }
}

/// Checks a hop's delay; the error names the step by its index.
pub(crate) fn delays(delay: &DelaySpec) -> Result<(), (usize, String)> {
    in_steps("delay", &delay.0, DELAY_STEP)?;
    match delay.0.iter().position(|step| step.1 > DELAYS.1) {
        Some(i) => Err((i, format!("delay cannot be \"{}\"; allowed: {} ..= {}", delay.0[i].1, DELAYS.0, DELAYS.1))),
        None => Ok(()),
    }
}

/// Checks a schedule; the error names the step by its index.
pub(crate) fn schedule(steps: &[(Time, Rate)]) -> Result<(), (usize, String)> {
    let fail = |i: usize, message: String| Err((i, message));
    in_steps("rate", steps, RATE_STEP)?;
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Ok(()) };
    let range = format!("{} ..= {}", RATES.0, RATES.1);
    if first.1 == Rate::ZERO {
        let message = format!("rate cannot be \"{}\" at the start; allowed: {range}", first.1);
        return fail(0, message + " (a later step may be 0: an outage)");
    }
    if last.1 == Rate::ZERO {
        let message = format!("rate cannot stay \"{}\" for ever; allowed: an outage that a later step ends", last.1);
        return fail(steps.len() - 1, message);
    }
    match steps.iter().position(|step| step.1 > RATES.1) {
        Some(i) => fail(i, format!("rate cannot be \"{}\"; allowed: {range}", steps[i].1)),
        None => Ok(()),
    }
}

/// The allowed sizes of an aggregate.
pub(crate) const AGGREGATES: &str = "1 ..= 1024 packets of 1500 bytes";

/// Checks a link that sends in aggregates. The error names the key.
pub(crate) fn aggregates(packets: u32, mean: Rate) -> Result<(), (&'static str, String)> {
    if !(1..=1024).contains(&packets) {
        return Err(("aggregate", format!("cannot be {packets}; allowed: {AGGREGATES}")));
    }
    if !(RATES.0..=RATES.1).contains(&mean) {
        return Err(("mean", format!("cannot be \"{mean}\"; allowed: {} ..= {}", RATES.0, RATES.1)));
    }
    Ok(())
}

/// A time as scenario files write it.
pub(crate) fn show(time: Time) -> String {
    time.since(Time::ZERO).show()
}

fn check_flow(s: &Scenario, flow: &Flow) -> Result<(), Wrong> {
    FlowKeys::of(flow).validate().map_err(ranged)?;
    inner(&flow.traffic)?;
    inner(&flow.transport)?;
    carried(flow)?;
    routed(s, flow)?;
    timed(s, flow)
}

/// The message for a flow that has both a command and traffic.
pub(crate) const COMMAND_OR_TRAFFIC: &str =
    "traffic beside command: a program decides what it sends; allowed: one of the two";

/// Checks that traffic, transport and controller fit each other.
fn carried(flow: &Flow) -> Result<(), Wrong> {
    if flow.command.is_some() && flow.traffic != Traffic::Bulk(Default::default()) {
        return wrong("traffic", COMMAND_OR_TRAFFIC);
    }
    let (traffic, transport) = (flow.traffic.name(), flow.transport.name());
    let carriers = flow.traffic.carriers();
    if flow.command.is_none() && !carriers.contains(&transport) {
        let others = Traffic::NAMES
            .iter()
            .filter(|name| Traffic::named(name).is_some_and(|traffic| traffic.carriers().contains(&transport)));
        let others = others.copied().collect::<Vec<_>>().join(", ");
        let needs = carriers.join("\" or \"");
        return wrong(
            "traffic",
            format!("traffic \"{traffic}\" needs transport \"{needs}\"; allowed with \"{transport}\": {others}"),
        );
    }
    match &flow.controller {
        Some(controller) if controller.splits() && !matches!(flow.transport, Transport::Quic(_)) => {
            let name = controller.name();
            let message = format!("controller \"{name}\" sends over two subflows; allowed: transport \"quic\"");
            return wrong("controller", message);
        }
        Some(controller) if flow.transport.is_controlled() => inner(controller)?,
        Some(_) => {
            let message =
                format!("transport \"{transport}\" has no congestion control; allowed: no controller, tcp or quic");
            return wrong("controller", message);
        }
        None if flow.transport.is_controlled() && flow.command.is_none() => {
            return wrong("controller", format!("transport \"{transport}\" needs a controller"));
        }
        None => {}
    }
    let packet = match &flow.traffic {
        Traffic::Cbr(t) => Some(t.packet),
        Traffic::Poisson(t) => Some(t.packet),
        Traffic::OnOff(t) => Some(t.packet),
        Traffic::Video(t) => Some(t.packet),
        Traffic::Bulk(_) | Traffic::Finite(_) | Traffic::Thin(_) | Traffic::Web(_) => None,
    };
    let header = flow.header();
    match packet {
        Some(packet) if packet <= header => wrong(
            "traffic",
            format!(
                "a packet of {packet} leaves no room for data after {header} of headers; allowed: more than {header}"
            ),
        ),
        _ => Ok(()),
    }
}

/// Checks that the route is not empty, and that the base RTT covers its delays.
fn routed(s: &Scenario, flow: &Flow) -> Result<(), Wrong> {
    if flow.route.is_empty() {
        return wrong("route", "route is empty; allowed: at least one hop");
    }
    if !flow.subflow_route.is_empty() && !flow.controller.as_ref().is_some_and(ControllerConfig::splits) {
        let message = "subflow_route is for controllers that send over two subflows";
        return wrong("subflow_route", message);
    }
    for (key, way) in [("route", &flow.route), ("back", &flow.back), ("subflow_route", &flow.subflow_route)] {
        let mut seen = HashSet::new();
        for &hop in way {
            let Some(name) = s.hops.get(hop).map(|hop| &hop.name) else {
                return wrong(key, format!("{key} goes to hop number {hop}; there are {}", s.hops.len()));
            };
            if !seen.insert(hop) {
                return wrong(key, format!("{key} crosses \"{name}\" twice; allowed: each hop once"));
            }
        }
    }
    let (low, high) = match flow.rtt {
        Rtt::Fixed(rtt) => (rtt, rtt),
        Rtt::Uniform(low, high) => (low, high),
    };
    for rtt in [low, high] {
        if !(RTTS.0..=RTTS.1).contains(&rtt) {
            return wrong("rtt", format!("rtt cannot be \"{rtt}\"; allowed: {} ..= {}", RTTS.0, RTTS.1));
        }
    }
    if high < low {
        return wrong("rtt", format!("rtt cannot be uniform from \"{low}\" to \"{high}\"; allowed: smaller first"));
    }
    let delays = |way: &[usize]| way.iter().map(|&hop| s.hops[hop].delay.initial()).fold(Span::ZERO, |a, b| a + b);
    let delays = delays(&flow.route).max(delays(&flow.subflow_route)) + delays(&flow.back);
    if low < delays {
        let message = format!("an rtt of {low} is less than the delays of the hops on its way");
        return wrong("rtt", format!("{message}; allowed: at least {delays}"));
    }
    let (shortest, longest) = s.base_rtts(flow);
    for rtt in [shortest, longest] {
        if !(RTTS.0..=RTTS.1).contains(&rtt) {
            let message = format!("an rtt of {low} becomes {rtt} as the delays of the hops on its way change");
            return wrong("rtt", format!("{message}; allowed: {} ..= {}", RTTS.0, RTTS.1));
        }
    }
    Ok(())
}

/// Checks that the flow starts within the run and stops after its start.
fn timed(s: &Scenario, flow: &Flow) -> Result<(), Wrong> {
    let (first, last) = match flow.start {
        Start::At(at) => (at, at),
        Start::Uniform(first, last) => (first, last),
    };
    if last < first {
        let (first, last) = (show(first), show(last));
        return wrong(
            "start",
            format!("start cannot be uniform from \"{first}\" to \"{last}\"; allowed: earlier first"),
        );
    }
    if last.since(Time::ZERO) >= s.duration {
        let message = format!("start cannot be \"{}\"; allowed: before the end of the run, {}", show(last), s.duration);
        return wrong("start", message);
    }
    if flow.stop <= last {
        let (stop, start) = (show(flow.stop), show(last));
        return wrong("stop", format!("stop cannot be \"{stop}\"; allowed: later than the start, {start}"));
    }
    if flow.programs().any(CommandLine::says_duration) && flow.stop.since(last) < Span::s(1) {
        let lasts = flow.stop.since(last);
        let message = format!("a flow of {lasts} has no whole second for {{duration}}; allowed: at least 1s");
        return wrong("command", message);
    }
    Ok(())
}
