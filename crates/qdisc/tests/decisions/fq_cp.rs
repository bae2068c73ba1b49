//! `fq_cp.h` and `queue/fq_cp.rs`.
use crate::cp::congestion;
use crate::draw::{number, one_of};
use crate::drive::{Covered, Gauges, Twin, run, same};
use crate::ffi::{self, Shell, Totals};
use narrows_core::params::{Auto, Packets};
use narrows_core::queue::fq_cp::FqCpParams;
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::{Bytes, Rate, Rng};
use std::collections::HashMap;

struct FqCp;

impl Twin for FqCp {
    const COVERS: &'static [&'static str] =
        &["sent", "empty", "queue full", "flow limit", "policed", "marked", "tokens", "measured"];

    fn draw(rng: &mut Rng, link: &LinkHint) -> (QueueConfig, Shell) {
        let ruled = rng.chance(0.5);
        let (max_congestion, excess) = congestion(rng, ruled);
        let bucket = number(rng, 0, 1 << 30);
        let p = FqCpParams {
            flow_limit: Packets(one_of(rng, &[100, 1, 30, 10_000_000])),
            threshold: Packets(one_of(rng, &[5, 0, 1, 10_000_000])),
            max_congestion,
            bucket: if ruled { Auto::Auto } else { Auto::Is(Bytes(bucket)) },
            ecn: rng.chance(0.5),
            limit: Packets(one_of(rng, &[10_000, 10_000, 10_000_000, 400, 400, 20, 1])),
            quantum: Bytes(one_of(rng, &[3028, 256, 1514, 1 << 20])),
            initial_quantum: Bytes(one_of(rng, &[15_140, 0, 1, 1 << 30])),
            buckets: one_of(rng, &[1024, 1, 7]),
            orphan_mask: one_of(rng, &[1023, 0, 7, 0x8000_0101, 0xff]),
        };
        let shell = [
            u64::from(p.flow_limit.0),
            u64::from(p.threshold.0),
            excess,
            u64::from(!ruled),
            bucket,
            u64::from(p.ecn),
            link.rate.as_bps(),
            link.mtu.0,
            u64::from(p.limit.0),
            p.quantum.0,
            p.initial_quantum.0,
            u64::from(p.buckets),
            u64::from(p.orphan_mask),
        ];
        (QueueConfig::FqCp(p), Shell::new(ffi::FQ_CP, &shell))
    }

    fn mask(config: &QueueConfig) -> u32 {
        let QueueConfig::FqCp(p) = config else { unreachable!("drawn above") };
        p.orphan_mask
    }

    fn compare(gauges: &Gauges, totals: &Totals, _covered: &mut Covered) -> Result<(), String> {
        same("flows", gauges.whole["flows"], totals.more[0] as f64)
    }

    fn compare_flow(gauges: &HashMap<&'static str, f64>, totals: &Totals, covered: &mut Covered) -> Result<(), String> {
        let [_, _, packets, credit, tokens, rate, ..] = totals.more;
        same("queue_packets", gauges["queue_packets"], packets as f64)?;
        same("credit", gauges["credit"], credit.cast_signed() as f64)?;
        same("tokens_bytes", gauges["tokens_bytes"], tokens as f64)?;
        same("token_rate_mbit", gauges["token_rate_mbit"], Rate::bit(rate).as_mbit_f64())?;
        if tokens > 0 {
            covered.count("tokens");
        }
        // No rate of a link is like this.
        if rate % 1_000 > 1 {
            covered.count("measured");
        }
        Ok(())
    }
}

#[test]
fn fq_cp_decides_as_the_core_does() {
    run::<FqCp>();
}
