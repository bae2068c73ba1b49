//! Limits on a run's work per second of simulated time. A sender whose rate grows without bound, or a timer that fires every
//! nanosecond, would make a run endless. Such a run is ended with an error instead.
//!
//! The budget follows from the scenario and is far above what senders that respond to feedback need. In slow start an
//! acknowledgment lets a sender send two packets, so senders offer about twice what their links carry, plus a few packets per
//! round trip when nothing arrives, plus what their applications declare.
use narrows_core::{Rate, Span, Time};
use narrows_scenario::{Flow, Hop, RateSpec, Scenario, Traffic, Transport};
use narrows_world::Budget;

/// The reason why a run ended early.
pub(crate) enum Stopped {
    /// The watch cancelled it.
    Cancelled,
    /// It exceeded its budget.
    Runaway(Runaway),
}

/// The report of a run that exceeded its budget.
pub(crate) struct Runaway {
    at: Time,
    budget: Budget,
    /// Whether the limit on packets was exceeded, rather than the one on events.
    packets: bool,
    /// The flow with the highest pacing rate, by its number, and that rate.
    fastest: Option<(usize, Rate)>,
}

/// The period of a budget.
pub(crate) const SECOND: Span = Span::s(1);

/// The part of the budget that is left in this second.
pub(crate) struct Meter {
    budget: Budget,
    packets: u64,
    /// Events handled before the second began.
    began: u64,
}

/// The senders together may offer this many times what their links carry.
const LINKS: u64 = 16;
/// Packets that a flow may send per round trip even if nothing is delivered: initial windows, minimum windows, probes.
const PER_ROUND_TRIP: u64 = 64;
/// An application may send this many times what it declares, because of bursts and retransmissions.
const APPLICATIONS: u64 = 4;
/// A budget always includes this many packets.
const MIN: u64 = 100_000;
/// Events that a packet causes at a hop, in either direction.
const PER_HOP: u64 = 8;
/// Events that a queue's own timers may cause.
const QUEUE_TIMERS: u64 = 1_000_000;

/// The budget of a valid scenario.
pub fn budget(scenario: &Scenario) -> Budget {
    let mut shortest = vec![None; scenario.hops.len()];
    for flow in &scenario.flows {
        for &hop in flow.route.iter().chain(&flow.subflow_route) {
            let known = shortest[hop].get_or_insert(u64::MAX);
            *known = (*known).min(packet(flow));
        }
    }
    let links = scenario.hops.iter().zip(&shortest);
    let links = links.filter_map(|(hop, shortest)| Some(bytes_per_s(hop) / (*shortest)?)).fold(0, u64::saturating_add);
    let flows = scenario.flows.iter().map(|flow| per_flow(scenario, flow).saturating_mul(flow.count.into()));
    let flows = flows.fold(0, u64::saturating_add);
    let packets = links.saturating_mul(LINKS).saturating_add(flows).saturating_add(MIN);
    let hops = scenario.flows.iter().map(|flow| flow.route.len() + flow.back.len() + flow.subflow_route.len());
    let samples = SECOND.as_ns() / scenario.record.spacing(scenario.duration).as_ns().max(1);
    let events = packets.saturating_mul(PER_HOP * (1 + hops.max().unwrap_or(0) as u64));
    let timers = QUEUE_TIMERS.saturating_mul(scenario.hops.len() as u64);
    Budget { packets, events: events.saturating_add(timers).saturating_add(samples) }
}

/// The length of most of a flow's packets, bytes.
fn packet(flow: &Flow) -> u64 {
    let header = flow.header().0;
    let full = match &flow.transport {
        Transport::Tcp(tcp) => tcp.packet.0,
        Transport::Quic(quic) => quic.packet.0,
        Transport::Udp(_) => 1500,
    };
    let bytes = match &flow.traffic {
        Traffic::Bulk(_) | Traffic::Finite(_) | Traffic::Web(_) => full,
        Traffic::Cbr(t) => t.packet.0,
        Traffic::Poisson(t) => t.packet.0,
        Traffic::OnOff(t) => t.packet.0.min(full),
        // Frames of a low rate are short packets.
        Traffic::Video(t) => (t.min_rate.as_bps() / 8 / t.fps.ceil() as u64).clamp(1, t.packet.0),
        Traffic::Thin(t) => (t.size.0 + header).min(full),
    };
    bytes.max(1)
}

/// Packets per second that one flow of a group may send, whatever its links carry.
fn per_flow(scenario: &Scenario, flow: &Flow) -> u64 {
    let declared = match &flow.traffic {
        Traffic::Cbr(t) => t.rate.as_bps() / 8 / t.packet.0.max(1),
        Traffic::Poisson(t) => t.rate.as_bps() / 8 / t.packet.0.max(1),
        Traffic::OnOff(t) => t.rate.as_bps() / 8 / t.packet.0.max(1),
        Traffic::Thin(t) => SECOND.as_ns() / t.interval.as_ns().max(1),
        Traffic::Video(t) => {
            let (full, frames) = (t.max_rate.as_bps() / 8 / t.packet.0.max(1), t.fps.ceil() as u64);
            // A frame's last packet is short; each packet may be sent again; reports come back.
            2 * (full + frames) + SECOND.as_ns() / t.report_interval.as_ns().max(1)
        }
        Traffic::Bulk(_) | Traffic::Finite(_) | Traffic::Web(_) => 0,
    };
    // A round trip takes at least as long as a packet on the slowest link.
    let (rtt, _) = scenario.base_rtts(flow);
    let on_wire = |&hop: &usize| SECOND * packet(flow) / bytes_per_s(&scenario.hops[hop]).max(1);
    let least = flow.route.iter().map(on_wire).max().unwrap_or(Span::ZERO);
    let rounds = (SECOND.as_ns() / rtt.max(least).as_ns().max(1)).max(1);
    (rounds * PER_ROUND_TRIP).saturating_add(declared.saturating_mul(APPLICATIONS))
}

/// The maximum that a link carries in a second, bytes.
fn bytes_per_s(hop: &Hop) -> u64 {
    match &hop.rate {
        RateSpec::Schedule(steps) => steps.iter().map(|&(_, rate)| rate.as_bps()).max().unwrap_or(0) / 8,
        RateSpec::Trace { opportunities, period, .. } => {
            let whole = SECOND.as_ns() / period.as_ns().max(1);
            // Each second that begins with an opportunity may extend into the next period.
            let next = opportunities.iter().map(|&at| at + *period);
            let all: Vec<Span> = opportunities.iter().copied().chain(next).collect();
            let within = |(n, &at): (usize, &Span)| all.partition_point(|&other| other < at + SECOND) - n;
            let most = all.iter().enumerate().map(within).max().unwrap_or(0) as u64;
            (most.max((whole + 1) * opportunities.len() as u64)) * narrows_core::link::OPPORTUNITY.0
        }
    }
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Meter {
        Meter { budget, packets: budget.packets, began: 0 }
    }

    /// A packet leaves a sender.
    #[inline(always)]
    pub(crate) fn on_packet(&mut self) {
        self.packets = self.packets.saturating_sub(1);
    }

    /// Whether another one may leave in this second.
    #[inline(always)]
    pub(crate) fn has_packets(&self) -> bool {
        self.packets > 0
    }

    /// Starts a second. `handled` events were handled before it.
    pub(crate) fn renew(&mut self, handled: u64) {
        self.packets = self.budget.packets;
        self.began = handled;
    }

    /// Checks the present second against the budget. `fastest` finds the flow with the highest pacing rate.
    pub(crate) fn check(
        &self,
        at: Time,
        handled: u64,
        fastest: impl FnOnce() -> Option<(usize, Rate)>,
    ) -> Result<(), Stopped> {
        let &Meter { budget, packets, began } = self;
        if packets > 0 && handled - began <= budget.events {
            return Ok(());
        }
        Err(Stopped::Runaway(Runaway { at, budget, packets: packets == 0, fastest: fastest() }))
    }
}

impl Runaway {
    /// A message with the name and the controller of the flow.
    pub(crate) fn explain(&self, scenario: &Scenario) -> String {
        let (what, most) =
            if self.packets { ("packets sent", self.budget.packets) } else { ("events", self.budget.events) };
        let at = self.at.as_secs_f64();
        let text = format!("given up at {at} s of simulated time: more than {most} {what} within a second");
        match self.fastest.and_then(|(number, rate)| Some((scenario.flow(number)?, rate))) {
            None => text,
            Some(((name, flow), rate)) => {
                let controller = flow.controller.as_ref().map_or("none".into(), ToString::to_string);
                let mbit = rate.as_mbit_f64();
                format!("{text}; fastest is flow \"{name}\" with controller {controller}, at {mbit:.1} Mbit/s")
            }
        }
    }
}
