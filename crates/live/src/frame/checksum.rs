//! The Internet checksum (RFC 1071): the ones' complement of the ones' complement sum of 16-bit words.
//!
//! A sum is kept in 64 bits and folded once. In ones' complement there are two zeros; a sum of anything that is not all zeros
//! folds to 0xffff, never to 0, which is why a header's checksum is never 0xffff.
use super::{Malformed, Offload};

/// A running sum of big-endian words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// Adds bytes that start at an even place; an odd one at the end counts as if a zero followed.
    pub(super) fn bytes(self, bytes: &[u8]) -> Sum {
        // The sum is the same in either byte order, up to a swap at the end (RFC 1071 §2 (B)).
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

    /// Takes a word away that has been added: adds its complement (RFC 1624 §3).
    pub(super) fn less(self, word: u16) -> Sum {
        self.word(!word)
    }

    /// Adds the length of a packet's part.
    pub(super) fn length(self, length: usize) -> Sum {
        Sum(self.0 + length as u64)
    }

    /// The sum in 16 bits, not complemented: what a partial checksum's field holds.
    pub(super) fn folded(self) -> u16 {
        fold(self.0)
    }

    /// The checksum.
    pub(super) fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// End-around carries.
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// Computes a checksum that was left to the device, for devices that do not compute any, and says so in the offload header.
/// Nothing is done where none is left over.
///
/// A result of zero is written as 0xffff, which means the same; in UDP zero would mean that there is none (RFC 768).
///
/// # Errors
/// [`Malformed`] when there is no room for the checksum where the header says, or when the packet has to be segmented first.
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

/// Is the checksum's field within the packet?
pub(super) fn check_place(offload: Offload, length: usize) -> Result<(), Malformed> {
    let (start, offset) = (usize::from(offload.csum_start), usize::from(offload.csum_offset));
    if offload.needs_checksum() && start + offset + 2 > length {
        return Err(Malformed::ChecksumPlace { start, offset });
    }
    Ok(())
}
