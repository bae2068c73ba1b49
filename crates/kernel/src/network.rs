//! A scenario's network as `ip` and `tc` make it, as text: one batch of commands for each program.
//!
//! Three network namespaces: the hosts of side 0, those of side 1, and a router between them. In the router each hop is a pair of veth
//! devices, both ends in the router's own namespace: a packet that is routed into one end passes its queue and comes out of the
//! other, where it is routed again. Rules for the device of arrival (and for ports, where flows part) say where it goes next. What delays packets is
//! another such pair, with `netem`:
//!
//! - after a hop: its propagation delay, jitter, losses and other effects; for a wire also the time that its bits take, because `htb` hands a packet over
//!   when its first bit is due ([`Release::Start`]);
//! - after the last hop of the acknowledgments: the part of the base RTT that no hop accounts for.
//!
//! A hop's policer is in front of its queue, where packets come out of a pair of their own.
//!
//! Both ends of a pair have the same MAC address and no ARP, so that no packet is sent to find a neighbour.
use narrows_core::framing::{Atm, Framing};
use narrows_core::netem::Loss;
use narrows_core::policer::Exceed;
use narrows_core::queue::LinkHint;
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_host::FIRST_PORT;
use narrows_host::layout::{self, Direction, FlowEnds, Layout};
use narrows_scenario::{Family, Flow, Hop, RateSpec, Scenario};
use narrows_world::build;
use netem::us;
use shaper::{below, class, shaper};
use std::fmt::Write as _;
use std::net::IpAddr;

mod netem;
mod shaper;

/// The commands that make a scenario's network, and those that change it in the course of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// What `ip -batch` does in the router: makes all devices; `SIDE0` and `SIDE1` stand for the namespaces of the hosts.
    pub router: String,
    /// What `ip -6 -batch` does there after that: routes and rules.
    pub router_v6: String,
    /// What `tc -batch` does in the router.
    pub queues: String,
    /// What `ip -batch` does in the namespace of each side.
    pub sides: [String; 2],
    /// What `tc -batch` does in the namespace of each side: counts the datagrams that programs receive, by the flow's number plus one.
    pub counters: [String; 2],
    /// The device of each hop of the scenario, on which its queue is; `None` for a hop that no flow crosses.
    pub devices: Vec<Option<String>>,
    /// Devices in the router and in the sides; on all of them segmentation offloads are switched off.
    pub all: [Vec<String>; 3],
    /// `tc -batch` in the router, at these times.
    pub changes: Vec<(Time, String)>,
    /// Tables of delays that `tc` has to find: names and texts.
    pub tables: Vec<(String, String)>,
    /// Kernel modules, without what they depend on.
    pub modules: Vec<String>,
}

/// The name of the device that leads to a side.
pub(crate) const TO_SIDE: [&str; 2] = ["side0", "side1"];
/// The device in each side.
pub const IN_SIDE: &str = "router";
/// The modules of what counts datagrams.
const COUNTERS: [&str; 3] = ["sch_ingress", "cls_flower", "act_gact"];
/// The modules of a policer.
const POLICER: [&str; 3] = ["sch_ingress", "cls_matchall", "act_police"];
/// Those of one that marks, in addition.
const MARKER: [&str; 3] = ["cls_flower", "act_skbmod", "act_gact"];
/// Routing tables of devices begin here.
const FIRST_TABLE: usize = 1000;
/// The most devices: each distinct delay takes a pair.
const MAX_PAIRS: usize = 1000;
/// A frame's header on Ethernet, which `tc` counts, and a link of a scenario does not.
pub(crate) const ETHERNET: u64 = 14;
const ETHERNET_HEADER: Framing = Framing { overhead: ETHERNET as u32, mpu: 0, atm: Atm::Noatm };
/// Longest packet at the IP layer.
pub(crate) const MTU: u64 = 1500;
/// Packets that a delay holds; more than any window.
const NETEM_LIMIT: u32 = 1_000_000;
/// What a packet crosses on its way: pairs of devices by their names.
#[derive(Default)]
struct Pairs {
    names: Vec<String>,
    /// The MTU of the end of each with the discipline.
    mtus: Vec<u64>,
    /// The discipline of each, as commands for `tc`.
    queues: String,
}

/// One flow's way through the router in one direction.
struct Way {
    /// The device in which packets arrive from the sender's side.
    from: usize,
    /// Pairs by number.
    pairs: Vec<usize>,
}

/// Lays out a scenario's network.
///
/// # Errors
/// Names what the kernel does not have.
pub fn network(scenario: &Scenario, layout: &Layout) -> Result<Network, String> {
    let gso_max_segs = gso_max_segs(scenario)?;
    let mut pairs = Pairs::default();
    let mut modules: Vec<String> = ["veth", "sch_htb", "sch_netem"].map(str::to_owned).into();
    let mut devices = vec![None; scenario.hops.len()];
    let (mut changes, mut tables) = (Vec::new(), Vec::new());
    let rtts = build::longest_rtts(scenario);
    // By direction: the pairs of each hop, and of each route's remaining delay.
    let mut hops = vec![Vec::new(); scenario.hops.len()];
    for direction in &layout.directions {
        for &hop in &direction.hops {
            let spec = &scenario.hops[hop];
            check(spec, gso_max_segs)?;
            let hint = LinkHint { rate: spec.rate.initial(), rtt: rtts[hop], mtu: spec.on_the_wire(Bytes(MTU)) };
            let below = below(spec, &hint, &mut modules).map_err(|error| format!("hop \"{}\": {error}", spec.name))?;
            let device = format!("hop{hop}");
            if let Some(police) = &spec.police {
                let pair = policer_of(&device);
                let line = netem::policer(&pair, spec, police);
                hops[hop].push(pairs.add(pair, MTU, line));
                modules.extend(POLICER.map(str::to_owned));
                if police.exceed == Exceed::Mark {
                    modules.extend(MARKER.map(str::to_owned));
                }
            }
            let number = pairs.add(device.clone(), told_mtu(spec), shaper(&device, spec, &below));
            devices[hop] = Some(device.clone());
            hops[hop].push(number);
            let netems = netem::Netems::of(spec, &device);
            tables.extend(netems.table());
            for (device, line) in netems.lines("add", Time::ZERO) {
                hops[hop].push(pairs.add(device, MTU, line));
            }
            changes.extend(steps(spec).into_iter().skip(1).map(|at| {
                let mut text = class("change", &device, spec, rate(spec, at));
                text.extend(netems.lines("change", at).map(|(_, line)| line));
                (at, text)
            }));
        }
    }
    changes.sort_by_key(|&(at, _)| at);
    let tails: Vec<Vec<Option<usize>>> = layout
        .directions
        .iter()
        .map(|direction| direction.routes.iter().map(|route| pairs.tail(route.tail)).collect())
        .collect();
    if pairs.names.len() > MAX_PAIRS {
        return Err(format!(
            "{} hops and different base RTTs need as many pairs of devices; the kernel's world makes at most {MAX_PAIRS}",
            pairs.names.len()
        ));
    }
    let way = |number: usize, sender: bool| -> Way {
        let flow = &layout.flows[number];
        let (side, route) = if sender { (flow.side, flow.forward) } else { (1 - flow.side, flow.reverse) };
        let direction: &Direction = &layout.directions[side];
        let route_of = &direction.routes[usize::from(route)];
        let crossed = route_of.hops.iter().flat_map(|&hop| hops[direction.hops[usize::from(hop)]].iter().copied());
        Way { from: side, pairs: crossed.chain(tails[side][usize::from(route)]).collect() }
    };
    let ways =
        [true, false].map(|sender| (0..layout.flows.len()).map(|number| way(number, sender)).collect::<Vec<_>>());
    let programs = |number: usize| {
        let flow = &layout.flows[number];
        scenario.flows[flow.group].command.is_some().then_some([flow.sender, flow.receiver])
    };
    let programs: Vec<_> = (0..layout.flows.len()).map(programs).collect();
    let families: Vec<Family> = layout.flows.iter().map(FlowEnds::family).collect();
    let rules = layout.families().map(|family| {
        let is_of = |flow: usize| families[flow] == family;
        (family, rules(&ways, &programs, pairs.names.len(), &is_of))
    });
    let (mut router, mut router_v6) = (router(&pairs, gso_max_segs), String::new());
    for (family, rules) in rules {
        let text = if family == Family::V4 { &mut router } else { &mut router_v6 };
        routes(text, &pairs, &rules, family);
    }
    let sides = [0, 1].map(|side| side_commands(layout, &programs, side, gso_max_segs));
    let counters = [0, 1].map(|side| counters(layout, &programs, side));
    if counters.iter().any(|text| !text.is_empty()) {
        modules.extend(COUNTERS.map(str::to_owned));
    }
    let mut all = [vec![], vec![IN_SIDE.to_owned()], vec![IN_SIDE.to_owned()]];
    all[0] = TO_SIDE
        .map(str::to_owned)
        .into_iter()
        .chain(pairs.names.iter().flat_map(|name| [name.clone(), out_of(name)]))
        .collect();
    modules.sort();
    modules.dedup();
    Ok(Network { router, router_v6, queues: pairs.queues, sides, counters, devices, all, changes, tables, modules })
}

/// Maximum number of segments in a packet, which is a property of the devices that all flows share.
fn gso_max_segs(scenario: &Scenario) -> Result<u32, String> {
    let of = |flow: &Flow| flow.transport.gso_max_segs();
    let segments = scenario.flows.iter().map(of).max().unwrap_or(1);
    match scenario.flows.iter().find(|flow| of(flow) != segments) {
        Some(flow) => Err(format!(
            "flow \"{}\": gso_max_segs is one for all flows in the kernel's world, and {segments} elsewhere in this scenario",
            flow.name
        )),
        None => Ok(segments),
    }
}

fn check(hop: &Hop, gso_max_segs: u32) -> Result<(), String> {
    let refuse = |what: &str| Err(format!("hop \"{}\": {what}", hop.name));
    if hop.autorate.is_some() {
        return refuse(
            "no program of the kernel's world changes a shaper's rate by `autorate`; allowed in the kernel's world: a rate without a mechanism",
        );
    }
    if hop.mechanism.is_some() {
        return refuse("Linux has no link with a `mechanism`; allowed in the kernel's world: a rate alone");
    }
    if let Loss::Trace(_) = hop.loss {
        return refuse(
            "`loss`: `netem` has no losses by a trace; allowed in the kernel's world: a share, or \"gemodel P R 1-H 1-K\"",
        );
    }
    match &hop.rate {
        RateSpec::Trace { .. } => {
            refuse("`rate`: Linux has no link with delivery opportunities; allowed in the kernel's world: a rate")
        }
        RateSpec::Schedule(steps) if steps.iter().any(|&(_, rate)| rate < Rate::kbit(8)) => {
            refuse("`rate`: `htb` has no outages; allowed in the kernel's world: a rate of at least 8kbit")
        }
        RateSpec::Schedule(_) if hop.overhead.0 > 256 => {
            refuse("`overhead`: allowed in the kernel's world: at most 256B")
        }
        RateSpec::Schedule(_) if hop.atm == Atm::Ptm => {
            refuse("`atm`: `htb` does not know PTM; allowed in the kernel's world: `atm = \"noatm\"` or `\"atm\"`")
        }
        RateSpec::Schedule(_) if gso_max_segs > 1 && hop.framing() != ETHERNET_HEADER => refuse(&format!(
            "with other frames than Ethernet's, Linux counts the headers of a packet of several segments once; allowed in the \
             kernel's world with gso_max_segs: an overhead of {ETHERNET}B"
        )),
        RateSpec::Schedule(_) => Ok(()),
    }
}

/// The times at which a hop's rate or delay changes, with the epoch.
fn steps(hop: &Hop) -> Vec<Time> {
    let rates = match &hop.rate {
        RateSpec::Schedule(steps) => steps.iter().map(|&(at, _)| at).collect(),
        RateSpec::Trace { .. } => vec![Time::ZERO],
    };
    let mut all: Vec<Time> = rates.into_iter().chain(hop.delay.0.iter().map(|&(at, _)| at)).collect();
    all.sort();
    all.dedup();
    all
}

fn rate(hop: &Hop, at: Time) -> Rate {
    match &hop.rate {
        RateSpec::Schedule(steps) => {
            steps.iter().take_while(|&&(from, _)| from <= at).last().map_or(Rate::ZERO, |&(_, rate)| rate)
        }
        trace @ RateSpec::Trace { .. } => trace.initial(),
    }
}

/// The MTU of a hop's device, with which a full-sized packet is as long as the queue counts it. Linux's disciplines add the Ethernet header to
/// a device's MTU (`psched_mtu`), but not to the lengths that `stab` makes, so that `pie` would let three packets wait instead of two
/// before it drops any. Routes have the MTU that packets keep to, locked: IPv6 would take the device's.
fn told_mtu(hop: &Hop) -> u64 {
    hop.on_the_wire(Bytes(MTU)).0 - ETHERNET
}

/// The device in front of a hop's device, at whose other end a policer is.
pub(crate) fn policer_of(device: &str) -> String {
    format!("{device}p")
}

/// The device behind a hop's device, with the `netem` that delays and loses packets.
pub(crate) fn delay_of(device: &str) -> String {
    format!("{device}d")
}

/// The end of a pair at which packets come out.
pub(crate) fn out_of(pair: &str) -> String {
    format!("{pair}x")
}

impl Pairs {
    fn add(&mut self, name: String, mtu: u64, queues: String) -> usize {
        self.names.push(name);
        self.mtus.push(mtu);
        self.queues += &queues;
        self.names.len() - 1
    }

    /// The pair that adds this delay; `None` for no delay.
    fn tail(&mut self, delay: Span) -> Option<usize> {
        if delay < Span::us(1) {
            return None;
        }
        let name = format!("d{}", delay.as_ns() / 1000);
        if let Some(known) = self.names.iter().position(|known| *known == name) {
            return Some(known);
        }
        let line = format!("qdisc add dev {name} root handle 1: netem limit {NETEM_LIMIT} delay {}\n", us(delay));
        Some(self.add(name, MTU, line))
    }
}

/// A rule: packets that arrive in a device, of some flows or of all, go to a device.
#[derive(PartialEq, Debug)]
struct Rule {
    from: Place,
    /// Whose packets, as `ip rule` selects them; empty for all.
    whose: String,
    to: usize,
}

/// The rules for the ways of one IP version's flows, of their data and of what comes back. `programs` are the addresses of the flows that programs make. Where everything that arrives in a device goes on to the same one, no
/// ports are compared; where nothing goes on to a pair, the main table knows the side.
fn rules(
    ways: &[Vec<Way>; 2],
    programs: &[Option<[IpAddr; 2]>],
    pairs: usize,
    is_of: &dyn Fn(usize) -> bool,
) -> Vec<Rule> {
    let places = [Place::Side(0), Place::Side(1)].into_iter().chain((0..pairs).map(Place::Pair));
    places.flat_map(|place| rules_at(place, ways, programs, is_of)).collect()
}

/// The fields that identify a packet's flow. Programs choose their ports, and have addresses of their own.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Selector {
    Port(&'static str),
    Source(IpAddr),
}

/// Where packets arrive in the router: from a side, or out of a pair.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Side(usize),
    Pair(usize),
}

fn rules_at(
    place: Place,
    ways: &[Vec<Way>; 2],
    programs: &[Option<[IpAddr; 2]>],
    is_of: &dyn Fn(usize) -> bool,
) -> Vec<Rule> {
    // The next pair of a way that leads here; `Some(None)` if the next is the other side.
    let next = |way: &Way| {
        let at = match place {
            Place::Side(side) => (way.from == side).then_some(0)?,
            Place::Pair(pair) => way.pairs.iter().position(|&crossed| crossed == pair)? + 1,
        };
        Some(way.pairs.get(at).copied())
    };
    // The identifying field, first and last flow, next.
    let mut runs: Vec<(Selector, usize, usize, Option<usize>)> = Vec::new();
    for (n, (ways, port)) in ways.iter().zip(["dport", "sport"]).enumerate() {
        let of_family = ways.iter().enumerate().filter(|&(flow, _)| is_of(flow));
        for (flow, to) in of_family.filter_map(|(flow, way)| Some((flow, next(way)?))) {
            let by = programs[flow].map_or(Selector::Port(port), |addresses| Selector::Source(addresses[n]));
            match runs.last_mut() {
                Some(run) if (run.0, run.3) == (by, to) && run.2 + 1 == flow => run.2 = flow,
                _ => runs.push((by, flow, flow, to)),
            }
        }
    }
    let of_all = runs.first().map(|run| run.3).filter(|first| runs.iter().all(|run| run.3 == *first));
    if let Some(to) = of_all {
        return to.map(|to| Rule { from: place, whose: String::new(), to }).into_iter().collect();
    }
    let port = |flow: usize| FIRST_PORT + flow as u16;
    let rule = |(by, first, last, to): (Selector, usize, usize, Option<usize>)| {
        let whose = match by {
            Selector::Source(address) => format!(" from {address}"),
            Selector::Port(word) if first == last => format!(" {word} {}", port(first)),
            Selector::Port(word) => format!(" {word} {}-{}", port(first), port(last)),
        };
        Some(Rule { from: place, whose, to: to? })
    };
    runs.into_iter().filter_map(rule).collect()
}

/// The router's devices.
fn router(pairs: &Pairs, gso_max_segs: u32) -> String {
    let mut text = String::new();
    for (side, device) in TO_SIDE.iter().enumerate() {
        let mac = format!("02:00:00:00:01:{side:02x}");
        let _ = writeln!(
            text,
            "link add {device} address {mac} mtu {MTU} type veth peer name {IN_SIDE} address {mac} mtu {MTU} netns SIDE{side}"
        );
    }
    for (number, (name, mtu)) in pairs.names.iter().zip(&pairs.mtus).enumerate() {
        let mac = format!("02:00:00:00:{:02x}:{:02x}", 2 + number / 256, number % 256);
        let _ = writeln!(
            text,
            "link add {name} address {mac} mtu {mtu} txqueuelen 1000 type veth peer name {} address {mac} mtu {MTU}",
            out_of(name)
        );
    }
    let devices = TO_SIDE
        .iter()
        .map(|&name| name.to_owned())
        .chain(pairs.names.iter().flat_map(|name| [name.clone(), out_of(name)]));
    text.push_str("link set dev lo up\n");
    for device in devices {
        let _ = writeln!(text, "link set dev {device} arp off gso_max_segs {gso_max_segs} up");
    }
    text
}

/// The router's routes and rules for packets of one IP version.
fn routes(text: &mut String, pairs: &Pairs, rules: &[Rule], family: Family) {
    for (side, device) in TO_SIDE.iter().enumerate() {
        let (network, prefix) = layout::network(family, side);
        let _ = writeln!(text, "route add {network}/{prefix} dev {device}");
    }
    for (number, name) in pairs.names.iter().enumerate() {
        let _ = writeln!(text, "route add default dev {name} table {} mtu lock {MTU}", FIRST_TABLE + number);
    }
    for (preference, rule) in (1..).zip(rules) {
        let from = match rule.from {
            Place::Side(side) => TO_SIDE[side].to_owned(),
            Place::Pair(pair) => out_of(&pairs.names[pair]),
        };
        let (whose, table) = (&rule.whose, FIRST_TABLE + rule.to);
        let _ = writeln!(text, "rule add pref {preference} iif {from}{whose} lookup {table}");
    }
}

fn side_commands(layout: &Layout, programs: &[Option<[IpAddr; 2]>], side: usize, gso_max_segs: u32) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "link set dev {IN_SIDE} arp off gso_max_segs {gso_max_segs} up");
    for &address in &layout.hosts[side] {
        let prefix = layout::host_prefix(address);
        // An address that is still looked for on the link cannot be the source of a route.
        let now = if address.is_ipv4() { "" } else { " nodad" };
        let _ = writeln!(text, "address add {address}/{prefix} dev {IN_SIDE}{now}");
    }
    for family in layout.families() {
        let (network, prefix) = layout::network(family, 1 - side);
        let source = layout.first_host(side, family).map_or(String::new(), |address| format!(" src {address}"));
        let _ = writeln!(text, "route add {network}/{prefix} dev {IN_SIDE}{source}");
    }
    // A program that binds to no address still sends from its own.
    for (flow, &[sender, receiver]) in
        layout.flows.iter().zip(programs).filter_map(|(flow, own)| Some((flow, own.as_ref()?)))
    {
        let (own, peer) = if flow.side == side { (sender, receiver) } else { (receiver, sender) };
        let prefix = layout::host_prefix(peer);
        let _ = writeln!(text, "route add {peer}/{prefix} dev {IN_SIDE} src {own}");
    }
    text
}

/// Commands that count the datagrams which a side's programs receive.
fn counters(layout: &Layout, programs: &[Option<[IpAddr; 2]>], side: usize) -> String {
    let mut text = String::new();
    if programs.iter().any(Option::is_some) {
        let _ = writeln!(text, "qdisc add dev {IN_SIDE} clsact");
    }
    for (number, (flow, addresses)) in layout.flows.iter().zip(programs).enumerate() {
        let Some([sender, receiver]) = addresses.filter(|_| flow.side != side) else { continue };
        // A preference has one protocol.
        let (protocol, preference) = if sender.is_ipv4() { ("ip", 1) } else { ("ipv6", 2) };
        let _ = writeln!(
            text,
            "filter add dev {IN_SIDE} ingress protocol {protocol} pref {preference} handle {} flower ip_proto udp src_ip {sender} dst_ip {receiver} action ok",
            number + 1
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::Traces;

    /// One file of each kind.
    struct Files;

    impl Traces for Files {
        fn text(&self, name: &str) -> Result<String, String> {
            let text = match name {
                "rain.csv" => "time,loss\n0,0\n1,1%\n",
                "own.dist" => "-8192 0 0 8192\n",
                name => return Err(format!("no {name}")),
            };
            Ok(text.to_owned())
        }
    }

    fn made(text: &str) -> Result<Network, String> {
        let scenario = Scenario::parse(&format!("duration = \"10s\"\n{text}"), "x.toml", &Files).expect("it is legal");
        let layout = Layout::new(&scenario).expect("it has two sides");
        network(&scenario, &layout)
    }

    const LINK: &str = "[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = { kind = \"fifo\", limit = \"30p\" }\n";

    #[test]
    fn frames_are_those_of_the_link_layer() {
        let flow = "[[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n";
        let with = |keys: &str| made(&format!("{LINK}{keys}\n{flow}"));
        let atm = "overhead = \"40B\"\natm = \"atm\"";
        for (keys, expected) in [
            ("overhead = \"18B\"\nmpu = \"64B\"", "stab overhead 4 mpu 64 linklayer ethernet htb"),
            (atm, "stab overhead 26 linklayer atm htb"),
            (atm, "bit 26 48 5\n"),
        ] {
            let network = with(keys).expect("it is allowed");
            let words = format!("{}{}", network.router, network.queues);
            assert!(words.contains(expected), "no {expected:?} in\n{words}");
        }
        assert!(with("atm = \"ptm\"").is_err_and(|said| said.contains("`atm`: `htb` does not know PTM")));
    }

    #[test]
    fn one_hop_is_two_pairs_and_a_delay_a_third() {
        let network = made(&format!("{LINK}[[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n"))
            .expect("it is allowed");
        let shown = format!(
            "router:\n{}\nqueues:\n{}\nside 0:\n{}\nside 1:\n{}",
            network.router, network.queues, network.sides[0], network.sides[1]
        );
        crate::expected("one_hop.txt", &shown);
        assert_eq!(network.modules, ["sch_htb", "sch_netem", "veth"]);
    }

    /// Each effect of a hop in `tc`'s words: behind a shaper, and behind a wire, whose time is in a netem of its own where packets overtake.
    #[test]
    fn effects_are_netems_and_a_policer_is_polices() {
        let flow = "[[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n";
        let keys = [
            "loss = \"1% 25%\"",
            "loss = \"gemodel 1% 10% 70% 0.1%\"",
            "duplicate = \"1%\"\ncorrupt = \"0.5% 10%\"",
            "delay = \"10ms\"\ndelay_limit = \"1000p\"",
            "delay = \"10ms\"\njitter = \"2ms\"\ndistribution = \"normal\"",
            "delay = \"10ms\"\njitter = \"2ms\"\ndistribution = { file = \"own.dist\" }",
            "delay = \"10ms\"\njitter = \"2ms\"\novertake = true",
            "delay = \"10ms\"\nreorder = \"25% 50% gap 5\"",
            "police = \"rate 5mbit burst 100kb\"\noverhead = \"18B\"\nmpu = \"64B\"",
            "loss = \"1%\"\ndelay = [{ at = \"0s\", delay = \"10ms\" }, { at = \"5s\", delay = \"20ms\" }]",
        ];
        let mut shown = String::new();
        for (release, keys) in keys.iter().flat_map(|keys| [("start", keys), ("end", keys)]) {
            let network = made(&format!("{LINK}release = \"{release}\"\n{keys}\n{flow}")).expect("it is allowed");
            shown += &format!("{}; release = {release}\n", keys.replace('\n', "; ").replace('"', ""));
            let is_of_hop = |line: &&str| line.contains("hop0") && !line.contains("dev hop0 ");
            let lines = network.queues.lines().chain(network.changes.iter().flat_map(|(_, text)| text.lines()));
            shown.extend(lines.filter(is_of_hop).map(|line| format!("  {line}\n")));
            let table = |(name, text): &(String, String)| format!("  {name}.dist: {text}");
            shown.extend(network.tables.iter().map(table));
        }
        crate::expected("effects.txt", &shown);
        let policed = made(&format!("{LINK}police = \"rate 5mbit burst 100kb\"\n{flow}")).expect("it is allowed");
        assert!(POLICER.iter().all(|module| policed.modules.iter().any(|known| known == module)));
        assert!(policed.router.contains("rule add pref 1 iif side0 lookup 1000\nrule add pref 2 iif side1 lookup"));
        let marks = made(&format!("{LINK}police = \"rate 5mbit burst 100kb conform-exceed mark\"\n{flow}"));
        let marks = marks.expect("it is allowed");
        assert!(MARKER.iter().all(|module| marks.modules.iter().any(|known| known == module)));
        let filters: Vec<&str> = marks.queues.lines().filter(|line| line.starts_with("filter ")).collect();
        assert!(filters.len() == 6 && filters[0].ends_with("conform-exceed continue/ok"), "{filters:#?}");
        assert!(filters[5].ends_with("pref 6 matchall action drop"), "{filters:#?}");
    }

    #[test]
    fn classes_are_htbs() {
        let text = format!(
            "{LINK}overhead = \"18B\"\n[[hop.class]]\nname = \"voice\"\nrate = \"1mbit\"\nceil = \"2mbit\"\nprio = 1\nqueue = \"codel\"\ndscp = [\"ef\", 44]\n\
             [[hop.class]]\nname = \"office\"\nrate = \"4mbit\"\n[[hop.class]]\nname = \"rest\"\nparent = \"office\"\nrate = \"2mbit\"\nburst = \"3KB\"\n\
             [[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n"
        );
        let network = made(&text).expect("it is allowed");
        crate::expected("classes.txt", &network.queues);
        assert!(["cls_flower", "sch_codel"].iter().all(|module| network.modules.iter().any(|known| known == module)));
    }

    #[test]
    fn each_ip_version_has_routes_and_rules_of_its_own() {
        let text = format!(
            "{LINK}[[flow]]\nname = \"four\"\nrtt = \"50ms\"\nroute = [\"link\"]\n\
             [[flow]]\nname = \"six\"\nrtt = \"20ms\"\nfamily = \"ipv6\"\nroute = [\"link\"]\n\
             [[flow]]\nname = \"program\"\nrtt = \"20ms\"\nfamily = \"ipv6\"\ncommand = \"true\"\nroute = [\"link\"]\n"
        );
        let network = made(&text).expect("it is allowed");
        let routes = network.router.lines().filter(|line| !line.starts_with("link ")).map(|line| format!("{line}\n"));
        let shown = format!(
            "router:\n{}\nrouter, IPv6:\n{}\nside 0:\n{}\ncounters of side 1:\n{}",
            routes.collect::<String>(),
            network.router_v6,
            network.sides[0],
            network.counters[1]
        );
        crate::expected("two_versions.txt", &shown);
    }

    #[test]
    fn a_link_without_serialisation_has_no_delay_and_a_bucket_that_tc_can_count() {
        let text = "[[hop]]\nname = \"link\"\nrate = \"1000gbit\"\nqueue = { kind = \"cake\", bandwidth = \"30mbit\" }\n\
             [[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n";
        let network = made(text).expect("it is allowed");
        assert!(network.queues.contains("ceil 1000000000000bit burst 125000 cburst 125000 "), "{}", network.queues);
        assert!(!network.queues.contains("dev hop0d"), "{}", network.queues);
    }

    #[test]
    fn flows_part_by_their_ports() {
        let text = format!(
            "{LINK}[[hop]]\nname = \"up\"\nrate = [{{ at = \"0s\", rate = \"1mbit\" }}, {{ at = \"5s\", rate = \"2mbit\" }}]\nqueue = \"cocoa\"\nrelease = \"start\"\n\
             [[flow]]\nname = \"a\"\ncount = 3\nrtt = \"20ms\"\nroute = [\"link\"]\nback = [\"up\"]\n\
             [[flow]]\nname = \"b\"\nrtt = \"40ms\"\nroute = [\"link\"]\n\
             [[flow]]\nname = \"c\"\nrtt = \"20ms\"\nroute = [\"up\"]\nback = [\"link\"]\n"
        );
        let network = made(&text).expect("it is allowed");
        let rules: String =
            network.router.lines().filter(|line| line.starts_with("rule")).map(|line| format!("{line}\n")).collect();
        crate::expected("rules.txt", &rules);
        assert_eq!(network.changes.len(), 1);
        assert_eq!(network.changes[0].0, Time::ZERO + Span::s(5));
        assert!(
            network.changes[0].1.starts_with("class change dev hop1 parent 1: classid 1:1 htb rate 2000000bit "),
            "{:?}",
            network.changes
        );
        assert!(network.modules.contains(&"sch_narrows_cocoa".to_owned()));
    }

    #[test]
    fn programs_flows_part_by_their_addresses_and_their_datagrams_are_counted() {
        let text = format!(
            "{LINK}[[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
             [[flow]]\nname = \"a\"\ncount = 2\nrtt = \"40ms\"\nroute = [\"link\"]\ncommand = \"iperf3 -c {{peer}}\"\n"
        );
        let network = made(&text).expect("it is allowed");
        let of = |text: &str, word: &str| {
            text.lines().filter(|line| line.starts_with(word)).map(|line| format!("{line}\n")).collect::<String>()
        };
        let shown = format!(
            "{}\nside 0:\n{}{}\nside 1:\n{}{}",
            of(&network.router, "rule"),
            of(&network.sides[0], "route"),
            network.counters[0],
            of(&network.sides[1], "route"),
            network.counters[1]
        );
        crate::expected("programs.txt", &shown);
        assert!(COUNTERS.iter().all(|module| network.modules.iter().any(|known| known == module)));
        assert!(
            !made(&format!("{LINK}[[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\nroute = [\"link\"]\n"))
                .expect("it is allowed")
                .modules
                .contains(&COUNTERS[0].to_owned())
        );
    }

    #[test]
    fn devices_carry_packets_as_large_as_the_flows_send() {
        let hop = "[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fq\"\noverhead = \"14B\"\n";
        let flow = "[[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\ntransport = { kind = \"tcp\", gso_max_segs = 45 }\n";
        let network = made(&format!("{hop}{flow}")).expect("it is allowed");
        for text in [&network.router, &network.sides[0], &network.sides[1]] {
            assert!(text.contains("gso_max_segs 45") && !text.contains("gso_max_segs 1 "), "{text}");
        }
        assert!(!network.queues.contains("stab"), "it would count the headers once:\n{}", network.queues);
        let other = "[[flow]]\nname = \"thin\"\nrtt = \"50ms\"\nroute = [\"link\"]\n";
        assert_eq!(
            made(&format!("{hop}{flow}{other}")).err().as_deref(),
            Some(
                "flow \"thin\": gso_max_segs is one for all flows in the kernel's world, and 45 elsewhere in this scenario"
            )
        );
        let said = made(&format!("{LINK}{flow}")).err().unwrap_or_default();
        assert!(said.starts_with("hop \"link\": ") && said.ends_with("an overhead of 14B"), "{said}");
    }

    #[test]
    fn what_linux_lacks_names_the_hop() {
        let with =
            |hop: &str| made(&format!("{hop}[[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n")).err();
        let outage = "[[hop]]\nname = \"link\"\nrate = [{ at = \"0s\", rate = \"1mbit\" }, { at = \"5s\", rate = \"0bit\" }, { at = \"6s\", rate = \"1mbit\" }]\nqueue = \"fifo\"\n";
        assert_eq!(
            with(outage).as_deref(),
            Some("hop \"link\": `rate`: `htb` has no outages; allowed in the kernel's world: a rate of at least 8kbit")
        );
        let trace = "[[hop]]\nname = \"link\"\nrate = { aggregate = 10, mean = \"10mbit\" }\nqueue = \"fifo\"\n";
        assert!(with(trace).is_some_and(|e| e.contains("delivery opportunities")));
        let gsp = "[[hop]]\nname = \"link\"\nrate = \"1mbit\"\nqueue = \"gsp\"\n";
        assert!(with(gsp).is_some_and(|e| e.starts_with("hop \"link\": Linux has no queue \"gsp\"")));
    }

    /// Every key of a hop, with values that the kernel's world carries out, and those that it refuses.
    const KEYS: &[(&str, &[&str], &[&str])] = &[
        ("name", &[], &[]),
        (
            "rate",
            &["\"20mbit\""],
            &[
                "{ aggregate = 10, mean = \"10mbit\" }",
                "[{ at = \"0s\", rate = \"1mbit\" }, { at = \"5s\", rate = \"0bit\" }, { at = \"6s\", rate = \"1mbit\" }]",
            ],
        ),
        ("mechanism", &[], &["\"leo\"", "\"docsis\"", "\"wifi\"", "\"cellular\""]),
        ("autorate", &[], &["\"fixed\"", "\"cake_autorate\"", "\"drain\"", "\"oracle\""]),
        ("queue", &["\"fifo\"", "\"cake\""], &["\"gsp\""]),
        ("delay", &["\"10ms\"", "[{ at = \"0s\", delay = \"10ms\" }, { at = \"5s\", delay = \"20ms\" }]"], &[]),
        ("jitter", &["\"2ms\""], &[]),
        (
            "distribution",
            &["\"uniform\"", "\"normal\"", "\"pareto\"", "\"paretonormal\"", "{ file = \"own.dist\" }"],
            &[],
        ),
        ("overtake", &["true"], &[]),
        ("overhead", &["\"18B\"", "\"256B\""], &["\"257B\""]),
        ("mpu", &["\"64B\""], &[]),
        ("atm", &["\"noatm\"", "\"atm\""], &["\"ptm\""]),
        ("loss", &["0.01", "\"1% 25%\"", "\"gemodel 1% 10% 70% 0.1%\""], &["\"trace:rain.csv\""]),
        ("duplicate", &["\"1%\""], &[]),
        ("corrupt", &["\"1% 10%\""], &[]),
        ("reorder", &["\"25% 50% gap 5\""], &[]),
        ("delay_limit", &["\"1000p\""], &[]),
        ("police", &["\"rate 5mbit burst 100kb\"", "\"rate 5mbit burst 100kb conform-exceed mark\""], &[]),
        ("release", &["\"start\"", "\"end\""], &[]),
        ("burst", &["\"3KB\""], &[]),
        ("class", &["[{ name = \"all\", rate = \"10mbit\" }]"], &[]),
    ];

    #[test]
    fn every_key_of_a_hop_is_carried_out_or_refused_by_name() {
        let hop = narrows_scenario::keys::tables().into_iter().find(|table| table.name == "hop").expect("a table");
        let keys: Vec<&str> = hop.keys.iter().map(|key| key.name).collect();
        assert_eq!(keys, KEYS.iter().map(|key| key.0).collect::<Vec<_>>(), "a new key needs an answer here");
        let with = |key: &str, value: &str| {
            let mut pairs =
                vec![("name", "\"link\""), ("rate", "\"10mbit\""), ("queue", "\"fifo\""), ("delay", "\"10ms\"")];
            pairs.extend(match key {
                "autorate" => Some(("mechanism", "\"leo\"")),
                "burst" => Some(("release", "\"start\"")),
                "distribution" | "overtake" => Some(("jitter", "\"2ms\"")),
                _ => None,
            });
            pairs.retain(|pair| pair.0 != key);
            pairs.push((key, value));
            let hop: String = pairs.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            made(&format!("[[hop]]\n{hop}[[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n")).err()
        };
        for (key, carried_out, refused) in KEYS {
            for value in *carried_out {
                assert_eq!(with(key, value), None, "{key} = {value}");
            }
            for value in *refused {
                let said = with(key, value).unwrap_or_else(|| panic!("{key} = {value} is not refused"));
                let names = said.contains(&format!("`{key}`")) || said.contains(&format!("no {key} "));
                assert!(
                    said.starts_with("hop \"link\": ") && names && said.contains("allowed in the kernel's world"),
                    "{said}"
                );
            }
        }
    }
}
