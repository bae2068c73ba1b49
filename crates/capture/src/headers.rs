//! The headers of a recorded packet: IP with TCP (RFC 9293), UDP, or UDP with a QUIC header (RFC 9000 §17).
//!
//! The simulator's packets have lengths, numbers and flags, but no bytes. Here they get headers that say the same: addresses from
//! the hosts, ports from the flows, checksums over a payload of zeros. A foreign transport's datagrams have the first bytes that they
//! had, in a checksum with zeros for the rest; a transport that makes its own IP packets has its own headers. TCP's initial sequence numbers are 0, so its relative
//! numbers are the absolute ones. Connection ids and packet numbers of QUIC are in the clear.
use crate::ip::{self, Ip, Said};
use etherparse::{IpNumber, TcpHeader, TcpOptionElement, UdpHeader};
use narrows_core::{Dscp, Ecn};
use narrows_results::packets::{Flow, Marks, Packet, PacketKind, PacketLog, SNAP, Transport};

/// Makes the headers of a log's packets.
pub(crate) struct Headers<'a> {
    log: &'a PacketLog,
    /// The headers.
    bytes: Vec<u8>,
    /// A payload of zeros, apart from the bytes that are known while they are used.
    payload: Vec<u8>,
}

/// The headers of a packet.
pub(crate) struct Frame<'a> {
    pub(crate) headers: &'a [u8],
    /// Length of the whole packet, bytes.
    pub(crate) length: u32,
}

impl<'a> Headers<'a> {
    pub(crate) fn new(log: &'a PacketLog) -> Headers<'a> {
        Headers { log, bytes: Vec::with_capacity(SNAP), payload: vec![0; usize::from(u16::MAX)] }
    }

    /// The headers of a packet; `marked` means that a queue has marked it CE.
    pub(crate) fn of(&mut self, packet: &Packet, marked: bool) -> Frame<'_> {
        let flow = self.log.flow(packet);
        let ecn = if marked { Ecn::Ce } else { packet.ecn };
        self.bytes.clear();
        let length = match flow.transport {
            Transport::Tcp => self.tcp(flow, packet, ecn),
            Transport::Foreign if packet.payload == packet.ip_len => self.own_packet(packet, ecn),
            Transport::Quic | Transport::Udp | Transport::Foreign => self.udp(flow, packet, ecn),
        };
        Frame { headers: &self.bytes, length: packet.ip_len.max(length as u32) }
    }

    /// Writes the headers of a TCP segment; returns its length.
    fn tcp(&mut self, flow: &Flow, packet: &Packet, ecn: Ecn) -> usize {
        let (seq, ack) = sequence(self.log, packet);
        let [source, destination] = ports(flow, packet);
        let mut tcp = TcpHeader::new(source, destination, seq, WINDOW);
        tcp.acknowledgment_number = ack;
        tcp.syn = matches!(packet.kind, PacketKind::Syn | PacketKind::SynAck);
        tcp.ack = packet.kind != PacketKind::Syn;
        (tcp.ns, tcp.cwr, tcp.ece) = ecn_flags(flow, packet);
        // At most 40 bytes of options, which always fit.
        let _ = tcp.set_options(&self.options(flow, packet));
        let segment = tcp.header_len() + packet.payload as usize;
        let ip = ip(flow, packet, ecn, IpNumber::TCP, segment);
        let length = ip.len() + segment;
        tcp.checksum = ip.tcp_checksum(&tcp, &self.payload[..ip.behind() - tcp.header_len()]);
        ip.write(&mut self.bytes);
        self.bytes.extend(tcp.to_bytes());
        length
    }

    /// The options of a TCP segment. Selective acknowledgments are as Linux writes them, behind the timestamps.
    fn options(&self, flow: &Flow, packet: &Packet) -> Vec<TcpOptionElement> {
        use TcpOptionElement::{
            MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp,
            WindowScale,
        };
        let bare = BARE_HEADERS + flow.family.extra().0 as u32;
        let stamp = Timestamp((packet.sent.as_ns() / 1_000_000) as u32, packet.echo);
        if matches!(packet.kind, PacketKind::Syn | PacketKind::SynAck) {
            let mss = (flow.mss + flow.header).saturating_sub(bare).min(u32::from(u16::MAX)) as u16;
            return vec![MaximumSegmentSize(mss), SelectiveAcknowledgementPermitted, stamp, Noop, WindowScale(SCALE)];
        }
        let mut options = Vec::new();
        if flow.header >= bare + STAMPS {
            options.extend([Noop, Noop, stamp]);
        }
        let edge = |segment: u64| flow.lengths.start(segment).wrapping_add(1) as u32;
        let mut blocks = self.log.ranges(packet).iter().map(|&(first, end)| (edge(first), edge(end)));
        if packet.kind == PacketKind::Ack
            && let Some(first) = blocks.next()
        {
            options.extend([Noop, Noop, SelectiveAcknowledgement(first, [blocks.next(), blocks.next(), None])]);
        }
        options
    }

    /// Writes an IP packet that its transport made; returns its length.
    fn own_packet(&mut self, packet: &Packet, ecn: Ecn) -> usize {
        self.bytes.extend_from_slice(self.log.head(packet));
        if ecn == Ecn::Ce {
            ip::mark(&mut self.bytes);
        }
        packet.ip_len as usize
    }

    /// Writes the headers of a datagram; returns its length.
    fn udp(&mut self, flow: &Flow, packet: &Packet, ecn: Ecn) -> usize {
        let bare = BARE_DATAGRAM + flow.family.extra().0 as usize;
        // What is known of the payload.
        let known = match flow.transport {
            Transport::Quic => quic_header(packet, bare),
            Transport::Foreign => self.log.head(packet).to_vec(),
            Transport::Tcp | Transport::Udp => Vec::new(),
        };
        let whole = packet.ip_len as usize;
        // A flow's headers may be said to be longer or shorter than these.
        let payload = whole.saturating_sub(bare).max(known.len());
        let payload = if flow.transport == Transport::Udp { payload.min(packet.payload as usize) } else { payload };
        let ip = ip(flow, packet, ecn, IpNumber::UDP, UdpHeader::LEN + payload);
        let payload = ip.behind() - UdpHeader::LEN;
        self.payload[..known.len()].copy_from_slice(&known);
        let udp = ip.udp(ports(flow, packet), &self.payload[..payload]);
        self.payload[..known.len()].fill(0);
        ip.write(&mut self.bytes);
        // The length was kept within 64 KiB above.
        self.bytes.extend(udp.map(|udp| udp.to_bytes()).unwrap_or_default());
        self.bytes.extend(known);
        bare + payload
    }
}

/// The IP header of a packet with this many bytes of payload.
fn ip(flow: &Flow, packet: &Packet, ecn: Ecn, protocol: IpNumber, behind: usize) -> Ip {
    let mut hosts = flow.hosts;
    if !packet.kind.is_forward() {
        hosts.reverse();
    }
    let dscp = if packet.kind.is_forward() { flow.dscp } else { Dscp(0) };
    Ip::new(&Said { family: flow.family, hosts, dscp, ecn, protocol }, behind)
}

/// The sequence number of a TCP segment, and the number that it acknowledges. The SYN takes one number.
fn sequence(log: &PacketLog, packet: &Packet) -> (u32, u32) {
    // Numbers wrap, as on the wire.
    let place = log.stream_offset(packet).unwrap_or_default().wrapping_add(1) as u32;
    match packet.kind {
        PacketKind::Syn => (0, 0),
        PacketKind::SynAck => (0, 1),
        PacketKind::Data => (place, 1),
        PacketKind::Ack => (1, place),
    }
}

/// The flags AE, CWR and ECE: the negotiation of ECN in SYNs, and the echo. With accurate feedback they are a counter, which begins
/// at 5 (RFC 9768 §3.1, §3.2.2).
fn ecn_flags(flow: &Flow, packet: &Packet) -> (bool, bool, bool) {
    let counter = |marks: u16| {
        let counted = marks.wrapping_add(5);
        (counted & 4 != 0, counted & 2 != 0, counted & 1 != 0)
    };
    match (flow.marks, packet.kind) {
        (Marks::Off, _) => (false, false, false),
        (Marks::Echo, PacketKind::Syn) => (false, true, true),
        (Marks::Echo, PacketKind::SynAck) => (false, false, true),
        (Marks::Echo, PacketKind::Data | PacketKind::Ack) => (false, packet.cwr, packet.ece),
        (Marks::Counted, PacketKind::Syn) => (true, true, true),
        (Marks::Counted, PacketKind::SynAck) => (false, true, false),
        (Marks::Counted, PacketKind::Data) => counter(0),
        (Marks::Counted, PacketKind::Ack) => counter(packet.marks),
    }
}

/// A packet's source port and destination port. They identify a flow, and a subflow of a connection.
fn ports(flow: &Flow, packet: &Packet) -> [u16; 2] {
    let number = match flow.transport {
        Transport::Quic => packet.flow * 2 + u32::from(packet.subflow),
        Transport::Tcp | Transport::Udp | Transport::Foreign => packet.flow,
    };
    let port = |base: u16, offset: u32| base.wrapping_add(offset as u16);
    let server = match flow.transport {
        Transport::Quic | Transport::Foreign => HTTPS,
        Transport::Tcp | Transport::Udp => IPERF,
    };
    let mut ports = if flow.new_ports {
        let fresh = packet.number % u64::from(u16::MAX - FIRST_PORT + 1);
        [port(FIRST_PORT, fresh as u32), port(server, packet.flow)]
    } else {
        [port(EPHEMERAL, number % EPHEMERALS), port(server, number / EPHEMERALS)]
    };
    if !packet.kind.is_forward() {
        ports.reverse();
    }
    ports
}

/// An Initial packet's long header for the handshake, a short header otherwise (RFC 9000 §17.2.2, §17.3.1). Connection ids are the
/// numbers of the flow and the subflow. `bare` is the length of the IP and UDP headers.
fn quic_header(packet: &Packet, bare: usize) -> Vec<u8> {
    let mut id = Vec::from(packet.flow.to_be_bytes());
    id.extend([0, 0, packet.subflow]);
    // The server's ids differ from the client's.
    let [mut to, mut from] = [id.clone(), id];
    to.push(u8::from(packet.kind.is_forward()));
    from.push(u8::from(!packet.kind.is_forward()));
    let number = (packet.number as u32).to_be_bytes();
    match packet.kind {
        PacketKind::Syn | PacketKind::SynAck => {
            let mut header = vec![0xc3, 0, 0, 0, 1, to.len() as u8];
            header.extend(to);
            header.push(from.len() as u8);
            header.extend(from);
            // No token; then the length of the rest, in two bytes.
            header.push(0);
            let rest = (packet.ip_len as usize).saturating_sub(bare + header.len() + 2) as u16;
            header.extend((0x4000 | rest.min(0x3fff)).to_be_bytes());
            header.extend(number);
            header
        }
        PacketKind::Data | PacketKind::Ack => {
            let mut header = vec![0x43];
            header.extend(to);
            header.extend(number);
            header
        }
    }
}

/// IPv4 and TCP headers without options, and timestamps with their padding, bytes.
const BARE_HEADERS: u32 = 40;
const STAMPS: u32 = 12;
/// IPv4 and UDP headers, bytes.
const BARE_DATAGRAM: usize = 28;
/// The receiver's window does not limit the simulator's senders: as large as possible (RFC 7323 §2.3).
const WINDOW: u16 = u16::MAX;
const SCALE: u8 = 14;
/// Linux's ephemeral ports (`ip_local_port_range`).
const EPHEMERAL: u16 = 32_768;
const EPHEMERALS: u32 = 28_232;
const FIRST_PORT: u16 = 1024;
/// Ports of the receivers.
const IPERF: u16 = 5201;
const HTTPS: u16 = 443;
