//! A hop's figures.
use super::gauges::Gauges;
use super::histogram::{Delays, TimeWeighted};
use super::{Bound, Track};
use narrows_core::link::Progress;
use narrows_core::{Bytes, DropReason, Rate, Span, Time};
use narrows_results::summary::{Drops, HopSummary};
use narrows_results::{Cdf, Series};
use narrows_scenario::{Hop, RateSpec};

/// The measurements at a hop.
pub struct HopRecord {
    queue: TimeWeighted,
    sojourn: Delays,
    offered: u64,
    /// Totals of the whole run; at the end of the warm-up; and at the last sample.
    sent: Sent,
    sent_before: Sent,
    sent_sampled: Sent,
    /// The link's progress at the end of the warm-up, and at the end of the run.
    began: Progress,
    ended: Progress,
    drops: [u64; DropReason::ALL.len()],
    marks: u64,
    /// Packets dropped since the last sample.
    interval_drops: u64,
    latest: Latest,
    tracks: Tracks,
    /// The discipline's inner state.
    pub gauges: Gauges,
}

/// Totals of the packets sent.
#[derive(Clone, Copy, Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    /// Sum of their sojourn times, ns; only differences count, which are right even when it wraps around.
    sojourn_ns: u64,
}

impl Sent {
    fn since(self, earlier: Sent) -> Sent {
        Sent {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            sojourn_ns: self.sojourn_ns.wrapping_sub(earlier.sojourn_ns),
        }
    }
}

/// A hop over the interval of the last sample.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Latest {
    /// Throughput, Mbit/s.
    pub throughput_mbit: f64,
    /// Packets in the queue at the end of the interval.
    pub queue_packets: f64,
    /// Mean sojourn time of the packets sent, ms; `None` if none was sent.
    pub sojourn_ms: Option<f64>,
    /// Packets dropped, per second.
    pub drops_per_s: f64,
}

struct Tracks {
    throughput: Track,
    queue: Track,
    sojourn: Track,
    drops: Track,
}

impl HopRecord {
    /// A record whose series have `samples` points.
    pub fn new(samples: usize) -> HopRecord {
        HopRecord {
            queue: TimeWeighted::new(),
            sojourn: Delays::new(3),
            offered: 0,
            sent: Sent::default(),
            sent_before: Sent::default(),
            sent_sampled: Sent::default(),
            began: Progress::default(),
            ended: Progress::default(),
            drops: [0; DropReason::ALL.len()],
            marks: 0,
            interval_drops: 0,
            latest: Latest::default(),
            tracks: Tracks {
                throughput: Track::new("throughput_mbit", samples),
                queue: Track::of_state("queue_packets", samples),
                sojourn: Track::new("sojourn_ms", samples),
                drops: Track::new("drops_per_s", samples),
            },
            gauges: Gauges::new(samples),
        }
    }

    /// Limits the length of its series from now on.
    pub fn bound(&mut self, bound: Bound) {
        let Tracks { throughput, queue, sojourn, drops } = &mut self.tracks;
        [throughput, queue, sojourn, drops].into_iter().for_each(|track| track.bound(bound));
        self.gauges.bound(bound);
    }

    /// A packet has arrived.
    #[inline]
    pub fn offered(&mut self) {
        self.offered += 1;
    }

    /// The queue's length is this number of packets from now on.
    #[inline]
    pub fn backlog(&mut self, packets: u32, now: Time) {
        self.queue.set(packets, now);
    }

    /// A packet of this length has been sent after this time in the queue; `newly_marked` by the queue.
    #[inline]
    pub fn sent(&mut self, len: u32, sojourn: Span, newly_marked: bool) {
        self.sojourn.record(sojourn);
        self.sent.packets += 1;
        self.sent.bytes += u64::from(len);
        self.sent.sojourn_ns = self.sent.sojourn_ns.wrapping_add(sojourn.as_ns());
        self.marks += u64::from(newly_marked);
    }

    /// A packet was dropped at the hop, or lost after it.
    pub fn dropped(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
        self.interval_drops += 1;
    }

    /// Ends an interval of the series.
    pub fn sample(&mut self, now: Time, spacing: Span, queued: u32) {
        let interval = self.sent.since(std::mem::replace(&mut self.sent_sampled, self.sent));
        let drops = std::mem::take(&mut self.interval_drops);
        let seconds = spacing.as_secs_f64();
        let sojourn = (interval.packets > 0).then(|| interval.sojourn_ns as f64 / interval.packets as f64 / 1e6);
        self.latest = Latest {
            throughput_mbit: interval.bytes as f64 * 8.0 / seconds / 1e6,
            queue_packets: f64::from(queued),
            sojourn_ms: sojourn,
            drops_per_s: drops as f64 / seconds,
        };
        self.tracks.throughput.push(now, self.latest.throughput_mbit);
        self.tracks.queue.push(now, self.latest.queue_packets);
        self.tracks.drops.push(now, self.latest.drops_per_s);
        if let Some(sojourn) = sojourn {
            self.tracks.sojourn.push(now, sojourn);
        }
    }

    /// The figures of the last sample.
    pub const fn latest(&self) -> Latest {
        self.latest
    }

    /// Ends the warm-up: all records except the series start again. `progress` is the link's.
    pub fn restart(&mut self, now: Time, progress: Progress) {
        self.began = progress;
        self.queue.restart(now);
        self.sojourn.clear();
        (self.offered, self.sent_before, self.marks) = (0, self.sent, 0);
        self.drops = [0; DropReason::ALL.len()];
    }

    /// Ends the run. `progress` is the link's.
    pub fn finish(&mut self, progress: Progress) {
        self.ended = progress;
    }

    /// The share of its capacity that the link used, 0 to 1. Of a packet that is on the wire when the warm-up or the run ends, only
    /// the bytes carried between the two ends count.
    fn utilisation(&self, sent: Sent, capacity: Bytes) -> f64 {
        let capacity = capacity + self.began.saved;
        if capacity == Bytes::ZERO {
            return 0.0;
        }
        let carried = sent.bytes as i64 + self.ended.carried - self.began.carried;
        // Both are rounded to bytes, and departure times to nanoseconds.
        (carried as f64 / capacity.0 as f64).clamp(0.0, 1.0)
    }

    /// Packets sent, warm-up included.
    pub fn sent_ever(&self) -> u64 {
        self.sent.packets
    }

    /// The figures; `capacity` is the number of bytes that the link could have carried.
    pub fn summary(&mut self, name: &str, queue: String, capacity: Bytes, now: Time) -> HopSummary {
        let total = self.drops.iter().sum();
        let sent = self.sent.since(self.sent_before);
        let of = |reason: &DropReason| self.drops[*reason as usize];
        let behind = DropReason::ALL.iter().filter(|reason| reason.is_behind_link()).map(of).sum();
        let by_reason = DropReason::ALL
            .iter()
            .filter(|reason| of(reason) > 0)
            .map(|reason| (reason.name().to_owned(), of(reason)))
            .collect();
        HopSummary {
            name: name.into(),
            queue,
            utilisation: self.utilisation(sent, capacity),
            packets: sent.packets,
            queue_packets: Some(self.queue.quantiles(now)),
            sojourn_ms: Some(self.sojourn.quantiles_ms()),
            offered_packets: self.offered,
            drops: Drops { total, by_reason },
            loss_rate: loss_rate(sent.packets, total, behind),
            marks: self.marks,
        }
    }

    /// The distribution of sojourn times.
    pub fn cdf(&self, source: &str) -> Option<Cdf> {
        self.sojourn.cdf(source, "sojourn_ms")
    }

    /// The series. `names` are the flows' names by number, for their gauges.
    pub fn series(self, source: &str, names: &[String]) -> impl Iterator<Item = Series> {
        let Tracks { throughput, queue, sojourn, drops } = self.tracks;
        let gauges = self.gauges.series(source, names);
        let source = source.to_owned();
        [throughput, queue, sojourn, drops].into_iter().filter_map(move |track| track.finish(&source)).chain(gauges)
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        let Tracks { throughput, queue, sojourn, drops } = &self.tracks;
        let tracks: usize = [throughput, queue, sojourn, drops].iter().map(|track| track.bytes()).sum();
        self.queue.bytes() + self.sojourn.bytes() + tracks + self.gauges.bytes()
    }
}

/// Packets dropped ÷ packets that left the queue, sent or dropped, in the same time. `dropped` includes `lost`, the packets that the
/// link lost after it had sent them, so that they count once.
///
/// Packets that wait when the warm-up or the run ends have no fate in the measured time. They are neither in the numerator nor in
/// the denominator, so the rate is at most 1.
pub fn loss_rate(sent: u64, dropped: u64, lost: u64) -> f64 {
    match sent + (dropped - lost) {
        0 => 0.0,
        left => dropped as f64 / left as f64,
    }
}

/// The bytes that a hop could have carried between two instants through its link, or through its queue if that shapes to less.
pub fn capacity(hop: &Hop, from: Time, to: Time) -> Bytes {
    let bits_ns = |rate: Rate, start: Time, end: Time| u128::from(rate.as_bps()) * u128::from(end.since(start).as_ns());
    let shaped = hop.queue.traits().shapes_to.unwrap_or(Rate::bit(u64::MAX));
    match &hop.rate {
        RateSpec::Schedule(steps) => {
            let ends = steps.iter().skip(1).map(|&(at, _)| at).chain([to]);
            let carried =
                |(&(start, rate), end): (&(Time, Rate), Time)| bits_ns(rate.min(shaped), start.max(from), end.min(to));
            Bytes((steps.iter().zip(ends).map(carried).sum::<u128>() / 8_000_000_000) as u64)
        }
        RateSpec::Trace { opportunities, period, .. } => {
            let before = |time: Time| {
                let periods = time.as_ns().saturating_sub(1) / period.as_ns();
                let offset = time.since(Time::ZERO + *period * periods);
                periods * opportunities.len() as u64 + opportunities.partition_point(|&at| at < offset) as u64
            };
            // An opportunity at the very end still counts.
            let link = before(to + Span::ns(1)).saturating_sub(before(from)) * narrows_core::link::OPPORTUNITY.0;
            Bytes(u128::from(link).min(bits_ns(shaped, from, to) / 8_000_000_000) as u64)
        }
    }
}
