//! `cp.h` with `policer.h` and `drain_rate.h`, and `queue/cp.rs`.
use crate::draw::{number, one_of};
use crate::drive::{Covered, Gauges, Twin, run, same};
use crate::ffi::{self, Shell, Totals};
use narrows_core::params::{Auto, Bound, Limit, Packets};
use narrows_core::queue::cp::CpParams;
use narrows_core::queue::parts::congestion_policer::PolicerLaw;
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::{Bytes, Rate, Rng};

struct Cp;

/// A largest congestion, and its excess over one in 2⁻³²ths. Of the first kind are those that both sides express alike, so that
/// the rule's bucket is the same; of the second are any.
pub(crate) fn congestion(rng: &mut Rng, exact: bool) -> (f64, u64) {
    let max_congestion = if exact {
        1.0 + one_of(rng, &[0.0, 0.5, 0.203125, 0.25, 1.0, 99.0])
    } else {
        one_of(rng, &[1.2, 1.05, 1.000_000_1, 99.99])
    };
    (max_congestion, ((max_congestion - 1.0) * f64::from(1u32 << 31) * 2.0) as u64)
}

impl Twin for Cp {
    const COVERS: &'static [&'static str] = &["sent", "empty", "queue full", "policed", "marked", "tokens", "measured"];

    fn draw(rng: &mut Rng, link: &LinkHint) -> (QueueConfig, Shell) {
        let ruled = rng.chance(0.5);
        let (max_congestion, excess) = congestion(rng, ruled);
        let limit = if rng.chance(0.5) {
            Limit::Packets(one_of(rng, &[100, 1, 30, 10_000_000]))
        } else {
            Limit::Bytes(Bytes(one_of(rng, &[1, 1500, 45_000, 1_000_000_000])))
        };
        let bucket = number(rng, 0, 1 << 30);
        let p = CpParams {
            limit,
            threshold: Packets(one_of(rng, &[5, 0, 1, 10_000_000])),
            max_congestion,
            bucket: if ruled { Auto::Auto } else { Auto::Is(Bytes(bucket)) },
            rate: if rng.chance(0.5) { Auto::Auto } else { Auto::Is(Rate::bit(number(rng, 0, 1_000_000_000_000))) },
            follow_drain: rng.chance(0.5),
            ecn: rng.chance(0.5),
        };
        let (limit, in_bytes) = match p.limit.resolve(link) {
            Bound::Packets(packets) => (u64::from(packets), 0),
            Bound::Bytes(bytes) => (bytes.0, 1),
        };
        let rate = p.rate.value().unwrap_or(link.rate).as_bps();
        let fixed = u64::from(p.rate.value().is_some());
        let shell = [
            limit,
            in_bytes,
            u64::from(p.threshold.0),
            excess,
            bucket,
            rate,
            u64::from(p.follow_drain),
            u64::from(p.ecn),
            link.mtu.0,
            fixed,
            u64::from(!ruled),
        ];
        (QueueConfig::Cp(p), Shell::new(ffi::CP, &shell))
    }

    fn mask(_config: &QueueConfig) -> u32 {
        u32::MAX
    }

    fn compare(gauges: &Gauges, totals: &Totals, covered: &mut Covered) -> Result<(), String> {
        same("tokens_bytes", gauges.whole["tokens_bytes"], totals.more[0] as f64)?;
        same("token_rate_mbit", gauges.whole["token_rate_mbit"], Rate::bit(totals.more[1]).as_mbit_f64())?;
        if totals.more[0] > 0 {
            covered.count("tokens");
        }
        // No rate that is given is like this.
        if totals.more[1] % 1_000 > 1 {
            covered.count("measured");
        }
        Ok(())
    }
}

#[test]
fn cp_decides_as_the_core_does() {
    run::<Cp>();
}

/// The deviation that `policer.h` names.
#[test]
fn the_rule_for_the_bucket_differs_by_its_rounding_only() {
    let mut rng = Rng::stream(1, "rule");
    let mut differing = 0;
    for _ in 0..100_000 {
        let (threshold, most) = (number(&mut rng, 0, 1 << 30), number(&mut rng, 1, 1 << 34));
        let (mtu, max_congestion) = (number(&mut rng, 1, 65_535), 1.0 + 99.0 * rng.unit());
        let excess = ((max_congestion - 1.0) * f64::from(1u32 << 31) * 2.0) as u64;
        let core = PolicerLaw::rule(Bytes(threshold), Bytes(most), max_congestion, Bytes(mtu)).0;
        let c = ffi::policer_rule(threshold, most, excess, mtu);
        let allowed = 1 + (most.saturating_sub(threshold) >> 33);
        assert!(core.abs_diff(c) <= allowed, "{threshold} {most} {max_congestion} {mtu}: {core} and {c}");
        differing += u64::from(core != c);
    }
    assert!(differing > 0, "the deviation is named for nothing");
}

/// `base.h`, as it is where the compiler has no numbers of 128 bits.
#[test]
fn products_and_quotients_of_128_bits_are_exact() {
    let mut rng = Rng::stream(1, "quotients");
    let mut large = 0;
    for _ in 0..200_000 {
        let [a, b, d] = std::array::from_fn(|_| number(&mut rng, 0, u64::MAX - 1));
        let product = u128::from(a) * u128::from(b);
        let exact = product.checked_div(u128::from(d)).and_then(|quotient| u64::try_from(quotient).ok());
        assert_eq!(ffi::mul_div(a, b, d), exact.unwrap_or(u64::MAX), "{a} · {b} / {d}");
        large += u64::from(exact.is_some() && product > u128::from(u64::MAX));
    }
    assert!(large > 1000, "{large} went through the long division");
}
