//! `lfq.h` with `lfq_policy.h`, and `queue/lfq.rs`.
use crate::draw::one_of;
use crate::drive::{Covered, Gauges, Twin, run, same};
use crate::ffi::{self, Shell, Totals};
use narrows_core::params::Packets;
use narrows_core::queue::lfq::{LfqParams, LfqPolicy};
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::{Bytes, Rng};
use std::collections::HashMap;

struct Lfq;

impl Twin for Lfq {
    const COVERS: &'static [&'static str] = &[
        "sent",
        "empty",
        "queue full",
        "flow limit",
        "beyond the horizon",
        "waits for a departure",
        "a longer buffer",
        "a shorter buffer",
        "a part of a packet",
        "the first cycle",
        "a later cycle",
        "ran dry",
    ];

    fn draw(rng: &mut Rng, _link: &LinkHint) -> (QueueConfig, Shell) {
        let p = LfqParams {
            policy: one_of(rng, &[LfqPolicy::Tree, LfqPolicy::Tree, LfqPolicy::Rule]),
            every: Packets(one_of(rng, &[10, 10, 10, 1, 3, 1_000_000])),
            initial_limit: Packets(one_of(rng, &[100, 1, 2, 10, 10_000_000])),
            min_limit: Packets(one_of(rng, &[4, 4, 1, 50, 10_000_000])),
            limit: Packets(one_of(rng, &[10_000, 10_000, 10_000_000, 400, 400, 20, 1])),
            quantum: Bytes(one_of(rng, &[3028, 256, 1514, 1 << 20])),
            initial_quantum: Bytes(one_of(rng, &[3028, 0, 1, 1 << 30])),
            buckets: one_of(rng, &[1024, 1, 7, 262_144 >> 4]),
            orphan_mask: one_of(rng, &[1023, 0, 7, 0x8000_0101, 0xff]),
            pacing: rng.chance(0.25),
        };
        let shell = [
            u64::from(p.policy == LfqPolicy::Rule),
            u64::from(p.every.0),
            u64::from(p.initial_limit.0),
            u64::from(p.min_limit.0),
            u64::from(p.limit.0),
            p.quantum.0,
            p.initial_quantum.0,
            u64::from(p.buckets),
            u64::from(p.orphan_mask),
            u64::from(p.pacing),
        ];
        (QueueConfig::Lfq(p), Shell::new(ffi::LFQ, &shell))
    }

    fn mask(config: &QueueConfig) -> u32 {
        let QueueConfig::Lfq(p) = config else { unreachable!("drawn above") };
        p.orphan_mask
    }

    fn compare(gauges: &Gauges, totals: &Totals, _covered: &mut Covered) -> Result<(), String> {
        same("flows", gauges.whole["flows"], totals.more[0] as f64)?;
        same("throttled_flows", gauges.whole["throttled_flows"], totals.more[1] as f64)
    }

    fn compare_flow(gauges: &HashMap<&'static str, f64>, totals: &Totals, covered: &mut Covered) -> Result<(), String> {
        let [_, _, packets, credit, limit, base, factor, cycles, idle, _] = totals.more;
        same("queue_packets", gauges["queue_packets"], packets as f64)?;
        same("credit", gauges["credit"], credit.cast_signed() as f64)?;
        same("limit_packets", gauges["limit_packets"], limit as f64 / 256.0)?;
        same("cycle_limit_packets", gauges["cycle_limit_packets"], base as f64 / 256.0)?;
        same("factor", gauges["factor"], factor as f64 / 256.0)?;
        same("cycles", gauges["cycles"], cycles as f64)?;
        same("idle_share", gauges["idle_share"], idle as f64 / 1024.0)?;
        match factor {
            257.. => covered.count("a longer buffer"),
            ..256 => covered.count("a shorter buffer"),
            256 => {}
        }
        if limit % 256 > 0 {
            covered.count("a part of a packet");
        }
        covered.count(if cycles == 0 { "the first cycle" } else { "a later cycle" });
        if idle > 0 {
            covered.count("ran dry");
        }
        Ok(())
    }
}

#[test]
fn lfq_decides_as_the_core_does() {
    run::<Lfq>();
}
