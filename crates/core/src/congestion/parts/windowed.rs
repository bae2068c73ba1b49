//! The largest or smallest value of a sliding window, in three samples (Kathleen Nichols; Linux `lib/win_minmax.c`).
//!
//! Kept are the best value and the best of what came after it, twice over, so that an heir is at hand when the best one
//! leaves the window. Exact while values keep getting better; otherwise a value may be forgotten up to a quarter of the
//! window early. Time is whatever the caller counts: round trips, microseconds.

/// A value and when it was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Sample {
    at: u64,
    value: u64,
}

/// The largest value of a window.
#[derive(Clone, Debug)]
pub struct WindowedMax(Samples);

/// The smallest value of a window.
#[derive(Clone, Debug)]
pub struct WindowedMin(Samples);

/// Best first; of the same time or later, and no better, from one to the next.
#[derive(Clone, Debug)]
struct Samples([Sample; 3]);

impl WindowedMax {
    /// Nothing but `value`, seen `at`.
    pub fn new(at: u64, value: u64) -> WindowedMax {
        WindowedMax(Samples([Sample { at, value }; 3]))
    }

    /// The largest value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.0[0].value
    }

    /// Takes a value in; `at` must not run backwards. Returns the largest.
    #[inline]
    pub fn update(&mut self, window: u64, at: u64, value: u64) -> u64 {
        self.0.update(window, Sample { at, value }, |a, b| a >= b)
    }
}

impl WindowedMin {
    /// Nothing but `value`, seen `at`.
    pub fn new(at: u64, value: u64) -> WindowedMin {
        WindowedMin(Samples([Sample { at, value }; 3]))
    }

    /// The smallest value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.0[0].value
    }

    /// Takes a value in; `at` must not run backwards. Returns the smallest.
    #[inline]
    pub fn update(&mut self, window: u64, at: u64, value: u64) -> u64 {
        self.0.update(window, Sample { at, value }, |a, b| a <= b)
    }
}

impl Samples {
    /// `beats`: is the first value as good as the second?
    #[inline]
    fn update(&mut self, window: u64, new: Sample, beats: impl Fn(u64, u64) -> bool) -> u64 {
        let Samples([first, second, third]) = self;
        if beats(new.value, first.value) || new.at.saturating_sub(third.at) > window {
            // The best so far, or nothing younger than the window is left.
            *self = Samples([new; 3]);
            return new.value;
        }
        if beats(new.value, second.value) {
            (*second, *third) = (new, new);
        } else if beats(new.value, third.value) {
            *third = new;
        }
        self.age(window, new)
    }

    /// Drops the best when it leaves the window, and makes sure that the heirs are not all as old as it is.
    fn age(&mut self, window: u64, new: Sample) -> u64 {
        let Samples([first, second, third]) = self;
        let age = new.at.saturating_sub(first.at);
        if age > window {
            (*first, *second, *third) = (*second, *third, new);
            if new.at.saturating_sub(first.at) > window {
                (*first, *second, *third) = (*second, *third, new);
            }
        } else if second.at == first.at && age > window / 4 {
            // A quarter has passed without a second choice: take one from the second quarter.
            (*second, *third) = (new, new);
        } else if third.at == second.at && age > window / 2 {
            *third = new;
        }
        self.0[0].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_falling_value_is_followed_a_window_later() {
        // Worked out by hand, window 10: (time, value, largest). 100 is seen at 0 and counts until 10. Its heir is the first
        // value after a quarter, 80 at 3, until 13; the next the first after half, 50 at 6, until 16. Then it is 30, seen when
        // 100 left: 40 has been forgotten.
        let steps = [
            (0, 100, 100),
            (1, 90, 100),
            (3, 80, 100),
            (6, 50, 100),
            (10, 40, 100),
            (11, 30, 80),
            (12, 20, 80),
            (13, 20, 80),
            (14, 10, 50),
            (16, 5, 50),
            (17, 5, 30),
        ];
        let mut max = WindowedMax::new(0, 0);
        let mut got = Vec::new();
        for (at, value, _) in steps {
            got.push((at, value, max.update(10, at, value)));
        }
        assert_eq!(got, steps);
    }

    #[test]
    fn the_best_takes_over_at_once_and_a_gap_forgets_all() {
        let mut max = WindowedMax::new(0, 7);
        assert_eq!(max.update(10, 1, 5), 7);
        assert_eq!(max.update(10, 2, 8), 8);
        assert_eq!(max.update(10, 13, 1), 1, "all are older than the window");
        assert_eq!(max.get(), 1);
    }

    #[test]
    fn the_smallest_is_the_largest_turned_round() {
        let mut rng = crate::Rng::stream(1, "windowed");
        let (mut min, mut max) = (WindowedMin::new(0, 500), WindowedMax::new(0, 500));
        for at in 0..2000 {
            let value = rng.below(1000);
            assert_eq!(1000 - min.update(25, at, 1000 - value), max.update(25, at, value));
            assert_eq!(1000 - min.get(), max.get());
            // Never less than what has just been seen, never more than the window's true maximum can be.
            assert!(max.get() >= value);
        }
    }
}
