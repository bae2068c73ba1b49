//! The 5-tuple that identifies a flow.
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A flow's 5-tuple. Ports are zero for protocols without ports, and for fragments, because only the first fragment carries them.
/// An ICMP echo has its identifier in both port fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowKey {
    /// The transport's protocol number (IANA): 6 is TCP.
    pub protocol: u8,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl FlowKey {
    /// The key of the flow's reverse direction.
    #[must_use]
    pub const fn reversed(self) -> FlowKey {
        FlowKey {
            protocol: self.protocol,
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }

    /// The name of its transport: `tcp`.
    pub fn protocol_name(self) -> Cow<'static, str> {
        match self.protocol {
            protocol::TCP => "tcp".into(),
            protocol::UDP => "udp".into(),
            protocol::ICMP => "icmp".into(),
            protocol::ICMP6 => "icmp6".into(),
            protocol::DCCP => "dccp".into(),
            protocol::SCTP => "sctp".into(),
            protocol::UDP_LITE => "udplite".into(),
            other => format!("protocol {other}").into(),
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowKey { protocol: number, source, destination, source_port, destination_port } = *self;
        f.write_str(&self.protocol_name())?;
        if matches!(number, protocol::ICMP | protocol::ICMP6) && source_port != 0 {
            write!(f, " {source} > {destination} id {source_port}")
        } else if (source_port, destination_port) == (0, 0) {
            write!(f, " {source} > {destination}")
        } else {
            let (from, to) = (SocketAddr::new(source, source_port), SocketAddr::new(destination, destination_port));
            write!(f, " {from} > {to}")
        }
    }
}

/// Protocol numbers (IANA).
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// DCCP.
    pub const DCCP: u8 = 33;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// IPsec authentication header.
    pub const AUTHENTICATION: u8 = 51;
    /// ICMPv6.
    pub const ICMP6: u8 = 58;
    /// IPv6 destination options.
    pub const DESTINATION: u8 = 60;
    /// SCTP.
    pub const SCTP: u8 = 132;
    /// IPv6 mobility header.
    pub const MOBILITY: u8 = 135;
    /// UDP-Lite.
    pub const UDP_LITE: u8 = 136;
    /// Host Identity Protocol.
    pub const HIP: u8 = 139;
    /// Shim6.
    pub const SHIM6: u8 = 140;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(protocol: u8, source: &str, destination: &str, ports: (u16, u16)) -> FlowKey {
        let [source, destination] = [source, destination].map(|address| address.parse().unwrap());
        FlowKey { protocol, source, destination, source_port: ports.0, destination_port: ports.1 }
    }

    #[test]
    fn keys_as_people_read_them() {
        let cases = [
            (key(6, "10.0.0.1", "10.0.0.2", (80, 4000)), "tcp 10.0.0.1:80 > 10.0.0.2:4000"),
            (key(17, "fd00::1", "fd00::2", (53, 9)), "udp [fd00::1]:53 > [fd00::2]:9"),
            (key(1, "10.0.0.1", "10.0.0.2", (7, 7)), "icmp 10.0.0.1 > 10.0.0.2 id 7"),
            (key(58, "fd00::1", "fd00::2", (0, 0)), "icmp6 fd00::1 > fd00::2"),
            (key(47, "10.0.0.1", "10.0.0.2", (0, 0)), "protocol 47 10.0.0.1 > 10.0.0.2"),
            (key(17, "10.0.0.1", "10.0.0.2", (0, 0)), "udp 10.0.0.1 > 10.0.0.2"),
        ];
        for (key, text) in cases {
            assert_eq!(key.to_string(), text);
        }
    }

    #[test]
    fn reversed_twice_is_the_same() {
        let key = key(6, "10.0.0.1", "10.0.0.2", (80, 4000));
        assert_eq!(key.reversed().to_string(), "tcp 10.0.0.2:4000 > 10.0.0.1:80");
        assert_eq!(key.reversed().reversed(), key);
    }
}
