//! The IP header of a recorded packet, of either version (RFC 791, RFC 8200).
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};
use narrows_core::{Dscp, Ecn};
use narrows_results::packets::Family;

const TTL: u8 = 64;
/// The hosts' network of IPv6, a unique local one (RFC 4193).
const PREFIX: [u8; 8] = [0xfd, 0x6e, 0x61, 0x72, 0x72, 0x77, 0, 0];

/// An IP header without options.
pub(crate) enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

/// What a header says beside its length.
pub(crate) struct Said {
    pub(crate) family: Family,
    /// Numbers of the hosts that send and receive the packet.
    pub(crate) hosts: [u16; 2],
    pub(crate) dscp: Dscp,
    pub(crate) ecn: Ecn,
    pub(crate) protocol: IpNumber,
}

impl Ip {
    /// The header of a packet with `behind` bytes after it; its length field saturates. [`write`](Ip::write) sets the checksum.
    pub(crate) fn new(said: &Said, behind: usize) -> Ip {
        let ecn = match said.ecn {
            Ecn::NotEct => IpEcn::NotEct,
            Ecn::Ect1 => IpEcn::Ect1,
            Ecn::Ect0 => IpEcn::Ect0,
            Ecn::Ce => IpEcn::CongestionExperienced,
        };
        let dscp = IpDscp::try_new(said.dscp.0).unwrap_or_default();
        let [source, destination] = said.hosts;
        match said.family {
            Family::V4 => Ip::V4(Ipv4Header {
                dscp,
                ecn,
                total_len: (behind + Ipv4Header::MIN_LEN).min(usize::from(u16::MAX)) as u16,
                dont_fragment: true,
                time_to_live: TTL,
                protocol: said.protocol,
                source: v4(source),
                destination: v4(destination),
                ..Ipv4Header::default()
            }),
            Family::V6 => Ip::V6(Ipv6Header {
                traffic_class: dscp.value() << 2 | ecn.value(),
                payload_length: behind.min(usize::from(u16::MAX)) as u16,
                next_header: said.protocol,
                hop_limit: TTL,
                source: v6(source),
                destination: v6(destination),
                ..Ipv6Header::default()
            }),
        }
    }

    /// Its own length, bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Ip::V4(ip) => ip.header_len(),
            Ip::V6(_) => Ipv6Header::LEN,
        }
    }

    /// Bytes behind it.
    pub(crate) fn behind(&self) -> usize {
        match self {
            Ip::V4(ip) => usize::from(ip.total_len) - ip.header_len(),
            Ip::V6(ip) => usize::from(ip.payload_length),
        }
    }

    /// The checksum of a segment with this payload.
    pub(crate) fn tcp_checksum(&self, tcp: &TcpHeader, payload: &[u8]) -> u16 {
        let sum = match self {
            Ip::V4(ip) => tcp.calc_checksum_ipv4(ip, payload),
            Ip::V6(ip) => tcp.calc_checksum_ipv6(ip, payload),
        };
        // The length was kept within 64 KiB.
        sum.unwrap_or_default()
    }

    /// The header of a datagram with this payload.
    pub(crate) fn udp(&self, [source, destination]: [u16; 2], payload: &[u8]) -> Option<UdpHeader> {
        let header = match self {
            Ip::V4(ip) => UdpHeader::with_ipv4_checksum(source, destination, ip, payload),
            Ip::V6(ip) => UdpHeader::with_ipv6_checksum(source, destination, ip, payload),
        };
        header.ok()
    }

    /// Writes it.
    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Ip::V4(mut ip) => {
                ip.header_checksum = ip.calc_header_checksum();
                bytes.extend(ip.to_bytes());
            }
            Ip::V6(ip) => bytes.extend(ip.to_bytes()),
        }
    }
}

/// Marks a packet CE, whose first bytes are these. What is no IP packet stays as it is.
pub(crate) fn mark(bytes: &mut [u8]) {
    let header = if let Ok((mut ip, _)) = Ipv4Header::from_slice(bytes) {
        ip.ecn = IpEcn::CongestionExperienced;
        ip.header_checksum = ip.calc_header_checksum();
        ip.to_bytes().to_vec()
    } else if let Ok((mut ip, _)) = Ipv6Header::from_slice(bytes) {
        ip.traffic_class |= IpEcn::CongestionExperienced.value();
        ip.to_bytes().to_vec()
    } else {
        return;
    };
    bytes[..header.len()].copy_from_slice(&header);
}

/// A host's address, in 10.0.0.0/8.
fn v4(host: u16) -> [u8; 4] {
    let [_, a, b, c] = (u32::from(host) + 1).to_be_bytes();
    [10, a, b, c]
}

/// A host's address, in fd6e:6172:7277::/64.
fn v6(host: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[..PREFIX.len()].copy_from_slice(&PREFIX);
    address[12..].copy_from_slice(&(u32::from(host) + 1).to_be_bytes());
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of RFC 1071 over the pseudo-header (RFC 8200 §8.1) and the datagram, which a right checksum makes 0xffff.
    fn sum(bytes: &[u8]) -> u32 {
        let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn a_mark_is_in_the_headers_that_a_transport_made() {
        for family in [Family::V4, Family::V6] {
            let said = |ecn| Said { family, hosts: [0, 1], dscp: Dscp(46), ecn, protocol: IpNumber::TCP };
            let written = |ecn| {
                let mut bytes = Vec::new();
                Ip::new(&said(ecn), 100).write(&mut bytes);
                bytes.extend([7; 30]);
                bytes
            };
            let mut marked = written(Ecn::Ect0);
            mark(&mut marked);
            assert_eq!(marked, written(Ecn::Ce));
        }
        let mut junk = [0xff; 12];
        mark(&mut junk);
        assert_eq!(junk, [0xff; 12]);
    }

    #[test]
    fn an_ipv6_header_says_what_an_ipv4_header_does() {
        let said = Said { family: Family::V6, hosts: [0, 299], dscp: Dscp(46), ecn: Ecn::Ce, protocol: IpNumber::UDP };
        let payload = [1, 2, 3, 4, 5];
        let ip = Ip::new(&said, UdpHeader::LEN + payload.len());
        assert_eq!((ip.len(), ip.behind()), (40, 13));
        let udp = ip.udp([1000, 2000], &payload).expect("it is short");
        let mut bytes = Vec::new();
        ip.write(&mut bytes);
        assert_eq!(
            bytes[..8],
            [0x6b, 0xb0, 0, 0, 0, 13, 17, 64],
            "version, class 46 and CE, label, length, UDP, hop limit"
        );
        assert_eq!(bytes[8..24], [0xfd, 0x6e, 0x61, 0x72, 0x72, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(bytes[38..40], [1, 44]);
        let mut whole = bytes[8..].to_vec();
        whole.extend([0, 0, 0, 13, 0, 0, 0, 17]);
        whole.extend(udp.to_bytes());
        whole.extend(payload);
        assert_eq!(sum(&whole), 0xffff);
    }

    #[test]
    fn a_length_beyond_the_field_is_cut() {
        let said = |family| Said { family, hosts: [0, 1], dscp: Dscp(0), ecn: Ecn::NotEct, protocol: IpNumber::TCP };
        assert_eq!(Ip::new(&said(Family::V4), 70_000).behind(), 65_515);
        assert_eq!(Ip::new(&said(Family::V6), 70_000).behind(), 65_535);
    }
}
