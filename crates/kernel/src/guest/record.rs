//! The records of a run in the guest. Nobody sees single packets: queues are asked for their length and their counters again and again,
//! and the endpoints report their flows.
use super::gauges;
use narrows_core::{DropReason, Rate, Span, Time};
use narrows_host::endpoint_stats::Report;
use narrows_host::{EndpointStats, QdiscStats};
use narrows_results::summary::{Drops, FlowSummary, HopSummary};
use narrows_results::{Cdf, Series};
use narrows_scenario::{Flow, Hop, Traffic, Transport};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::record::Track;
use narrows_world::record::application::Messages;
use narrows_world::record::flow::FlowRecord;
use narrows_world::record::gauges::Gauges;
use narrows_world::record::histogram::TimeWeighted;
use narrows_world::record::hop::{capacity, loss_rate};
use narrows_world::record::verdict::VerdictRecord;
use narrows_world::record::video::VideoRecord;
use std::sync::Arc;

/// The kernel's counters of a hop.
#[derive(Clone, Copy, Default)]
pub(super) struct Counters {
    /// Of its queue.
    pub(super) queue: QdiscStats,
    /// Packets that its link has lost at random; the kernel counts modulo 2³².
    pub(super) lost: u32,
    /// Packets that a policer has dropped in front of the queue.
    pub(super) policed: u32,
}

impl Counters {
    /// Packets that the queue dropped since then, packets that the link lost, and packets that the policer dropped.
    fn drops_since(self, before: Counters) -> [u64; 3] {
        let pairs = [(self.queue.drops, before.queue.drops), (self.lost, before.lost), (self.policed, before.policed)];
        pairs.map(|(now, before)| u64::from(now.wrapping_sub(before)))
    }
}

/// A hop's figures.
pub(super) struct HopRecord {
    queue: TimeWeighted,
    latest: Counters,
    at_warmup: Counters,
    at_point: Counters,
    throughput: Track,
    backlog: Track,
    drops: Track,
    gauges: Gauges,
}

impl HopRecord {
    pub(super) fn new(points: usize) -> HopRecord {
        HopRecord {
            queue: TimeWeighted::new(),
            latest: Counters::default(),
            at_warmup: Counters::default(),
            at_point: Counters::default(),
            throughput: Track::new("throughput_mbit", points),
            backlog: Track::of_state("queue_packets", points),
            drops: Track::new("drops_per_s", points),
            gauges: Gauges::new(points),
        }
    }

    /// The counters now.
    pub(super) fn read(&mut self, counters: Counters) {
        self.latest = counters;
    }

    /// The queue that has just been read stands for the interval that began at this time.
    pub(super) fn sample(&mut self, interval: Time) {
        self.queue.set(self.latest.queue.backlog, interval);
    }

    /// Ends the warm-up.
    pub(super) fn restart(&mut self, now: Time) {
        self.queue.restart(now);
        self.at_warmup = self.latest;
    }

    /// A point of the series, over the time since the one before.
    pub(super) fn point(&mut self, now: Time, spacing: Span) {
        let before = std::mem::replace(&mut self.at_point, self.latest);
        let seconds = spacing.as_secs_f64();
        let drops = self.latest.drops_since(before);
        self.throughput.push(now, (self.latest.queue.bytes - before.queue.bytes) as f64 * 8.0 / seconds / 1e6);
        self.backlog.push(now, f64::from(self.latest.queue.backlog));
        self.drops.push(now, drops.iter().sum::<u64>() as f64 / seconds);
    }

    /// What the discipline shows now of its inner state.
    pub(super) fn gauges(&mut self, now: Time, queue: &str, stats: &[u8]) {
        gauges::observe(queue, stats, &mut self.gauges.at(now, 0));
    }

    /// Packets sent since the start.
    pub(super) fn sent_ever(&self) -> u64 {
        u64::from(self.latest.queue.packets)
    }

    /// The figures; `marks` since the end of the warm-up.
    pub(super) fn summary(&mut self, hop: &Hop, warmup: Time, end: Time, marks: u64) -> HopSummary {
        let (now, before) = (self.latest.queue, self.at_warmup.queue);
        let packets = u64::from(now.packets.wrapping_sub(before.packets));
        let [by_queue, lost, policed] = self.latest.drops_since(self.at_warmup);
        let dropped = by_queue + policed;
        // The two counters are read one after the other; what was lost had been sent.
        let lost = lost.min(packets);
        let offered = (packets + dropped + u64::from(now.backlog)).saturating_sub(u64::from(before.backlog));
        let capacity = capacity(hop, warmup, end).0;
        let sent = (now.bytes - before.bytes) as f64;
        // The kernel does not say why a queue drops.
        let known = [(DropReason::LinkLoss, lost), (DropReason::Policed, policed)];
        let known = known.into_iter().filter(|(_, count)| *count > 0);
        let by_reason = known.map(|(reason, count)| (reason.name().to_owned(), count)).collect();
        HopSummary {
            name: hop.name.clone(),
            queue: hop.discipline(),
            utilisation: if capacity == 0 { 0.0 } else { (sent / capacity as f64).clamp(0.0, 1.0) },
            packets,
            queue_packets: Some(self.queue.quantiles(end)),
            sojourn_ms: None,
            offered_packets: offered,
            drops: Drops { total: dropped + lost, by_reason },
            loss_rate: loss_rate(packets, dropped + lost, lost),
            marks,
        }
    }

    pub(super) fn series(self, source: &str) -> impl Iterator<Item = Series> {
        let gauges = self.gauges.series(source, &[]);
        let source = source.to_owned();
        [self.throughput, self.backlog, self.drops]
            .into_iter()
            .filter_map(move |track| track.finish(&source))
            .chain(gauges)
    }
}

/// A program's full-sized TCP packets, and their headers over IPv4 with timestamps, bytes.
const PROGRAMS_PACKET: f64 = 1500.0;
const STAMPED_HEADERS: f64 = 52.0;

/// Bytes of the headers of IPv4 and UDP.
const DATAGRAM_HEADERS: u64 = 28;

/// A flow's figures.
pub(super) struct FlowFigures {
    record: FlowRecord,
    /// IP bytes per byte of payload.
    ratio: f64,
    /// Bytes of the headers of a program's datagram.
    datagram_headers: u64,
    payload: u64,
    stats: SenderStats,
    stats_before: SenderStats,
    /// Datagrams that the sender's system did not take.
    unsent: u64,
    /// The error that ended its connection early.
    broken: Option<String>,
    has_warmup: bool,
    /// Of a QUIC flow with a detector.
    verdicts: Option<VerdictRecord>,
    /// What it sends, unless a program does.
    traffic: Option<Traffic>,
    /// Of a video call that has ended.
    video: Option<Box<VideoRecord>>,
    /// Of a connection with messages that has ended.
    messages: Option<Box<Messages>>,
    /// The rate at which its encoder aims.
    target: Option<Rate>,
}

impl FlowFigures {
    /// Of a flow of this group; with series of `points` points, or none.
    pub(super) fn new(group: &Flow, points: Option<usize>, digits: u8, has_warmup: bool) -> FlowFigures {
        let extra = group.family.extra().0;
        let ratio = match &group.carrier() {
            _ if group.command.is_some() => PROGRAMS_PACKET / (PROGRAMS_PACKET - STAMPED_HEADERS - extra as f64),
            Transport::Tcp(tcp) => tcp.packet.0 as f64 / (tcp.packet.0 - tcp.header.0) as f64,
            Transport::Quic(quic) => quic.packet.0 as f64 / (quic.packet.0 - quic.header.0) as f64,
            // Datagrams differ in length.
            Transport::Udp(_) => 1.0,
        };
        FlowFigures {
            record: FlowRecord::new(points, digits),
            ratio,
            datagram_headers: DATAGRAM_HEADERS + extra,
            payload: 0,
            stats: SenderStats::default(),
            stats_before: SenderStats::default(),
            unsent: 0,
            broken: None,
            has_warmup,
            verdicts: None,
            traffic: group.command.is_none().then(|| group.traffic.clone()),
            video: None,
            messages: None,
            target: None,
        }
    }

    /// Records the verdicts of a detector, judged by this truth, as [`VerdictRecord`] has it.
    pub(super) fn judged_by(mut self, truth: Option<Arc<[(Time, bool)]>>) -> FlowFigures {
        let samples = self.record.samples();
        self.verdicts = truth.map(|truth| VerdictRecord::new(truth, samples).without_packets());
        self
    }

    /// Takes what the endpoints have reported since the last time.
    pub(super) fn take(&mut self, stats: &EndpointStats, number: usize) -> Option<Meters> {
        let report = stats.take(number);
        if let Some(verdicts) = &mut self.verdicts {
            report.judge(verdicts);
        }
        let Report { meters, rtts, payload, completions, stats, refused, trouble, video, messages, target, .. } =
            report;
        (self.video, self.target) = (video.or(self.video.take()), target);
        self.messages = messages.or(self.messages.take());
        let arrived = payload - std::mem::replace(&mut self.payload, payload);
        self.record.arrived((arrived as f64 * self.ratio) as u64, arrived);
        if !self.has_warmup {
            rtts.iter().for_each(|&rtt| self.record.rtt(rtt));
            completions.iter().for_each(|&took| self.record.completed(took));
        }
        self.stats = stats;
        self.unsent = refused;
        self.broken = self.broken.take().or(trouble);
        meters
    }

    /// A point of the series.
    pub(super) fn point(&mut self, meters: Option<Meters>, now: Time, spacing: Span) {
        self.record.sample(now, spacing, meters);
        self.target.iter().for_each(|&rate| self.record.sample_target(now, rate));
        self.verdicts.iter_mut().for_each(|verdicts| verdicts.sample(now, spacing));
    }

    /// Ends the warm-up.
    pub(super) fn restart(&mut self, now: Time) {
        self.record.restart();
        self.verdicts.iter_mut().for_each(|verdicts| verdicts.restart(now));
        self.stats_before = self.stats;
        self.has_warmup = false;
    }

    /// Counts datagrams that a program has received since the end of the warm-up.
    pub(super) fn datagrams(&mut self, received: Datagrams) {
        self.record.arrived(received.bytes, received.bytes.saturating_sub(received.packets * self.datagram_headers));
    }

    /// What went wrong with the flow of this name.
    pub(super) fn trouble(&self, name: &str) -> Option<String> {
        match (&self.broken, self.unsent) {
            (Some(why), _) => Some(format!("flow \"{name}\": its connection ended early: {why}")),
            (None, 0) => None,
            (None, unsent) => Some(format!("flow \"{name}\": the system did not take {unsent} datagrams")),
        }
    }

    /// The figures of a flow that lived for `life` after the warm-up and stopped then, in a run up to `end`.
    pub(super) fn finish(
        mut self,
        name: String,
        controller: &str,
        (life, stop): (Span, Time),
        end: Time,
    ) -> (FlowSummary, Vec<Cdf>, Vec<Series>) {
        self.record.settle();
        let stats = SenderStats {
            retransmits: self.stats.retransmits - self.stats_before.retransmits,
            timeouts: self.stats.timeouts - self.stats_before.timeouts,
        };
        let source = format!("flow:{name}");
        // Nobody sees single packets.
        let verdicts = self.verdicts.as_mut().map(|verdicts| verdicts.verdicts(end));
        let summary = FlowSummary {
            lost_packets: None,
            verdicts,
            application: self.record.application(
                self.traffic.as_ref(),
                self.messages.as_deref(),
                self.video.as_deref(),
                stop.min(end),
            ),
            ..self.record.summary(name, controller, life, stats)
        };
        let cdfs = self.record.cdfs(&source).collect();
        let judged = self.verdicts.map_or_else(Vec::new, |verdicts| verdicts.series(&source));
        (summary, cdfs, self.record.series(&source).chain(judged).collect())
    }
}

/// Datagrams that a program has received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Datagrams {
    pub(super) packets: u64,
    /// At the IP layer.
    pub(super) bytes: u64,
}

impl Datagrams {
    pub(super) fn since(self, before: &Datagrams) -> Datagrams {
        Datagrams { packets: self.packets - before.packets, bytes: self.bytes - before.bytes }
    }
}

/// Datagrams by flow's number, as `tc` reports it for the filters that count them.
pub(super) fn datagrams(filters: &serde_json::Value) -> impl Iterator<Item = (usize, Datagrams)> {
    let of = |filter: &serde_json::Value| {
        let options = filter.get("options")?;
        let number = options.get("handle")?.as_u64()?.checked_sub(1)?;
        let stats = options.get("actions")?.get(0)?.get("stats")?;
        let figure = |name: &str| stats.get(name)?.as_u64();
        Some((number as usize, Datagrams { packets: figure("packets")?, bytes: figure("bytes")? }))
    };
    filters.as_array().into_iter().flatten().filter_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::{NoTraces, Scenario};

    fn waiting(backlog: u32) -> Counters {
        Counters { queue: QdiscStats { backlog, ..QdiscStats::default() }, lost: 0, policed: 0 }
    }

    /// 100 packets wait when the warm-up ends, of which the queue drops 30 later; of 50 that it sends, the link loses 10.
    #[test]
    fn random_losses_of_the_link_count_as_in_the_simulator() {
        let text = "duration = \"2s\"\n[[hop]]\nname = \"h\"\nrate = \"1mbit\"\nqueue = \"fifo\"\nloss = 0.2\n\
                    [[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [\"h\"]\n";
        let scenario = Scenario::parse(text, "lossy.toml", &NoTraces).expect("it is legal");
        let (start, at) = (Time::ZERO, |s| Time::ZERO + Span::s(s));
        let counters = |packets, drops, backlog, lost| Counters {
            queue: QdiscStats {
                packets,
                bytes: u64::from(packets) * 1000,
                drops,
                backlog,
                backlog_bytes: backlog * 1000,
            },
            lost,
            policed: 0,
        };
        let mut record = HopRecord::new(0);
        record.read(counters(7, 3, 100, 1));
        record.sample(start);
        record.restart(at(1));
        record.read(counters(57, 33, 20, 11));
        let summary = record.summary(&scenario.hops[0], at(1), at(2), 0);
        assert_eq!((summary.packets, summary.drops.total, summary.offered_packets), (50, 40, 0));
        assert_eq!(summary.drops.by_reason, [("link_loss".to_owned(), 10)].into());
        assert_eq!(summary.loss_rate, 40.0 / 80.0);
    }

    #[test]
    fn a_length_stands_for_the_interval_in_which_it_was_read() {
        let mut record = HopRecord::new(0);
        for (backlog, interval) in [(3, 0), (9, 5), (0, 10), (4, 15)] {
            record.read(waiting(backlog));
            record.sample(Time::ZERO + Span::ms(interval));
        }
        // Read for another purpose, it does not count.
        record.read(waiting(100));
        let queue = record.queue.quantiles(Time::ZERO + Span::ms(20));
        assert!((queue.mean - 4.0).abs() < 1e-9 && (queue.max - 9.0).abs() < 1e-9, "{queue:?}");
    }

    #[test]
    fn datagrams_are_told_by_their_filters() {
        let filter = |handle: u64, packets: u64| {
            let stats = serde_json::json!({ "bytes": 1000 * packets, "packets": packets });
            serde_json::json!({ "kind": "flower", "options": { "handle": handle, "actions": [{ "kind": "gact", "stats": stats }] } })
        };
        let told = serde_json::json!([{ "kind": "flower", "chain": 0 }, filter(1, 3), filter(5, 0)]);
        let found: Vec<_> = datagrams(&told).map(|(number, of)| (number, of.packets, of.bytes)).collect();
        assert_eq!(found, [(0, 3, 3000), (4, 0, 0)]);
    }
}
