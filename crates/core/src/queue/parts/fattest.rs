//! Finds the flow with most bytes queued, while a discipline overflows.
//!
//! Linux scans all buckets per overflow, which costs more with every bucket; a flood of small flows then pays for a scan per
//! packet. This is a heap instead, with the same answer: most bytes, and of several the lowest bucket. It is filled at the
//! first overflow and cleared when the queue has become short, so that a queue that does not overflow costs one branch.
//!
//! Keys may be too large but never too small: an enqueue raises a flow's key at once, a dequeue does not lower it; a key is
//! corrected when it comes to the top. A key that is correct at the top is the largest backlog there is.
use super::flow_table::SlotId;
use crate::rate::Bytes;
use alloc::vec::Vec;
use core::num::NonZeroU32;

#[derive(Clone, Copy, Debug)]
struct Node {
    bytes: Bytes,
    bucket: u32,
    slot: SlotId,
}

impl Node {
    /// Most bytes first; of several the lowest bucket, as a scan would find it.
    #[inline]
    fn before(&self, other: &Node) -> bool {
        (self.bytes, other.bucket) > (other.bytes, self.bucket)
    }
}

/// A heap of flows by backlog; empty until it is armed.
#[derive(Clone, Debug, Default)]
pub struct Fattest {
    armed: bool,
    heap: Vec<Node>,
    /// By slot: its node's position plus one.
    at: Vec<Option<NonZeroU32>>,
}

impl Fattest {
    /// Whether it is in use, so that enqueues have to be reported.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    /// Starts to track backlogs.
    pub fn arm(&mut self) {
        self.armed = true;
    }

    /// Clears it.
    pub fn disarm(&mut self) {
        self.armed = false;
        for node in self.heap.drain(..) {
            self.at[node.slot.index()] = None;
        }
    }

    /// Whether the flow's key is this large already. An enqueue then need not be reported.
    #[inline]
    pub fn covers(&self, slot: SlotId, bytes: Bytes) -> bool {
        let position = self.at.get(slot.index()).copied().flatten();
        let node = position.and_then(|n| self.heap.get(n.get() as usize - 1));
        node.is_some_and(|node| node.bytes >= bytes)
    }

    /// A flow has `bytes` queued; called once when armed, and then after every enqueue.
    pub fn raise(&mut self, slot: SlotId, bucket: u32, bytes: Bytes) {
        if self.at.len() <= slot.index() {
            self.at.resize(slot.index() + 1, None);
        }
        let node = Node { bytes, bucket, slot };
        match self.position(slot) {
            Some(n) if self.heap[n].bytes >= bytes => {}
            Some(n) => {
                self.heap[n] = node;
                self.sift_up(n);
            }
            None => {
                self.heap.push(node);
                self.sift_up(self.heap.len() - 1);
            }
        }
    }

    /// The flow with the largest backlog; `bytes` returns a flow's present one.
    pub fn find(&mut self, bytes: impl Fn(SlotId) -> Bytes) -> Option<SlotId> {
        loop {
            let top = *self.heap.first()?;
            let now = bytes(top.slot);
            if now == top.bytes && now > Bytes::ZERO {
                return Some(top.slot);
            }
            if now == Bytes::ZERO {
                self.heap.swap_remove(0);
                self.at[top.slot.index()] = None;
                if self.heap.is_empty() {
                    return None;
                }
            } else {
                self.heap[0].bytes = now;
            }
            self.sift_down();
        }
    }

    fn position(&self, slot: SlotId) -> Option<usize> {
        self.at[slot.index()].map(|n| n.get() as usize - 1)
    }

    fn settle(&mut self, n: usize) {
        self.at[self.heap[n].slot.index()] = NonZeroU32::new(n as u32 + 1);
    }

    fn sift_up(&mut self, mut n: usize) {
        while n > 0 {
            let parent = (n - 1) / 2;
            if !self.heap[n].before(&self.heap[parent]) {
                break;
            }
            self.heap.swap(n, parent);
            self.settle(n);
            n = parent;
        }
        self.settle(n);
    }

    fn sift_down(&mut self) {
        let mut n = 0;
        loop {
            let children = 2 * n + 1..(2 * n + 3).min(self.heap.len());
            let best = children.reduce(|a, b| if self.heap[b].before(&self.heap[a]) { b } else { a });
            match best {
                Some(child) if self.heap[child].before(&self.heap[n]) => {
                    self.heap.swap(n, child);
                    self.settle(n);
                    n = child;
                }
                _ => break,
            }
        }
        self.settle(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn it_finds_what_a_scan_finds(ops in proptest::collection::vec((0usize..9, 0u64..6, 0u8..4), 1..300)) {
            let mut backlog = [0u64; 9];
            let mut fattest = Fattest::default();
            fattest.arm();
            for (flow, bytes, op) in ops {
                // Buckets run against the order of slots, so that ties are decided by the bucket.
                let bucket = |flow: usize| 8 - flow as u32;
                match op {
                    0 | 1 => {
                        backlog[flow] += bytes;
                        let (slot, bytes) = (SlotId::from_index(flow), Bytes(backlog[flow]));
                        if !fattest.covers(slot, bytes) {
                            fattest.raise(slot, bucket(flow), bytes);
                        }
                    }
                    2 => backlog[flow] = backlog[flow].saturating_sub(bytes),
                    _ => {
                        let most = backlog.iter().copied().max().filter(|&most| most > 0);
                        let scan = most.and_then(|most| (0..9).rev().find(|&flow| backlog[flow] == most));
                        let found = fattest.find(|slot| Bytes(backlog[slot.index()]));
                        assert_eq!(found.map(SlotId::index), scan);
                    }
                }
            }
            fattest.disarm();
            assert_eq!(fattest.find(|_| Bytes(1)), None);
        }
    }
}
