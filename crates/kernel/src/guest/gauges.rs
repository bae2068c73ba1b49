//! What a discipline in the kernel shows of its inner state, by the names that the simulator's disciplines give it.
//!
//! The kernel reports each discipline's statistics as a structure of its own (`TCA_STATS_APP`, linux/pkt_sched.h; ours in `narrows/netlink.h`). A value
//! is taken where it means what the simulator's gauge of this name means. Gauges of single flows are missing: the kernel does not say which
//! flow a class is.
use crate::queue::our_modules;
use narrows_core::queue::Observer;

/// Shows the gauges of a discipline with this name, from its statistics. Where the kernel reports less than is expected, a gauge is missing.
pub(super) fn observe(queue: &str, stats: &[u8], out: &mut dyn Observer) {
    let Some(gauges) = GAUGES.iter().find(|of| of.0 == queue).map(|of| of.1) else { return };
    for &(name, take) in gauges {
        if let Some(value) = take(stats) {
            out.gauge(name, value);
        }
    }
}

/// Packets that a discipline with this name has marked CE since it was made; none if it does not say so.
pub(super) fn marks(queue: &str, stats: &[u8]) -> u64 {
    let words = |at: &[usize]| at.iter().filter_map(|&n| word(stats, n)).sum::<f64>() as u64;
    match queue {
        // Those of its law, and those above `ce_threshold`.
        "codel" => words(&[6, 8]),
        "fq_codel" => words(&[3, 7]),
        "red" => words(&[3]),
        "pie" => words(&[9]),
        // struct tc_fq_pie_xstats
        "fq_pie" => words(&[4]),
        // Those of the step are among them.
        "dualpi2" => words(&[6]),
        "fq" => long(stats, 10).unwrap_or(0),
        // TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS
        "cake" => of_tins(stats, 8).unwrap_or(0.0) as u64,
        // NW_S_MARKED
        ours if our_modules().any(|(name, _)| name == ours) => long(stats, 7).unwrap_or(0),
        _ => 0,
    }
}

/// The name of a gauge, and how it is read.
type Gauge = (&'static str, fn(&[u8]) -> Option<f64>);

/// By the disciplines' names in scenarios.
const GAUGES: &[(&str, &[Gauge])] = &[
    // struct tc_codel_xstats
    ("codel", &[("count", |stats| word(stats, 1)), ("dropping", |stats| word(stats, 7))]),
    // struct tc_pie_xstats: the probability in 2⁻⁶⁴, µs
    (
        "pie",
        &[
            ("drop_probability", |stats| Some(long(stats, 0)? as f64 / 2f64.powi(64))),
            ("delay_ms", |stats| Some(word(stats, 2)? / 1e3)),
        ],
    ),
    // struct tc_dualpi2_xstats: the probability in 2⁻³²
    ("dualpi2", &[("base_probability", |stats| Some(word(stats, 0)? / f64::from(u32::MAX)))]),
    // struct tc_fq_qd_stats
    ("fq", &[("flows", |stats| word(stats, 16)), ("throttled_flows", |stats| word(stats, 18))]),
    // struct tc_fq_codel_xstats of a qdisc: new flows and old ones
    ("fq_codel", &[("flows", |stats| Some(word(stats, 5)? + word(stats, 6)?))]),
    // TCA_CAKE_TIN_STATS_BULK_FLOWS
    ("cake", &[("bulk_flows", |stats| of_tins(stats, 22))]),
    // enum NW_COCOA_S_*, enum NW_LFQ_S_*
    ("cocoa", FLOWS_AND_THROTTLED),
    ("lfq", FLOWS_AND_THROTTLED),
    // enum NW_CP_S_*
    ("cp", &[("tokens_bytes", |stats| own(stats, 0)), ("token_rate_mbit", |stats| Some(own(stats, 1)? / 1e6))]),
    // enum NW_FQ_CP_S_*
    ("fq_cp", &[("flows", |stats| own(stats, 0))]),
    // enum NW_FAIR_S_*
    (
        "fq_codel_fair",
        &[
            ("flows", |stats| own(stats, 0)),
            ("newcomers_packets", |stats| own(stats, 2)),
            ("newcomers_debt_bytes", |stats| own(stats, 3)),
            ("target_ms", |stats| Some(own(stats, 4)? / 1e6)),
        ],
    ),
];

const FLOWS_AND_THROTTLED: &[Gauge] = &[("flows", |stats| own(stats, 0)), ("throttled_flows", |stats| own(stats, 2))];

/// The n-th 32-bit number.
fn word(stats: &[u8], n: usize) -> Option<f64> {
    Some(f64::from(u32::from_ne_bytes(stats.get(4 * n..4 * n + 4)?.try_into().ok()?)))
}

/// The n-th 64-bit number.
fn long(stats: &[u8], n: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(stats.get(8 * n..8 * n + 8)?.try_into().ok()?))
}

/// The n-th counter of one of our disciplines, after the eight that all of them have (`NW_S_FIRST`).
fn own(stats: &[u8], n: usize) -> Option<f64> {
    const COMMON: usize = 8;
    Some(long(stats, COMMON + n)? as f64)
}

/// The sum over cake's tins (`TCA_CAKE_STATS_TIN_STATS`) of one of their statistics.
fn of_tins(stats: &[u8], wanted: u16) -> Option<f64> {
    const TINS: u16 = 10;
    let (_, tins) = attributes(stats).find(|attribute| attribute.0 == TINS)?;
    let of = |tin| attributes(tin).find(|attribute| attribute.0 == wanted).and_then(|(_, value)| word(value, 0));
    attributes(tins).map(|(_, tin)| of(tin)).sum()
}

/// Netlink attributes: kind and value.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.
    const FLAGS: u16 = 0xc000;
    std::iter::from_fn(move || {
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let (len, kind) = (usize::from(half(0)?), half(2)? & !FLAGS);
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::FlowId;
    use narrows_core::queue::QueueConfig;
    use narrows_core::registry::Registered as _;

    /// What was shown.
    #[derive(Default)]
    struct Shown(Vec<(&'static str, f64)>);

    impl Observer for Shown {
        fn followed(&self) -> FlowId {
            FlowId(0)
        }

        fn gauge(&mut self, name: &'static str, value: f64) {
            self.0.push((name, value));
        }

        fn flow_gauge(&mut self, _: FlowId, _: &'static str, _: f64) {}
    }

    fn shown(queue: &str, stats: &[u8]) -> Vec<(&'static str, f64)> {
        let mut out = Shown::default();
        observe(queue, stats, &mut out);
        out.0
    }

    fn words(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    #[test]
    fn a_value_is_where_the_kernel_puts_it() {
        assert_eq!(shown("codel", &words(&[1514, 3, 2, 0, 0, 0, 0, 1, 0])), [("count", 3.0), ("dropping", 1.0)]);
        assert_eq!(shown("fq_codel", &words(&[0, 1514, 0, 0, 9, 2, 5, 0, 0, 0])), [("flows", 7.0)]);
        // A quarter, little endian, and 15 ms.
        assert_eq!(shown("pie", &words(&[0, 1 << 30, 15_000, 0])), [("drop_probability", 0.25), ("delay_ms", 15.0)]);
        let ours: Vec<u8> = (0..12u64).flat_map(|n| (n * 1_000_000).to_ne_bytes()).collect();
        assert_eq!(shown("cp", &ours), [("tokens_bytes", 8e6), ("token_rate_mbit", 9.0)]);
    }

    #[test]
    fn what_is_not_told_is_missing() {
        assert_eq!(shown("red", &words(&[1, 2, 3, 4])), []);
        assert_eq!(shown("codel", &words(&[1514, 3])), [("count", 3.0)]);
        assert_eq!(shown("cake", &[]), []);
    }

    #[test]
    fn tins_are_added() {
        let attribute = |kind: u16, value: &[u8]| {
            let mut bytes = [(value.len() as u16 + 4).to_ne_bytes(), kind.to_ne_bytes()].concat();
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let tin = |n: u16, bulk: u32| {
            attribute(n, &[attribute(8, &words(&[10 * bulk])), attribute(22, &words(&[bulk]))].concat())
        };
        let stats = [attribute(3, &words(&[1])), attribute(10 | 0x8000, &[tin(1, 2), tin(2, 3)].concat())].concat();
        assert_eq!(shown("cake", &stats), [("bulk_flows", 5.0)]);
        assert_eq!(marks("cake", &stats), 50);
    }

    #[test]
    fn marks_are_where_the_kernel_counts_them() {
        let numbers: Vec<u32> = (1..=24).collect();
        let of = |queue: &str| marks(queue, &words(&numbers));
        assert_eq!(["codel", "red", "pie", "fq_pie", "dualpi2"].map(of), [7 + 9, 4, 10, 5, 7]);
        // The first word is what the statistics are of.
        assert_eq!(of("fq_codel"), 4 + 8);
        assert_eq!(of("fq"), 21 | 22 << 32);
        let ours: Vec<u8> = (0..9u64).flat_map(u64::to_ne_bytes).collect();
        assert_eq!(marks("cp", &ours), 7);
        assert_eq!((marks("fifo", &ours), marks("cocoa", &[])), (0, 0));
    }

    /// A gauge that the simulator's discipline does not have would be a name of its own.
    #[test]
    fn the_simulators_disciplines_have_gauges_of_these_names() {
        let link = narrows_core::queue::LinkHint {
            rate: narrows_core::Rate::mbit(10),
            rtt: narrows_core::Span::ms(50),
            mtu: narrows_core::Bytes(1500),
        };
        for (queue, gauges) in GAUGES {
            let made = QueueConfig::named(queue).expect("registered").build(&link, narrows_core::Rng::stream(1, queue));
            let mut out = Shown::default();
            made.observe(&mut out);
            for (name, _) in *gauges {
                assert!(out.0.iter().any(|shown| shown.0 == *name), "{queue}: {name} in {:?}", out.0);
            }
        }
    }
}
