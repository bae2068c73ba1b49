//! `summary.json`: the figures of a run, under the names that every tool shares.
//!
//! In virtual time all but the last key, `cost`, are the same on every machine for the same scenario and seed.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of a run; warm-up left out.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The scenario's name.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// Length of the run, warm-up included, s.
    pub duration_s: f64,
    /// Length of the warm-up, s.
    pub warmup_s: f64,
    /// Per hop.
    pub hops: Vec<HopSummary>,
    /// Per flow.
    pub flows: Vec<FlowSummary>,
    /// Between flows.
    pub fairness: Fairness,
    /// How exactly a world in real time kept its times; left out by worlds in virtual time, which have no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// The cost of the run; differs from run to run.
    pub cost: Cost,
}

impl Summary {
    /// The same figures at no cost: what must be equal between two runs of a scenario with the same seed.
    pub fn without_cost(&self) -> Summary {
        Summary { cost: Cost::default(), ..self.clone() }
    }
}

/// A hop's figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HopSummary {
    /// Its name.
    pub name: String,
    /// Its discipline, with the parameters that are not at their defaults: `fq_codel:target=10ms`.
    pub queue: String,
    /// Bits sent ÷ bits that the link could have carried, or the queue where that shapes to less.
    pub utilisation: f64,
    /// Packets sent.
    pub packets: u64,
    /// Packets waiting, time-weighted, the one being sent left out; null where the world cannot see the queue at every moment.
    pub queue_packets: Option<Quantiles>,
    /// From enqueue to dequeue, ms; null where the world cannot see single packets.
    pub sojourn_ms: Option<Quantiles>,
    /// Packets that arrived.
    pub offered_packets: u64,
    /// Packets dropped.
    pub drops: Drops,
    /// Drops ÷ offered packets.
    pub loss_rate: f64,
    /// Packets marked CE by the queue.
    pub marks: u64,
}

/// Mean and quantiles of a distribution.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Packets dropped at a hop.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Drops {
    /// In all.
    pub total: u64,
    /// By the names of `DropReason`; reasons that did not occur are left out.
    pub by_reason: BTreeMap<String, u64>,
}

/// A flow's figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Its name: `bulk.3` when its group has several.
    pub name: String,
    /// Its congestion control; `none` for UDP.
    pub controller: String,
    /// Payload delivered to the receiving application, Mbit/s, over the part of the flow's life after the warm-up.
    pub goodput_mbit: f64,
    /// The same with headers and duplicates, as received at the IP layer, Mbit/s.
    pub throughput_mbit: f64,
    /// Round-trip times seen by the sender, one sample per acknowledgment, ms; for UDP one-way delay doubled is never
    /// shown: null.
    pub rtt_ms: Option<RttQuantiles>,
    /// Time that its data packets spent in the queues on their way, ms; null for flows without series of their own.
    pub sojourn_ms: Option<Quantiles>,
    /// Packets sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets lost on the way.
    pub lost_packets: u64,
    /// Completion times of its transfers, s; null for flows without an end.
    pub completion_s: Option<Completion>,
    /// Verdicts of a detector, as shares of time; null without one.
    pub verdicts: Option<Verdicts>,
    /// The hops that its data cross, for a flow that was found behind a shell; left out where the scenario has the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<String>>,
    /// Share of the measured time in which its payload arrived, in steps of a quarter of a second; of programs' flows only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<f64>,
}

/// Round-trip times, ms.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RttQuantiles {
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
}

/// Completion times of transfers, s.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Completion {
    /// Transfers finished.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

/// How a detector fared: shares of the time in which its verdict was right, wrong or withheld. Right is what the narrowest
/// hop of the flow's route does at the time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Verdicts {
    /// Right.
    pub right: f64,
    /// Wrong.
    pub wrong: f64,
    /// Undecided.
    pub undecided: f64,
    /// Right, as a share of the time in which there was a verdict; null if there never was one.
    pub accuracy: Option<f64>,
    /// Time from the start, or from the last change of the bottleneck, to the first right verdict, s; null if there was none.
    pub found_s: Option<f64>,
    /// The same in round trips of the connection, queues and all: one ends when a packet that was sent in it is acknowledged.
    #[serde(default)]
    pub found_rtts: Option<u64>,
    /// How often the verdict changed.
    pub changes: u64,
    /// The connection's time cut at its events (fair queuing was found and answered; a recovery from loss began): the part of
    /// the time from the first event to the last but one in which the event at the end of each stretch told the truth, a
    /// detection where the queue is fair, a recovery where it is not; null with fewer than three events.
    #[serde(default)]
    pub event_accuracy: Option<f64>,
    /// How many such events there were.
    #[serde(default)]
    pub events: u64,
    /// Time in which the connection made a queue, s: tenths of a second in which four packets of its own or more waited in the queues
    /// of its way there, on average.
    #[serde(default)]
    pub queued_s: f64,
    /// Right, as a share of that time; null where it is less than a second.
    #[serde(default)]
    pub queued_right: Option<f64>,
}

/// Between flows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Fairness {
    /// Jain's index of the goodputs of bulk flows that share a hop, at the hop where it is least; 1 when all are equal, and
    /// where no hop has two.
    pub jain: f64,
}

/// How exactly a world in real time kept its times. In its records every packet leaves when it was due; here is how much
/// later it really was handed on. Warm-up left out.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Packets handed on.
    pub packets: u64,
    /// How much later than due they were, ms.
    pub late_ms: Quantiles,
    /// Share of them that were more than 1 ms late, 0 to 1.
    pub late_share: f64,
    /// Share of them that were read in a wake-up more than 1 ms late, 0 to 1: they may have arrived as much before the
    /// time that was noted.
    pub stamped_late_share: f64,
    /// Packets that the devices lost: dropped before these threads had read them, so that no queue of the scenario saw them, or
    /// not taken from them. Since the start, warm-up included.
    #[serde(default)]
    pub overrun_packets: u64,
    /// Datagrams of the scenario's own flows that were not sent: their thread was too late, or the system did not take them.
    #[serde(default)]
    pub unsent_packets: u64,
    /// Connections of the scenario's own flows that ended before they had finished.
    #[serde(default)]
    pub broken_connections: u64,
    /// How often the threads that carry packets woke up.
    pub wakes: u64,
    /// Processor time of these threads, in the kernel and outside, s.
    pub cpu_s: f64,
}

/// The cost of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Packets dequeued at all hops, warm-up included.
    pub packets: u64,
    /// Events handled.
    pub events: u64,
    /// Wall-clock time, s.
    pub wall_s: f64,
    /// Packets ÷ wall-clock time.
    pub packets_per_s: f64,
    /// The simulator's own state at its peak, bytes.
    pub peak_bytes: u64,
}
