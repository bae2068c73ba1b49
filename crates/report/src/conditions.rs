//! The conditions under which two runs were made, and the differences between them.
//!
//! A difference between two results means something if they were made under the same conditions. Users compare *algorithms*:
//! queue, controller and transport, with their parameters. These may differ, and so may seeds and worlds. Everything else that
//! shapes the traffic is a *condition*: the duration and the warm-up, the hops with their rates, delays and losses, the flows with
//! their number, RTTs, routes, times and traffic. The name of the scenario and its recording change no figure and are ignored.
use crate::comparison::{Comparison, Group, Run};
use narrows_scenario::keys::{Difference, Role};
use narrows_scenario::{Flow, Hop, Scenario};

/// The differences between the runs of two results, in words: `flow bulk, rtt: 40ms → 80ms`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contrast {
    /// Differences in conditions: if there are any, the results do not compare the algorithms.
    pub conditions: Vec<String>,
    /// Differences in algorithms.
    pub algorithms: Vec<String>,
}

impl Contrast {
    /// The differences between two results; groups of the same name are compared with each other.
    pub fn between(first: &Comparison, second: &Comparison) -> Contrast {
        let mut all = Contrast::default();
        for (a, b) in first.matching(second) {
            let (Some(a), Some(b)) = (a.first(), b.first()) else { continue };
            let contrast = Contrast::of_runs(a, b);
            for (all, new) in [(&mut all.conditions, contrast.conditions), (&mut all.algorithms, contrast.algorithms)] {
                new.into_iter().for_each(|words| {
                    if !all.contains(&words) {
                        all.push(words)
                    }
                });
            }
        }
        all
    }

    /// The differences between two runs. If a scenario is missing, only the summaries are compared.
    pub fn of_runs(a: &Run, b: &Run) -> Contrast {
        let mut contrast = Contrast::default();
        match (&a.scenario, &b.scenario) {
            (Some(first), Some(second)) => {
                contrast.of_scenarios(&first.undrawn(), &second.undrawn(), a.is_of_a_shell() && b.is_of_a_shell());
            }
            _ => contrast.of_summaries(a, b),
        }
        contrast
    }

    fn of_scenarios(&mut self, a: &Scenario, b: &Scenario, of_shells: bool) {
        self.note("", Scenario::differences([a, b], [a, b]), of_shells);
        for (in_a, in_b) in pairs("hop", &a.hops, &b.hops, |hop| &hop.name, &mut self.conditions) {
            let differences = Hop::differences([in_a, in_b], [a, b]);
            self.note(&format!("hop {}, ", in_a.name), differences, of_shells);
        }
        for (in_a, in_b) in pairs("flow", &a.flows, &b.flows, |flow| &flow.name, &mut self.conditions) {
            let differences = Flow::differences([in_a, in_b], [a, b]);
            self.note(&format!("flow {}, ", in_a.name), differences, of_shells);
        }
    }

    fn note(&mut self, place: &str, differences: Vec<Difference>, of_shells: bool) {
        for Difference { key, role, values: [a, b] } in differences {
            let into = match role {
                Role::Label => continue,
                // A shell lasts as long as its command: that is a result, not a condition.
                Role::Length if of_shells => continue,
                Role::Condition | Role::Length => &mut self.conditions,
                Role::Algorithm => &mut self.algorithms,
            };
            let b = if a == b { format!("{b}, another one") } else { b };
            into.push(format!("{place}{key}: {a} → {b}"));
        }
    }

    fn of_summaries(&mut self, a: &Run, b: &Run) {
        let [a, b] = [&a.result.summary, &b.result.summary];
        self.condition("", "duration", format!("{} s", a.duration_s), format!("{} s", b.duration_s));
        self.condition("", "warmup", format!("{} s", a.warmup_s), format!("{} s", b.warmup_s));
        let hops = pairs("hop", &a.hops, &b.hops, |hop| &hop.name, &mut self.conditions);
        for (a, b) in hops {
            differs(&mut self.algorithms, &format!("hop {}, ", a.name), "queue", &a.queue, &b.queue);
        }
        let flows = pairs("flow", &a.flows, &b.flows, |flow| &flow.name, &mut self.conditions);
        for (a, b) in flows {
            let place = format!("flow {}, ", a.name);
            differs(&mut self.algorithms, &place, "controller", &a.controller, &b.controller);
        }
    }

    fn condition<T: PartialEq + ToString>(&mut self, place: &str, key: &str, a: T, b: T) {
        differs(&mut self.conditions, place, key, a, b);
    }
}

/// Whether runs with the same seed are pairs: both groups have the same seeds, and a seed draws the same in both. Starts and
/// RTTs are drawn from the seed, the flow and the interval.
pub(crate) fn are_paired(a: &Group, b: &Group) -> bool {
    let seeds = |group: &Group| {
        let mut seeds: Vec<u64> = group.runs.iter().map(|run| run.result.summary.seed).collect();
        seeds.sort_unstable();
        seeds
    };
    let (of_a, of_b) = (seeds(a), seeds(b));
    let (Some(first), Some(second)) = (a.first(), b.first()) else { return false };
    let (Some(one), Some(other)) = (&first.scenario, &second.scenario) else { return false };
    let draws = |s: &Scenario| s.flows.iter().map(|f| (f.name.clone(), f.count, f.rtt, f.start)).collect::<Vec<_>>();
    of_a == of_b
        && of_a.windows(2).all(|pair| pair[0] < pair[1])
        && draws(one) == draws(other)
        && Contrast::of_runs(first, second).conditions.is_empty()
}

impl Run {
    /// Whether the run shows a shell, whose flows are found at run time.
    fn is_of_a_shell(&self) -> bool {
        let flows = self.scenario.as_ref().map_or(&[][..], |scenario| &scenario.flows);
        matches!(flows, [only] if only.command.is_some() && self.result.summary.flows.iter().all(|f| f.name != only.name))
    }
}

/// Pairs items with the same name; an item that only one side has is a difference in conditions.
fn pairs<'a, T>(
    what: &str,
    a: &'a [T],
    b: &'a [T],
    name: fn(&T) -> &str,
    conditions: &mut Vec<String>,
) -> Vec<(&'a T, &'a T)> {
    let in_b: std::collections::HashMap<&str, &T> = b.iter().map(|item| (name(item), item)).collect();
    let in_a: std::collections::HashSet<&str> = a.iter().map(name).collect();
    let mut both = Vec::new();
    let mut lack = |in_which: &str, missing: Vec<&str>| match missing.as_slice() {
        [] => {}
        few if few.len() <= MAX_NAMED => conditions.push(format!("{what} {}: only in {in_which}", few.join(", "))),
        many => conditions.push(format!(
            "{what} {} and {} more: only in {in_which}",
            many[..MAX_NAMED].join(", "),
            many.len() - MAX_NAMED
        )),
    };
    let mut only_a = Vec::new();
    for item in a {
        match in_b.get(name(item)) {
            Some(other) => both.push((item, *other)),
            None => only_a.push(name(item)),
        }
    }
    lack("a", only_a);
    lack("b", b.iter().map(name).filter(|name| !in_a.contains(name)).collect());
    both
}

/// Maximum number of names in a line.
const MAX_NAMED: usize = 5;

fn differs<T: PartialEq + ToString>(into: &mut Vec<String>, place: &str, key: &str, a: T, b: T) {
    if a != b {
        into.push(format!("{place}{key}: {} → {}", a.to_string(), b.to_string()));
    }
}
