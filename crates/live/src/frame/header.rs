//! What a queue may know of a packet.
//!
//! Lengths must agree with one another; checksums and the contents of options are the receiver's business.
use super::flow::{FlowKey, Mix};
use super::layout::{Layout, UDP_HEADER, Version, chunk};
use super::{Malformed, flag, protocol};
use narrows_core::packet::{Dscp, Ecn, Role};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

/// A packet's headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its flow.
    pub key: FlowKey,
    /// IPv6's flow label (RFC 6437), if the sender set one.
    pub label: Option<NonZeroU32>,
    /// The ECN field.
    pub ecn: Ecn,
    /// The code point.
    pub dscp: Dscp,
    /// TCP's part; fragments have none.
    pub tcp: Option<TcpHeader>,
    /// What follows IP's headers, and UDP's, bytes.
    rest: u32,
}

/// A TCP segment's header (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpHeader {
    /// Sequence number of the first byte, modulo 2³².
    pub seq: u32,
    /// What is expected next, modulo 2³².
    pub ack: u32,
    /// Payload, bytes.
    pub payload: u32,
    /// What it is as an acknowledgment.
    pub role: Role,
    /// TSval and TSecr (RFC 7323 §3.2), in ticks of either host's clock.
    pub timestamps: Option<(u32, u32)>,
    /// Opens the connection.
    pub syn: bool,
    /// The last one with payload.
    pub fin: bool,
}

impl Header {
    /// Reads the headers of an IP packet. Bytes after what IP says is its end are not looked at.
    ///
    /// # Errors
    /// [`Malformed`] says which header is cut short or gives itself an impossible length.
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
        Ok(Header { key, label, ecn: ecn(class), dscp: Dscp(class >> 2), tcp, rest })
    }

    /// What TCP or UDP carry, bytes; of other protocols all that IP carries.
    pub const fn payload(&self) -> u32 {
        match self.tcp {
            Some(tcp) => tcp.payload,
            None => self.rest,
        }
    }

    /// The flow's hash: of the 5-tuple, or of the addresses and the flow label where there is one (RFC 6438 §3, RFC 6437), so
    /// that fragments and encrypted transports stay with their flow.
    pub fn hash(&self, seed: u64) -> u32 {
        let FlowKey { protocol, source, destination, source_port, destination_port } = self.key;
        let mix = Mix::new(seed).address(source).address(destination);
        let rest = match self.label {
            // Above all bits of a 5-tuple: a label is nobody's port.
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

/// Ports, or what stands for them.
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
        // Echo reply and echo (RFC 792), echo request and reply (RFC 4443 §4).
        protocol::ICMP => echo([0, 8]),
        protocol::ICMP6 => echo([128, 129]),
        _ => Ok((0, 0)),
    }
}

/// Are there blocks of selective acknowledgments (RFC 2018 §3), and which timestamps (RFC 7323 §3.2)? What cannot be read ends
/// the list, as it does for receivers.
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

/// The lowest two bits of the traffic class (RFC 3168 §5).
const fn ecn(class: u8) -> Ecn {
    match class & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
