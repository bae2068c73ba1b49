//! Packets for tests, written from the diagrams of headers in the RFCs, and a simple computation of the checksum.
use super::{Offload, flag, protocol};
use proptest::collection::vec;
use proptest::prelude::*;
use std::iter::repeat_n;
use std::net::IpAddr;

/// The parts of a TCP or UDP packet.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// An IPv4 packet if both addresses are IPv4, otherwise IPv6.
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) class: u8,
    /// IPv6's flow label.
    pub(super) label: u32,
    pub(super) id: u16,
    pub(super) dont_fragment: bool,
    pub(super) hops: u8,
    /// IPv4's options, or IPv6's extension headers with their types.
    pub(super) options: Vec<u8>,
    pub(super) extensions: Vec<(u8, Vec<u8>)>,
    pub(super) udp: bool,
    pub(super) ports: (u16, u16),
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) tcp_options: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

/// The contents of the transport's checksum field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fill {
    Partial,
    Full,
}

impl Sample {
    /// 10.0.0.1:80 > 10.0.0.2:4000, an acknowledgment with `payload` bytes that count up.
    pub(super) fn v4(payload: usize) -> Sample {
        Sample {
            source: "10.0.0.1".parse().unwrap(),
            destination: "10.0.0.2".parse().unwrap(),
            class: 0,
            label: 0,
            id: 0x1234,
            dont_fragment: true,
            hops: 64,
            options: Vec::new(),
            extensions: Vec::new(),
            udp: false,
            ports: (80, 4000),
            seq: 1_000_000,
            ack: 77,
            flags: flag::ACK,
            window: 501,
            tcp_options: Vec::new(),
            payload: (0..payload).map(|byte| (byte % 251) as u8).collect(),
        }
    }

    /// The same packet between fd00::1 and fd00::2.
    pub(super) fn v6(payload: usize) -> Sample {
        let [source, destination] = ["fd00::1", "fd00::2"].map(|address| address.parse().unwrap());
        Sample { source, destination, ..Sample::v4(payload) }
    }

    /// Adds timestamps as Linux does: two no-operations, then the option.
    pub(super) fn stamped(mut self, value: u32, echo: u32) -> Sample {
        self.tcp_options = vec![1, 1, 8, 10];
        self.tcp_options.extend(value.to_be_bytes().into_iter().chain(echo.to_be_bytes()));
        self
    }

    pub(super) fn is_v4(&self) -> bool {
        self.source.is_ipv4()
    }

    pub(super) fn transport(&self) -> usize {
        if self.is_v4() {
            20 + self.options.len()
        } else {
            40 + self.extensions.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
        }
    }

    pub(super) fn headers(&self) -> usize {
        self.transport() + if self.udp { 8 } else { 20 + self.tcp_options.len() }
    }

    pub(super) fn length(&self) -> usize {
        self.headers() + self.payload.len()
    }

    fn protocol(&self) -> u8 {
        if self.udp { protocol::UDP } else { protocol::TCP }
    }

    /// The offload header of an ordinary packet.
    pub(super) fn offload(&self, fill: Fill) -> Offload {
        match fill {
            Fill::Full => Offload::default(),
            Fill::Partial => Offload {
                flags: Offload::NEEDS_CSUM,
                csum_start: self.transport() as u16,
                csum_offset: if self.udp { 6 } else { 16 },
                ..Offload::default()
            },
        }
    }

    /// The offload header of a super-packet.
    pub(super) fn gso(&self, fill: Fill, size: u16) -> Offload {
        let gso_type = match (self.udp, self.is_v4()) {
            (true, _) => Offload::GSO_UDP_L4,
            (false, true) => Offload::GSO_TCPV4,
            (false, false) => Offload::GSO_TCPV6,
        };
        Offload { gso_type, gso_size: size, hdr_len: self.headers() as u16, ..self.offload(fill) }
    }

    /// The bytes of the packet.
    pub(super) fn bytes(&self, fill: Fill) -> Vec<u8> {
        let mut packet = self.network();
        let at = packet.len();
        packet.extend(self.ports.0.to_be_bytes().into_iter().chain(self.ports.1.to_be_bytes()));
        if self.udp {
            packet.extend(((8 + self.payload.len()) as u16).to_be_bytes());
            packet.extend([0, 0]);
        } else {
            packet.extend(self.seq.to_be_bytes().into_iter().chain(self.ack.to_be_bytes()));
            packet.extend([((20 + self.tcp_options.len()) as u8 / 4) << 4, self.flags]);
            packet.extend(self.window.to_be_bytes());
            packet.extend([0, 0, 0, 0]);
            packet.extend(&self.tcp_options);
        }
        packet.extend(&self.payload);
        let pseudo = self.pseudo(packet.len() - at);
        let checksum = match fill {
            Fill::Partial => ones_sum(&pseudo),
            Fill::Full => {
                let all: Vec<u8> = pseudo.into_iter().chain(packet[at..].iter().copied()).collect();
                match !ones_sum(&all) {
                    0 if self.udp => 0xffff,
                    other => other,
                }
            }
        };
        let field = at + if self.udp { 6 } else { 16 };
        packet[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// The network layer's header.
    fn network(&self) -> Vec<u8> {
        let mut header = Vec::new();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                header.extend([0x40 | (self.transport() / 4) as u8, self.class]);
                header.extend((self.length() as u16).to_be_bytes().into_iter().chain(self.id.to_be_bytes()));
                header.extend([if self.dont_fragment { 0x40 } else { 0 }, 0, self.hops, self.protocol(), 0, 0]);
                header.extend(source.octets().into_iter().chain(destination.octets()));
                header.extend(&self.options);
                let checksum = !ones_sum(&header);
                header[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                header.extend((6 << 28 | u32::from(self.class) << 20 | self.label).to_be_bytes());
                header.extend(((self.length() - 40) as u16).to_be_bytes());
                let types = self.extensions.iter().map(|(kind, _)| *kind).chain([self.protocol()]);
                header.extend([types.clone().next().unwrap(), self.hops]);
                header.extend(source.octets().into_iter().chain(destination.octets()));
                for ((_, bytes), next) in self.extensions.iter().zip(types.skip(1)) {
                    header.push(next);
                    header.extend(&bytes[1..]);
                }
            }
            _ => unreachable!("both addresses are of one version"),
        }
        header
    }

    fn pseudo(&self, length: usize) -> Vec<u8> {
        let mut pseudo = Vec::new();
        for address in [self.source, self.destination] {
            match address {
                IpAddr::V4(v4) => pseudo.extend(v4.octets()),
                IpAddr::V6(v6) => pseudo.extend(v6.octets()),
            }
        }
        // IPv6 has a 32-bit length and three zero bytes before the protocol, which give the same sum.
        pseudo.extend([0, self.protocol()]);
        pseudo.extend((length as u16).to_be_bytes());
        pseudo
    }

    /// Whether the transport's checksum in `packet` is right. Addresses and header lengths are those of `self`.
    pub(super) fn verifies(&self, packet: &[u8]) -> bool {
        let segment = &packet[self.transport()..];
        let all: Vec<u8> = self.pseudo(segment.len()).into_iter().chain(segment.iter().copied()).collect();
        ones_sum(&all) == 0xffff && (!self.is_v4() || header_holds(packet))
    }
}

/// Whether the IPv4 header's checksum is right.
pub(super) fn header_holds(packet: &[u8]) -> bool {
    ones_sum(&packet[..usize::from(packet[0] & 0xf) * 4]) == 0xffff
}

/// The ones' complement sum, with one carry per word.
pub(super) fn ones_sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0, |sum: u16, pair| {
        let (sum, carry) = sum.overflowing_add(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        sum + u16::from(carry)
    })
}

/// TCP packets with up to `most` bytes of payload.
pub(super) fn any_tcp(most: usize) -> impl Strategy<Value = Sample> {
    let addresses = prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
        any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
    ];
    let network = (addresses, any::<u8>(), 0..1u32 << 20, any::<u16>(), any::<bool>(), any::<u8>());
    let extras = (0..=10usize, vec((prop_oneof![Just(0u8), Just(43), Just(60), Just(135)], 0..4u8), 0..3));
    let tcp = (any::<(u16, u16)>(), any::<u32>(), any::<u32>(), any::<u8>(), any::<u16>(), 0..=10usize);
    (network, extras, tcp, 0..=most, any::<u8>()).prop_map(
        |((addresses, class, label, id, dont_fragment, hops), (options, extensions), tcp, payload, byte)| Sample {
            source: addresses.0,
            destination: addresses.1,
            class,
            label,
            id,
            dont_fragment,
            hops,
            options: if addresses.0.is_ipv4() { vec![1; options * 4] } else { Vec::new() },
            extensions: if addresses.0.is_ipv4() {
                Vec::new()
            } else {
                extensions.into_iter().map(extension).collect()
            },
            udp: false,
            ports: tcp.0,
            seq: tcp.1,
            ack: tcp.2,
            flags: tcp.3,
            window: tcp.4,
            tcp_options: vec![1; tcp.5 * 4],
            payload: (0..payload).map(|at| (at as u8).wrapping_mul(31).wrapping_add(byte)).collect(),
        },
    )
}

/// An extension header of `more` times eight bytes after the first eight.
pub(super) fn extension((kind, more): (u8, u8)) -> (u8, Vec<u8>) {
    (kind, [0, more].into_iter().chain(repeat_n(0, 6 + 8 * usize::from(more))).collect())
}

/// Arbitrary frames: noise, or real packets with changed bytes, some of them truncated.
pub(super) fn any_frame() -> impl Strategy<Value = (Offload, Vec<u8>)> {
    let noise = (any::<[u8; 10]>(), vec(any::<u8>(), 0..200))
        .prop_map(|(offload, frame)| (Offload::from_bytes(offload), frame));
    let changes = vec((0..120usize, any::<u8>()), 0..4);
    let real = (any_tcp(300), changes, vec((0..10usize, any::<u8>()), 0..2), any::<prop::sample::Index>(), 0..200u16)
        .prop_map(|(sample, changes, offload_changes, cut, size)| {
            let mut frame = sample.bytes(Fill::Partial);
            let mut offload = sample.gso(Fill::Partial, size).to_bytes();
            for (at, byte) in changes {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            for (at, byte) in offload_changes {
                offload[at] = byte;
            }
            // Half of them keep their full length.
            let length = frame.len();
            frame.truncate(cut.index(2 * length));
            (Offload::from_bytes(offload), frame)
        });
    prop_oneof![1 => noise, 3 => real]
}
