//! `summary.json`: the figures of a run. Every tool uses these names.
//!
//! In virtual time all keys but the last, `cost`, have the same values on every machine for the same scenario and seed.
use crate::setup::Setup;
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
    /// Fairness between flows.
    pub fairness: Fairness,
    /// Where the run was made; left out by the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<MadeIn>,
    /// How exactly a world in real time kept its times; left out by worlds in virtual time, which are always exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// The conditions of the run; left out by a shell, whose flows are not given before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// The cost of the run; differs from run to run.
    pub cost: Cost,
}

impl Summary {
    /// The same figures with a zero cost, for comparison: two runs of a scenario with the same seed must give equal ones.
    pub fn without_cost(&self) -> Summary {
        Summary { cost: Cost::default(), ..self.clone() }
    }
}

/// The world of a run that had a real kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MadeIn {
    /// Its name: `live`, `kernel`.
    pub name: String,
    /// The release of the Linux kernel whose sockets sent: `7.2.12+deb13-cloud-amd64`.
    pub linux: String,
    /// How its time passed.
    pub time: Passing,
}

/// How a world's time passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Passing {
    /// Its clock counts instructions: the host's load has no effect.
    Virtual,
    /// Its clock is the host's.
    Real,
}

/// A hop's figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HopSummary {
    /// Its name.
    pub name: String,
    /// Its discipline, with the parameters that differ from their defaults: `fq_codel:target=10ms`.
    pub queue: String,
    /// Bits sent ÷ bits that the link could have carried, or the queue if it shapes to a lower rate; 0 to 1.
    pub utilisation: f64,
    /// Packets sent.
    pub packets: u64,
    /// Packets waiting, time-weighted, without the one being sent; null where the world cannot see the queue at every moment.
    pub queue_packets: Option<Quantiles>,
    /// Sojourn time, from enqueue to dequeue, ms; null where the world cannot see single packets.
    pub sojourn_ms: Option<Quantiles>,
    /// Packets that arrived.
    pub offered_packets: u64,
    /// Packets dropped by the queue, or lost at random by the link (`link_loss`).
    pub drops: Drops,
    /// Drops ÷ packets that left the queue, sent or dropped; 0 to 1. Random losses of the link count in every world.
    pub loss_rate: f64,
    /// Packets that the queue marked CE.
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
    /// In total.
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
    /// Round-trip times measured by the sender, one sample per acknowledgment, ms; null for UDP (doubled one-way delays are not
    /// shown instead).
    pub rtt_ms: Option<RttQuantiles>,
    /// Time that its data packets spent in the queues on their way, ms; null for flows without series of their own.
    pub sojourn_ms: Option<Quantiles>,
    /// Packets retransmitted; null for a transport that does not show them.
    pub retransmits: Option<u64>,
    /// Retransmission timeouts; null for a transport that does not show them.
    pub timeouts: Option<u64>,
    /// Packets lost on the way; null where the world cannot see single packets.
    pub lost_packets: Option<u64>,
    /// Completion times of its transfers, s; null for flows without an end.
    pub completion_s: Option<Completion>,
    /// A detector's verdicts, as shares of time; null without a detector.
    pub verdicts: Option<Verdicts>,
    /// The hops that its data cross, for a flow that was found behind a shell; left out where the scenario has the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<String>>,
    /// Transport, addresses and ports of a flow that was found behind a shell: `tcp 100.64.0.2:58288 > 100.64.0.1:5201`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub five_tuple: Option<String>,
    /// Share of the measured time in which its payload arrived, in steps of a quarter of a second; for programs' flows only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<f64>,
    /// The figures that its application's user would feel; left out where the world can measure none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
}

/// Figures of a flow's application. Each is null where the traffic has no such figure or the world cannot measure it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Application {
    /// One-way delay of datagrams, from the sending to the receiving application, ms; of those that arrived.
    pub one_way_ms: Option<Quantiles>,
    /// Interarrival jitter (RFC 3550 §6.4.1) of datagrams, ms: the mean of the estimate after each arrival.
    pub jitter_ms: Option<f64>,
    /// Datagrams lost ÷ (arrived + lost), 0 to 1.
    pub loss: Option<f64>,
    /// Messages over TCP or QUIC.
    pub messages: Option<Messages>,
    /// The score of a voice call.
    pub voice: Option<Voice>,
    /// A video call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
    /// Responsiveness on the load-generating connection, round trips per minute (draft-ietf-ippm-responsiveness-09 §5.3.1).
    pub rpm: Option<f64>,
    /// Quality of outcome, 0 to 100 (draft-ietf-ippm-qoo-10 §3.3), for the example requirement of its Figure 1.
    pub qoo: Option<f64>,
}

/// Messages of an application over a reliable transport.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Messages {
    /// Messages read, and messages in `delay_ms` that were still unread at the end.
    pub count: u64,
    /// From the sender's write to the receiver's read of the last byte, retransmissions and head-of-line blocking included, ms. A
    /// message that is unread at the end counts with its age if that is longer than any message that was read took.
    pub delay_ms: Quantiles,
    /// Messages written and not read at the end.
    pub unread: u64,
}

/// The E-model's score (ITU-T G.107) of a narrowband call with G.711 and packet loss concealment.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Voice {
    /// Transmission rating factor R, 0 to 100.
    pub r: f64,
    /// Mean opinion score, estimated for conversations (G.107 Annex B), 1 to 4.5.
    pub mos: f64,
    /// One-way delay up to which packets are played, ms: the constant one with which R is highest.
    pub playout_ms: f64,
    /// Share of packets that were lost or came later than that, 0 to 1.
    pub loss: f64,
}

/// A video call, as its receiver sees it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Video {
    /// Frames that the encoder made.
    pub frames: u64,
    /// Frames that it left out, because too much waited at the sender.
    pub skipped: u64,
    /// Frames shown.
    pub shown: u64,
    /// From a frame's capture to the moment at which it could be shown, ms; of frames that were shown.
    pub frame_delay_ms: Option<Quantiles>,
    /// Freezes, as WebRTC's statistics count them: two frames were shown at least max(3 × mean, mean + 150 ms) after each other, where the
    /// mean is over the 30 intervals before. A picture that is frozen at the end counts.
    pub freezes: u64,
    /// Duration of these freezes, s.
    pub frozen_s: f64,
    /// Their share of the time, 0 to 1.
    pub frozen: f64,
    /// Bits of the frames shown, per second, Mbit/s; without headers.
    pub rate_mbit: f64,
    /// Packets sent again.
    pub resent_packets: u64,
    /// Opinion score of the picture, 1 to 5: ITU-T P.1203.1 mode 0 for the coding, where frozen time counts as 1; null below 24 frames
    /// per second.
    #[serde(default)]
    pub picture_mos: Option<f64>,
    /// Opinion score of the call as a conversation, 1 to 5: that of the picture, less the impairment by the mean delay of its frames (Idd of
    /// ITU-T G.107, equations 7-27 and 7-28).
    pub mos: Option<f64>,
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

/// A detector's verdicts: shares of the time in which the verdict was right, wrong or undecided. A verdict is right if it says what
/// the narrowest hop of the flow's route does at the time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Verdicts {
    /// Share of time with a right verdict, 0 to 1.
    pub right: f64,
    /// Share of time with a wrong verdict, 0 to 1.
    pub wrong: f64,
    /// Share of time without a verdict, 0 to 1.
    pub undecided: f64,
    /// Time with a right verdict, as a share of the time with any verdict; null if there never was one.
    pub accuracy: Option<f64>,
    /// Time from the start, or from the last change of the bottleneck, to the first right verdict, s; null if there was none.
    pub found_s: Option<f64>,
    /// The same in round trips of the connection, queuing included: one ends when a packet that was sent in it is acknowledged.
    #[serde(default)]
    pub found_rtts: Option<u64>,
    /// How often the verdict changed.
    pub changes: u64,
    /// Accuracy at the connection's events (it found and answered fair queuing, or a recovery from a loss or a CE mark began), from the
    /// first event to the last, as a share of that time. The time between two events counts as right if the event at its end is: a
    /// detection where the queue is fair, a recovery where it is not. Null with fewer than two events.
    #[serde(default)]
    pub event_accuracy: Option<f64>,
    /// Number of such events.
    #[serde(default)]
    pub events: u64,
    /// Of these, detections of fair queuing.
    #[serde(default)]
    pub detections: u64,
    /// Of these, recoveries.
    #[serde(default)]
    pub recoveries: u64,
    /// Time in which the connection made a queue, s: tenths of a second in which four or more of its own packets waited in the queues
    /// of its route, on average. Null where the world cannot see single packets.
    #[serde(default)]
    pub queued_s: Option<f64>,
    /// Time with a right verdict, as a share of that time; null if that is less than a second, or not known.
    #[serde(default)]
    pub queued_right: Option<f64>,
}

/// Fairness between flows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Fairness {
    /// Jain's index of the goodputs of bulk flows that share a hop, at the hop where it is lowest; 1 if all are equal, or if no hop
    /// has two bulk flows.
    pub jain: f64,
}

/// How exactly a world in real time kept its times. Its records have every packet leave when it was due; these figures say how
/// much later it was really handed on. Warm-up left out.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Packets handed on.
    pub packets: u64,
    /// How much later than due packets were handed on, ms.
    pub late_ms: Quantiles,
    /// Share of packets that were more than 1 ms late, 0 to 1.
    pub late_share: f64,
    /// Share of packets that were read in a wake-up more than 1 ms late, 0 to 1: they may have arrived that much earlier than
    /// recorded.
    pub stamped_late_share: f64,
    /// Packets that the devices lost: dropped before these threads had read them, so that no queue of the scenario saw them, or
    /// never delivered from the devices. Since the start, warm-up included.
    #[serde(default)]
    pub overrun_packets: u64,
    /// Datagrams of the scenario's own flows that were not sent: their thread was late, or the system refused them.
    #[serde(default)]
    pub unsent_packets: u64,
    /// Connections of the scenario's own flows that ended before their data were complete.
    #[serde(default)]
    pub broken_connections: u64,
    /// Number of wake-ups of the threads that carry packets.
    pub wakes: u64,
    /// CPU time of these threads, user and system, s.
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
    /// Peak size of the simulator's own state, bytes.
    pub peak_bytes: u64,
}
