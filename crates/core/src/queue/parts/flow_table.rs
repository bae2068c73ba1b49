//! Buckets of flows by hash, and the slots that hold their state.
//!
//! A bucket costs four bytes until the first packet hashes into it; then it gets a slot, for good, because an AQM's state
//! outlives an empty queue. Slots lie densely in the order of first use, so a table of a million buckets is as quick as a
//! small one when few of them are used. Nothing is allocated per packet.
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::ops::{Index, IndexMut};

/// A flow's slot. `Option<SlotId>` is four bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotId(NonZeroU32);

impl SlotId {
    /// The slot at a position. Tables hold fewer than 2³² − 1 slots: their size is a `u32` parameter.
    #[inline]
    pub const fn from_index(index: usize) -> SlotId {
        SlotId(NonZeroU32::MIN.saturating_add(index as u32))
    }

    /// Position in vectors that are parallel to the slots.
    #[inline]
    pub const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

/// Maps a hash evenly to `0 .. n` without a division (Linux: `reciprocal_scale`). The high bits decide.
#[inline]
pub const fn scale(hash: u32, n: u32) -> u32 {
    ((hash as u64 * n as u64) >> 32) as u32
}

/// Spreads a hash over all 32 bits, and with another `seed` spreads it differently (MurmurHash3's 32-bit finaliser).
#[inline]
pub const fn mix(hash: u32, seed: u32) -> u32 {
    let h = hash ^ seed;
    let h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    let h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// Buckets that each own one flow's state once they have been used.
#[derive(Clone, Debug)]
pub struct FlowTable<F> {
    slot_of: Vec<Option<SlotId>>,
    bucket_of: Vec<u32>,
    flows: Vec<F>,
}

impl<F: Default> FlowTable<F> {
    /// A table of `buckets` buckets, none of them used.
    pub fn new(buckets: u32) -> FlowTable<F> {
        FlowTable { slot_of: alloc::vec![None; buckets as usize], bucket_of: Vec::new(), flows: Vec::new() }
    }

    /// Buckets there are.
    #[inline]
    pub fn buckets(&self) -> u32 {
        self.slot_of.len() as u32
    }

    /// The slot of a bucket, if a packet has come by before.
    #[inline]
    pub fn slot(&self, bucket: u32) -> Option<SlotId> {
        self.slot_of[bucket as usize]
    }

    /// Gives a bucket its slot.
    #[cold]
    pub fn open(&mut self, bucket: u32) -> SlotId {
        let slot = SlotId::from_index(self.flows.len());
        self.flows.push(F::default());
        self.bucket_of.push(bucket);
        self.slot_of[bucket as usize] = Some(slot);
        slot
    }

    /// Every flow that has been seen, in the order of first use.
    pub fn iter(&self) -> impl Iterator<Item = (SlotId, &F)> {
        self.flows.iter().enumerate().map(|(index, flow)| (SlotId::from_index(index), flow))
    }

    /// Every flow that has been seen.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut F> {
        self.flows.iter_mut()
    }

    /// The bucket of a slot.
    #[inline]
    pub fn bucket(&self, slot: SlotId) -> u32 {
        self.bucket_of[slot.index()]
    }
}

impl<F> Index<SlotId> for FlowTable<F> {
    type Output = F;
    #[inline]
    fn index(&self, slot: SlotId) -> &F {
        &self.flows[slot.index()]
    }
}

impl<F> IndexMut<SlotId> for FlowTable<F> {
    #[inline]
    fn index_mut(&mut self, slot: SlotId) -> &mut F {
        &mut self.flows[slot.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_slot_costs_nothing() {
        assert_eq!(size_of::<Option<SlotId>>(), 4);
        assert_eq!(SlotId::from_index(7).index(), 7);
    }

    #[test]
    fn scaling_reaches_every_bucket_and_no_other() {
        for n in [1, 3, 1000, 1024, 1 << 20] {
            assert_eq!(scale(0, n), 0);
            assert_eq!(scale(u32::MAX, n), n - 1);
        }
    }

    #[test]
    fn a_bucket_keeps_its_slot() {
        let mut table: FlowTable<u8> = FlowTable::new(4);
        assert_eq!(table.slot(2), None);
        let slot = table.open(2);
        table[slot] = 9;
        let other = table.open(0);
        assert_ne!(slot, other);
        assert_eq!(table.slot(2), Some(slot));
        assert_eq!((table[slot], table.bucket(slot), table.bucket(other)), (9, 2, 0));
    }
}
