//! Repeated runs of a scenario, with independent draws of the things that vary on a real path.
//!
//! A scenario without random elements gives the same packets for every seed, and identical runs do not show how much results depend
//! on chance. Two things differ between two measurements of the same real path, and both matter:
//! - *When each flow starts.* Flows that start together move in lockstep. Each start is drawn from the round trip that
//!   follows the time in the file.
//! - *How a round trip relates to the link's packet times.* If the RTT is fixed to the nanosecond, packets arrive in step
//!   with departures, and a tiny change of a parameter decides which packet is dropped for the rest of the run: a phase
//!   effect (Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992, who break it by a random time
//!   of up to one packet's service time). Each flow's base RTT is drawn from the file's value to one service time above it, and
//!   at most a hundredth above it.
//!
//! Starts and RTTs that the file already draws are left alone, so repeating a scenario twice has no further effect.
use crate::limits::RTTS;
use crate::model::{Flow, Hop, Rtt, Scenario, Start};
use narrows_core::{Bytes, Span, Time};

/// The packet size for a link's service time.
const FULL_SIZED: Bytes = Bytes(1500);
/// A base RTT is increased by at most its value divided by this.
const RTT_INCREASE_DIVISOR: u64 = 100;

impl Scenario {
    /// The scenario with random starts and base RTTs for its flows, so that runs with different seeds are independent.
    #[must_use]
    pub fn repeated(&self) -> Scenario {
        let (mut repeated, end) = (self.clone(), Time::ZERO + self.duration);
        for flow in &mut repeated.flows {
            if let Start::At(at) = flow.start
                && flow.command.is_none()
            {
                flow.start = drawn_start(at, flow, end);
            }
            if let Rtt::Fixed(rtt) = flow.rtt {
                flow.rtt = drawn_rtt(rtt, &flow.route, &self.hops);
            }
        }
        repeated
    }

    /// The scenario without the draws of [`Scenario::repeated`], as the user wrote it; unchanged if it was not repeated.
    #[must_use]
    pub fn undrawn(&self) -> Scenario {
        let (mut undrawn, end) = (self.clone(), Time::ZERO + self.duration);
        for flow in &mut undrawn.flows {
            if let Rtt::Uniform(low, _) = flow.rtt
                && flow.rtt == drawn_rtt(low, &flow.route, &self.hops)
            {
                flow.rtt = Rtt::Fixed(low);
            }
            if let Start::Uniform(first, _) = flow.start
                && flow.start == drawn_start(first, flow, end)
            {
                flow.start = Start::At(first);
            }
        }
        undrawn
    }
}

/// Drawn from the round trip after `at`, but within the first half of the flow's life.
fn drawn_start(at: Time, flow: &Flow, end: Time) -> Start {
    // The lower bound is the file's value, whether the RTT has been drawn or not.
    let (Rtt::Fixed(rtt) | Rtt::Uniform(rtt, _)) = flow.rtt;
    Start::Uniform(at, at + rtt.min(flow.stop.min(end).since(at) / 2))
}

/// Drawn from `rtt` up to one packet's service time at the slowest hop above it.
fn drawn_rtt(rtt: Span, route: &[usize], hops: &[Hop]) -> Rtt {
    let slowest = route.iter().filter_map(|&hop| Some(hops.get(hop)?.rate.initial())).min();
    let service = slowest.and_then(|rate| rate.tx_time(FULL_SIZED));
    let most = rtt / RTT_INCREASE_DIVISOR;
    Rtt::Uniform(rtt, (rtt + service.map_or(most, |service| service.min(most))).min(RTTS.1))
}
