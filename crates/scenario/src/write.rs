//! Writes a scenario as run, with every parameter, defaults included, so that the file has the same meaning under later defaults.
use crate::check::show;
use crate::keys::{FlowKeys, HopKeys, RecordKeys, TopKeys};
use crate::model::{Flow, Hop, RateSpec, Rtt, Scenario, Start, TraceSource};
use crate::parse::default_transport;
use narrows_core::Time;
use narrows_core::params::{ParamSpec, ParamValue, Params, Unit, WORDS};
use narrows_core::registry::Registered;
use std::fmt::Write;

impl Scenario {
    /// The scenario as a file's text. Parsing it gives an equal scenario if the traces are still in the same place.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        line(&mut out, "name", &quoted(&self.name));
        plain(&mut out, &TopKeys::of(self));
        out.push_str("\n[record]\n");
        if let Some(interval) = self.record.interval {
            line(&mut out, "interval", &quoted(&interval.show()));
        }
        plain(&mut out, &RecordKeys::of(&self.record));
        for item in &self.hops {
            hop(&mut out, item);
        }
        for item in &self.flows {
            flow(&mut out, item, &self.hops);
        }
        for item in &self.expects {
            out.push_str("\n[[expect]]\n");
            line(&mut out, "that", &quoted(&item.to_string()));
            line(&mut out, "runs", &quoted(&item.runs.show()));
        }
        out
    }
}

fn hop(out: &mut String, hop: &Hop) {
    out.push_str("\n[[hop]]\n");
    line(out, "name", &quoted(&hop.name));
    line(out, "rate", &rate(&hop.rate));
    line(out, "queue", &kind(&hop.queue));
    line(out, "delay", &in_steps("delay", &hop.delay.0));
    plain(out, &HopKeys::of(hop));
}

fn flow(out: &mut String, flow: &Flow, hops: &[Hop]) {
    out.push_str("\n[[flow]]\n");
    line(out, "name", &quoted(&flow.name));
    plain(out, &FlowKeys::of(flow));
    if let Some(controller) = &flow.controller {
        line(out, "controller", &kind(controller));
    }
    match &flow.command {
        None => {
            line(out, "traffic", &kind(&flow.traffic));
            line(out, "transport", &kind(&flow.transport));
        }
        Some(command) => {
            line(out, "command", &quoted(command.text()));
            if let Some(server) = &flow.server {
                line(out, "server", &quoted(server.text()));
            }
            // A command needs no transport in the file unless it differs from the default.
            if flow.transport != default_transport(&flow.traffic, flow.controller.as_ref()) {
                line(out, "transport", &kind(&flow.transport));
            }
        }
    }
    let rtt = match flow.rtt {
        Rtt::Fixed(rtt) => quoted(&rtt.show()),
        Rtt::Uniform(low, high) => uniform(&low.show(), &high.show()),
    };
    line(out, "rtt", &rtt);
    let way = |way: &[usize]| {
        let names = way.iter().filter_map(|&i| hops.get(i)).map(|hop| quoted(&hop.name));
        format!("[{}]", names.collect::<Vec<_>>().join(", "))
    };
    line(out, "route", &way(&flow.route));
    line(out, "back", &way(&flow.back));
    if !flow.subflow_route.is_empty() {
        line(out, "subflow_route", &way(&flow.subflow_route));
    }
    let start = match flow.start {
        Start::At(at) => quoted(&show(at)),
        Start::Uniform(first, last) => uniform(&show(first), &show(last)),
    };
    line(out, "start", &start);
    line(out, "stop", &quoted(&show(flow.stop)));
    line(out, "from", &quoted(&flow.from));
    line(out, "to", &quoted(&flow.to));
    line(out, "dscp", &flow.dscp.0.to_string());
}

fn uniform(low: &str, high: &str) -> String {
    format!("{{ uniform = [{}, {}] }}", quoted(low), quoted(high))
}

fn rate(rate: &RateSpec) -> String {
    match rate {
        RateSpec::Trace { source: TraceSource::File(file), .. } => format!("{{ trace = {} }}", quoted(file)),
        RateSpec::Trace { source: TraceSource::Aggregates(packets, mean), .. } => {
            format!("{{ mean = {}, aggregate = {packets} }}", quoted(&mean.show()))
        }
        RateSpec::Schedule(steps) => in_steps("rate", steps),
    }
}

/// A constant value, or a list of steps.
fn in_steps<T: ParamValue>(key: &str, steps: &[(Time, T)]) -> String {
    match steps {
        [(Time::ZERO, value)] => quoted(&value.show()),
        steps => {
            let step = |(at, value): &(Time, T)| {
                format!("    {{ at = {}, {key} = {} }},\n", quoted(&show(*at)), quoted(&value.show()))
            };
            format!("[\n{}]", steps.iter().map(step).collect::<String>())
        }
    }
}

fn kind<K: Registered>(kind: &K) -> String {
    let name = quoted(kind.name());
    let specs = kind.specs();
    if specs.is_empty() {
        return name;
    }
    let values = specs.iter().filter_map(|spec| kind.get(spec.name).map(|text| (spec, text)));
    let values = values.map(|(spec, text)| format!(", {} = {}", spec.name, value(spec, &text)));
    format!("{{ kind = {name}{} }}", values.collect::<String>())
}

/// Writes every parameter, one per line.
fn plain<P: Params>(out: &mut String, params: &P) {
    for spec in P::specs() {
        if let Some(text) = params.get(spec.name) {
            line(out, spec.name, &value(&spec, &text));
        }
    }
}

fn value(spec: &ParamSpec, text: &str) -> String {
    match spec.unit {
        // Some numbers may be words.
        _ if WORDS.contains(&text) => quoted(text),
        // A float always has a decimal point: TOML's integers end at 2⁶³.
        Unit::Number if !text.contains('.') => format!("{text}.0"),
        unit if unit.is_bare() => text.to_owned(),
        _ => quoted(text),
    }
}

fn line(out: &mut String, key: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{key} = {value}");
}

/// A basic string of TOML 1.0.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}
