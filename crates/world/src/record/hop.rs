//! A hop's figures.
use super::Track;
use super::gauges::Gauges;
use super::histogram::{Delays, TimeWeighted};
use narrows_core::{Bytes, DropReason, PacketMeta, Rate, Span, Time};
use narrows_scenario::result::summary::{Drops, HopSummary};
use narrows_scenario::{Cdf, RateSpec, Series};

/// What is measured at a hop.
pub struct HopRecord {
    queue: TimeWeighted,
    sojourn: Delays,
    offered: u64,
    sent: u64,
    sent_bytes: u64,
    /// Sent over the whole run.
    sent_ever: u64,
    drops: [u64; DropReason::ALL.len()],
    marks: u64,
    interval: Interval,
    latest: Latest,
    tracks: Tracks,
    /// The discipline's inner state.
    pub gauges: Gauges,
}

/// What is gathered between two samples.
#[derive(Default)]
struct Interval {
    bytes: u64,
    drops: u64,
    sojourn_ns: u64,
    packets: u64,
}

/// A hop over the interval of the last sample.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Latest {
    /// Sent, Mbit/s.
    pub throughput_mbit: f64,
    /// Packets waiting at its end.
    pub queue_packets: f64,
    /// Mean time in the queue, ms, of packets sent; none without any.
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
    /// A record whose series have so many points.
    pub fn new(samples: usize) -> HopRecord {
        HopRecord {
            queue: TimeWeighted::new(),
            sojourn: Delays::new(3),
            offered: 0,
            sent: 0,
            sent_bytes: 0,
            sent_ever: 0,
            drops: [0; DropReason::ALL.len()],
            marks: 0,
            interval: Interval::default(),
            latest: Latest::default(),
            tracks: Tracks {
                throughput: Track::new("throughput_mbit", samples),
                queue: Track::new("queue_packets", samples),
                sojourn: Track::new("sojourn_ms", samples),
                drops: Track::new("drops_per_s", samples),
            },
            gauges: Gauges::new(samples),
        }
    }

    /// A packet has arrived.
    #[inline]
    pub fn offered(&mut self) {
        self.offered += 1;
    }

    /// So many packets wait from now on.
    #[inline]
    pub fn backlog(&mut self, packets: u32, now: Time) {
        self.queue.set(u64::from(packets), now);
    }

    /// A packet has been sent; `newly_marked` by this hop's queue.
    #[inline]
    pub fn sent(&mut self, meta: &PacketMeta, newly_marked: bool) {
        let sojourn = meta.depart.since(meta.arrived);
        self.sojourn.record(sojourn);
        self.sent += 1;
        self.sent_ever += 1;
        self.sent_bytes += u64::from(meta.len);
        self.marks += u64::from(newly_marked);
        self.interval.bytes += u64::from(meta.len);
        self.interval.sojourn_ns += sojourn.as_ns();
        self.interval.packets += 1;
    }

    /// A packet was dropped, or lost after it.
    pub fn dropped(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
        self.interval.drops += 1;
    }

    /// Ends an interval of the series.
    pub fn sample(&mut self, now: Time, spacing: Span, queued: u32) {
        let interval = std::mem::take(&mut self.interval);
        let seconds = spacing.as_secs_f64();
        let sojourn = (interval.packets > 0).then(|| interval.sojourn_ns as f64 / interval.packets as f64 / 1e6);
        self.latest = Latest {
            throughput_mbit: interval.bytes as f64 * 8.0 / seconds / 1e6,
            queue_packets: f64::from(queued),
            sojourn_ms: sojourn,
            drops_per_s: interval.drops as f64 / seconds,
        };
        self.tracks.throughput.push(now, self.latest.throughput_mbit);
        self.tracks.queue.push(now, self.latest.queue_packets);
        self.tracks.drops.push(now, self.latest.drops_per_s);
        if let Some(sojourn) = sojourn {
            self.tracks.sojourn.push(now, sojourn);
        }
    }

    /// The last sample.
    pub const fn latest(&self) -> Latest {
        self.latest
    }

    /// The warm-up is over: all but the series starts again.
    pub fn restart(&mut self, now: Time) {
        self.queue.restart(now);
        self.sojourn.clear();
        (self.offered, self.sent, self.sent_bytes, self.marks) = (0, 0, 0, 0);
        self.drops = [0; DropReason::ALL.len()];
    }

    /// Packets sent, warm-up included.
    pub fn sent_ever(&self) -> u64 {
        self.sent_ever
    }

    /// The figures; `capacity` is what the link could have carried.
    pub fn summary(&mut self, name: &str, queue: String, capacity: Bytes, now: Time) -> HopSummary {
        let total = self.drops.iter().sum();
        let by_reason = DropReason::ALL
            .iter()
            .filter(|&&reason| self.drops[reason as usize] > 0)
            .map(|&reason| (reason.name().to_owned(), self.drops[reason as usize]))
            .collect();
        HopSummary {
            name: name.into(),
            queue,
            utilisation: if capacity == Bytes::ZERO { 0.0 } else { self.sent_bytes as f64 / capacity.0 as f64 },
            packets: self.sent,
            queue_packets: self.queue.quantiles(now),
            sojourn_ms: self.sojourn.quantiles_ms(),
            offered_packets: self.offered,
            drops: Drops { total, by_reason },
            loss_rate: if self.offered == 0 { 0.0 } else { total as f64 / self.offered as f64 },
            marks: self.marks,
        }
    }

    /// The distribution of sojourn times.
    pub fn cdf(&self, source: &str) -> Option<Cdf> {
        self.sojourn.cdf(source, "sojourn_ms")
    }

    /// `names` of the flows by number, for their gauges.
    pub fn series(self, source: &str, names: &[String]) -> impl Iterator<Item = Series> {
        let Tracks { throughput, queue, sojourn, drops } = self.tracks;
        let gauges = self.gauges.series(source, names);
        let source = source.to_owned();
        [throughput, queue, sojourn, drops].into_iter().filter_map(move |track| track.finish(&source)).chain(gauges)
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        let Tracks { throughput, queue, sojourn, drops } = &self.tracks;
        let tracks: usize = [throughput, queue, sojourn, drops].iter().map(|track| track.bytes()).sum();
        self.queue.bytes() + self.sojourn.bytes() + tracks + self.gauges.bytes()
    }
}

/// What a link could have carried between two instants.
pub fn capacity(rate: &RateSpec, from: Time, to: Time) -> Bytes {
    match rate {
        RateSpec::Schedule(steps) => {
            let ends = steps.iter().skip(1).map(|&(at, _)| at).chain([to]);
            let carried = |(&(start, rate), end): (&(Time, Rate), Time)| {
                let (start, end) = (start.max(from), end.min(to));
                u128::from(rate.as_bps()) * u128::from(end.since(start).as_ns())
            };
            Bytes((steps.iter().zip(ends).map(carried).sum::<u128>() / 8_000_000_000) as u64)
        }
        RateSpec::Trace { opportunities, period, .. } => {
            let before = |time: Time| {
                let periods = time.as_ns().saturating_sub(1) / period.as_ns();
                let offset = time.since(Time::ZERO + *period * periods);
                periods * opportunities.len() as u64 + opportunities.partition_point(|&at| at < offset) as u64
            };
            Bytes(before(to).saturating_sub(before(from)) * narrows_core::link::OPPORTUNITY.0)
        }
    }
}
