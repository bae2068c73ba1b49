//! The figures as text.
use crate::Measurements;
use crate::grid::grid;
use crate::scaling::Scaling;
use crate::throughput::{Aim, Bare, Measured, Parallel, Speed};
use std::fmt::Write as _;

/// The whole report.
pub(crate) fn render(measurements: &Measurements) -> String {
    let mut out = String::new();
    let machine = &measurements.machine;
    let _ = writeln!(
        out,
        "{}, {} cores; M/s: million packets per second, on one core but where it says two",
        machine.cpu, machine.cores
    );
    if let Some(Bare { heap, ring }) = &measurements.bare {
        let speed = |speed: &Speed| format!("{} M/s, best {}", millions(speed.median), millions(speed.best));
        let _ = writeln!(out, "bare loop: {}; with a ring for the delay: {}", speed(heap), speed(ring));
    }
    if !measurements.cases.is_empty() {
        let _ = writeln!(out, "\n{}", cases(&measurements.cases));
    }
    if let Some(scaling) = &measurements.scaling {
        let _ = writeln!(out, "\n{}", self::scaling(scaling));
    }
    if !measurements.queues.is_empty() {
        let row = |m: &crate::disciplines::Measured| {
            let dropped = format!("{:.2} %", 100.0 * m.dropped);
            let (ns, ratio) = (format!("{:.1}", m.ns), format!("{:.2}", m.to_fifo));
            let memory = if m.flow_bytes < 1.0 { "–".to_owned() } else { format!("{:.0}", m.flow_bytes) };
            vec![m.queue.clone(), m.flows.to_string(), ns, ratio, m.backlog.to_string(), dropped, memory]
        };
        let head = ["queue", "flows", "ns per packet", "÷ fifo", "backlog", "dropped", "bytes per flow"];
        let _ = writeln!(out, "\n{}", grid(&head, measurements.queues.iter().map(row)));
        for (queue, reference, aim) in crate::disciplines::AIMS {
            let ratios = crate::disciplines::ratios(&measurements.queues, queue, reference);
            let sign = if ratios.iter().all(|&(_, ratio)| ratio <= aim) { "✓" } else { "✗" };
            let each: Vec<String> = ratios.iter().map(|(flows, ratio)| format!("{ratio:.2} at {flows}")).collect();
            let _ = writeln!(out, "{queue} ÷ {reference}: {} flows; aim ≤ {aim} {sign}", each.join(", "));
        }
    }
    if !measurements.detectors.is_empty() {
        let row = |m: &crate::detectors::Measured| {
            let (ns, ratio) = (format!("{:.1}", m.ns), format!("{:.2}", m.to_signal));
            let own = [format!("{:.1}", m.own_ns), format!("{:.2} %", 100.0 * m.old_core)];
            [vec![m.detector.clone(), ns, ratio], own.to_vec()].concat()
        };
        let head = ["detector", "ns per packet", "÷ signal", "own ns", "of a core 10 times slower at 100 Mbit/s"];
        let _ = writeln!(out, "\n{}", grid(&head, measurements.detectors.iter().map(row)));
    }
    #[cfg(target_os = "linux")]
    out.push_str(&measurements.live.as_ref().map(crate::live::table::render).unwrap_or_default());
    #[cfg(target_os = "linux")]
    out.push_str(&measurements.quic.as_ref().map(crate::quic::render).unwrap_or_default());
    for missing in &measurements.missing {
        let _ = writeln!(out, "\nnot measured: {missing}");
    }
    out
}

fn cases(cases: &[Measured]) -> String {
    let head = [
        "case",
        "scenario",
        "M/s",
        "best",
        "bare",
        "÷ bare",
        "ring",
        "÷ ring",
        "2 cores",
        "best",
        "÷ 1 core",
        "ev/pkt",
        "peak MB",
        "RSS MB",
        "2 cores",
        "allocs",
        "util",
        "loss",
        "aim",
    ];
    let row = |case: &Measured| {
        let of_halves = |figure: fn(&Parallel) -> String| case.halves.as_ref().map_or("–".to_owned(), figure);
        vec![
            case.name.clone(),
            case.what.to_owned(),
            millions(case.packets_per_s.median),
            millions(case.packets_per_s.best),
            millions(case.bare_packets_per_s.heap.median),
            format!("{:.2}", case.of_bare),
            millions(case.bare_packets_per_s.ring.median),
            format!("{:.2}", case.of_ring),
            of_halves(|halves| millions(halves.packets_per_s.median)),
            of_halves(|halves| millions(halves.packets_per_s.best)),
            of_halves(|halves| format!("{:.2}", halves.to_one_thread)),
            format!("{:.2}", case.events_per_packet),
            megabytes(case.peak_bytes),
            case.peak_resident_bytes.map_or("–".to_owned(), megabytes),
            of_halves(|halves| halves.peak_resident_bytes.map_or("–".to_owned(), megabytes)),
            case.allocations.to_string(),
            format!("{:.1} %", 100.0 * case.utilisation),
            format!("{:.3} %", 100.0 * case.loss_rate),
            aim(case),
        ]
    };
    grid(&head, cases.iter().map(row))
}

/// Each aim, with a sign that says whether the medians reach it.
fn aim(case: &Measured) -> String {
    let Aim { packets_per_s, of_bare, peak_bytes } = case.aim;
    let sign = |met: bool| if met { "✓" } else { "✗" };
    let reached = |speed: &Speed| sign(speed.median >= packets_per_s);
    let mut text = format!("≥ {} M/s {}", packets_per_s / 1e6, reached(&case.packets_per_s));
    if let Some(halves) = &case.halves {
        let equal = if halves.equal { "" } else { " RESULTS DIFFER" };
        let _ = write!(text, ", on 2 cores {}{equal}", reached(&halves.packets_per_s));
    }
    if let Some(ratio) = of_bare {
        let _ = write!(text, ", ≥ {ratio} bare {}", sign(case.of_bare >= ratio));
    }
    if let Some(bytes) = peak_bytes {
        let most = case.halves.map_or(0, |halves| halves.peak_bytes).max(case.peak_bytes);
        let _ = write!(text, ", ≤ {} MB {}", megabytes(bytes), sign(most <= bytes));
    }
    text
}

fn scaling(scaling: &Scaling) -> String {
    let Scaling { threads, runs, one_thread_s, all_threads_s, efficiency, bare_efficiency, aim, equal } = scaling;
    let equal = if *equal { "same bytes" } else { "RESULTS DIFFER" };
    format!(
        "scaling: {runs} runs, {one_thread_s:.2} s on 1 thread, {all_threads_s:.2} s on {threads}: efficiency \
         {efficiency:.2} (aim {aim}; the bare loop's here {bare_efficiency:.2}), {equal}"
    )
}

fn millions(packets_per_s: f64) -> String {
    format!("{:.2}", packets_per_s / 1e6)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
