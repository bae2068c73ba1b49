//! The metadata of packets. An algorithm never sees a payload.
use crate::rate::Bytes;
use crate::time::Time;

/// A flow as the driver numbers it: for records and observers, not for classification (that is `hash`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FlowId(pub u32);

/// A host as the driver numbers it; stands for an IP address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct HostId(pub u16);

/// What a router can read from a TCP header about an acknowledgment, for ACK filters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Role {
    /// Data, a datagram or a handshake packet: no later packet can replace it.
    #[default]
    Other,
    /// An acknowledgment without payload.
    Ack,
    /// The same with selective acknowledgments (RFC 2018).
    AckSack,
    /// An acknowledgment without payload that echoes congestion experienced (RFC 3168 §6.1).
    AckEcho,
    /// The same with selective acknowledgments.
    AckSackEcho,
}

impl Role {
    /// The role of an acknowledgment without payload.
    pub const fn ack(sack: bool, echo: bool) -> Role {
        match (sack, echo) {
            (false, false) => Role::Ack,
            (true, false) => Role::AckSack,
            (false, true) => Role::AckEcho,
            (true, true) => Role::AckSackEcho,
        }
    }

    /// Whether it is an acknowledgment without payload.
    pub const fn is_ack(self) -> bool {
        !matches!(self, Role::Other)
    }

    /// Whether there are selective acknowledgments in it.
    pub const fn has_sack(self) -> bool {
        matches!(self, Role::AckSack | Role::AckSackEcho)
    }

    /// Whether it echoes congestion experienced.
    pub const fn echoes(self) -> bool {
        matches!(self, Role::AckEcho | Role::AckSackEcho)
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// Not-ECT: the transport does not support ECN.
    #[default]
    NotEct,
    /// ECT(1): L4S (RFC 9331).
    Ect1,
    /// ECT(0): classic ECN.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// The two bits of the IP header; others are ignored.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            3 => Ecn::Ce,
            _ => Ecn::NotEct,
        }
    }

    /// Whether a queue may mark this packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// The differentiated services code point, 0–63.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Dscp(pub u8);

/// A packet's metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketMeta {
    /// Time at which it entered its present queue; the driver sets it before `enqueue`.
    pub arrived: Time,
    /// While it waits: the earliest departure that the sender asks for (Linux: `skb->tstamp`); the epoch means at once.
    /// Once dequeued: the time of the dequeue.
    pub depart: Time,
    /// Hash of the flow's 5-tuple (for IPv6, of the flow label).
    pub hash: u32,
    /// The flow's number with the driver.
    pub flow: FlowId,
    /// Length on this link, framing overhead included, bytes.
    pub len: u32,
    /// For an acknowledgment, the next expected byte or segment (modulo 2³²).
    pub ack: u32,
    /// The host that sent it.
    pub src: HostId,
    /// The host that it is for.
    pub dst: HostId,
    /// ECN field; a queue marks in place.
    pub ecn: Ecn,
    /// Differentiated services code point.
    pub dscp: Dscp,
    /// Changes its value once per round trip: QUIC's spin bit (RFC 9000 §17.4), or what a router derives from TCP's timestamps
    /// (RFC 7323).
    pub spin: bool,
    /// Its role as an acknowledgment.
    pub role: Role,
}

impl PacketMeta {
    /// Length on this link, framing overhead included.
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.len as u64)
    }
}
