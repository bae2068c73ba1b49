//! Counts of whole numbers in buckets whose width grows with the number, so that a given number of digits is kept: the
//! buckets of an HDR histogram (Tene, 2012).
//!
//! Numbers below 2^(b+1) have a bucket each; every doubling of the range above that has 2^b buckets. Only the buckets between
//! the lowest and the highest one in use take memory: a flow's round-trip times lie in a few dozen.

/// The counts.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    /// Number of the first bucket in `counts`.
    first: u32,
    /// The b in the module's documentation.
    half_bits: u8,
    counts: Vec<u64>,
}

/// The number of buckets grows in multiples of this.
const BLOCK: usize = 16;

impl Buckets {
    /// Keeps `digits` decimal digits, at most 5.
    pub(super) fn new(digits: u8) -> Buckets {
        let single = 2 * 10u32.pow(u32::from(digits.min(5)));
        Buckets { first: 0, half_bits: (single.next_power_of_two().ilog2() - 1) as u8, counts: Vec::new() }
    }

    /// Counts a number `times` times.
    #[inline]
    pub(super) fn add(&mut self, number: u64, times: u64) {
        let bucket = self.bucket_of(number);
        match self.counts.get_mut(bucket.wrapping_sub(self.first as usize)) {
            Some(count) => *count += times,
            None => {
                self.make_room(number);
                self.counts[bucket - self.first as usize] += times;
            }
        }
    }

    #[inline]
    fn bucket_of(&self, number: u64) -> usize {
        let half_bits = u32::from(self.half_bits);
        let doublings = ((number | 1 << half_bits).ilog2() - half_bits) as usize;
        (doublings << half_bits) + (number >> doublings) as usize
    }

    /// The lowest and the highest number of a bucket.
    fn range_of(&self, bucket: usize) -> (u64, u64) {
        let doublings = (bucket >> self.half_bits).saturating_sub(1);
        let lowest = ((bucket - (doublings << self.half_bits)) as u64) << doublings;
        (lowest, lowest + ((1 << doublings) - 1))
    }

    /// Extends the buckets in memory to include a number's bucket.
    #[cold]
    pub(super) fn make_room(&mut self, number: u64) {
        let bucket = self.bucket_of(number);
        if self.counts.is_empty() {
            self.first = (bucket / BLOCK * BLOCK) as u32;
        }
        let missing = (self.first as usize).saturating_sub(bucket).next_multiple_of(BLOCK);
        if missing > 0 {
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first -= missing as u32;
        }
        let needed = (bucket + 1 - self.first as usize).next_multiple_of(BLOCK);
        self.counts.resize(self.counts.len().max(needed), 0);
    }

    /// Forgets all counts.
    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Buckets with a count above zero, ascending: lowest number, highest number, count.
    pub(super) fn filled(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let buckets = (self.first as usize..).zip(&self.counts).filter(|&(_, &count)| count > 0);
        buckets.map(|(bucket, &count)| {
            let (lowest, highest) = self.range_of(bucket);
            (lowest, highest, count)
        })
    }

    /// A quantile, rounded up to the highest number of its bucket; `share` is 0 to 1. Zero if nothing has been counted.
    pub(super) fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.counts.iter().sum();
        let rank = ((share * total as f64).ceil() as u64).max(1);
        let mut below = 0;
        let reached = |&(_, _, count): &(u64, u64, u64)| {
            below += count;
            below >= rank
        };
        self.filled().find(reached).map_or(0, |(_, highest, _)| highest)
    }

    pub(super) fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_ends_where_the_next_begins() {
        for digits in [1, 3] {
            let buckets = Buckets::new(digits);
            let mut next = 0;
            for bucket in 0..40 << buckets.half_bits {
                let (lowest, highest) = buckets.range_of(bucket);
                assert_eq!(lowest, next);
                assert_eq!((buckets.bucket_of(lowest), buckets.bucket_of(highest)), (bucket, bucket));
                // The error is at most half a unit of the last digit kept, at the lower end of the bucket.
                assert!((highest - lowest) as f64 <= lowest as f64 / 10f64.powi(i32::from(digits)));
                next = highest + 1;
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_an_hdr_histogram(numbers in prop::collection::vec((0u64..40, 0u64..1 << 40, 1u64..1 << 20), 0..60), digits in 1u8..=3) {
            let mut model = Histogram::<u64>::new(digits).expect("1 to 5 digits are allowed");
            model.auto(true);
            let mut buckets = Buckets::new(digits);
            for (shift, number, times) in numbers {
                let number = number >> shift;
                buckets.add(number, times);
                model.record_n(number, times).expect("it grows");
            }
            let expected: Vec<_> = model.iter_recorded().map(|b| (b.value_iterated_to(), b.count_at_value())).collect();
            let got: Vec<_> = buckets.filled().map(|(_, highest, count)| (highest, count)).collect();
            prop_assert_eq!(got, expected);
            for share in [0.0001, 0.5, 0.95, 0.99, 1.0] {
                prop_assert_eq!(buckets.quantile(share), model.value_at_quantile(share));
            }
        }
    }
}
