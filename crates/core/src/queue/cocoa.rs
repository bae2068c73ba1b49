//! Cocoa (Bachl, Fabini, Zseby: "Cocoa: Congestion Control Aware Queuing", 2019). Fair queuing whose buffer for each flow
//! grows until the flow's congestion control keeps the link busy, and shrinks until no standing queue is left.
//!
//! - An interval lies between two drops of a flow. A flow that ran dry in it needs a larger buffer: as many packets more as it
//!   would have sent meanwhile, at most `max_increase` times what it had. That may be a part of a packet, which counts with the
//!   next ones; however small it is, the packet that finds the queue full is let in, and all is measured anew.
//! - A guard interval, `multiplier` times the longest interval of the one before, keeps bursts of drops from being taken for
//!   intervals. When it is over, the shortest queue of its longest interval is a standing queue, and the limit shrinks by it.
//! - [`FlowScheduler`]: turns and credits as in `fq`.
//!
//! The paper's open ends are parameters: `guard_rtts` (§2.3), `learn`, and `multiplier` = 0.5 (§2.1).
//! Deviates from the authors' code where that has faults: an interval without a departure shows no standing queue
//! (theirs assumes an enormous one); limits have a floor; packets dropped when a limit shrinks are counted; a flow inherits nothing
//! from the slot's last one. That a growth is rounded down to whole packets there, and not in the paper, is `growth`.
use super::parts::flow_scheduler::{BufferPolicy, FlowDiscipline, FlowQueue, FlowScheduler, Scheduling, scheduling};
use super::parts::limits::{MAX_LIMIT, MAX_QUANTUM, MIN_QUANTUM};
use super::parts::spin_rtt::SpinRtt;
use super::{Ctx, LinkHint, Observer};
use crate::params::Packets;
use crate::{Bytes, DropReason, PacketId, Span, Time};

choice! {
    /// How a limit grows by a fraction of a packet.
    #[derive(Default)]
    pub enum Growth {
        /// Fractions add up, as in algorithm 1 of the paper.
        #[default]
        Exact = "exact",
        /// The fraction is lost, as in the authors' code. The packet is let in even if the limit does not grow.
        Whole = "whole",
    }
}

params! {
    /// Cocoa's parameters: the paper's, then fq's as the authors ran it.
    pub struct CocoaParams {
        /// Length of a guard interval as a multiple of the longest interval in the one before (§2.1), kept in 1024ths.
        pub multiplier: f64 = 1.25, from 0.01, to 100.0;
        /// Largest factor by which one decision multiplies a limit (§2.2), kept in 1024ths.
        pub max_increase: f64 = 2.0, from 1.0, to 100.0;
        /// Whether a limit keeps parts of a packet: `exact` as in the paper's algorithm 1, `whole` as in its authors' code.
        pub growth: Growth = Growth::Exact;
        /// Longest guard interval (§2.3).
        pub max_guard: Span = Span::s(1), from Span::us(1), to Span::s(3600);
        /// Also bound guard intervals by this multiple of the flow's round-trip time, as measured from its spin bit (§2.3).
        pub guard_rtts: Option<u32> = None;
        /// Limit of a flow at its start.
        pub initial_limit: Packets = Packets(100), from Packets(1), to MAX_LIMIT;
        /// Start flows with the mean limit of earlier flows.
        pub learn: bool = false;
        /// Limits never shrink below this: enough for a loss to cause duplicate acknowledgments.
        pub min_limit: Packets = Packets(4), from Packets(1), to MAX_LIMIT;
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(10_000), from Packets(1), to MAX_LIMIT;
        /// Bytes that a flow may send per round: two full-sized packets.
        pub quantum: Bytes = Bytes(3028), from MIN_QUANTUM, to MAX_QUANTUM;
        /// Bytes that a new flow may send at first.
        pub initial_quantum: Bytes = Bytes(3028), from Bytes(0), to Bytes(1 << 30);
        /// Number of lists that hold the flows. A packet that is looked up in a list frees idle flows of that list.
        pub buckets: u32 = 1024, from 1, to 262_144;
        /// Mask of the hash bits that distinguish flows: the largest number of flows, minus one.
        pub orphan_mask: u32 = 1023;
        /// Hold packets back until the departure time that the sender requests, at most ten seconds.
        pub pacing: bool = false;
    }
}

/// What cocoa did last with a flow; the numbers are those of the gauge `decision`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CocoaDecision {
    /// The limit grew.
    Grew = 1,
    /// The first interval, or one with a growth, ended: everything is measured anew.
    BeganAnew = 2,
    /// The guard interval was over; a standing queue, if any, was taken away.
    Judged = 3,
    /// Another interval of the same guard interval.
    NextInterval = 4,
}

/// The decision about a packet that arrives at a full queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Full {
    LetIn,
    Dropped,
    /// The packet and all packets of the flow beyond its new limit are dropped.
    Shrunk,
}

/// The time between two drops.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: Time,
    /// Packets sent in it, or as many as can be counted: an interval without a full buffer may last for hours.
    sent: u32,
    /// Time in it during which the flow had nothing to send.
    idle: Span,
    /// Smallest queue after a departure; none without a departure.
    min_queue: Option<u32>,
    /// The limit has grown in it.
    grown: bool,
}

/// The longest interval of a guard interval.
#[derive(Clone, Copy, Debug, Default)]
struct Longest {
    length: Span,
    min_queue: Option<u32>,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    limit: u32,
    /// The fraction of the limit beyond whole packets, 1024ths of a packet.
    part: u16,
    /// No drop yet.
    first: bool,
    /// When its queue ran empty, if it is.
    idle_since: Option<Time>,
    interval: Interval,
    longest: Longest,
    guard_ends: Time,
    rtt: SpinRtt,
    /// The last decision, with the idle time that it was based on.
    decision: Option<(CocoaDecision, Span)>,
}

impl Interval {
    fn new(start: Time) -> Interval {
        Interval { start, sent: 0, idle: Span::ZERO, min_queue: None, grown: false }
    }
}

impl FlowState {
    fn new(limit: u32, now: Time) -> FlowState {
        FlowState {
            limit,
            part: 0,
            first: true,
            idle_since: None,
            interval: Interval::new(now),
            longest: Longest::default(),
            guard_ends: now,
            rtt: SpinRtt::default(),
            decision: None,
        }
    }

    /// A packet has come: the queue is not empty any more.
    #[inline]
    fn end_idleness(&mut self, now: Time) {
        if let Some(since) = self.idle_since.take() {
            self.interval.idle += now.since(since.max(self.interval.start));
        }
    }

    /// Ends the interval with a drop; is it the longest of its guard interval?
    fn end_interval(&mut self, now: Time) {
        let length = now.since(self.interval.start);
        if length >= self.longest.length {
            self.longest = Longest { length, min_queue: self.interval.min_queue };
        }
        self.interval = Interval::new(now);
        self.first = false;
    }
}

/// The adaptive limits.
pub struct Adaptive {
    law: Law,
    /// Eight times the moving average of flows' limits, in which each decision weighs an eighth; `None` before the first.
    learned8: Option<u64>,
}

/// The parameters, in integers.
struct Law {
    /// 1024ths.
    multiplier: u64,
    /// 1024ths.
    max_increase: u64,
    growth: Growth,
    max_guard: Span,
    guard_rtts: Option<u32>,
    initial_limit: u32,
    min_limit: u32,
    /// The limit of the whole queue, which bounds each flow's.
    most: u32,
    learns: bool,
}

impl Law {
    /// The limit after an interval that ended at `now`, 1024ths of a packet. It grows by what would have been sent while the flow was
    /// idle.
    fn grown(&self, limit: u64, interval: &Interval, now: Time) -> u64 {
        let idle = interval.idle.as_ns();
        let active = now.since(interval.start).as_ns().saturating_sub(idle).max(1);
        let missed = u128::from(interval.sent) * u128::from(idle);
        let missed = match self.growth {
            Growth::Exact => missed * u128::from(SCALE) / u128::from(active),
            Growth::Whole => missed / u128::from(active) * u128::from(SCALE),
        };
        let most = (limit * self.max_increase / SCALE).min(u64::from(self.most) * SCALE).max(limit);
        u64::try_from(missed).map_or(most, |missed| limit.saturating_add(missed).min(most))
    }

    /// The length of the guard interval after one with this longest interval.
    fn guard(&self, longest: Span, rtt: Option<Span>) -> Span {
        let length = u128::from(longest.as_ns()) * u128::from(self.multiplier) / u128::from(SCALE);
        let bound = match (self.guard_rtts, rtt) {
            (Some(rtts), Some(rtt)) => self.max_guard.min(rtt * u64::from(rtts)),
            _ => self.max_guard,
        };
        Span::ns(u64::try_from(length).unwrap_or(u64::MAX)).min(bound)
    }

    /// The limit without its standing queue, in whole packets.
    fn shrunk(&self, limit: u32, standing: u32) -> u32 {
        limit.saturating_sub(standing).max(self.min_limit.min(limit))
    }
}

impl Adaptive {
    fn initial_limit(&self) -> u32 {
        let learned = self.learned8.filter(|_| self.law.learns).map(|eight| (eight / 8) as u32);
        learned.unwrap_or(self.law.initial_limit).clamp(self.law.min_limit.min(self.law.most), self.law.most)
    }

    /// Notes the limit that a flow has reached.
    fn learn(&mut self, limit: u32) {
        let limit = u64::from(limit);
        self.learned8 = Some(self.learned8.map_or(limit * 8, |eight| eight + limit - eight / 8));
    }

    /// A packet finds the flow's queue full (algorithm 1).
    #[cold]
    fn full(&mut self, flow_state: &mut FlowState, now: Time) -> Full {
        let idle = flow_state.interval.idle;
        if idle > Span::ZERO && !flow_state.first && !flow_state.interval.grown {
            let grown = self.law.grown(
                u64::from(flow_state.limit) * SCALE + u64::from(flow_state.part),
                &flow_state.interval,
                now,
            );
            (flow_state.limit, flow_state.part) = ((grown / SCALE) as u32, (grown % SCALE) as u16);
            flow_state.interval.grown = true;
            flow_state.decision = Some((CocoaDecision::Grew, idle));
            return Full::LetIn;
        }
        let anew = flow_state.first || flow_state.interval.grown;
        let judged = !anew && now >= flow_state.guard_ends;
        flow_state.end_interval(now);
        let standing = flow_state.longest.min_queue.filter(|_| judged).unwrap_or(0);
        flow_state.limit = self.law.shrunk(flow_state.limit, standing);
        if anew || judged {
            flow_state.guard_ends = now + self.law.guard(flow_state.longest.length, flow_state.rtt.rtt());
            flow_state.longest = Longest::default();
            self.learn(flow_state.limit);
        }
        let decision = match (anew, judged) {
            (true, _) => CocoaDecision::BeganAnew,
            (_, true) => CocoaDecision::Judged,
            _ => CocoaDecision::NextInterval,
        };
        flow_state.decision = Some((decision, idle));
        if standing > 0 { Full::Shrunk } else { Full::Dropped }
    }
}

impl BufferPolicy for Adaptive {
    type State = Option<FlowState>;
    // Cocoa must see every departure, so packets may not bypass the flow queues.
    const MAY_SKIP: bool = false;

    #[inline]
    fn arrive(&mut self, id: PacketId, flow: &mut FlowQueue<Option<FlowState>>, cx: &mut Ctx<'_>) {
        let flow_state = flow.state.get_or_insert_with(|| FlowState::new(self.initial_limit(), cx.now));
        flow_state.end_idleness(cx.now);
        flow_state.rtt.on_packet(cx.pool.meta(id).spin, cx.now);
        let full = if flow.chain.packets() < flow_state.limit { Full::LetIn } else { self.full(flow_state, cx.now) };
        if full == Full::LetIn {
            flow.chain.push_back(id, cx.pool);
            return;
        }
        cx.drop_packet(id, DropReason::FlowLimit);
        while full == Full::Shrunk && flow.chain.packets() > flow_state.limit {
            let Some(surplus) = flow.chain.pop_back(cx.pool) else { break };
            cx.drop_packet(surplus, DropReason::FlowLimit);
        }
    }

    #[inline]
    fn departed(&mut self, flow: &mut FlowQueue<Option<FlowState>>, _len: u32, now: Time) {
        let Some(flow_state) = &mut flow.state else { return };
        let left = flow.chain.packets();
        flow_state.interval.sent = flow_state.interval.sent.saturating_add(1);
        flow_state.interval.min_queue = Some(flow_state.interval.min_queue.map_or(left, |least| least.min(left)));
        if left == 0 {
            flow_state.idle_since = Some(now);
        }
    }

    fn observe(&self, flow: &FlowQueue<Option<FlowState>>, out: &mut dyn Observer) {
        let Some(flow_state) = &flow.state else { return };
        let part = f64::from(flow_state.part) / SCALE as f64;
        out.flow_gauge(flow.flow, "limit_packets", f64::from(flow_state.limit) + part);
        out.flow_gauge(flow.flow, "longest_interval_ms", flow_state.longest.length.as_ms_f64());
        if let Some(rtt) = flow_state.rtt.rtt() {
            out.flow_gauge(flow.flow, "rtt_ms", rtt.as_ms_f64());
        }
        if let Some((decision, idle)) = flow_state.decision {
            out.flow_gauge(flow.flow, "decision", f64::from(decision as u8));
            out.flow_gauge(flow.flow, "idle_ms", idle.as_ms_f64());
        }
    }
}

/// Fair queuing with buffers that adapt.
pub type Cocoa = FlowScheduler<Adaptive>;

impl FlowDiscipline for Adaptive {
    type Params = CocoaParams;

    fn scheduling(p: &CocoaParams) -> Scheduling {
        Scheduling { pacing: p.pacing.then_some(Scheduling::HORIZON), ..scheduling!(p) }
    }

    fn new(p: &CocoaParams, _link: &LinkHint) -> Adaptive {
        let law = Law {
            multiplier: fixed(p.multiplier),
            max_increase: fixed(p.max_increase),
            growth: p.growth,
            max_guard: p.max_guard,
            guard_rtts: p.guard_rtts,
            initial_limit: p.initial_limit.0,
            min_limit: p.min_limit.0,
            most: p.limit.0,
            learns: p.learn,
        };
        Adaptive { law, learned8: None }
    }
}

/// A factor in 1024ths.
fn fixed(factor: f64) -> u64 {
    (factor * SCALE as f64) as u64
}

/// One, in fixed point.
const SCALE: u64 = 1024;
#[cfg(test)]
mod tests;
