//! What a run may cost: a link from somebody else must not keep a tab busy for minutes.
use crate::protocol::Complaint;
use narrows_core::Rate;
use narrows_scenario::{RateSpec, Scenario};
use narrows_sim::Simulator;
use narrows_world::{Budget, Wanted, World as _};

/// Limits of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Full-sized packets that the links may carry.
    pub packets: u64,
    /// Memory, bytes.
    pub memory: u64,
    /// Whose limits they are, in words: `a tab`.
    pub whose: &'static str,
}

/// Events that a packet of the estimate may cause. Small packets, retransmissions and timers are in it.
const EVENTS: u64 = 40;

impl Limits {
    /// Of a tab in a browser: a few seconds.
    pub const TAB: Limits = Limits { packets: 6_000_000, memory: 256 << 20, whose: "a tab" };
    /// Of the native program.
    pub const NATIVE: Limits = Limits { packets: 60_000_000, memory: 2 << 30, whose: "this page" };

    /// Refuses a run that would cost more, in words.
    pub(crate) fn check(&self, scenario: &Scenario, wanted: &Wanted) -> Result<(), Complaint> {
        let packets = packets(scenario);
        if packets > self.packets {
            return Err(Complaint::new(format!(
                "this run would send about {} packets, and {} may send {}: make `duration` shorter or `rate` lower",
                counted(packets),
                self.whose,
                counted(self.packets)
            )));
        }
        let memory = Simulator.memory(scenario, wanted).total();
        if memory > self.memory {
            return Err(Complaint::new(format!(
                "this run would need about {} MB, and {} may use {} MB: fewer flows, a shorter `duration` or smaller buffers need less",
                memory >> 20,
                self.whose,
                self.memory >> 20
            )));
        }
        Ok(())
    }

    /// What ends a run that costs more than was estimated.
    pub(crate) fn budget(&self, scenario: &Scenario) -> Budget {
        let seconds = scenario.duration.as_secs_f64().ceil().max(1.0) as u64;
        let usual = narrows_sim::budget(scenario);
        let least = self.packets / 100;
        let per_second = |total: u64| (total / seconds).max(least);
        Budget {
            packets: usual.packets.min(per_second(self.packets.saturating_mul(4))),
            events: usual.events.min(per_second(self.packets.saturating_mul(EVENTS))),
        }
    }
}

/// Full-sized packets that the links can carry at their highest rates.
fn packets(scenario: &Scenario) -> u64 {
    let highest = |rate: &RateSpec| match rate {
        RateSpec::Schedule(steps) => steps.iter().map(|&(_, rate)| rate).max().unwrap_or(Rate::ZERO),
        RateSpec::Trace { .. } => rate.initial(),
    };
    let carried = scenario.hops.iter().map(|hop| highest(&hop.rate).bytes_in(scenario.duration).0 / 1500);
    carried.fold(0, u64::saturating_add)
}

/// A large number in words: `12 million`.
fn counted(n: u64) -> String {
    match n {
        0..1_000_000 => format!("{} thousand", n.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{} million", n / 1_000_000),
        _ => format!("{} billion", n / 1_000_000_000),
    }
}
