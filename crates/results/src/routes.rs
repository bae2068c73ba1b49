//! The hops that the flows of a result cross, and the choice of flows that a figure may combine.
//!
//! A mean RTT or a fairness index needs flows that are *alike* and have a hop in common. **Bulk flows** are alike: they always
//! have data to send, for at least half of the measured time. Their demand exceeds any share, so their goodput depends on the
//! network alone.
//! - A flow of a scenario is a bulk flow if its traffic is `bulk` and it runs for at least that time between its start and stop.
//! - A program's flow, or a flow that was found at run time, is one if it is TCP and its payload arrived in at least half of the
//!   quarters of a second. A connection that only carries commands, or a name look-up, is not.
use crate::summary::{Fairness, FlowSummary};
use narrows_core::Time;
use narrows_core::registry::Registered;
use narrows_scenario::{Flow, Hop, Scenario, Start, Traffic};
use std::collections::HashMap;

/// Minimum share of the measured time in which a bulk flow sends.
const MIN_ACTIVE_SHARE: f64 = 0.5;

/// The flows of a scenario, by their names in results.
pub struct Routes<'a> {
    scenario: Option<&'a Scenario>,
    groups: HashMap<&'a str, Group<'a>>,
}

/// A group of flows, with the properties that its members share.
struct Group<'a> {
    flow: &'a Flow,
    /// The hops that its data cross: the route, then the hops that only the second subflow crosses.
    hops: Vec<usize>,
    /// Whether its members are bulk flows; `None` if that depends on each result, because a program sends.
    bulk: Option<bool>,
}

impl Group<'_> {
    fn of<'a>(flow: &'a Flow, scenario: &Scenario) -> Group<'a> {
        let mut hops = flow.route.clone();
        hops.extend(flow.subflow_route.iter().filter(|hop| !flow.route.contains(hop)));
        let bulk = || matches!(flow.traffic, Traffic::Bulk(_)) && lasts(flow, scenario);
        Group { flow, hops, bulk: flow.command.is_none().then(bulk) }
    }
}

impl<'a> Routes<'a> {
    /// The flows of this scenario; without one, every flow is taken to cross every hop.
    pub fn of(scenario: Option<&'a Scenario>) -> Routes<'a> {
        let groups = scenario.into_iter().flat_map(|scenario| scenario.flows.iter().map(move |flow| (flow, scenario)));
        let groups = groups.map(|(flow, scenario)| (flow.name.as_str(), Group::of(flow, scenario))).collect();
        Routes { scenario, groups }
    }

    /// The names of the hops that a flow's data cross, in order; `None` if they are not known.
    pub fn route(&self, flow: &'a FlowSummary) -> Option<impl Iterator<Item = &'a str> + Clone> {
        let hops = match flow.route {
            Some(_) => &[][..],
            None => &self.group(&flow.name)?.hops,
        };
        let own = flow.route.iter().flatten().map(String::as_str);
        Some(own.chain(self.names(hops)))
    }

    /// The names of the hops that a flow's acknowledgments cross.
    pub fn back(&self, flow: &FlowSummary) -> impl Iterator<Item = &'a str> {
        self.names(self.group(&flow.name).map_or(&[], |group| &group.flow.back))
    }

    /// Whether a flow's data cross this hop.
    pub fn crosses(&self, flow: &'a FlowSummary, hop: &str) -> bool {
        self.route(flow).is_none_or(|mut route| route.any(|crossed| crossed == hop))
    }

    /// Whether the data of all these flows cross a common hop. A flow whose route is not known crosses every hop.
    pub fn have_a_hop_in_common(&self, flows: &[&'a FlowSummary]) -> bool {
        let mut common: Option<Vec<&str>> = None;
        for route in flows.iter().filter_map(|flow| self.route(flow)) {
            match &mut common {
                None => common = Some(route.collect()),
                Some(common) => common.retain(|hop| route.clone().any(|crossed| crossed == *hop)),
            }
        }
        common.is_none_or(|common| !common.is_empty())
    }

    /// Whether it is a bulk flow.
    pub fn is_bulk(&self, flow: &FlowSummary) -> bool {
        self.sends_bulk(flow, self.group(&flow.name))
    }

    /// Whether its transfers are pages: its traffic is `web`.
    pub fn is_web(&self, flow: &FlowSummary) -> bool {
        self.group(&flow.name)
            .is_some_and(|group| group.flow.command.is_none() && matches!(group.flow.traffic, Traffic::Web(_)))
    }

    fn sends_bulk(&self, flow: &FlowSummary, group: Option<&Group<'_>>) -> bool {
        match (self.scenario, group.and_then(|group| group.bulk)) {
            (Some(_), Some(bulk)) => bulk,
            (Some(_), None) => {
                let is_tcp = flow.rtt_ms.is_some() || protocol(flow) == Some("tcp");
                is_tcp && flow.active.is_some_and(|active| active >= MIN_ACTIVE_SHARE)
            }
            // Without a scenario, only the summary is known.
            (None, _) => flow.completion_s.is_none() && flow.controller != "none",
        }
    }

    /// Selects the flows that are alike from flows with a hop in common: the bulk flows; if there is none, all flows with an RTT,
    /// provided that they are of one kind.
    pub fn alike(&self, flows: &[&'a FlowSummary]) -> Vec<&'a FlowSummary> {
        let bulk: Vec<&FlowSummary> = flows.iter().copied().filter(|flow| self.is_bulk(flow)).collect();
        if !bulk.is_empty() {
            return bulk;
        }
        let timed: Vec<&FlowSummary> = flows.iter().copied().filter(|flow| flow.rtt_ms.is_some()).collect();
        let same = timed.windows(2).all(|pair| self.kind(pair[0]) == self.kind(pair[1]));
        if same { timed } else { Vec::new() }
    }

    /// Jain's index of the bulk flows' goodputs at the hop with the least even shares; 1 if no hop has two bulk flows.
    pub fn fairness(&self, flows: &'a [FlowSummary]) -> Fairness {
        // With 100 000 flows this takes much of the time that a result needs: one look-up by name per flow, and no allocation.
        let hops = self.hops();
        let mut places: HashMap<&str, usize> = hops.iter().enumerate().map(|(n, hop)| (hop.name.as_str(), n)).collect();
        let mut jains = vec![Jain::default(); hops.len()];
        for flow in flows {
            let group = self.group(&flow.name);
            if !self.sends_bulk(flow, group) {
                continue;
            }
            for hop in flow.route.iter().flatten() {
                let place = *places.entry(hop).or_insert(jains.len());
                jains.resize(jains.len().max(place + 1), Jain::default());
                jains[place].add(flow.goodput_mbit);
            }
            if let (None, Some(group)) = (&flow.route, group) {
                let crossed = |jain: &mut Jain| jain.add(flow.goodput_mbit);
                group.hops.iter().for_each(|&hop| jains.get_mut(hop).map_or((), crossed));
            }
        }
        Fairness { jain: jains.iter().filter_map(Jain::index).fold(1.0, f64::min) }
    }

    fn group(&self, flow: &str) -> Option<&Group<'a>> {
        // A member's name is its group's with a number; names are unique, so at most one of the two look-ups succeeds.
        let member = flow.rsplit_once('.').and_then(|(group, _)| self.groups.get(group));
        member
            .filter(|group| group.flow.count > 1)
            .or_else(|| self.groups.get(flow).filter(|group| group.flow.count == 1))
    }

    fn hops(&self) -> &'a [Hop] {
        self.scenario.map_or(&[], |scenario| &scenario.hops)
    }

    fn names<'r>(&self, hops: &'r [usize]) -> impl Iterator<Item = &'a str> + Clone + use<'r, 'a> {
        let all = self.hops();
        hops.iter().filter_map(|&hop| Some(all.get(hop)?.name.as_str()))
    }

    /// The kind of a flow's payload: traffic and transport, a program, or a protocol.
    fn kind(&self, flow: &'a FlowSummary) -> (&'a str, &'a str) {
        match self.group(&flow.name) {
            Some(Group { flow: Flow { command: Some(command), .. }, .. }) => (command.program(), ""),
            Some(group) => (group.flow.traffic.name(), group.flow.transport.name()),
            None => (protocol(flow).unwrap_or(&flow.name), ""),
        }
    }
}

/// The transport of a flow that was found behind a shell.
fn protocol(flow: &FlowSummary) -> Option<&str> {
    flow.five_tuple.as_deref()?.split(' ').next()
}

/// Whether every flow of a group sends for most of the measured time, from the last start to the first stop.
fn lasts(group: &Flow, scenario: &Scenario) -> bool {
    let (warmup, end) = (Time::ZERO + scenario.warmup, Time::ZERO + scenario.duration);
    let (Start::At(start) | Start::Uniform(_, start)) = group.start;
    let life = group.stop.min(end).since(start.max(warmup));
    life.as_secs_f64() >= MIN_ACTIVE_SHARE * end.since(warmup).as_secs_f64()
}

/// Jain's fairness index, (Σx)² ÷ (n·Σx²), of the added values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jain {
    n: u32,
    sum: f64,
    squares: f64,
}

impl Jain {
    /// Adds a goodput.
    pub fn add(&mut self, goodput: f64) {
        self.n += 1;
        self.sum += goodput;
        self.squares += goodput * goodput;
    }

    /// The index: 1 if all are equal, 1/n if one flow has everything; `None` with fewer than two values, 1 if all are zero.
    pub fn index(&self) -> Option<f64> {
        let index = if self.squares == 0.0 { 1.0 } else { self.sum * self.sum / (f64::from(self.n) * self.squares) };
        (self.n > 1).then_some(index)
    }
}

impl FromIterator<f64> for Jain {
    fn from_iter<I: IntoIterator<Item = f64>>(goodputs: I) -> Jain {
        let mut jain = Jain::default();
        goodputs.into_iter().for_each(|goodput| jain.add(goodput));
        jain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::NoTraces;

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_a_monopoly() {
        let index = |goodputs: &[f64]| goodputs.iter().copied().collect::<Jain>().index();
        assert_eq!(index(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(index(&[0.0, 0.0, 5.0, 0.0]), Some(0.25));
        assert_eq!(index(&[0.0, 0.0]), Some(1.0));
        assert_eq!((index(&[4.0]), index(&[])), (None, None));
    }

    fn scenario(flows: &str) -> Scenario {
        let text = format!(
            "duration = \"20s\"\nwarmup = \"4s\"\n[[hop]]\nname = \"a\"\nrate = \"9mbit\"\nqueue = \"fifo\"\n[[hop]]\nname = \"b\"\n\
             rate = \"9mbit\"\nqueue = \"fifo\"\n{flows}"
        );
        Scenario::parse(&text, "s.toml", &NoTraces).expect("it is legal")
    }

    fn group(name: &str, more: &str) -> String {
        format!("[[flow]]\nname = \"{name}\"\nrtt = \"20ms\"\n{more}\n")
    }

    fn flow(name: &str, goodput_mbit: f64) -> FlowSummary {
        FlowSummary { name: name.into(), controller: "cubic".into(), goodput_mbit, ..FlowSummary::default() }
    }

    #[test]
    fn only_bulk_flows_at_one_hop_are_held_against_each_other() {
        let scenario = scenario(
            &[
                group("long", "route = [\"a\", \"b\"]"),
                group("near", "count = 2\nroute = [\"a\"]"),
                group("far", "route = [\"b\"]"),
                group("talk", "traffic = \"thin\"\nroute = [\"a\"]"),
                group("late", "route = [\"a\"]\nstart = \"13s\""),
            ]
            .concat(),
        );
        let flows = [("long", 3.0), ("near.0", 3.0), ("near.1", 3.0), ("far", 6.0), ("talk", 0.1), ("late", 0.2)];
        let flows = flows.map(|(name, goodput)| flow(name, goodput));
        let routes = Routes::of(Some(&scenario));
        let bulk: Vec<bool> = flows.iter().map(|flow| routes.is_bulk(flow)).collect();
        assert_eq!(bulk, [true, true, true, true, false, false]);
        assert!(routes.route(&flows[0]).expect("it is known").eq(["a", "b"]));
        assert!(routes.crosses(&flows[1], "a") && !routes.crosses(&flows[1], "b"));
        // At a both flows have the same; at b they have 3 and 6: 81 ÷ (2 · 45).
        assert_eq!(routes.fairness(&flows), Fairness { jain: 0.9 });
        assert_eq!(routes.fairness(&flows[3..]), Fairness { jain: 1.0 }, "no two at one hop");
    }

    #[test]
    fn what_only_carries_commands_is_no_bulk_flow() {
        let scenario = scenario(&group("app", "command = \"iperf3 -c {peer}\"\nroute = [\"a\"]"));
        let found = |name: &str, five_tuple: &str, active: f64| FlowSummary {
            route: Some(vec!["a".into()]),
            five_tuple: Some(five_tuple.to_owned()),
            active: Some(active),
            ..flow(name, 1.0)
        };
        let flows = [
            found("app.a.tcp.0", "tcp 10.0.0.1:5000 > 10.0.0.2:5201", 0.03),
            found("app.a.tcp.1", "tcp 10.0.0.1:5001 > 10.0.0.2:5201", 0.98),
            found("app.a.udp", "udp 10.0.0.1:4000 > 10.0.0.2:53", 0.9),
        ];
        let routes = Routes::of(Some(&scenario));
        let shown: Vec<&FlowSummary> = flows.iter().collect();
        assert_eq!(routes.alike(&shown), [&flows[1]]);
        assert_eq!(routes.fairness(&flows), Fairness { jain: 1.0 });
    }

    #[test]
    fn flows_of_one_kind_are_alike_where_nothing_is_bulk() {
        let thin = "traffic = \"thin\"\nroute = [\"a\"]";
        let scenario =
            scenario(&[group("x", thin), group("y", thin), group("z", "traffic = \"web\"\nroute = [\"a\"]")].concat());
        let mut flows = ["x", "y", "z"].map(|name| flow(name, 1.0));
        flows.iter_mut().for_each(|flow| flow.rtt_ms = Some(Default::default()));
        let routes = Routes::of(Some(&scenario));
        let of = |n: usize| routes.alike(&flows[..n].iter().collect::<Vec<_>>()).len();
        assert_eq!((of(2), of(3)), (2, 0));
    }
}
