//! A short description of the run.
use crate::comparison::{Comparison, Group};
use crate::draw::shortened;
use narrows_core::registry::Registered;
use narrows_core::{Rate, Span};
use narrows_results::folder::users_name;
use narrows_results::summary::{MadeIn, Passing};
use narrows_scenario::printable::printable;
use narrows_scenario::{Hop, RateSpec, Rtt, Scenario, TraceSource};
use std::collections::BTreeSet;

/// Most links that are named.
const MAX_LINKS: usize = 16;

/// Most characters of a command in a title.
const LONGEST_TITLE: usize = 60;

/// A term and its value.
pub(super) struct Fact {
    pub(super) term: &'static str,
    pub(super) text: String,
}

/// The scenario's name. A shell's scenario is called after its program; its command says more.
pub(super) fn title(comparison: &Comparison) -> String {
    let scenario = comparison.runs().find_map(|run| run.scenario.as_ref());
    let command = scenario.into_iter().flat_map(|scenario| &scenario.flows).find_map(|flow| flow.command.as_ref());
    match command.filter(|command| command.program() == comparison.title) {
        Some(command) => shortened(&printable(command.text()), LONGEST_TITLE),
        None => comparison.title.clone(),
    }
}

/// `5 queues side by side, 10 runs each`.
pub(super) fn subtitle(comparison: &Comparison) -> String {
    let runs = match (comparison.max_runs(), comparison.groups.iter().all(Group::are_copies)) {
        (1, _) => "one run".to_owned(),
        (runs, true) => format!("{runs} identical runs"),
        (runs, false) => format!("{runs} runs"),
    };
    match comparison.groups.len() {
        0 | 1 => runs,
        groups => format!("{groups} queues side by side, {runs} each"),
    }
}

/// The link, the flows, the time, the seeds.
pub(super) fn facts(comparison: &Comparison) -> Vec<Fact> {
    let mut facts = Vec::new();
    let scenario = comparison.runs().find_map(|run| run.scenario.as_ref());
    let mut fact = |term, text: String| facts.push(Fact { term, text });
    if let Some(scenario) = scenario {
        let several = scenario.hops.len() > 1;
        let named = scenario.hops.iter().take(MAX_LINKS).map(|hop| link(hop, several));
        let more = scenario.hops.len().checked_sub(MAX_LINKS).filter(|more| *more > 0);
        let links: Vec<String> = named.chain(more.map(|more| format!("{more} more"))).collect();
        fact(if several { "Links" } else { "Link" }, links.join("; "));
        fact("Base RTT", rtts(scenario));
        let flows: Vec<String> = scenario.flows.iter().map(flow).collect();
        fact("Flows", flows.join(", "));
    } else {
        fact("Flows", comparison.flow_groups().join(", "));
    }
    if let Some(run) = comparison.runs().next() {
        let summary = &run.result.summary;
        let warmup = if summary.warmup_s > 0.0 {
            format!(", the first {} s left out of every mean", short(summary.warmup_s))
        } else {
            String::new()
        };
        fact("Duration", format!("{} s{warmup}", short(summary.duration_s)));
    }
    let mut seeds: Vec<u64> = comparison.runs().map(|run| run.result.summary.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    fact(if seeds.len() > 1 { "Seeds" } else { "Seed" }, ranges(&seeds));
    let worlds: BTreeSet<String> =
        comparison.runs().filter_map(|run| run.result.summary.world.as_ref()).map(world).collect();
    if !worlds.is_empty() {
        let worlds: Vec<String> = worlds.into_iter().collect();
        fact(if worlds.len() > 1 { "Worlds" } else { "World" }, worlds.join("; "));
    }
    facts
}

fn world(made_in: &MadeIn) -> String {
    let time = match made_in.time {
        Passing::Virtual => "virtual time",
        Passing::Real => "real time",
    };
    format!("{}, Linux {}, {time}", made_in.name, made_in.linux)
}

fn link(hop: &Hop, named: bool) -> String {
    let rate = match &hop.rate {
        RateSpec::Schedule(steps) if steps.len() == 1 => bits(hop.rate.initial()),
        RateSpec::Schedule(steps) => {
            let each: Vec<String> = steps.iter().take(4).map(|(_, rate)| bits(*rate)).collect();
            format!("{}{}", each.join(" → "), if steps.len() > 4 { " → …" } else { "" })
        }
        RateSpec::Trace { source: TraceSource::File(file), .. } => {
            let name = Some(users_name(file)).filter(|name| !name.is_empty()).unwrap_or(file);
            format!("trace {name}, mean {}", bits(hop.rate.initial()))
        }
        RateSpec::Trace { source: TraceSource::Aggregates(packets, mean), .. } => {
            format!("{} in aggregates of {packets} packets", bits(*mean))
        }
    };
    let mut text = if named { format!("{} {rate}", hop.name) } else { rate };
    if let [(_, first), later @ ..] = hop.delay.0.as_slice()
        && !later.is_empty()
    {
        let later: Vec<String> = later.iter().take(3).map(|(_, delay)| short(delay.as_ms_f64())).collect();
        let more = if hop.delay.0.len() > 4 { " → …" } else { "" };
        text.push_str(&format!(", delay {} → {}{more} ms", short(first.as_ms_f64()), later.join(" → ")));
    }
    if hop.jitter > Span::ZERO {
        text.push_str(&format!(", ± {} ms jitter", short(hop.jitter.as_ms_f64())));
    }
    if let Some(share) = hop.loss.independent().filter(|&share| share > 0.0) {
        text.push_str(&format!(", {} % random loss", short(100.0 * share)));
    }
    for (key, words) in hop.effects_in_words() {
        if key != "loss" || hop.loss.independent().is_none() {
            text.push_str(&format!(", {} {words}", key.replace('_', " ")));
        }
    }
    text
}

fn rtts(scenario: &Scenario) -> String {
    let mut texts: Vec<String> = Vec::new();
    for flow in &scenario.flows {
        let text = match flow.rtt {
            Rtt::Fixed(rtt) => format!("{} ms", short(rtt.as_ms_f64())),
            Rtt::Uniform(from, to) => format!("{}–{} ms", short(from.as_ms_f64()), short(to.as_ms_f64())),
        };
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}

/// `call (udp, thin)`, `2 × bulk (cubic)`; a flow that has the name of its controller needs no more.
fn flow(flow: &narrows_scenario::Flow) -> String {
    let what = match (&flow.command, &flow.controller) {
        (Some(command), _) => printable(command.text()).into_owned(),
        (None, Some(controller)) => controller.name().to_owned(),
        (None, None) => flow.transport.name().to_owned(),
    };
    let traffic = flow.traffic.name();
    let about = if traffic == "bulk" || flow.command.is_some() { what } else { format!("{what}, {traffic}") };
    let name = &flow.name;
    let text = if *name == about { about } else { format!("{name} ({about})") };
    if flow.count == 1 { text } else { format!("{} × {text}", flow.count) }
}

fn bits(rate: Rate) -> String {
    let mbit = rate.as_mbit_f64();
    match mbit {
        m if m >= 1000.0 => format!("{} Gbit/s", short(m / 1000.0)),
        m if m >= 1.0 => format!("{} Mbit/s", short(m)),
        m => format!("{} kbit/s", short(m * 1000.0)),
    }
}

/// `1–5, 9`.
fn ranges(sorted: &[u64]) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for &n in sorted {
        match parts.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(n) => *end = n,
            _ => parts.push((n, n)),
        }
    }
    let text = |&(from, to): &(u64, u64)| if from == to { from.to_string() } else { format!("{from}–{to}") };
    parts.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Up to three decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_short() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1–3, 7, 9–10");
        assert_eq!(bits(Rate::kbit(1_500_000)), "1.5 Gbit/s");
        assert_eq!(bits(Rate::kbit(256)), "256 kbit/s");
        assert_eq!(short(0.1), "0.1");
    }
}
