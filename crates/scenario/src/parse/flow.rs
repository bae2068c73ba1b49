//! `[[flow]]`: what is sent, how, from when to when, and over which hops.
use super::reader::{Item, Section};
use crate::check;
use crate::command::{self, CommandLine};
use crate::dscp;
use crate::error::ScenarioError;
use crate::keys::{self, FlowKeys};
use crate::model::{Flow, Hop, Rtt, Start};
use crate::preset::Preset;
use crate::suggest::hint;
use crate::traffic::Traffic;
use crate::transport::Transport;
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered;
use narrows_core::{Dscp, Span, Time};
use std::collections::HashMap;

const RTT_FORMS: &str = "\"50ms\" or { uniform = [\"10ms\", \"100ms\"] }";
const START_FORMS: &str = "\"0s\" or { uniform = [\"0s\", \"5s\"] }";

/// The hops' names, for look-ups and for lists in messages.
pub(super) struct HopNames<'a> {
    index: HashMap<&'a str, usize>,
    names: Vec<&'a str>,
}

/// Most names that a message lists; a scenario may have thousands.
const LISTED: usize = 20;

impl<'a> HopNames<'a> {
    pub(super) fn new(hops: &'a [Hop]) -> HopNames<'a> {
        let names: Vec<&str> = hops.iter().map(|hop| hop.name.as_str()).collect();
        HopNames { index: names.iter().enumerate().map(|(index, &name)| (name, index)).collect(), names }
    }

    fn allowed(&self) -> String {
        let listed = self.names.iter().take(LISTED).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        match self.names.len().saturating_sub(LISTED) {
            0 => listed,
            more => format!("{listed} and {more} more"),
        }
    }
}

pub(super) fn read(section: &Section<'_>, hops: &HopNames<'_>, duration: Span) -> Result<Flow, ScenarioError> {
    section.only(keys::FLOW)?;
    let name = section.need("name", check::NAMES)?.string(check::NAMES)?.to_owned();
    let mut plain = FlowKeys::default();
    section.fill(&mut plain)?;
    let (command, server) = command(section)?;
    let traffic = match section.item("traffic") {
        Some(item) if command.is_some() => return Err(item.error(check::COMMAND_OR_TRAFFIC)),
        Some(item) => item.kind::<Traffic>()?,
        None => Traffic::Bulk(Default::default()),
    };
    let controller = section.item("controller").map(|item| item.kind::<ControllerConfig>()).transpose()?;
    let transport = match section.item("transport") {
        Some(item) => item.kind::<Transport>()?,
        None => {
            let preset = section.item("traffic").and_then(|item| Preset::named(item.kind_name()?));
            preset_transport(preset, &traffic, controller.as_ref())
        }
    };
    // A program chooses its own congestion control.
    let controller = controller.or_else(|| default_controller(&transport).filter(|_| command.is_none()));
    let (low, high) = spread(&section.need("rtt", RTT_FORMS)?, RTT_FORMS)?;
    let rtt = high.map_or(Rtt::Fixed(low), |high| Rtt::Uniform(low, high));
    let start = section.item("start").map(|item| spread(&item, START_FORMS)).transpose()?;
    let start = match start.unwrap_or((Span::ZERO, None)) {
        (at, None) => Start::At(Time::ZERO + at),
        (first, Some(last)) => Start::Uniform(Time::ZERO + first, Time::ZERO + last),
    };
    let stop = section.item("stop").map(|item| item.value::<Span>()).transpose()?.unwrap_or(duration);
    let route = match section.item("route") {
        Some(item) => way(&item, hops)?,
        // There is one way only.
        None if hops.names.len() == 1 => vec![0],
        None => return Err(section.lacks("route", &hops.allowed())),
    };
    let back = section.item("back").map(|item| way(&item, hops)).transpose()?.unwrap_or_default();
    let subflow_route = section.item("subflow_route").map(|item| way(&item, hops)).transpose()?.unwrap_or_default();
    let stop = Time::ZERO + stop;
    let host = |key, default: &str| match section.item(key) {
        Some(item) => item.string(check::NAMES).map(str::to_owned),
        None => Ok(default.to_owned()),
    };
    let (from, to, dscp) = (host("from", "sender")?, host("to", "receiver")?, dscp(section)?);
    let FlowKeys { count, family } = plain;
    Ok(Flow {
        name,
        count,
        controller,
        traffic,
        command,
        server,
        rtt,
        route,
        back,
        subflow_route,
        start,
        stop,
        transport,
        family,
        from,
        to,
        dscp,
    })
}

/// The programs at the ends.
fn command(section: &Section<'_>) -> Result<(Option<CommandLine>, Option<CommandLine>), ScenarioError> {
    let line = |key: &str| -> Result<Option<CommandLine>, ScenarioError> {
        let Some(item) = section.item(key) else { return Ok(None) };
        let text = item.string(command::ALLOWED)?;
        CommandLine::parse(text).map(Some).map_err(|message| item.error(format!("{key} {message}")))
    };
    match (line("command")?, line("server")?) {
        (None, Some(_)) => {
            let message = "server without command; allowed: a command, for which the server is the other end";
            Err(section.item("server").map_or_else(|| section.error(message), |item| item.error(message)))
        }
        lines => Ok(lines),
    }
}

/// The code point.
fn dscp(section: &Section<'_>) -> Result<Dscp, ScenarioError> {
    let Some(item) = section.item("dscp") else { return Ok(Dscp(0)) };
    let Some(name) = item.as_str() else { return Ok(item.value::<dscp::Number>()?.0) };
    let hint = || hint(name, dscp::NAMES.iter().map(|&(name, _)| name));
    dscp::named(name).ok_or_else(|| item.refuse(dscp::ALLOWED, &hint()))
}

/// The transport for this traffic if the scenario gives none; two subflows need QUIC.
pub(crate) fn default_transport(traffic: &Traffic, controller: Option<&ControllerConfig>) -> Transport {
    if controller.is_some_and(ControllerConfig::splits) {
        return Transport::Quic(Default::default());
    }
    match traffic.carriers().first().copied().and_then(Transport::named) {
        Some(transport) => transport,
        None => Transport::Tcp(Default::default()),
    }
}

/// The same for the traffic of a preset, which has a transport of its own.
pub(crate) fn preset_transport(
    preset: Option<&Preset>,
    traffic: &Traffic,
    controller: Option<&ControllerConfig>,
) -> Transport {
    match preset {
        Some(preset) if controller.is_none() => preset.transport(),
        _ => default_transport(traffic, controller),
    }
}

/// The default controller of this transport: CUBIC, as in Linux, Windows and macOS; `None` for UDP.
pub(crate) fn default_controller(transport: &Transport) -> Option<ControllerConfig> {
    transport.is_controlled().then(|| ControllerConfig::Cubic(Default::default()))
}

/// A value, or a pair of values between which each flow draws its own.
fn spread(item: &Item<'_>, allowed: &str) -> Result<(Span, Option<Span>), ScenarioError> {
    if item.is_string() {
        return Ok((item.value()?, None));
    }
    if !item.is_table() {
        return Err(item.refuse(allowed, ""));
    }
    let section = item.section("this range")?;
    section.only(&["uniform"])?;
    let item = section.need("uniform", allowed)?;
    match item.list(allowed)?.as_slice() {
        [low, high] => Ok((low.value()?, Some(high.value()?))),
        _ => Err(item.refuse(&format!("two values, as in {allowed}"), "")),
    }
}

/// A list of hops, by name.
fn way(item: &Item<'_>, hops: &HopNames<'_>) -> Result<Vec<usize>, ScenarioError> {
    let index = |item: &Item<'_>| {
        let Some(name) = item.as_str() else { return Err(item.refuse(&hops.allowed(), "")) };
        let index = hops.index.get(name).copied();
        index.ok_or_else(|| item.refuse(&format!("a hop: {}", hops.allowed()), &hint(name, hops.names.iter().copied())))
    };
    let items = item.as_list().ok_or_else(|| item.refuse(&format!("a list of hops: [{}]", hops.allowed()), ""))?;
    items.iter().map(index).collect()
}
