//! `fq_codel_fair.h` with `codel.h`, and `queue/fq_codel_fair.rs`.
use crate::draw::{number, one_of};
use crate::drive::{Covered, Gauges, Twin, run, same};
use crate::ffi::{self, Shell, Totals};
use narrows_core::params::Packets;
use narrows_core::queue::fq_codel_fair::FqCodelFairParams;
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::{Bytes, Rng, Span};
use std::collections::HashMap;

struct FqCodelFair;

impl Twin for FqCodelFair {
    const COVERS: &'static [&'static str] = &[
        "sent",
        "empty",
        "flow limit",
        "codel",
        "evicted",
        "marked",
        "several dropped at once",
        "flows wait",
        "settled flows wait",
        "newcomers wait",
        "a debt",
        "a target above the one that was set",
        "ahead of virtual time",
    ];
    // At a few bit/s a round over all flows takes days, and intervals that long overflow in the core.
    const RATES: &'static [u64] = &[0, 64_000, 10_000_000, 12_000_000, 1_000_000_000, 1 << 40];

    fn draw(rng: &mut Rng, link: &LinkHint) -> (QueueConfig, Shell) {
        let p = FqCodelFairParams {
            limit: Packets(one_of(rng, &[10_240, 10_000_000, 1, 2, 8, 8, 20, 100, 128, 200, 400])),
            flows: one_of(rng, &[1024, 1, 2, 7, 100]),
            quantum: Bytes(one_of(rng, &[1514, 256, 300, 1 << 20])),
            target: one_of(rng, &[Span::ms(5), Span::ms(5), Span::us(1), Span::ms(1), Span::s(100)]),
            interval: one_of(
                rng,
                &[Span::ms(100), Span::ms(100), Span::us(1), Span::ms(2), Span::ms(20), Span::s(100)],
            ),
            ecn: rng.chance(0.5),
            newcomers: Packets(one_of(rng, &[256, 256, 1, 2, 20, 10_000_000])),
            memory: one_of(rng, &[Span::s(1), Span::ms(1), Span::s(3600), Span::ms(40)]),
            probation: one_of(rng, &[Span::ms(100), Span::ZERO, Span::ZERO, Span::ms(1), Span::s(3600)]),
            ahead: one_of(rng, &[Span::ms(500), Span::ZERO, Span::ms(1), Span::s(3600)]),
        };
        let shell = [
            u64::from(p.limit.0),
            u64::from(p.flows),
            p.quantum.0,
            p.target.as_ns(),
            p.interval.as_ns(),
            u64::from(p.ecn),
            link.mtu.0,
            u64::from(p.newcomers.0),
            p.memory.as_ns(),
            p.probation.as_ns(),
            p.ahead.as_ns(),
            link.rate.as_bps(),
        ];
        (QueueConfig::FqCodelFair(p), Shell::new(ffi::FQ_CODEL_FAIR, &shell))
    }

    fn mask(_config: &QueueConfig) -> u32 {
        u32::MAX
    }

    fn compare(gauges: &Gauges, totals: &Totals, covered: &mut Covered) -> Result<(), String> {
        let [waiting, newcomers, debt, target, virtual_time, settled, ..] = totals.more;
        let target = Span::ns(target).as_ms_f64();
        same("flows", gauges.whole["flows"], waiting as f64)?;
        same("newcomers_packets", gauges.whole["newcomers_packets"], newcomers as f64)?;
        same("newcomers_debt_bytes", gauges.whole["newcomers_debt_bytes"], debt as f64)?;
        same("target_ms", gauges.whole["target_ms"], target)?;
        let set = [1e-3, 1.0, 5.0, 100_000.0];
        for (seen, what) in [
            (waiting > 1, "flows wait"),
            (settled > 1, "settled flows wait"),
            (newcomers > 1, "newcomers wait"),
            (debt > 0, "a debt"),
            (!set.contains(&target), "a target above the one that was set"),
            (virtual_time > 0, "virtual time"),
        ] {
            if seen {
                covered.count(what);
            }
        }
        Ok(())
    }

    fn compare_flow(gauges: &HashMap<&'static str, f64>, totals: &Totals, covered: &mut Covered) -> Result<(), String> {
        let [_, _, _, _, virtual_time, _, packets, tag, listed, _] = totals.more;
        // A bucket may have changed hands while the packets of its last owner's wait: the core shows it by whose packet came last.
        if listed == 0 {
            return Ok(());
        }
        same("queue_packets", gauges["queue_packets"], packets as f64)?;
        let ahead = tag as f64 - virtual_time as f64;
        same("ahead_bytes", gauges["ahead_bytes"], ahead)?;
        if ahead > 0.0 {
            covered.count("ahead of virtual time");
        }
        Ok(())
    }
}

#[test]
fn fq_codel_fair_decides_as_the_core_does() {
    run::<FqCodelFair>();
}

/// Products of 80 bits, in C without a type for them.
#[test]
fn a_spacing_does_not_wrap_around() {
    let mut rng = Rng::stream(1, "spacing");
    for _ in 0..100_000 {
        let (interval, fraction) = (number(&mut rng, 0, u64::MAX - 1), rng.next_u32() as u16);
        let exact = (u128::from(interval) * u128::from(fraction)) >> 16;
        assert_eq!(u128::from(ffi::codel_spacing(interval, fraction)), exact, "{interval} · {fraction}");
    }
}
