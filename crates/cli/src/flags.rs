//! Parsers for numbers in flags.
use std::ops::RangeInclusive;

/// Maximum number of threads.
pub(crate) const MAX_JOBS: u64 = 4096;
/// Largest seed, which is TOML's largest integer.
pub(crate) const MAX_SEED: u64 = i64::MAX as u64;

/// Reads a whole number in a range.
pub(crate) fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("allowed: a whole number, {} to {}", range.start(), range.end()))
    }
}
