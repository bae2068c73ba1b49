//! The figures as text.
use crate::Measurements;
use crate::grid::grid;
use crate::scaling::Scaling;
use crate::throughput::{Aim, Bare, Cpu, Measured, Parallel, Speed};
use std::fmt::Write as _;

/// The whole report.
pub(crate) fn render(measurements: &Measurements) -> String {
    let mut out = String::new();
    let machine = &measurements.machine;
    let _ = writeln!(out, "{}, {} cores; M/s: million packets per second", machine.cpu, machine.cores);
    if let Some(Bare { heap, ring }) = &measurements.bare {
        let speed = |speed: &Speed| format!("{} M/s, best {}", millions(speed.median), millions(speed.best));
        let _ = writeln!(out, "bare loop: {}; with a ring for the delay: {}", speed(heap), speed(ring));
    }
    if !measurements.cases.is_empty() {
        let _ = writeln!(out, "\n{}", cases(&measurements.cases));
        if let Some(threads) = threads(&measurements.cases) {
            let _ = writeln!(out, "\n{threads}");
        }
        for line in more_threads(&measurements.cases) {
            let _ = writeln!(out, "{line}");
        }
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
        "case", "scenario", "M/s", "best", "bare", "÷ bare", "ring", "÷ ring", "ev/pkt", "peak MB", "RSS MB", "allocs",
        "util", "loss", "aim",
    ];
    let row = |case: &Measured| {
        vec![
            case.name.clone(),
            case.what.to_owned(),
            millions(case.packets_per_s.median),
            millions(case.packets_per_s.best),
            millions(case.bare_packets_per_s.heap.median),
            format!("{:.2}", case.of_bare),
            millions(case.bare_packets_per_s.ring.median),
            format!("{:.2}", case.of_ring),
            format!("{:.2}", case.events_per_packet),
            megabytes(case.peak_bytes),
            case.peak_resident_bytes.map_or("–".to_owned(), megabytes),
            case.allocations.to_string(),
            format!("{:.1} %", 100.0 * case.utilisation),
            format!("{:.3} %", 100.0 * case.loss_rate),
            aim(case),
        ]
    };
    grid(&head, cases.iter().map(row))
}

/// Runs on several threads, if there are any.
fn threads(cases: &[Measured]) -> Option<String> {
    let head = [
        "case",
        "threads",
        "M/s",
        "best",
        "÷ 1 thread",
        "CPU ns per packet: network",
        "hosts",
        "beyond 1 thread",
        "M/s at most",
        "peak MB",
        "RSS MB",
        "bytes",
    ];
    let runs: Vec<_> = cases.iter().flat_map(|case| case.threads.iter().map(move |run| (case, run))).collect();
    let row = |&(case, run): &(&Measured, &Parallel)| {
        let cpu =
            |figure: fn(&Cpu) -> f64| run.cpu.as_ref().map_or("–".to_owned(), |cpu| format!("{:.0}", figure(cpu)));
        vec![
            case.name.clone(),
            run.threads.to_string(),
            millions(run.packets_per_s.median),
            millions(run.packets_per_s.best),
            format!("{:.2}", run.to_one_thread),
            cpu(|cpu| cpu.network_ns),
            cpu(|cpu| cpu.hosts_ns),
            cpu(|cpu| cpu.beyond_one_thread_ns),
            run.cpu.as_ref().map_or("–".to_owned(), |cpu| millions(cpu.bound(run.threads))),
            megabytes(run.peak_bytes),
            run.peak_resident_bytes.map_or("–".to_owned(), megabytes),
            if run.equal { "same" } else { "DIFFER" }.to_owned(),
        ]
    };
    (!runs.is_empty()).then(|| grid(&head, runs.iter().map(row)))
}

/// The speed on more threads than were measured, from the CPU time of each.
fn more_threads(cases: &[Measured]) -> impl Iterator<Item = String> {
    cases.iter().filter_map(|case| {
        let Parallel { threads, cpu, .. } = case.threads.last()?;
        let cpu = (*cpu)?;
        let bounds = (*threads..=MOST_THREADS).map(|n| format!("{n}: {}", millions(cpu.bound(n))));
        let bounds: Vec<String> = bounds.collect();
        let network = millions(1e9 / cpu.network_ns);
        Some(format!(
            "{}, M/s at most on more threads with a core each: {}; the network's thread alone: {network}",
            case.name,
            bounds.join(", ")
        ))
    })
}

/// The bounds are shown up to this number of threads.
const MOST_THREADS: usize = 8;

/// Each aim, with a sign that says whether the medians reach it.
fn aim(case: &Measured) -> String {
    let Aim { packets_per_s, of_bare, peak_bytes } = case.aim;
    let sign = |met: bool| if met { "✓" } else { "✗" };
    let reached = |speed: &Speed| sign(speed.median >= packets_per_s);
    let mut text = format!("≥ {} M/s {}", packets_per_s / 1e6, reached(&case.packets_per_s));
    if let Some(two) = case.on_two() {
        let _ = write!(text, ", on 2 cores {}", reached(&two.packets_per_s));
    }
    if let Some(ratio) = of_bare {
        let _ = write!(text, ", ≥ {ratio} bare {}", sign(case.of_bare >= ratio));
    }
    if let Some(bytes) = peak_bytes {
        let most = case.on_two().map_or(0, |two| two.peak_bytes).max(case.peak_bytes);
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
