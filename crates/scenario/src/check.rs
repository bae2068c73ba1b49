//! The rules for a scenario as a whole, beyond the form of each value, whether it was read from a file or built in code.
use crate::classes;
use crate::command::CommandLine;
use crate::error::ScenarioError;
use crate::forms::{Form as _, NAME};
use crate::keys::Table;
use crate::limits::{FLOWS, HOPS, HOSTS, POINTS, RETURN_PATHS, RTTS};
use crate::model::{Flow, Hop, RateSpec, Release, Rtt, Scenario, Start};
use crate::traffic::Traffic;
use crate::transport::Transport;
use crate::write::show;
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered as _;
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

impl Part {
    /// Its number among the tables of its kind.
    pub(crate) fn index(self) -> usize {
        match self {
            Part::Top | Part::Record => 0,
            Part::Hop(i) | Part::Flow(i) => i,
        }
    }
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
    let at = |part| move |(key, message)| Fault { part, key, message };
    hop_names(&s.hops)?;
    for (i, hop) in s.hops.iter().enumerate() {
        check_hop(hop).map_err(at(Part::Hop(i)))?;
    }
    unique(s.flows.iter().map(|flow| &flow.name), Part::Flow)?;
    for (i, flow) in s.flows.iter().enumerate() {
        check_flow(s, flow).map_err(at(Part::Flow(i)))?;
    }
    hosts(s)?;
    single_names(s)
}

/// There are not too many hosts.
fn hosts(s: &Scenario) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for (i, flow) in s.flows.iter().enumerate() {
        for (key, host) in [("from", &flow.from), ("to", &flow.to)] {
            seen.insert(host.as_str());
            if seen.len() > HOSTS {
                let message = format!("more than {HOSTS} hosts; allowed: at most {HOSTS}");
                return Err(Fault { part: Part::Flow(i), key: key.into(), message });
            }
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
    unique(hops.iter().map(|hop| &hop.name), Part::Hop)
}

/// A key and what is wrong with its value.
type Wrong = (String, String);

fn wrong<T>(key: &str, message: impl Into<String>) -> Result<T, Wrong> {
    Err((key.into(), message.into()))
}

/// Checks the value of each key by itself.
fn values<T: Table>(table: &T) -> Result<(), Wrong> {
    T::KEYS.iter().try_for_each(|key| key.check(table).map_err(|message| (key.about().name.to_owned(), message)))
}

fn top(s: &Scenario) -> Result<(), Fault> {
    let fault = |part| move |(key, message)| Fault { part, key, message };
    values(s).map_err(fault(Part::Top))?;
    values(&s.record).map_err(fault(Part::Record))?;
    if s.warmup >= s.duration {
        let message = format!("a warmup of {} leaves nothing of a duration of {}", s.warmup, s.duration);
        let message = message + "; allowed: less than the duration";
        return Err(Fault { part: Part::Top, key: "warmup".into(), message });
    }
    match s.record.interval {
        Some(interval) if s.duration.as_ns() / interval.as_ns() > POINTS => {
            let least = Span::ns(s.duration.as_ns().div_ceil(POINTS));
            let message = format!("an interval of {interval} gives more than {POINTS} points in {}", s.duration);
            let message = format!("{message}; allowed: at least {least}");
            Err(Fault { part: Part::Record, key: "interval".into(), message })
        }
        _ => Ok(()),
    }
}

fn unique<'a>(names: impl Iterator<Item = &'a String>, part: fn(usize) -> Part) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for (i, name) in names.enumerate() {
        let fault = |message| Err(Fault { part: part(i), key: "name".into(), message });
        NAME.check("name", name).or_else(fault)?;
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
    values(hop)?;
    if hop.distribution.is_uniform() && hop.jitter > hop.delay.min() {
        let (jitter, delay) = (hop.jitter, hop.delay.min());
        let message = format!("jitter cannot be \"{jitter}\" with a delay of {delay}; allowed: at most the delay");
        return wrong("jitter", message);
    }
    if hop.autorate.is_some() && hop.mechanism.is_none() {
        return wrong("autorate", "autorate follows a link that changes; allowed with a mechanism");
    }
    if let Some(mechanism) = &hop.mechanism {
        let constant = matches!(&hop.rate, RateSpec::Schedule(steps) if steps.len() == 1);
        if !constant || hop.rate.initial() == Rate::ZERO {
            let message =
                format!("mechanism \"{}\" changes the rate itself; allowed: a constant rate above 0", mechanism.name());
            return wrong("mechanism", message);
        }
        if hop.release == Release::Start {
            let message = "a mechanism is no shaper; allowed with mechanism: release = \"end\"";
            return wrong("release", message);
        }
    }
    classes::check(hop).map_err(|message| ("class".to_owned(), message))?;
    if hop.burst > Bytes::ZERO && hop.release == Release::End {
        return wrong(
            "burst",
            "burst needs release = \"start\": a wire hands a packet over with its last bit and has no bursts",
        );
    }
    Ok(())
}

fn check_flow(s: &Scenario, flow: &Flow) -> Result<(), Wrong> {
    values(flow)?;
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
    if flow.command.is_none() && flow.server.is_some() {
        let message = "server without command; allowed: a command, for which the server is the other end";
        return wrong("server", message);
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
        Some(_) if !flow.transport.is_controlled() => {
            let message =
                format!("transport \"{transport}\" has no congestion control; allowed: no controller, tcp or quic");
            return wrong("controller", message);
        }
        None if flow.transport.is_controlled() && flow.command.is_none() => {
            return wrong("controller", format!("transport \"{transport}\" needs a controller"));
        }
        _ => {}
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
    let (Rtt::Fixed(low) | Rtt::Uniform(low, _)) = flow.rtt;
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
            return wrong("rtt", format!("{message}; allowed: {} to {}", RTTS.0, RTTS.1));
        }
    }
    Ok(())
}

/// Checks that the flow starts within the run and stops after its start.
fn timed(s: &Scenario, flow: &Flow) -> Result<(), Wrong> {
    let (Start::At(last) | Start::Uniform(_, last)) = flow.start;
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
