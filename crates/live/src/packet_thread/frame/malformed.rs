//! Errors in packets.
use std::fmt;

/// The reason why a packet is invalid. Lengths are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Malformed {
    /// The packet ends within this part.
    Truncated {
        /// `IPv4 header`, `IPv6 packet`, `TCP header`.
        what: &'static str,
        /// Minimum length of the part.
        need: usize,
        /// Length that is present.
        have: usize,
    },
    /// Neither IPv4 nor IPv6.
    Version(u8),
    /// A header's length field is below the minimum.
    HeaderLength {
        /// `IPv4`, `TCP`.
        what: &'static str,
        /// The length in the header.
        got: usize,
        /// The minimum.
        least: usize,
    },
    /// Too many IPv6 extension headers; the number that is allowed.
    Extensions(usize),
    /// The offload header asks for a segmentation that is unknown or does not fit the packet.
    Segmentation {
        /// `gso_type`.
        kind: u8,
        /// The packet's kind.
        packet: &'static str,
    },
    /// The offload header asks for segments without payload.
    SegmentSize,
    /// The checksum's position in the offload header is not that of the packet's checksum.
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
