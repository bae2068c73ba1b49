//! Storage for everything queued: a slab of metadata with intrusive links, and FIFO chains of ids through it.
//!
//! After the slab has grown to a run's peak nothing allocates again. Payloads stay with the driver, in a `Vec` of its
//! own that [`PacketId::index`] indexes.
use crate::packet::PacketMeta;
use crate::rate::Bytes;
use alloc::vec::Vec;
use core::mem::{MaybeUninit, size_of};
use core::num::NonZeroU32;

/// A packet in a [`Pool`]. `Option<PacketId>` is four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketId(NonZeroU32);

impl PacketId {
    fn from_index(index: usize) -> PacketId {
        let n = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        PacketId(n.expect("a pool holds fewer than 2^32 packets"))
    }

    /// Position in the pool, and in the driver's payload table.
    #[inline]
    pub const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Slot {
    meta: PacketMeta,
    /// Next in the chain, or next free slot; stale once the packet is out of the chain.
    next: Option<PacketId>,
    /// Previous in the chain, towards its head. The head's own is stale: clearing it would cost a cache miss per packet.
    prev: Option<PacketId>,
}

// One cache line. With a hundred thousand packets in queues each access is a cache miss, and in an unaligned slot often two.
const _: () = assert!(size_of::<Slot>() == 64);

/// A slab of packet metadata.
#[derive(Debug, Default)]
pub struct Pool {
    slots: Vec<Slot>,
    free: Option<PacketId>,
    live: usize,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Pool {
        Pool::default()
    }

    /// Makes room for this number of packets at once. Returns the memory, which holds nothing yet.
    pub fn reserve(&mut self, packets: usize) -> &mut [MaybeUninit<impl Sized + use<>>] {
        self.slots.reserve(packets);
        self.slots.spare_capacity_mut()
    }

    /// Stores a packet; reuses the slot freed last.
    #[inline]
    pub fn insert(&mut self, meta: PacketMeta) -> PacketId {
        self.insert_like(&meta, |_| {})
    }

    /// The same for a copy of these metadata that is changed in its slot.
    #[inline(always)]
    pub fn insert_like(&mut self, meta: &PacketMeta, change: impl FnOnce(&mut PacketMeta)) -> PacketId {
        self.live += 1;
        let id = self.free.unwrap_or_else(|| self.add_slot());
        let slot = &mut self.slots[id.index()];
        self.free = slot.next;
        *slot = Slot { meta: *meta, next: None, prev: None };
        change(&mut slot.meta);
        id
    }

    #[cold]
    #[inline(never)]
    fn add_slot(&mut self) -> PacketId {
        self.slots.push(Slot { meta: PacketMeta::default(), next: None, prev: None });
        PacketId::from_index(self.slots.len() - 1)
    }

    /// Takes a packet out. It must be in no chain.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> PacketMeta {
        self.live -= 1;
        let slot = &mut self.slots[id.index()];
        slot.next = self.free;
        self.free = Some(id);
        slot.meta
    }

    /// A packet's metadata.
    #[inline]
    pub fn meta(&self, id: PacketId) -> &PacketMeta {
        &self.slots[id.index()].meta
    }

    /// A packet's metadata, to change.
    #[inline]
    pub fn meta_mut(&mut self, id: PacketId) -> &mut PacketMeta {
        &mut self.slots[id.index()].meta
    }

    /// The stored packets without these, in the order of their slots. Allocates a byte for each slot.
    pub fn without(&self, others: impl Iterator<Item = PacketId>) -> impl Iterator<Item = PacketId> {
        let mut left_out = alloc::vec![false; self.slots.len()];
        let free = core::iter::successors(self.free, |id| self.slots[id.index()].next);
        free.chain(others).for_each(|id| left_out[id.index()] = true);
        let all = left_out.into_iter().enumerate();
        all.filter(|(_, left_out)| !left_out).map(|(index, _)| PacketId::from_index(index))
    }

    /// Packets stored now.
    pub const fn live(&self) -> usize {
        self.live
    }

    /// Slots there are, used or free: the peak so far.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Memory of the slots.
    pub fn bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>()
    }
}

/// A FIFO of packets through a pool's links, with its length in packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    head: Option<PacketId>,
    tail: Option<PacketId>,
    packets: u32,
    bytes: u64,
}

impl Chain {
    /// An empty chain.
    pub const fn new() -> Chain {
        Chain { head: None, tail: None, packets: 0, bytes: 0 }
    }

    /// Appends at the tail.
    #[inline]
    pub fn push_back(&mut self, id: PacketId, pool: &mut Pool) {
        let slot = &mut pool.slots[id.index()];
        slot.next = None;
        slot.prev = self.tail;
        self.packets += 1;
        self.bytes += u64::from(slot.meta.len);
        match self.tail.replace(id) {
            Some(tail) => pool.slots[tail.index()].next = Some(id),
            None => self.head = Some(id),
        }
    }

    /// Takes the packet at the head.
    #[inline]
    pub fn pop_front(&mut self, pool: &Pool) -> Option<PacketId> {
        self.pop_front_with_meta(pool).map(|(id, _)| id)
    }

    /// The same with its metadata, which costs one lookup for both.
    #[inline]
    pub fn pop_front_with_meta<'a>(&mut self, pool: &'a Pool) -> Option<(PacketId, &'a PacketMeta)> {
        let id = self.head?;
        let slot = &pool.slots[id.index()];
        self.packets -= 1;
        self.bytes -= u64::from(slot.meta.len);
        self.head = slot.next;
        if self.head.is_none() {
            self.tail = None;
        }
        Some((id, &slot.meta))
    }

    /// Takes the packet at the tail.
    #[inline]
    pub fn pop_back(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let id = self.tail?;
        let slot = &mut pool.slots[id.index()];
        self.packets -= 1;
        self.bytes -= u64::from(slot.meta.len);
        if self.head == Some(id) {
            *self = Chain::new();
        } else {
            self.tail = slot.prev;
            if let Some(tail) = self.tail {
                pool.slots[tail.index()].next = None;
            }
        }
        Some(id)
    }

    /// Takes a packet out of the middle; it must be in this chain.
    pub fn remove(&mut self, id: PacketId, pool: &mut Pool) {
        if self.head == Some(id) {
            self.pop_front(pool);
        } else if self.tail == Some(id) {
            self.pop_back(pool);
        } else {
            let Slot { meta, next, prev } = pool.slots[id.index()];
            if let (Some(next), Some(prev)) = (next, prev) {
                pool.slots[prev.index()].next = Some(next);
                pool.slots[next.index()].prev = Some(prev);
            }
            self.packets -= 1;
            self.bytes -= u64::from(meta.len);
        }
    }

    /// The packets from head to tail.
    pub fn iter<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = PacketId> + use<'a> {
        core::iter::successors(self.head, |id| pool.slots[id.index()].next)
    }

    /// The packet that would be popped next.
    #[inline]
    pub const fn front(&self) -> Option<PacketId> {
        self.head
    }

    /// The packet that was pushed last.
    #[inline]
    pub const fn back(&self) -> Option<PacketId> {
        self.tail
    }

    /// Packets in it.
    #[inline]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes in it.
    #[inline]
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// Whether it is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.head.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    #[test]
    fn an_optional_id_costs_nothing() {
        assert_eq!(size_of::<Option<PacketId>>(), 4);
    }

    proptest::proptest! {
        #[test]
        fn a_chain_is_a_deque(ops in proptest::collection::vec(0u8..5, 0..200)) {
            let (mut pool, mut chain, mut model) = (Pool::new(), Chain::new(), VecDeque::new());
            for (n, op) in ops.into_iter().enumerate() {
                let taken = match op {
                    0 | 1 => {
                        let len = 40 + n as u32;
                        let id = pool.insert(PacketMeta { len, ..PacketMeta::default() });
                        chain.push_back(id, &mut pool);
                        model.push_back((id, len));
                        continue;
                    }
                    2 => (chain.pop_front(&pool), model.pop_front()),
                    3 if !model.is_empty() => {
                        let middle = model.remove(model.len() / 2);
                        let taken = middle.map(|(id, _)| id);
                        taken.into_iter().for_each(|id| chain.remove(id, &mut pool));
                        (taken, middle)
                    }
                    _ => (chain.pop_back(&mut pool), model.pop_back()),
                };
                assert_eq!(taken.0, taken.1.map(|(id, _)| id));
                if let (Some(id), Some((_, len))) = taken {
                    assert_eq!(pool.remove(id).len, len);
                }
                assert_eq!(chain.packets() as usize, model.len());
                assert_eq!(chain.bytes().0, model.iter().map(|&(_, len)| u64::from(len)).sum::<u64>());
                assert_eq!(pool.live(), model.len());
                let listed: Vec<_> = chain.iter(&pool).collect();
                assert_eq!(listed, model.iter().map(|&(id, _)| id).collect::<Vec<_>>());
            }
            let rest: Vec<_> = core::iter::from_fn(|| chain.pop_front(&pool)).collect();
            assert_eq!(rest, model.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
        }
    }
}
