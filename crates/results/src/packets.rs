//! Every packet of a run: what it carried, and what happened to it at each hop.
//!
//! A world makes a [`PacketLog`] on demand. Captures, tables and charts are made from it. Packets have one row each, in the order in
//! which they were sent. Their [`Event`]s are in the order in which the world learned of them, so that their times ascend, apart from
//! those of [`What::Dequeued`]. Of real packets there is a [`FrameLog`], with their first bytes.
mod frames;
mod lengths;
mod table;

pub use frames::{Frame, FrameLog, SNAP};
pub use lengths::Lengths;
use narrows_core::{DropReason, Dscp, Ecn, Rate, Span, Time};
pub use narrows_scenario::Family;
pub use table::{MAX_HOPS, write as write_table, write_to as write_table_to};

/// Which packets of a run are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capture {
    /// Packets sent earlier are left out.
    pub from: Time,
    /// Packets sent at this time or later are left out.
    pub until: Option<Time>,
    /// Maximum number of packets; those sent after them are left out.
    pub limit: u32,
    /// Record the senders' recovery too: windows, RTTs, losses.
    pub recovery: bool,
}

impl Capture {
    /// Whether packets that are sent at this time are recorded.
    pub fn covers(&self, at: Time) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }

    /// Maximum number of packets unless the user asks for another.
    pub const LIMIT: u32 = 1_000_000;
}

impl Default for Capture {
    fn default() -> Capture {
        Capture { from: Time::ZERO, until: None, limit: Capture::LIMIT, recovery: false }
    }
}

/// The packets of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketLog {
    /// The name of the scenario.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// When the run ended.
    pub end: Time,
    /// What was asked for.
    pub capture: Capture,
    /// The hops, in the scenario's order.
    pub hops: Vec<Hop>,
    /// The flows, in the scenario's order.
    pub flows: Vec<Flow>,
    /// The packets, in the order in which they were sent.
    pub packets: Vec<Packet>,
    /// Ranges of numbers that acknowledgments carry; see [`PacketLog::ranges`].
    pub ranges: Vec<(u64, u64)>,
    /// The events of all packets.
    pub events: Vec<Event>,
    /// The senders' recovery, in the order of time.
    pub recovery: Vec<Recovery>,
    /// First bytes of datagrams; see [`PacketLog::head`].
    pub heads: Vec<u8>,
    /// Number of packets that [`Capture::limit`] left out.
    pub missed: u64,
}

/// A hop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Its name.
    pub name: String,
    /// Its queue, as results write it.
    pub queue: String,
    /// Its rate at the start.
    pub rate: Rate,
    /// Does a flow's route, or its way back, cross it?
    pub used: bool,
}

/// A flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its transport.
    pub transport: Transport,
    /// Its controller, as results write it; empty for datagrams.
    pub controller: String,
    /// Length of a packet's headers at the IP layer, bytes.
    pub header: u32,
    /// Maximum payload of a packet, bytes; 0 for datagrams.
    pub mss: u32,
    /// How its receiver reports marks.
    pub marks: Marks,
    /// The numbers of the hosts of its sender and its receiver.
    pub hosts: [u16; 2],
    /// The IP version.
    pub family: Family,
    /// Code point of its data.
    pub dscp: Dscp,
    /// Every datagram has a new source port.
    pub new_ports: bool,
    /// Where each segment (TCP) or chunk (QUIC) begins in the stream.
    pub lengths: Lengths,
}

/// A flow's transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// QUIC.
    Quic,
    /// Datagrams without feedback.
    Udp,
    /// Somebody else's: datagrams whose first bytes are kept; see [`PacketLog::head`].
    Foreign,
}

/// How a receiver reports CE marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marks {
    /// Not at all: the sender's packets are not ECN-capable.
    Off,
    /// With ECE until CWR answers (RFC 3168), or with the last packet's mark in ECE (RFC 8257).
    Echo,
    /// Counted (AccECN, RFC 9768).
    Counted,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// When it left its sender.
    pub sent: Time,
    /// Number of the segment (TCP), the packet (QUIC, per subflow) or the datagram. For an acknowledgment: of the next segment that is
    /// expected (TCP), of the largest packet received (QUIC).
    pub number: u64,
    /// Number of the segment or chunk that it carries; its place in the stream is in [`Flow::lengths`]. Of a foreign datagram: where its
    /// bytes begin in [`PacketLog::heads`].
    pub data: u64,
    /// Index of its flow.
    pub flow: u32,
    /// Length at the IP layer, bytes.
    pub ip_len: u32,
    /// Payload of the transport, bytes; all of a foreign transport's own IP packet.
    pub payload: u32,
    /// The timestamp that it echoes (TCP), ms.
    pub echo: u32,
    /// Delay of an acknowledgment (QUIC), µs.
    pub ack_delay_us: u32,
    /// The first of its ranges in [`PacketLog::ranges`].
    pub first_range: u32,
    /// Number of CE-marked packets that an acknowledgment reports, modulo 256 (TCP) or 2^16 (QUIC).
    pub marks: u16,
    /// The number of its ranges.
    pub ranges: u8,
    /// The subflow of a QUIC connection.
    pub subflow: u8,
    /// What it is.
    pub kind: PacketKind,
    /// ECN codepoint at the sender.
    pub ecn: Ecn,
    /// Its data, or its SYN, were sent before.
    pub retransmission: bool,
    /// The ECE flag.
    pub ece: bool,
    /// The CWR flag.
    pub cwr: bool,
    /// The first of its ranges reports a duplicate (RFC 2883).
    pub duplicate: bool,
}

const _: () = assert!(size_of::<Packet>() == 64);

/// The kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// Opens a connection.
    Syn,
    /// Answers that.
    SynAck,
    /// Carries data; of a foreign transport, all that its sender sends.
    Data,
    /// Acknowledges data; of a foreign transport, all that its receiver sends.
    Ack,
}

impl PacketKind {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            PacketKind::Syn => "syn",
            PacketKind::SynAck => "syn_ack",
            PacketKind::Data => "data",
            PacketKind::Ack => "ack",
        }
    }

    /// Whether it travels from a flow's sender to its receiver.
    pub const fn is_forward(self) -> bool {
        matches!(self, PacketKind::Syn | PacketKind::Data)
    }
}

/// An event of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub at: Time,
    /// Index of the packet.
    pub packet: u32,
    /// What happened.
    pub what: What,
}

const _: () = assert!(size_of::<Event>() == 16);

/// What happened to a packet; hops are indices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// It left the host that sent it.
    Sent,
    /// It came to a hop's queue.
    Enqueued(u16),
    /// It was dropped: on arrival, in the queue, or behind the link.
    Dropped(u16, DropReason),
    /// It came to the hop's queue at this time and never left it. The world does not know when it was dropped, or why.
    Vanished(u16),
    /// The hop's queue marked it CE; reported with its dequeue.
    Marked(u16),
    /// It left the queue for the link.
    Dequeued(u16),
    /// The link handed it over, with its last bit in the case of a wire.
    Forwarded(u16),
    /// It arrived at the host at the other end.
    Arrived,
}

/// The state of a sender after an event, or a loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recovery {
    /// When.
    pub at: Time,
    /// Index of the flow.
    pub flow: u32,
    /// What the sender knows.
    pub what: Known,
}

/// What a sender knows of its path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Known {
    /// Window and RTTs.
    Metrics(Metrics),
    /// A packet is declared lost: its subflow, and its number as in [`Packet::number`].
    Lost(u8, u64),
}

/// Window and RTTs of a sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Metrics {
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Bytes in flight.
    pub in_flight: Option<u64>,
    /// Slow-start threshold, bytes.
    pub ssthresh: Option<u64>,
    /// Pacing rate.
    pub pacing: Option<Rate>,
    /// The latest RTT sample.
    pub latest: Option<Span>,
    /// Smoothed RTT.
    pub smoothed: Option<Span>,
    /// Minimum RTT.
    pub min: Option<Span>,
}

impl PacketLog {
    /// The ranges of numbers, first to last plus one, that an acknowledgment carries.
    pub fn ranges(&self, packet: &Packet) -> &[(u64, u64)] {
        let first = packet.first_range as usize;
        &self.ranges[first..first + usize::from(packet.ranges)]
    }

    /// A packet's flow.
    pub fn flow(&self, packet: &Packet) -> &Flow {
        &self.flows[packet.flow as usize]
    }

    /// The place in its stream of a packet's first byte; for an acknowledgment of TCP, of the next byte expected. `None` for packets
    /// without a place.
    pub fn stream_offset(&self, packet: &Packet) -> Option<u64> {
        let flow = self.flow(packet);
        match (flow.transport, packet.kind) {
            (Transport::Udp | Transport::Foreign, _)
            | (Transport::Quic, PacketKind::Ack)
            | (_, PacketKind::Syn | PacketKind::SynAck) => None,
            (Transport::Tcp, _) | (Transport::Quic, PacketKind::Data) => Some(flow.lengths.start(packet.data)),
        }
    }

    /// The first bytes of a foreign datagram, at most [`SNAP`]: of its UDP payload, or of a whole IP packet if the transport makes its own
    /// headers. Empty for all other packets.
    pub fn head(&self, packet: &Packet) -> &[u8] {
        if self.flow(packet).transport != Transport::Foreign {
            return &[];
        }
        let first = packet.data as usize;
        &self.heads[first..first + (packet.payload as usize).min(SNAP)]
    }

    /// The events of each packet in turn.
    pub fn by_packet(&self) -> ByPacket<'_> {
        ByPacket::of(self)
    }

    /// Says what is missing, if [`Capture::limit`] left packets out.
    pub fn cut(&self) -> Option<String> {
        let last = self.packets.last().filter(|_| self.missed > 0)?;
        Some(cut(self.packets.len(), last.sent, self.missed))
    }
}

/// Says that only the first packets are in a log.
fn cut(kept: usize, last: Time, missed: u64) -> String {
    let last = last.as_secs_f64();
    format!("only the first {kept} packets, sent until {last:.6} s; {missed} later ones are left out")
}

/// The events of a log, grouped by packet.
pub struct ByPacket<'a> {
    log: &'a PacketLog,
    /// Where the events of each packet begin in `order`.
    starts: Vec<usize>,
    /// Indices of events.
    order: Vec<usize>,
}

impl ByPacket<'_> {
    fn of(log: &PacketLog) -> ByPacket<'_> {
        let mut starts = vec![0; log.packets.len() + 1];
        for event in &log.events {
            starts[event.packet as usize + 1] += 1;
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let (mut next, mut order) = (starts.clone(), vec![0; log.events.len()]);
        for (index, event) in log.events.iter().enumerate() {
            let place = &mut next[event.packet as usize];
            order[*place] = index;
            *place += 1;
        }
        ByPacket { log, starts, order }
    }

    /// The events of a packet, by its index.
    pub fn events(&self, packet: usize) -> impl Iterator<Item = &Event> {
        self.order[self.starts[packet]..self.starts[packet + 1]].iter().map(|&index| &self.log.events[index])
    }
}
