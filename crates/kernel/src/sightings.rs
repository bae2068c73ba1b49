//! The packets of a run, put together from where they came by.
//!
//! The guest sees packets at [`spots`]: at the hosts' devices, and in the router where they come out of a device. Only the time to live and the ECN field of
//! a packet change on its way, and the header's checksum with them. The other bytes identify the packet.
use crate::network::{IN_SIDE, Network, TO_SIDE, out_of};
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use narrows_core::{DropReason, Time};
use narrows_host::FIRST_PORT;
use narrows_host::layout::Layout;
use narrows_results::packets::{Capture, Event, FrameLog, What};
use narrows_scenario::Scenario;
use narrows_world::record::packets::hops;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::net::IpAddr;

/// Where packets are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// At the device of a side's hosts, in both directions.
    Side(usize),
    /// Where the router gets the packets of a side, just before the queue of their first hop.
    Entry(usize),
    /// Behind a hop's queue and `htb`.
    Out(usize),
    /// Behind a hop's `netem`, just before the queue of the next hop.
    Behind(usize),
}

/// A device at which packets are seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    pub(crate) place: Place,
    /// The side in whose namespace the device is; `None` is the router.
    pub(crate) side: Option<usize>,
    pub(crate) device: String,
}

/// A packet at a spot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Sighting {
    /// The spot's number.
    pub(crate) spot: u16,
    /// It leaves its host; otherwise it arrives where it is seen.
    pub(crate) leaves: bool,
    /// Time since the run's epoch, ns.
    pub(crate) at: u64,
    /// Which packet, as [`identity`] says.
    pub(crate) id: u64,
    /// Length at the IP layer, bytes.
    pub(crate) ip_len: u32,
    /// Its first bytes: where it leaves its host, and where a queue has changed its ECN field.
    #[serde(with = "bytes")]
    pub(crate) head: Vec<u8>,
}

/// The spots of a network.
pub(crate) fn spots(network: &Network, layout: &Layout) -> Vec<Spot> {
    let side = |side: usize| {
        let at_hosts = Spot { place: Place::Side(side), side: Some(side), device: IN_SIDE.to_owned() };
        [at_hosts, Spot { place: Place::Entry(side), side: None, device: TO_SIDE[side].to_owned() }]
    };
    let hop = |(hop, device): (usize, &Option<String>)| {
        let device = device.as_ref()?;
        let out = Spot { place: Place::Out(hop), side: None, device: out_of(device) };
        let delay = out_of(&format!("{device}d"));
        let behind = Spot { place: Place::Behind(hop), side: None, device: delay };
        let is_seen = has_next(layout, hop) && network.all[0].contains(&behind.device);
        Some([Some(out), is_seen.then_some(behind)])
    };
    let hops = network.devices.iter().enumerate().filter_map(hop).flatten().flatten();
    (0..2).flat_map(side).chain(hops).collect()
}

/// Whether a route leads from this hop to another.
fn has_next(layout: &Layout, hop: usize) -> bool {
    let mut routes = layout.directions.iter().flat_map(|direction| {
        direction.routes.iter().map(|route| route.hops.iter().map(|&local| direction.hops[usize::from(local)]))
    });
    routes.any(|mut crossed| crossed.any(|crossed| crossed == hop) && crossed.next().is_some())
}

/// What stays the same of a packet on its way, as a number. `head` are its first bytes.
pub(crate) fn identity(head: &[u8], ip_len: u32) -> u64 {
    // Packets that agree in it follow each other in the same order everywhere.
    let mut hash = DefaultHasher::new();
    let version = head.first().map_or(0, |first| first >> 4);
    for (n, &byte) in head.iter().enumerate() {
        hash.write_u8(match (version, n) {
            (4, 1) => byte & !3,
            (4, 8 | 10 | 11) | (6, 7) => 0,
            (6, 1) => byte & !0x30,
            _ => byte,
        });
    }
    hash.write_u32(ip_len);
    hash.finish()
}

/// A packet's ECN field (RFC 3168).
pub(crate) fn ecn(head: &[u8]) -> u8 {
    match (head.first().map(|first| first >> 4), head.get(1)) {
        (Some(4), Some(second)) => second & 3,
        (Some(6), Some(second)) => (second >> 4) & 3,
        _ => 0,
    }
}

/// Length of a packet's IP header, bytes.
fn ip_header_len(head: &[u8]) -> usize {
    match head.first() {
        Some(first) if first >> 4 == 4 => usize::from(first & 15) * 4,
        _ => 40,
    }
}

/// Computes the transport's checksum of a whole packet, which the hosts' kernels leave to their devices. Other packets stay as they are.
fn complete_checksum(packet: &mut [u8]) {
    let parsed = LaxSlicedPacket::from_ip(packet).ok();
    let Some((net, transport)) = parsed.and_then(|parsed| Some((parsed.net?, parsed.transport?))) else { return };
    let checksum = match (&net, &transport) {
        (LaxNetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) => {
            tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).ok()
        }
        (LaxNetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
            tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination()).ok()
        }
        (LaxNetSlice::Ipv4(ip), TransportSlice::Udp(udp)) => {
            let (from, to) = (ip.header().source(), ip.header().destination());
            udp.to_header().calc_checksum_ipv4_raw(from, to, udp.payload()).ok()
        }
        (LaxNetSlice::Ipv6(ip), TransportSlice::Udp(udp)) => {
            let (from, to) = (ip.header().source(), ip.header().destination());
            udp.to_header().calc_checksum_ipv6_raw(from, to, udp.payload()).ok()
        }
        _ => None,
    };
    // Both end where the packet ends.
    let place = match &transport {
        TransportSlice::Tcp(tcp) => packet.len() - tcp.slice().len() + 16,
        TransportSlice::Udp(udp) => packet.len() - udp.slice().len() + 6,
        _ => return,
    };
    if let Some(checksum) = checksum {
        packet[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Which flow a packet belongs to, and whether it goes from the flow's sender to its receiver.
fn flow_of(scenario: &Scenario, layout: &Layout, head: &[u8]) -> Option<(usize, bool)> {
    let packet = LaxSlicedPacket::from_ip(head).ok()?;
    let (source, destination): (IpAddr, IpAddr) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Arp(_) => return None,
    };
    let ports = match packet.transport {
        Some(TransportSlice::Tcp(tcp)) => Some([tcp.destination_port(), tcp.source_port()]),
        Some(TransportSlice::Udp(udp)) => Some([udp.destination_port(), udp.source_port()]),
        _ => None,
    };
    let is_between = |flow: usize, is_data: bool| {
        let ends = &layout.flows[flow];
        (if is_data { (ends.sender, ends.receiver) } else { (ends.receiver, ends.sender) }) == (source, destination)
    };
    let of_port = |(port, is_data): (u16, bool)| {
        let flow = usize::from(port.checked_sub(FIRST_PORT)?);
        (flow < layout.flows.len() && is_between(flow, is_data)).then_some((flow, is_data))
    };
    let by_port = ports.and_then(|ports| ports.into_iter().zip([true, false]).find_map(of_port));
    // Programs choose their ports, and have addresses of their own.
    let is_programs = |flow: &usize| scenario.flows[layout.flows[*flow].group].command.is_some();
    let by_address = || {
        let both = (0..layout.flows.len()).filter(is_programs).flat_map(|flow| [(flow, true), (flow, false)]);
        both.into_iter().find(|&(flow, is_data)| is_between(flow, is_data))
    };
    by_port.or_else(by_address)
}

/// A packet on its way.
struct Travel {
    /// Its flow, and whether it goes from the sender to the receiver.
    flow: Option<(usize, bool)>,
    /// The hops of its route.
    hops: Vec<usize>,
    /// What happened last, and when.
    last: (What, Time),
}

impl Travel {
    /// The hop after this one on its route; the first one after none.
    fn after(&self, hop: Option<usize>) -> Option<u16> {
        let next = match hop {
            None => 0,
            Some(hop) => self.hops.iter().position(|&crossed| crossed == hop)? + 1,
        };
        self.hops.get(next).map(|&hop| hop as u16)
    }
}

/// A log that is being put together.
struct Assembly<'a> {
    scenario: &'a Scenario,
    layout: &'a Layout,
    log: FrameLog,
    travels: Vec<Travel>,
}

/// Puts the log of a run together. `missed` is how many packets the limit left out.
pub(crate) fn log(
    (scenario, layout): (&Scenario, &Layout),
    spots: &[Spot],
    mut sightings: Vec<Sighting>,
    capture: Capture,
    missed: u64,
) -> FrameLog {
    let log = FrameLog {
        name: scenario.name.clone(),
        seed: scenario.seed,
        about: "real packets at the devices of a Linux kernel",
        end: Time::ZERO + scenario.duration,
        capture,
        sides: layout.side_names().map(str::to_owned),
        hops: hops(scenario),
        frames: Vec::new(),
        bytes: Vec::new(),
        events: Vec::new(),
        missed,
    };
    let mut assembly = Assembly { scenario, layout, log, travels: Vec::new() };
    let has_behind = |hop: usize| spots.iter().any(|spot| spot.place == Place::Behind(hop));
    // The guest reads the devices a moment after the end.
    sightings.retain(|seen| Time::from_ns(seen.at) <= assembly.log.end);
    // By the spots' numbers where times agree: a packet leaves its host before it is anywhere else.
    sightings.sort_by_key(|seen| (seen.at, seen.spot));
    let mut packets: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut seen_before: HashMap<(u64, u16), usize> = HashMap::new();
    for seen in &sightings {
        let (at, place) = (Time::from_ns(seen.at), spots[usize::from(seen.spot)].place);
        if let (Place::Side(side), true) = (place, seen.leaves) {
            packets.entry(seen.id).or_default().push(assembly.begin(side, seen, at));
            continue;
        }
        // Packets with the same identity keep their order.
        let count = seen_before.entry((seen.id, seen.spot)).or_default();
        let Some(&packet) = packets.get(&seen.id).and_then(|same| same.get(*count)) else { continue };
        *count += 1;
        match place {
            Place::Side(_) => assembly.tell(packet, at, What::Arrived),
            Place::Entry(_) => assembly.enters(packet, at, None),
            Place::Behind(hop) => assembly.enters(packet, at, Some(hop)),
            Place::Out(hop) => {
                assembly.comes_out(packet, at, (hop, &seen.head));
                if !has_behind(hop) {
                    assembly.enters(packet, at, Some(hop));
                }
            }
        }
    }
    assembly.find_dropped();
    assembly.log
}

impl Assembly<'_> {
    /// A packet leaves its host; returns its number.
    fn begin(&mut self, side: usize, seen: &Sighting, at: Time) -> u32 {
        let flow = flow_of(self.scenario, self.layout, &seen.head);
        let hops = flow.map_or(Vec::new(), |(flow, is_data)| route(self.layout, flow, is_data));
        self.travels.push(Travel { flow, hops, last: (What::Sent, at) });
        let mut head = seen.head.clone();
        if head.len() == seen.ip_len as usize {
            complete_checksum(&mut head);
        }
        self.log.push_head(side as u8, &head, seen.ip_len, at)
    }

    fn tell(&mut self, packet: u32, at: Time, what: What) {
        self.travels[packet as usize].last = (what, at);
        self.log.events.push(Event { at, packet, what });
    }

    /// A packet comes to the queue of the hop after this one, if there is one.
    fn enters(&mut self, packet: u32, at: Time, after: Option<usize>) {
        if let Some(hop) = self.travels[packet as usize].after(after) {
            self.tell(packet, at, What::Enqueued(hop));
        }
    }

    /// A packet has left a hop's queue; `head` is empty if its ECN field is as it was.
    fn comes_out(&mut self, packet: u32, at: Time, (hop, head): (usize, &[u8])) {
        let hop = hop as u16;
        let frame = &self.log.frames[packet as usize];
        if !head.is_empty() && ecn(self.log.bytes_of(frame, true)) != ecn(head) {
            let header = &head[..ip_header_len(head).min(head.len())];
            self.log.mark(packet, |kept| kept.iter_mut().zip(header).for_each(|(kept, &byte)| *kept = byte));
            self.tell(packet, at, What::Marked(hop));
        }
        self.tell(packet, at, What::Forwarded(hop));
    }

    /// Says of packets that went no further what became of them: where packets that their flow sent later have passed, they are gone.
    fn find_dropped(&mut self) {
        let mut passed: HashMap<(usize, bool, What), u32> = HashMap::new();
        for event in self.log.events.iter().filter(|event| matches!(event.what, What::Forwarded(_) | What::Arrived)) {
            if let Some((flow, is_data)) = self.travels[event.packet as usize].flow {
                let latest = passed.entry((flow, is_data, event.what)).or_default();
                *latest = event.packet.max(*latest);
            }
        }
        let is_gone = |packet: u32, travel: &Travel, next: What| {
            let latest = travel.flow.and_then(|(flow, is_data)| passed.get(&(flow, is_data, next)));
            latest.is_some_and(|&latest| latest > packet)
        };
        for (packet, travel) in (0..).zip(&self.travels) {
            let (last, at) = travel.last;
            let what = match last {
                What::Enqueued(hop) if is_gone(packet, travel, What::Forwarded(hop)) => What::Vanished(hop),
                What::Forwarded(hop) if self.scenario.hops[usize::from(hop)].is_lossy() => {
                    let next = travel.after(Some(hop.into())).map_or(What::Arrived, What::Forwarded);
                    if !is_gone(packet, travel, next) {
                        continue;
                    }
                    What::Dropped(hop, DropReason::LinkLoss)
                }
                _ => continue,
            };
            self.log.events.push(Event { at, packet, what });
        }
        self.log.events.sort_by_key(|event| event.at);
    }
}

/// The hops that a flow's packets cross on their way there, or back.
fn route(layout: &Layout, flow: usize, is_data: bool) -> Vec<usize> {
    let ends = &layout.flows[flow];
    let (side, route) = if is_data { (ends.side, ends.forward) } else { (1 - ends.side, ends.reverse) };
    let direction = &layout.directions[side];
    direction.routes[usize::from(route)].hops.iter().map(|&local| direction.hops[usize::from(local)]).collect()
}

/// Bytes as text.
mod bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD_NO_PAD.decode(text.as_bytes()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use narrows_scenario::NoTraces;

    /// Data cross two hops. The second one loses packets. Acknowledgments cross a third hop.
    const SCENARIO: &str = r#"
name = "two hops"
duration = "1s"
hop = [
  { name = "first", rate = "10mbit", delay = "1ms", queue = "fq_codel" },
  { name = "second", rate = "5mbit", queue = "fifo", loss = 0.01 },
  { name = "back", rate = "1mbit", queue = "fifo" },
]
[[flow]]
name = "bulk"
controller = "cubic"
rtt = "20ms"
route = ["first", "second"]
back = ["back"]
"#;

    fn world() -> (Scenario, Layout, Vec<Spot>) {
        let scenario = Scenario::parse(SCENARIO, "x.toml", &NoTraces).expect("a scenario");
        let layout = Layout::new(&scenario).expect("two directions");
        let network = crate::network::network(&scenario, &layout).expect("the kernel has it");
        let spots = spots(&network, &layout);
        (scenario, layout, spots)
    }

    /// The first bytes of a segment of the scenario's flow.
    fn segment(layout: &Layout, number: u32, is_data: bool, [ttl, ecn]: [u8; 2]) -> Vec<u8> {
        let flow = &layout.flows[0];
        let (IpAddr::V4(sender), IpAddr::V4(receiver)) = (flow.sender, flow.receiver) else { panic!("IPv4") };
        let (from, to, ports) =
            if is_data { (sender, receiver, [40_000, FIRST_PORT]) } else { (receiver, sender, [FIRST_PORT, 40_000]) };
        let packet = PacketBuilder::ipv4(from.octets(), to.octets(), ttl).tcp(ports[0], ports[1], number, 1000);
        let mut bytes = vec![0; packet.size(0)];
        packet.write_to_slice(&mut bytes, &[]).expect("it fits");
        bytes[1] |= ecn;
        bytes
    }

    /// Sightings of one segment at places, in µs.
    fn travel(
        (layout, spots): (&Layout, &[Spot]),
        (number, is_data): (u32, bool),
        places: &[(Place, u64)],
        marked_at: Option<Place>,
    ) -> Vec<Sighting> {
        let mut ecn = 2;
        let mut sightings = Vec::new();
        for (n, &(place, us)) in places.iter().enumerate() {
            if marked_at == Some(place) {
                ecn = 3;
            }
            let head = segment(layout, number, is_data, [64 - n as u8, ecn]);
            let spot = spots.iter().position(|spot| spot.place == place).expect("it is one") as u16;
            let id = identity(&head, 1500);
            let head = if n == 0 || ecn == 3 { head } else { Vec::new() };
            sightings.push(Sighting { spot, leaves: n == 0, at: us * 1000, id, ip_len: 1500, head });
        }
        sightings
    }

    const THERE: [(Place, u64); 6] = [
        (Place::Side(0), 0),
        (Place::Entry(0), 5),
        (Place::Out(0), 1200),
        (Place::Behind(0), 2200),
        (Place::Out(1), 4600),
        (Place::Side(1), 4605),
    ];

    fn later(places: &[(Place, u64)], us: u64) -> Vec<(Place, u64)> {
        places.iter().map(|&(place, at)| (place, at + us)).collect()
    }

    fn told(log: &FrameLog, packet: u32) -> Vec<(What, u64)> {
        let of = log.events.iter().filter(|event| event.packet == packet);
        of.map(|event| (event.what, event.at.since(Time::ZERO).as_ns() / 1000)).collect()
    }

    #[test]
    fn packets_are_seen_at_hosts_and_before_and_behind_queues() {
        let (_, _, spots) = world();
        let names: Vec<_> = spots.iter().map(|spot| (spot.place, spot.side, spot.device.as_str())).collect();
        assert_eq!(
            names,
            [
                (Place::Side(0), Some(0), "router"),
                (Place::Entry(0), None, "side0"),
                (Place::Side(1), Some(1), "router"),
                (Place::Entry(1), None, "side1"),
                (Place::Out(0), None, "hop0x"),
                (Place::Behind(0), None, "hop0dx"),
                (Place::Out(1), None, "hop1x"),
                (Place::Out(2), None, "hop2x"),
            ]
        );
    }

    #[test]
    fn a_packet_is_followed_over_all_hops_of_its_route() {
        let (scenario, layout, spots) = world();
        let at = (&layout, spots.as_slice());
        let mut sightings = travel(at, (1, true), &THERE, Some(Place::Out(1)));
        let back = [(Place::Side(1), 5000), (Place::Entry(1), 5010), (Place::Out(2), 5500), (Place::Side(0), 15_000)];
        sightings.extend(travel(at, (1, false), &back, None));
        // The guest reads one device after the other.
        sightings.sort_by_key(|seen| seen.spot);
        let log = log((&scenario, &layout), &spots, sightings, Capture::default(), 0);
        assert_eq!(
            told(&log, 0),
            [
                (What::Sent, 0),
                (What::Enqueued(0), 5),
                (What::Forwarded(0), 1200),
                (What::Enqueued(1), 2200),
                (What::Marked(1), 4600),
                (What::Forwarded(1), 4600),
                (What::Arrived, 4605),
            ]
        );
        let [data, acknowledgment] = log.frames[..] else { panic!("{} packets", log.frames.len()) };
        let ecn_of = |marked| ecn(log.bytes_of(&data, marked));
        assert_eq!((data.side, ecn_of(false), ecn_of(true)), (0, 2, 3));
        assert_eq!(acknowledgment.side, 1);
        assert_eq!(
            told(&log, 1),
            [(What::Sent, 5000), (What::Enqueued(2), 5010), (What::Forwarded(2), 5500), (What::Arrived, 15_000)]
        );
        assert_eq!(log.sides, ["senders", "receivers"]);
    }

    #[test]
    fn what_a_later_packet_has_overtaken_is_gone() {
        let (scenario, layout, spots) = world();
        let at = (&layout, spots.as_slice());
        let mut sightings = Vec::new();
        // The first queue drops number 1, the second hop's link loses number 2; 3 arrives; 4 and 5 are on their way at the end.
        for (number, seen) in [(1, 2), (2, 5), (3, 6), (4, 2), (5, 5)] {
            sightings.extend(travel(at, (number, true), &later(&THERE[..seen], u64::from(number)), None));
        }
        let log = log((&scenario, &layout), &spots, sightings, Capture::default(), 7);
        let last = |packet| told(&log, packet).pop();
        // 3 has come out of the first queue after 1, 5 after 4.
        assert_eq!(last(0), Some((What::Vanished(0), 6)));
        assert_eq!(last(1), Some((What::Dropped(1, DropReason::LinkLoss), 4602)));
        assert_eq!(last(2), Some((What::Arrived, 4608)));
        assert_eq!(last(3), Some((What::Vanished(0), 9)));
        assert_eq!(last(4), Some((What::Forwarded(1), 4605)), "no later packet has arrived");
        assert_eq!(log.missed, 7);
    }

    #[test]
    fn a_checksum_that_was_left_to_the_device_is_computed() {
        let right = segment(&world().1, 1, true, [64, 0]);
        let mut left = right.clone();
        left[36..38].copy_from_slice(&[0x12, 0x34]);
        complete_checksum(&mut left);
        assert_eq!(left, right);
        let packet = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2);
        let mut right = vec![0; packet.size(5)];
        packet.write_to_slice(&mut right, &[1, 2, 3, 4, 5]).expect("it fits");
        let mut left = right.clone();
        left[46..48].copy_from_slice(&[0, 0]);
        complete_checksum(&mut left);
        assert_eq!(left, right);
        let mut other = vec![0x45; 30];
        complete_checksum(&mut other);
        assert_eq!(other, vec![0x45; 30], "no transport that is known");
    }

    #[test]
    fn equal_packets_keep_their_order_and_unknown_ones_are_left_out() {
        let (scenario, layout, spots) = world();
        let at = (&layout, spots.as_slice());
        let mut sightings: Vec<_> =
            [0, 10].into_iter().flat_map(|us| travel(at, (1, true), &later(&THERE, us), None)).collect();
        sightings.extend(travel(at, (2, true), &THERE, None).into_iter().skip(1));
        let log = log((&scenario, &layout), &spots, sightings, Capture::default(), 0);
        assert_eq!(log.frames.len(), 2);
        assert_eq!([0, 1].map(|packet| told(&log, packet).pop()), [4605, 4615].map(|us| Some((What::Arrived, us))));
    }

    #[test]
    fn only_what_changes_on_the_way_is_no_part_of_the_identity() {
        let (_, layout, _) = world();
        let of = |number, ttl, ecn| identity(&segment(&layout, number, true, [ttl, ecn]), 1500);
        assert_eq!(of(1, 64, 0), of(1, 60, 3));
        assert_ne!(of(1, 64, 0), of(2, 64, 0));
        let head = segment(&layout, 1, true, [64, 0]);
        assert_ne!(identity(&head, 1500), identity(&head, 1400));
        let mut v6 = vec![0x60, 0x20, 0, 0, 0, 0, 17, 64];
        v6.resize(48, 9);
        let before = identity(&v6, 100);
        (v6[1], v6[7]) = (0x30, 61);
        assert_eq!((identity(&v6, 100), ecn(&v6)), (before, 3));
        v6[1] = 0x70;
        assert_ne!(identity(&v6, 100), before, "the DSCP stays");
    }
}
