//! Linux's `htb`: a tree of classes. Each has a rate of its own, and borrows from its parent what others leave, up to a ceiling.
//!
//! The rules are those of `sch_htb`. A class has tokens for its rate and for its ceiling, as time. With tokens for both it may send; with tokens
//! for the ceiling alone it may borrow: it sends if a class above it has tokens for its own rate. Classes that send at a level, and those that
//! borrow from the same class there, take turns within a priority, by deficits. A packet is charged to the class that lends and to all above it,
//! and to every class on the way by its ceiling.
//!
//! The root is the link itself. It lends whenever the link asks for a packet, so the link's rate is its rate.
use crate::packet::Dscp;
use crate::pool::PacketId;
use crate::queue::open::DynQueue;
use crate::queue::{Backlog, Ctx, Next, Observer, Queue};
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Most classes of a tree: a set of them is a word.
pub const MOST_CLASSES: usize = 63;
/// Most classes on a way from the root to a leaf, without the root.
pub const MOST_LEVELS: usize = 7;
/// Number of priorities.
pub const PRIORITIES: usize = 8;
/// Tokens are counted over this time at most (`mbuffer`).
const MOST_DEBT: i64 = 60_000_000_000;
/// No time at all.
const NEVER: Time = Time::from_ns(u64::MAX);
/// The end of a round: see [`Round`].
const END: u8 = 64;

/// A class.
pub struct Class {
    /// Its parent, which comes before it; none below the link itself.
    pub parent: Option<usize>,
    /// What it has of its own.
    pub rate: Rate,
    /// What it has at most, with what it borrows.
    pub ceil: Rate,
    /// Bytes that it may send at once at its rate, after a pause.
    pub burst: Bytes,
    /// The same at its ceiling.
    pub cburst: Bytes,
    /// Priority of a leaf: among those that may send, and among those that borrow, the lowest number comes first.
    pub prio: u8,
    /// Bytes that a leaf sends in its turn.
    pub quantum: Bytes,
    /// The queue of a leaf; a class without one is an inner class.
    pub queue: Option<Queue>,
}

/// May a class send?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// By its own rate.
    CanSend,
    /// If a class above it lends.
    MayBorrow,
    /// It is at its ceiling.
    CantSend,
}

/// A token bucket, in time at its rate.
struct Bucket {
    rate: Rate,
    full: i64,
    tokens: i64,
}

impl Bucket {
    fn new(rate: Rate, burst: Bytes) -> Bucket {
        let full = time_of(rate, burst.0);
        Bucket { rate, full, tokens: full }
    }

    /// Takes a packet's tokens after this time.
    fn charge(&mut self, len: u32, passed: i64) {
        let tokens = (self.tokens + passed).min(self.full) - time_of(self.rate, len.into());
        self.tokens = tokens.max(1 - MOST_DEBT);
    }
}

/// The time that these bytes take at a rate, ns; at most half of the largest debt.
fn time_of(rate: Rate, bytes: u64) -> i64 {
    rate.tx_time(Bytes(bytes)).map_or(MOST_DEBT / 2, |time| time.as_ns().min(MOST_DEBT as u64 / 2) as i64)
}

/// Classes that take turns, by their numbers, and whose turn it is. If that class has left, the next higher one has its turn; [`END`] is the end of a round.
#[derive(Clone, Copy)]
struct Round {
    members: u64,
    turn: u8,
}

impl Round {
    const EMPTY: Round = Round { members: 0, turn: END };

    /// The first member from this number on.
    const fn from(self, number: u8) -> u8 {
        if number >= END { END } else { first_of(self.members >> number << number) }
    }

    const fn advance(&mut self) {
        self.turn = if self.turn >= END { END } else { self.from(self.turn + 1) };
    }
}

/// The lowest number of a set; [`END`] if it is empty.
const fn first_of(set: u64) -> u8 {
    set.trailing_zeros() as u8
}

/// A leaf's queue.
struct Leaf {
    queue: Queue,
    prio: u8,
    quantum: i64,
    /// By the level at which it sends.
    deficits: [i64; MOST_LEVELS + 1],
}

struct Node {
    parent: Option<u8>,
    /// 0 for a leaf; the root has the highest, and each inner class one less than its parent.
    level: u8,
    rate: Bucket,
    ceil: Bucket,
    /// When the tokens were counted.
    counted: Time,
    mode: Mode,
    /// When its mode may change, unless it can send.
    until: Time,
    /// Priorities at which it or a class below it has packets.
    activity: u8,
    leaf: Option<Leaf>,
    /// By priority: the classes that borrow from it.
    feeds: [Round; PRIORITIES],
}

/// The tree.
pub struct Htb {
    /// The root is the last one.
    nodes: Vec<Node>,
    /// The leaf of each code point.
    by_dscp: [u8; 64],
    /// By level and priority: the classes that can send.
    rows: [[Round; PRIORITIES]; MOST_LEVELS + 1],
    /// Classes that cannot send by their own rate, and wait for tokens.
    waiting: u64,
    /// The first time at which one of them may.
    next: Time,
}

impl Htb {
    /// A tree. The packets of these code points go to these leaves; all others to the leaf `default`. Numbers are places in `classes`, which has at most
    /// [`MOST_CLASSES`] and on no way more than [`MOST_LEVELS`].
    pub fn new(classes: Vec<Class>, leaves: &[(Dscp, usize)], default: usize) -> Htb {
        let root = classes.len() as u8;
        let mut nodes: Vec<Node> = Vec::with_capacity(classes.len() + 1);
        for class in classes {
            let level = match (&class.queue, class.parent) {
                (Some(_), _) => 0,
                (None, None) => MOST_LEVELS as u8 - 1,
                (None, Some(parent)) => nodes[parent].level - 1,
            };
            let parent = class.parent.map_or(root, |parent| parent as u8);
            nodes.push(Node::new(Some(parent), level, class));
        }
        let link = Class {
            parent: None,
            rate: Rate::ZERO,
            ceil: Rate::ZERO,
            burst: Bytes(0),
            cburst: Bytes(0),
            prio: 0,
            quantum: Bytes(0),
            queue: None,
        };
        nodes.push(Node::new(None, MOST_LEVELS as u8, link));
        let mut by_dscp = [default as u8; 64];
        for &(Dscp(point), leaf) in leaves {
            by_dscp[usize::from(point)] = leaf as u8;
        }
        Htb { nodes, by_dscp, rows: [[Round::EMPTY; PRIORITIES]; MOST_LEVELS + 1], waiting: 0, next: NEVER }
    }

    /// A class and what is above it have packets at these priorities, too (`htb_activate_prios`).
    fn activate(&mut self, mut class: u8, mut priorities: u8) {
        while self.nodes[usize::from(class)].mode == Mode::MayBorrow && priorities != 0 {
            let Some(parent) = self.nodes[usize::from(class)].parent else { break };
            let above = &mut self.nodes[usize::from(parent)];
            for prio in each(priorities) {
                if above.feeds[prio].members != 0 {
                    priorities &= !(1 << prio);
                }
                above.feeds[prio].members |= 1 << class;
            }
            above.activity |= priorities;
            class = parent;
        }
        let node = &self.nodes[usize::from(class)];
        if node.mode == Mode::CanSend {
            let level = usize::from(node.level);
            for prio in each(priorities) {
                self.rows[level][prio].members |= 1 << class;
            }
        }
    }

    /// The opposite (`htb_deactivate_prios`).
    fn deactivate(&mut self, mut class: u8, mut priorities: u8) {
        while self.nodes[usize::from(class)].mode == Mode::MayBorrow && priorities != 0 {
            let Some(parent) = self.nodes[usize::from(class)].parent else { break };
            let above = &mut self.nodes[usize::from(parent)];
            let mut emptied = 0;
            for prio in each(priorities) {
                above.feeds[prio].members &= !(1 << class);
                if above.feeds[prio].members == 0 {
                    emptied |= 1 << prio;
                }
            }
            above.activity &= !emptied;
            (class, priorities) = (parent, emptied);
        }
        let node = &self.nodes[usize::from(class)];
        if node.mode == Mode::CanSend {
            let level = usize::from(node.level);
            for prio in each(priorities) {
                let row = &mut self.rows[level][prio];
                if row.turn == class {
                    row.advance();
                }
                row.members &= !(1 << class);
            }
        }
    }

    /// A leaf's queue has become empty (`htb_deactivate`).
    fn empty(&mut self, leaf: u8) {
        let activity = core::mem::take(&mut self.nodes[usize::from(leaf)].activity);
        self.deactivate(leaf, activity);
    }

    /// Sets a class's mode by its tokens after this time (`htb_change_class_mode`), and when it may change.
    fn set_mode(&mut self, class: u8, passed: i64, now: Time) {
        let node = &self.nodes[usize::from(class)];
        let (mode, lacks) = node.mode_after(passed);
        let (before, activity) = (node.mode, node.activity);
        if mode != before {
            if before != Mode::CantSend {
                self.deactivate(class, activity);
            }
            self.nodes[usize::from(class)].mode = mode;
            if mode != Mode::CantSend {
                self.activate(class, activity);
            }
        }
        if mode == Mode::CanSend {
            self.waiting &= !(1 << class);
        } else {
            self.wait(class, now + Span::ns(lacks.max(1) as u64));
        }
    }

    fn wait(&mut self, class: u8, until: Time) {
        self.waiting |= 1 << class;
        self.nodes[usize::from(class)].until = until;
        self.next = self.next.min(until);
    }

    /// Sets the modes of classes that have waited long enough (`htb_do_events`).
    fn wake(&mut self, now: Time) {
        if now < self.next {
            return;
        }
        for class in each_of(self.waiting) {
            let node = &self.nodes[usize::from(class)];
            if node.until <= now {
                self.set_mode(class, node.passed(now), now);
            }
        }
        let until = |class: u8| self.nodes[usize::from(class)].until;
        self.next = each_of(self.waiting).map(until).min().unwrap_or(NEVER);
    }

    /// The leaf whose turn it is in this row (`htb_lookup_leaf`).
    fn leaf(&mut self, level: usize, prio: usize) -> Option<u8> {
        let mut above: [Option<u8>; MOST_LEVELS + 1] = [None; MOST_LEVELS + 1];
        let mut depth = 0;
        loop {
            let round = self.round(level, prio, above[depth]);
            if round.members == 0 {
                return None;
            }
            round.turn = round.from(round.turn);
            if round.turn == END {
                round.turn = first_of(round.members);
                if depth > 0 {
                    depth -= 1;
                    self.round(level, prio, above[depth]).advance();
                }
                continue;
            }
            let class = round.turn;
            if self.nodes[usize::from(class)].level == 0 {
                return Some(class);
            }
            depth += 1;
            above[depth] = Some(class);
        }
    }

    /// A row, or below it the classes that borrow from a class.
    fn round(&mut self, level: usize, prio: usize, above: Option<u8>) -> &mut Round {
        match above {
            None => &mut self.rows[level][prio],
            Some(class) => &mut self.nodes[usize::from(class)].feeds[prio],
        }
    }

    /// The turn of a leaf that sent at this level has ended.
    fn rotate(&mut self, leaf: u8, level: usize, prio: usize) {
        let above = if level == 0 { None } else { self.nodes[usize::from(leaf)].parent };
        self.round(level, prio, above).advance();
    }

    /// The next packet of a row (`htb_dequeue_tree`). `later` becomes the time at which a queue that paces has one, if it is earlier.
    fn dequeue_row(&mut self, level: usize, prio: usize, later: &mut Time, cx: &mut Ctx<'_>) -> Option<PacketId> {
        let mut paced = 0u64;
        loop {
            let class = self.leaf(level, prio)?;
            if paced & (1 << class) != 0 {
                return None;
            }
            let leaf = self.nodes[usize::from(class)].leaf.as_mut()?;
            let next = leaf.queue.dequeue(cx);
            let is_empty = leaf.queue.backlog().packets == 0;
            if let Next::Packet(id) = next {
                let len = cx.pool.meta(id).len;
                leaf.deficits[level] -= i64::from(len);
                if leaf.deficits[level] < 0 {
                    leaf.deficits[level] += leaf.quantum;
                    self.rotate(class, level, prio);
                }
                if is_empty {
                    self.empty(class);
                }
                self.charge(class, level, len, cx.now);
                return Some(id);
            }
            if is_empty {
                self.empty(class);
            } else {
                if let Next::At(at) = next {
                    *later = at.min(*later);
                }
                paced |= 1 << class;
                self.rotate(class, level, prio);
            }
        }
    }

    /// A packet is charged (`htb_charge_class`).
    fn charge(&mut self, leaf: u8, level: usize, len: u32, now: Time) {
        let mut class = Some(leaf);
        while let Some(number) = class {
            let node = &mut self.nodes[usize::from(number)];
            class = node.parent;
            if class.is_none() {
                return;
            }
            let passed = node.passed(now);
            if usize::from(node.level) >= level {
                node.rate.charge(len, passed);
            } else {
                node.rate.tokens += passed;
            }
            node.ceil.charge(len, passed);
            node.counted = now;
            // A class whose mode stays as it was keeps the time at which it is looked at again.
            if node.mode_after(0).0 != node.mode {
                self.set_mode(number, 0, now);
            }
        }
    }

    fn leaves(&self) -> impl Iterator<Item = &Queue> {
        self.nodes.iter().filter_map(|node| Some(&node.leaf.as_ref()?.queue))
    }
}

impl Node {
    fn new(parent: Option<u8>, level: u8, class: Class) -> Node {
        let (prio, quantum) = (class.prio, class.quantum.0 as i64);
        let leaf = class.queue.map(|queue| Leaf { queue, prio, quantum, deficits: [0; MOST_LEVELS + 1] });
        Node {
            parent,
            level,
            rate: Bucket::new(class.rate, class.burst),
            ceil: Bucket::new(class.ceil, class.cburst),
            counted: Time::ZERO,
            mode: Mode::CanSend,
            until: NEVER,
            activity: 0,
            leaf,
            feeds: [Round::EMPTY; PRIORITIES],
        }
    }

    fn passed(&self, now: Time) -> i64 {
        now.since(self.counted).as_ns().min(MOST_DEBT as u64) as i64
    }

    /// Its mode after this time, and the time that it lacks (`htb_class_mode`).
    fn mode_after(&self, passed: i64) -> (Mode, i64) {
        let [tokens, ceiling] = [&self.rate, &self.ceil].map(|bucket| bucket.tokens + passed);
        if ceiling < 0 {
            (Mode::CantSend, -ceiling)
        } else if tokens >= 0 {
            (Mode::CanSend, 0)
        } else {
            (Mode::MayBorrow, -tokens)
        }
    }
}

/// The numbers of a set of priorities.
fn each(set: u8) -> impl Iterator<Item = usize> {
    each_of(set.into()).map(usize::from)
}

/// The numbers of a set, ascending.
fn each_of(mut set: u64) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let first = first_of(set);
        set &= set.wrapping_sub(1);
        (first < END).then_some(first)
    })
}

impl DynQueue for Htb {
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let class = self.by_dscp[usize::from(cx.pool.meta(id).dscp.0 & 63)];
        let node = &mut self.nodes[usize::from(class)];
        let Some(leaf) = &mut node.leaf else { return };
        leaf.queue.enqueue(id, cx);
        if node.activity == 0 && leaf.queue.backlog().packets > 0 {
            node.activity = 1 << leaf.prio;
            let activity = node.activity;
            self.activate(class, activity);
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        self.wake(cx.now);
        let mut later = NEVER;
        for level in 0..=MOST_LEVELS {
            for prio in 0..PRIORITIES {
                if let Some(id) = self.dequeue_row(level, prio, &mut later, cx) {
                    return Next::Packet(id);
                }
            }
        }
        if self.leaves().all(|queue| queue.backlog().packets == 0) {
            return Next::Empty;
        }
        Next::At(self.next.min(later).max(cx.now + Span::ns(1)))
    }

    fn next_timer(&self) -> Option<Time> {
        self.leaves().filter_map(Queue::next_timer).min()
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        for class in 0..self.nodes.len() {
            let Some(leaf) = &mut self.nodes[class].leaf else { continue };
            if leaf.queue.next_timer().is_some_and(|at| at <= cx.now) {
                leaf.queue.on_timer(cx);
                if leaf.queue.backlog().packets == 0 {
                    self.empty(class as u8);
                }
            }
        }
    }

    /// A leaf's rate is its ceiling, whatever the link's.
    fn on_rate(&mut self, _: Rate, _: &mut Ctx<'_>) {}

    fn backlog(&self) -> Backlog {
        self.leaves().map(Queue::backlog).fold(Backlog::default(), |sum, of| Backlog {
            packets: sum.packets + of.packets,
            bytes: Bytes(sum.bytes.0 + of.bytes.0),
        })
    }

    /// Gauges are of one discipline, and here there are several.
    fn observe(&self, _: &mut dyn Observer) {}
}

impl From<Htb> for Queue {
    fn from(htb: Htb) -> Queue {
        Queue::Custom(Box::new(htb))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketMeta;
    use crate::pool::Pool;
    use crate::queue::{LinkHint, QueueConfig};
    use crate::registry::Registered as _;
    use crate::rng::Rng;
    use alloc::vec;

    const EF: Dscp = Dscp(46);
    const LEN: u32 = 1000;

    fn queue() -> Queue {
        let hint = LinkHint { rate: Rate::mbit(8), rtt: Span::ms(10), mtu: Bytes(LEN.into()) };
        QueueConfig::named("fifo").expect("it is known").build(&hint, Rng::stream(1, "htb"))
    }

    fn class(parent: Option<usize>, rate: u64, ceil: u64) -> Class {
        let [burst, cburst, quantum] = [Bytes(1600), Bytes(1600), Bytes(1000)];
        Class {
            parent,
            rate: Rate::mbit(rate),
            ceil: Rate::mbit(ceil),
            burst,
            cburst,
            prio: 0,
            quantum,
            queue: Some(queue()),
        }
    }

    /// A link of 8 Mbit/s, which carries a byte in a microsecond, asks for a packet once in each packet's time. The leaves of these code points always
    /// have packets. Returns how many each has sent.
    fn shares(mut htb: Htb, busy: &[u8], packets: u64) -> Vec<usize> {
        let (mut pool, mut drops, mut sent) = (Pool::default(), Vec::new(), vec![0; busy.len()]);
        let mut waiting = vec![0; busy.len()];
        for round in 0..packets {
            let now = Time::ZERO + Span::us(round * u64::from(LEN));
            let mut cx = Ctx { now, pool: &mut pool, drops: &mut drops };
            for (n, &point) in busy.iter().enumerate() {
                if waiting[n] == 3 {
                    continue;
                }
                waiting[n] += 1;
                let meta = PacketMeta { arrived: now, len: LEN, dscp: Dscp(point), ..PacketMeta::default() };
                let id = cx.pool.insert(meta);
                htb.enqueue(id, &mut cx);
                assert_eq!(cx.drops.len(), 0, "leaf {n}");
            }
            assert_eq!(htb.backlog().packets as usize, waiting.iter().sum::<usize>());
            match htb.dequeue(&mut cx) {
                Next::Packet(id) => {
                    let point = cx.pool.meta(id).dscp.0;
                    let n = busy.iter().position(|&of| of == point).expect("one of these");
                    (sent[n], waiting[n]) = (sent[n] + 1, waiting[n] - 1);
                    cx.pool.remove(id);
                }
                Next::At(at) => assert!(at > now, "it would be asked for ever"),
                Next::Empty => panic!("there are packets"),
            }
        }
        sent
    }

    #[test]
    fn each_class_has_its_rate_and_what_others_leave() {
        let tree = || Htb::new(vec![class(None, 2, 8), class(None, 6, 8)], &[(EF, 0)], 1);
        let both = shares(tree(), &[EF.0, 0], 1000);
        assert!((248..=252).contains(&both[0]) && both[0] + both[1] == 1000, "a quarter: {both:?}");
        assert_eq!(shares(tree(), &[EF.0], 1000), [1000], "alone it borrows the rest");
    }

    #[test]
    fn a_ceiling_holds_when_others_are_idle() {
        let tree = Htb::new(vec![class(None, 1, 3), class(None, 1, 8)], &[(EF, 0)], 1);
        let sent = shares(tree, &[EF.0], 1000);
        assert!((374..=378).contains(&sent[0]), "three eighths, and the bucket: {sent:?}");
    }

    #[test]
    fn an_inner_class_lends_what_it_has_and_borrows_for_its_leaves() {
        // The office has half, and of it one leaf has half; the other leaf takes what is left there, but not what the third class uses.
        let inner = Class { queue: None, ..class(None, 4, 4) };
        let tree = Htb::new(
            vec![inner, class(Some(0), 2, 8), class(Some(0), 1, 8), class(None, 4, 8)],
            &[(EF, 1), (Dscp(10), 2)],
            3,
        );
        let sent = shares(tree, &[EF.0, 10, 0], 2000);
        assert!((996..=1004).contains(&(sent[0] + sent[1])), "half for the office: {sent:?}");
        assert!((615..=635).contains(&sent[0]), "its rate, and half of what the office has besides: {sent:?}");
        let inner = Class { queue: None, ..class(None, 4, 4) };
        let alone = Htb::new(
            vec![inner, class(Some(0), 2, 8), class(Some(0), 1, 8), class(None, 4, 8)],
            &[(EF, 1), (Dscp(10), 2)],
            3,
        );
        let sent = shares(alone, &[EF.0], 1000);
        assert!((498..=503).contains(&sent[0]), "its parent's ceiling is its own: {sent:?}");
    }

    #[test]
    fn the_lowest_priority_borrows_first() {
        let low = Class { prio: 1, ..class(None, 1, 8) };
        let sent = shares(Htb::new(vec![class(None, 1, 8), low], &[(EF, 0)], 1), &[EF.0, 0], 1000);
        assert!((124..=127).contains(&sent[1]), "it has its rate alone: {sent:?}");
    }

    #[test]
    fn equals_borrow_by_their_quanta() {
        let large = Class { quantum: Bytes(3000), ..class(None, 1, 8) };
        let sent = shares(Htb::new(vec![large, class(None, 1, 8)], &[(EF, 0)], 1), &[EF.0, 0], 4000);
        // Of 8 parts each has one, and six are borrowed, three to one.
        assert!((2730..=2770).contains(&sent[0]), "{sent:?}");
    }

    /// Trees of two levels: nothing is lost, none has more than its ceiling, and the link is idle only if all who have packets are at theirs.
    #[test]
    fn any_tree_keeps_its_ceilings_and_the_link_busy() {
        for seed in 0..200 {
            let mut rng = Rng::stream(seed, "trees");
            let any = |rng: &mut Rng, parent| {
                let (rate, ceil) = (1 + rng.below(2), 3 + rng.below(6));
                let prio = rng.below(3) as u8;
                Class { prio, quantum: Bytes(1 + rng.below(4000)), ..class(parent, rate, ceil) }
            };
            // What its leaves have of their own it has, too: `htb` would let them exceed its ceiling.
            let inner = Class { queue: None, ..class(None, 4, 4 + rng.below(5)) };
            let office = inner.ceil;
            let classes = vec![inner, any(&mut rng, Some(0)), any(&mut rng, Some(0)), any(&mut rng, None)];
            let ceilings = [1, 2, 3].map(|n| classes[n].ceil.as_bps() / 1_000_000);
            let sent = shares(Htb::new(classes, &[(EF, 1), (Dscp(10), 2)], 3), &[EF.0, 10, 0], 2000);
            let most = |mbit: u64| (2000 * mbit / 8 + 4) as usize;
            for (sent, ceiling) in sent.iter().zip(ceilings) {
                assert!(*sent <= most(ceiling), "seed {seed}: {sent} packets at {ceiling} Mbit/s");
            }
            let office = office.as_bps() / 1_000_000;
            assert!(sent[0] + sent[1] <= most(office), "seed {seed}: {sent:?}, together {office} Mbit/s");
            let possible = office.min(ceilings[0] + ceilings[1]) + ceilings[2];
            let least = 1990 * possible.min(8) / 8;
            assert!(sent.iter().sum::<usize>() as u64 >= least, "seed {seed}: {sent:?} of {least}");
        }
    }
}
