//! Changes a bit of a packet, so that its receiver's checksum fails.
use super::{Offload, complete_checksum};

/// Length of an IP header without options, bytes; what follows is covered by the checksum of TCP or UDP.
const IP: [usize; 2] = [20, 40];

/// Changes a bit behind the IP header; `which` chooses it. A checksum that the sender's kernel has left to the device is completed before,
/// or the change would be covered by it. A packet of several segments has no checksum yet: the change is in its IP version, with which no host takes it.
pub fn corrupt(offload: &mut Offload, packet: &mut [u8], which: u64) {
    let header = if packet.first().is_some_and(|first| first >> 4 == 6) { IP[1] } else { IP[0] };
    let is_covered = complete_checksum(offload, packet).is_ok();
    let bits = packet.len().saturating_sub(header) as u64 * 8;
    if is_covered && bits > 0 {
        let bit = which % bits;
        packet[header + (bit / 8) as usize] ^= 1 << (bit % 8);
    } else if let Some(first) = packet.first_mut() {
        *first ^= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_thread::frame::samples::{Fill, Sample};

    #[test]
    fn one_bit_changes_behind_the_ip_header() {
        for (sample, header) in [(Sample::v4(100), 20), (Sample::v6(100), 40)] {
            let before = sample.bytes(Fill::Full);
            for which in [0, 1, 777, u64::MAX] {
                let mut packet = before.clone();
                corrupt(&mut Offload::default(), &mut packet, which);
                let changed: Vec<usize> = (0..packet.len()).filter(|&n| packet[n] != before[n]).collect();
                assert_eq!(changed.len(), 1, "{which}");
                assert!(changed[0] >= header && (packet[changed[0]] ^ before[changed[0]]).is_power_of_two());
            }
        }
        let mut empty = Vec::new();
        corrupt(&mut Offload::default(), &mut empty, 5);
        assert!(empty.is_empty());
    }
}
