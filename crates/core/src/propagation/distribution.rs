//! netem's distributions of delays: tables of the inverse distribution functions, in units of the jitter (`netem/*.c` of iproute2).
//!
//! They are computed here as iproute2's programs compute them, and a test compares them with iproute2's files. A table may also come
//! from elsewhere, as `tc` reads one from a file.
use crate::time::Span;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

choice! {
    /// A distribution that netem knows by its name.
    #[derive(Default)]
    pub enum NamedDistribution {
        /// Uniformly, up to the jitter both ways.
        #[default]
        Uniform = "uniform",
        /// Normally, with the jitter as standard deviation.
        Normal = "normal",
        /// As a Pareto variable with exponent 3.
        Pareto = "pareto",
        /// A quarter normal, three quarters Pareto.
        Paretonormal = "paretonormal",
    }
}

/// How the delays of packets are distributed around a hop's delay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// One with a name.
    Named(NamedDistribution),
    /// One from a file.
    Table(DelayTable),
}

/// A table of delays: each packet draws an entry. The entries are those of `tc`'s files: 8192 is a delay that is later by the jitter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DelayTable {
    /// Its name, by which people know it; no packet depends on it.
    pub name: String,
    /// From one entry to [`DelayTable::MOST`].
    pub entries: Arc<[i16]>,
}

impl DelayTable {
    /// Most entries (Linux, `NETEM_DIST_MAX`).
    pub const MOST: usize = 16_384;
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution::Named(NamedDistribution::default())
    }
}

/// Table entries for a delay that is later by the jitter (`NETEM_DIST_SCALE`).
const SCALE: i64 = 8192;
/// Resolution of the normal distribution in the programs; a table has every fourth place.
const PLACES: u32 = 16_384;
const STEP: usize = 4;
/// Exponent of the Pareto distribution.
const EXPONENT: f64 = 3.0;

impl Distribution {
    /// Whether delays are uniform, up to the jitter both ways.
    pub fn is_uniform(&self) -> bool {
        *self == Distribution::default()
    }

    /// The table; `None` for a uniform distribution.
    pub(super) fn table(&self) -> Option<Arc<[i16]>> {
        match self {
            Distribution::Named(named) => named.table(),
            Distribution::Table(table) => Some(Arc::clone(&table.entries)),
        }
    }
}

impl NamedDistribution {
    fn table(self) -> Option<Arc<[i16]>> {
        let places = || (0..PLACES).step_by(STEP);
        let table: Vec<i16> = match self {
            NamedDistribution::Uniform => return None,
            NamedDistribution::Normal => places().map(|place| entry(normal(place))).collect(),
            NamedDistribution::Pareto => {
                let places = (1..=65_536u32).rev().step_by(16);
                places.map(|place| entry(pareto(f64::from(place) / 65_536.0))).collect()
            }
            NamedDistribution::Paretonormal => {
                let share = |place: u32| f64::from(PLACES - place) / f64::from(PLACES);
                let most = f64::from(i16::MAX) / SCALE as f64;
                let mixed = |place| 0.25 * normal(place) + 0.75 * pareto(share(place)).min(most);
                places().map(|place| entry(mixed(place))).collect()
            }
        };
        Some(table.into())
    }
}

/// A delay that varies by this entry of a table (`tabledist`); not below zero.
#[inline]
pub(super) fn varied(delay: Span, jitter: Span, entry: i16) -> Span {
    let (sigma, entry) = (jitter.as_ns() as i64, i64::from(entry));
    let part = sigma % SCALE * entry;
    let rounded = (part + if part >= 0 { SCALE / 2 } else { -SCALE / 2 }) / SCALE;
    let own = delay.as_ns() as i64 + rounded + sigma / SCALE * entry;
    Span::ns(own.max(0) as u64)
}

fn entry(value: f64) -> i16 {
    // A cast saturates, as the programs do.
    libm::rint(value * SCALE as f64) as i16
}

/// The largest value on the program's grid whose place in the distribution is this one.
fn normal(place: u32) -> f64 {
    let value = |step: u32| f64::from(step) * 0.000_05 - 10.0;
    let is_beyond = |step: u32| {
        let share = 0.5 + 0.5 * libm::erf(value(step) / core::f64::consts::SQRT_2);
        libm::rint(f64::from(PLACES) * share) > f64::from(place)
    };
    let (mut low, mut high) = (0, 401_000);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if is_beyond(middle) { high = middle } else { low = middle }
    }
    value(low)
}

/// A Pareto variable with mean zero and the jitter as unit: `share` of them are at most as far from the least.
fn pareto(share: f64) -> f64 {
    (1.0 / libm::pow(share, 1.0 / EXPONENT) - 1.5) * (4.0 / 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of iproute2 6.1: number of entries, some of them, and the sum of all, each times its place.
    #[test]
    fn tables_are_those_of_iproute2() {
        let facts = |distribution: NamedDistribution| {
            let table = distribution.table().expect("it has one");
            let sum = (1..).zip(&table[..]).map(|(place, &entry): (i64, _)| place * i64::from(entry)).sum::<i64>();
            (table.len(), [0, 1, 2, 2048, 4094, 4095].map(|n| table[n]), sum)
        };
        let normal = [-32_768, -28_307, -26_871, 0, 27_159, 28_858];
        assert_eq!(facts(NamedDistribution::Normal), (4096, normal, 38_718_192_955));
        let pareto = [-5461, -5460, -5460, -2622, 32_767, 32_767];
        assert_eq!(facts(NamedDistribution::Pareto), (4096, pareto, 22_904_699_865));
        // The mixed one was rounded in another way: its entries are within 1 of these.
        let mixed = [-12_305i16, -11_171, -10_812, -1966, 31_365, 31_789];
        let (length, found, sum) = facts(NamedDistribution::Paretonormal);
        assert!(found.iter().zip(&mixed).all(|(found, file)| found.abs_diff(*file) <= 1), "{found:?}");
        assert_eq!(length, 4096);
        assert!((sum - 26_857_509_890).abs() <= 4096 * 4097 / 2, "{sum}");
    }
}
