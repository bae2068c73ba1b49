//! Congestion experienced, written into a packet on its way.
use super::checksum::Sum;

/// Sets the ECN field to CE (RFC 3168 §5), whatever it was: whether a packet may be marked is the queue's to know.
///
/// An IPv4 header's checksum is brought up to date (RFC 1624 §3, equation 3); IPv6 has none. What is not IP stays as it is.
pub fn mark_ce(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(header) = packet.first_chunk_mut::<20>() else { return };
            let old = u16::from_be_bytes([header[0], header[1]]);
            header[1] |= 3;
            let new = u16::from_be_bytes([header[0], header[1]]);
            // Already marked. The equation would turn a checksum of 0xffff, which is wrong but means zero, into 0.
            if new == old {
                return;
            }
            let checksum = u16::from_be_bytes([header[10], header[11]]);
            // HC' = ~(~HC + ~m + m'). Equation 4, HC - ~m - m', would make 0xffff of a checksum of zero.
            let checksum = Sum::default().less(checksum).less(old).word(new).checksum();
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(6) => {
            // The traffic class lies across the first two bytes; its lowest bits are bits 4 and 5 of the second.
            if let Some(header) = packet.first_chunk_mut::<40>() {
                header[1] |= 0x30;
            }
        }
        _ => {}
    }
}
