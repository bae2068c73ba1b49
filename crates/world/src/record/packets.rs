//! The record of every packet, which a world keeps on demand. Its driver reports packets and decisions at their times.
//!
//! A packet has its row in the log from the moment at which it is sent. Until it arrives, its row is known by the packet's place in
//! the network, or by its place in a pipe; while it moves between these it is in hand. Nothing is allocated per packet once the
//! structures have grown.
use crate::meters::Meters;
use crate::network::{Decision, DecisionKind};
use crate::peer::Datagram;
use narrows_core::congestion::{self, ControllerConfig};
use narrows_core::{Ecn, PacketId, Span, Time};
use narrows_results::packets::{
    Capture, Event, Flow, Hop, Known, Lengths, Marks, Metrics, Packet, PacketKind, PacketLog, Recovery, SNAP,
    Transport, What,
};
use narrows_scenario::model;
use narrows_scenario::transport::Ports;
use narrows_scenario::{Scenario, Transport as Carrier};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

/// Writes a [`PacketLog`].
pub struct PacketRecorder {
    log: PacketLog,
    /// The packets in the network, by [`PacketId::index`].
    places: Vec<Place>,
    /// The packet that is about to enter the network or a pipe, if it is recorded.
    in_hand: Option<Row>,
    /// The packets in each return pipe, the oldest first.
    pipes: Vec<VecDeque<Option<Row>>>,
    senders: Vec<Sender>,
}

/// A packet's index in the log, plus one.
#[derive(Clone, Copy)]
struct Row(NonZeroU32);

/// A place in the network.
#[derive(Clone, Copy, Default)]
struct Place {
    row: Option<Row>,
    /// Its packet waits in a queue.
    queued: bool,
}

/// What the record knows of a sender.
#[derive(Clone, Copy, Default)]
struct Sender {
    /// Number of SYNs or datagrams sent.
    sent: u64,
    /// Number of datagrams that its receiver sent, of a foreign transport.
    answers: u64,
    /// Timestamp of the last acknowledgment that it got, ms.
    stamp: u32,
    min_rtt: Option<Span>,
    latest_rtt: Option<Span>,
    last: Option<Metrics>,
}

/// A packet that leaves its flow's sender.
#[derive(Clone, Copy, Debug)]
pub struct Departing {
    /// Index of its flow.
    pub flow: usize,
    /// It opens the connection.
    pub is_syn: bool,
    /// Number of the segment or packet.
    pub number: u64,
    /// The low bits of the number of the segment or chunk that it carries.
    pub data: u32,
    /// Length at the IP layer, bytes.
    pub ip_len: u32,
    /// The subflow of a QUIC connection.
    pub subflow: u8,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// The CWR flag.
    pub cwr: bool,
}

/// Number of ranges that an acknowledgment carries, at most.
pub const RANGES: usize = 4;

/// A packet from a receiver to its sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// It answers a SYN.
    pub is_syn_ack: bool,
    /// The next segment expected (TCP), the largest packet received (QUIC).
    pub number: u64,
    /// Selectively acknowledged segments, or received packets: the first, and the last plus one. A D-SACK comes first.
    pub ranges: [(u64, u64); RANGES],
    /// The number of these ranges.
    pub count: u8,
    /// The first range is a D-SACK: its segments arrived twice.
    pub duplicate: bool,
    /// Timestamp that it echoes, ms.
    pub echo: u32,
    /// Delay of the acknowledgment, µs.
    pub delay_us: u32,
    /// Number of marked packets, modulo 256 or 2^16.
    pub marks: u16,
    /// The ECE flag.
    pub ece: bool,
    /// The subflow of a QUIC connection.
    pub subflow: u8,
    /// Length at the IP layer, bytes.
    pub ip_len: u32,
}

impl PacketRecorder {
    /// A recorder for a run of this scenario. `pipes` is the number of delay lines that carry acknowledgments back.
    pub fn new(scenario: &Scenario, pipes: usize, capture: Capture) -> PacketRecorder {
        let flows = flows(scenario);
        PacketRecorder {
            places: Vec::new(),
            in_hand: None,
            pipes: vec![VecDeque::new(); pipes],
            senders: vec![Sender::default(); flows.len()],
            log: PacketLog {
                name: scenario.name.clone(),
                seed: scenario.seed,
                end: Time::ZERO + scenario.duration,
                capture,
                hops: hops(scenario),
                flows,
                packets: Vec::new(),
                ranges: Vec::new(),
                events: Vec::new(),
                recovery: Vec::new(),
                heads: Vec::new(),
                missed: 0,
            },
        }
    }

    /// Whether it records windows, RTTs and losses.
    pub fn wants_recovery(&self) -> bool {
        self.log.capture.recovery
    }

    /// A packet leaves its flow's sender; it is in hand.
    pub fn departs(&mut self, packet: &Departing, now: Time) {
        let flow = &mut self.log.flows[packet.flow];
        let sender = &mut self.senders[packet.flow];
        let payload = if packet.is_syn { 0 } else { packet.ip_len - flow.header.min(packet.ip_len) };
        let (mut number, mut data) = (packet.number, 0);
        let retransmission = match flow.transport {
            _ if packet.is_syn => sender.sent > 0,
            Transport::Udp | Transport::Foreign => {
                (number, data) = (sender.sent, sender.sent);
                false
            }
            Transport::Tcp | Transport::Quic => {
                // The full number is the nearest one to the next that is new.
                let ahead = packet.data.wrapping_sub(flow.lengths.next() as u32) as i32;
                data = flow.lengths.next().saturating_add_signed(ahead.into());
                if ahead >= 0 {
                    flow.lengths.push(payload);
                }
                ahead < 0
            }
        };
        if packet.is_syn || flow.transport == Transport::Udp {
            sender.sent += 1;
        }
        let kind = if packet.is_syn { PacketKind::Syn } else { PacketKind::Data };
        let row = Packet {
            number,
            data,
            payload,
            echo: sender.stamp,
            subflow: packet.subflow,
            ecn: packet.ecn,
            retransmission,
            cwr: packet.cwr,
            ..plain(packet.flow, kind, packet.ip_len, now)
        };
        self.take(row, now);
    }

    /// A flow is between two peers.
    pub fn attach(&mut self, flow: usize) {
        self.log.flows[flow].transport = Transport::Foreign;
    }

    /// A peer's full-sized packets have this payload, bytes.
    pub fn fills(&mut self, flow: usize, mss: u32) {
        self.log.flows[flow].mss = mss;
    }

    /// A datagram leaves a peer, the flow's sender or its receiver; it is in hand.
    pub fn datagram(&mut self, flow: usize, is_forward: bool, datagram: &Datagram, now: Time) {
        let Sender { sent, answers, .. } = &mut self.senders[flow];
        let (kind, number) = if is_forward { (PacketKind::Data, sent) } else { (PacketKind::Ack, answers) };
        let bytes = &datagram.bytes;
        let row = Packet {
            number: *number,
            data: self.log.heads.len() as u64,
            payload: bytes.len() as u32,
            ecn: datagram.ecn,
            ..plain(flow, kind, datagram.ip_len() as u32, now)
        };
        *number += 1;
        self.take(row, now);
        if self.in_hand.is_some() {
            self.log.heads.extend_from_slice(&bytes[..bytes.len().min(SNAP)]);
        }
    }

    /// A packet leaves its flow's receiver; it is in hand.
    pub fn answers(&mut self, flow: usize, answer: &Answer, now: Time) {
        let first_range = self.log.ranges.len() as u32;
        let kind = if answer.is_syn_ack { PacketKind::SynAck } else { PacketKind::Ack };
        let row = Packet {
            number: answer.number,
            data: answer.number,
            echo: answer.echo,
            ack_delay_us: answer.delay_us,
            first_range,
            marks: answer.marks,
            ranges: answer.count,
            subflow: answer.subflow,
            ece: answer.ece,
            duplicate: answer.duplicate,
            ..plain(flow, kind, answer.ip_len, now)
        };
        self.take(row, now);
        if self.in_hand.is_some() {
            self.log.ranges.extend(&answer.ranges[..usize::from(answer.count)]);
        }
    }

    fn take(&mut self, packet: Packet, now: Time) {
        self.in_hand = None;
        if !self.log.capture.covers(now) {
            return;
        }
        if self.log.packets.len() >= self.log.capture.limit as usize {
            self.log.missed += 1;
            return;
        }
        self.log.packets.push(packet);
        self.in_hand = NonZeroU32::new(self.log.packets.len() as u32).map(Row);
        self.tell(self.in_hand, now, What::Sent);
    }

    /// The packet in hand gets this place in the network.
    pub fn enters(&mut self, id: PacketId) {
        if self.places.len() <= id.index() {
            self.places.resize(id.index() + 1, Place::default());
        }
        self.places[id.index()] = Place { row: self.in_hand.take(), queued: false };
    }

    /// The packet at this place leaves the network; it is in hand.
    pub fn leaves(&mut self, id: PacketId) {
        self.in_hand = self.places.get_mut(id.index()).and_then(|place| place.row.take());
    }

    /// The packet in hand enters the end of a pipe.
    pub fn enters_pipe(&mut self, pipe: usize) {
        self.pipes[pipe].push_back(self.in_hand.take());
    }

    /// Two packets in a pipe, which are this many places behind the oldest one, change places.
    pub fn swap_in_pipe(&mut self, pipe: usize, one: usize, other: usize) {
        self.pipes[pipe].swap(one, other);
    }

    /// The oldest packet in a pipe leaves it; it is in hand.
    pub fn leaves_pipe(&mut self, pipe: usize) {
        self.in_hand = self.pipes[pipe].pop_front().flatten();
    }

    /// The packet in hand arrives at the host at the other end.
    pub fn arrives(&mut self, now: Time) {
        let Some(row) = self.in_hand.take() else { return };
        self.tell(Some(row), now, What::Arrived);
        let packet = &self.log.packets[row.index()];
        if !packet.kind.is_forward() {
            self.senders[packet.flow as usize].stamp = milliseconds(packet.sent);
        }
    }

    /// A hop's queue has decided about a packet, or it was lost behind the link.
    pub fn decided(&mut self, decision: Decision, now: Time) {
        let Some(place) = self.places.get_mut(decision.packet.index()) else { return };
        let happened = events(decision, decision.hop as u16, &mut place.queued, now);
        let row = if let DecisionKind::Dropped(_) = decision.verdict { std::mem::take(place).row } else { place.row };
        for (at, what) in happened.into_iter().flatten() {
            self.tell(row, at, what);
        }
    }

    fn tell(&mut self, row: Option<Row>, at: Time, what: What) {
        if let Some(row) = row {
            self.log.events.push(Event { at, packet: row.index() as u32, what });
        }
    }

    /// An RTT sample of a sender.
    pub fn rtt(&mut self, flow: usize, rtt: Span) {
        let sender = &mut self.senders[flow];
        sender.latest_rtt = Some(rtt);
        sender.min_rtt = Some(sender.min_rtt.map_or(rtt, |min| min.min(rtt)));
    }

    /// The state of a sender after an event.
    pub fn metrics(&mut self, flow: usize, meters: &Meters, now: Time) {
        let mss = f64::from(self.log.flows[flow].mss);
        let bytes = |packets: f64| (packets * mss).round() as u64;
        let sender = &mut self.senders[flow];
        let metrics = Metrics {
            cwnd: bytes(meters.cwnd),
            in_flight: meters.inflight.map(bytes),
            ssthresh: meters.ssthresh.map(bytes),
            pacing: meters.pacing,
            latest: sender.latest_rtt,
            smoothed: meters.srtt,
            min: sender.min_rtt,
        };
        if sender.last != Some(metrics) {
            sender.last = Some(metrics);
            self.recover(flow, now, Known::Metrics(metrics));
        }
    }

    /// A sender declares a packet lost.
    pub fn lost(&mut self, flow: usize, subflow: u8, number: u64, now: Time) {
        self.recover(flow, now, Known::Lost(subflow, number));
    }

    fn recover(&mut self, flow: usize, at: Time, what: Known) {
        if self.log.capture.covers(at) && self.log.missed == 0 {
            self.log.recovery.push(Recovery { at, flow: flow as u32, what });
        }
    }

    /// The log so far.
    pub fn log(&self) -> &PacketLog {
        &self.log
    }

    /// The index in the log of the packet at this place in the network, if it is recorded.
    pub fn index_at(&self, id: PacketId) -> Option<usize> {
        self.places.get(id.index())?.row.map(Row::index)
    }

    /// The index in the log of the nth packet in a pipe, if it is recorded.
    pub fn index_in_pipe(&self, pipe: usize, n: usize) -> Option<usize> {
        self.pipes[pipe].get(n).copied().flatten().map(Row::index)
    }

    /// Forgets all events, and the packets that are not underway any more. The others get new indices in the log, in the same order.
    pub fn forget(&mut self) {
        let PacketRecorder { log, places, pipes, in_hand, .. } = self;
        let rows = places.iter_mut().map(|place| &mut place.row).chain(pipes.iter_mut().flatten()).chain([in_hand]);
        let mut rows: Vec<&mut Row> = rows.flatten().collect();
        rows.sort_unstable_by_key(|row| row.0);
        let (mut packets, mut ranges, mut heads) = (Vec::with_capacity(rows.len()), Vec::new(), Vec::new());
        for row in rows {
            let packet = log.packets[row.index()];
            let first_range = ranges.len() as u32;
            ranges.extend(log.ranges(&packet));
            let head = log.head(&packet);
            let data = if head.is_empty() { packet.data } else { heads.len() as u64 };
            heads.extend_from_slice(head);
            packets.push(Packet { first_range, data, ..packet });
            row.0 = NonZeroU32::MIN.saturating_add(packets.len() as u32 - 1);
        }
        (log.packets, log.ranges, log.heads) = (packets, ranges, heads);
        log.events.clear();
        log.recovery.clear();
    }

    /// The log, at the end of the run.
    pub fn finish(self) -> PacketLog {
        self.log
    }
}

/// A packet that says nothing beside its length.
fn plain(flow: usize, kind: PacketKind, ip_len: u32, sent: Time) -> Packet {
    Packet {
        sent,
        number: 0,
        data: 0,
        flow: flow as u32,
        ip_len,
        payload: 0,
        echo: 0,
        ack_delay_us: 0,
        first_range: 0,
        marks: 0,
        ranges: 0,
        subflow: 0,
        kind,
        ecn: Ecn::NotEct,
        retransmission: false,
        ece: false,
        cwr: false,
        duplicate: false,
    }
}

impl Row {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The clock of TCP's timestamps.
fn milliseconds(at: Time) -> u32 {
    (at.as_ns() / 1_000_000) as u32
}

/// Mean length of packets that [`most_packets`] assumes, bytes.
const MEAN: u64 = 300;

/// The number of packets that a log may get: as many as the links can carry, and as many acknowledgments, up to the limit.
pub fn most_packets(scenario: &Scenario, capture: &Capture) -> u64 {
    let carried = scenario.hops.iter().map(|hop| hop.rate.initial().bytes_in(scenario.duration).0 / MEAN);
    carried.fold(0, u64::saturating_add).saturating_mul(2).min(u64::from(capture.limit))
}

/// What a queue's decision means for its packet, in the order of time. `queued`: whether the packet waits in the queue, before the decision and
/// after it; `now`: when the decision is reported, which is when the link hands a dequeued packet over.
pub fn events(decision: Decision, hop: u16, queued: &mut bool, now: Time) -> [Option<(Time, What)>; 2] {
    let at = decision.at;
    match decision.verdict {
        DecisionKind::Enqueued => {
            *queued = true;
            [Some((at, What::Enqueued(hop))), None]
        }
        DecisionKind::Marked => [Some((at, What::Marked(hop))), None],
        DecisionKind::Dequeued => {
            *queued = false;
            [Some((at, What::Dequeued(hop))), Some((now, What::Forwarded(hop)))]
        }
        // A packet that is refused has arrived at the hop, too.
        DecisionKind::Dropped(reason) => {
            let on_arrival = !*queued && !reason.is_behind_link();
            [on_arrival.then_some((at, What::Enqueued(hop))), Some((at, What::Dropped(hop, reason)))]
        }
    }
}

/// A scenario's hops, as logs of packets name them.
pub fn hops(scenario: &Scenario) -> Vec<Hop> {
    let mut used = vec![false; scenario.hops.len()];
    for group in &scenario.flows {
        for &hop in group.route.iter().chain(&group.back).chain(&group.subflow_route) {
            used[hop] = true;
        }
    }
    let hop = |(spec, used): (&model::Hop, bool)| {
        let (queue, rate) = (spec.discipline(), spec.rate.initial());
        Hop { name: spec.name.clone(), queue, rate, used }
    };
    scenario.hops.iter().zip(used).map(hop).collect()
}

fn flows(scenario: &Scenario) -> Vec<Flow> {
    let (mut hosts, mut names) = (BTreeMap::new(), scenario.flow_names().into_iter());
    let mut flows = Vec::new();
    for group in &scenario.flows {
        let hosts = [&group.from, &group.to].map(|name| {
            let next = hosts.len() as u16;
            *hosts.entry(name.as_str()).or_insert(next)
        });
        let common = flow(group, hosts);
        flows.extend(names.by_ref().take(group.count as usize).map(|name| Flow { name, ..common.clone() }));
    }
    flows
}

/// The common part of a group's flows.
fn flow(group: &model::Flow, hosts: [u16; 2]) -> Flow {
    let carrier = group.carrier();
    let (transport, packet, ecn, new_ports) = match &carrier {
        Carrier::Tcp(tcp) => (Transport::Tcp, tcp.packet.0, tcp.ecn, false),
        Carrier::Quic(quic) => (Transport::Quic, quic.packet.0, quic.ecn, false),
        Carrier::Udp(udp) => (Transport::Udp, udp.header.0, false, udp.ports == Ports::EverNew),
    };
    let header = group.header().0;
    let reports = group.controller.as_ref().map(ControllerConfig::marks).unwrap_or_default();
    let marks = match reports {
        _ if transport == Transport::Udp => Marks::Off,
        congestion::Marks::Scalable => Marks::Counted,
        congestion::Marks::Counted => Marks::Echo,
        congestion::Marks::Classic if ecn => Marks::Echo,
        congestion::Marks::Classic => Marks::Off,
    };
    Flow {
        name: String::new(),
        transport,
        controller: group.controller.as_ref().map(ToString::to_string).unwrap_or_default(),
        header: header as u32,
        mss: packet.saturating_sub(header) as u32,
        marks,
        hosts,
        family: group.family,
        dscp: group.dscp,
        new_ports,
        lengths: Lengths::default(),
    }
}
