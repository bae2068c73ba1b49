//! Detectors of fair queuing on paths that are drawn at random, the rule of `narrows probe` among them, which no scenario can name.
//!
//! `cargo test --release -p narrows-sim --test worlds random_paths -- --ignored --nocapture` prints the table. `NARROWS_PATHS` is the number of
//! paths of each class, `NARROWS_SEED` the first seed, `NARROWS_RULE` one of `startup`, `probe` and `sequential`, `NARROWS_CLASS` a class.
use crate::harness::{flow, run_text};
use narrows_core::detector::sequential::{Sequential, SequentialParams};
use narrows_core::detector::startup_sprt::{StartupSprt, StartupSprtParams};
use narrows_core::detector::{Control, FairQueuingDetector, Finding, Verdict};
use narrows_core::extensions::Extensions;
use narrows_core::hint::PathHint;
use narrows_core::packet_feedback::{PacketFeedback, PacketOutcome, Sent, Split};
use narrows_core::{Bytes, Rate, Rng, Span, Time};
use narrows_results::summary::Verdicts;
use std::env::var;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `narrows probe` does in a direction: the sequential test during a transfer, then the ramp if that has not decided.
struct ProbeRule {
    transfer: Sequential,
    ramp: Option<StartupSprt>,
    /// When the present test ends.
    until: Time,
    path: PathHint,
    rng: Rng,
    /// The verdict, once it is final.
    found: Option<Verdict>,
}

/// The probe's times for both.
const TRANSFER: Span = Span::s(4);
const RAMP: Span = Span::ms(2500);

macro_rules! present {
    ($rule:expr, $test:ident => $call:expr) => {
        match &mut $rule.ramp {
            Some($test) => $call,
            None => {
                let $test = &mut $rule.transfer;
                $call
            }
        }
    };
}

impl FairQueuingDetector for ProbeRule {
    type Params = SequentialParams;

    fn new(p: &SequentialParams, path: &PathHint, now: Time, rng: Rng) -> ProbeRule {
        let transfer = FairQueuingDetector::new(p, path, now, rng.clone());
        ProbeRule { transfer, ramp: None, until: now + TRANSFER, path: *path, rng, found: None }
    }

    fn on_sent(&mut self, event: &Sent) {
        present!(self, test => test.on_sent(event));
    }

    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        if let PacketOutcome::Delivered { rtt: Some(rtt) } = event.outcome {
            self.path.rtt = Some(self.path.rtt.map_or(rtt, |base| base.min(rtt)));
        }
        present!(self, test => test.on_packet_feedback(event));
        self.settle(event.now);
    }

    fn on_timer(&mut self, now: Time) {
        present!(self, test => test.on_timer(now));
        self.settle(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.ramp.as_ref().map_or(self.transfer.next_timer(), FairQueuingDetector::next_timer)
    }

    fn on_control(&mut self, event: Control, now: Time) -> bool {
        present!(self, test => test.on_control(event, now))
    }

    fn split(&self) -> Split {
        self.ramp.as_ref().map_or(self.transfer.split(), FairQueuingDetector::split)
    }

    fn sets_rate(&self) -> Option<Rate> {
        self.ramp.as_ref().filter(|_| self.found.is_none()).and_then(FairQueuingDetector::sets_rate)
    }

    fn inflight_limit(&self) -> Option<Bytes> {
        if self.ramp.is_none() { self.transfer.inflight_limit() } else { None }
    }

    fn verdict(&self) -> Verdict {
        self.found.unwrap_or(Verdict::NONE)
    }
}

impl ProbeRule {
    fn settle(&mut self, now: Time) {
        match &self.ramp {
            _ if self.found.is_some() => {}
            Some(ramp) => {
                let is_over = ramp.sets_rate().is_none() || now >= self.until;
                self.found = is_over.then(|| ramp.verdict());
            }
            None if now < self.until => {}
            None if self.transfer.verdict().finding == Finding::Undecided => {
                self.ramp = Some(StartupSprt::new(&StartupSprtParams::default(), &self.path, now, self.rng.clone()));
                self.until = now + RAMP;
            }
            None => self.found = Some(self.transfer.verdict()),
        }
    }
}

/// What a path may have besides a bottleneck. The last two: a hop 1.2 to 10 times as fast before it, of the other kind; and such a hop that becomes the
/// narrow one after 12 to 28 s.
const CLASSES: [&str; 13] = [
    "nothing else",
    "ACK path",
    "random loss",
    "jitter",
    "token bucket",
    "same kind before",
    "aggregates",
    "web",
    "two CUBIC",
    "all kinds",
    "beside",
    "fair before shared",
    "moves",
];

struct Draw(Rng);

impl Draw {
    fn log(&mut self, low: f64, high: f64) -> f64 {
        libm::exp(libm::log(low) + (libm::log(high) - libm::log(low)) * self.0.unit())
    }

    fn flat(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    fn among(&mut self, all: &[&'static str]) -> &'static str {
        all[self.0.below(all.len() as u64) as usize]
    }
}

const SHARED: [&str; 9] = ["FIFO", "FIFO", "codel", "cobalt", "red", "pie", "gsp", "cp", "dualpi2"];
const FAIR: [&str; 9] = ["FQ", "FQ", "sfq", "fq_codel", "fq_codel_fair", "fq_pie", "fq_cp", "cocoa", "cake"];
const CONTROLLERS: [&str; 7] = ["new_reno", "cubic", "bbr", "bbr3", "vivace", "copa", "vegas"];

/// A path's scenario, and whether its bottleneck is fair. `ours` is the controller, on `$on`; it starts after 3 s.
fn path(class: &str, seed: u64, ours: &str, seconds: f64) -> (String, bool) {
    let mut d = Draw(Rng::stream(seed, &format!("path {class}")));
    let is_fair = d.0.chance(0.5) && class != "fair before shared";
    let (rate, rtt, limit) = (d.log(2.0, 200.0), d.log(4.0, 200.0), d.log(8.0, 1000.0) as u64);
    let queue = |name: &str| match name {
        "FIFO" => format!(r#"{{ kind = "fifo", limit = "{limit}p" }}"#),
        "FQ" => format!(r#"{{ kind = "fq", flow_limit = "{limit}p", fastpath = false }}"#),
        name => format!("{name:?}"),
    };
    let kinds = |is_fair: bool| if is_fair { &FAIR } else { &SHARED };
    let (here, before) =
        (queue(d.among(kinds(is_fair))), queue(d.among(kinds(is_fair == (class == "same kind before")))));
    let (near, wide, widens) = (d.flat(1.5, 4.0), d.log(1.2, 10.0), d.flat(1.2, 3.0));
    let (moves, back, loss, jitter) = (d.flat(12.0, 28.0), d.log(5.0, 50.0), d.log(1e-4, 1e-2), d.flat(0.1, 4.0));
    let (aggregate, count) = (d.among(&["4", "8", "16", "32"]), 1 + d.0.below(4));
    let (on, others, beside) = (d.among(&CONTROLLERS), d.among(&CONTROLLERS), d.0.below(6));
    let is = |one: &str| class == one;
    let kbit = |mbit: f64| format!("\"{}kbit\"", (mbit * 1000.0) as u64);
    let bottleneck = match class {
        "aggregates" => format!("{{ mean = {}, aggregate = {aggregate} }}", kbit(rate)),
        "moves" => {
            let after = kbit(rate * wide * widens);
            format!(r#"[{{ at = "0s", rate = {} }}, {{ at = "{moves:.3}s", rate = {after} }}]"#, kbit(rate))
        }
        _ => kbit(rate),
    };
    let (first, first_queue) = match class {
        "same kind before" => (rate * near, before),
        "fair before shared" | "moves" => (rate * wide, before),
        _ => (1000.0, r#"{ kind = "fifo", limit = "10000p" }"#.to_owned()),
    };
    let air = if rtt > 12.0 { 4.0 } else { 0.5 };
    let mut text = format!(
        "seed = {seed}\nduration = \"{seconds}s\"\nrecord = {{ gauges = false }}\n\
        [[hop]]\nname = \"first\"\nrate = {}\nqueue = {first_queue}\n\
        [[hop]]\nname = \"bottleneck\"\nrate = {bottleneck}\nqueue = {here}\nloss = {}\n{}\n\
        [[hop]]\nname = \"air\"\nrate = \"1gbit\"\ndelay = \"{air}ms\"\njitter = \"{:.3}ms\"\nqueue = {{ kind = \"fifo\", limit = \"10000p\" }}\n\
        [[hop]]\nname = \"back\"\nrate = {}\nqueue = {{ kind = \"fifo\", limit = \"200p\" }}\n\
        [[flow]]\nname = \"ours\"\ncontroller = {}\nrtt = \"{rtt:.1}ms\"\nroute = [\"first\", \"bottleneck\", \"air\"]\nback = [\"back\"]\nstart = \"3s\"\n",
        kbit(first),
        if is("random loss") { loss } else { 0.0 },
        if is("token bucket") { "release = \"start\"\nburst = \"64KB\"" } else { "" },
        if is("jitter") { jitter.min(air) } else { 0.0 },
        kbit(if is("ACK path") { back } else { 1000.0 }),
        ours.replace("$on", on),
    );
    let mut add = |name: &str, count: u64, traffic: &str, route: &str| {
        let _ = write!(
            text,
            "[[flow]]\nname = \"{name}\"\ncount = {count}\n{traffic}\nrtt = \"{rtt:.1}ms\"\nroute = [\"{route}\"]\nstart = {{ uniform = [\"0s\", \"2s\"] }}\n"
        );
    };
    let cubic = "controller = \"cubic\"";
    match (class, beside) {
        ("ACK path", _) => add("upload", 1, cubic, "back"),
        ("web", _) => add("web", 1, "controller = \"cubic\"\ntraffic = \"web\"", "bottleneck"),
        ("two CUBIC", _) | ("beside", 0) => add("cubic", 2, cubic, "bottleneck"),
        ("all kinds", _) => add("others", count, &format!("controller = \"{others}\""), "bottleneck"),
        ("beside", 1) => add("cubic", 4, cubic, "bottleneck"),
        ("beside", 2) => add("bbr", 1, "controller = \"bbr\"", "bottleneck"),
        ("beside", 3 | 4) => add("web", 8, "controller = \"cubic\"\ntraffic = \"web\"", "bottleneck"),
        ("beside", _) => add("datagrams", 1, "traffic = { kind = \"poisson\", rate = \"1mbit\" }", "bottleneck"),
        _ => {}
    }
    (text, is_fair)
}

/// A rule's controller, and how long it runs.
fn rule(name: &str) -> (String, f64) {
    let of =
        |kind: &str, detector: &str, more: &str| format!(r#"{{ kind = "{kind}", detector = "{detector}"{more} }}"#);
    match name {
        "startup" => (of("startup", "startup_sprt", r#", shared = "cubic", fair = "cubic""#), 14.0),
        "probe" => {
            // Installed by whichever test is the first.
            let _ = Extensions::new().detector::<ProbeRule>("probe_rule", "The rule of the probe.").install(&[]);
            (of("tonopah", "probe_rule", r#", on = "cubic", fair = "nothing""#), 10.0)
        }
        _ => (of("tonopah", "sequential", r#", on = "$on""#), 43.0),
    }
}

fn verdicts(class: &str, seed: u64, (ours, seconds): &(String, f64)) -> (bool, Verdicts) {
    let (text, is_fair) = path(class, seed, ours, *seconds);
    (is_fair, flow(&run_text(&text), "ours").verdicts.expect("a flow that looks for fair queuing"))
}

/// Sums over paths.
#[derive(Clone, Copy, Default)]
struct Row {
    paths: u32,
    right: f64,
    wrong: f64,
    wrong_paths: u32,
    right_paths: u32,
    queued: f64,
    queued_right: f64,
}

impl Row {
    fn add(&mut self, v: &Verdicts) {
        self.paths += 1;
        self.right += v.right;
        self.wrong += v.wrong;
        self.wrong_paths += u32::from(v.wrong > 0.01);
        self.right_paths += u32::from(v.right > 0.01 && v.wrong <= 0.01);
        if let Some((queued, right)) = v.queued_s.zip(v.queued_right) {
            self.queued += queued;
            self.queued_right += queued * right;
        }
    }
}

#[test]
#[ignore = "minutes; prints a table to judge"]
fn table() {
    let number = |name: &str, or: u64| var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (paths, from) = (number("NARROWS_PATHS", 25), number("NARROWS_SEED", 70_001));
    let rule = rule(&var("NARROWS_RULE").unwrap_or_default());
    let only = var("NARROWS_CLASS").ok();
    let classes: Vec<&str> =
        CLASSES.into_iter().filter(|class| only.as_ref().is_none_or(|only| only == class)).collect();
    let todo: Vec<(usize, u64)> =
        (0..classes.len()).flat_map(|class| (from..from + paths).map(move |seed| (class, seed))).collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(vec![[Row::default(); 2]; classes.len()]));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&(class, seed)) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (is_fair, v) = verdicts(classes[class], seed, &rule);
                    rows.lock().expect("no panic")[class][usize::from(is_fair)].add(&v);
                }
            });
        }
    });
    println!(
        "class               truth   paths  right %  wrong %  right paths  wrong paths  right with an own queue %"
    );
    for (class, rows) in classes.iter().zip(rows.into_inner().expect("no panic")) {
        for (truth, row) in ["shared", "fair"].into_iter().zip(rows).filter(|(_, row)| row.paths > 0) {
            let mean = |sum: f64| 100.0 * sum / f64::from(row.paths);
            println!(
                "{class:<20}{truth:<8}{:>5}{:>9.2}{:>9.2}{:>13}{:>13}{:>27.1}",
                row.paths,
                mean(row.right),
                mean(row.wrong),
                row.right_paths,
                row.wrong_paths,
                100.0 * row.queued_right / row.queued
            );
        }
    }
}

/// A fair hop before a shared bottleneck was overloaded by the ramp as well, and decided: both rules called most of these paths fair.
#[test]
fn a_fair_hop_before_a_shared_bottleneck_does_not_decide() {
    for name in ["startup", "probe"] {
        let rule = rule(name);
        for seed in 1..=12 {
            let (_, v) = verdicts("fair before shared", seed, &rule);
            assert_eq!(v.wrong, 0.0, "{name}, seed {seed}: {v:?}");
        }
    }
}
