//! Cuts a super-packet into segments, as a network card would.
//!
//! Each segment has a copy of the headers and the next part of the payload. Only lengths, IPv4's identification and checksum, and
//! TCP's sequence number, flags and checksum differ between segments. Sums over the other fields are computed once.
//!
//! `hdr_len` is not used, because the kernel writes the length of its first contiguous part there. If the super-packet's checksum
//! is partial, so are the segments', derived from the field's value as the kernel does. They are therefore right also after a
//! routing header, where the pseudo-header uses the last address of the route (RFC 8200 §8.1).
//!
//! Deviates: a full checksum uses the destination in the IPv6 header. Only the first segment has CWR, as in RFC 3168, because no
//! packet says whether its connection uses that bit as a counter (accurate ECN, RFC 9768).
use super::checksum::{Sum, check_place};
use super::layout::{Layout, UDP_HEADER, V6_HEADER, Version, chunk, double, put, word};
use super::{Malformed, Offload, flag, protocol};

/// Cuts a super-packet into its segments.
#[derive(Debug)]
pub struct Segments<'a> {
    packet: &'a [u8],
    offload: Offload,
    /// `None` for an ordinary packet.
    cut: Option<Cut>,
    /// Offset of the next segment's payload, if there is one.
    at: Option<usize>,
}

/// The constants of cutting a super-packet.
#[derive(Clone, Copy, Debug)]
struct Cut {
    version: Version,
    transport: Transport,
    /// Offset of the transport's header.
    start: usize,
    /// Length of all headers, bytes; the payload follows.
    headers: usize,
    /// Offset of the payload's end.
    end: usize,
    /// Payload of a segment, bytes.
    size: usize,
    /// Sum of the IPv4 header without length, identification and checksum.
    network_sum: Sum,
    /// Sum of the pseudo-header without the length.
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
    /// Offset of the checksum in the transport's header.
    const fn checksum_at(self) -> usize {
        match self {
            Transport::Tcp => 16,
            Transport::Udp => 6,
        }
    }
}

/// How the transport's checksum is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Checksum {
    /// It stays partial: a later device completes it.
    Partial,
    Full,
    /// There is none: UDP over IPv4 allows that (RFC 768).
    None,
}

impl<'a> Segments<'a> {
    /// An ordinary packet is its own only segment.
    ///
    /// # Errors
    /// [`Malformed`] if the offload header and the packet contradict each other.
    pub fn new(offload: Offload, packet: &'a [u8]) -> Result<Segments<'a>, Malformed> {
        check_place(offload, packet.len())?;
        let cut = if offload.is_super() { Some(Cut::new(offload, packet)?) } else { None };
        Ok(Segments { packet, offload, cut, at: Some(cut.map_or(0, |cut| cut.headers)) })
    }

    /// The number of segments that are left.
    pub fn left(&self) -> usize {
        match (self.at, self.cut) {
            (None, _) => 0,
            (Some(_), None) => 1,
            (Some(at), Some(cut)) => (cut.end - at).div_ceil(cut.size).max(1),
        }
    }

    /// Writes the next segment into `out`, replacing its contents, and returns the segment's offload header.
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
                // At most 65 535, because an IP packet's length has 16 bits.
                Checksum::Partial => Sum::default().word(field).less(length as u16),
                _ => Sum::default().bytes(&packet[layout.addresses()]).word(u16::from(layout.protocol)),
            },
            checksum,
            id: word(packet, 4),
            seq: if transport == Transport::Tcp { double(packet, start + 4) } else { 0 },
        })
    }

    /// Changes the super-packet's headers into those of the segment whose payload begins at `at`.
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
                // FIN and PSH belong to the last segment, CWR to the first.
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

/// The transport, if the packet is of the kind in the offload header.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_thread::frame::Header;
    use crate::packet_thread::frame::samples::{Fill, Sample, any_frame, any_tcp};
    use proptest::prelude::*;

    /// All segments with their offload headers.
    fn cut(offload: Offload, packet: &[u8]) -> Vec<(Offload, Vec<u8>)> {
        let mut segments = Segments::new(offload, packet).unwrap();
        let mut all = Vec::new();
        let mut out = vec![0xee; 3];
        while segments.left() > 0 {
            let left = segments.left();
            let offload = segments.next_into(&mut out).unwrap();
            assert_eq!(segments.left(), left - 1);
            all.push((offload, out.clone()));
        }
        assert_eq!(segments.next_into(&mut out), None);
        all
    }

    /// The packets that a host without offloads would have sent.
    fn by_hand(sample: &Sample, fill: Fill, size: usize) -> Vec<(Offload, Vec<u8>)> {
        let count = sample.payload.len().div_ceil(size).max(1);
        let piece = |index: usize| {
            let (from, to) = (index * size, sample.payload.len().min((index + 1) * size));
            let mut piece = Sample { payload: sample.payload[from..to].to_vec(), ..sample.clone() };
            piece.id = sample.id.wrapping_add(index as u16);
            piece.seq = sample.seq.wrapping_add(from as u32);
            if index > 0 {
                piece.flags &= !flag::CWR;
            }
            if index + 1 < count {
                piece.flags &= !(flag::FIN | flag::PSH);
            }
            (piece.offload(fill), piece.bytes(fill))
        };
        (0..count).map(piece).collect()
    }

    #[test]
    fn three_segments_of_ipv4() {
        let flags = flag::ACK | flag::PSH | flag::FIN | flag::CWR;
        let sample = Sample { id: 0xffff, seq: u32::MAX - 100, flags, ..Sample::v4(2500) }.stamped(1, 2);
        let offload = Offload { gso_type: Offload::GSO_TCPV4 | Offload::GSO_ECN, ..sample.gso(Fill::Partial, 1000) };
        let segments = cut(offload, &sample.bytes(Fill::Partial));
        assert_eq!(segments.iter().map(|(_, packet)| packet.len()).collect::<Vec<_>>(), [1052, 1052, 552]);
        let field = |at: usize| segments.iter().map(|(_, packet)| word(packet, at)).collect::<Vec<_>>();
        assert_eq!(field(2), [1052, 1052, 552]);
        assert_eq!(field(4), [0xffff, 0, 1]);
        assert_eq!(field(32), [0x8090, 0x8010, 0x8019]);
        let seqs = segments.iter().map(|(_, packet)| Header::read(packet).unwrap().tcp.unwrap().seq);
        assert_eq!(seqs.collect::<Vec<_>>(), [u32::MAX - 100, 899, 1899]);
        // 10.0.0.1, 10.0.0.2, protocol 6 and the length: 0a00 + 0001 + 0a00 + 0002 + 0006 + 0408 and + 0214.
        assert_eq!(field(36), [0x1811, 0x1811, 0x161d]);
        let partial = Offload { flags: 1, csum_start: 20, csum_offset: 16, ..Offload::default() };
        assert!(segments.iter().all(|(offload, _)| *offload == partial));
    }

    #[test]
    fn a_buffer_that_is_large_enough_is_kept() {
        let sample = Sample::v4(60_000);
        let packet = sample.bytes(Fill::Partial);
        let mut segments = Segments::new(sample.gso(Fill::Partial, 1460), &packet).unwrap();
        let mut out = Vec::with_capacity(1500);
        let (place, room) = (out.as_ptr(), out.capacity());
        while segments.next_into(&mut out).is_some() {
            assert_eq!((out.as_ptr(), out.capacity()), (place, room));
        }
    }

    #[test]
    fn an_ordinary_packet_passes_as_it_is() {
        let sample = Sample::v6(100);
        let offload = Offload { hdr_len: 7, ..sample.offload(Fill::Partial) };
        let packet = sample.bytes(Fill::Partial);
        assert_eq!(cut(offload, &packet), [(offload, packet)]);
        // Any content: only super-packets are parsed.
        assert_eq!(cut(Offload::default(), &[]), [(Offload::default(), vec![])]);
        assert_eq!(cut(Offload::default(), b"noise"), [(Offload::default(), b"noise".to_vec())]);
    }

    #[test]
    fn udp_segments_are_datagrams() {
        for (sample, id) in [(Sample::v4(250), 4), (Sample::v6(250), 4)] {
            let sample = Sample { udp: true, ..sample };
            for fill in [Fill::Partial, Fill::Full] {
                let segments = cut(sample.gso(fill, 100), &sample.bytes(fill));
                assert_eq!(segments, by_hand(&sample, fill, 100));
                let lengths = segments.iter().map(|(_, packet)| word(packet, sample.transport() + id));
                assert_eq!(lengths.collect::<Vec<_>>(), [108, 108, 58]);
            }
        }
    }

    #[test]
    fn udp_without_a_checksum_stays_without() {
        let sample = Sample { udp: true, ..Sample::v4(250) };
        let mut packet = sample.bytes(Fill::Full);
        packet[26..28].fill(0);
        assert!(cut(sample.gso(Fill::Full, 100), &packet).iter().all(|(_, segment)| segment[26..28] == [0, 0]));
    }

    #[test]
    fn a_routing_headers_destination_stays_in_the_sum() {
        // The field's sum uses another last address than the header's; here they differ by 5.
        let mut sample = Sample::v6(2000);
        sample.extensions =
            vec![(protocol::ROUTING, vec![0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5])];
        let mut packet = sample.bytes(Fill::Partial);
        let at = sample.transport() + 16;
        let sum = word(&packet, at) + 5;
        put(&mut packet, at, sum);
        for ((_, segment), (_, plain)) in
            cut(sample.gso(Fill::Partial, 1500), &packet).iter().zip(by_hand(&sample, Fill::Partial, 1500))
        {
            assert_eq!(word(segment, at), word(&plain, at) + 5);
        }
    }

    #[test]
    fn padding_belongs_to_no_segment() {
        let sample = Sample::v4(150);
        let mut packet = sample.bytes(Fill::Partial);
        packet.extend([9; 30]);
        assert_eq!(cut(sample.gso(Fill::Partial, 100), &packet), by_hand(&sample, Fill::Partial, 100));
    }

    #[test]
    fn contradictions_are_named() {
        let (v4, v6) = (Sample::v4(100), Sample::v6(100));
        let udp = Sample { udp: true, ..Sample::v4(100) };
        let good = v4.gso(Fill::Partial, 50);
        let cases = [
            (good, v6.bytes(Fill::Partial), "segmentation of type 0x01 for TCP over IPv6"),
            (good, udp.bytes(Fill::Partial), "segmentation of type 0x01 for UDP"),
            (v6.gso(Fill::Partial, 50), v4.bytes(Fill::Partial), "segmentation of type 0x04 for TCP over IPv4"),
            (Offload { gso_type: 3, ..good }, v4.bytes(Fill::Partial), "segmentation of type 0x03 for TCP over IPv4"),
            (Offload { gso_size: 0, ..good }, v4.bytes(Fill::Partial), "segmentation into segments of 0 bytes"),
            (
                Offload { csum_start: 24, ..good },
                v4.bytes(Fill::Partial),
                "a checksum from byte 24 on, at 16 in there, which is not where this packet has one",
            ),
            (good, v4.bytes(Fill::Partial)[..139].to_vec(), "IPv4 packet cut short: 139 of 140 bytes"),
            (good, vec![], "a checksum from byte 20 on, at 16 in there, which is not where this packet has one"),
        ];
        for (offload, packet, message) in cases {
            assert_eq!(Segments::new(offload, &packet).unwrap_err().to_string(), message);
        }
        let mut fragment = v4.bytes(Fill::Partial);
        fragment[6] = 0x20;
        let error = Segments::new(good, &fragment).unwrap_err();
        assert_eq!(error.to_string(), "segmentation of type 0x01 for a fragment");
    }

    proptest! {
        #[test]
        fn segments_are_what_a_host_without_offloads_sends(
            sample in any_tcp(3000), size in 1..1500u16, partial: bool, ecn: bool, hint: u16,
        ) {
            let fill = if partial { Fill::Partial } else { Fill::Full };
            let mut offload = Offload { hdr_len: hint, ..sample.gso(fill, size) };
            offload.gso_type |= if ecn { Offload::GSO_ECN } else { 0 };
            let segments = cut(offload, &sample.bytes(fill));
            prop_assert_eq!(&segments, &by_hand(&sample, fill, size.into()));
            for (mut offload, mut packet) in segments {
                crate::packet_thread::frame::complete_checksum(&mut offload, &mut packet).unwrap();
                prop_assert!(sample.verifies(&packet));
            }
        }

        #[test]
        fn nothing_panics((offload, frame) in any_frame()) {
            let mut out = Vec::new();
            if let Ok(mut segments) = Segments::new(offload, &frame) {
                let left = segments.left();
                let mut count = 0;
                while segments.next_into(&mut out).is_some() {
                    count += 1;
                    prop_assert!(out.len() <= frame.len());
                }
                prop_assert_eq!(count, left);
            }
        }
    }
}
