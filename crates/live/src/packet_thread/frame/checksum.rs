//! The Internet checksum (RFC 1071): the ones' complement of the ones' complement sum of 16-bit words.
//!
//! A sum is accumulated in 64 bits and folded once. Ones' complement has two forms of zero. A sum folds to 0 only if every byte is
//! zero, and to 0xffff otherwise. A header is never all zeros, so its checksum is never 0xffff.
use super::{Malformed, Offload};

/// A running sum of big-endian words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// Adds bytes that start at an even offset. If their number is odd, a zero byte follows.
    pub(super) fn bytes(self, bytes: &[u8]) -> Sum {
        // The sum is the same in either byte order, except for a final swap (RFC 1071 §2 (B)).
        let (words, rest) = bytes.as_chunks::<4>();
        let sum = words.iter().map(|&word| u64::from(u32::from_ne_bytes(word))).sum::<u64>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        let native = fold(sum + u64::from(u32::from_ne_bytes(last)));
        self.word(u16::from_be_bytes(native.to_ne_bytes()))
    }

    /// Adds a word.
    pub(super) fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// Subtracts a word that was added, by adding its complement (RFC 1624 §3).
    pub(super) fn less(self, word: u16) -> Sum {
        self.word(!word)
    }

    /// Adds a length.
    pub(super) fn length(self, length: usize) -> Sum {
        Sum(self.0 + length as u64)
    }

    /// The sum in 16 bits, not complemented, as a partial checksum's field holds it.
    pub(super) fn folded(self) -> u16 {
        fold(self.0)
    }

    /// The checksum.
    pub(super) fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Folds a sum into 16 bits with end-around carries.
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// Completes a partial checksum, for devices that compute none, and clears the offload header's flag. Other packets stay as they
/// are.
///
/// A result of zero is written as 0xffff, which has the same value; in UDP a zero would mean that there is no checksum (RFC 768).
///
/// # Errors
/// [`Malformed`] when the checksum's field is outside the packet, or when the packet has to be segmented first.
pub fn complete_checksum(offload: &mut Offload, packet: &mut [u8]) -> Result<(), Malformed> {
    if offload.is_super() {
        return Err(Malformed::Segmentation { kind: offload.gso_type, packet: "a packet whose checksum is asked for" });
    }
    if !offload.needs_checksum() {
        return Ok(());
    }
    check_place(*offload, packet.len())?;
    let (start, offset) = (usize::from(offload.csum_start), usize::from(offload.csum_offset));
    let covered = &mut packet[start..];
    let checksum = match Sum::default().bytes(covered).checksum() {
        0 => 0xffff,
        other => other,
    };
    covered[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
    *offload = Offload { flags: offload.flags & !Offload::NEEDS_CSUM, csum_start: 0, csum_offset: 0, ..*offload };
    Ok(())
}

/// Whether the checksum's field is within the packet.
pub(super) fn check_place(offload: Offload, length: usize) -> Result<(), Malformed> {
    let (start, offset) = (usize::from(offload.csum_start), usize::from(offload.csum_offset));
    if offload.needs_checksum() && start + offset + 2 > length {
        return Err(Malformed::ChecksumPlace { start, offset });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_thread::frame::samples::{Fill, Sample, any_frame, any_tcp, ones_sum};
    use proptest::prelude::*;

    #[test]
    fn the_sum_of_rfc_1071_section_3() {
        let sum = Sum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), 0xddf2);
        assert_eq!(sum.checksum(), 0x220d);
    }

    #[test]
    fn the_update_of_rfc_1624_section_4() {
        // A word changes from 0x5555 to 0x3285 under a checksum of 0xdd2f; RFC 1141's equation gives 0xffff.
        assert_eq!(Sum::default().less(0xdd2f).less(0x5555).word(0x3285).checksum(), 0x0000);
    }

    #[test]
    fn a_whole_super_packet_of_ones_does_not_overflow() {
        assert_eq!(Sum::default().bytes(&[0xff; 65_535]).folded(), ones_sum(&[0xff; 65_535]));
    }

    #[test]
    fn what_is_complete_stays_as_it_is() {
        let sample = Sample::v4(10);
        let (mut offload, mut packet) =
            (Offload { flags: Offload::DATA_VALID, ..Offload::default() }, sample.bytes(Fill::Full));
        assert_eq!(complete_checksum(&mut offload, &mut packet), Ok(()));
        assert_eq!((offload.flags, packet), (Offload::DATA_VALID, sample.bytes(Fill::Full)));
    }

    #[test]
    fn super_packets_and_places_outside_are_refused() {
        let sample = Sample::v4(12);
        let mut packet = sample.bytes(Fill::Partial);
        let error = complete_checksum(&mut sample.gso(Fill::Partial, 5), &mut packet).unwrap_err();
        assert!(matches!(error, Malformed::Segmentation { kind: 1, .. }), "{error}");
        let mut offload = Offload { csum_start: 50, csum_offset: 0, ..sample.offload(Fill::Partial) };
        let error = complete_checksum(&mut offload, &mut packet[..51]).unwrap_err();
        assert_eq!(error, Malformed::ChecksumPlace { start: 50, offset: 0 });
        assert_eq!(complete_checksum(&mut offload, &mut packet[..52]), Ok(()));
    }

    #[test]
    fn a_udp_checksum_of_zero_is_written_as_ones() {
        // All words but one are arbitrary; that one makes the sum 0xffff.
        let mut sample = Sample { udp: true, payload: vec![0, 0], ..Sample::v4(0) };
        let rest = !ones_sum(&{
            let bytes = sample.bytes(Fill::Partial);
            bytes[sample.transport()..].to_vec()
        });
        sample.payload = rest.to_be_bytes().to_vec();
        let (mut offload, mut packet) = (sample.offload(Fill::Partial), sample.bytes(Fill::Partial));
        complete_checksum(&mut offload, &mut packet).unwrap();
        assert_eq!(packet[26..28], [0xff, 0xff]);
        assert!(sample.verifies(&packet));
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_slow_way(bytes: Vec<u8>, word: u16) {
            prop_assert_eq!(Sum::default().bytes(&bytes).folded(), ones_sum(&bytes));
            let both = [&word.to_be_bytes(), &bytes[..]].concat();
            prop_assert_eq!(Sum::default().word(word).bytes(&bytes).folded(), ones_sum(&both));
        }

        #[test]
        fn completed_checksums_verify(sample in any_tcp(100)) {
            let (mut offload, mut packet) = (sample.offload(Fill::Partial), sample.bytes(Fill::Partial));
            prop_assert_eq!(complete_checksum(&mut offload, &mut packet), Ok(()));
            prop_assert!(sample.verifies(&packet));
            prop_assert_eq!(offload, Offload::default());
        }

        #[test]
        fn nothing_panics((mut offload, mut frame) in any_frame()) {
            let _ = complete_checksum(&mut offload, &mut frame);
            offload.gso_type = 0;
            let _ = complete_checksum(&mut offload, &mut frame);
        }
    }
}
