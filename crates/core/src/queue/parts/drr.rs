//! Deficit round robin over two lists (RFC 8290 §4.2; Linux `fq_codel`, `fq`; with the second list alone, `sfq`).
//!
//! New flows are served before old ones. The flow at the head is served while its deficit is positive; a flow without credit gets
//! a quantum and goes to the end of the old list. An emptied new flow passes through the old list once, so that a flow of
//! short bursts cannot keep coming back as new. Lists are intrusive: a flow costs twelve bytes here and nothing is allocated
//! when it comes or goes. They are rings, so that moving the head to the end of its own list changes no other flow.
use super::flow_table::SlotId;
use crate::rate::Bytes;
use alloc::vec::Vec;

/// What happens to a new flow that is empty at its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emptied {
    /// It goes to the end of the old list (RFC 8290 §4.2; Linux `fq`).
    ThroughOld,
    /// The same, except that it leaves at once if the old list is empty (Linux `fq_codel`).
    ThroughOldIfOthers,
    /// It leaves at once.
    Leaves,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    deficit: i32,
    /// The next flow of its list; after the last comes the first.
    next: Option<SlotId>,
    listed: bool,
}

const _: () = assert!(size_of::<Member>() <= 12);

#[derive(Clone, Copy, Debug, Default)]
struct List {
    head: Option<SlotId>,
    tail: Option<SlotId>,
}

impl List {
    #[inline]
    fn push_back(&mut self, slot: SlotId, members: &mut [Member]) {
        let head = *self.head.get_or_insert(slot);
        members[slot.index()].next = Some(head);
        if let Some(tail) = self.tail.replace(slot) {
            members[tail.index()].next = Some(slot);
        }
    }

    #[inline]
    fn pop_front(&mut self, members: &mut [Member]) -> Option<SlotId> {
        let slot = self.head?;
        match self.tail {
            Some(tail) if tail != slot => {
                self.head = members[slot.index()].next;
                members[tail.index()].next = self.head;
            }
            _ => *self = List::default(),
        }
        Some(slot)
    }

    /// The flow after this one, unless it is the last.
    #[inline]
    fn behind(&self, slot: SlotId, members: &[Member]) -> Option<SlotId> {
        members[slot.index()].next.filter(|_| self.tail != Some(slot))
    }
}

/// The lists, with every flow's deficit.
#[derive(Clone, Debug)]
pub struct Drr {
    members: Vec<Member>,
    new: List,
    old: List,
    /// How many are on a list.
    listed: u32,
    quantum: i32,
}

impl Drr {
    /// Empty lists. The quantum is at least one byte; otherwise a round would never end.
    pub fn new(quantum: Bytes) -> Drr {
        let quantum = i32::try_from(quantum.0).unwrap_or(i32::MAX).max(1);
        Drr { members: Vec::new(), new: List::default(), old: List::default(), listed: 0, quantum }
    }

    /// Makes room for one more flow, whose slot is the next in order.
    pub fn grow(&mut self) {
        self.members.push(Member::default());
    }

    /// Whether the flow is on one of the lists.
    #[inline]
    pub fn is_listed(&self, slot: SlotId) -> bool {
        self.members[slot.index()].listed
    }

    /// The same for every flow, in the order of slots.
    pub fn are_listed(&self) -> impl Iterator<Item = bool> {
        self.members.iter().map(|member| member.listed)
    }

    /// How many flows are listed.
    #[inline]
    pub fn flows(&self) -> u32 {
        self.listed
    }

    /// Bytes that the flow may still send in this round.
    #[inline]
    pub fn deficit(&self, slot: SlotId) -> i32 {
        self.members[slot.index()].deficit
    }

    /// Sets the flow's deficit.
    #[inline]
    pub fn set_deficit(&mut self, slot: SlotId, deficit: i32) {
        self.members[slot.index()].deficit = deficit;
    }

    /// Bytes that a flow gets in each round.
    #[inline]
    pub fn quantum(&self) -> i32 {
        self.quantum
    }

    /// Lists an unlisted flow at the end of the new ones.
    #[inline]
    pub fn list_new(&mut self, slot: SlotId) {
        debug_assert!(!self.is_listed(slot), "a flow is on one list at most");
        self.members[slot.index()].listed = true;
        self.listed += 1;
        self.new.push_back(slot, &mut self.members);
    }

    /// Lists an unlisted flow at the end of the old ones.
    #[inline]
    pub fn list_old(&mut self, slot: SlotId) {
        debug_assert!(!self.is_listed(slot), "a flow is on one list at most");
        self.members[slot.index()].listed = true;
        self.listed += 1;
        self.old.push_back(slot, &mut self.members);
    }

    /// The flow whose turn it is, after flows without a positive deficit have got their quantum and gone to the end.
    #[inline]
    pub fn next_flow(&mut self) -> Option<SlotId> {
        if self.new.head.is_some()
            && let Some(slot) = self.turn_of_new()
        {
            return Some(slot);
        }
        loop {
            let slot = self.old.head?;
            let member = &mut self.members[slot.index()];
            if member.deficit > 0 {
                return Some(slot);
            }
            member.deficit += self.quantum;
            self.old = List { head: member.next, tail: Some(slot) };
        }
    }

    #[inline(never)]
    fn turn_of_new(&mut self) -> Option<SlotId> {
        while let Some(slot) = self.new.head {
            let member = &mut self.members[slot.index()];
            if member.deficit > 0 {
                return Some(slot);
            }
            member.deficit += self.quantum;
            self.new.pop_front(&mut self.members);
            self.old.push_back(slot, &mut self.members);
        }
        None
    }

    /// Whether the flow at the front is a new one.
    #[inline]
    pub fn turn_is_new(&self) -> bool {
        self.new.head.is_some()
    }

    /// Whether the flow at the front is alone on its list.
    #[inline]
    pub fn turn_is_alone(&self) -> bool {
        let list = self.list_of_next_flow();
        list.head.is_some() && list.head == list.tail
    }

    /// The flow has sent a packet.
    #[inline]
    pub fn charge(&mut self, slot: SlotId, len: u32) {
        let member = &mut self.members[slot.index()];
        member.deficit = member.deficit.saturating_sub_unsigned(len);
    }

    /// The flow whose turn it is has nothing to send. Returns whether it has left the lists.
    #[inline]
    pub fn emptied(&mut self, rule: Emptied) -> bool {
        let stays = self.new.head.is_some()
            && match rule {
                Emptied::ThroughOld => true,
                Emptied::ThroughOldIfOthers => self.old.head.is_some(),
                Emptied::Leaves => false,
            };
        let Some(slot) = self.unlist_next_flow() else { return false };
        if stays {
            self.list_old(slot);
        }
        !stays
    }

    #[inline]
    fn list_of_next_flow(&self) -> &List {
        if self.new.head.is_some() { &self.new } else { &self.old }
    }

    /// Takes the flow whose turn it is off its list.
    #[inline]
    pub fn unlist_next_flow(&mut self) -> Option<SlotId> {
        let list = if self.new.head.is_some() { &mut self.new } else { &mut self.old };
        let slot = list.pop_front(&mut self.members)?;
        self.members[slot.index()].listed = false;
        self.listed -= 1;
        Some(slot)
    }

    /// All listed flows: the new ones in their order, then the old ones.
    pub fn listed(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.walk(&self.new).chain(self.listed_old())
    }

    /// The old flows in their order.
    pub fn listed_old(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.walk(&self.old)
    }

    fn walk<'a>(&'a self, list: &'a List) -> impl Iterator<Item = SlotId> + 'a {
        core::iter::successors(list.head, |&slot| list.behind(slot, &self.members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn slots<const N: usize>(drr: &mut Drr) -> [SlotId; N] {
        core::array::from_fn(|n| {
            drr.grow();
            SlotId::from_index(n)
        })
    }

    #[test]
    fn a_flow_is_served_until_its_deficit_is_used_up() {
        let mut drr = Drr::new(Bytes(3000));
        let [a, b] = slots(&mut drr);
        drr.list_old(a);
        drr.list_old(b);
        let mut served = Vec::new();
        for _ in 0..8 {
            let slot = drr.next_flow().expect("two are listed");
            drr.charge(slot, 1500);
            served.push(slot);
        }
        assert_eq!(served, [a, a, b, b, a, a, b, b]);
    }

    #[test]
    fn new_flows_go_first_and_pass_through_the_old_list() {
        let mut drr = Drr::new(Bytes(1500));
        let [old, new] = slots(&mut drr);
        drr.set_deficit(old, 1);
        drr.list_old(old);
        drr.set_deficit(new, 1500);
        drr.list_new(new);
        assert_eq!(drr.next_flow(), Some(new));
        assert!(!drr.emptied(Emptied::ThroughOldIfOthers), "one more round on the old list");
        assert!(drr.is_listed(new));
        assert_eq!(drr.next_flow(), Some(old));
        assert_eq!(drr.listed().collect::<Vec<_>>(), [old, new]);
    }

    #[test]
    fn an_emptied_new_flow_leaves_when_no_other_waits() {
        for (rule, leaves) in
            [(Emptied::ThroughOld, false), (Emptied::ThroughOldIfOthers, true), (Emptied::Leaves, true)]
        {
            let mut drr = Drr::new(Bytes(1500));
            let [flow] = slots(&mut drr);
            drr.set_deficit(flow, 1);
            drr.list_new(flow);
            assert_eq!(drr.next_flow(), Some(flow));
            assert_eq!(drr.emptied(rule), leaves, "{rule:?}");
            assert_eq!(drr.is_listed(flow), !leaves, "{rule:?}");
        }
    }

    #[test]
    fn a_flow_alone_pays_off_any_debt() {
        let mut drr = Drr::new(Bytes(300));
        let [flow] = slots(&mut drr);
        drr.list_old(flow);
        drr.next_flow();
        drr.charge(flow, 64_000);
        assert_eq!(drr.next_flow(), Some(flow));
        assert!((1..=300).contains(&drr.deficit(flow)));
    }

    #[test]
    fn nobody_listed_nobody_served() {
        let mut drr = Drr::new(Bytes(0));
        assert_eq!(drr.next_flow(), None);
        assert!(!drr.emptied(Emptied::Leaves));
        let [flow] = slots(&mut drr);
        drr.list_old(flow);
        assert_eq!(drr.next_flow(), Some(flow), "a quantum of zero does not loop for ever");
    }
}
