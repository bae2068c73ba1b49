//! The figures of one direction, made from what its sender's [`Meter`] has collected.
//!
//! Every figure that is not known is absent. `sanitized` is for figures that came from another host.
use crate::answer::Answer;
use crate::buffer::NO_QUEUE;
use crate::bursts::Bursts;
use crate::limiter::Limiter;
use crate::meter::{Load, Meter};
use narrows_core::detector::{Finding, Verdict};
use narrows_core::{Span, Time};
use narrows_quic::{EcnCounts, PATHS};
use serde::{Deserialize, Serialize};

/// Whether the bottleneck serves the flows in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fairness {
    /// Each flow has a queue of its own.
    Fair,
    /// All flows share a queue.
    Shared,
    /// The two flows do not cross one bottleneck, so that there is nothing to judge.
    Apart,
    /// The evidence does not decide.
    #[default]
    Undecided,
}

/// Between whom a fair queue is fair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Flows of one host as well.
    PerFlow,
    /// Hosts only: flows of one host share a queue.
    PerHost,
}

/// What becomes of ECN's bits, which every packet leaves with (ECT(0), RFC 9000 §13.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    /// They arrive as they were sent.
    Passes,
    /// They are erased on the way.
    Bleached,
    /// An AQM marked some, and the marks have come through.
    Marks,
}

/// Fewer packets say nothing about ECN.
const TELLING: u64 = 10;

impl Ecn {
    /// What the receiver's counts show; `None`: too few packets came, or some were erased and others not.
    pub fn of(arrived: &EcnCounts) -> Option<Ecn> {
        let (packets, capable) = (arrived.packets(), arrived.ect0 + arrived.ect1 + arrived.ce);
        match () {
            () if packets < TELLING => None,
            () if arrived.ce > 0 => Some(Ecn::Marks),
            () if capable == 0 => Some(Ecn::Bleached),
            () if capable * 2 > packets => Some(Ecn::Passes),
            () => None,
        }
    }
}

/// RTT under load, ms.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkingRtt {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// One of the two flows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subflow {
    /// Packets sent.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Mean RTT under load, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
}

/// Why the bottleneck counts as fair or shared.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Decisions of the sequential test.
    pub decisions: u32,
    /// Time from the begin of the bulk transfer to the first finding, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_after_s: Option<f64>,
    /// Whether it was the ramp that decided, because the test on CUBIC did not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_ramp: bool,
    /// Whether the finding has changed from one to the other.
    pub changed: bool,
    /// Both flows.
    pub subflows: Vec<Subflow>,
}

/// Series over the time since the begin of the bulk transfer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// Ends of the intervals, s.
    pub at_s: Vec<f64>,
    /// Mean RTT of each subflow in each interval, ms; none without packets.
    pub rtt_ms: Vec<Vec<Option<f64>>>,
    /// Rate of each subflow in each interval, Mbit/s at the IP layer.
    pub rate_mbit: Vec<Vec<f64>>,
    /// Verdicts: time, 1 fair, −1 shared or 0 undecided, confidence.
    pub verdicts: Vec<(f64, i8, f64)>,
}

/// The figures of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Whether the bottleneck queues fairly.
    pub fair_queuing: Fairness,
    /// Confidence of that, from 0 to 1; absent where it could not be tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The same of two flows that leave from two addresses, where that was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_hosts: Option<Fairness>,
    /// Between whom it is fair, where two addresses were tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// What it is based on.
    pub evidence: Evidence,
    /// Rate delivered, Mbit/s at the IP layer: the median of the rates over 0.3 s in which packets waited; where there are hardly any, the
    /// 90th percentile of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbit: Option<f64>,
    /// The sender's limit was reached, so that the path may carry more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rate_is_capped: bool,
    /// The 10th and the 90th percentile of these rates, where there are enough of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_range_mbit: Option<[f64; 2]>,
    /// The rate changed while packets waited, or pings did without load: other traffic uses the link, or its own rate varies. Then the rate may be
    /// a share of the link's, and the base RTT may have other flows' queue in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub beside_others: bool,
    /// Packets left the bottleneck in bursts; absent where they came evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// RTT without a queue, ms: the lower of the idle RTT and the 5th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_rtt_ms: Option<f64>,
    /// RTT of the bulk transfer's packets after its first quarter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_rtt_ms: Option<WorkingRtt>,
    /// Round trips per minute under load: 60 000 ÷ the median of the RTT, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
    /// Largest queuing delay before the first loss, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_ms: Option<f64>,
    /// That times the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// Nothing was lost, or an AQM dropped: the buffer may be larger.
    #[serde(default, skip_serializing_if = "is_false")]
    pub buffer_is_at_least: bool,
    /// Share of the packets that were lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Whether packets were dropped or marked while the queue was far from full. Absent when nothing was dropped or marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<bool>,
    /// Whether packets beyond the rate waited; absent when that did not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limiter: Option<Limiter>,
    /// Whether ECN's bits arrive; absent when that did not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Ecn>,
    /// How late timers fired meanwhile, ms, on the host where they were later; 95th percentile. Above 10 ms what delays and losses show is
    /// left out: a shared queue, the buffer, loss, AQM and limiter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ms: Option<f64>,
    /// Length of the transfer, s.
    pub seconds: f64,
    /// Bytes that were acknowledged, at the IP layer.
    pub bytes: u64,
    /// Series, for the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Delivery is counted in bins of this length…
const BIN: Span = Span::ms(50);
/// …and a rate is measured over this number of bins.
const RATE_BINS: usize = 6;
/// A median needs at least this number of rates.
const ENOUGH: usize = 5;
/// Where packets hardly ever waited, the rate is this quantile of all rates.
const RATE_SHARE: f64 = 0.9;
/// One interval of the curves.
const STEP: Span = Span::ms(100);
/// Most verdicts in the curves.
const VERDICTS: usize = 400;
/// Rates of a link that nobody else uses differ by less than this factor, from the 10th to the 90th percentile, while packets wait.
pub(crate) const STEADY: f64 = 1.3;
/// Timers that are later delay packets of all flows, as a shared queue does, ms.
pub(crate) const LATE: f64 = 10.0;
/// Lateness beyond this part of a buffer's delay makes the buffer unknown.
const MOST_LATE: f64 = 0.25;
/// Behind a policer packets wait for no longer than this, and than it takes to send this number of packets.
const POLICED_QUEUE: (Span, f64) = (Span::ms(10), 5.0);

impl Measured {
    /// Adds what two flows from two addresses met; these figures are those of two flows from one.
    fn add_hosts(&mut self, between_hosts: Fairness) {
        self.between_hosts = Some(between_hosts);
        self.isolation = match (self.fair_queuing, between_hosts) {
            (Fairness::Fair, _) => Some(Isolation::PerFlow),
            (Fairness::Shared, Fairness::Fair) => Some(Isolation::PerHost),
            _ => None,
        };
    }
}

impl Answer {
    /// Adds a second probe, whose two flows left from two addresses; those of this one left from one.
    pub fn add_hosts(&mut self, two_hosts: &Answer) {
        let pairs = [(&mut self.upload, &two_hosts.upload), (&mut self.download, &two_hosts.download)];
        for (here, there) in pairs {
            if let (Some(here), Some(there)) = (here, there) {
                here.add_hosts(there.fair_queuing);
            }
        }
        self.sent_bytes += two_hosts.sent_bytes;
        self.received_bytes += two_hosts.received_bytes;
    }
}

impl Meter {
    /// The figures; `None` before the bulk transfer. `now` is its end if it has none; `header` the length of IP and UDP headers.
    pub fn measured(&self, now: Time, header: u32, paths: u8) -> Option<Measured> {
        let load = self.load()?;
        let to = load.to.unwrap_or(now);
        let base = self.base();
        let sent: u64 = self.sent().iter().sum();
        let first_quarter = load.from + to.since(load.from) / 4;
        let mut working: Vec<Span> = self
            .samples
            .iter()
            .flatten()
            .filter(|sample| sample.sent >= first_quarter && sample.sent <= to)
            .map(|sample| sample.rtt)
            .collect();
        working.sort_unstable();
        let bins = self.bins(load.from, to, header);
        let (rate, rate_range_mbit) = self.rate(&bins, load.from, header);
        let working_rtt_ms = working_rtt(&working);
        let aqm = base.and_then(|base| self.aqm(base, load));
        let loss = (sent > 0).then(|| self.losses.len() as f64 / sent as f64);
        let deepest = base.and_then(|base| self.deepest(base, load));
        let finding = self.verdicts.last().filter(|_| paths > 1).map(|last| last.verdict);
        let waits = base.zip(rate).is_none_or(|(base, rate)| !without_queue(&working, base, rate));
        let policer = !waits && !load.capped && self.is_policed();
        let shaper = deepest.is_some_and(|deepest| deepest > NO_QUEUE * 5);
        Some(Measured {
            fair_queuing: finding.map_or(Fairness::Undecided, |verdict| fairness(verdict.finding)),
            confidence: finding.map(|verdict| verdict.confidence),
            between_hosts: None,
            isolation: None,
            evidence: self.evidence(load, first_quarter, to),
            rate_mbit: rate,
            rate_is_capped: load.capped,
            rate_range_mbit,
            beside_others: rate_range_mbit.is_some_and(|[low, high]| high > STEADY * low),
            bursts: self.bursts(load, to),
            base_rtt_ms: base.map(ms),
            working_rtt_ms,
            rpm: working_rtt_ms.filter(|rtt| rtt.p50 > 0.0).map(|rtt| 60_000.0 / rtt.p50),
            buffer_ms: deepest.map(ms),
            buffer_bytes: deepest.zip(rate).map(|(deepest, rate)| (rate * 125.0 * ms(deepest)) as u64),
            buffer_is_at_least: self.losses.is_empty() || aqm == Some(true),
            loss,
            aqm,
            limiter: if policer { Some(Limiter::Policer) } else { shaper.then_some(Limiter::Shaper) },
            ecn: (self.marks > 0).then_some(Ecn::Marks),
            late_ms: None,
            seconds: to.since(load.from).as_secs_f64(),
            bytes: self.acknowledged.iter().map(|packet| u64::from(packet.bytes + header)).sum(),
            curves: Some(self.curves(load.from, to, header)),
        })
    }

    /// Bits delivered in each bin.
    fn bins(&self, from: Time, to: Time, header: u32) -> Vec<f64> {
        let mut bins = vec![0.0; (to.since(from).as_ns() / BIN.as_ns()) as usize];
        for packet in &self.acknowledged {
            let bin = bins.get_mut((packet.at.since(from).as_ns() / BIN.as_ns()) as usize);
            bin.into_iter().for_each(|bin| *bin += f64::from(packet.bytes + header) * 8.0);
        }
        bins
    }

    /// The lower of the idle RTT and the RTT that a twentieth of the packets do not exceed. Not the lowest: on a
    /// busy host one read 38.5 ms on a path of 40 ms, and why is not known.
    fn base(&self) -> Option<Span> {
        let mut rtts: Vec<Span> = self.samples.iter().flatten().map(|sample| sample.rtt).collect();
        rtts.sort_unstable();
        let low = rtts.get(rtts.len() / 20).copied();
        self.idle.into_iter().chain(low).min()
    }

    /// The median of the rates at which packets arrived while there was a queue, and where most of them were.
    fn rate(&self, bins: &[f64], from: Time, header: u32) -> (Option<f64>, Option<[f64; 2]>) {
        let usual = quantile(rates(bins).skip(bins.len() / 4).collect(), RATE_SHARE);
        let (Some(usual), Some(base)) = (usual, self.base()) else { return (self.mean_rate(header), None) };
        // A full-sized packet waits for itself, and for a neighbour that came at the same time.
        let packets = self.acknowledged.iter().map(|packet| packet.bytes + header).max().unwrap_or(0);
        let waits = NO_QUEUE / 2 + Span::from_secs_f64(2.0 * f64::from(packets) * 8.0 / (usual * 1e6));
        let mut lowest: Vec<Option<Span>> = vec![None; bins.len()];
        for sample in self.samples.iter().flatten().filter(|sample| sample.sent >= from) {
            let bin = lowest.get_mut(((sample.sent + sample.rtt).since(from).as_ns() / BIN.as_ns()) as usize);
            bin.into_iter().for_each(|bin| *bin = Some(bin.map_or(sample.rtt, |low| low.min(sample.rtt))));
        }
        let is_busy = |bin: &Option<Span>| bin.is_some_and(|low| low.saturating_sub(base) > waits);
        let busy = rates(bins).zip(lowest.windows(RATE_BINS)).filter(|(_, lowest)| lowest.iter().all(is_busy));
        let busy: Vec<f64> = busy.map(|(rate, _)| rate).collect();
        if busy.len() < ENOUGH {
            return (Some(usual), None);
        }
        // The first of them may be those of slow start.
        let later: Vec<f64> = busy[busy.len() / 4..].to_vec();
        let edges = quantile(later.clone(), 0.1).zip(quantile(later, 0.9));
        (quantile(busy, 0.5), edges.map(|(low, high)| [low, high]))
    }

    /// Of a transfer that was too short for bins: from its first to its last acknowledgment.
    fn mean_rate(&self, header: u32) -> Option<f64> {
        let (first, rest) = self.acknowledged.split_first()?;
        let seconds = rest.last()?.at.since(first.at).as_secs_f64();
        let bits: f64 = rest.iter().map(|packet| f64::from(packet.bytes + header) * 8.0).sum();
        (seconds > 0.0).then(|| bits / seconds / 1e6)
    }

    fn evidence(&self, load: Load, from: Time, to: Time) -> Evidence {
        let decided = self.verdicts.iter().filter(|one| one.verdict.finding.judges());
        let findings: Vec<Finding> = decided.clone().map(|one| one.verdict.finding).collect();
        let subflow = |path: usize| {
            let samples = self.samples[path].iter().filter(|sample| sample.sent >= from && sample.sent <= to);
            let rtts: Vec<f64> = samples.map(|sample| ms(sample.rtt)).collect();
            Subflow {
                packets: self.sent()[path],
                lost: self.losses.iter().filter(|loss| usize::from(loss.path) == path).count() as u64,
                rtt_ms: (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64),
            }
        };
        Evidence {
            decisions: self.verdicts.last().map_or(0, |last| last.verdict.decisions),
            first_after_s: decided.clone().next().map(|first| first.at.since(load.from).as_secs_f64()),
            by_ramp: false,
            changed: findings.windows(2).any(|two| two[0] != two[1]),
            subflows: (0..PATHS).map(subflow).filter(|subflow| subflow.packets > 0).collect(),
        }
    }

    fn curves(&self, from: Time, to: Time, header: u32) -> Curves {
        let steps = (to.since(from).as_ns() / STEP.as_ns()) as usize;
        let step_of = |at: Time| (at.since(from).as_ns() / STEP.as_ns()) as usize;
        let mut sums = vec![vec![(0.0, 0u32); steps]; PATHS];
        let mut rates = vec![vec![0.0; steps]; PATHS];
        for (path, samples) in self.samples.iter().enumerate() {
            for sample in samples.iter().filter(|sample| sample.sent >= from) {
                if let Some((sum, count)) = sums[path].get_mut(step_of(sample.sent + sample.rtt)) {
                    *sum += ms(sample.rtt);
                    *count += 1;
                }
            }
        }
        for packet in &self.acknowledged {
            if let Some(rate) = rates[usize::from(packet.path)].get_mut(step_of(packet.at)) {
                *rate += f64::from(packet.bytes + header) * 8.0 / STEP.as_secs_f64() / 1e6;
            }
        }
        let every = self.verdicts.len().div_ceil(VERDICTS).max(1);
        let value = |finding| match finding {
            Finding::Fair => 1,
            Finding::Shared => -1,
            Finding::Undecided | Finding::Apart => 0,
        };
        Curves {
            at_s: (1..=steps).map(|step| STEP.as_secs_f64() * step as f64).collect(),
            rtt_ms: sums
                .into_iter()
                .map(|path| path.into_iter().map(|(sum, n)| (n > 0).then(|| sum / f64::from(n))).collect())
                .collect(),
            rate_mbit: rates,
            verdicts: self
                .verdicts
                .iter()
                .step_by(every)
                .map(|one| (one.at.since(from).as_secs_f64(), value(one.verdict.finding), one.verdict.confidence))
                .collect(),
        }
    }
}

impl Measured {
    /// Whether a ramp may say more: flows that seem to have queues of their own may be on paths of their own.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.fair_queuing, Fairness::Undecided | Fairness::Fair)
    }

    /// Adds what the ramp has found: a judgement if the transfer has not decided, and in any case that there is no common bottleneck.
    pub(crate) fn add_ramp(&mut self, verdict: Option<Verdict>) {
        let Some(verdict) = verdict else { return };
        let found = fairness(verdict.finding);
        let decides = verdict.finding.judges() && self.fair_queuing == Fairness::Undecided;
        if decides || (found == Fairness::Apart && self.is_open()) {
            self.fair_queuing = found;
            self.confidence = verdict.finding.judges().then_some(verdict.confidence);
            self.evidence.by_ramp = true;
        }
    }

    /// How late timers fired on one of the hosts.
    pub(crate) fn note_lateness(&mut self, late_ms: Option<f64>) {
        self.late_ms = [self.late_ms, late_ms].into_iter().flatten().reduce(f64::max);
    }

    /// Whether timers were so late that the figures show the hosts as well as the path.
    pub fn is_late(&self) -> bool {
        self.late_ms.is_some_and(|late| late > LATE)
    }

    /// Takes back what a host was too busy to tell: that flows share a queue, and the figures that delays and losses show. Rate and base
    /// RTT stay; they are quantiles that late packets hardly change.
    pub(crate) fn mind_lateness(&mut self) {
        if !self.is_late() {
            // A buffer of about the delay that the host makes is not the path's.
            if self.late_ms.zip(self.buffer_ms).is_some_and(|(late, buffer)| late > MOST_LATE * buffer) {
                (self.buffer_ms, self.buffer_bytes, self.buffer_is_at_least) = (None, None, false);
            }
            return;
        }
        if self.fair_queuing == Fairness::Shared {
            (self.fair_queuing, self.confidence) = (Fairness::Undecided, None);
            self.evidence.by_ramp = false;
        }
        (self.working_rtt_ms, self.rpm, self.loss, self.limiter) = (None, None, None, None);
        (self.rate_range_mbit, self.bursts) = (None, None);
        (self.buffer_ms, self.buffer_bytes, self.buffer_is_at_least) = (None, None, false);
        // Marks are the AQM's, whatever the host does.
        self.aqm = self.aqm.filter(|_| self.ecn == Some(Ecn::Marks));
    }

    /// Without what cannot be: shares beyond 0 and 1, figures that are negative or not finite, curves of other lengths.
    #[must_use]
    pub fn sanitized(mut self) -> Measured {
        let share = |value: Option<f64>| value.filter(|value| (0.0..=1.0).contains(value));
        let figure = |value: Option<f64>| value.filter(|value| (0.0..=1e9).contains(value));
        self.confidence = share(self.confidence);
        self.loss = share(self.loss);
        self.rate_mbit = figure(self.rate_mbit);
        self.rate_range_mbit = self
            .rate_range_mbit
            .filter(|[low, high]| figure(Some(*low)).is_some() && figure(Some(*high)).is_some() && low <= high);
        self.bursts = self.bursts.filter(|bursts| figure(Some(bursts.every_ms)).is_some());
        self.base_rtt_ms = figure(self.base_rtt_ms);
        self.rpm = figure(self.rpm);
        self.buffer_ms = figure(self.buffer_ms);
        self.late_ms = figure(self.late_ms);
        self.working_rtt_ms =
            self.working_rtt_ms.filter(|rtt| figure(Some(rtt.p50)).and(figure(Some(rtt.p95))).is_some());
        self.evidence.first_after_s = figure(self.evidence.first_after_s);
        self.evidence.subflows.truncate(PATHS);
        self.evidence.subflows.iter_mut().for_each(|subflow| subflow.rtt_ms = figure(subflow.rtt_ms));
        self.seconds = figure(Some(self.seconds)).unwrap_or(0.0);
        let fits = |curves: &Curves| {
            let len = curves.at_s.len();
            curves.rtt_ms.len() == PATHS
                && curves.rate_mbit.len() == PATHS
                && curves.rtt_ms.iter().all(|path| path.len() == len)
                && curves.rate_mbit.iter().all(|path| path.len() == len)
        };
        self.curves = self.curves.filter(fits);
        self
    }
}

const fn fairness(finding: Finding) -> Fairness {
    match finding {
        Finding::Fair => Fairness::Fair,
        Finding::Shared => Fairness::Shared,
        Finding::Apart => Fairness::Apart,
        Finding::Undecided => Fairness::Undecided,
    }
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The rates over [`RATE_BINS`] bins, Mbit/s.
fn rates(bins: &[f64]) -> impl Iterator<Item = f64> {
    let seconds = BIN.as_secs_f64() * RATE_BINS as f64;
    bins.windows(RATE_BINS).map(move |some| some.iter().sum::<f64>() / seconds / 1e6)
}

fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get((values.len() as f64 * share) as usize).copied().filter(|&value| value > 0.0)
}

fn working_rtt(sorted: &[Span]) -> Option<WorkingRtt> {
    let at = |share: f64| sorted.get(((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1)));
    Some(WorkingRtt { p50: ms(*at(0.5)?), p95: ms(*at(0.95)?) })
}

/// Whether packets hardly waited: five of them, and what timers add.
fn without_queue(working: &[Span], base: Span, rate_mbit: f64) -> bool {
    let (longest, packets) = POLICED_QUEUE;
    let packets = packets * 1500.0 * 8.0 / (rate_mbit * 1e3);
    working_rtt(working).is_some_and(|rtt| rtt.p95 - ms(base) < ms(longest).min(ms(NO_QUEUE) + packets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::detector::Verdict;
    use narrows_quic::{Event, What};

    const BASE: Span = Span::ms(20);
    /// 1228 bytes at 10 Mbit/s.
    const TIME: Span = Span::ns(982_400);

    /// A link of 10 Mbit/s that is offered 12 for four seconds. It drops what would wait for longer than `limit` says; both as RTTs.
    fn link(limit: impl Fn(Time) -> Span) -> Measured {
        link_beside(limit, |_| 1)
    }

    /// The same, where each packet takes this many times as long because of other traffic.
    fn link_beside(limit: impl Fn(Time) -> Span, times: impl Fn(Time) -> u64) -> Measured {
        let mut events = Vec::new();
        let mut free = Time::ZERO;
        for number in 0..4800u64 {
            let at = Time::ZERO + Span::us(833) * number;
            let path = (number % 2) as u8;
            events.push(Event { at, what: What::Sent { path, number, bytes: 1200 } });
            free = free.max(at);
            if free.since(at) > limit(at) {
                let at = free + BASE;
                events.push(Event { at, what: What::Lost { path, number, bytes: 1200 } });
                continue;
            }
            free += TIME * times(at);
            let at = free + BASE;
            events.push(Event { at, what: What::Acknowledged { path, number, bytes: 1200 } });
            events.push(Event { at, what: What::EndAcks { path, inflight: 1, app_limited: false, largest: number } });
        }
        events.sort_by_key(|event| event.at);
        let mut meter = Meter::default();
        meter.begin(Time::ZERO);
        meter.idle(BASE);
        events.iter().for_each(|event| meter.apply(event));
        meter.end(Time::ZERO + Span::s(4));
        meter.measured(Time::ZERO + Span::s(5), 28, 2).expect("a transfer")
    }

    #[test]
    fn a_fifo_has_its_rate_and_depth_and_no_aqm() {
        let fifo = link(|_| Span::ms(100));
        assert!(fifo.rate_mbit.is_some_and(|rate| (9.9..=10.1).contains(&rate)), "{fifo:?}");
        assert_eq!(fifo.base_rtt_ms, Some(20.0));
        assert!(fifo.buffer_ms.is_some_and(|depth| (98.0..=103.0).contains(&depth)), "{:?}", fifo.buffer_ms);
        assert!(!fifo.buffer_is_at_least && fifo.aqm == Some(false) && fifo.limiter == Some(Limiter::Shaper));
        assert!(fifo.loss.is_some_and(|loss| (0.1..=0.2).contains(&loss)), "{:?}", fifo.loss);
        assert!(fifo.working_rtt_ms.is_some_and(|rtt| (115.0..=125.0).contains(&rtt.p50)));
        assert!(fifo.rpm.is_some_and(|rpm| (480.0..=522.0).contains(&rpm)));
        assert_eq!((fifo.fair_queuing, fifo.confidence), (Fairness::Undecided, None));
    }

    #[test]
    fn a_queue_that_drops_far_below_its_depth_has_an_aqm() {
        let aqm = link(|at| if at < Time::ZERO + Span::s(1) { Span::ms(100) } else { Span::ms(15) });
        assert_eq!((aqm.aqm, aqm.buffer_is_at_least), (Some(true), true), "{:?}", aqm.buffer_ms);
    }

    #[test]
    fn a_link_that_is_never_full_says_at_least_how_deep_its_buffer_is() {
        let deep = link(|_| Span::s(10));
        assert!(deep.buffer_is_at_least && deep.aqm.is_none() && deep.loss == Some(0.0), "{deep:?}");
    }

    #[test]
    fn drops_without_delay_after_a_burst_are_a_policer() {
        // The burst: a link that takes all for two seconds. The policer: it drops every second packet, and nothing waits.
        let mut meter = Meter::default();
        meter.begin(Time::ZERO);
        meter.idle(BASE);
        for number in 0..4800u64 {
            let at = Time::ZERO + Span::us(833) * number;
            meter.apply(&Event { at, what: What::Sent { path: 0, number, bytes: 1200 } });
            if let Some(number) = number.checked_sub(24) {
                let is_lost = number > 2400 && number % 2 == 0;
                meter.apply(&if is_lost {
                    Event { at, what: What::Lost { path: 0, number, bytes: 1200 } }
                } else {
                    Event { at, what: What::Acknowledged { path: 0, number, bytes: 1200 } }
                });
                meter.apply(&Event {
                    at,
                    what: What::EndAcks { path: 0, inflight: 1, app_limited: false, largest: number },
                });
            }
        }
        meter.end(Time::ZERO + Span::s(4));
        let policed = meter.measured(Time::ZERO + Span::s(4), 28, 2).expect("a transfer");
        assert_eq!((policed.limiter, policed.aqm), (Some(Limiter::Policer), Some(false)), "{policed:?}");
        assert!(policed.advice("upload", 2).contains("policed"));
    }

    #[test]
    fn a_ramp_decides_only_what_is_open() {
        let shared = Verdict { finding: Finding::Shared, confidence: 0.99, decisions: 1 };
        let mut open = Measured::default();
        open.add_ramp(Some(Verdict::NONE));
        assert_eq!((open.fair_queuing, open.evidence.by_ramp), (Fairness::Undecided, false));
        open.add_ramp(Some(shared));
        assert_eq!((open.fair_queuing, open.confidence, open.evidence.by_ramp), (Fairness::Shared, Some(0.99), true));
        let mut other = Measured::default();
        other.add_ramp(Some(Verdict { finding: Finding::Fair, ..shared }));
        assert_eq!((other.fair_queuing, other.evidence.by_ramp), (Fairness::Fair, true));
        let mut fair = Measured { fair_queuing: Fairness::Fair, ..Measured::default() };
        fair.add_ramp(Some(shared));
        assert_eq!((fair.fair_queuing, fair.evidence.by_ramp), (Fairness::Fair, false));
        fair.add_ramp(Some(Verdict { finding: Finding::Apart, confidence: 0.0, decisions: 1 }));
        assert_eq!((fair.fair_queuing, fair.confidence, fair.evidence.by_ramp), (Fairness::Apart, None, true));
        assert!(fair.advice("upload", 2).contains("load balancer") && !fair.is_open());
    }

    #[test]
    fn a_busy_host_finds_no_shared_queue() {
        let found = |fair_queuing, here, there| {
            let mut found = Measured { fair_queuing, confidence: Some(0.99), late_ms: here, ..Measured::default() };
            found.note_lateness(there);
            found.mind_lateness();
            (found.fair_queuing, found.confidence)
        };
        assert_eq!(found(Fairness::Shared, Some(2.0), Some(9.9)), (Fairness::Shared, Some(0.99)));
        assert_eq!(found(Fairness::Shared, Some(2.0), Some(11.0)), (Fairness::Undecided, None));
        assert_eq!(found(Fairness::Shared, Some(11.0), None), (Fairness::Undecided, None));
        // Lateness is the same for both flows, and makes no difference between them.
        assert_eq!(found(Fairness::Fair, Some(11.0), None), (Fairness::Fair, Some(0.99)));
    }

    /// Lateness took back the verdict only: on a busy host a buffer of 123 ms was reported where 33 fit, and loss where nothing was dropped.
    #[test]
    fn lateness_guards_every_figure_of_delays_and_losses() {
        let minded = |late: f64| {
            let mut found = link(|_| Span::ms(100));
            found.late_ms = Some(late);
            found.mind_lateness();
            found
        };
        let late = minded(11.0);
        assert_eq!((late.buffer_ms, late.buffer_bytes, late.loss, late.aqm, late.limiter), Default::default());
        assert!(late.working_rtt_ms.is_none() && late.rpm.is_none() && late.grade().is_none());
        assert!(late.rate_mbit.is_some() && late.base_rtt_ms.is_some());
        assert_eq!((late.rate_range_mbit, late.bursts), (None, None));
        let on_time = minded(2.0);
        assert!(
            on_time.rate_range_mbit.is_some_and(|[low, high]| high < STEADY * low),
            "{:?}",
            on_time.rate_range_mbit
        );
        assert!(on_time.buffer_ms.is_some() && on_time.loss.is_some() && on_time.aqm == Some(false));
        let mut small = Measured { buffer_ms: Some(20.0), late_ms: Some(6.0), ..Measured::default() };
        small.mind_lateness();
        assert_eq!(small.buffer_ms, None, "6 ms of 20 may be the host's");
    }

    /// 2.2 of 16 Mbit/s were printed as the link's.
    #[test]
    fn a_rate_beside_other_traffic_is_said_to_be_a_share() {
        assert!(!link(|_| Span::ms(100)).beside_others);
        // In every second half of a second others take half of the link.
        let others = |at: Time| if at.as_ns() / 500_000_000 % 2 == 1 { 2 } else { 1 };
        let shared = link_beside(|_| Span::ms(100), others);
        assert!(shared.beside_others, "{:?}", shared.rate_mbit);
        let text = shared.text_of("upload");
        assert!(text.contains("while packets waited: beside other traffic, or the link's own rate varies"), "{text}");
        let slow = Measured { fair_queuing: Fairness::Shared, ..shared.clone() };
        let advice = slow.advice("upload", 2);
        assert!(advice.contains("a rate that follows the link (narrows qdisc attach --autorate)"), "{advice}");
        let [low, high] = shared.rate_range_mbit.expect("packets waited");
        assert!((4.5..=6.0).contains(&low) && (9.0..=10.5).contains(&high), "{low} to {high}");
    }

    #[test]
    fn figures_that_cannot_be_are_left_out() {
        let strange = Measured {
            loss: Some(-1.0),
            confidence: Some(7.0),
            rate_mbit: Some(f64::INFINITY),
            rate_range_mbit: Some([2.0, 1.0]),
            curves: Some(Curves { at_s: vec![1.0], ..Curves::default() }),
            ..Measured::default()
        };
        let sane = strange.sanitized();
        assert_eq!((sane.loss, sane.confidence, sane.rate_mbit, sane.rate_range_mbit), (None, None, None, None));
        assert!(sane.curves.is_none());
    }

    #[test]
    fn counts_at_the_receiver_show_what_becomes_of_ecn() {
        let of = |not_ect: u64, ect0: u64, ce: u64| Ecn::of(&EcnCounts { not_ect, ect0, ect1: 0, ce });
        assert_eq!([of(0, 9, 0), of(9, 0, 0), of(60, 40, 0)], [None; 3]);
        assert_eq!(
            [of(100, 0, 0), of(3, 97, 0), of(0, 10, 1)],
            [Some(Ecn::Bleached), Some(Ecn::Passes), Some(Ecn::Marks)]
        );
    }
}
