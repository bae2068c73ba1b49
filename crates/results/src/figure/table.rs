//! The table of figures: a row each, in the order in which lists and tables have them.
use super::Among::{Alike, Finished, Web};
use super::When::{Always, IfAny, IfThere, InDifferences, OfFlows};
use super::read::{FieldValue, figure, one, stat};
use super::{Better, Class, Figure, Owner, Read, Section};
use crate::summary::{FlowSummary, HopSummary, Quantiles, Summary};

macro_rules! hop {
    ($($row:tt)*) => { figure!(Hop, HopSummary: $($row)*) };
}
macro_rules! flow {
    ($($row:tt)*) => { figure!(Flow, FlowSummary: $($row)*) };
}
macro_rules! run {
    ($($row:tt)*) => { figure!(Run, Summary: $($row)*) };
}

/// The figures of summaries, and the quantities of series.
#[rustfmt::skip]
pub static FIGURES: &[Figure] = &[
    // Hops.
    hop!(utilisation, "utilisation", Share, More, "bits sent ÷ bits that the link could have carried, 0 to 1")
        .table(Section::Link, &[one(Always).beside()]),
    hop!(packets, "packets", Count, Neither, "packets sent"),
    hop!(queue_packets, "queue", Amount, Less, "packets waiting, weighted by time; the one being sent is not counted")
        .table(Section::Link, &[stat("mean", Always).spare(2), stat("p95", InDifferences), stat("max", InDifferences)])
        .chart(3, "Queue"),
    hop!(sojourn_ms, "sojourn", Delay, Less, "time from entering the queue to leaving it")
        .table(Section::Link, &[
            stat("mean", InDifferences), stat("p50", Always).spare(9), stat("p95", InDifferences), stat("p99", Always),
            stat("max", InDifferences),
        ])
        .chart(5, "Sojourn time"),
    hop!(offered_packets, "offered", Count, Neither, "packets that arrived"),
    hop!(drops.total, "drops", Count, Less, "packets that the queue dropped or the link lost")
        .table(Section::Losses, &[one(Always).spare(17)]),
    hop!(drops.by_reason, "drops by reason", Count, Less, "packets dropped for this reason, such as `aqm`"),
    hop!(loss_rate, "loss rate", Share, Less, "drops ÷ packets that left the queue, sent or dropped, 0 to 1")
        .table(Section::Losses, &[one(InDifferences)]),
    hop!(marks, "marks", Count, Neither, "packets that the queue marked CE").table(Section::Losses, &[one(IfAny).spare(10)]),
    setup(Owner::Hop, "rate_mbit", "rate", Class::Rate, "the link's rate at the start, or a trace's mean"),
    series(Owner::Hop, "drops_per_s", "Drops", (Class::Count, Better::Less), "packets that the queue drops, by any rule", 6),
    series(Owner::Hop, "drop_probability", "Drop probability", (Class::Index, Better::Neither),
        "probability with which the queue drops or marks an arriving packet", 12),
    series(Owner::Hop, "limit_packets", "Limit", (Class::Amount, Better::Neither),
        "packets that the queue holds at most, or a flow's buffer does", 13),
    series(Owner::Hop, "target_ms", "Target", (Class::Delay, Better::Neither), "sojourn time that the queue aims at", 14),

    // Flows.
    flow!(goodput_mbit, "goodput", Rate, More,
        "payload that arrived for the first time; of a group its flows' sum, as the other rates and counts")
        .sum().table(Section::Goodput, &[one(Always).beside()]),
    flow!(throughput_mbit, "throughput", Rate, More, "bits on the wire per second, with headers and retransmissions")
        .sum().table(Section::Throughput, &[one(Always).spare(7)]).chart(0, "Throughput"),
    flow!(rtt_ms, "RTT", Delay, Less, "round-trip time as the sender sees it, a sample per acknowledgment; not of UDP")
        .among(Alike)
        .table(Section::Rtt, &[
            stat("min", OfFlows).spare(8), stat("mean", Always).spare(15), stat("p50", InDifferences),
            stat("p95", InDifferences), stat("p99", Always).beside(),
        ])
        .chart(1, "RTT"),
    flow!(sojourn_ms, "sojourn", Delay, Less, "time that data packets spent in queues"),
    flow!(retransmits, "retransmits", Count, Less, "segments sent again")
        .sum().table(Section::Retransmits, &[one(Always).spare(1)]),
    flow!(timeouts, "timeouts", Count, Less, "expiries of the retransmission timer")
        .sum().table(Section::Timeouts, &[one(IfAny).spare(3)]),
    flow!(lost_packets, "lost", Count, Less, "packets lost on the way").sum().table(Section::Lost, &[one(IfAny)]),
    flow!(completion_s.count, "completed", Count, More, "transfers that have finished")
        .sum().among(Finished).table(Section::Completions, &[one(IfAny).spare(6)]),
    flow!(completion_s, "completion", Delay, Less, "completion times of transfers, of flows with an end")
        .among(Finished).table(Section::Completions, &[stat("mean", IfAny).spare(5), stat("p99", IfAny)]),
    flow!(verdicts.right, "verdict right", Share, More, "share of time in which a detector's verdict is right")
        .table(Section::Verdicts, &[one(IfThere)]),
    flow!(verdicts.wrong, "verdict wrong", Share, Less, "share of time in which a detector's verdict is wrong")
        .table(Section::Verdicts, &[one(IfThere).spare(19)]),
    flow!(verdicts.undecided, "verdict undecided", Share, Less, "share of time in which a detector has no verdict")
        .table(Section::Verdicts, &[one(IfThere).spare(4)]),
    flow!(verdicts.accuracy, "accuracy", Share, More, "time with a right verdict ÷ time with any verdict"),
    flow!(verdicts.found_s, "found", Delay, Less,
        "time from the start, or from the last change of the bottleneck, to the first right verdict"),
    flow!(verdicts.found_rtts, "found, round trips", Count, Less, "round trips of the connection until then"),
    flow!(verdicts.changes, "verdict changes", Count, Less, "number of changes of a detector's verdict"),
    flow!(verdicts.event_accuracy, "event accuracy", Share, More,
        "share of the time between answers to fair queuing and recoveries in which the event at its end is right"),
    flow!(verdicts.events, "events", Count, Neither, "number of answers to fair queuing and of recoveries"),
    flow!(verdicts.detections, "detections", Count, Neither, "number of answers to fair queuing"),
    flow!(verdicts.recoveries, "recoveries", Count, Neither, "number of recoveries from a loss or a CE mark"),
    flow!(verdicts.queued_s, "queued", Delay, Less,
        "time in which at least four packets of the connection waited in queues, on average over a tenth of a second"),
    flow!(verdicts.queued_right, "queued, verdict right", Share, More, "share of this time (`queued_s`) with a right verdict"),
    Figure::new((Owner::Flow, "delay_ms"), Quantiles::STATISTICS,
        ("delay", Class::Delay, Better::Less, "one-way delay of datagrams; of messages from write to read"),
        Read::Flow(|flow, which| {
            let application = flow.application?;
            let messages = || application.messages.map(|messages| messages.delay_ms);
            application.one_way_ms.or_else(messages)?.statistic(which)
        }))
        .worst()
        .table(Section::Applications, &[
            stat("p50", IfThere).spare(11).beside(), stat("p95", InDifferences), stat("p99", IfThere).beside(),
        ]),
    flow!(application.one_way_ms, "one-way delay", Delay, Less, "one-way delay of datagrams that arrived"),
    flow!(application.jitter_ms, "jitter", Delay, Less, "interarrival jitter of datagrams (RFC 3550)")
        .worst().table(Section::Applications, &[one(IfThere).spare(14)]),
    flow!(application.loss, "lost", Share, Less, "datagrams lost ÷ those that arrived or were lost, 0 to 1")
        .worst().table(Section::Applications, &[one(IfThere)]),
    flow!(application.messages.count, "messages", Count, Neither, "messages read, and unread ones in `delay_ms`"),
    flow!(application.messages.delay_ms, "message delay", Delay, Less, "from the write of a message to the read of its last byte"),
    flow!(application.messages.unread, "unread messages", Count, Less, "messages written and not read at the end"),
    flow!(completion_s, "page", Delay, Less, "from the request of a page to its last byte")
        .worst().among(Web)
        .table(Section::Applications, &[stat("p50", IfThere).spare(12), stat("p95", IfThere).beside()]),
    flow!(application.video.frame_delay_ms, "frame", Delay, Less, "from a frame's capture until it can be shown")
        .worst()
        .table(Section::Applications, &[
            stat("p50", InDifferences), stat("p95", IfThere).beside(), stat("p99", InDifferences),
        ]),
    flow!(application.video.freezes, "freezes", Count, Less, "freezes of the picture, as WebRTC counts them")
        .worst().table(Section::Applications, &[one(IfThere)]),
    flow!(application.video.frozen_s, "frozen time", Delay, Less, "total duration of the freezes of a picture"),
    flow!(application.video.frozen, "frozen", Share, Less, "share of the time in which the picture is frozen, 0 to 1")
        .worst().table(Section::Applications, &[one(IfThere).beside()]),
    flow!(application.voice.mos, "voice MOS", Score, More, "a G.711 call by the E-model (ITU-T G.107), 1 to 4.5")
        .worst().table(Section::Applications, &[one(IfThere).beside()]),
    flow!(application.voice.r, "voice R", Points, More, "transmission rating factor R of a voice call (ITU-T G.107), 0 to 100"),
    flow!(application.voice.playout_ms, "voice playout", Delay, Less, "one-way delay up to which packets of a voice call are played"),
    flow!(application.voice.loss, "voice loss", Share, Less, "share of a voice call's packets that were lost or came later than that, 0 to 1"),
    flow!(application.video.mos, "video MOS", Score, More,
        "a video call as a conversation, 1 to 5: its picture (ITU-T P.1203.1; frozen time counts as 1), less the impairment by the mean \
         delay of its frames (Idd of ITU-T G.107)")
        .worst().table(Section::Applications, &[one(IfThere).beside()]),
    flow!(application.video.picture_mos, "picture MOS", Score, More, "picture of a video call alone (ITU-T P.1203.1), 1 to 5")
        .worst().table(Section::Applications, &[one(InDifferences)]),
    flow!(application.video.frames, "frames", Count, Neither, "frames that a video call's encoder made"),
    flow!(application.video.skipped, "skipped frames", Count, Less, "frames that the encoder left out because too much waited at the sender"),
    flow!(application.video.shown, "shown frames", Count, More, "frames that the receiver of a video call showed"),
    flow!(application.video.rate_mbit, "video rate", Rate, More, "bits of the frames shown per second, without headers"),
    flow!(application.video.resent_packets, "resent", Count, Less, "packets of a video call that were sent again"),
    flow!(application.qoo, "QoO", Points, More,
        "quality of outcome, 100 to 0: 99 % of packets within 100 to 200 ms, 99.9 % within 200 to 300 ms, 0.1 to 2 % lost")
        .worst().table(Section::Applications, &[one(IfThere).spare(18)]),
    flow!(application.rpm, "RPM", Count, More, "round trips per minute on the loaded connection")
        .worst().table(Section::Applications, &[one(IfThere).spare(13)]),
    flow!(active, "active", Share, Neither, "share of time in which payload arrived; only of programs' flows"),
    setup(Owner::Flow, "base_rtt_ms", "base RTT", Class::Delay, "the round-trip time without queues, as the scenario gives it"),
    series(Owner::Flow, "one_way_ms", "One-way delay", (Class::Delay, Better::Less),
        "one-way delay of datagrams that arrived, their mean over an interval", 2),
    series(Owner::Flow, "cwnd_packets", "Congestion window", (Class::Amount, Better::Neither),
        "packets that the sender may have in flight", 4),
    series(Owner::Flow, "srtt_ms", "Smoothed RTT", (Class::Delay, Better::Less),
        "the sender's moving average of its RTT (RFC 6298)", 7),
    series(Owner::Flow, "ssthresh_packets", "Slow-start threshold", (Class::Amount, Better::Neither),
        "window at which slow start ends (RFC 5681)", 8),
    series(Owner::Flow, "inflight_packets", "In flight", (Class::Amount, Better::Neither),
        "packets sent and neither acknowledged nor counted as lost", 9),
    series(Owner::Flow, "pacing_mbit", "Pacing rate", (Class::Rate, Better::Neither),
        "rate at which the sender lets packets leave", 10),
    series(Owner::Flow, "target_mbit", "Encoder's rate", (Class::Rate, Better::More),
        "rate that the rate control of a video call gives to the encoder", 11),

    // The run.
    run!(fairness.jain, "Jain", Index, More, "Jain's index of the goodputs of bulk flows that share a hop")
        .table(Section::Fairness, &[one(IfThere).spare(16)]),
    run!(timing.packets, "packets handed on", Count, Neither, "packets handed on; like all of `timing` only in real time"),
    run!(timing.late_ms, "late", Delay, Less, "how much later than due packets were handed on"),
    run!(timing.late_share, "late share", Share, Less, "share of packets more than 1 ms late"),
    run!(timing.stamped_late_share, "stamped late", Share, Less, "share of packets read in a wake-up more than 1 ms late"),
    run!(timing.overrun_packets, "overrun", Count, Less, "packets lost at the devices, before or after the hops"),
    run!(timing.unsent_packets, "unsent", Count, Less, "datagrams of the scenario's own flows that were not sent"),
    run!(timing.broken_connections, "broken connections", Count, Less, "connections of the scenario's own flows that ended before their data were complete"),
    run!(timing.wakes, "wakes", Count, Less, "wake-ups of the threads that carry packets"),
    run!(timing.cpu_s, "CPU time", Delay, Less, "CPU time of the threads that carry packets"),
    run!(cost.packets, "packets of all hops", Count, Neither, "packets dequeued at all hops, warm-up included"),
    run!(cost.events, "events", Count, Less, "events that the simulator handled"),
    run!(cost.wall_s, "wall-clock time", Delay, Less, "wall-clock time of the run"),
    run!(cost.packets_per_s, "packets per second", Count, More, "packets of `cost.packets` ÷ wall-clock time"),
    run!(cost.peak_bytes, "memory", Amount, Less, "peak size of the simulator's own state"),
];

/// A condition of the run.
const fn setup(of: Owner, path: &'static str, title: &'static str, class: Class, sentence: &'static str) -> Figure {
    Figure::new((of, path), &[], (title, class, Better::Neither, sentence), Read::Setup)
}

/// A quantity that only series have; what a queue or a controller reports of itself is one of them if charts should name it.
const fn series(
    of: Owner,
    path: &'static str,
    title: &'static str,
    (class, better): (Class, Better),
    sentence: &'static str,
    place: usize,
) -> Figure {
    Figure::new((of, path), &[], (title, class, better, sentence), Read::Series).chart(place, title)
}
