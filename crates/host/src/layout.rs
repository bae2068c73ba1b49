//! Assigns a scenario's hops to two directions, and finds the route of each flow.
//!
//! In the simulator a hop has no direction. Where real packets cross it, each hop belongs to one of two directions, and the routes
//! say to which: the hops of a flow's data lie in the flow's direction, those of its acknowledgments in the other.
use crate::HostError;
use narrows_core::{Span, Time};
use narrows_scenario::{Family, Scenario};
use narrows_world::build;
use narrows_world::path::Route;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A scenario's hops, flows and hosts, assigned to two sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// From side 0 to side 1, and back.
    pub directions: [Direction; 2],
    /// Single flows, by number.
    pub flows: Vec<FlowEnds>,
    /// Addresses of the hosts of each side.
    pub hosts: [Vec<IpAddr>; 2],
}

/// One direction's hops, by their index in the scenario, and the routes over them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Direction {
    /// The hops.
    pub hops: Vec<usize>,
    /// The routes.
    pub routes: Vec<Route>,
}

/// A single flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowEnds {
    /// Its group, by its index in the scenario.
    pub group: usize,
    /// Its index within the group.
    pub member: u32,
    /// The sender's side.
    pub side: usize,
    /// The sender's address.
    pub sender: IpAddr,
    /// The receiver's address.
    pub receiver: IpAddr,
    /// Route of the data, in the direction `side`.
    pub forward: u16,
    /// Route of the packets that come back, in the other direction.
    pub reverse: u16,
    /// When it starts.
    pub start: Time,
    /// When it stops.
    pub stop: Time,
}

/// The network of a side, with the length of its prefix: 10.SIDE.0.0/16 or fd6e:6172:7277:SIDE::/64.
pub fn network(family: Family, side: usize) -> (IpAddr, u8) {
    match family {
        Family::V4 => (address(family, side, 0), 16),
        Family::V6 => (address(family, side, 0), 64),
    }
}

/// The length of the prefix that is one host.
pub fn host_prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn address(family: Family, side: usize, host: u16) -> IpAddr {
    let net = side as u8 + 1;
    let [high, low] = host.to_be_bytes();
    match family {
        Family::V4 => Ipv4Addr::new(10, net, high, low).into(),
        Family::V6 => Ipv6Addr::new(0xfd6e, 0x6172, 0x7277, u16::from(net), 0, 0, 0, host).into(),
    }
}

impl Layout {
    /// Lays a scenario out. A hop that packets cross in both directions is an error that names it.
    pub fn new(scenario: &Scenario) -> Result<Layout, HostError> {
        let sides = sides(scenario)?;
        let mut layout = Layout {
            directions: [Direction::default(), Direction::default()],
            flows: Vec::new(),
            hosts: Default::default(),
        };
        let mut hosts = Hosts::default();
        for (index, group) in scenario.flows.iter().enumerate() {
            let side = sides[index];
            for member in 0..group.count {
                // Programs choose their ports themselves, so each gets its own pair of addresses, which identify its packets.
                let own = group.command.is_some().then(|| format!("{}.{member}", group.name));
                let name = |name: &String| own.clone().unwrap_or_else(|| name.clone());
                let sender = hosts.address(side, group.family, name(&group.from));
                let receiver = hosts.address(1 - side, group.family, name(&group.to));
                let delays = |route: &[usize]| {
                    route.iter().fold(Span::ZERO, |sum, &hop| sum + scenario.hops[hop].delay.initial())
                };
                let rtt = build::rtt(scenario, group, member);
                let tail = rtt.saturating_sub(delays(&group.route) + delays(&group.back));
                let forward = layout.directions[side].route(&group.route, Span::ZERO);
                let reverse = layout.directions[1 - side].route(&group.back, tail);
                let start = build::start(scenario, group, member);
                let stop = group.stop;
                layout.flows.push(FlowEnds {
                    group: index,
                    member,
                    side,
                    sender,
                    receiver,
                    forward,
                    reverse,
                    start,
                    stop,
                });
            }
        }
        layout.hosts = hosts.addresses();
        Ok(layout)
    }
}

impl Layout {
    /// The IP versions of its flows.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        let is_used = |family: &Family| self.flows.iter().any(|flow| flow.family() == *family);
        [Family::V4, Family::V6].into_iter().filter(is_used)
    }

    /// The names of the two sides, by the flows' senders and receivers where all data go the same way.
    pub fn side_names(&self) -> [&'static str; 2] {
        let on_first = self.flows.iter().filter(|flow| flow.side == 0).count();
        match on_first {
            0 => ["receivers", "senders"],
            all if all == self.flows.len() => ["senders", "receivers"],
            _ => ["side-1", "side-2"],
        }
    }

    /// The first host's address of a side and IP version.
    pub fn first_host(&self, side: usize, family: Family) -> Option<IpAddr> {
        self.hosts[side].iter().copied().find(|address| family_of(*address) == family)
    }
}

impl FlowEnds {
    /// The IP version of its packets.
    pub fn family(&self) -> Family {
        family_of(self.sender)
    }
}

fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}

impl Direction {
    /// The number of the route over these hops of the scenario.
    fn route(&mut self, hops: &[usize], tail: Span) -> u16 {
        let mut local = |&hop: &usize| {
            let known = self.hops.iter().position(|&known| known == hop);
            known.unwrap_or_else(|| {
                self.hops.push(hop);
                self.hops.len() - 1
            }) as u16
        };
        let route = Route { hops: hops.iter().map(&mut local).collect(), tail };
        let known = self.routes.iter().position(|known| *known == route);
        known.unwrap_or_else(|| {
            self.routes.push(route);
            self.routes.len() - 1
        }) as u16
    }
}

/// Addresses of hosts, by side, IP version and name.
#[derive(Default)]
struct Hosts {
    named: Vec<(usize, Family, String, IpAddr)>,
    count: [u16; 2],
}

impl Hosts {
    fn address(&mut self, side: usize, family: Family, name: String) -> IpAddr {
        if let Some((.., address)) = self.named.iter().find(|(s, f, n, _)| (*s, *f) == (side, family) && *n == name) {
            return *address;
        }
        self.count[side] += 1;
        let address = address(family, side, self.count[side]);
        self.named.push((side, family, name, address));
        address
    }

    fn addresses(self) -> [Vec<IpAddr>; 2] {
        let of = |side: usize| self.named.iter().filter(|(s, ..)| *s == side).map(|(.., address)| *address).collect();
        [of(0), of(1)]
    }
}

/// The side of each group's senders.
fn sides(scenario: &Scenario) -> Result<Vec<usize>, HostError> {
    let groups = scenario.flows.len();
    let mut sides: Vec<Option<usize>> = vec![None; groups];
    // For each hop, its direction and the group that decided it.
    let mut hops: Vec<Option<(usize, usize)>> = vec![None; scenario.hops.len()];
    let crossed = |group: usize| {
        let flow = &scenario.flows[group];
        let forward = flow.route.iter().map(|&hop| (hop, 0));
        forward.chain(flow.back.iter().map(|&hop| (hop, 1)))
    };
    // A group whose side is fixed by hops with a known direction comes before one that is free to choose.
    while let Some(next) = (0..groups)
        .filter(|&group| sides[group].is_none())
        .max_by_key(|&group| (crossed(group).any(|(hop, _)| hops[hop].is_some()), groups - group))
    {
        let fixed = crossed(next).find_map(|(hop, turned)| hops[hop].map(|(direction, _)| direction ^ turned));
        let side = fixed.unwrap_or(0);
        sides[next] = Some(side);
        for (hop, turned) in crossed(next) {
            match hops[hop] {
                None => hops[hop] = Some((side ^ turned, next)),
                Some((direction, _)) if direction == side ^ turned => {}
                Some((_, other)) => {
                    let [hop, one, other] =
                        [&scenario.hops[hop].name, &scenario.flows[next].name, &scenario.flows[other].name];
                    let between = if one == other {
                        format!("data and acknowledgments of flow \"{one}\"")
                    } else {
                        format!("flows \"{one}\" and \"{other}\" in opposite directions")
                    };
                    let message = format!(
                        "hop \"{hop}\" is crossed by {between}; with real traffic a hop has one direction: give each way its own"
                    );
                    return Err(HostError::Unsupported(message));
                }
            }
        }
    }
    Ok(sides.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::NoTraces;

    fn layout(text: &str) -> Result<Layout, String> {
        let scenario =
            Scenario::parse(&format!("duration = \"10s\"\n{text}"), "x.toml", &NoTraces).expect("it is legal");
        Layout::new(&scenario).map_err(|error| error.to_string())
    }

    const HOPS: &str = "[[hop]]\nname = \"down\"\nrate = \"20mbit\"\nqueue = \"fifo\"\ndelay = \"5ms\"\n\
                        [[hop]]\nname = \"up\"\nrate = \"5mbit\"\nqueue = \"fifo\"\n";

    #[test]
    fn flows_of_both_directions_share_hops_each_of_one_direction() {
        let text = format!(
            "{HOPS}[[flow]]\nname = \"load\"\nrtt = \"40ms\"\nroute = [\"down\"]\nback = [\"up\"]\n\
             [[flow]]\nname = \"send\"\nrtt = \"40ms\"\nroute = [\"up\"]\nback = [\"down\"]\n"
        );
        let layout = layout(&text).expect("there is a way");
        assert_eq!(layout.flows.iter().map(|flow| flow.side).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((&layout.directions[0].hops[..], &layout.directions[1].hops[..]), (&[0][..], &[1][..]));
        // The part of the base RTT that is not the hops' delay is behind the acknowledgments' route.
        let tail = |flow: &FlowEnds| layout.directions[1 - flow.side].routes[usize::from(flow.reverse)].tail;
        assert_eq!(layout.flows.iter().map(tail).collect::<Vec<_>>(), [Span::ms(35), Span::ms(35)]);
        // "sender" and "receiver" are hosts of a side.
        assert_eq!(layout.hosts.each_ref().map(Vec::len), [2, 2]);
    }

    #[test]
    fn a_hop_that_would_have_two_directions_is_refused() {
        let text = format!("{HOPS}[[flow]]\nname = \"odd\"\nrtt = \"40ms\"\nroute = [\"down\"]\nback = [\"down\"]\n");
        assert_eq!(
            layout(&text).expect_err("it is the same hop"),
            "hop \"down\" is crossed by data and acknowledgments of flow \"odd\"; with real traffic a hop has one direction: \
             give each way its own"
        );
    }

    #[test]
    fn each_member_of_a_group_of_commands_has_addresses_of_its_own() {
        let text = format!(
            "{HOPS}[[flow]]\nname = \"iperf\"\ncount = 2\nrtt = \"40ms\"\nroute = [\"down\"]\ncommand = \"iperf3 -c {{peer}}\"\n\
             [[flow]]\nname = \"bulk\"\ncount = 2\nrtt = \"40ms\"\nroute = [\"down\"]\n"
        );
        let layout = layout(&text).expect("there is a way");
        assert_eq!(layout.hosts.each_ref().map(Vec::len), [3, 3]);
        assert_eq!(layout.flows[2].sender, layout.flows[3].sender);
        assert_ne!(layout.flows[0].receiver, layout.flows[1].receiver);
    }
}
