//! Links and single flows as a scenario describes them.
use crate::call::Call;
use narrows_core::htb::{self, Htb};
use narrows_core::link::{Link, Service};
use narrows_core::queue::{LinkHint, Queue};
use narrows_core::{Bytes, Dscp, Propagation, Rate, Rng, Span, Time};
use narrows_scenario::classes::Class;
use narrows_scenario::model;
use narrows_scenario::traffic::Video;
use narrows_scenario::{RateSpec, Release, Rtt, Scenario, Start, Traffic};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The link of a hop, with its queue and service. `rtt` is the hop's entry in [`longest_rtts`].
pub fn link(scenario: &Scenario, index: usize, rtt: Span, mtu: Bytes) -> Link {
    let spec = &scenario.hops[index];
    let hint = LinkHint { rate: spec.mean_rate(), rtt, mtu: spec.on_the_wire(mtu) };
    let queue = queue(scenario, spec, &hint);
    let rate = spec.rate.initial();
    let mechanism = spec.mechanism.as_ref().map(|mechanism| mechanism.build(rate, stream(scenario, spec, "mechanism")));
    match (mechanism, &spec.autorate) {
        (Some(mechanism), None) => Link::mechanized(queue, mechanism),
        (Some(mechanism), Some(autorate)) => Link::adaptive(queue, autorate, mechanism, spec.delay.initial() * 2),
        (None, _) => Link::new(queue, service(spec)),
    }
}

/// The queue of a hop, or the tree of its classes with theirs.
fn queue(scenario: &Scenario, spec: &model::Hop, hint: &LinkHint) -> Queue {
    let Some(default) = spec.default_leaf() else { return spec.queue.build(hint, stream(scenario, spec, "queue")) };
    let built = |((class, parent), is_leaf): ((&Class, Option<usize>), bool)| {
        let (queue, hint) = spec.queue_in(class, hint);
        let rng = || stream(scenario, spec, &format!("class.{}.queue", class.name));
        htb::Class {
            parent,
            rate: class.rate,
            ceil: class.ceil,
            burst: class.burst,
            cburst: class.cburst,
            prio: class.prio as u8,
            quantum: class.quantum,
            queue: is_leaf.then(|| queue.build(&hint, rng())),
        }
    };
    let classes = spec.classes.iter().zip(spec.parents()).zip(spec.leaves()).map(built).collect();
    let points: Vec<_> = spec.points().collect();
    Htb::new(classes, &points, default).into()
}

/// The propagation from a hop's link to the next hop.
pub fn propagation(scenario: &Scenario, hop: &model::Hop) -> Propagation {
    Propagation::new(&hop.delay.0, hop.jitters(), stream(scenario, hop, "jitter"))
}

/// A hop's stream of random numbers for this purpose.
pub fn stream(scenario: &Scenario, hop: &model::Hop, purpose: &str) -> Rng {
    Rng::stream(scenario.seed, &format!("hop.{}.{purpose}", hop.name))
}

/// The stream of random numbers of one flow of a group for this purpose.
pub fn member_stream(scenario: &Scenario, group: &model::Flow, member: u32, purpose: &str) -> Rng {
    Rng::stream(scenario.seed, &format!("flow.{}.{member}.{purpose}", group.name))
}

/// The base RTT of one flow of a group.
pub fn rtt(scenario: &Scenario, group: &model::Flow, member: u32) -> Span {
    match group.rtt {
        Rtt::Fixed(rtt) => rtt,
        Rtt::Uniform(low, high) => {
            Span::ns(between(low.as_ns(), high.as_ns(), member_stream(scenario, group, member, "rtt")))
        }
    }
}

/// When one flow of a group starts.
pub fn start(scenario: &Scenario, group: &model::Flow, member: u32) -> Time {
    match group.start {
        Start::At(at) => at,
        Start::Uniform(low, high) => {
            Time::from_ns(between(low.as_ns(), high.as_ns(), member_stream(scenario, group, member, "start")))
        }
    }
}

/// The constant delay behind the last hop: the part of the base RTT that the hops there and back do not account for at the start.
///
/// In every world it is on the way back, after the last hop of the acknowledgments. So a packet's one-way delay is that of the hops
/// which it crosses and of their queues, in captures, figures and scores alike.
///
/// Later delay changes of hops affect neither it nor the lookahead of a parallel run.
pub fn behind(scenario: &Scenario, group: &model::Flow, there: &[usize], rtt: Span) -> Span {
    let delay = |way: &[usize]| way.iter().fold(Span::ZERO, |sum, &hop| sum + scenario.hops[hop].delay.initial());
    rtt - (delay(there) + delay(&group.back))
}

/// The name of what decides how fast a group of flows sends: a congestion controller, or a call's rate control.
pub fn controller_name(group: &model::Flow) -> String {
    match (&group.controller, &group.traffic) {
        (Some(controller), _) => controller.to_string(),
        (None, Traffic::Video(video)) if group.command.is_none() => video.control.0.to_string(),
        (None, _) => "none".into(),
    }
}

/// Makes both ends of a call, for one flow of a group. `digits` are the significant digits of its quantiles.
pub fn call(scenario: &Scenario, group: &model::Flow, member: u32, video: &Video, digits: u8) -> Call {
    Call::new(video, group.header(), digits, member_stream(scenario, group, member, "encoder"))
}

/// For each time at which a rate on a route changes: does the narrowest hop schedule its flows fairly? A trace counts with its
/// mean rate, a queue that shapes with its own rate if that is lower.
pub fn is_fair(scenario: &Scenario, way: &[usize], point: Dscp) -> Arc<[(Time, bool)]> {
    let changes = |(place, &hop): (usize, &usize)| -> Vec<(Time, usize, Rate)> {
        let model::Hop { rate, queue, .. } = &scenario.hops[hop];
        let least = |rate: Rate| queue.traits().shapes_to.map_or(rate, |shaped| rate.min(shaped));
        match rate {
            RateSpec::Schedule(steps) => steps.iter().map(|&(at, rate)| (at, place, least(rate))).collect(),
            trace @ RateSpec::Trace { .. } => vec![(Time::ZERO, place, least(trace.initial()))],
        }
    };
    let mut changes: Vec<(Time, usize, Rate)> = way.iter().enumerate().flat_map(changes).collect();
    changes.sort_unstable();
    // The present rates, the lowest first; of equal ones, the first hop on the route.
    let mut rates = BTreeSet::new();
    let mut current = vec![None; way.len()];
    let of_time = |changes: &[(Time, usize, Rate)]| {
        for &(_, place, rate) in changes {
            if let Some(before) = current[place].replace(rate) {
                rates.remove(&(before, place));
            }
            rates.insert((rate, place));
        }
        let &(_, narrowest) = rates.first()?;
        Some((changes[0].0, scenario.hops[way[narrowest]].queue_of(point).traits().isolates))
    };
    changes.chunk_by(|a, b| a.0 == b.0).filter_map(of_time).collect()
}

fn between(low: u64, high: u64, mut rng: Rng) -> u64 {
    low + rng.below(high.saturating_sub(low) + 1)
}

/// For each hop, the longest base RTT at the start of the flows that cross it; 100 ms if no flow crosses it.
pub fn longest_rtts(scenario: &Scenario) -> Vec<Span> {
    let mut longest = vec![None; scenario.hops.len()];
    for flow in &scenario.flows {
        let (Rtt::Fixed(rtt) | Rtt::Uniform(_, rtt)) = flow.rtt;
        for &hop in flow.route.iter().chain(&flow.back) {
            longest[hop] = longest[hop].max(Some(rtt));
        }
    }
    longest.into_iter().map(|rtt| rtt.unwrap_or(Span::ms(100))).collect()
}

fn service(spec: &model::Hop) -> Service {
    match (&spec.rate, spec.release) {
        (RateSpec::Schedule(steps), Release::End) => Service::Wire(steps.clone()),
        (RateSpec::Schedule(steps), Release::Start) => Service::Shaper { rate: steps.clone(), burst: spec.burst },
        (RateSpec::Trace { opportunities, period, .. }, _) => {
            Service::Opportunities { at: opportunities.clone(), period: *period }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::NoTraces;

    /// What a detector's verdicts are judged by, behind a link with this queue.
    fn truth(queue: &str) -> bool {
        let text = format!(
            "duration = \"1s\"\n[[hop]]\nname = \"h\"\nrate = \"1mbit\"\nqueue = {queue}\n\
             [[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [\"h\"]\n"
        );
        let scenario = Scenario::parse(&text, "truth.toml", &NoTraces).expect("it is legal");
        is_fair(&scenario, &[0], Dscp(0))[0].1
    }

    #[test]
    fn the_truth_about_a_queue_follows_its_parameters() {
        let modes = ["flows", "dual-srchost", "dual-dsthost", "triple-isolate"];
        let apart = modes.map(|mode| format!("{{ kind = \"cake\", flow_mode = \"{mode}\" }}"));
        for queue in apart.iter().map(String::as_str).chain(["\"fq_codel\"", "\"sfq\"", "\"fq\"", "\"cocoa\""]) {
            assert!(truth(queue), "{queue} isolates the flows between two hosts");
        }
        let modes = ["flowblind", "srchost", "dsthost", "hosts"];
        let shared = modes.map(|mode| format!("{{ kind = \"cake\", flow_mode = \"{mode}\" }}"));
        let one_bucket = [("fq_codel", "flows", 1), ("fq_pie", "flows", 1), ("sfq", "divisor", 1), ("sfq", "flows", 1)];
        let masked = ["fq", "fq_cp", "cocoa"].map(|kind| (kind, "orphan_mask", 0));
        let one_bucket = one_bucket.into_iter().chain(masked);
        let one_bucket = one_bucket.map(|(kind, name, value)| format!("{{ kind = \"{kind}\", {name} = {value} }}"));
        for queue in one_bucket.chain(shared) {
            assert!(!truth(&queue), "{queue} is one queue for the flows between two hosts");
        }
    }
}
