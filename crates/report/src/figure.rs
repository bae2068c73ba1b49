//! The figures that tables, pages and differences share: each is defined once, with its unit and the function that reads it from a run.
use crate::comparison::{Run, Source};
use narrows_results::Jain;
use narrows_results::Summary;
use narrows_results::outcome::EXAMPLE;
use narrows_results::summary::{Application, Completion, FlowSummary, HopSummary, Quantiles, RttQuantiles, Verdicts};

/// The part of a run from which figures are read: a hop and some of the flows.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// The run.
    pub summary: &'a Summary,
    /// The hop, for figures of a hop.
    pub hop: Option<&'a HopSummary>,
    /// The flows, for figures of flows.
    pub flows: Vec<&'a FlowSummary>,
    /// The flows of which a mean RTT may be taken: alike, and with a hop in common.
    pub alike: Vec<&'a FlowSummary>,
    /// The flows with `web` traffic, whose completion times are page-load times.
    pub web: Vec<&'a FlowSummary>,
    /// Jain's index of the bulk flows among them; `None` with fewer than two.
    pub jain: Option<f64>,
}

impl<'a> Scope<'a> {
    /// The scope of a run with this hop and these flows.
    pub fn of(run: &'a Run, hop: Option<&'a HopSummary>, flows: Option<&Source>) -> Scope<'a> {
        let summary = &run.result.summary;
        let Some(source) = flows else {
            return Scope { summary, hop, flows: Vec::new(), alike: Vec::new(), web: Vec::new(), jain: None };
        };
        let (alike, routes) = (run.alike(source), run.routes());
        let bulk = alike.iter().filter(|flow| routes.is_bulk(flow));
        let jain = bulk.map(|flow| flow.goodput_mbit).collect::<Jain>().index();
        let flows = run.flows(source);
        let web = flows.iter().copied().filter(|flow| routes.is_web(flow)).collect();
        Scope { summary, hop, flows, alike, web, jain }
    }
}

/// A figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The quantity: `sojourn`.
    pub of: &'static str,
    /// The statistic: `p99`; empty if there is only one.
    pub which: &'static str,
    /// Unit; empty if it has none.
    pub unit: &'static str,
    /// Its number format.
    pub digits: Digits,
    /// When a table shows it.
    pub shown: Shown,
    /// Reads the figure from a scope.
    pub read: fn(&Scope<'_>) -> Option<f64>,
}

/// The number format of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Digits {
    /// A measured quantity: two decimals below 10, one below 10 000, then none.
    Real,
    /// A share in per cent: two decimals.
    Percent,
    /// A whole number; means of several runs below 100 get one decimal.
    Count,
    /// An index between 0 and 1: three decimals.
    Index,
}

/// When a table shows a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// In the table of queues.
    Always,
    /// In the table of queues, unless it is zero everywhere.
    IfAny,
    /// In the table of queues, if any row has it.
    IfThere,
    /// Only in differences.
    InDifferences,
}

impl Figure {
    /// `sojourn p99 (ms)`.
    pub fn name(&self) -> String {
        let mut name = self.of.to_owned();
        if !self.which.is_empty() {
            name = format!("{name} {}", self.which);
        }
        if !self.unit.is_empty() {
            name = format!("{name} ({})", self.unit);
        }
        name
    }
}

impl Digits {
    /// Decimals for a column whose largest magnitude is `largest`; `several` means that it holds means of several runs.
    pub fn decimals(self, largest: f64, several: bool) -> usize {
        match self {
            Digits::Real if largest < 10.0 => 2,
            Digits::Real if largest < 10_000.0 => 1,
            Digits::Real => 0,
            Digits::Percent => 2,
            Digits::Count => usize::from(several && largest < 100.0),
            Digits::Index => 3,
        }
    }
}

macro_rules! figures {
    ($( $of:literal, $which:literal, $unit:literal, $digits:ident, $shown:ident, $read:expr; )*) => {
        &[$( Figure {
            of: $of, which: $which, unit: $unit, digits: Digits::$digits, shown: Shown::$shown, read: $read,
        } ),*]
    };
}

/// Figures of a hop.
pub const HOP: &[Figure] = figures! {
    "utilisation", "", "%", Percent, Always, |s| Some(100.0 * s.hop?.utilisation);
    "queue", "mean", "packets", Real, Always, |s| Some(s.hop?.queue_packets?.mean);
    "queue", "p95", "packets", Real, InDifferences, |s| Some(s.hop?.queue_packets?.p95);
    "queue", "max", "packets", Count, InDifferences, |s| Some(s.hop?.queue_packets?.max);
    "sojourn", "mean", "ms", Real, InDifferences, |s| Some(s.hop?.sojourn_ms?.mean);
    "sojourn", "p50", "ms", Real, Always, |s| Some(s.hop?.sojourn_ms?.p50);
    "sojourn", "p95", "ms", Real, InDifferences, |s| Some(s.hop?.sojourn_ms?.p95);
    "sojourn", "p99", "ms", Real, Always, |s| Some(s.hop?.sojourn_ms?.p99);
    "sojourn", "max", "ms", Real, InDifferences, |s| Some(s.hop?.sojourn_ms?.max);
};

/// Figures of several flows together.
pub const FLOWS: &[Figure] = figures! {
    "RTT", "mean", "ms", Real, Always, |s| mean_rtt(&s.alike);
    "RTT", "p50", "ms", Real, InDifferences, |s| worst_rtt(&s.alike, |rtt| rtt.p50);
    "RTT", "p95", "ms", Real, InDifferences, |s| worst_rtt(&s.alike, |rtt| rtt.p95);
    "RTT", "p99", "ms", Real, Always, |s| worst_rtt(&s.alike, |rtt| rtt.p99);
    "goodput", "", "Mbit/s", Real, Always, |s| sum(&s.flows, |flow| flow.goodput_mbit);
};

/// Packets that a hop lost or marked.
pub const LOSSES: &[Figure] = figures! {
    "drops", "", "", Count, Always, |s| Some(s.hop?.drops.total as f64);
    "loss rate", "", "%", Percent, InDifferences, |s| Some(100.0 * s.hop?.loss_rate);
    "marks", "", "", Count, IfAny, |s| Some(s.hop?.marks as f64);
};

/// The flows' reactions to losses.
pub const REPAIRS: &[Figure] = figures! {
    "retransmits", "", "", Count, Always, |s| sum(&s.flows, |flow| flow.retransmits as f64);
    "timeouts", "", "", Count, IfAny, |s| sum(&s.flows, |flow| flow.timeouts as f64);
};

/// Fairness between flows.
pub const FAIRNESS: &[Figure] = figures! {
    "Jain", "", "", Index, IfThere, |s| s.jain;
};

/// Figures of transfers that end.
pub const COMPLETIONS: &[Figure] = figures! {
    "completed", "", "", Count, IfAny, |s| completions(&s.flows).map(|(count, _, _)| count);
    "completion", "mean", "s", Real, IfAny, |s| completions(&s.flows).map(|(_, mean, _)| mean);
    "completion", "p99", "s", Real, IfAny, |s| completions(&s.flows).map(|(_, _, p99)| p99);
};

/// Figures that an application's user would feel; of several flows, the worst. The delay is that of datagrams or of messages.
pub const APPLICATIONS: &[Figure] = figures! {
    "delay", "p50", "ms", Real, IfThere, |s| worst_delay(&s.flows, |ms| ms.p50);
    "delay", "p95", "ms", Real, InDifferences, |s| worst_delay(&s.flows, |ms| ms.p95);
    "delay", "p99", "ms", Real, IfThere, |s| worst_delay(&s.flows, |ms| ms.p99);
    "jitter", "", "ms", Real, IfThere, |s| most(&s.flows, |a| a.jitter_ms);
    "lost", "", "%", Percent, IfThere, |s| most(&s.flows, |a| a.loss.map(|loss| 100.0 * loss));
    "page", "p50", "s", Real, IfThere, |s| worst_page(&s.web, |page| page.p50);
    "page", "p95", "s", Real, IfThere, |s| worst_page(&s.web, |page| page.p95);
    "frame", "p50", "ms", Real, InDifferences, |s| worst_frame(&s.flows, |ms| ms.p50);
    "frame", "p95", "ms", Real, IfThere, |s| worst_frame(&s.flows, |ms| ms.p95);
    "frame", "p99", "ms", Real, InDifferences, |s| worst_frame(&s.flows, |ms| ms.p99);
    "freezes", "", "", Count, IfThere, |s| most(&s.flows, |a| a.video.map(|video| video.freezes as f64));
    "frozen", "", "%", Percent, IfThere, |s| most(&s.flows, |a| a.video.map(|video| 100.0 * video.frozen));
    "voice", "MOS", "", Real, IfThere, |s| least(&s.flows, |a| a.voice.map(|voice| voice.mos));
    "video", "MOS", "", Real, IfThere, |s| least(&s.flows, |a| a.video?.mos);
    "picture", "MOS", "", Real, InDifferences, |s| least(&s.flows, |a| a.video?.picture_mos);
    "QoO", "", "", Count, IfThere, |s| least(&s.flows, |a| a.qoo);
    "RPM", "", "", Count, IfThere, |s| least(&s.flows, |a| a.rpm);
};

/// What the columns of [`APPLICATIONS`] mean, by the figure's quantity; the page explains those that its table has.
pub const EXPLAINED: &[(&str, &str)] = &[
    ("delay", "Delay: one-way of datagrams, from write to read of messages."),
    ("page", "Page: from the request to the last byte."),
    ("frame", "Frame: from its capture until it can be shown."),
    ("voice", "Voice MOS: a G.711 call by the E-model (ITU-T G.107), 1 to 4.5."),
    (
        "video",
        "Video MOS: a video call as a conversation, 1 to 5: its picture (ITU-T P.1203.1; frozen time counts as 1), less the impairment \
         by the mean delay of its frames (Idd of ITU-T G.107).",
    ),
    ("RPM", "RPM: round trips per minute on the loaded connection."),
];

/// The thresholds of the quality of outcome.
pub fn qoo_thresholds() -> String {
    format!("QoO {EXAMPLE}")
}

/// Figures of flows that look for fair queuing, each with the same weight.
pub const VERDICTS: &[Figure] = figures! {
    "verdict", "right", "%", Percent, IfThere, |s| verdicts(&s.flows, |v| v.right);
    "verdict", "wrong", "%", Percent, IfThere, |s| verdicts(&s.flows, |v| v.wrong);
    "verdict", "undecided", "%", Percent, IfThere, |s| verdicts(&s.flows, |v| v.undecided);
};

/// Figures of a single flow, in addition to those of several flows together.
pub const FLOW: &[Figure] = figures! {
    "throughput", "", "Mbit/s", Real, Always, |s| sum(&s.flows, |flow| flow.throughput_mbit);
    "RTT", "min", "ms", Real, Always, |s| min_rtt(&s.flows);
    "lost", "", "", Count, IfAny, |s| lost(&s.flows);
};

/// `None` without flows, so that their figures stay empty rather than zero.
fn sum(flows: &[&FlowSummary], of: fn(&FlowSummary) -> f64) -> Option<f64> {
    (!flows.is_empty()).then(|| flows.iter().map(|flow| of(flow)).sum())
}

/// `None` if it is not known of a flow.
fn lost(flows: &[&FlowSummary]) -> Option<f64> {
    let lost = flows.iter().map(|flow| flow.lost_packets.map(|packets| packets as f64)).sum::<Option<f64>>();
    lost.filter(|_| !flows.is_empty())
}

/// The mean weighted by throughput, since there is one sample per acknowledgment; unweighted if nothing was carried.
fn mean_rtt(flows: &[&FlowSummary]) -> Option<f64> {
    let samples: Vec<(f64, f64)> =
        flows.iter().filter_map(|flow| Some((flow.rtt_ms?.mean, flow.throughput_mbit.max(0.0)))).collect();
    let weight: f64 = samples.iter().map(|s| s.1).sum();
    match samples.len() {
        0 => None,
        _ if weight > 0.0 => Some(samples.iter().map(|(rtt, w)| rtt * w).sum::<f64>() / weight),
        n => Some(samples.iter().map(|s| s.0).sum::<f64>() / n as f64),
    }
}

/// The figure of the worst flow: quantiles of several flows cannot be merged from their summaries.
fn worst_rtt(flows: &[&FlowSummary], of: fn(&RttQuantiles) -> f64) -> Option<f64> {
    flows.iter().filter_map(|flow| flow.rtt_ms.as_ref().map(of)).max_by(f64::total_cmp)
}

fn min_rtt(flows: &[&FlowSummary]) -> Option<f64> {
    flows.iter().filter_map(|flow| Some(flow.rtt_ms?.min)).min_by(f64::total_cmp)
}

fn verdicts(flows: &[&FlowSummary], of: fn(&Verdicts) -> f64) -> Option<f64> {
    let shares: Vec<f64> = flows.iter().filter_map(|flow| flow.verdicts.as_ref().map(of)).collect();
    (!shares.is_empty()).then(|| 100.0 * shares.iter().sum::<f64>() / shares.len() as f64)
}

fn most(flows: &[&FlowSummary], of: fn(&Application) -> Option<f64>) -> Option<f64> {
    flows.iter().filter_map(|flow| of(flow.application.as_ref()?)).max_by(f64::total_cmp)
}

fn least(flows: &[&FlowSummary], of: fn(&Application) -> Option<f64>) -> Option<f64> {
    flows.iter().filter_map(|flow| of(flow.application.as_ref()?)).min_by(f64::total_cmp)
}

fn worst_delay(flows: &[&FlowSummary], of: fn(&Quantiles) -> f64) -> Option<f64> {
    let delay = |flow: &&FlowSummary| {
        let application = flow.application.as_ref()?;
        application.one_way_ms.or(application.messages.map(|messages| messages.delay_ms))
    };
    flows.iter().filter_map(|flow| delay(flow).as_ref().map(of)).max_by(f64::total_cmp)
}

fn worst_frame(flows: &[&FlowSummary], of: fn(&Quantiles) -> f64) -> Option<f64> {
    let delay = |flow: &&FlowSummary| flow.application?.video?.frame_delay_ms;
    flows.iter().filter_map(|flow| delay(flow).as_ref().map(of)).max_by(f64::total_cmp)
}

fn worst_page(flows: &[&FlowSummary], of: fn(&Completion) -> f64) -> Option<f64> {
    let loaded = flows.iter().filter_map(|flow| flow.completion_s.as_ref()).filter(|page| page.count > 0);
    loaded.map(of).max_by(f64::total_cmp)
}

/// Finished transfers, their mean time, and the 99 % quantile of the worst flow.
fn completions(flows: &[&FlowSummary]) -> Option<(f64, f64, f64)> {
    let finite: Vec<_> = flows.iter().filter_map(|flow| flow.completion_s).filter(|c| c.count > 0).collect();
    let count: f64 = finite.iter().map(|c| c.count as f64).sum();
    let mean = finite.iter().map(|c| c.mean * c.count as f64).sum::<f64>() / count;
    let p99 = finite.iter().map(|c| c.p99).max_by(f64::total_cmp)?;
    Some((count, mean, p99))
}
