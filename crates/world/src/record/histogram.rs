//! Distributions of delays (in microseconds) and of queue lengths (weighted by time).
use super::buckets::Buckets;
use narrows_core::{Span, Time};
use narrows_results::Cdf;
use narrows_results::summary::{Completion, Quantiles, RttQuantiles};

/// Delays. Quantiles are exact to three digits; or, to save memory with many flows, interpolated in buckets of one digit. Mean,
/// minimum and maximum are exact.
#[derive(Clone, Debug)]
pub struct Delays {
    buckets: Buckets,
    sum_ns: u128,
    count: u64,
    /// The shortest delay, and by how much the longest one is longer; both zero before the first.
    min: Span,
    range: Span,
}

/// Delays that are not in the histogram yet: with thousands of flows each record costs a cache miss or two, so several are
/// recorded together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gathered {
    /// In ns; a longer delay goes straight into the histogram.
    delays: [u32; GATHERED],
    count: u8,
}

/// Number of delays recorded together.
const GATHERED: usize = 7;

impl Gathered {
    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes a delay. Returns false, and does not take it, if there is no room or the delay is too long.
    #[inline]
    pub fn push(&mut self, delay: Span) -> bool {
        let (Some(slot), Ok(ns)) = (self.delays.get_mut(usize::from(self.count)), u32::try_from(delay.as_ns())) else {
            return false;
        };
        *slot = ns;
        self.count += 1;
        true
    }
}

impl Delays {
    /// Quantiles with this many significant digits, at most 5.
    pub fn new(digits: u8) -> Delays {
        Delays { buckets: Buckets::new(digits), sum_ns: 0, count: 0, min: Span::ZERO, range: Span::ZERO }
    }

    /// Reserves buckets for delays up to this one; longer delays allocate more.
    pub fn with_room(mut self, longest: Span) -> Delays {
        self.buckets.make_room(longest.as_ns() / 1000);
        self
    }

    /// Counts a delay.
    #[inline(always)]
    pub fn record(&mut self, delay: Span) {
        self.buckets.add(delay.as_ns() / 1000, 1);
        self.sum_ns += u128::from(delay.as_ns());
        self.extend_to(delay);
        self.count += 1;
    }

    /// Extends the range, if need be. `count` is still that before this delay.
    #[inline]
    fn extend_to(&mut self, delay: Span) {
        // One comparison for both ends: a delay below the shortest one wraps around.
        if delay.as_ns().wrapping_sub(self.min.as_ns()) > self.range.as_ns() {
            self.extend(delay);
        }
    }

    #[cold]
    #[inline(never)]
    fn extend(&mut self, delay: Span) {
        if self.count == 0 {
            self.min = delay;
        } else {
            let longest = self.longest().max(delay);
            self.min = self.min.min(delay);
            self.range = longest - self.min;
        }
    }

    /// Counts the gathered delays.
    pub fn record_gathered(&mut self, gathered: Gathered) {
        let Gathered { delays, count } = gathered;
        let (mut sum, mut least, mut most) = (0, u32::MAX, 0);
        for &ns in &delays[..usize::from(count)] {
            self.buckets.add(u64::from(ns / 1000), 1);
            sum += u64::from(ns);
            least = least.min(ns);
            most = most.max(ns);
        }
        if count > 0 {
            let [least, most] = [least, most].map(|ns| Span::ns(u64::from(ns)));
            self.sum_ns += u128::from(sum);
            self.extend_to(least);
            self.count += u64::from(count);
            self.extend_to(most);
        }
    }

    /// Adds all counts of another histogram with the same number of digits.
    pub fn add(&mut self, other: &Delays) {
        other.buckets.filled().for_each(|(lowest, _, count)| self.buckets.add(lowest, count));
        self.sum_ns += other.sum_ns;
        if let Some(shortest) = other.shortest() {
            self.extend_to(shortest);
            self.count += other.count;
            self.extend_to(other.longest());
        }
    }

    /// Forgets all delays.
    pub fn clear(&mut self) {
        self.buckets.clear();
        (self.sum_ns, self.count, self.min, self.range) = (0, 0, Span::ZERO, Span::ZERO);
    }

    /// The longest delay.
    pub fn longest(&self) -> Span {
        self.min + self.range
    }

    /// The shortest delay; `None` if nothing was recorded.
    fn shortest(&self) -> Option<Span> {
        (self.count > 0).then_some(self.min)
    }

    /// Whether nothing has been recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of delays.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Ascending steps of the distribution: a delay, ms, and the number of delays that are at most this long.
    pub fn steps_ms(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let longest = self.longest().as_ms_f64();
        self.buckets.filled().scan(0, move |so_far, (_, highest, inside)| {
            *so_far += inside;
            Some((((highest + 1) as f64 / 1e3).min(longest), *so_far))
        })
    }

    /// Mean of this share of the delays, the shortest ones, ms; `None` if nothing was recorded. Within a bucket the observations are
    /// assumed to be evenly spread.
    pub fn trimmed_mean_ms(&self, share: f64) -> Option<f64> {
        let (wanted, mut sum, mut taken) = (share * self.count as f64, 0.0, 0.0);
        for (lowest, highest, inside) in self.buckets.filled() {
            let take = (inside as f64).min(wanted - taken);
            let (low, width) = (lowest as f64, (highest + 1 - lowest) as f64);
            sum += take * (low + width * take / (2.0 * inside as f64));
            taken += take;
            if taken >= wanted {
                break;
            }
        }
        (taken > 0.0).then(|| sum / taken / 1e3)
    }

    fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 / 1e6 }
    }

    /// The quantiles of these shares (0 to 1, ascending), ms. Within a bucket the observations are assumed to be evenly spread.
    pub fn at_shares(&self, shares: impl Iterator<Item = f64>) -> Vec<f64> {
        let (min, max) = (self.min.as_ms_f64(), self.longest().as_ms_f64());
        let mut buckets = self.buckets.filled();
        let (mut below, mut bucket) = (0.0, buckets.next());
        let at = |share: f64| {
            let rank = share * self.count as f64;
            while let Some((lowest, highest, inside)) = bucket {
                let inside = inside as f64;
                if rank <= below + inside {
                    let (low, width) = (lowest as f64, (highest + 1 - lowest) as f64);
                    let us = low + width * ((rank - below) / inside).max(0.0);
                    return (us / 1e3).clamp(min, max);
                }
                below += inside;
                bucket = buckets.next();
            }
            max
        };
        shares.map(at).collect()
    }

    /// Mean and quantiles, ms.
    pub fn quantiles_ms(&self) -> Quantiles {
        let q = self.at_shares([0.5, 0.95, 0.99].into_iter());
        Quantiles { mean: self.mean_ms(), p50: q[0], p95: q[1], p99: q[2], max: self.longest().as_ms_f64() }
    }

    /// Minimum, mean and quantiles of round-trip times, ms; `None` if nothing was recorded.
    pub fn rtt_ms(&self) -> Option<RttQuantiles> {
        let min = self.shortest()?.as_ms_f64();
        let q = self.quantiles_ms();
        Some(RttQuantiles { min, mean: q.mean, p50: q.p50, p95: q.p95, p99: q.p99 })
    }

    /// Mean and quantiles of completion times, s.
    pub fn completion_s(&self) -> Completion {
        let q = self.quantiles_ms();
        let [mean, p50, p95, p99, max] = [q.mean, q.p50, q.p95, q.p99, q.max].map(|ms| ms / 1e3);
        Completion { count: self.count, mean, p50, p95, p99, max }
    }

    /// The distribution in steps of half a percent, and finer towards the end.
    pub fn cdf(&self, source: &str, metric: &str) -> Option<Cdf> {
        if self.count == 0 {
            return None;
        }
        let coarse = (0..199).map(|n| f64::from(n) / 200.0);
        let fine = (0..=10).map(|n| 0.995 + f64::from(n) / 2000.0);
        let shares: Vec<f64> = coarse.chain(fine).collect();
        let points = self.at_shares(shares.iter().copied()).into_iter().zip(shares).collect();
        Some(Cdf { source: source.into(), metric: metric.into(), points })
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        self.buckets.bytes()
    }
}

/// A whole number over time, for example a queue's length; quantiles to three digits. Takes eight bytes for each number up to
/// the largest.
pub struct TimeWeighted {
    /// By number: for how long the quantity had this value, ns. All figures follow from it.
    held: Vec<u64>,
    value: u32,
    max: u32,
    since: Time,
    start: Time,
}

impl Default for TimeWeighted {
    fn default() -> TimeWeighted {
        TimeWeighted::new()
    }
}

impl TimeWeighted {
    /// For a quantity that is zero at the epoch.
    pub fn new() -> TimeWeighted {
        TimeWeighted { held: Vec::new(), value: 0, max: 0, since: Time::ZERO, start: Time::ZERO }
    }

    /// The quantity is `value` from `now` on.
    #[inline]
    pub fn set(&mut self, value: u32, now: Time) {
        if value != self.value {
            self.advance(now);
            self.value = value;
            if value > self.max {
                self.max = value;
            }
        }
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        if now > self.since {
            let held = now.since(self.since).as_ns();
            self.since = now;
            match self.held.get_mut(self.value as usize) {
                Some(total) => *total += held,
                None => self.begin(held),
            }
        }
    }

    /// Extends the array for a number that is larger than all before.
    #[cold]
    fn begin(&mut self, held: u64) {
        let place = self.value as usize;
        self.held.resize((place + 1).next_power_of_two(), 0);
        self.held[place] = held;
    }

    /// Starts again, with the present value.
    pub fn restart(&mut self, now: Time) {
        self.held.fill(0);
        (self.since, self.start, self.max) = (now, now, self.value);
    }

    /// Mean and quantiles up to now.
    pub fn quantiles(&mut self, now: Time) -> Quantiles {
        self.advance(now);
        let length = now.since(self.start).as_ns();
        let (mut buckets, mut area) = (Buckets::new(3), 0);
        for (value, &held) in (0u64..).zip(&self.held).filter(|&(_, &held)| held > 0) {
            buckets.add(value, held);
            area += u128::from(value) * u128::from(held);
        }
        let at = |q| buckets.quantile(q).min(u64::from(self.max)) as f64;
        Quantiles {
            mean: if length == 0 { f64::from(self.value) } else { area as f64 / length as f64 },
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: f64::from(self.max),
        }
    }

    /// Memory in use, bytes.
    pub fn bytes(&self) -> usize {
        self.held.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_weights_as_buckets_do(
            steps in prop::collection::vec((0u32..1 << 15, 0u32..15, 0u64..1000), 1..80),
            restart in 0usize..80,
        ) {
            let (mut record, mut now) = (TimeWeighted::new(), Time::ZERO);
            let (mut model, mut area, mut length, mut max, mut current) = (Buckets::new(3), 0, 0, 0, 0);
            for (n, (value, shift, held)) in steps.into_iter().enumerate() {
                if n == restart {
                    record.restart(now);
                    (model, area, length, max) = (Buckets::new(3), 0, 0, current);
                }
                current = value >> shift;
                max = max.max(current);
                record.set(current, now);
                now += Span::ns(held);
                if held > 0 {
                    model.add(u64::from(current), held);
                }
                (area, length) = (area + u64::from(current) * held, length + held);
            }
            let got = record.quantiles(now);
            let mean = if length == 0 { f64::from(current) } else { area as f64 / length as f64 };
            prop_assert_eq!((got.mean, got.max), (mean, f64::from(max)));
            for (share, quantile) in [(0.5, got.p50), (0.95, got.p95), (0.99, got.p99)] {
                prop_assert_eq!(quantile, model.quantile(share).min(u64::from(max)) as f64);
            }
        }
    }

    #[test]
    fn gathered_delays_count_like_single_ones() {
        let (mut together, mut single, mut gathered) = (Delays::new(3), Delays::new(3), Gathered::default());
        for ns in [50_000_000, 49_999_999, 1, 4_000_000_000, 52_000_000, 50_000_000, 70_000].map(Span::ns) {
            assert!(gathered.push(ns));
            single.record(ns);
        }
        assert!(!gathered.push(Span::ns(1)), "it is full");
        together.record_gathered(gathered);
        together.record_gathered(Gathered::default());
        assert_eq!(format!("{together:?}"), format!("{single:?}"));
    }

    #[test]
    fn a_number_is_weighted_by_how_long_it_lasts() {
        let mut record = TimeWeighted::new();
        // 20 000 for 1 µs, 5 for 2 µs, 0 for 7 µs: the mean is 20 010 / 10.
        for (value, us) in [(20_000, 0), (5, 1), (0, 3)] {
            record.set(value, Time::ZERO + Span::us(us));
        }
        let got = record.quantiles(Time::ZERO + Span::us(10));
        assert_eq!((got.mean, got.p50, got.max), (2001.0, 0.0, 20_000.0));
        assert_eq!(got.p95, 20_000.0, "to three digits, and no more than the largest");
    }
}
