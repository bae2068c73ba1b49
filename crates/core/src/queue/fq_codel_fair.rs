//! FQ-CoDel that protects backlogged flows: flows within their share have priority, CoDel's target follows the share, and each
//! flow has a part of the buffer.
//!
//! FQ-CoDel serves new flows before old ones, however much they have sent before. Packets that are always "new" then starve a
//! backlogged flow. And its CoDel sees a standing queue in a flow whose share is one packet every 20 ms.
//!
//! - A flow's tag counts the bytes sent for it. Virtual time is the lowest tag of the backlogged flows in the last round (after
//!   start-time fair queuing: Goyal, Vin, Cheng, 1996). A flow whose tag is less than a quantum ahead of virtual time when it becomes
//!   active has had no more service than any backlogged flow, and is served first. All others wait their turn, as in deficit round
//!   robin. So no flow that has had more service than a backlogged one is served before it.
//! - All newcomers together count as one flow. A packet whose 5-tuple was not seen in the last second goes to a queue that all such
//!   packets share, and that has one flow's turns. A newcomer gets a queue of its own once one of its packets has been sent (not
//!   dropped). It settles, and then counts as a flow, when it has sent for the time `probation` and at least a quantum. The bytes
//!   sent for newcomers while a settled flow waits are one debt, which virtual time pays off at the rate of one share. All newcomers
//!   use the shared queue while the debt is at least what the link sends in the time `ahead`. So many short-lived ports together get
//!   no more than one flow does. Each port that becomes a flow costs the newcomers a quantum of their service.
//! - Half the buffer is for full-sized packets, in equal parts among the flows that have them. When the buffer is full, the flow with
//!   most packets beyond its part loses packets; of several, the one with most bytes sent. If the fattest flow always lost, a burst
//!   of flows with one small packet each would push a bulk flow out of a small buffer.
//! - CoDel's target is at least the time in which each waiting flow sends a packet, and the last packet of a flow's own queue is
//!   spared: where a share is less than a packet per target, a queue is no standing queue.
//!
//! The law: over a time T a settled flow that stays backlogged gets its max-min share of T − `ahead`, where a 5-tuple counts
//! as a flow when it sends for longer than `probation` and is sent a quantum, and all others together count as one. With a
//! probation of a round trip short transfers count as flows, as with FQ-CoDel; with a longer one they are slower, and ports
//! must last longer to be flows.
//!
//! A flow's own queue waits until its packets have left the newcomers', so that order is kept. A bucket belongs to a 5-tuple
//! until the flow has been silent for `memory`. A flow whose two buckets are both taken stays a newcomer.
use super::parts::codel_law::{self, CodelLaw, CodelState, FlowSource, Sqrt};
use super::parts::drain_rate::DrainRate;
use super::parts::drr::{Drr, Emptied};
use super::parts::flow_table::{FlowTable, SlotId, mix, scale};
use super::parts::limits::{MAX_FLOWS, MAX_LIMIT, MAX_QUANTUM, MIN_QUANTUM};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Bytes, Chain, DropReason, FlowId, PacketId, Rate, Rng, Span, Time};
use core::cmp::Reverse;

params! {
    /// FQ-CoDel's parameters, and those of the protection from starvation.
    pub struct FqCodelFairParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(10_240), from Packets(1), to MAX_LIMIT;
        /// Buckets that flows are hashed into.
        pub flows: u32 = 1024, from 1, to MAX_FLOWS;
        /// Bytes that a flow may send per round.
        pub quantum: Bytes = Bytes(1514), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Acceptable standing sojourn time, where a flow's share allows it.
        pub target: Span = codel_law::TARGET, from codel_law::MIN_TIME, to codel_law::MAX_INTERVAL;
        /// How long the sojourn time may stay above the target: about the largest round trip.
        pub interval: Span = codel_law::INTERVAL, from codel_law::MIN_TIME, to codel_law::MAX_INTERVAL;
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = true;
        /// Most packets of new flows that wait.
        pub newcomers: Packets = Packets(256), from Packets(1), to MAX_LIMIT;
        /// Silence after which a flow counts as new again.
        pub memory: Span = Span::s(1), from Span::ms(1), to Span::s(3600);
        /// How long a sending flow counts as new: about the largest round trip.
        pub probation: Span = codel_law::INTERVAL, from Span::ZERO, to Span::s(3600);
        /// How far new flows together may be ahead of one flow's share, in time of the link.
        pub ahead: Span = Span::ms(500), from Span::ZERO, to Span::s(3600);
    }
}

/// One flow's queue.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    chain: Chain,
    codel: CodelState,
    /// Bytes sent for it, as virtual time counts them.
    tag: u64,
    /// The 5-tuple that the bucket belongs to.
    owner: Option<u32>,
    /// When the owner last sent.
    seen: Time,
    /// The queue waits until this number of newcomers' packets have left; the last of them is the owner's.
    until: u64,
    /// What the owner counts as.
    standing: Standing,
    /// The flow of the last arrival, for records.
    flow: FlowId,
}

/// A newcomer or a flow.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// When it came, and bytes it has been sent.
    Newcomer {
        since: Time,
        sent: u32,
    },
    Settled,
}

impl Default for Standing {
    fn default() -> Standing {
        Standing::Newcomer { since: Time::ZERO, sent: 0 }
    }
}

impl Flow {
    #[inline]
    const fn is_settled(&self) -> bool {
        matches!(self.standing, Standing::Settled)
    }
}

/// Flow queues by share.
pub struct FqCodelFair {
    limit: u32,
    newcomers_limit: u32,
    memory: Span,
    probation: Span,
    ahead: Span,
    law: CodelLaw,
    /// Buckets for flows, and one more for newcomers.
    table: FlowTable<Flow>,
    newcomers: SlotId,
    drr: Drr,
    /// Flows that are listed, and those of them that have settled.
    waiting: u32,
    settled_waiting: u32,
    /// The lowest tag of the backlogged flows in the last round, bytes.
    virtual_time: u64,
    round: Round,
    /// Newcomers that have been queued, and that have left again.
    came: u64,
    left: u64,
    /// What newcomers have been sent, beyond one share, while settled flows waited, bytes.
    debt: u64,
    /// When the last packet left.
    departed: Time,
    drain: DrainRate,
    link_rate: Rate,
    total: Backlog,
}

/// A round over the old flows.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Whose turn it was at the start.
    first: Option<SlotId>,
    /// Whose turn it was last.
    last: Option<SlotId>,
    /// Others have had a turn since.
    others: bool,
    /// Turns, each of as many packets as it takes.
    turns: u32,
    /// Lowest tag so far.
    lowest: Option<u64>,
}

impl FqCodelFair {
    /// The two buckets that a 5-tuple may have.
    #[inline]
    fn buckets(&self, hash: u32) -> [u32; 2] {
        let flows = self.table.buckets() - 1;
        [scale(hash, flows), scale(mix(hash, 1), flows)]
    }

    /// Does the bucket's flow have packets in either queue, or was it active lately?
    #[inline]
    fn is_owned(&self, slot: SlotId, now: Time) -> bool {
        let flow = &self.table[slot];
        let in_use = flow.chain.packets() > 0 || flow.until > self.left || self.drr.is_listed(slot);
        in_use || (flow.owner.is_some() && now.since(flow.seen) <= self.memory)
    }

    /// The bucket that belongs to a 5-tuple, or last did.
    #[inline]
    fn bucket_of(&self, hash: u32, buckets: [u32; 2]) -> Option<SlotId> {
        buckets.iter().filter_map(|&bucket| self.table.slot(bucket)).find(|&slot| self.table[slot].owner == Some(hash))
    }

    /// The queue for a packet: its flow's own, or the newcomers'.
    #[inline]
    fn classify(&mut self, hash: u32, now: Time) -> SlotId {
        let buckets = self.buckets(hash);
        let Some(slot) = self.bucket_of(hash, buckets).filter(|&slot| self.is_owned(slot, now)) else {
            self.register(hash, buckets, now);
            return self.newcomers;
        };
        self.table[slot].seen = now;
        self.settle(slot, now);
        if self.has_own_queue(slot) {
            return slot;
        }
        if self.has_room() {
            self.table[slot].until = self.came + 1;
        }
        self.newcomers
    }

    /// A newcomer has a queue of its own once one of its packets has been sent, and while newcomers may be ahead. Packets that wait
    /// there are not overtaken. While its queue is listed, even if empty, packets join it, and are moved at its turn if necessary: in
    /// the shared queue they would be overtaken by packets that join the own queue later. So no queue that must wait is listed.
    #[inline]
    fn has_own_queue(&self, slot: SlotId) -> bool {
        let flow = &self.table[slot];
        match flow.standing {
            Standing::Settled => true,
            Standing::Newcomer { sent, .. } => {
                let stays = || !flow.chain.is_empty() || self.drr.is_listed(slot);
                (sent > 0 && !self.is_overdrawn()) || stays()
            }
        }
    }

    /// Whether there is room among the newcomers.
    #[inline]
    fn has_room(&self) -> bool {
        self.table[self.newcomers].chain.packets() < self.newcomers_limit
    }

    /// Whether flows wait, while newcomers have used up `ahead`.
    #[inline]
    fn is_overdrawn(&self) -> bool {
        self.settled_waiting > 0 && self.debt > 0 && self.debt >= self.rate().bytes_in(self.ahead).0
    }

    /// The link's rate, as measured.
    #[inline]
    fn rate(&self) -> Rate {
        self.drain.rate().unwrap_or(self.link_rate)
    }

    /// A newcomer that has lasted for `probation`, with a quantum sent, becomes a flow. This is checked when it sends: the time that it
    /// waits in the shared queue does not count.
    #[inline]
    fn settle(&mut self, slot: SlotId, now: Time) {
        let Standing::Newcomer { since, sent } = self.table[slot].standing else { return };
        if sent >= self.drr.quantum().unsigned_abs() && now.since(since) >= self.probation {
            self.table[slot].standing = Standing::Settled;
            self.settled_waiting += u32::from(self.drr.is_listed(slot));
        }
    }

    /// Gives a newcomer a bucket of its own, from its next packet on, if one is free.
    #[cold]
    fn register(&mut self, hash: u32, buckets: [u32; 2], now: Time) {
        // Without room in the shared queue its packet is dropped, and is not its first.
        if !self.has_room() {
            return;
        }
        for bucket in buckets {
            let slot = match self.table.slot(bucket) {
                Some(slot) => slot,
                None => {
                    self.drr.grow();
                    self.table.open(bucket)
                }
            };
            if !self.is_owned(slot, now) {
                let flow = &mut self.table[slot];
                (flow.owner, flow.seen, flow.until) = (Some(hash), now, self.came + 1);
                flow.standing = Standing::Newcomer { since: now, sent: 0 };
                return;
            }
        }
    }

    /// Lists a flow that was idle: among the first if it is within its share.
    #[inline]
    fn join(&mut self, slot: SlotId) {
        let quantum = self.drr.quantum();
        // Backlogged flows move in steps of a quantum, so a flow that is ahead by less is not ahead.
        if self.table[slot].tag <= self.virtual_time + u64::from(quantum.unsigned_abs()) {
            self.drr.set_deficit(slot, quantum);
            self.drr.list_new(slot);
        } else {
            // A short pause does not pay off a debt.
            self.drr.set_deficit(slot, quantum + self.drr.deficit(slot).min(0));
            self.drr.list_old(slot);
        }
        self.waiting += 1;
        self.settled_waiting += u32::from(self.table[slot].is_settled());
    }

    /// Takes the flow whose turn it is off the list.
    #[inline]
    fn leave(&mut self, slot: SlotId) {
        self.drr.emptied(Emptied::Leaves);
        self.waiting -= 1;
        self.settled_waiting -= u32::from(self.table[slot].is_settled());
    }

    /// Moves the packets of the newcomer whose turn it is to the shared queue, because newcomers must not get further ahead.
    #[cold]
    fn park(&mut self, slot: SlotId, cx: &mut Ctx<'_>) {
        self.leave(slot);
        while let Some(id) = self.table[slot].chain.pop_front(cx.pool) {
            if self.has_room() {
                self.came += 1;
                self.table[slot].until = self.came;
                self.table[self.newcomers].chain.push_back(id, cx.pool);
            } else {
                self.total.packets -= 1;
                self.total.bytes -= cx.pool.meta(id).bytes();
                cx.drop_packet(id, DropReason::FlowLimit);
            }
        }
        if !self.drr.is_listed(self.newcomers) {
            self.join(self.newcomers);
        }
    }

    /// Settles a flow that newcomers keep from sending.
    #[inline]
    fn settle_next(&mut self, now: Time) {
        if self.settled_waiting == 0 && self.drr.turn_is_new() {
            let next = self.drr.listed_old().find(|&slot| slot != self.newcomers);
            if let Some(slot) = next {
                self.settle(slot, now);
            }
        }
    }

    /// Counts the bytes sent.
    #[inline]
    fn charge(&mut self, slot: SlotId, len: u32) {
        self.drr.charge(slot, len);
        let flow = &mut self.table[slot];
        flow.tag = flow.tag.max(self.virtual_time) + u64::from(len);
        if let Standing::Newcomer { sent, .. } = &mut flow.standing {
            *sent = sent.saturating_add(len);
            // Service while no flow waits costs no other flow anything.
            if self.settled_waiting > 0 {
                self.debt += u64::from(len);
            }
        }
    }

    /// A newcomer has left, after `bytes` of it were sent: its flow's own queue may go on.
    #[inline]
    fn let_go(&mut self, hash: u32, bytes: u32) {
        self.left += 1;
        let Some(slot) = self.bucket_of(hash, self.buckets(hash)) else { return };
        let flow = &mut self.table[slot];
        if let Standing::Newcomer { sent, .. } = &mut flow.standing {
            *sent = sent.saturating_add(bytes);
        }
        if flow.until <= self.left && flow.chain.packets() > 0 && !self.drr.is_listed(slot) {
            self.join(slot);
        }
    }

    /// An old flow has its turn. After a round, virtual time becomes the lowest tag of that round.
    #[inline]
    fn follow(&mut self, slot: SlotId) {
        let tag = self.table[slot].tag.max(self.virtual_time);
        let round = &mut self.round;
        let first = *round.first.get_or_insert(slot);
        let comes_again = slot == first && round.others;
        round.others |= slot != first;
        round.turns += u32::from(round.last.replace(slot) != Some(slot));
        let least = round.lowest.map_or(tag, |lowest| lowest.min(tag));
        round.lowest = Some(least);
        // If the first flow of the round has gone, the round ends after as many turns as flows wait.
        if comes_again || self.drr.turn_is_alone() || round.turns >= self.waiting {
            let before = self.virtual_time;
            self.virtual_time = before.max(least);
            self.debt = self.debt.saturating_sub(self.virtual_time - before);
            self.round = Round::default();
        }
    }

    /// CoDel's law at the present share: the target is at least the time in which each waiting flow sends a packet.
    #[inline]
    fn law_now(&self) -> CodelLaw {
        let round = self.rate().tx_time(self.law.mtu).map_or(Span::ZERO, |time| time * u64::from(self.waiting));
        let target = self.law.target.max(round);
        CodelLaw { target, interval: self.law.interval.max(target), ..self.law }
    }

    /// A flow's bytes in full-sized packets; zero for a newcomer.
    #[inline]
    fn filled(&self, slot: SlotId) -> u32 {
        let (flow, mtu) = (&self.table[slot], self.law.mtu.0.max(1));
        let filled = if flow.is_settled() { (flow.chain.bytes().0 + mtu / 2) / mtu } else { 0 };
        u32::try_from(filled).unwrap_or(u32::MAX)
    }

    /// The flow that loses packets when the buffer is full, and its number of packets beyond its part: the flow with most of them, and of
    /// several the one with most bytes sent. Half the buffer is for full-sized packets. Flows have equal parts of it, and the flows
    /// with two or more such packets have at least half of it together, however many flows have one.
    fn victim(&self) -> Option<(SlotId, u32)> {
        let filled = self.drr.listed().map(|slot| self.filled(slot)).filter(|&filled| filled > 0);
        let (filling, backlogged) = filled.fold((0, 0), |(all, several), n| (all + 1, several + u32::from(n > 1)));
        let part = self.limit / 2 / filling.min(2 * backlogged).max(1);
        let flows = self.drr.listed().filter(|&slot| !self.table[slot].chain.is_empty());
        let pays = flows.max_by_key(|&slot| {
            let beyond = self.beyond(slot, part);
            // If no flow is beyond its part, the one with most packets in it loses.
            let spared = if beyond == 0 { self.filled(slot) } else { 0 };
            (beyond, Reverse(spared), self.table[slot].tag)
        });
        pays.map(|slot| (slot, self.beyond(slot, part)))
    }

    /// The number of a flow's packets minus its bytes in full-sized packets, of which at most `part` are subtracted.
    #[inline]
    fn beyond(&self, slot: SlotId, part: u32) -> u32 {
        self.table[slot].chain.packets().saturating_sub(self.filled(slot).min(part))
    }

    /// Drops from the heads of queues until the backlog is within the limit. In a small buffer one packet at a time: a search is short there,
    /// and a window is only a few packets.
    #[cold]
    fn overflow(&mut self, cx: &mut Ctx<'_>) {
        while self.total.packets > self.limit {
            let Some((slot, beyond)) = self.victim() else { break };
            let batch = (beyond / 2).clamp(1, (self.limit / BATCH).clamp(1, BATCH));
            for _ in 0..batch {
                let Some(id) = self.table[slot].chain.pop_front(cx.pool) else { break };
                let meta = *cx.pool.meta(id);
                self.total.packets -= 1;
                self.total.bytes -= meta.bytes();
                cx.drop_packet(id, DropReason::Evicted);
                if slot == self.newcomers {
                    self.let_go(meta.hash, 0);
                }
            }
            self.table[slot].codel.add_drops(batch);
        }
    }
}

impl QueueDiscipline for FqCodelFair {
    type Params = FqCodelFairParams;
    const SPLITS_SEGMENTS: bool = true;

    /// With one bucket, too: a flow that finds it taken has the newcomers' turns.
    fn isolates(_: &FqCodelFairParams) -> bool {
        true
    }

    fn new(p: &FqCodelFairParams, link: &LinkHint, _rng: Rng) -> FqCodelFair {
        let mut table = FlowTable::new(p.flows + 1);
        let mut drr = Drr::new(p.quantum);
        drr.grow();
        let newcomers = table.open(p.flows);
        FqCodelFair {
            limit: p.limit.0,
            newcomers_limit: p.newcomers.0,
            memory: p.memory,
            probation: p.probation,
            ahead: p.ahead,
            law: CodelLaw {
                target: p.target,
                interval: p.interval,
                mtu: link.mtu,
                ecn: p.ecn,
                ce_threshold: None,
                stale_first_above: false,
                sqrt: Sqrt::Newton,
            },
            table,
            newcomers,
            drr,
            waiting: 0,
            settled_waiting: 0,
            virtual_time: 0,
            round: Round::default(),
            came: 0,
            left: 0,
            debt: 0,
            departed: Time::ZERO,
            drain: DrainRate::default(),
            link_rate: link.rate,
            total: Backlog::default(),
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let meta = *cx.pool.meta(id);
        if self.total.packets == 0 && self.debt > 0 {
            // While the link is idle, debts are paid off as if at one flow's share.
            let idle = self.rate().bytes_in(cx.now.since(self.departed));
            self.debt = self.debt.saturating_sub(idle.0);
        }
        let slot = self.classify(meta.hash, cx.now);
        if slot == self.newcomers && !self.has_room() {
            return cx.drop_packet(id, DropReason::FlowLimit);
        }
        self.came += u64::from(slot == self.newcomers);
        let flow = &mut self.table[slot];
        flow.flow = meta.flow;
        flow.chain.push_back(id, cx.pool);
        self.total.packets += 1;
        self.total.bytes += meta.bytes();
        if flow.until <= self.left && !self.drr.is_listed(slot) {
            self.join(slot);
        }
        if self.total.packets > self.limit {
            self.overflow(cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        while let Some(slot) = self.drr.next_flow() {
            debug_assert!(self.table[slot].until <= self.left, "packets of the flow's wait among the newcomers");
            self.settle_next(cx.now);
            if slot != self.newcomers && !self.table[slot].is_settled() && self.is_overdrawn() {
                self.park(slot, cx);
                continue;
            }
            let law = self.law_now();
            let dropped = cx.drops.len();
            let Flow { chain, codel, .. } = &mut self.table[slot];
            let next = codel.dequeue(&law, &mut FlowSource { chain, total: &mut self.total, spares_own: true }, cx);
            if slot == self.newcomers {
                for n in dropped..cx.drops.len() {
                    self.let_go(cx.pool.meta(cx.drops[n].0).hash, 0);
                }
            }
            let Some((id, _)) = next else {
                self.leave(slot);
                continue;
            };
            let meta = *cx.pool.meta(id);
            if !self.drr.turn_is_new() {
                self.follow(slot);
            }
            self.charge(slot, meta.len);
            self.departed = cx.now;
            self.drain.on_departure(meta.len, self.total.packets > 0, cx.now);
            if slot == self.newcomers {
                self.let_go(meta.hash, meta.len);
            }
            return Next::Packet(id);
        }
        Next::Empty
    }

    fn on_rate(&mut self, rate: Rate, _cx: &mut Ctx<'_>) {
        self.link_rate = rate;
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, out: &mut dyn Observer) {
        let followed = out.followed();
        out.gauge("flows", f64::from(self.waiting));
        out.gauge("newcomers_packets", f64::from(self.table[self.newcomers].chain.packets()));
        out.gauge("newcomers_debt_bytes", self.debt as f64);
        out.gauge("target_ms", self.law_now().target.as_ms_f64());
        for slot in self.drr.listed().filter(|&slot| slot != self.newcomers) {
            let flow = &self.table[slot];
            if flow.flow >= followed {
                continue;
            }
            out.flow_gauge(flow.flow, "queue_packets", f64::from(flow.chain.packets()));
            let ahead = flow.tag as f64 - self.virtual_time as f64;
            out.flow_gauge(flow.flow, "ahead_bytes", ahead);
        }
    }
}

/// Most packets that one overflow drops (Linux `fq_codel`: `drop_batch`).
const BATCH: u32 = 64;

#[cfg(test)]
mod tests;
