//! Offsets of a packet's headers and payload.
use super::{Malformed, protocol};
use std::ops::Range;

/// The offsets that the network layer's headers give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) version: Version,
    /// Offset of the transport's header, after options or extension headers.
    pub(super) transport: usize,
    /// End of the packet according to IP; the rest of the frame is padding.
    pub(super) end: usize,
    /// The transport's protocol number.
    pub(super) protocol: u8,
    /// A fragment: the bytes after the IP header need not be a transport header.
    pub(super) fragment: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    V4,
    V6,
}

impl Layout {
    pub(super) fn read(packet: &[u8]) -> Result<Layout, Malformed> {
        match packet.first().map(|first| first >> 4) {
            Some(4) => Layout::read_v4(packet),
            Some(6) => Layout::read_v6(packet),
            Some(version) => Err(Malformed::Version(version)),
            None => Err(Malformed::Truncated { what: "IP header", need: V4_HEADER, have: 0 }),
        }
    }

    /// RFC 791 §3.1.
    fn read_v4(packet: &[u8]) -> Result<Layout, Malformed> {
        let header: &[u8; V4_HEADER] = chunk(packet, "IPv4 header")?;
        let transport = usize::from(header[0] & 0xf) * 4;
        if transport < V4_HEADER {
            return Err(Malformed::HeaderLength { what: "IPv4", got: transport, least: V4_HEADER });
        }
        let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
        fits("IPv4 packet", end, packet.len())?;
        fits("IPv4 header", transport, end)?;
        // A fragment has an offset or "more fragments" set; the mask omits the reserved flag and "don't fragment".
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        Ok(Layout { version: Version::V4, transport, end, protocol: header[9], fragment })
    }

    /// RFC 8200 §3, §4.
    fn read_v6(packet: &[u8]) -> Result<Layout, Malformed> {
        let header: &[u8; V6_HEADER] = chunk(packet, "IPv6 header")?;
        let end = V6_HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
        fits("IPv6 packet", end, packet.len())?;
        let (mut transport, mut next) = (V6_HEADER, header[6]);
        for _ in 0..=EXTENSIONS {
            let unit = match next {
                protocol::HOP_BY_HOP
                | protocol::ROUTING
                | protocol::DESTINATION
                | protocol::MOBILITY
                | protocol::HIP
                | protocol::SHIM6 => 8,
                // Counted in units of 4 bytes, without the first two units (RFC 4302 §2.2).
                protocol::AUTHENTICATION => 4,
                protocol::FRAGMENT => 0,
                _ => return Ok(Layout { version: Version::V6, transport, end, protocol: next, fragment: false }),
            };
            let extension: &[u8; 8] = chunk(&packet[transport..end], "IPv6 extension header")?;
            let length = 8 + usize::from(extension[1]) * unit;
            fits("IPv6 extension header", length, end - transport)?;
            if next == protocol::FRAGMENT {
                // A fragment header on a whole packet does not make it a fragment (RFC 6946).
                let fragment = u16::from_be_bytes([extension[2], extension[3]]) & 0xfff9 != 0;
                if fragment {
                    let transport = transport + length;
                    return Ok(Layout { version: Version::V6, transport, end, protocol: extension[0], fragment });
                }
            }
            (transport, next) = (transport + length, extension[0]);
        }
        Err(Malformed::Extensions(EXTENSIONS))
    }

    /// The range of the addresses.
    pub(super) const fn addresses(&self) -> Range<usize> {
        match self.version {
            Version::V4 => 12..20,
            Version::V6 => 8..40,
        }
    }

    /// Length of the TCP header at `transport`, with options. `packet` must be the one from which the layout was read.
    pub(super) fn tcp_header(&self, packet: &[u8]) -> Result<usize, Malformed> {
        let segment = &packet[self.transport..self.end];
        let header: &[u8; TCP_HEADER] = chunk(segment, "TCP header")?;
        let length = usize::from(header[12] >> 4) * 4;
        if length < TCP_HEADER {
            return Err(Malformed::HeaderLength { what: "TCP", got: length, least: TCP_HEADER });
        }
        fits("TCP header", length, segment.len())?;
        Ok(length)
    }
}

/// The first `N` bytes.
pub(super) fn chunk<'a, const N: usize>(bytes: &'a [u8], what: &'static str) -> Result<&'a [u8; N], Malformed> {
    bytes.first_chunk().ok_or(Malformed::Truncated { what, need: N, have: bytes.len() })
}

fn fits(what: &'static str, need: usize, have: usize) -> Result<(), Malformed> {
    if need > have { Err(Malformed::Truncated { what, need, have }) } else { Ok(()) }
}

/// The 16 bits at offset `at`, which the caller has checked.
pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The 32 bits at offset `at`.
pub(super) fn double(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Writes 16 bits.
pub(super) fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// Header lengths without options, bytes.
pub(super) const V4_HEADER: usize = 20;
pub(super) const V6_HEADER: usize = 40;
pub(super) const TCP_HEADER: usize = 20;
pub(super) const UDP_HEADER: usize = 8;
/// Maximum number of extension headers that are read, so that a packet full of them does not cost thousands of steps.
const EXTENSIONS: usize = 16;
