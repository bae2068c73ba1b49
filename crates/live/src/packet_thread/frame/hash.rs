//! A keyed hash of the fields that identify a flow.
use narrows_host::FlowKey;
use std::net::IpAddr;

/// A hash that is the same for both directions of a connection.
pub(crate) fn hash_both_ways(key: &FlowKey, seed: u64) -> u32 {
    let there = (key.source, key.source_port);
    let back = (key.destination, key.destination_port);
    let ((one, one_port), (other, other_port)) = if there < back { (there, back) } else { (back, there) };
    let rest = u64::from(key.protocol) << 32 | u64::from(one_port) << 16 | u64::from(other_port);
    Mix::new(seed).address(one).address(other).word(rest).finish()
}

/// A hash for which nobody without the seed can find flows that collide.
///
/// Each step multiplies two 64-bit numbers and folds the 128-bit product, so every bit of either number affects every bit of the
/// result.
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

/// The first 64 fractional bits of the square roots of 2, 3, 5 and 7, made odd: numbers without a pattern.
const ODD: [u64; 4] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];

#[cfg(test)]
mod tests {
    use super::*;

    fn key(protocol: u8, source: &str, destination: &str, ports: (u16, u16)) -> FlowKey {
        let [source, destination] = [source, destination].map(|address| address.parse().unwrap());
        FlowKey { protocol, source, destination, source_port: ports.0, destination_port: ports.1 }
    }

    #[test]
    fn both_ways_have_one_hash_and_other_flows_another() {
        let ports = [(80, 4000), (4000, 80), (80, 4001)];
        let hosts = [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2"), ("10.0.0.1", "10.0.0.1")];
        for (source, destination) in hosts {
            let keys = ports.map(|ports| key(6, source, destination, ports));
            let hashes = keys.map(|key| hash_both_ways(&key, 7));
            assert_eq!(hashes, keys.map(|key| hash_both_ways(&key.reversed(), 7)));
            // If source and destination are the same, the first two keys are the two directions of one flow.
            assert_eq!(hashes[0] == hashes[1], source == destination);
            assert!(hashes[2] != hashes[0] && hashes[0] != hash_both_ways(&keys[0], 8));
        }
    }

    /// Each input bit flips each output bit in half of all cases.
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
            // 2048, within six standard deviations of 32.
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
