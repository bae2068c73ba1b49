//! Randomly drawn cells: scenarios from a seed, to compare the simulator with a Linux kernel on cases on which neither was tuned.
//!
//! A draw is a file of a scenario, the same bytes on every machine. Its numbers have two significant digits, so that the file reads well. The kinds
//! follow each other, so that any eight cells in a row have each of them once; a cell depends on the seed and its number, not on how many are drawn.
//! Everything that is drawn can be run by a stock kernel: Linux's own disciplines and controllers, no outages.
use crate::cells::Cell;
use crate::model::{Level, Study, StudyError};
use narrows_core::Rng;
use std::fmt::Write as _;

/// The special feature of a drawn cell, beside flows, a rate, an RTT and a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DrawnKind {
    /// Nothing.
    Plain,
    /// The acknowledgments share a slow uplink with an upload.
    AckPath,
    /// The propagation delay changes once.
    DelayStep,
    /// The link's rate changes twice.
    RateSteps,
    /// The link loses packets at random.
    Loss,
    /// Thin UDP flows beside the others.
    ThinFlows,
    /// A second hop, whose rate is near the first one's.
    Chain,
    /// The flows negotiate ECN, and the queue marks.
    Ecn,
}

impl DrawnKind {
    /// All of them, in the order of the cells.
    pub const ALL: [DrawnKind; 8] = [
        DrawnKind::Plain,
        DrawnKind::AckPath,
        DrawnKind::DelayStep,
        DrawnKind::RateSteps,
        DrawnKind::Loss,
        DrawnKind::ThinFlows,
        DrawnKind::Chain,
        DrawnKind::Ecn,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            DrawnKind::Plain => "plain",
            DrawnKind::AckPath => "ACK path",
            DrawnKind::DelayStep => "delay step",
            DrawnKind::RateSteps => "rate steps",
            DrawnKind::Loss => "loss",
            DrawnKind::ThinFlows => "thin flows",
            DrawnKind::Chain => "chain",
            DrawnKind::Ecn => "ECN",
        }
    }
}

/// A drawn cell.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// `03 delay step`.
    pub name: String,
    /// Its special feature.
    pub kind: DrawnKind,
    /// Its bottleneck and flows in one line.
    pub about: String,
    /// Whether a flow of it has BBR.
    pub has_bbr: bool,
    /// The scenario's file.
    pub text: String,
    /// A study of this scenario, with its figures as metrics.
    pub study: Study,
    /// The study's only cell.
    pub cell: Cell,
}

impl Drawn {
    /// The name of the scenario's file: `03-delay-step.toml`.
    pub fn file(&self) -> String {
        format!("{}.toml", self.name.to_lowercase().replace(' ', "-"))
    }
}

/// The first cells of a seed.
///
/// # Errors
/// A drawn scenario is refused, which is a mistake of this file.
pub fn drawn(cells: u64, seed: u64) -> Result<Vec<Drawn>, StudyError> {
    (1..=cells).map(|number| one(number, seed)).collect()
}

/// One cell, by its number from 1 on.
fn one(number: u64, seed: u64) -> Result<Drawn, StudyError> {
    let kind = DrawnKind::ALL[((number - 1) % DrawnKind::ALL.len() as u64) as usize];
    let name = format!("{number:02} {}", kind.name());
    let mut hand = Hand { rng: Rng::stream(seed, &format!("drawn.{number}")) };
    let plan = Plan::draw(kind, &mut hand);
    let text = format!("# Cell {number} of seed {seed}: {}\n{}", plan.about(), plan.scenario(&name));
    let fault = |message: String| StudyError { file: name.clone(), message };
    let mut study = Study::parse(&format!("figure = \"{name}\"\n{}", plan.metrics()), &name)?;
    study.scenario = text.parse().map_err(|error: toml::de::Error| fault(error.to_string()))?;
    let cell = study.cells(Level::Default)?.remove(0);
    let has_bbr = plan.groups.iter().any(|group| group.controller == "bbr");
    Ok(Drawn { name, kind, about: plan.about(), has_bbr, text, study, cell })
}

/// The random numbers of a cell.
struct Hand {
    rng: Rng,
}

impl Hand {
    fn among<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.rng.below(values.len() as u64) as usize]
    }

    /// From `low` to `high`, both included.
    fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + self.rng.below(high - low + 1)
    }

    /// Evenly by its logarithm, with two significant digits.
    fn log(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (libm::log(low as f64), libm::log(high as f64));
        two_digits(libm::exp(low + (high - low) * self.rng.unit()) as u64)
    }
}

/// Rounded to two significant digits.
fn two_digits(number: u64) -> u64 {
    let (mut digits, mut scale) = (number, 1);
    while digits >= 100 {
        digits = (digits + 5) / 10;
        scale *= 10;
    }
    digits * scale
}

/// Lowest and highest rate of a bottleneck, kbit/s.
const RATES: [u64; 2] = [2_000, 150_000];
/// Shortest and longest base RTT, µs.
const RTTS: [u64; 2] = [5_000, 150_000];
/// Flows of a cell at most, without uploads and thin ones.
const FLOWS: u64 = 8;
/// Groups of flows that differ in their controller, at most.
const GROUPS: u64 = 3;
/// The controllers; one that is listed twice is drawn twice as often.
const CONTROLLERS: [&str; 8] = ["cubic", "cubic", "cubic", "new_reno", "new_reno", "bbr", "bbr", "vegas"];
/// Linux's own disciplines.
const QUEUES: [&str; 9] = ["fifo", "codel", "red", "pie", "sfq", "fq", "fq_codel", "fq_pie", "cake"];
/// Those that mark.
const MARKING: [&str; 6] = ["codel", "red", "pie", "fq_codel", "fq_pie", "cake"];
/// The uplink's.
const UPLINKS: [&str; 5] = ["fifo", "codel", "sfq", "fq_codel", "cake"];
/// Above this rate, in kbit/s, runs are short: a guest takes a second for some 20 megabits.
const SLOW: u64 = 40_000;
/// µs·kbit/s of a full-sized packet of 1500 bytes.
const PACKET: u64 = 12_000_000;

/// A cell before it is written down.
struct Plan {
    kind: DrawnKind,
    /// µs.
    rtt: u64,
    hops: Vec<HopPlan>,
    groups: Vec<Group>,
    /// s.
    duration: u64,
}

struct HopPlan {
    name: &'static str,
    /// From these seconds on, kbit/s.
    rates: Vec<(u64, u64)>,
    /// From these seconds on, ms; empty for none.
    delays: Vec<(u64, u64)>,
    loss: &'static str,
    queue: String,
}

/// Flows with the same controller and way.
struct Group {
    name: &'static str,
    controller: &'static str,
    count: u64,
    /// ms.
    start: u64,
    route: Vec<&'static str>,
    back: Vec<&'static str>,
    /// Thin flows: µs between datagrams, and their size.
    thin: Option<(u64, u64)>,
}

impl Plan {
    fn draw(kind: DrawnKind, hand: &mut Hand) -> Plan {
        let rate = hand.log(RATES[0], RATES[1]);
        let mut rtt = hand.log(RTTS[0], RTTS[1]);
        let queues = if kind == DrawnKind::Ecn { &MARKING[..] } else { &QUEUES[..] };
        let queue = queue(hand.among(queues), rate, rtt, kind == DrawnKind::Ecn, hand);
        let link = |name| HopPlan { name, rates: vec![(0, rate)], delays: Vec::new(), loss: "0", queue };
        let mut hops = vec![link("bottleneck")];
        let mut groups = groups(hand);
        match kind {
            DrawnKind::Plain | DrawnKind::Ecn => {}
            DrawnKind::AckPath => uplink(rate, rtt, &mut hops, &mut groups, hand),
            DrawnKind::DelayStep => {
                let step = hand.among(&[10, 20, 50, 100]);
                let delays = if hand.rng.chance(0.5) { [1, 1 + step] } else { [1 + step, 1] };
                hops[0].delays = delays.into_iter().map(|delay| (0, delay)).collect();
                rtt = two_digits(rtt + 1000 * delays[0]);
            }
            DrawnKind::RateSteps => {
                for _ in 0..2 {
                    let (_, last) = hops[0].rates[hops[0].rates.len() - 1];
                    let wanted = [last / 4, last / 2, last * 2, last * 4];
                    let allowed: Vec<u64> =
                        wanted.into_iter().filter(|rate| (RATES[0]..=RATES[1]).contains(rate)).collect();
                    hops[0].rates.push((0, two_digits(hand.among(&allowed))));
                }
            }
            DrawnKind::Loss => hops[0].loss = hand.among(&["0.001", "0.002", "0.005", "0.01", "0.02", "0.05"]),
            DrawnKind::ThinFlows => groups.push(Group {
                name: "thin",
                controller: "",
                count: hand.whole(1, 6),
                start: 0,
                route: vec!["bottleneck"],
                back: Vec::new(),
                thin: Some((hand.among(&[10, 20, 30, 100]), hand.among(&[64, 100, 200, 500]))),
            }),
            DrawnKind::Chain => chain(rate, rtt, &mut hops, &mut groups, hand),
        }
        let fastest = hops.iter().flat_map(|hop| &hop.rates).map(|&(_, rate)| rate).max().unwrap_or_default();
        let (duration, steps) = if fastest <= SLOW { (16, [0, 8, 12]) } else { (10, [0, 6, 8]) };
        for hop in &mut hops {
            hop.rates.iter_mut().zip(steps).for_each(|(step, at)| step.0 = at);
            hop.delays.iter_mut().zip(steps).for_each(|(step, at)| step.0 = at);
        }
        Plan { kind, rtt, hops, groups, duration }
    }

    /// The bottleneck and the flows in one line.
    fn about(&self) -> String {
        let flows: Vec<String> =
            self.groups.iter().map(|group| format!("{} {}", group.count, group.name.replace('_', " "))).collect();
        let hops: Vec<String> = self
            .hops
            .iter()
            .map(|hop| {
                let rates: Vec<String> =
                    hop.rates.iter().map(|&(_, rate)| (rate as f64 / 1000.0).to_string()).collect();
                format!("{} Mbit/s, {}", rates.join(" → "), queue_kind(&hop.queue))
            })
            .collect();
        format!("{}; {} ms; {}", hops.join("; "), self.rtt as f64 / 1000.0, flows.join(", "))
    }

    /// The file.
    fn scenario(&self, name: &str) -> String {
        let recorded: u64 = self.groups.iter().filter(|group| group.thin.is_none()).map(|group| group.count).sum();
        let mut text = format!(
            "name = \"{name}\"\nduration = \"{}s\"\nwarmup = \"{WARMUP}s\"\n\n\
             [record]\ninterval = \"50ms\"\nflows = {recorded}\ngauges = false\n",
            self.duration
        );
        for hop in &self.hops {
            hop.write(&mut text);
        }
        for group in &self.groups {
            group.write(self, &mut text);
        }
        text
    }

    /// The figures: of each hop what is used of it, its queue and its drops, of each group its RTT and what it gets. What a single group gets is
    /// what is used of the link.
    fn metrics(&self) -> String {
        let mut text = String::new();
        for (n, hop) in self.hops.iter().enumerate() {
            let of = |joint: &str| if n == 0 { String::new() } else { format!(" {joint} {}", hop.name) };
            for (what, joint, unit, scale, decimals, path) in [
                ("utilisation", "of", "%", "100.0", 2, "utilisation"),
                ("queue", "at", "packets", "1.0", 2, "queue_packets.mean"),
                ("loss", "at", "%", "100.0", 4, "loss_rate"),
            ] {
                let _ = write!(
                    text,
                    "[[metric]]\nname = \"{what}{}\"\nunit = \"{unit}\"\ndecimals = {decimals}\nscale = {scale}\n\
                     summary = \"hop.{}.{path}\"\n",
                    of(joint),
                    hop.name
                );
            }
        }
        for Group { name, thin, .. } in &self.groups {
            if thin.is_none() {
                let _ = write!(
                    text,
                    "[[metric]]\nname = \"rtt of {name}\"\nunit = \"ms\"\ndecimals = 2\n\
                     series = {{ source = \"flow:{name}\", metric = \"srtt_ms\", take = \"mean\", from = {WARMUP}.0 }}\n"
                );
            }
            if self.groups.len() > 1 {
                let _ = write!(
                    text,
                    "[[metric]]\nname = \"goodput of {name}\"\nunit = \"Mbit/s\"\ndecimals = 3\nover = \"sum\"\n\
                     summary = \"flow.{name}.goodput_mbit\"\n"
                );
            }
        }
        text
    }
}

/// s.
const WARMUP: u64 = 4;

/// The flows, in groups of one controller each.
fn groups(hand: &mut Hand) -> Vec<Group> {
    let flows = hand.whole(1, FLOWS);
    let wanted = hand.whole(1, GROUPS.min(flows));
    let mut groups: Vec<Group> = Vec::new();
    while (groups.len() as u64) < wanted {
        let controller = hand.among(&CONTROLLERS);
        if groups.iter().any(|group| group.controller == controller) {
            continue;
        }
        let start = 100 * hand.whole(0, 9);
        let route = vec!["bottleneck"];
        groups.push(Group { name: controller, controller, count: 1, start, route, back: Vec::new(), thin: None });
    }
    for _ in wanted..flows {
        let group = hand.rng.below(wanted) as usize;
        groups[group].count += 1;
    }
    groups
}

/// A slow way for the acknowledgments, with an upload.
fn uplink(rate: u64, rtt: u64, hops: &mut Vec<HopPlan>, groups: &mut Vec<Group>, hand: &mut Hand) {
    let slow = two_digits((rate / hand.among(&[5, 10, 20, 40])).max(300));
    let queue = queue(hand.among(&UPLINKS), slow, rtt, false, hand);
    hops.push(HopPlan { name: "uplink", rates: vec![(0, slow)], delays: Vec::new(), loss: "0", queue });
    groups.iter_mut().for_each(|group| group.back = vec!["uplink"]);
    let controller = hand.among(&["cubic", "new_reno"]);
    let route = vec!["uplink"];
    groups.push(Group { name: "upload", controller, count: 1, start: 100, route, back: Vec::new(), thin: None });
}

/// A second hop, which the last of several groups crosses alone.
fn chain(rate: u64, rtt: u64, hops: &mut Vec<HopPlan>, groups: &mut [Group], hand: &mut Hand) {
    let second = two_digits(rate * hand.among(&[7, 9, 10, 12, 15]) / 10).clamp(RATES[0], RATES[1]);
    let queue = queue(hand.among(&QUEUES), second, rtt, false, hand);
    hops.push(HopPlan { name: "second", rates: vec![(0, second)], delays: Vec::new(), loss: "0", queue });
    let several = groups.len() > 1;
    let last = groups.len() - 1;
    for (n, group) in groups.iter_mut().enumerate() {
        group.route = if several && n == last { vec!["second"] } else { vec!["bottleneck", "second"] };
    }
}

/// A queue as a scenario has it. `pie` and `fq_pie` are Linux's; tail drop holds half a BDP to two, RED begins at half a BDP.
fn queue(kind: &str, rate: u64, rtt: u64, ecn: bool, hand: &mut Hand) -> String {
    let bdp = rate * rtt / PACKET;
    let mut parts = vec![format!("kind = \"{kind}\"")];
    match kind {
        "fifo" => parts.push(format!("limit = \"{}p\"", two_digits((bdp * hand.among(&[1, 2, 4]) / 2).max(10)))),
        "red" => {
            let min = two_digits((bdp * 3 / 4).max(15));
            parts.push(format!("limit = \"{}kB\", min = \"{min}kB\", max = \"{}kB\"", 8 * min, 3 * min));
        }
        "pie" | "fq_pie" => parts.push("jiffy = \"4ms\", overshoot = true".to_owned()),
        _ => {}
    }
    if ecn && kind != "cake" {
        parts.push("ecn = true".to_owned());
    }
    match parts.len() {
        1 => format!("\"{kind}\""),
        _ => format!("{{ {} }}", parts.join(", ")),
    }
}

/// The kind in a queue's text: the first quoted word.
fn queue_kind(queue: &str) -> &str {
    queue.split('"').nth(1).unwrap_or_default()
}

impl HopPlan {
    fn write(&self, text: &mut String) {
        let mbit = |rate: u64| format!("{}mbit", rate as f64 / 1000.0);
        let steps = |key: &str, steps: Vec<(u64, String)>| match &steps[..] {
            [(_, only)] => format!("\"{only}\""),
            several => {
                let step = |(at, value): &(u64, String)| format!("{{ at = \"{at}s\", {key} = \"{value}\" }}");
                format!("[{}]", several.iter().map(step).collect::<Vec<_>>().join(", "))
            }
        };
        let rates = steps("rate", self.rates.iter().map(|&(at, rate)| (at, mbit(rate))).collect());
        let _ = write!(
            text,
            "\n[[hop]]\nname = \"{}\"\nrate = {rates}\nqueue = {}\nrelease = \"start\"\nburst = \"1600B\"\n",
            self.name, self.queue
        );
        if !self.delays.is_empty() {
            let delays = self.delays.iter().map(|&(at, delay)| (at, format!("{delay}ms"))).collect();
            let _ = writeln!(text, "delay = {}", steps("delay", delays));
        }
        if self.loss != "0" {
            let _ = writeln!(text, "loss = {}", self.loss);
        }
    }
}

impl Group {
    fn write(&self, plan: &Plan, text: &mut String) {
        let list = |names: &[&str]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "\n[[flow]]\nname = \"{}\"", self.name);
        let _ = match self.thin {
            Some((interval, size)) => writeln!(
                text,
                "transport = \"udp\"\ntraffic = {{ kind = \"thin\", interval = \"{interval}ms\", size = \"{size}B\" }}"
            ),
            None => writeln!(text, "controller = \"{}\"", self.controller),
        };
        if plan.kind == DrawnKind::Ecn {
            let _ = writeln!(text, "transport = {{ kind = \"tcp\", ecn = true }}");
        }
        if self.count > 1 {
            let _ = writeln!(text, "count = {}", self.count);
        }
        let _ = writeln!(text, "rtt = \"{}ms\"\nstart = \"{}ms\"", plan.rtt as f64 / 1000.0, self.start);
        let _ = writeln!(text, "route = [{}]", list(&self.route));
        if !self.back.is_empty() {
            let _ = writeln!(text, "back = [{}]", list(&self.back));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draw_follows_from_the_seed_and_the_number() {
        let text = |cells, seed| -> Vec<String> {
            let drawn = drawn(cells, seed).unwrap_or_else(|error| panic!("{error}"));
            drawn.into_iter().map(|drawn| drawn.text).collect()
        };
        let eight = text(8, 1);
        assert_eq!(eight, text(8, 1));
        assert_eq!(eight, text(20, 1)[..8], "a cell does not depend on how many are drawn");
        assert!(eight.iter().zip(text(8, 2)).all(|(one, other)| *one != other));
    }

    /// The bytes of one cell: they are the same on every machine and in every version, so that a seed names cells.
    #[test]
    fn a_drawn_file_reads_well() {
        let drawn = drawn(3, 1).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(drawn[2].file(), "03-delay-step.toml");
        assert_eq!(drawn[2].text, EXPECTED);
    }

    const EXPECTED: &str = r#"# Cell 3 of seed 1: 33 Mbit/s, codel; 18 ms; 3 new reno, 2 bbr, 1 cubic
name = "03 delay step"
duration = "16s"
warmup = "4s"

[record]
interval = "50ms"
flows = 6
gauges = false

[[hop]]
name = "bottleneck"
rate = "33mbit"
queue = "codel"
release = "start"
burst = "1600B"
delay = [{ at = "0s", delay = "11ms" }, { at = "8s", delay = "1ms" }]

[[flow]]
name = "new_reno"
controller = "new_reno"
count = 3
rtt = "18ms"
start = "800ms"
route = ["bottleneck"]

[[flow]]
name = "bbr"
controller = "bbr"
count = 2
rtt = "18ms"
start = "200ms"
route = ["bottleneck"]

[[flow]]
name = "cubic"
controller = "cubic"
rtt = "18ms"
start = "200ms"
route = ["bottleneck"]
"#;

    #[test]
    fn any_eight_cells_have_every_kind_and_forty_have_every_queue_and_controller() {
        for seed in 0..20 {
            let drawn = drawn(40, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            for eight in drawn.chunks(8) {
                let mut kinds: Vec<DrawnKind> = eight.iter().map(|drawn| drawn.kind).collect();
                kinds.sort();
                assert_eq!(kinds, DrawnKind::ALL);
            }
            let all: String = drawn.iter().map(|drawn| &*drawn.text).collect();
            let missing: Vec<&&str> =
                QUEUES.iter().chain(&CONTROLLERS).filter(|name| !all.contains(&format!("\"{name}\""))).collect();
            assert!(missing.len() <= 1, "seed {seed}: {missing:?}");
        }
    }

    #[test]
    fn each_kind_has_what_its_name_says() {
        let parts = [
            ("plain", "[[hop]]"),
            ("ACK path", "back = [\"uplink\"]"),
            ("delay step", "delay = [{ at = \"0s\""),
            ("rate steps", "rate = [{ at = \"0s\""),
            ("loss", "loss = 0.0"),
            ("thin flows", "kind = \"thin\""),
            ("chain", "[\"bottleneck\", \"second\"]"),
            ("ECN", "{ kind = \"tcp\", ecn = true }"),
        ];
        for drawn in (0..20).flat_map(|seed| drawn(8, seed).expect("it is drawn")) {
            for (kind, part) in &parts[1..] {
                assert_eq!(drawn.kind.name() == *kind, drawn.text.contains(part), "{part} in\n{}", drawn.text);
            }
        }
    }

    #[test]
    fn rates_and_times_keep_to_their_ranges() {
        for drawn in (0..50).flat_map(|seed| drawn(8, seed).expect("it is drawn")) {
            let scenario = drawn.study.run(&drawn.cell, 1, 2).unwrap_or_else(|error| panic!("{error}"));
            let slowest = scenario.hops[0].rate.initial().as_mbit_f64();
            assert!((2.0..=150.0).contains(&slowest), "{}", drawn.text);
            let flows: u32 = scenario.flows.iter().map(|flow| flow.count).sum();
            assert!((1..=14).contains(&flows), "{}", drawn.text);
        }
    }

    #[test]
    fn two_digits_are_kept() {
        assert_eq!([7, 99, 104, 995, 14_567, 150_000].map(two_digits), [7, 99, 100, 1000, 15_000, 150_000]);
    }
}
