//! Joins consecutive packets of one flow, as the receiving kernel's GRO would.
//!
//! Packets are joined if cutting the result would give the same packets again: equal headers except for lengths, IPv4's
//! identification, TCP's sequence number and checksums; contiguous payloads; and equal lengths, except that the last packet may
//! be shorter. So the receiver gets the ECN fields, timestamps and acknowledgments that arrived. Only packets with a partial
//! checksum are joined. A full checksum would have to be verified first.
use super::checksum::Sum;
use super::layout::{Layout, V6_HEADER, Version, double, put, word};
use super::{Offload, flag, protocol};

/// Joins consecutive packets of one TCP flow for one write to a TUN device.
#[derive(Clone, Debug)]
pub struct Join {
    /// The first packet's headers.
    headers: [u8; MAX_HEADERS],
    /// Offset of the TCP header.
    start: usize,
    /// Length of all headers, bytes.
    length: usize,
    version: Version,
    /// The first packet's offload header.
    offload: Offload,
    /// Payload of the first packet, bytes.
    size: usize,
    /// Total payload so far, bytes.
    payload: usize,
    packets: u16,
    /// The PSH flag of the last packet.
    push: u8,
    /// The last packet was shorter or had PSH, so no other may follow.
    closed: bool,
    /// How IPv4's identification changes from packet to packet.
    ids: Ids,
    /// Sum of the IPv4 header without length, identification and checksum.
    network_sum: Sum,
    /// Sum of the pseudo-header without the length.
    pseudo_sum: Sum,
}

/// How the identifications of consecutive packets differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ids {
    /// There is only one packet.
    Unknown,
    /// By one.
    Count,
    /// Not at all, which is allowed in packets that are never fragmented (RFC 6864 §4.1).
    Same,
}

/// The properties of a single packet that joining needs.
struct Candidate {
    version: Version,
    start: usize,
    length: usize,
    payload: usize,
}

impl Join {
    /// Starts with this packet; `None` if no packet could be joined to it.
    pub fn start(offload: Offload, first: &[u8]) -> Option<Join> {
        let Candidate { version, start, length, payload } = Candidate::read(offload, first)?;
        if first[start + 13] & flag::PSH != 0 {
            return None;
        }
        let mut headers = [0; MAX_HEADERS];
        headers[..length].copy_from_slice(&first[..length]);
        let network_sum = network_sum(version, &first[..start]);
        let join = Join {
            headers,
            start,
            length,
            version,
            offload,
            size: payload,
            payload,
            packets: 1,
            push: 0,
            closed: false,
            ids: Ids::Unknown,
            network_sum,
            pseudo_sum: Sum::default().word(word(first, start + 16)).less((first.len() - start) as u16),
        };
        (version == Version::V6 || join.checksum_holds(first)).then_some(join)
    }

    /// Whether this packet can be joined. If so, its payload, which begins at [`payload_at`](Join::payload_at), has to be appended.
    pub fn takes(&mut self, offload: Offload, next: &[u8]) -> bool {
        if self.closed || self.packets == MAX_PACKETS || offload != self.offload {
            return false;
        }
        let Some(Candidate { version, start, length, payload }) = Candidate::read(offload, next) else { return false };
        if (version, start, length) != (self.version, self.start, self.length)
            || payload > self.size
            || length + self.payload + payload > MAX_BYTES
            || !self.same_headers(next)
        {
            return false;
        }
        if version == Version::V4 {
            let Some(ids) = self.ids_with(next) else { return false };
            self.ids = ids;
        }
        self.push = next[start + 13] & flag::PSH;
        self.closed = self.push != 0 || payload < self.size;
        self.payload += payload;
        self.packets += 1;
        true
    }

    /// Offset of the payload in every packet, bytes.
    pub const fn payload_at(&self) -> usize {
        self.length
    }

    /// The number of packets joined, including the first.
    pub const fn packets(&self) -> usize {
        self.packets as usize
    }

    /// Turns the first packet's headers, at the beginning of `first`, into those of the joined packet, and returns its offload
    /// header. A single packet is left as it is.
    ///
    /// # Panics
    /// If `first` is shorter than the first packet's headers.
    pub fn finish(mut self, first: &mut [u8]) -> Offload {
        if self.packets == 1 {
            return self.offload;
        }
        let length = self.length + self.payload;
        let id = word(&self.headers, 4);
        match self.version {
            Version::V4 => {
                put(&mut self.headers, 2, length as u16);
                put(&mut self.headers, 10, self.network_sum.length(length).word(id).checksum());
            }
            Version::V6 => put(&mut self.headers, 4, (length - V6_HEADER) as u16),
        }
        put(&mut self.headers, self.start + 16, self.pseudo_sum.length(length - self.start).folded());
        self.headers[self.start + 13] |= self.push;
        first[..self.length].copy_from_slice(&self.headers[..self.length]);
        Offload {
            flags: Offload::NEEDS_CSUM,
            gso_type: match self.version {
                Version::V4 => Offload::GSO_TCPV4,
                Version::V6 => Offload::GSO_TCPV6,
            },
            hdr_len: self.length as u16,
            gso_size: self.size as u16,
            csum_start: self.start as u16,
            csum_offset: 16,
        }
    }

    /// Whether the headers are equal, except for fields that may differ and lengths that follow from the payload.
    fn same_headers(&self, next: &[u8]) -> bool {
        let (ours, theirs) = (&self.headers[..self.length], &next[..self.length]);
        let (our_ip, our_tcp) = ours.split_at(self.start);
        let (their_ip, their_tcp) = theirs.split_at(self.start);
        let same_ip = match self.version {
            Version::V4 => {
                our_ip[..2] == their_ip[..2] && our_ip[6..10] == their_ip[6..10] && our_ip[12..] == their_ip[12..]
            }
            Version::V6 => our_ip[..4] == their_ip[..4] && our_ip[6..] == their_ip[6..],
        };
        let seq = double(our_tcp, 4).wrapping_add(self.payload as u32);
        let partial = self.pseudo_sum.length(next.len() - self.start).folded();
        same_ip
            && our_tcp[..4] == their_tcp[..4]
            && double(their_tcp, 4) == seq
            && our_tcp[8..13] == their_tcp[8..13]
            && (our_tcp[13] ^ their_tcp[13]) & !flag::PSH == 0
            && our_tcp[14..16] == their_tcp[14..16]
            && word(their_tcp, 16) == partial
            && our_tcp[18..] == their_tcp[18..]
            && (self.version == Version::V6 || self.checksum_holds(next))
    }

    /// Whether the IPv4 header's checksum is right. Joining must not repair a wrong one.
    fn checksum_holds(&self, packet: &[u8]) -> bool {
        self.network_sum.word(word(packet, 2)).word(word(packet, 4)).checksum() == word(packet, 10)
    }

    /// How identifications change if this packet is next; `None` if it does not fit.
    fn ids_with(&self, next: &[u8]) -> Option<Ids> {
        let by = word(next, 4).wrapping_sub(word(&self.headers, 4));
        let never_fragmented = self.headers[6] & DONT_FRAGMENT != 0;
        match self.ids {
            Ids::Unknown | Ids::Count if by == self.packets => Some(Ids::Count),
            Ids::Unknown | Ids::Same if by == 0 && never_fragmented => Some(Ids::Same),
            _ => None,
        }
    }
}

impl Candidate {
    fn read(offload: Offload, packet: &[u8]) -> Option<Candidate> {
        let layout = Layout::read(packet).ok()?;
        let plain = layout.protocol == protocol::TCP
            && !layout.fragment
            && layout.end == packet.len()
            && (layout.version == Version::V4 || layout.transport == V6_HEADER);
        if !plain {
            return None;
        }
        let partial = !offload.is_super()
            && offload.flags == Offload::NEEDS_CSUM
            && usize::from(offload.csum_start) == layout.transport
            && offload.csum_offset == 16;
        let start = layout.transport;
        let length = start + layout.tcp_header(packet).ok()?;
        let payload = packet.len() - length;
        // Only ACK and PSH may be set, and no reserved bit, one of which accurate ECN uses.
        let only_ack = packet[start + 12] & 0xf == 0 && packet[start + 13] & !flag::PSH == flag::ACK;
        (partial && only_ack && payload > 0).then_some(Candidate { version: layout.version, start, length, payload })
    }
}

fn network_sum(version: Version, header: &[u8]) -> Sum {
    match version {
        Version::V4 => Sum::default().bytes(&header[..2]).bytes(&header[6..10]).bytes(&header[12..]),
        Version::V6 => Sum::default(),
    }
}

/// The longest IPv4 and TCP headers with options, bytes.
const MAX_HEADERS: usize = 60 + 60;
/// The maximum length of an IPv4 packet, bytes.
const MAX_BYTES: usize = 65_535;
/// The maximum that Linux sends at once.
const MAX_PACKETS: u16 = 64;
/// The flag in the seventh byte of an IPv4 header.
const DONT_FRAGMENT: u8 = 0x40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_thread::frame::Segments;
    use crate::packet_thread::frame::samples::{Fill, Sample, any_frame, any_tcp, header_holds, ones_sum};
    use proptest::prelude::*;

    /// Joins as many packets as possible; returns the result and the number of packets.
    fn join(packets: &[(Offload, Vec<u8>)]) -> Option<(Offload, Vec<u8>, usize)> {
        let (offload, mut whole) = packets[0].clone();
        let mut join = Join::start(offload, &whole)?;
        for (offload, packet) in &packets[1..] {
            if !join.takes(*offload, packet) {
                break;
            }
            whole.extend_from_slice(&packet[join.payload_at()..]);
        }
        let packets = join.packets();
        let offload = join.finish(&mut whole);
        Some((offload, whole, packets))
    }

    /// This packet and others that can be joined to it, with these payload lengths.
    fn row(first: &Sample, lengths: &[usize]) -> Vec<Sample> {
        let (mut seq, mut id) = (first.seq, first.id);
        let mut row = vec![first.clone()];
        for &length in lengths {
            seq = seq.wrapping_add(row[row.len() - 1].payload.len() as u32);
            id = id.wrapping_add(1);
            row.push(Sample { seq, id, payload: vec![7; length], ..first.clone() });
        }
        row
    }

    fn frames(row: &[Sample]) -> Vec<(Offload, Vec<u8>)> {
        row.iter().map(|sample| (sample.offload(Fill::Partial), sample.bytes(Fill::Partial))).collect()
    }

    /// Whether a second packet with this change can be joined.
    fn joins(first: &Sample, change: impl FnOnce(&mut Sample)) -> bool {
        let mut row = row(first, &[first.payload.len()]);
        change(&mut row[1]);
        join(&frames(&row)).is_some_and(|(.., packets)| packets == 2)
    }

    #[test]
    fn two_packets_and_what_tun_is_told() {
        let first = Sample::v4(1000).stamped(5, 6);
        let (offload, whole, packets) = join(&frames(&row(&first, &[600]))).unwrap();
        let told = Offload { flags: 1, gso_type: 1, hdr_len: 52, gso_size: 1000, csum_start: 20, csum_offset: 16 };
        assert_eq!((offload, packets, whole.len()), (told, 2, 1652));
        assert_eq!(word(&whole, 2), 1652);
        assert!(header_holds(&whole));
        // 0a00 + 0001 + 0a00 + 0002 + 0006 and the length, 1632.
        assert_eq!(word(&whole, 36), 0x1409 + 1632);
        let (offload, whole, _) = join(&frames(&row(&Sample::v6(1000), &[600]))).unwrap();
        let told = Offload { flags: 1, gso_type: 4, hdr_len: 60, gso_size: 1000, csum_start: 40, csum_offset: 16 };
        assert_eq!((offload, word(&whole, 4)), (told, 1620));
    }

    #[test]
    fn what_differs_does_not_join() {
        for first in [Sample::v4(100).stamped(5, 6), Sample::v6(100).stamped(5, 6)] {
            assert!(joins(&first, |_| {}));
            assert!(joins(&first, |next| next.flags |= flag::PSH));
            assert!(!joins(&first, |next| next.class |= 3), "a mark");
            assert!(!joins(&first, |next| next.hops -= 1));
            assert!(!joins(&first, |next| next.seq += 1), "a hole");
            assert!(!joins(&first, |next| next.seq -= 100), "the same again");
            assert!(!joins(&first, |next| next.ack += 1));
            assert!(!joins(&first, |next| next.window += 1));
            assert!(!joins(&first, |next| next.ports.0 += 1));
            assert!(!joins(&first, |next| next.payload.push(0)), "longer than the first");
            assert!(!joins(&first, |next| next.payload.clear()), "an acknowledgment");
            assert!(!joins(&first, |next| *next = next.clone().stamped(6, 6)), "another time");
            for flag in [flag::FIN, flag::SYN, flag::RST, 0x20, flag::ECE, flag::CWR] {
                assert!(!joins(&first, |next| next.flags |= flag));
                let other = Sample { flags: first.flags | flag, ..first.clone() };
                assert!(!joins(&other, |_| {}), "not even where all have it");
            }
        }
        assert!(!joins(&Sample::v6(100), |next| next.label = 9));
        assert!(!joins(&Sample { flags: flag::ACK | flag::PSH, ..Sample::v4(100) }, |_| {}), "PSH ends it");
    }

    #[test]
    fn a_short_packet_or_psh_is_the_last() {
        let mut short = frames(&row(&Sample::v4(100), &[100, 99, 99, 100]));
        assert_eq!(join(&short).unwrap().2, 3);
        short.truncate(3);
        assert_eq!(join(&short).unwrap().1.len(), 40 + 299);
        let mut push = row(&Sample::v4(100), &[100, 100, 100]);
        push[2].flags |= flag::PSH;
        let (_, whole, packets) = join(&frames(&push)).unwrap();
        assert_eq!((packets, whole[33]), (3, flag::ACK | flag::PSH));
    }

    #[test]
    fn identifications_count_or_stay_if_never_fragmented() {
        let ids = |dont_fragment: bool, ids: [u16; 3]| {
            let mut row = row(&Sample { dont_fragment, id: ids[0], ..Sample::v4(100) }, &[100, 100]);
            (row[1].id, row[2].id) = (ids[1], ids[2]);
            join(&frames(&row)).unwrap().2
        };
        assert_eq!(ids(true, [9, 10, 11]), 3);
        assert_eq!(ids(false, [0xffff, 0, 1]), 3);
        assert_eq!(ids(true, [0, 0, 0]), 3);
        assert_eq!(ids(false, [0, 0, 0]), 1);
        assert_eq!(ids(true, [0, 0, 1]), 2);
        assert_eq!(ids(true, [0, 1, 1]), 2);
        assert_eq!(ids(true, [0, 2, 4]), 1);
    }

    #[test]
    fn at_most_64_packets_and_65_535_bytes() {
        assert_eq!(join(&frames(&row(&Sample::v4(10), &[10; 80]))).unwrap().2, 64);
        // (65 535 − 40) / 1460 = 44.9.
        let (_, whole, packets) = join(&frames(&row(&Sample::v4(1460), &[1460; 50]))).unwrap();
        assert_eq!((packets, whole.len()), (44, 40 + 44 * 1460));
        // 65 495 = 5 · 13 099.
        let (_, whole, packets) = join(&frames(&row(&Sample::v4(13_099), &[13_099; 6]))).unwrap();
        assert_eq!((packets, whole.len(), word(&whole, 2)), (5, 65_535, 65_535));
    }

    #[test]
    fn only_partial_checksums_join() {
        let row = row(&Sample::v4(100), &[100]);
        let full: Vec<_> = row.iter().map(|sample| (Offload::default(), sample.bytes(Fill::Full))).collect();
        assert!(Join::start(full[0].0, &full[0].1).is_none());
        let partial = frames(&row);
        let mut join = Join::start(partial[0].0, &partial[0].1).unwrap();
        assert!(!join.takes(full[1].0, &full[1].1));
        assert!(join.takes(partial[1].0, &partial[1].1));
    }

    #[test]
    fn alone_it_stays_as_it_is() {
        let sample = Sample::v4(100);
        let packets = frames(std::slice::from_ref(&sample));
        let (offload, whole, count) = join(&packets).unwrap();
        assert_eq!((offload, whole, count), (packets[0].0, packets[0].1.clone(), 1));
    }

    #[test]
    fn a_wrong_header_checksum_does_not_become_right() {
        let mut packets = frames(&row(&Sample::v4(100), &[100]));
        packets[1].1[10] ^= 1;
        assert_eq!(join(&packets).unwrap().2, 1);
        packets[0].1[10] ^= 1;
        assert!(join(&packets).is_none());
    }

    proptest! {
        #[test]
        fn a_super_packet_cut_and_joined_is_the_same(
            sample in any_tcp(0), size in 1..1460u16, count in 2..=64usize, last in 1..1460usize, push: bool,
        ) {
            // Extension headers are not joined.
            let flags = if push { flag::ACK | flag::PSH } else { flag::ACK };
            let mut sample = Sample { flags, extensions: Vec::new(), ..sample };
            let most = (65_535 - sample.headers()) / usize::from(size);
            let whole = usize::from(size) * (count.min(most) - 1) + last.min(size.into());
            sample.payload = (0..whole).map(|at| at as u8).collect();
            let packet = sample.bytes(Fill::Partial);
            let offload = sample.gso(Fill::Partial, size);
            let mut segments = Segments::new(offload, &packet).unwrap();
            let (mut out, mut all) = (Vec::new(), Vec::new());
            while let Some(offload) = segments.next_into(&mut out) {
                all.push((offload, out.clone()));
            }
            let (joined, bytes, packets) = join(&all).unwrap();
            prop_assert_eq!(packets, all.len());
            prop_assert_eq!(joined, offload);
            prop_assert!(bytes == packet);
        }

        /// No bit of a header may be lost: a packet with a wrong bit is not joined.
        #[test]
        fn a_bit_that_differs_keeps_packets_apart(sample in any_tcp(0), at: prop::sample::Index, bit in 0..8u8) {
            let payload = vec![1; 50];
            let sample = Sample { flags: flag::ACK, extensions: Vec::new(), dont_fragment: false, payload, ..sample };
            let mut packets = frames(&row(&sample, &[50]));
            let start = sample.transport();
            let at = at.index(sample.headers());
            packets[1].1[at] ^= 1 << bit;
            if sample.is_v4() && at < start && !(10..12).contains(&at) {
                packets[1].1[10..12].fill(0);
                let checksum = !ones_sum(&packets[1].1[..start]);
                packets[1].1[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            let push = at == start + 13 && 1 << bit == flag::PSH;
            prop_assert_eq!(join(&packets).unwrap().2, if push { 2 } else { 1 });
        }

        #[test]
        fn nothing_panics((offload, frame) in any_frame(), (other, next) in any_frame()) {
            for offload in [offload, Offload { gso_type: 0, ..offload }] {
                if let Some(mut join) = Join::start(offload, &frame) {
                    prop_assert!(join.payload_at() < frame.len());
                    join.takes(other, &next);
                    join.takes(offload, &next);
                    join.finish(&mut frame.clone());
                }
            }
        }
    }
}
