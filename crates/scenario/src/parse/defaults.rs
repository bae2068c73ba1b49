//! Defaults that depend on other keys, and keys that exclude each other.
use super::{Context, Section};
use crate::check::{self, Fault};
use crate::error::ScenarioError;
use crate::expect::Expectation;
use crate::forms::HopNames;
use crate::keys::Rules;
use crate::model::{Flow, Hop, Record, Scenario};
use crate::preset::Preset;
use crate::traffic::Traffic;
use crate::transport::Transport;
use narrows_core::Time;
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered as _;
use std::path::Path;

impl Rules for Scenario {
    fn settle(&mut self, section: &Section<'_>, _: &Context<'_>) -> Result<(), ScenarioError> {
        if section.item("name").is_none() {
            self.name = stem(section.source().file);
        }
        for (flow, section) in self.flows.iter_mut().zip(section.sections("flow", "[[flow]]")?) {
            if section.item("stop").is_none() {
                flow.stop = Time::ZERO + self.duration;
            }
        }
        Ok(())
    }
}

/// `cocoa.toml` → `cocoa`.
fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

impl Rules for Record {}

impl Rules for Expectation {}

impl Rules for Hop {
    fn note(all: &[Hop], cx: &Context<'_>) -> Result<(), Fault> {
        check::hop_names(all)?;
        // They are read once.
        let _ = cx.hops.set(HopNames::new(all));
        Ok(())
    }
}

impl Rules for Flow {
    fn settle(&mut self, section: &Section<'_>, cx: &Context<'_>) -> Result<(), ScenarioError> {
        let traffic = section.item("traffic");
        if let (Some(item), true) = (&traffic, self.command.is_some()) {
            return Err(item.error(check::COMMAND_OR_TRAFFIC));
        }
        if section.item("transport").is_none() {
            let preset = traffic.and_then(|item| Preset::named(item.kind_name()?));
            self.transport = preset_transport(preset, &self.traffic, self.controller.as_ref());
        }
        if self.controller.is_none() && self.command.is_none() {
            self.controller = default_controller(&self.transport);
        }
        if section.item("route").is_none() {
            let hops = cx.hops();
            if hops.names.len() != 1 {
                return Err(section.lacks("route", &hops.allowed()));
            }
            self.route = vec![0];
        }
        Ok(())
    }

    fn omits(&self, key: &str) -> bool {
        match key {
            "traffic" => self.command.is_some(),
            // A command needs no transport in the file unless it differs from the default.
            "transport" => {
                self.command.is_some() && self.transport == default_transport(&self.traffic, self.controller.as_ref())
            }
            "subflow_route" => self.subflow_route.is_empty(),
            _ => false,
        }
    }
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

/// Like `default_transport`, for the traffic of a preset, which has a transport of its own.
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
