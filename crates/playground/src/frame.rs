//! What is to be seen at one moment of a run: packets and their places, queues, senders.
use crate::protocol::Complaint;
use narrows_core::queue::Observer;
use narrows_core::{DropReason, Ecn, FlowId, Span, Time};
use narrows_results::packets::{Capture, What};
use narrows_scenario::{Hop, RateSpec, Scenario};
use narrows_sim::{PacketView, Place, Session};
use narrows_world::{Budget, Wanted};
use serde::Serialize;
use std::fmt;

/// A run that is being played.
pub(crate) struct Player {
    session: Session,
    /// Events of the log that have been shown.
    read: usize,
    /// The longest time that a packet of each flow had before it on its way back: the whole length of that way.
    ways_back: Vec<Span>,
}

/// A moment.
#[derive(Serialize, Debug)]
pub(crate) struct Frame {
    now: u64,
    end: u64,
    hops: Vec<HopState>,
    /// By flow: window, packets in flight, smoothed RTT in ms, pacing rate in Mbit/s.
    senders: Vec<Option<[Option<f64>; 4]>>,
    /// Five numbers for each packet: flow, flags, hop, place, and how far it is.
    packets: Vec<u32>,
    /// Packets that are there and not in `packets`.
    left_out: usize,
    /// Packets dropped since the frame before: flow, hop, reason, and how long ago in ns.
    drops: Vec<(u32, u16, &'static str, u64)>,
    /// All drops since then.
    dropped: usize,
}

/// A hop at a moment.
#[derive(Serialize, Debug)]
struct HopState {
    packets: u32,
    bytes: u64,
    rate_mbit: f64,
    delay_ms: f64,
    gauges: Vec<(&'static str, f64)>,
    flow_gauges: Vec<(u32, &'static str, f64)>,
}

/// Packets of a frame at most: more than a picture shows.
const PACKETS: usize = 3000;
/// Drops of a frame at most.
const DROPS: usize = 200;
/// Flows whose state is shown.
const FLOWS: usize = 64;
/// Events that a log may keep.
const EVENTS: usize = 200_000;
/// A whole way, in the parts in which a packet's progress is counted.
const WHOLE: f64 = 10_000.0;

/// Flags of a packet.
mod flag {
    pub(super) const FORWARD: u32 = 1;
    pub(super) const ECN_CAPABLE: u32 = 2;
    pub(super) const MARKED: u32 = 4;
    pub(super) const RESENT: u32 = 8;
    pub(super) const L4S: u32 = 16;
}

impl Player {
    /// What a run must record to be played.
    pub(crate) fn wanted(budget: Budget) -> Wanted {
        Wanted { budget: Some(budget), ..Wanted::packets(Capture { limit: u32::MAX, ..Capture::default() }) }
    }

    /// The same with as many packets as the log has at one time.
    pub(crate) fn kept() -> Wanted {
        Wanted::packets(Capture { limit: EVENTS as u32, ..Capture::default() })
    }

    /// A run at its start.
    pub(crate) fn new(scenario: Scenario, wanted: &Wanted) -> Player {
        let flows = scenario.flows.iter().map(|flow| flow.count as usize).sum();
        Player { session: Session::new(scenario, wanted), read: 0, ways_back: vec![Span::ZERO; flows] }
    }

    /// Plays on to this time, and shows what is there then. Time does not go back.
    pub(crate) fn advance(&mut self, to: Time) -> Result<Frame, Complaint> {
        let end = Time::ZERO + self.session.scenario().duration;
        let to = to.min(end);
        let (mut drops, mut dropped) = (Vec::new(), 0);
        // In steps, so that the log stays short.
        let step = (self.session.scenario().duration / 200).max(Span::us(1));
        loop {
            let next = to.min(self.session.now() + step);
            self.session.advance(next).map_err(|error| Complaint::new(error.to_string()))?;
            dropped += self.read_log(&mut drops);
            if next >= to {
                break;
            }
        }
        let skip = drops.len().saturating_sub(DROPS);
        let now = self.session.now();
        let drops = drops.split_off(skip).into_iter();
        let drops = drops.map(|(flow, hop, reason, at): Dropped| (flow, hop, reason.name(), now.since(at).as_ns()));
        let drops = drops.collect();
        let (packets, left_out) = self.packets(now);
        let hops = (0..self.session.scenario().hops.len()).map(|hop| self.hop(hop, now)).collect();
        let senders = (0..self.ways_back.len().min(FLOWS)).map(|flow| self.sender(flow)).collect();
        Ok(Frame { now: now.as_ns(), end: end.as_ns(), hops, senders, packets, left_out, drops, dropped })
    }

    /// The drops that the log got since it was read.
    fn read_log(&mut self, drops: &mut Vec<Dropped>) -> usize {
        let Some(log) = self.session.log() else { return 0 };
        let before = drops.len();
        for event in &log.events[self.read..] {
            if let What::Dropped(hop, reason) = event.what {
                drops.push((log.packets[event.packet as usize].flow, hop, reason, event.at));
            }
        }
        let found = drops.len() - before;
        drops.drain(..drops.len().saturating_sub(DROPS));
        self.read = log.events.len();
        if self.read > EVENTS {
            self.session.forget();
            self.read = 0;
        }
        found
    }

    /// The packets as numbers, and how many are left out: every other one, or more, of very many.
    fn packets(&mut self, now: Time) -> (Vec<u32>, usize) {
        let all: Vec<PacketView> = self.session.packets().collect();
        let every = all.len().div_ceil(PACKETS).max(1);
        let mut numbers = Vec::with_capacity(5 * (all.len() / every + 1));
        for packet in &all {
            if let Place::Return { arrives } = packet.place {
                let way = &mut self.ways_back[packet.flow];
                *way = (*way).max(arrives.since(now));
            }
        }
        for packet in all.iter().step_by(every) {
            let (hop, place, how_far) = self.place(packet, now);
            numbers.extend([packet.flow as u32, self.flags(packet), hop as u32, place, how_far]);
        }
        let left_out = all.len() - numbers.len() / 5;
        (numbers, left_out)
    }

    /// A packet's hop, its place (0 to 3, in the order of [`Place`]), and its progress: µs in the queue, or parts of the way.
    fn place(&self, packet: &PacketView, now: Time) -> (usize, u32, u32) {
        let hops = &self.session.scenario().hops;
        let done = |left: Span, whole: Span| {
            let share = 1.0 - left.as_secs_f64() / whole.as_secs_f64().max(1e-9);
            (share.clamp(0.0, 1.0) * WHOLE) as u32
        };
        match packet.place {
            Place::Queue { hop, since } => (hop, 0, u32::try_from(now.since(since).as_ns() / 1000).unwrap_or(u32::MAX)),
            Place::Link { hop, since } => {
                let len = hops[hop].framing().length(packet.ip_len);
                let takes = rate_at(&hops[hop], now).tx_time(narrows_core::Bytes(len.into())).unwrap_or(Span::ZERO);
                (hop, 1, done(takes.saturating_sub(now.since(since)), takes))
            }
            Place::Propagation { hop, arrives } => (hop, 2, done(arrives.since(now), delay_at(&hops[hop], now))),
            Place::Return { arrives } => (0, 3, done(arrives.since(now), self.ways_back[packet.flow])),
        }
    }

    fn flags(&self, packet: &PacketView) -> u32 {
        let resent = || Some(self.session.log()?.packets.get(packet.recorded?)?.retransmission);
        let when = |is: bool, flag: u32| if is { flag } else { 0 };
        when(packet.kind.is_forward(), flag::FORWARD)
            | when(packet.ecn.is_capable(), flag::ECN_CAPABLE)
            | when(packet.ecn == Ecn::Ce, flag::MARKED)
            | when(matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce), flag::L4S)
            | when(resent() == Some(true), flag::RESENT)
    }

    fn hop(&self, hop: usize, now: Time) -> HopState {
        let (backlog, spec) = (self.session.backlog(hop), &self.session.scenario().hops[hop]);
        let mut gauges = Gauges::default();
        self.session.observe(hop, &mut gauges);
        HopState {
            packets: backlog.packets,
            bytes: backlog.bytes.0,
            rate_mbit: rate_at(spec, now).as_mbit_f64(),
            delay_ms: delay_at(spec, now).as_ms_f64(),
            gauges: gauges.whole,
            flow_gauges: gauges.flows,
        }
    }

    fn sender(&self, flow: usize) -> Option<[Option<f64>; 4]> {
        let meters = self.session.meters(flow)?;
        let [srtt, pacing] = [meters.srtt.map(Span::as_ms_f64), meters.pacing.map(|rate| rate.as_mbit_f64())];
        Some([Some(meters.cwnd), meters.inflight, srtt, pacing])
    }
}

/// A dropped packet: flow, hop, reason, time.
type Dropped = (u32, u16, DropReason, Time);

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)
    }
}

/// A hop's rate at this time; of a trace or a mechanism, its mean.
fn rate_at(hop: &Hop, now: Time) -> narrows_core::Rate {
    match &hop.rate {
        RateSpec::Schedule(steps) if hop.mechanism.is_none() => step_at(steps, now),
        RateSpec::Schedule(_) | RateSpec::Trace { .. } => hop.mean_rate(),
    }
}

/// A hop's delay at this time.
fn delay_at(hop: &Hop, now: Time) -> Span {
    step_at(&hop.delay.0, now)
}

/// The step that holds at this time. The first one is at the epoch.
fn step_at<T: Copy>(steps: &[(Time, T)], now: Time) -> T {
    let after = steps.partition_point(|step| step.0 <= now);
    steps[after.max(1) - 1].1
}

/// Gathers what a queue shows.
#[derive(Default)]
struct Gauges {
    whole: Vec<(&'static str, f64)>,
    flows: Vec<(u32, &'static str, f64)>,
}

impl Observer for Gauges {
    fn followed(&self) -> FlowId {
        FlowId(FLOWS as u32)
    }

    fn gauge(&mut self, name: &'static str, value: f64) {
        self.whole.push((name, value));
    }

    fn flow_gauge(&mut self, flow: FlowId, name: &'static str, value: f64) {
        if flow < self.followed() {
            self.flows.push((flow.0, name, value));
        }
    }
}
