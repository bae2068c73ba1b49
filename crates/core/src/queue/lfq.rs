//! LFQ, learned fair queuing: a buffer for each flow whose limit follows a policy over what the queue sees of the flow, after Bachl,
//! Fabini, Zseby ("LFQ: Online Learning of Per-flow Queuing Policies using Deep Reinforcement Learning", 2020).
//!
//! - [`FlowScheduler`]: turns and credits as in `fq`.
//! - A flow's life is a row of cycles. A drop ends one if the queue has fallen below three quarters of the limit in it, so that a burst
//!   of drops is one event; or after sixteen limits' worth of packets. Each cycle starts from the limit that the last one ended with.
//! - At every tenth arrival a policy reads the [`Features`] of the present and of the last cycle, and answers with a factor for the
//!   limit at which the cycle began, from a quarter to four.
//! - A limit falls no lower than one packet below the queue at a time: no packet that waits is dropped.
//!
//! Deviates from the paper: the policy is a decision tree of integers that was learned before, in [`policy`], not a network that goes on
//! learning. It sets a limit relative to the last cycle's, so that it needs neither the rate nor the RTT of the path.
use super::parts::flow_scheduler::{BufferPolicy, FlowDiscipline, FlowQueue, FlowScheduler, Scheduling, scheduling};
use super::parts::limits::{MAX_LIMIT, MAX_QUANTUM, MIN_QUANTUM};
use super::{Ctx, LinkHint, Observer};
use crate::params::Packets;
use crate::{Bytes, DropReason, FlowId, PacketId, Span, Time};

mod features;
pub mod policy;

pub use features::Features;
use features::{Cycle, Rest, Summary};

choice! {
    /// What sets the limits.
    #[derive(Default)]
    pub enum LfqPolicy {
        /// The learned tree.
        #[default]
        Tree = "tree",
        /// A rule made by hand, which does nearly as well.
        Rule = "rule",
    }
}

params! {
    /// LFQ's parameters: the policy's, then fq's as cocoa has them.
    pub struct LfqParams {
        /// What sets the limits: the learned `tree`, or a `rule` that can be read.
        pub policy: LfqPolicy = LfqPolicy::Tree;
        /// Number of a flow's packets after which its limit is set anew.
        pub every: Packets = Packets(10), from Packets(1), to Packets(1_000_000);
        /// Limit of a flow at its start.
        pub initial_limit: Packets = Packets(100), from Packets(1), to MAX_LIMIT;
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

impl LfqParams {
    /// A queue with these parameters whose limits another policy sets.
    pub fn with_policy<P: SetsLimits>(&self, policy: P) -> FlowScheduler<PolicyLimits<P>> {
        FlowScheduler::with(self.scheduling(), self.limits(policy))
    }

    fn scheduling(&self) -> Scheduling {
        Scheduling { pacing: self.pacing.then_some(Scheduling::HORIZON), ..scheduling!(self) }
    }

    fn limits<P>(&self, policy: P) -> PolicyLimits<P> {
        let most = self.limit.0;
        let law = Law {
            every: self.every.0,
            initial: u64::from(self.initial_limit.0.clamp(self.min_limit.0.min(most), most)) * ONE,
            least: u64::from(self.min_limit.0.min(most)) * ONE,
            most: u64::from(most) * ONE,
        };
        PolicyLimits { law, policy }
    }
}

/// A policy: what factor to apply to the limit at which the flow's cycle began, 256ths. It is kept between 64 and 1024.
pub trait SetsLimits {
    /// Decides about a flow.
    fn factor(&mut self, flow: FlowId, features: &Features) -> u32;
}

impl SetsLimits for LfqPolicy {
    #[inline]
    fn factor(&mut self, _: FlowId, features: &Features) -> u32 {
        match self {
            LfqPolicy::Tree => policy::tree(features),
            LfqPolicy::Rule => policy::rule(features),
        }
    }
}

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// 256ths of a packet.
    limit: u64,
    /// The limit at which the cycle began, 256ths of a packet.
    base: u64,
    /// Arrivals since the last decision.
    arrivals: u32,
    /// When its queue ran empty, if it is.
    idle_since: Option<Time>,
    /// The last departure, if the queue has not been empty since.
    departed: Option<Time>,
    /// Moving average of the time between two departures while packets wait, in which each weighs a sixteenth; ns.
    gap: u32,
    cycle: Cycle,
    last: Summary,
    /// Cycles that have ended, or as many as can be counted.
    cycles: u8,
    /// The last factor, 256ths.
    factor: u32,
}

impl FlowState {
    fn new(limit: u64, now: Time) -> FlowState {
        FlowState {
            limit,
            base: limit,
            arrivals: 0,
            idle_since: None,
            departed: None,
            gap: 0,
            cycle: Cycle::new(now),
            last: Summary::default(),
            cycles: 0,
            factor: ONE as u32,
        }
    }

    fn packets(&self) -> u32 {
        (self.limit / ONE) as u32
    }

    /// What the policy sees.
    fn features(&self, queue: u32, now: Time) -> Features {
        let limit = self.packets();
        let rest = Rest {
            limit: (self.base / ONE) as u32,
            drain_us: (self.base * u64::from(self.gap) / ONE / 1000).min(u64::from(u32::MAX)) as u32,
            gap_us: self.gap / 1000,
            queue,
            cycles: u32::from(self.cycles),
        };
        Features::new(&self.cycle.summary(limit, self.last.span, now), &self.last, limit, &rest)
    }

    /// A packet finds the queue full.
    fn on_drop(&mut self, now: Time) {
        self.cycle.drops = self.cycle.drops.saturating_add(1);
        let limit = self.packets();
        if self.cycle.is_over(limit) {
            self.last = self.cycle.summary(limit, Span::ZERO, now);
            self.cycle = Cycle::new(now);
            self.cycles = self.cycles.saturating_add(1);
            self.base = self.limit;
        }
    }
}

/// The parameters, in 256ths of a packet.
struct Law {
    every: u32,
    initial: u64,
    least: u64,
    most: u64,
}

/// Limits that a policy sets.
pub struct PolicyLimits<P> {
    law: Law,
    policy: P,
}

impl<P: SetsLimits> PolicyLimits<P> {
    fn decide(&mut self, flow: FlowId, flow_state: &mut FlowState, queue: u32, now: Time) {
        flow_state.arrivals = 0;
        let features = flow_state.features(queue, now);
        flow_state.factor = self.policy.factor(flow, &features).clamp(SMALLEST_FACTOR, LARGEST_FACTOR);
        let wanted = (flow_state.base * u64::from(flow_state.factor) / ONE).clamp(self.law.least, self.law.most);
        let floor = u64::from(queue.saturating_sub(1)) * ONE;
        flow_state.limit = wanted.max(floor.min(flow_state.limit));
    }
}

impl<P: SetsLimits> BufferPolicy for PolicyLimits<P> {
    type State = Option<FlowState>;
    // The policy must see every departure, so packets may not bypass the flow queues.
    const MAY_SKIP: bool = false;

    #[inline]
    fn arrive(&mut self, id: PacketId, flow: &mut FlowQueue<Option<FlowState>>, cx: &mut Ctx<'_>) {
        let flow_state = flow.state.get_or_insert_with(|| FlowState::new(self.law.initial, cx.now));
        if let Some(since) = flow_state.idle_since.take() {
            flow_state.cycle.idle += cx.now.since(since.max(flow_state.cycle.start));
        }
        let queue = flow.chain.packets();
        flow_state.arrivals += 1;
        if flow_state.arrivals >= self.law.every {
            self.decide(flow.flow, flow_state, queue, cx.now);
        }
        if queue < flow_state.packets() {
            flow.chain.push_back(id, cx.pool);
        } else {
            flow_state.on_drop(cx.now);
            cx.drop_packet(id, DropReason::FlowLimit);
        }
    }

    #[inline]
    fn departed(&mut self, flow: &mut FlowQueue<Option<FlowState>>, _len: u32, now: Time) {
        let Some(flow_state) = &mut flow.state else { return };
        let left = flow.chain.packets();
        if let Some(before) = flow_state.departed {
            let gap = u32::try_from(now.since(before).as_ns()).unwrap_or(u32::MAX);
            flow_state.gap = match flow_state.gap {
                0 => gap,
                average => average - average / 16 + gap / 16,
            };
        }
        flow_state.departed = (left > 0).then_some(now);
        flow_state.idle_since = (left == 0).then_some(now);
        flow_state.cycle.on_departure(left, flow_state.packets());
    }

    fn observe(&self, flow: &FlowQueue<Option<FlowState>>, out: &mut dyn Observer) {
        let Some(flow_state) = &flow.state else { return };
        let whole = |parts: u64| parts as f64 / ONE as f64;
        out.flow_gauge(flow.flow, "limit_packets", whole(flow_state.limit));
        out.flow_gauge(flow.flow, "cycle_limit_packets", whole(flow_state.base));
        out.flow_gauge(flow.flow, "factor", whole(u64::from(flow_state.factor)));
        out.flow_gauge(flow.flow, "cycles", f64::from(flow_state.cycles));
        out.flow_gauge(flow.flow, "idle_share", f64::from(flow_state.last.idle) / 1024.0);
    }
}

/// Fair queuing with learned buffers.
pub type Lfq = FlowScheduler<PolicyLimits<LfqPolicy>>;

impl FlowDiscipline for PolicyLimits<LfqPolicy> {
    type Params = LfqParams;

    fn scheduling(p: &LfqParams) -> Scheduling {
        p.scheduling()
    }

    fn new(p: &LfqParams, _link: &LinkHint) -> PolicyLimits<LfqPolicy> {
        p.limits(p.policy)
    }
}

/// One, in fixed point.
const ONE: u64 = 256;
/// A quarter and four, 256ths.
const SMALLEST_FACTOR: u32 = 64;
const LARGEST_FACTOR: u32 = 1024;
#[cfg(test)]
mod tests;
