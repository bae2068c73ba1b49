//! Sets congestion experienced (CE) in a packet.
use super::checksum::Sum;

/// Sets the ECN field to CE (RFC 3168 §5), whatever it was; the queue decides whether a packet may be marked.
///
/// The checksum of an IPv4 header is updated (RFC 1624 §3, equation 3); IPv6 has none. A packet that is not IP stays as it is.
pub fn mark_ce(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(header) = packet.first_chunk_mut::<20>() else { return };
            let old = u16::from_be_bytes([header[0], header[1]]);
            header[1] |= 3;
            let new = u16::from_be_bytes([header[0], header[1]]);
            // Already marked. The equation would change a checksum of 0xffff, which is another form of zero, to 0.
            if new == old {
                return;
            }
            let checksum = u16::from_be_bytes([header[10], header[11]]);
            // HC' = ~(~HC + ~m + m'). Equation 4, HC - ~m - m', would change a checksum of zero to 0xffff.
            let checksum = Sum::default().less(checksum).less(old).word(new).checksum();
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(6) => {
            // The traffic class spans the first two bytes; its lowest two bits are bits 4 and 5 of the second byte.
            if let Some(header) = packet.first_chunk_mut::<40>() {
                header[1] |= 0x30;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_thread::frame::Header;
    use crate::packet_thread::frame::samples::{Fill, Sample, any_frame, any_tcp, header_holds};
    use narrows_core::packet::Ecn;
    use proptest::prelude::*;

    /// A header with ECT(0) and this checksum. The identification, which is in no other sum, is chosen to give it.
    fn with_checksum(checksum: u16) -> Vec<u8> {
        let mut packet = Sample { class: 2, id: 0, ..Sample::v4(0) }.bytes(Fill::Full);
        let have = u16::from_be_bytes([packet[10], packet[11]]);
        // The identification subtracts the excess of the checksum: in ones' complement, modulo 0xffff.
        let id = (u32::from(have) + 0xffff - u32::from(checksum)) % 0xffff;
        packet[4..6].copy_from_slice(&(id as u16).to_be_bytes());
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert!(header_holds(&packet));
        packet
    }

    #[test]
    fn from_ect_0_the_checksum_falls_by_one_and_knows_both_zeros() {
        // ECT(0) is 2 and CE is 3, so the sum grows by one. Below 0 comes 0xfffe, because 0xffff is also zero.
        for (before, after) in [(0x1235, 0x1234), (0x0001, 0x0000), (0x0000, 0xfffe), (0xffff, 0xfffe)] {
            let mut packet = with_checksum(before);
            mark_ce(&mut packet);
            assert_eq!(packet[1], 3);
            assert_eq!(u16::from_be_bytes([packet[10], packet[11]]), after, "from {before:#06x}");
            assert!(header_holds(&packet));
        }
    }

    #[test]
    fn a_marked_packet_stays_as_it_is() {
        for sample in [Sample { class: 3, ..Sample::v4(5) }, Sample { class: 3, ..Sample::v6(5) }] {
            let mut packet = sample.bytes(Fill::Full);
            mark_ce(&mut packet);
            assert_eq!(packet, sample.bytes(Fill::Full));
        }
        // With the other form of zero as its checksum, which the equation would change.
        let mut odd = with_checksum(0xffff);
        odd[1] |= 1;
        odd[5] -= 1;
        assert!(header_holds(&odd));
        let before = odd.clone();
        mark_ce(&mut odd);
        assert_eq!(odd, before);
    }

    #[test]
    fn what_is_not_ip_stays_as_it_is() {
        for frame in [vec![], vec![0x45], vec![0x45; 19], vec![0x60; 39], vec![0x55; 60], vec![0x00; 60]] {
            let mut marked = frame.clone();
            mark_ce(&mut marked);
            assert_eq!(marked, frame);
        }
    }

    proptest! {
        #[test]
        fn a_marked_packet_is_the_one_that_was_sent_marked(sample in any_tcp(50)) {
            let mut packet = sample.bytes(Fill::Full);
            mark_ce(&mut packet);
            let marked = Sample { class: sample.class | 3, ..sample.clone() };
            prop_assert_eq!(&packet, &marked.bytes(Fill::Full));
            prop_assert!(sample.verifies(&packet));
            prop_assert_eq!(Header::read(&packet).map(|header| header.ecn), Ok(Ecn::Ce));
        }

        #[test]
        fn nothing_panics((_, mut frame) in any_frame()) {
            let length = frame.len();
            mark_ce(&mut frame);
            prop_assert_eq!(frame.len(), length);
        }
    }
}
