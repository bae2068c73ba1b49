//! The figures as text.
use super::Live;
use super::exact::{Exactness, Kept};
use super::forward::Measured;
use crate::grid::grid;
use std::fmt::Write as _;

pub(crate) fn render(live: &Live) -> String {
    let mut out = String::new();
    if let Some(why) = &live.skipped {
        let _ = writeln!(out, "\nlive: skipped: {why}");
        return out;
    }
    let _ = writeln!(out, "\nload of the machine before {} and after {}", live.load[0], live.load[1]);
    if !live.forward.is_empty() {
        let _ = writeln!(out, "\n{}\n\n{OTHERS}", forward(&live.forward));
    }
    if let Some(exactness) = &live.exact {
        let _ = writeln!(out, "\n{}", exact(exactness));
    }
    out
}

/// Figures of others, measured elsewhere with the same kind of flow.
const OTHERS: &str = "for scale, Gbit per CPU second of others: rattan 0.64, mahimahi 0.83, bare TUN loop packet by packet 1.5, \
TUN with super-packets in and 1500 B out 2.2, AF_XDP in native mode 2.3–2.7";

fn forward(rows: &[Measured]) -> String {
    let head = ["case", "Gbit/s", "cores", "Gbit/CPU s", "all cores", "Gbit/all CPU s", "÷ bare TUN", "aim"];
    let two = |value: f64| format!("{value:.2}");
    let row = |m: &Measured| {
        let aim = m.aim.zip(m.gbit_per_cpu_s).map(|(aim, is)| format!("≥ {aim} {}", if is >= aim { "✓" } else { "✗" }));
        vec![
            m.name.to_owned(),
            two(m.goodput_gbit),
            m.cores.map_or("–".into(), two),
            m.gbit_per_cpu_s.map_or("–".into(), two),
            two(m.all_cores),
            two(m.gbit_per_all_cpu_s),
            two(m.of_reference),
            aim.unwrap_or_default(),
        ]
    };
    grid(&head, rows.iter().map(row))
}

const LATE: [&str; 8] =
    ["late p50 ms", "p99", "p99.9", "max", "> 1 ms %", "read late %", "overrun", "share of a core %"];

fn exact(exactness: &Exactness) -> String {
    let rates = exactness.rates.iter().map(|case| {
        let due = case.due_mbit.map_or("–".into(), |due| format!("{due:.3}"));
        let error = case.error_percent.map_or("–".into(), |error| format!("{error:+.3}"));
        [vec![case.name.clone(), due, format!("{:.3}", case.mbit), error], late(Some(&case.kept))].concat()
    });
    let pings = exactness.pings.iter().map(|case| {
        let above = case.above_ms.iter().map(|ms| format!("{ms:+.3}"));
        let first = [case.name.clone(), case.answered.to_string()].into_iter().chain(above).collect();
        [first, late(case.kept.as_ref())].concat()
    });
    let rate_head = [&["case", "due Mbit/s", "Mbit/s", "error %"][..], &LATE].concat();
    let ping_head = [&["case", "answered", "RTT least ms", "half", "99 %", "most"][..], &LATE].concat();
    format!(
        "50 Mbit/s, 20 ms; aims: rate within 0.1 %, at most 15 % of a core under TCP (rattan and mahimahi 0.3 %; 46 and 26 %)\n\
         {}\n\necho requests, above 20 ms (the others: above none); aims: at most 0.2 at half, 1 at 99 % (rattan 0.45 and \
         4.1, mahimahi 3.2 and 9.6)\n{}",
        grid(&rate_head, rates),
        grid(&ping_head, pings)
    )
}

fn late(kept: Option<&Kept>) -> Vec<String> {
    let Some(kept) = kept else { return vec!["–".to_owned(); LATE.len()] };
    let percent = |share: f64| format!("{:.3}", 100.0 * share);
    let late = kept.late_ms.iter().map(|ms| format!("{ms:.3}"));
    let rest = [
        percent(kept.timing.late_share),
        percent(kept.timing.stamped_late_share),
        kept.timing.overrun_packets.to_string(),
        format!("{:.1}", 100.0 * kept.cores),
    ];
    late.chain(rest).collect()
}
