//! A super-packet's segments, as the network card would have sent them.
//!
//! A segment is the headers once more and the next piece of the payload; of the headers only lengths, IPv4's identification
//! and checksum, TCP's sequence number, flags and checksum change. Sums over what stays the same are taken once.
//!
//! `hdr_len` is not used: the kernel writes there what lies in one piece. Where the header's checksum is partial, the segments'
//! are, too, made from the field's own value as the kernel does; so they are right behind a routing header, whose last address
//! is the pseudo-header's (RFC 8200 §8.1). Deviates: a full checksum takes the destination in the IPv6 header.
use super::checksum::{Sum, check_place};
use super::layout::{Layout, UDP_HEADER, V6_HEADER, Version, chunk, double, put, word};
use super::{Malformed, Offload, flag, protocol};

/// Cuts a packet into those that it stands for.
#[derive(Debug)]
pub struct Segments<'a> {
    packet: &'a [u8],
    offload: Offload,
    /// Nothing for an ordinary packet.
    cut: Option<Cut>,
    /// Where the next segment's payload begins, if there is one.
    at: Option<usize>,
}

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    version: Version,
    transport: Transport,
    /// Where the transport's header begins.
    start: usize,
    /// Length of all headers: where the payload begins.
    headers: usize,
    /// Where the payload ends.
    end: usize,
    /// Payload of a segment.
    size: usize,
    /// Of the IPv4 header without length, identification and checksum.
    network_sum: Sum,
    /// Of the pseudo-header without the length.
    pseudo_sum: Sum,
    checksum: Checksum,
    /// IPv4's identification.
    id: u16,
    /// TCP's sequence number.
    seq: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// Where the checksum lies in the header.
    const fn checksum_at(self) -> usize {
        match self {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }
}

/// Who computes the transport's checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Checksum {
    /// Somebody after us; the field holds the pseudo-header's sum.
    Partial,
    Full,
    /// Nobody: UDP over IPv4 without one (RFC 768).
    None,
}

impl<'a> Segments<'a> {
    /// An ordinary packet is one segment, and passes as it is.
    ///
    /// # Errors
    /// [`Malformed`] when the offload header and the packet contradict each other.
    pub fn new(offload: Offload, packet: &'a [u8]) -> Result<Segments<'a>, Malformed> {
        check_place(offload, packet.len())?;
        let cut = if offload.is_super() { Some(Cut::new(offload, packet)?) } else { None };
        Ok(Segments { packet, offload, cut, at: Some(cut.map_or(0, |cut| cut.headers)) })
    }

    /// How many are to come.
    pub fn left(&self) -> usize {
        match (self.at, self.cut) {
            (None, _) => 0,
            (Some(_), None) => 1,
            (Some(at), Some(cut)) => (cut.end - at).div_ceil(cut.size).max(1),
        }
    }

    /// Writes the next packet into `out`, whose former content is cleared, and returns its own offload header.
    pub fn next_into(&mut self, out: &mut Vec<u8>) -> Option<Offload> {
        let at = self.at?;
        out.clear();
        let Some(cut) = &self.cut else {
            self.at = None;
            out.extend_from_slice(self.packet);
            return Some(self.offload);
        };
        let to = cut.end.min(at + cut.size);
        out.extend_from_slice(&self.packet[..cut.headers]);
        out.extend_from_slice(&self.packet[at..to]);
        cut.write_headers(at, out);
        self.at = (to < cut.end).then_some(to);
        let partial = cut.checksum == Checksum::Partial;
        Some(if partial { cut.partial_offload() } else { Offload::default() })
    }
}

impl Cut {
    fn new(offload: Offload, packet: &[u8]) -> Result<Cut, Malformed> {
        let layout = Layout::read(packet)?;
        let transport = transport_of(offload.gso_type, &layout)?;
        if offload.gso_size == 0 {
            return Err(Malformed::SegmentSize);
        }
        let start = layout.transport;
        let headers = start
            + match transport {
                Transport::Tcp => layout.tcp_header(packet)?,
                Transport::Udp => chunk::<UDP_HEADER>(&packet[start..layout.end], "UDP header")?.len(),
            };
        let at = start + transport.checksum_at();
        let field = word(packet, at);
        let checksum = if offload.needs_checksum() {
            let (start, offset) = (usize::from(offload.csum_start), usize::from(offload.csum_offset));
            if (start, offset) != (layout.transport, transport.checksum_at()) {
                return Err(Malformed::ChecksumPlace { start, offset });
            }
            Checksum::Partial
        } else if transport == Transport::Udp && layout.version == Version::V4 && field == 0 {
            Checksum::None
        } else {
            Checksum::Full
        };
        let v4 = layout.version == Version::V4;
        let length = layout.end - start;
        Ok(Cut {
            version: layout.version,
            transport,
            start,
            headers,
            end: layout.end,
            size: usize::from(offload.gso_size),
            network_sum: if v4 {
                Sum::default().bytes(&packet[..2]).bytes(&packet[6..10]).bytes(&packet[12..start])
            } else {
                Sum::default()
            },
            pseudo_sum: match checksum {
                // At most 65 535: an IP packet's length has 16 bits.
                Checksum::Partial => Sum::default().word(field).less(length as u16),
                _ => Sum::default().bytes(&packet[layout.addresses()]).word(u16::from(layout.protocol)),
            },
            checksum,
            id: word(packet, 4),
            seq: if transport == Transport::Tcp { double(packet, start + 4) } else { 0 },
        })
    }

    /// Makes the super-packet's headers those of the segment whose payload begins at `at`.
    fn write_headers(&self, at: usize, segment: &mut [u8]) {
        let length = segment.len();
        match self.version {
            Version::V4 => {
                let id = self.id.wrapping_add(((at - self.headers) / self.size) as u16);
                let checksum = self.network_sum.length(length).word(id).checksum();
                put(segment, 2, length as u16);
                put(segment, 4, id);
                put(segment, 10, checksum);
            }
            Version::V6 => put(segment, 4, (length - V6_HEADER) as u16),
        }
        let (first, last) = (at == self.headers, at + (length - self.headers) == self.end);
        let transport = &mut segment[self.start..];
        let length = transport.len();
        match self.transport {
            Transport::Tcp => {
                let seq = self.seq.wrapping_add((at - self.headers) as u32);
                transport[4..8].copy_from_slice(&seq.to_be_bytes());
                // What says something of the end belongs to the last, what says something of the window to the first.
                transport[13] &= !(if last { 0 } else { flag::FIN | flag::PSH } | if first { 0 } else { flag::CWR });
            }
            Transport::Udp => put(transport, 4, length as u16),
        }
        let field = self.transport.checksum_at();
        let pseudo = self.pseudo_sum.length(length);
        match self.checksum {
            Checksum::Partial => put(transport, field, pseudo.folded()),
            Checksum::Full => {
                put(transport, field, 0);
                let checksum = match pseudo.bytes(transport).checksum() {
                    0 if self.transport == Transport::Udp => 0xffff,
                    other => other,
                };
                put(transport, field, checksum);
            }
            Checksum::None => {}
        }
    }

    fn partial_offload(&self) -> Offload {
        Offload {
            flags: Offload::NEEDS_CSUM,
            csum_start: self.start as u16,
            csum_offset: self.transport.checksum_at() as u16,
            ..Offload::default()
        }
    }
}

/// What is to be segmented, if the packet is of the kind that the offload header says.
fn transport_of(kind: u8, layout: &Layout) -> Result<Transport, Malformed> {
    match (kind & !Offload::GSO_ECN, layout.version, layout.protocol) {
        _ if layout.fragment => Err(Malformed::Segmentation { kind, packet: "a fragment" }),
        (Offload::GSO_TCPV4, Version::V4, protocol::TCP) => Ok(Transport::Tcp),
        (Offload::GSO_TCPV6, Version::V6, protocol::TCP) => Ok(Transport::Tcp),
        (Offload::GSO_UDP_L4, _, protocol::UDP) => Ok(Transport::Udp),
        (_, Version::V4, protocol::TCP) => Err(Malformed::Segmentation { kind, packet: "TCP over IPv4" }),
        (_, Version::V6, protocol::TCP) => Err(Malformed::Segmentation { kind, packet: "TCP over IPv6" }),
        (_, _, protocol::UDP) => Err(Malformed::Segmentation { kind, packet: "UDP" }),
        _ => Err(Malformed::Segmentation { kind, packet: "neither TCP nor UDP" }),
    }
}
