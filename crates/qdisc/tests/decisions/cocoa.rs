//! `cocoa.h` and `queue/cocoa.rs`.
use crate::draw::one_of;
use crate::drive::{Covered, Gauges, Twin, run, same};
use crate::ffi::{self, Shell, Totals};
use narrows_core::params::Packets;
use narrows_core::queue::cocoa::{CocoaParams, Growth};
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::{Bytes, Rng, Span};
use std::collections::HashMap;

struct Cocoa;

impl Twin for Cocoa {
    const COVERS: &'static [&'static str] = &[
        "sent",
        "empty",
        "queue full",
        "flow limit",
        "beyond the horizon",
        "waits for a departure",
        "several dropped at once",
        "grew",
        "began anew",
        "judged",
        "next interval",
        "part of a packet",
        "an rtt",
        "below the initial limit",
        "above the initial limit",
    ];

    fn draw(rng: &mut Rng, _link: &LinkHint) -> (QueueConfig, Shell) {
        let p = CocoaParams {
            multiplier: one_of(rng, &[1.25, 1.25, 0.01, 0.5, 100.0, 2.0]),
            max_increase: one_of(rng, &[2.0, 2.0, 1.0, 1.1, 100.0]),
            growth: one_of(rng, &[Growth::Exact, Growth::Whole]),
            max_guard: one_of(rng, &[Span::s(1), Span::us(1), Span::s(3600), Span::ms(10)]),
            guard_rtts: one_of(rng, &[None, Some(1), Some(10), Some(u32::MAX)]),
            initial_limit: Packets(one_of(rng, &[100, 1, 2, 10, 10_000_000])),
            learn: rng.chance(0.3),
            min_limit: Packets(one_of(rng, &[4, 4, 1, 50, 10_000_000])),
            limit: Packets(one_of(rng, &[10_000, 10_000, 10_000_000, 400, 400, 20, 1])),
            quantum: Bytes(one_of(rng, &[3028, 256, 1514, 1 << 20])),
            initial_quantum: Bytes(one_of(rng, &[3028, 0, 1, 1 << 30])),
            buckets: one_of(rng, &[1024, 1, 7, 262_144 >> 4]),
            orphan_mask: one_of(rng, &[1023, 0, 7, 0x8000_0101, 0xff]),
            pacing: rng.chance(0.25),
        };
        let fixed = |factor: f64| (factor * 1024.0) as u64;
        let shell = [
            p.max_guard.as_ns(),
            fixed(p.multiplier),
            fixed(p.max_increase),
            u64::from(p.guard_rtts.unwrap_or(0)),
            u64::from(p.initial_limit.0),
            u64::from(p.min_limit.0),
            u64::from(p.growth == Growth::Whole),
            u64::from(p.learn),
            u64::from(p.limit.0),
            p.quantum.0,
            p.initial_quantum.0,
            u64::from(p.buckets),
            u64::from(p.orphan_mask),
            u64::from(p.pacing),
        ];
        (QueueConfig::Cocoa(p), Shell::new(ffi::COCOA, &shell))
    }

    fn mask(config: &QueueConfig) -> u32 {
        let QueueConfig::Cocoa(p) = config else { unreachable!("drawn above") };
        p.orphan_mask
    }

    fn compare(gauges: &Gauges, totals: &Totals, _covered: &mut Covered) -> Result<(), String> {
        same("flows", gauges.whole["flows"], totals.more[0] as f64)?;
        same("throttled_flows", gauges.whole["throttled_flows"], totals.more[1] as f64)
    }

    fn compare_flow(gauges: &HashMap<&'static str, f64>, totals: &Totals, covered: &mut Covered) -> Result<(), String> {
        let ms = |ns: u64| Span::ns(ns).as_ms_f64();
        let [_, _, packets, credit, limit, longest, decision, idle, has_rtt, rtt] = totals.more;
        same("queue_packets", gauges["queue_packets"], packets as f64)?;
        same("credit", gauges["credit"], credit.cast_signed() as f64)?;
        same("limit_packets", gauges["limit_packets"], limit as f64 / 1024.0)?;
        same("longest_interval_ms", gauges["longest_interval_ms"], ms(longest))?;
        same("decision", gauges.get("decision").copied().unwrap_or(0.0), decision as f64)?;
        same("idle_ms", gauges.get("idle_ms").copied().unwrap_or(0.0), ms(idle))?;
        let rtt = (has_rtt > 0).then(|| ms(rtt));
        if rtt != gauges.get("rtt_ms").copied() {
            return Err(format!("rtt_ms: {:?} in the core, {rtt:?} in C", gauges.get("rtt_ms")));
        }
        match decision {
            1 => covered.count("grew"),
            2 => covered.count("began anew"),
            3 => covered.count("judged"),
            4 => covered.count("next interval"),
            _ => {}
        }
        if limit % 1024 > 0 {
            covered.count("part of a packet");
        }
        if rtt.is_some() {
            covered.count("an rtt");
        }
        if decision > 0 {
            covered.count(if limit < 100 * 1024 { "below the initial limit" } else { "above the initial limit" });
        }
        Ok(())
    }
}

#[test]
fn cocoa_decides_as_the_core_does() {
    run::<Cocoa>();
}
