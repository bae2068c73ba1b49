//! The header fields of a packet that a queue may use.
//!
//! Lengths must agree with one another. Checksums and the contents of options are left to the receiver.
use super::hash::Mix;
use super::layout::{Layout, UDP_HEADER, Version, chunk};
use super::{Malformed, flag, protocol};
use narrows_core::packet::{Dscp, Ecn, Role};
use narrows_host::FlowKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

/// A packet's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The flow's 5-tuple.
    pub key: FlowKey,
    /// IPv6's flow label (RFC 6437), if the sender set one.
    pub label: Option<NonZeroU32>,
    /// The ECN field.
    pub ecn: Ecn,
    /// The DSCP.
    pub dscp: Dscp,
    /// TCP's fields; fragments have none.
    pub tcp: Option<TcpHeader>,
    /// Bytes after the IP header, and in UDP after its header.
    rest: u32,
    /// Length of the headers before that payload, from the IP header on.
    before: u32,
}

/// A TCP segment's header (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpHeader {
    /// Sequence number of the first byte, modulo 2³².
    pub seq: u32,
    /// Acknowledgment number, modulo 2³².
    pub ack: u32,
    /// Length of the payload, bytes.
    pub payload: u32,
    /// The kind of acknowledgment, if it has no payload.
    pub role: Role,
    /// TSval and TSecr (RFC 7323 §3.2), in ticks of the two hosts' clocks.
    pub timestamps: Option<(u32, u32)>,
    /// The SYN flag.
    pub syn: bool,
    /// The FIN flag.
    pub fin: bool,
}

impl Header {
    /// Reads the headers of an IP packet. Bytes after the end that IP gives are ignored.
    ///
    /// # Errors
    /// [`Malformed`] says which header is cut short or has an impossible length.
    pub fn read(packet: &[u8]) -> Result<Header, Malformed> {
        let layout = Layout::read(packet)?;
        let (source, destination, class, label) = match layout.version {
            Version::V4 => {
                let header: &[u8; 20] = chunk(packet, "IPv4 header")?;
                let [source, destination] = [12, 16]
                    .map(|at| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3])));
                (source, destination, header[1], None)
            }
            Version::V6 => {
                let header: &[u8; 40] = chunk(packet, "IPv6 header")?;
                let word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
                let [source, destination] = [8, 24].map(|at| {
                    let mut address = [0; 16];
                    address.copy_from_slice(&header[at..at + 16]);
                    IpAddr::V6(Ipv6Addr::from(address))
                });
                (source, destination, (word >> 20) as u8, NonZeroU32::new(word & 0xf_ffff))
            }
        };
        let (source_port, destination_port) = ports(&layout, packet)?;
        let tcp = if layout.protocol == protocol::TCP && !layout.fragment {
            Some(TcpHeader::read(&layout, packet)?)
        } else {
            None
        };
        let key = FlowKey { protocol: layout.protocol, source, destination, source_port, destination_port };
        let header = if layout.protocol == protocol::UDP && !layout.fragment { UDP_HEADER } else { 0 };
        let rest = (layout.end - layout.transport).saturating_sub(header) as u32;
        let before = (layout.end - rest as usize) as u32;
        Ok(Header { key, label, ecn: ecn(class), dscp: Dscp(class >> 2), tcp, rest, before })
    }

    /// Length of the payload of TCP or UDP, bytes; for other protocols, of the payload of IP.
    pub const fn payload(&self) -> u32 {
        match self.tcp {
            Some(tcp) => tcp.payload,
            None => self.rest,
        }
    }

    /// Length at the IP layer of a datagram with these headers and this payload, bytes.
    pub const fn datagram(&self, payload: u32) -> u32 {
        self.before + payload
    }

    /// The flow's hash: of the 5-tuple, or of the addresses and the flow label if there is one (RFC 6438 §3, RFC 6437), so that
    /// fragments and encrypted transports stay with their flow.
    pub fn hash(&self, seed: u64) -> u32 {
        let FlowKey { protocol, source, destination, source_port, destination_port } = self.key;
        let mix = Mix::new(seed).address(source).address(destination);
        let rest = match self.label {
            // The highest bit keeps a label apart from a 5-tuple's ports.
            Some(label) => 1 << 63 | u64::from(label.get()),
            None => u64::from(protocol) << 32 | u64::from(source_port) << 16 | u64::from(destination_port),
        };
        mix.word(rest).finish()
    }
}

impl TcpHeader {
    fn read(layout: &Layout, packet: &[u8]) -> Result<TcpHeader, Malformed> {
        let length = layout.tcp_header(packet)?;
        let header: &[u8; 20] = chunk(&packet[layout.transport..], "TCP header")?;
        let payload = (layout.end - layout.transport - length) as u32;
        let flags = header[13];
        let (sack, timestamps) = options(&packet[layout.transport + 20..layout.transport + length]);
        let pure = flags & (flag::SYN | flag::FIN | flag::RST | flag::ACK) == flag::ACK && payload == 0;
        Ok(TcpHeader {
            seq: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            ack: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
            payload,
            role: if pure { Role::ack(sack, flags & flag::ECE != 0) } else { Role::Other },
            timestamps,
            syn: flags & flag::SYN != 0,
            fin: flags & flag::FIN != 0,
        })
    }
}

/// The ports, or an echo's identifier in their place.
fn ports(layout: &Layout, packet: &[u8]) -> Result<(u16, u16), Malformed> {
    if layout.fragment {
        return Ok((0, 0));
    }
    let transport = &packet[layout.transport..layout.end];
    let pair = |[a, b, c, d]: [u8; 4]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let echo = |kinds: [u8; 2]| -> Result<(u16, u16), Malformed> {
        let header: &[u8; 8] = chunk(transport, "ICMP header")?;
        let id = u16::from_be_bytes([header[4], header[5]]);
        Ok(if kinds.contains(&header[0]) { (id, id) } else { (0, 0) })
    };
    match layout.protocol {
        protocol::UDP => {
            let [a, b, c, d, ..]: [u8; UDP_HEADER] = *chunk(transport, "UDP header")?;
            Ok(pair([a, b, c, d]))
        }
        protocol::TCP | protocol::DCCP | protocol::SCTP | protocol::UDP_LITE => Ok(pair(*chunk(transport, "ports")?)),
        // Echo reply and echo (RFC 792). For ICMPv6: echo request and reply (RFC 4443 §4).
        protocol::ICMP => echo([0, 8]),
        protocol::ICMP6 => echo([128, 129]),
        _ => Ok((0, 0)),
    }
}

/// Whether there are selective acknowledgments (RFC 2018 §3), and the timestamps (RFC 7323 §3.2). An unreadable option ends the
/// list, as it does for receivers.
fn options(mut rest: &[u8]) -> (bool, Option<(u32, u32)>) {
    let (mut sack, mut timestamps) = (false, None);
    loop {
        match *rest {
            [1, ..] => rest = &rest[1..],
            [kind, length, ..] if kind != 0 && (2..=rest.len()).contains(&usize::from(length)) => {
                let (option, following) = rest.split_at(usize::from(length));
                match *option {
                    [5, _, _, _, _, _, _, _, _, _, ..] => sack = true,
                    [8, 10, a, b, c, d, e, f, g, h] => {
                        timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
                    }
                    _ => {}
                }
                rest = following;
            }
            _ => return (sack, timestamps),
        }
    }
}

/// The ECN field: the lowest two bits of the traffic class (RFC 3168 §5).
const fn ecn(class: u8) -> Ecn {
    match class & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_thread::frame::samples::{Fill, Sample, any_frame, any_tcp, extension};
    use proptest::prelude::*;

    /// Bytes from hexadecimal digits.
    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
        digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
    }

    fn read(text: &str) -> Header {
        Header::read(&hex(text)).unwrap()
    }

    #[test]
    fn a_syn_over_ipv4() {
        let header = read(
            "4500 003c 1c46 4000 4006 0000 ac10 0a63 ac10 0a0c
             d431 0050 0000 03e8 0000 0000 a0c2 7210 0000 0000
             0204 05b4 0402 080a 0000 0102 0000 0000 0103 0307",
        );
        assert_eq!(header.key.to_string(), "tcp 172.16.10.99:54321 > 172.16.10.12:80");
        assert_eq!((header.ecn, header.dscp, header.label), (Ecn::NotEct, Dscp(0), None));
        let tcp = TcpHeader {
            seq: 1000,
            ack: 0,
            payload: 0,
            role: Role::Other,
            timestamps: Some((0x102, 0)),
            syn: true,
            fin: false,
        };
        assert_eq!(header.tcp, Some(tcp));
    }

    #[test]
    fn an_acknowledgment_with_a_block_over_ipv6() {
        let header = read(
            "6b9a bcde 002c 0640 fd00 0000 0000 0000 0000 0000 0000 0001 fd00 0000 0000 0000 0000 0000 0000 0002
             0fa0 0050 0000 0001 0000 2000 b050 0100 0000 0000
             0101 080a 0000 0007 0000 0009 0101 050a 0000 3000 0000 4000",
        );
        assert_eq!(header.key.to_string(), "tcp [fd00::1]:4000 > [fd00::2]:80");
        // Traffic class 0xb9: DSCP 46 and ECT(1).
        assert_eq!((header.ecn, header.dscp), (Ecn::Ect1, Dscp(46)));
        assert_eq!(header.label.map(NonZeroU32::get), Some(0xa_bcde));
        let tcp = header.tcp.unwrap();
        assert_eq!((tcp.role, tcp.ack, tcp.timestamps), (Role::AckSackEcho, 0x2000, Some((7, 9))));
    }

    #[test]
    fn echoes_have_one_flow_each_way() {
        let request = read("4500 001c 0000 0000 4001 0000 0a00 0001 0a00 0002 0800 0000 0007 0001");
        let reply = read("4500 001c 0000 0000 4001 0000 0a00 0002 0a00 0001 0000 0000 0007 0001");
        assert_eq!(request.key.to_string(), "icmp 10.0.0.1 > 10.0.0.2 id 7");
        assert_eq!(request.key.reversed(), reply.key);
        // Destination unreachable: its bytes have another meaning.
        let error = read("4500 001c 0000 0000 4001 0000 0a00 0001 0a00 0002 0301 0000 0007 0001");
        assert_eq!(error.key.to_string(), "icmp 10.0.0.1 > 10.0.0.2");
        let v6 = "6000 0000 0008 3a40 fd00 0000 0000 0000 0000 0000 0000 0001 fd00 0000 0000 0000 0000 0000 0000 0002";
        assert_eq!(read(&format!("{v6} 8000 0000 0102 0001")).key.to_string(), "icmp6 fd00::1 > fd00::2 id 258");
        assert_eq!(read(&format!("{v6} 8700 0000 0102 0001")).key.to_string(), "icmp6 fd00::1 > fd00::2");
    }

    #[test]
    fn fragments_have_no_ports_the_first_included() {
        let rest = "4011 0000 0a00 0001 0a00 0002 0035 0009 0008 0000";
        for (fragment, ports) in [("2000", 0), ("0001", 0), ("3fff", 0), ("4000", 0x35), ("0000", 0x35)] {
            let header = read(&format!("4500 001c 0001 {fragment} {rest}"));
            assert_eq!((header.key.protocol, header.key.source_port), (17, ports), "{fragment}");
        }
        let v6 = |fragment: &str| {
            let addresses = "fd00 0000 0000 0000 0000 0000 0000 0001 fd00 0000 0000 0000 0000 0000 0000 0002";
            read(&format!("6000 0000 0010 2c40 {addresses} 1100 {fragment} 0000 0001 0035 0009 0008 0000"))
        };
        for (fragment, ports) in [("0001", 0), ("0008", 0), ("fff9", 0), ("0000", 0x35), ("0006", 0x35)] {
            let header = v6(fragment);
            assert_eq!((header.key.protocol, header.key.source_port), (17, ports), "{fragment}");
        }
        let mut first = Sample::v4(10).bytes(Fill::Full);
        first[6] = 0x20;
        assert_eq!(Header::read(&first).unwrap().tcp, None);
    }

    #[test]
    fn other_protocols_have_addresses_and_some_have_ports() {
        let network = |protocol: u8| format!("4500 0018 0000 0000 40{protocol:02x} 0000 0a00 0001 0a00 0002 0035 0009");
        for (protocol, ports) in [(47, 0), (50, 0), (4, 0), (33, 0x35), (132, 0x35), (136, 0x35)] {
            assert_eq!(read(&network(protocol)).key.source_port, ports, "{protocol}");
        }
    }

    #[test]
    fn roles_are_those_of_acknowledgments_alone() {
        let sack = vec![1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let ack = flag::ACK;
        let cases = [
            (ack, 0, false, Role::Ack),
            (ack, 0, true, Role::AckSack),
            (ack | flag::ECE, 0, false, Role::AckEcho),
            (ack | flag::ECE, 0, true, Role::AckSackEcho),
            (ack | flag::PSH, 0, false, Role::Ack),
            (ack, 1, true, Role::Other),
            (ack | flag::SYN, 0, false, Role::Other),
            (ack | flag::FIN, 0, false, Role::Other),
            (ack | flag::RST, 0, false, Role::Other),
            (0, 0, false, Role::Other),
        ];
        for (flags, payload, blocks, role) in cases {
            for sample in [Sample::v4(payload), Sample::v6(payload)] {
                let tcp_options = if blocks { sack.clone() } else { vec![] };
                let packet = Sample { flags, tcp_options, ..sample }.bytes(Fill::Full);
                let tcp = Header::read(&packet).unwrap().tcp.unwrap();
                assert_eq!((tcp.role, tcp.payload), (role, payload as u32), "{flags:#x}");
                assert_eq!((tcp.syn, tcp.fin), (flags & flag::SYN != 0, flags & flag::FIN != 0));
            }
        }
    }

    #[test]
    fn options_that_make_no_sense_end_the_list() {
        let stamp = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let with = |before: &[u8], after: &[u8]| options(&[before, &stamp, after].concat());
        assert_eq!(with(&[1, 1], &[]), (false, Some((1, 2))));
        assert_eq!(with(&[3, 3, 7, 1], &[0, 5]), (false, Some((1, 2))));
        assert_eq!(with(&[0], &[]), (false, None));
        assert_eq!(with(&[3, 0], &[]), (false, None));
        assert_eq!(with(&[3, 1], &[]), (false, None));
        assert_eq!(with(&[3, 200], &[]), (false, None));
        assert_eq!(with(&[5, 2], &[5]), (false, Some((1, 2))), "a list of no blocks");
        assert_eq!(options(&stamp[..9]), (false, None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let v4 = "4500 0028 0000 0000 4006 0000 0a00 0001 0a00 0002";
        let v6 = "fd00 0000 0000 0000 0000 0000 0000 0001 fd00 0000 0000 0000 0000 0000 0000 0002";
        let cases = [
            (String::new(), "IP header cut short: 0 of 20 bytes"),
            ("00".repeat(60), "IP version 0"),
            ("45".to_owned(), "IPv4 header cut short: 1 of 20 bytes"),
            ("44".repeat(60), "IPv4 header of 16 bytes, where 20 is the least"),
            (v4.to_owned(), "IPv4 packet cut short: 20 of 40 bytes"),
            (v4.replace("4500 0028", "4600 0014"), "IPv4 header cut short: 20 of 24 bytes"),
            (v4.replace("0028", "0013"), "IPv4 header cut short: 19 of 20 bytes"),
            (v4.replace("0028", "0014"), "ports cut short: 0 of 4 bytes"),
            (format!("{} 0001 0002", v4.replace("0028", "0018")), "TCP header cut short: 4 of 20 bytes"),
            (format!("{v4} {}", "40".repeat(20)), "TCP header of 16 bytes, where 20 is the least"),
            (format!("{v4} {}", "60".repeat(20)), "TCP header cut short: 20 of 24 bytes"),
            (v4.replace("0028", "0014").replace("4006", "4011"), "UDP header cut short: 0 of 8 bytes"),
            (v4.replace("0028", "0014").replace("4006", "4001"), "ICMP header cut short: 0 of 8 bytes"),
            (format!("6000 0000 0001 0640 {v6}"), "IPv6 packet cut short: 40 of 41 bytes"),
            (format!("6000 0000 0004 0040 {v6} 0000 0000"), "IPv6 extension header cut short: 4 of 8 bytes"),
            (format!("6000 0000 0008 0040 {v6} 0601 0000 0000 0000"), "IPv6 extension header cut short: 8 of 16 bytes"),
        ];
        for (text, message) in cases {
            assert_eq!(Header::read(&hex(&text)).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn sixteen_extension_headers_are_read_and_no_more() {
        let with =
            |count: usize| Sample { extensions: vec![extension((60, 0)); count], ..Sample::v6(3) }.bytes(Fill::Full);
        assert_eq!(Header::read(&with(16)).unwrap().key.to_string(), "tcp [fd00::1]:80 > [fd00::2]:4000");
        assert_eq!(Header::read(&with(17)).unwrap_err().to_string(), "more than 16 IPv6 extension headers");
    }

    #[test]
    fn an_authentication_header_counts_in_words_of_four_bytes() {
        // A length field of 4 means 4 + 2 words, 24 bytes (RFC 4302 §2.2).
        let mut bytes = vec![0; 24];
        bytes[1] = 4;
        let packet = Sample { extensions: vec![(51, bytes)], ..Sample::v6(3) }.bytes(Fill::Full);
        assert_eq!(Header::read(&packet).unwrap().tcp.unwrap().payload, 3);
    }

    fn hash(sample: &Sample, seed: u64) -> u32 {
        Header::read(&sample.bytes(Fill::Full)).unwrap().hash(seed)
    }

    #[test]
    fn a_flow_label_stands_for_protocol_and_ports() {
        let plain = Sample::v6(10);
        let other_port = Sample { ports: (81, 4000), ..plain.clone() };
        assert_ne!(hash(&plain, 1), hash(&other_port, 1));
        let labelled = |sample: &Sample, label: u32| Sample { label, ..sample.clone() };
        assert_eq!(hash(&labelled(&plain, 5), 1), hash(&labelled(&other_port, 5), 1));
        assert_ne!(hash(&labelled(&plain, 5), 1), hash(&labelled(&plain, 6), 1));
        assert_ne!(hash(&labelled(&plain, 5), 1), hash(&plain, 1));
        // A fragment of a flow with a label stays with its flow.
        let fragmented = Sample { extensions: vec![(44, vec![0, 0, 0, 1, 0, 0, 0, 9])], ..plain.clone() };
        assert_eq!(hash(&labelled(&plain, 5), 1), hash(&labelled(&fragmented, 5), 1));
    }

    #[test]
    fn the_hash_is_the_flows_and_the_seeds() {
        let first = Sample::v4(10);
        let later = Sample { seq: 9, id: 9, class: 3, hops: 9, flags: flag::FIN, ..Sample::v4(1000) };
        assert_eq!(hash(&first, 1), hash(&later, 1));
        assert_ne!(hash(&first, 1), hash(&first, 2));
        let (source, destination) = (first.destination, first.source);
        let back = Sample { source, destination, ports: (first.ports.1, first.ports.0), ..first.clone() };
        assert_ne!(hash(&first, 1), hash(&back, 1));
        let udp = Sample { udp: true, ..first.clone() };
        assert_ne!(hash(&first, 1), hash(&udp, 1));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(sample in any_tcp(40)) {
            let mut packet = sample.bytes(Fill::Full);
            packet.extend([0; 6]);
            let header = Header::read(&packet).unwrap();
            let FlowKey { protocol, source, destination, source_port, destination_port } = header.key;
            prop_assert_eq!((protocol, source, destination), (6, sample.source, sample.destination));
            prop_assert_eq!((source_port, destination_port), sample.ports);
            prop_assert_eq!(header.dscp.0 << 2, sample.class & 0xfc);
            prop_assert_eq!(header.label.map_or(0, NonZeroU32::get), if sample.is_v4() { 0 } else { sample.label });
            let tcp = header.tcp.unwrap();
            prop_assert_eq!((tcp.seq, tcp.ack, tcp.payload), (sample.seq, sample.ack, sample.payload.len() as u32));
        }

        #[test]
        fn cut_short_it_is_malformed(sample in any_tcp(40), at: prop::sample::Index) {
            let packet = sample.bytes(Fill::Full);
            prop_assert!(Header::read(&packet[..at.index(packet.len())]).is_err());
        }

        #[test]
        fn nothing_panics((_, frame) in any_frame()) {
            match Header::read(&frame) {
                Ok(header) => {
                    header.hash(1);
                    prop_assert!(header.tcp.is_none_or(|tcp| tcp.payload as usize + 40 <= frame.len()));
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
