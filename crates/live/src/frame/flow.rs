//! Which packets belong together.
use super::protocol;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A flow's 5-tuple. Ports are zero in protocols that have none and in fragments, of which only the first could tell; an ICMP
/// echo's identifier stands for both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowKey {
    /// The transport's protocol number (IANA): 6 is TCP.
    pub protocol: u8,
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The port that it comes from.
    pub source_port: u16,
    /// The port that it goes to.
    pub destination_port: u16,
}

impl FlowKey {
    /// The key of the packets that come back.
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
}

impl FlowKey {
    /// A hash that the packets that come back share.
    pub fn hash_both_ways(&self, seed: u64) -> u32 {
        let there = (self.source, self.source_port);
        let back = (self.destination, self.destination_port);
        let ((one, one_port), (other, other_port)) = if there < back { (there, back) } else { (back, there) };
        let rest = u64::from(self.protocol) << 32 | u64::from(one_port) << 16 | u64::from(other_port);
        Mix::new(seed).address(one).address(other).word(rest).finish()
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowKey { protocol: number, source, destination, source_port, destination_port } = *self;
        match number {
            protocol::TCP => f.write_str("tcp")?,
            protocol::UDP => f.write_str("udp")?,
            protocol::ICMP => f.write_str("icmp")?,
            protocol::ICMP6 => f.write_str("icmp6")?,
            protocol::DCCP => f.write_str("dccp")?,
            protocol::SCTP => f.write_str("sctp")?,
            protocol::UDP_LITE => f.write_str("udplite")?,
            other => write!(f, "protocol {other}")?,
        }
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

/// A hash under which nobody who does not know the seed finds flows that collide.
///
/// Each step multiplies two 64-bit numbers and folds the 128-bit product: every bit of either reaches every bit of the result.
pub(super) struct Mix(u64);

impl Mix {
    pub(super) fn new(seed: u64) -> Mix {
        Mix(fold(seed ^ ODD[0], ODD[1]))
    }

    pub(super) fn word(self, word: u64) -> Mix {
        Mix(fold(self.0 ^ word ^ ODD[2], self.0.rotate_left(32) ^ ODD[3]))
    }

    pub(super) fn address(self, address: IpAddr) -> Mix {
        match address {
            IpAddr::V4(v4) => self.word(u64::from(u32::from(v4))),
            IpAddr::V6(v6) => {
                let all = u128::from(v6);
                self.word((all >> 64) as u64).word(all as u64)
            }
        }
    }

    pub(super) fn finish(self) -> u32 {
        (fold(self.0 ^ ODD[1], ODD[0]) >> 32) as u32
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// The fractional parts of the square roots of 2, 3, 5 and 7, in 64 bits, made odd: numbers without a pattern.
const ODD: [u64; 4] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];

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

    #[test]
    fn both_ways_have_one_hash_and_other_flows_another() {
        let ports = [(80, 4000), (4000, 80), (80, 4001)];
        let hosts = [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2"), ("10.0.0.1", "10.0.0.1")];
        for (source, destination) in hosts {
            let keys = ports.map(|ports| key(6, source, destination, ports));
            let hashes = keys.map(|key| key.hash_both_ways(7));
            assert_eq!(hashes, keys.map(|key| key.reversed().hash_both_ways(7)));
            // Between a host and itself the first two are one flow's two ways.
            assert_eq!(hashes[0] == hashes[1], source == destination);
            assert!(hashes[2] != hashes[0] && hashes[0] != keys[0].hash_both_ways(8));
        }
    }

    /// Each bit of what goes in changes each bit of what comes out in half of all cases.
    #[test]
    fn every_bit_reaches_every_bit() {
        const CASES: u64 = 4096;
        for bit in 0..64 {
            let mut changes = [0u32; 32];
            for case in 0..CASES {
                let hash = |word: u64| Mix::new(case).word(7).word(word).finish();
                let different = hash(case) ^ hash(case ^ 1 << bit);
                for (place, count) in changes.iter_mut().enumerate() {
                    *count += different >> place & 1;
                }
            }
            // 2048 with a standard deviation of 32: six of them.
            for (place, count) in changes.into_iter().enumerate() {
                assert!(count.abs_diff(2048) < 6 * 32, "bit {bit} to {place}: {count} of {CASES}");
            }
        }
    }

    #[test]
    fn neighbouring_ports_spread_like_random_numbers() {
        // 65 536 flows in 1024 buckets: chi-square with 1023 degrees of freedom has a standard deviation of √2046 = 45.
        for seed in 0..8 {
            let mut buckets = [0u32; 1024];
            for port in 0..=u16::MAX {
                buckets[Mix::new(seed).word(u64::from(port) << 16 | 80).finish() as usize % 1024] += 1;
            }
            let chi: f64 = buckets.iter().map(|&count| (f64::from(count) - 64.0).powi(2) / 64.0).sum();
            assert!((chi - 1023.0).abs() < 5.0 * 45.0, "seed {seed}: {chi}");
        }
    }
}
