//! The transport of a flow's data: TCP as in Linux, QUIC as in its RFCs, or plain UDP.
use crate::model::Family;
use narrows_core::params;
use narrows_core::params::Packets;
use narrows_core::sender::pacer::SubflowPacing;
use narrows_core::{Bytes, Span};

params! {
    /// TCP's parameters; the defaults are Linux's.
    pub struct TcpParams {
        /// Initial window (RFC 6928), packets.
        pub initial_window: Packets = Packets(10), from Packets(1), to Packets(10_000);
        /// Length of a full-sized packet at the IP layer, with headers.
        pub packet: Bytes = Bytes(1500), from Bytes(100), to Bytes(65_535);
        /// Length of the IPv4 and TCP headers with options, in data packets and in acknowledgments. SACK blocks are added.
        pub header: Bytes = Bytes(52), from Bytes(40), to Bytes(99);
        /// Negotiate classic ECN (RFC 3168).
        pub ecn: bool = false;
        /// Pace as Linux does (`sch_fq`, or TCP's internal pacing), even if the controller sets no rate.
        pub pacing: bool = false;
        /// Minimum of the term that the retransmission timeout adds to the smoothed RTT.
        pub min_rto: Span = Span::ms(200), from Span::ms(1), to Span::s(120);
        /// Full-sized packets per acknowledgment.
        pub ack_every: Packets = Packets(2), from Packets(1), to Packets(64);
        /// How long an acknowledgment waits for a second packet, in ticks of 4 ms; up to an RTT if packets are further apart.
        pub delayed_ack: Span = Span::ms(40), from Span::ZERO, to Span::ms(500);
        /// Packets acknowledged at once: at the start, after a pause longer than a retransmission timeout, and after an old packet.
        pub quick_acks: Packets = Packets(16), from Packets(0), to Packets(1_000_000);
        /// Receive buffer of a connection (Linux: the second value of `tcp_rmem`). Every packet is acknowledged until the window
        /// has grown to fit it. It limits the sender with `receive_limit` only.
        pub receive_buffer: Bytes = Bytes(16 << 20), from Bytes(2304), to Bytes(1 << 30);
        /// Maximum to which the receive buffer grows with the flow (Linux: the third value of `tcp_rmem`). The buffer keeps its
        /// size if this is at most `receive_buffer`.
        pub receive_buffer_max: Bytes = Bytes(16 << 20), from Bytes(2304), to Bytes(1 << 30);
        /// Does the receive window, which grows as the buffer allows, limit the sender, as it does in Linux?
        pub receive_limit: bool = false;
        /// Do the sender's timers expire as Linux's do, in ticks of 4 ms and long ones in coarser steps?
        pub ticks: bool = false;
        /// Selective acknowledgments (RFC 2018). Without them the sender counts duplicates and finds one loss per round trip (RFC 6582).
        pub sack: bool = true;
        /// How losses are found, and how the window comes down.
        pub recovery: Recovery = Recovery::Rack;
        /// Maximum time by which the receiver delays selective acknowledgments to compress them (Linux: `tcp_comp_sack_delay_ns`).
        pub sack_compression: Span = Span::ms(1), from Span::ZERO, to Span::s(1);
        /// Full-sized segments that the sender hands over as one packet (segmentation offload; Linux: the device's `gso_max_segs`).
        /// They stay together all the way to the receiver.
        pub gso_max_segs: Packets = Packets(1), from Packets(1), to Packets(45);
    }
}

params! {
    /// QUIC's parameters.
    pub struct QuicParams {
        /// Initial window (RFC 9002 §7.2), packets.
        pub initial_window: Packets = Packets(10), from Packets(1), to Packets(10_000);
        /// Length of a full-sized packet at the IP layer, with headers.
        pub packet: Bytes = Bytes(1500), from Bytes(200), to Bytes(65_535);
        /// Length of IPv4, UDP and QUIC headers, authentication tag and frame header, in data packets and in acknowledgments.
        pub header: Bytes = Bytes(64), from Bytes(40), to Bytes(199);
        /// Send ECN-capable packets (RFC 9000 §13.4).
        pub ecn: bool = false;
        /// Packets per acknowledgment (RFC 9000 §13.2.2).
        pub ack_every: Packets = Packets(2), from Packets(1), to Packets(64);
        /// Probability that an arriving packet triggers an acknowledgment that is due by `ack_every`. Otherwise the next one may, and
        /// `max_ack_delay` bounds the wait (picoquic in 2022 drew a path for it, and only one of two carried acknowledgments).
        pub ack_chance: f64 = 1.0, from 0.01, to 1.0;
        /// Maximum delay of an acknowledgment (RFC 9000 §18.2).
        pub max_ack_delay: Span = Span::ms(25), from Span::ZERO, to Span::ms(500);
        /// Granularity of the timer that lets paced packets go: all that are due leave together at its next multiple. Zero is exact.
        pub timer_slack: Span = Span::ZERO, from Span::ZERO, to Span::ms(100);
        /// How long a subflow sends before the other one catches up, as time at the pacing rate, at most 40 packets. With zero they take turns
        /// packet by packet.
        pub turn: Span = Span::ZERO, from Span::ZERO, to Span::ms(100);
        /// The last packet in flight may go beyond the window by a part of its length, as in picoquic. Windows in whole packets then have room
        /// for one more.
        pub overshoot: bool = false;
        /// How two subflows share the pacing.
        pub subflow_pacing: SubflowPacing = SubflowPacing::Common;
        /// Packets that a subflow's bucket holds at most, with `subflow_pacing = "own"`.
        pub subflow_burst: Packets = Packets(2), from Packets(1), to Packets(64);
        /// Packet number spaces of two subflows.
        pub packet_numbers: PacketNumbers = PacketNumbers::PerSubflow;
    }
}

params! {
    /// UDP's parameters.
    pub struct UdpParams {
        /// Length of the IPv4 and UDP headers.
        pub header: Bytes = Bytes(28), from Bytes(0), to Bytes(1000);
        /// Source ports: one, or a new one for every packet, as in a flood.
        pub ports: Ports = Ports::One;
        /// ECN codepoint; the source does not respond to marks.
        pub ecn: UdpEcn = UdpEcn::Off;
    }
}

narrows_core::choice! {
    /// Packet number spaces of a connection with two subflows.
    pub enum PacketNumbers {
        /// One for each, with acknowledgments of its own.
        PerSubflow = "per_subflow",
        /// One for both, acknowledged together (`simple_multipath` in draft-huitema-quic-mpath-option, as picoquic had it in 2022). A packet
        /// that was overtaken by a later one does not count towards `ack_every`, and neither it nor a CE mark is acknowledged at once.
        Common = "common",
    }
}

narrows_core::choice! {
    /// How a TCP sender recovers from losses.
    pub enum Recovery {
        /// As Linux does today: RACK-TLP (RFC 8985), and proportional rate reduction (RFC 9937).
        Rack = "rack",
        /// As Linux 2.6 did: forward acknowledgments (FACK) without loss probes, and rate halving. Without `sack`, duplicates are counted.
        Fack = "fack",
    }
}

narrows_core::choice! {
    /// ECN codepoint of datagrams.
    pub enum UdpEcn {
        /// Not ECN-capable.
        Off = "off",
        /// ECT(0): classic ECN.
        Ect0 = "ect0",
        /// ECT(1): L4S.
        Ect1 = "ect1",
    }
}

narrows_core::choice! {
    /// Source ports of datagrams.
    pub enum Ports {
        /// All packets have the same one.
        One = "one",
        /// Every packet has a new one.
        EverNew = "ever_new",
    }
}

narrows_core::registry! {
    /// The transport of a flow's data.
    pub enum Transport for "transport" {
        "tcp", Tcp(TcpParams), "Reliable, congestion controlled, with Linux's loss recovery.";
        "quic", Quic(QuicParams), "Reliable, congestion controlled, with RFC 9002's loss recovery; one subflow or two.";
        "udp", Udp(UdpParams), "Datagrams at the application's rate.";
    }
}

impl Transport {
    /// Whether it uses a congestion controller.
    pub const fn is_controlled(&self) -> bool {
        matches!(self, Transport::Tcp(_) | Transport::Quic(_))
    }

    /// This transport with the headers of its packets over this family; the parameters give those over IPv4.
    pub(crate) fn over(&self, family: Family) -> Transport {
        let mut carrier = self.clone();
        let header = match &mut carrier {
            Transport::Tcp(tcp) => &mut tcp.header,
            Transport::Quic(quic) => &mut quic.header,
            Transport::Udp(udp) => &mut udp.header,
        };
        *header += family.extra();
        carrier
    }

    /// Maximum number of segments that a sender hands over as one packet.
    pub const fn gso_max_segs(&self) -> u32 {
        match self {
            Transport::Tcp(tcp) => tcp.gso_max_segs.0,
            Transport::Quic(_) | Transport::Udp(_) => 1,
        }
    }

    /// Whether the receive window limits the sender.
    pub const fn receive_limit(&self) -> bool {
        match self {
            Transport::Tcp(tcp) => tcp.receive_limit,
            Transport::Quic(_) | Transport::Udp(_) => false,
        }
    }

    /// Headers of a packet, from the IP layer up.
    pub const fn header(&self) -> Bytes {
        match self {
            Transport::Tcp(tcp) => tcp.header,
            Transport::Quic(quic) => quic.header,
            Transport::Udp(udp) => udp.header,
        }
    }
}
