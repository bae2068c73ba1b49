//! Neighbours of one flow in one piece: what a receiving kernel's GRO would do with them one by one.
//!
//! Packets join when cutting the whole again would give them back: same headers but for lengths, IPv4's identification, TCP's
//! sequence number and checksums, contiguous payload, all of one length but for a shorter last one. So the receiver's marks
//! (ECN field), timestamps and acknowledgments are those that arrived. Only packets with a partial checksum are taken: a
//! full one that joins would have to be verified first.
use super::checksum::Sum;
use super::layout::{Layout, V6_HEADER, Version, double, put, word};
use super::{Offload, flag, protocol};

/// Puts consecutive packets of one TCP flow together again, for one write to a TUN device.
#[derive(Clone, Debug)]
pub struct Join {
    /// The first packet's headers.
    headers: [u8; MOST_HEADERS],
    /// Where TCP's begins.
    start: usize,
    /// Length of all.
    length: usize,
    version: Version,
    /// The first packet's offload header.
    offload: Offload,
    /// The first packet's payload, bytes.
    size: usize,
    /// Payload so far, bytes.
    payload: usize,
    packets: u16,
    /// The last packet's PSH.
    push: u8,
    /// The last packet was short, or had PSH.
    closed: bool,
    /// How IPv4's identification grows.
    ids: Ids,
    /// Of the IPv4 header without length, identification and checksum.
    network_sum: Sum,
    /// Of the pseudo-header without the length.
    pseudo_sum: Sum,
}

/// How the identifications of consecutive packets are related.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ids {
    /// There is one packet.
    Unknown,
    /// One more each time.
    Count,
    /// Always the same, which it may be in packets that are never fragmented (RFC 6864 §4.1).
    Same,
}

/// What joining asks of a packet by itself.
struct Candidate {
    version: Version,
    start: usize,
    length: usize,
    payload: usize,
}

impl Join {
    /// Begins with this packet; nothing when no packet could be joined to it.
    pub fn start(offload: Offload, first: &[u8]) -> Option<Join> {
        let Candidate { version, start, length, payload } = Candidate::read(offload, first)?;
        if first[start + 13] & flag::PSH != 0 {
            return None;
        }
        let mut headers = [0; MOST_HEADERS];
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

    /// Does this one join? If so, its payload, from [`payload_at`](Join::payload_at) on, is to follow what there is.
    pub fn takes(&mut self, offload: Offload, next: &[u8]) -> bool {
        if self.closed || self.packets == MOST_PACKETS || offload != self.offload {
            return false;
        }
        let Some(Candidate { version, start, length, payload }) = Candidate::read(offload, next) else { return false };
        if (version, start, length) != (self.version, self.start, self.length)
            || payload > self.size
            || length + self.payload + payload > MOST_BYTES
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

    /// Where the payload of every packet begins, bytes from the packet's first.
    pub const fn payload_at(&self) -> usize {
        self.length
    }

    /// How many packets have joined, the first included.
    pub const fn packets(&self) -> usize {
        self.packets as usize
    }

    /// Makes the first packet's headers, at the beginning of `first`, those of the whole, and returns the whole's offload
    /// header. A packet that stayed alone is left as it is.
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

    /// Everything that all packets have in common, what follows from their lengths included.
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

    /// Is the IPv4 header's checksum right? A wrong one must not become right.
    fn checksum_holds(&self, packet: &[u8]) -> bool {
        self.network_sum.word(word(packet, 2)).word(word(packet, 4)).checksum() == word(packet, 10)
    }

    /// How identifications grow if this packet follows.
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
        // The reserved bits, one of which is accurate ECN's, and all flags but PSH.
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

/// IPv4 and TCP with all the options that fit.
const MOST_HEADERS: usize = 60 + 60;
/// What an IPv4 packet's length can say, bytes.
const MOST_BYTES: usize = 65_535;
/// As many as Linux sends in one.
const MOST_PACKETS: u16 = 64;
/// In the seventh byte of an IPv4 header.
const DONT_FRAGMENT: u8 = 0x40;
