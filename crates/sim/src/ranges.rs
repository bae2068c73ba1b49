//! Ranges of numbers that arrived out of order: ascending, disjoint, half open.
use std::collections::VecDeque;

/// The ranges. After slow start at a high rate there are tens of thousands, which disappear at the front, one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(VecDeque<(u64, u64)>);

impl Ranges {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, n: u64) -> bool {
        let within = |&(start, end): &(u64, u64)| n >= start && n < end;
        match self.0.back() {
            Some(&(start, _)) if start > n => {
                let after = self.0.partition_point(|&(start, _)| start <= n);
                after.checked_sub(1).and_then(|before| self.0.get(before)).is_some_and(within)
            }
            last => last.is_some_and(within),
        }
    }

    /// Adds a number that is not in a range.
    pub(crate) fn insert(&mut self, n: u64) {
        let ranges = &mut self.0;
        let at = match ranges.back() {
            Some(&(start, _)) if start <= n => ranges.len(),
            _ => ranges.partition_point(|&(start, _)| start <= n),
        };
        let joins_left = at > 0 && ranges[at - 1].1 == n;
        let joins_right = ranges.get(at).is_some_and(|&(start, _)| start == n + 1);
        match (joins_left, joins_right) {
            (true, true) => {
                ranges[at - 1].1 = ranges[at].1;
                ranges.remove(at);
            }
            (true, false) => ranges[at - 1].1 += 1,
            (false, true) => ranges[at].0 = n,
            (false, false) => ranges.insert(at, (n, n + 1)),
        }
    }

    /// Adds a number; returns whether it was missing.
    pub(crate) fn insert_once(&mut self, n: u64) -> bool {
        let missing = !self.contains(n);
        if missing {
            self.insert(n);
        }
        missing
    }

    /// Removes the first range if it starts at `n`; returns its end.
    pub(crate) fn take_from(&mut self, n: u64) -> Option<u64> {
        self.0.pop_front_if(|&mut (start, _)| start == n).map(|(_, end)| end)
    }

    /// Keeps only the `count` highest ranges.
    pub(crate) fn keep_last(&mut self, count: usize) {
        let surplus = self.0.len().saturating_sub(count);
        self.0.drain(..surplus);
    }

    /// The ranges, the highest first.
    pub(crate) fn descending(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    proptest::proptest! {
        #[test]
        fn they_are_a_set(numbers in proptest::collection::vec(0u64..60, 0..120), kept in 1usize..6) {
            let (mut ranges, mut model, mut next) = (Ranges::default(), BTreeSet::new(), 0);
            for n in numbers {
                let missing = n >= next && !model.contains(&n);
                assert_eq!(n >= next && !ranges.contains(n), missing, "{n} in {ranges:?}");
                if missing {
                    ranges.insert(n);
                    model.insert(n);
                }
                if let Some(end) = ranges.take_from(next) {
                    assert!((next..end).all(|n| model.remove(&n)) && !model.contains(&end), "{next} to {end}");
                    next = end;
                } else {
                    assert!(!model.contains(&next));
                }
                assert_eq!(ranges.is_empty(), model.is_empty());
                assert!(ranges.descending().flat_map(|(start, end)| (start..end).rev()).eq(model.iter().rev().copied()));
            }
            ranges.keep_last(kept);
            assert!(ranges.descending().count() <= kept);
        }
    }
}
