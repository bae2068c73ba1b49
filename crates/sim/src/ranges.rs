//! Ranges of numbers that arrived out of order: ascending, disjoint, half open.

/// The ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, n: u64) -> bool {
        self.0.iter().rev().any(|&(start, end)| n >= start && n < end)
    }

    /// Adds a number that is not in a range.
    pub(crate) fn insert(&mut self, n: u64) {
        let ranges = &mut self.0;
        let at = match ranges.last() {
            Some(&(start, _)) if start <= n => ranges.len(),
            _ => ranges.partition_point(|&(start, _)| start <= n),
        };
        let joins_left = at > 0 && ranges[at - 1].1 == n;
        let joins_right = ranges.get(at).is_some_and(|&(start, _)| start == n + 1);
        match (joins_left, joins_right) {
            (true, true) => ranges[at - 1].1 = ranges.remove(at).1,
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
        let &(start, end) = self.0.first().filter(|&&(start, _)| start == n)?;
        self.0.remove(0);
        (start < end).then_some(end)
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
