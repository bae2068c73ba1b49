//! Distributions of delays (HDR histograms, in microseconds) and of queue lengths (weighted by time).
use hdrhistogram::{Counter, Histogram};
use narrows_core::{Span, Time};
use narrows_scenario::Cdf;
use narrows_scenario::result::summary::{Completion, Quantiles, RttQuantiles};

/// Delays: quantiles to three digits (or two, to save memory with many flows), the mean exact.
pub(crate) struct Delays<C: Counter> {
    histogram: Histogram<C>,
    sum_ns: u128,
    count: u64,
    min: Option<Span>,
    max: Span,
}

impl<C: Counter> Delays<C> {
    /// Quantiles with this many significant digits, at most 5.
    pub(crate) fn new(digits: u8) -> Delays<C> {
        let mut histogram = Histogram::new(digits.min(5)).expect("1 to 5 digits are allowed");
        histogram.auto(true);
        Delays { histogram, sum_ns: 0, count: 0, min: None, max: Span::ZERO }
    }

    #[inline]
    pub(crate) fn record(&mut self, delay: Span) {
        // It grows as needed; only a range beyond the address space is refused.
        let _ = self.histogram.record(delay.as_ns() / 1000);
        self.sum_ns += u128::from(delay.as_ns());
        self.count += 1;
        self.max = self.max.max(delay);
        if self.min.is_none_or(|min| delay < min) {
            self.min = Some(delay);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.histogram.reset();
        (self.sum_ns, self.count, self.min, self.max) = (0, 0, None, Span::ZERO);
    }

    fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 / 1e6 }
    }

    fn quantile_ms(&self, q: f64) -> f64 {
        (self.histogram.value_at_quantile(q) as f64 / 1e3).min(self.max.as_ms_f64())
    }

    pub(crate) fn quantiles_ms(&self) -> Quantiles {
        Quantiles {
            mean: self.mean_ms(),
            p50: self.quantile_ms(0.5),
            p95: self.quantile_ms(0.95),
            p99: self.quantile_ms(0.99),
            max: self.max.as_ms_f64(),
        }
    }

    pub(crate) fn rtt_ms(&self) -> Option<RttQuantiles> {
        Some(RttQuantiles {
            min: self.min?.as_ms_f64(),
            mean: self.mean_ms(),
            p50: self.quantile_ms(0.5),
            p95: self.quantile_ms(0.95),
            p99: self.quantile_ms(0.99),
        })
    }

    pub(crate) fn completion_s(&self) -> Completion {
        let q = self.quantiles_ms();
        let [mean, p50, p95, p99, max] = [q.mean, q.p50, q.p95, q.p99, q.max].map(|ms| ms / 1e3);
        Completion { count: self.count, mean, p50, p95, p99, max }
    }

    /// The distribution in steps of half a percent, and finer towards the end.
    pub(crate) fn cdf(&self, source: &str, metric: &str) -> Option<Cdf> {
        if self.count == 0 {
            return None;
        }
        let coarse = (0..199).map(|n| f64::from(n) / 200.0);
        let fine = (0..=10).map(|n| 0.995 + f64::from(n) / 2000.0);
        let points = coarse.chain(fine).map(|share| (self.quantile_ms(share), share)).collect();
        Some(Cdf { source: source.into(), metric: metric.into(), points })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.histogram.distinct_values() * size_of::<C>()
    }
}

/// A whole number over time.
pub(crate) struct TimeWeighted {
    histogram: Histogram<u64>,
    area: u128,
    value: u64,
    since: Time,
    start: Time,
    max: u64,
}

impl TimeWeighted {
    pub(crate) fn new() -> TimeWeighted {
        let mut histogram = Histogram::new(3).expect("3 digits are allowed");
        histogram.auto(true);
        TimeWeighted { histogram, area: 0, value: 0, since: Time::ZERO, start: Time::ZERO, max: 0 }
    }

    /// The number is `value` from `now` on.
    #[inline]
    pub(crate) fn set(&mut self, value: u64, now: Time) {
        if value != self.value {
            self.advance(now);
            self.value = value;
            self.max = self.max.max(value);
        }
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        let held = now.since(self.since).as_ns();
        if held > 0 {
            self.area += u128::from(self.value) * u128::from(held);
            let _ = self.histogram.record_n(self.value, held);
            self.since = now;
        }
    }

    /// Starts over, with the number as it is.
    pub(crate) fn restart(&mut self, now: Time) {
        self.histogram.reset();
        (self.area, self.since, self.start, self.max) = (0, now, now, self.value);
    }

    pub(crate) fn quantiles(&mut self, now: Time) -> Quantiles {
        self.advance(now);
        let length = now.since(self.start).as_ns();
        let at = |q| self.histogram.value_at_quantile(q).min(self.max) as f64;
        Quantiles {
            mean: if length == 0 { self.value as f64 } else { self.area as f64 / length as f64 },
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: self.max as f64,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.histogram.distinct_values() * size_of::<u64>()
    }
}
