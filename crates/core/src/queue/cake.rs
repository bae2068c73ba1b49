//! CAKE (Høiland-Jørgensen, Täht, Morton 2018; Linux `sch_cake`). Shaper, tins, host isolation and COBALT in one.
//!
//! - `shaper`: `bandwidth` in deficit mode, packets counted with overhead, minimum size and cells. Without it the link
//!   sets the pace, and CAKE only chooses the packet.
//! - `tins`: traffic classes by code point. A tin has priority up to its share of the rate, and beyond it the rest that
//!   others leave; without a rate, tins take turns by weight.
//! - `flows`: in each tin 1024 queues in sets of eight, served by DRR++; `hosts` have equal shares before their flows do.
//! - `cobalt_law`(super::parts::cobalt_law) on each queue, with the tin's times.
//! - `ack_filter`; overflow drops from the head of the fattest queue of all tins.
//!
//! Deviates: no `autorate-ingress`, `nat`, `fwmark`; packets of several segments are always taken apart (`split-gso`). Overhead
//! is added to the length on the link (`raw`'s base). `flows` and `ack_filter` list their own deviations.
mod ack_filter;
mod flows;
mod hosts;
mod shaper;
#[cfg(test)]
mod tests;
mod tins;

pub use ack_filter::AckFilter;
pub use flows::FlowMode;
pub use tins::Diffserv;

use super::parts::cobalt_law::Packet;
use super::parts::codel_law::{MAX_INTERVAL, MIN_TIME};
use super::parts::fattest::Fattest;
use super::parts::flow_table::SlotId;
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::framing::{Atm, Framing};
use crate::params::Auto;
use crate::{Bytes, DropReason, Dscp, PacketId, Rate, Rng, Span, Time};
use alloc::vec::Vec;
use flows::{QUEUES, Tin};
use shaper::{Pace, Shaper, TRUESIZE};
use tins::Times;

params! {
    /// CAKE's parameters, with `tc`'s names and defaults.
    pub struct CakeParams {
        /// Rate to shape to; `auto`: none, the link decides (`tc`: `unlimited`).
        pub bandwidth: Auto<Rate> = Auto::Auto, from Auto::Auto, to Auto::Is(Rate::gbit(1000));
        /// Tins and the code points in them.
        pub diffserv: Diffserv = Diffserv::Diffserv3;
        /// Which packets share a queue, and between which hosts the link is shared.
        pub flow_mode: FlowMode = FlowMode::TripleIsolate;
        /// Largest usual round trip; CoDel's interval. The target is a twentieth.
        pub rtt: Span = Span::ms(100), from MIN_TIME, to MAX_INTERVAL;
        /// Drop acknowledgments that are replaced by later ones.
        pub ack_filter: AckFilter = AckFilter::Off;
        /// Bytes that the link adds to each packet, for the shaper.
        pub overhead: Bytes = Bytes(0), from Bytes(0), to Bytes(256);
        /// Smallest number of bytes that a packet takes on the link, overhead included, for the shaper.
        pub mpu: Bytes = Bytes(0), from Bytes(0), to Bytes(256);
        /// Coding of the link layer: ATM cells, 64b/65b coding.
        pub atm: Atm = Atm::Noatm;
        /// Clear the code point of each packet, after it has chosen the tin.
        pub wash: bool = false;
        /// Count dropped packets as received, because the bottleneck is before the shaper.
        pub ingress: bool = false;
        /// Maximum queue length in bytes, with the 576 bytes that Linux counts for each packet; `auto`: four times rate × RTT, at least 4 MiB, at
        /// most 10 240 full-sized packets.
        pub memory_limit: Auto<Bytes> = Auto::Auto, from Auto::Auto, to Auto::Is(Bytes(1 << 40));
    }
}

/// `tc`: the target is the interval's twentieth, in each of its presets.
const TARGET_SHARE: u64 = 20;
/// Packets that are let wait when nothing else is said (Linux `cake_init`).
const LIMIT: u64 = 10_240;
/// Least memory beside a rate (Linux `cake_reconfigure`).
const MIN_MEMORY: u64 = 4 << 20;

/// Tins of flow queues behind a shaper.
pub struct Cake {
    diffserv: Diffserv,
    framing: Framing,
    shaper: Option<Shaper>,
    ack_filter: AckFilter,
    wash: bool,
    ingress: bool,
    memory_limit: u64,
    /// Memory in use.
    memory: u64,
    tins: Vec<Tin>,
    /// Whose turn it is among tins when nothing is shaped.
    current: usize,
    total: Backlog,
    fattest: Fattest,
    rng: Rng,
}

/// A tin's queue, as the search for the fattest numbers it.
fn slot(tin: usize, place: u16) -> SlotId {
    SlotId::from_index(tin * QUEUES + usize::from(place))
}

impl Cake {
    /// Puts a packet into its tin's queue.
    fn place(&mut self, tin: usize, id: PacketId, cx: &mut Ctx<'_>) -> u16 {
        let meta = cx.pool.meta(id);
        let bytes = meta.bytes();
        let place = self.tins[tin].classify(meta);
        let (was_empty, tin) = (self.total.packets == 0, &mut self.tins[tin]);
        if tin.backlog.packets == 0 {
            tin.schedule.restart(cx.now);
            if let Some(shaper) = self.shaper.as_mut().filter(|_| was_empty) {
                shaper.restart(cx.now);
            }
        }
        let flow = tin.flow_mut(place);
        flow.flow = meta.flow;
        flow.chain.push_back(id, cx.pool);
        for backlog in [&mut tin.backlog, &mut self.total] {
            backlog.packets += 1;
            backlog.bytes += bytes;
        }
        self.memory += (bytes + TRUESIZE).0;
        place
    }

    /// A packet has left a chain: books of the tin and of the whole.
    #[inline]
    fn forget(&mut self, tin: usize, bytes: Bytes) {
        for backlog in [&mut self.tins[tin].backlog, &mut self.total] {
            backlog.packets -= 1;
            backlog.bytes -= bytes;
        }
        self.memory -= (bytes + TRUESIZE).0;
    }

    /// Drops an acknowledgment that the packet at the tail of a queue makes redundant.
    #[cold]
    fn filter(&mut self, tin: usize, place: u16, cx: &mut Ctx<'_>) {
        let chain = &mut self.tins[tin].flow_mut(place).chain;
        let Some(id) = ack_filter::superseded(chain, cx.pool, self.ack_filter) else { return };
        chain.remove(id, cx.pool);
        self.dropped(tin, id, DropReason::Superseded, cx);
    }

    /// Books a packet that has left its chain as dropped.
    fn dropped(&mut self, tin: usize, id: PacketId, reason: DropReason, cx: &mut Ctx<'_>) {
        let meta = cx.pool.meta(id);
        let (bytes, len) = (meta.bytes(), self.framing.length(meta.len));
        self.forget(tin, bytes);
        if self.ingress {
            if let Some(shaper) = &mut self.shaper {
                shaper.charge_drop(len);
            }
            self.charge_tin(tin, len, cx.now);
        }
        cx.drop_packet(id, reason);
    }

    #[inline]
    fn charge_tin(&mut self, tin: usize, len: u32, now: Time) {
        let tin = &mut self.tins[tin];
        if let Some(pace) = tin.law.pace {
            tin.schedule.charge(pace, len, now);
        }
    }

    /// Keeps the heap of fat queues up to date; forgets it once half the memory is free.
    #[cold]
    fn track(&mut self, tin: usize, place: u16) {
        if self.memory < self.memory_limit / 2 {
            self.fattest.disarm();
        } else {
            let slot = slot(tin, place);
            self.fattest.raise(slot, slot.index() as u32, self.tins[tin].flow(place).chain.bytes());
        }
    }

    /// Drops from the fattest queue's head until the memory suffices.
    #[cold]
    fn overflow(&mut self, cx: &mut Ctx<'_>) {
        if !self.fattest.is_armed() {
            self.fattest.arm();
            for (n, tin) in self.tins.iter().enumerate() {
                for place in tin.listed() {
                    let bytes = tin.flow(place).chain.bytes();
                    if bytes > Bytes::ZERO {
                        self.fattest.raise(slot(n, place), slot(n, place).index() as u32, bytes);
                    }
                }
            }
        }
        while self.memory > self.memory_limit {
            let of = |slot: SlotId| (slot.index() / QUEUES, (slot.index() % QUEUES) as u16);
            let tins = &self.tins;
            let found = self.fattest.find(|slot| tins[of(slot).0].flow(of(slot).1).chain.bytes());
            let Some((tin, place)) = found.map(of) else { return };
            let law = self.tins[tin].law.cobalt;
            let flow = self.tins[tin].flow_mut(place);
            let Some(id) = flow.chain.pop_front(cx.pool) else { return };
            flow.cobalt.queue_full(&law, cx.now);
            self.dropped(tin, id, DropReason::MemoryLimit, cx);
        }
    }

    /// The tin to serve; packets wait.
    #[inline]
    fn choose(&mut self, now: Time) -> usize {
        match self.tins.len() {
            1 => 0,
            _ if self.shaper.is_some() => self.scheduled(now),
            _ => self.weighted(),
        }
    }

    /// Of the tins below their threshold the last, which has the least; else the one that is to be next.
    fn scheduled(&self, now: Time) -> usize {
        let (mut best, mut earliest) = (0, None);
        for (n, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active()) {
            let due = tin.schedule.next;
            if due <= now || earliest.is_none_or(|earliest| due <= earliest) {
                (best, earliest) = (n, Some(due));
            }
        }
        best
    }

    /// Deficit round robin among tins.
    fn weighted(&mut self) -> usize {
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.is_active() {
                return self.current;
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.law.tin_quantum;
            }
            self.current = (self.current + 1) % self.tins.len();
        }
    }

    /// A packet from this tin, unless the flow whose turn it is turns out to be empty.
    #[inline]
    fn serve(&mut self, tin: usize, visit_decaying: &mut bool, cx: &mut Ctx<'_>) -> Option<PacketId> {
        let mut place = self.tins[tin].next_flow(visit_decaying, &mut self.rng)?;
        loop {
            let law = self.tins[tin].law.cobalt;
            let bulk = if self.ingress { u32::from(self.tins[tin].population().1) } else { 0 };
            let flow = self.tins[tin].flow_mut(place);
            let Some(id) = flow.chain.pop_front(cx.pool) else {
                self.tins[tin].emptied(place, cx.now);
                return None;
            };
            let meta = cx.pool.meta(id);
            let (bytes, len) = (meta.bytes(), self.framing.length(meta.len));
            let packet = Packet { sojourn: cx.sojourn(id), markable: meta.ecn.is_capable() };
            let verdict = flow.cobalt.judge(&law, packet, cx.now, bulk, || self.rng.next_u32());
            if verdict.mark {
                cx.mark_ce(id);
            }
            // The last packet of a queue may be marked, but is not dropped.
            if !verdict.drop || flow.chain.is_empty() {
                self.forget(tin, bytes);
                self.tins[tin].charge(place, len);
                self.charge_tin(tin, len, cx.now);
                if let Some(shaper) = &mut self.shaper {
                    shaper.charge(len);
                }
                return Some(id);
            }
            self.dropped(tin, id, DropReason::Aqm, cx);
            if self.ingress {
                self.tins[tin].charge(place, len);
                place = self.tins[tin].next_flow(visit_decaying, &mut self.rng)?;
            }
        }
    }
}

impl CakeParams {
    /// Maximum queue length in bytes.
    fn memory(&self, link: &LinkHint) -> Bytes {
        let most = LIMIT * (link.mtu + TRUESIZE).0;
        let automatic = match self.bandwidth.value() {
            Some(rate) => rate.bytes_in(self.rtt * 4).0.max(MIN_MEMORY).min(most),
            None => most,
        };
        self.memory_limit.value().unwrap_or(Bytes(automatic))
    }
}

impl QueueDiscipline for Cake {
    type Params = CakeParams;
    const SPLITS_SEGMENTS: bool = true;

    fn isolates(p: &CakeParams) -> bool {
        !matches!(p.flow_mode, FlowMode::Flowblind | FlowMode::Srchost | FlowMode::Dsthost | FlowMode::Hosts)
    }

    fn shapes_to(params: &CakeParams) -> Option<Rate> {
        params.bandwidth.value()
    }

    fn resolved(params: &CakeParams, link: &LinkHint) -> CakeParams {
        CakeParams { memory_limit: Auto::Is(params.memory(link)), ..params.clone() }
    }

    fn new(params: &CakeParams, link: &LinkHint, rng: Rng) -> Cake {
        let bandwidth = params.bandwidth.value();
        let times = Times { target: params.rtt / TARGET_SHARE, rtt: params.rtt, mtu: link.mtu };
        let laws = params.diffserv.tins(bandwidth, times);
        Cake {
            diffserv: params.diffserv,
            framing: Framing { overhead: params.overhead.0 as u32, mpu: params.mpu.0 as u32, atm: params.atm },
            shaper: bandwidth.map(|rate| Shaper::new(Pace::new(rate.as_bps() / 8))),
            ack_filter: params.ack_filter,
            wash: params.wash,
            ingress: params.ingress,
            memory_limit: params.memory(link).0,
            memory: 0,
            tins: laws.into_iter().map(|law| Tin::new(law, params.flow_mode)).collect(),
            current: 0,
            total: Backlog::default(),
            fattest: Fattest::default(),
            rng,
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        let meta = cx.pool.meta_mut(id);
        let tin = self.diffserv.tin(meta.dscp);
        if self.wash {
            meta.dscp = Dscp(0);
        }
        let place = self.place(tin, id, cx);
        if self.ack_filter != AckFilter::Off {
            self.filter(tin, place, cx);
        }
        self.tins[tin].arrived(place);
        if self.fattest.is_armed() {
            self.track(tin, place);
        }
        if self.memory > self.memory_limit {
            self.overflow(cx);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        if self.total.packets == 0 {
            return Next::Empty;
        }
        // Asked once: what is dropped before the packet that leaves puts off the next, not this one (Linux asks again after
        // an empty flow, and may then have dropped for nothing).
        if let Some(at) = self.shaper.as_ref().and_then(|shaper| shaper.until(cx.now)) {
            return Next::At(at);
        }
        let mut visit_decaying = true;
        while self.total.packets > 0 {
            let tin = self.choose(cx.now);
            if let Some(id) = self.serve(tin, &mut visit_decaying, cx) {
                return Next::Packet(id);
            }
        }
        Next::Empty
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, out: &mut dyn Observer) {
        let followed = out.followed();
        let (mut sparse, mut bulk) = (0, 0);
        for tin in &self.tins {
            sparse += tin.population().0;
            bulk += tin.population().1;
            for flow in tin.listed().map(|place| tin.flow(place)) {
                if flow.flow >= followed {
                    continue;
                }
                out.flow_gauge(flow.flow, "queue_packets", f64::from(flow.chain.packets()));
                out.flow_gauge(flow.flow, "deficit", f64::from(flow.deficit));
                out.flow_gauge(flow.flow, "dropping", f64::from(u8::from(flow.cobalt.is_dropping())));
                out.flow_gauge(flow.flow, "count", f64::from(flow.cobalt.count()));
                out.flow_gauge(flow.flow, "drop_probability", flow.cobalt.p_drop());
            }
        }
        out.gauge("sparse_flows", f64::from(sparse));
        out.gauge("bulk_flows", f64::from(bulk));
        out.gauge("memory", self.memory as f64);
    }
}
