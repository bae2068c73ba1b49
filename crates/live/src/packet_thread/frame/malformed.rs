//! What can be wrong with a packet.
use std::fmt;

/// Why a packet cannot be what it says it is. Lengths are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Malformed {
    /// It ends before this part of it does.
    Truncated {
        /// `IPv4 header`, `IPv6 packet`, `TCP header`.
        what: &'static str,
        /// How long the part is at least.
        need: usize,
        /// How much of it is there.
        have: usize,
    },
    /// Neither IPv4 nor IPv6.
    Version(u8),
    /// A header says that it is shorter than it can be.
    HeaderLength {
        /// `IPv4`, `TCP`.
        what: &'static str,
        /// What it says.
        got: usize,
        /// The least that it can be.
        least: usize,
    },
    /// More IPv6 extension headers than anybody sends; how many are read.
    Extensions(usize),
    /// The offload header asks for a segmentation that does not exist, or not for this packet.
    Segmentation {
        /// `gso_type`.
        kind: u8,
        /// What the packet is.
        packet: &'static str,
    },
    /// The offload header asks for segments without payload.
    SegmentSize,
    /// The offload header's place of the checksum is not where the packet has one.
    ChecksumPlace {
        /// `csum_start`.
        start: usize,
        /// `csum_offset`.
        offset: usize,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Malformed::Truncated { what, need, have } => write!(f, "{what} cut short: {have} of {need} bytes"),
            Malformed::Version(version) => write!(f, "IP version {version}"),
            Malformed::HeaderLength { what, got, least } => {
                write!(f, "{what} header of {got} bytes, where {least} is the least")
            }
            Malformed::Extensions(most) => write!(f, "more than {most} IPv6 extension headers"),
            Malformed::Segmentation { kind, packet } => write!(f, "segmentation of type {kind:#04x} for {packet}"),
            Malformed::SegmentSize => f.write_str("segmentation into segments of 0 bytes"),
            Malformed::ChecksumPlace { start, offset } => {
                write!(
                    f,
                    "a checksum from byte {start} on, at {offset} in there, which is not where this packet has one"
                )
            }
        }
    }
}

impl std::error::Error for Malformed {}
