//! The truth table of `narrows probe`: many bottlenecks whose kind is known, and what the probe says of them.
//!
//! `cargo test --workspace --test cli probe::truth -- --ignored --nocapture` runs all of it, three probes at a time. With `NARROWS_TRUTH=100mbit` only set-ups
//! run whose name has that in it; the answers stay in the test's folder. `probe::truth::table_in_linux` does the same in the kernel lab.
use super::{Server, behind, figure, has_bottlenecks, skip};
use crate::support::{Place, json, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::thread;

/// Queues, and whether they serve flows in turn.
const QUEUES: [(&str, bool); 18] = [
    ("fifo", false),
    ("fq", true),
    ("codel", false),
    ("fq_codel", true),
    ("cobalt", false),
    ("cake", true),
    ("red", false),
    ("sfq", true),
    ("pie", false),
    ("fq_pie", true),
    ("gsp", false),
    ("cocoa", true),
    ("cp", false),
    ("fq_cp", true),
    ("dualpi2", false),
    ("fq_codel_fair", true),
    ("fifo:limit=50p", false),
    ("fq:flow_limit=50p", true),
];
const RATES: [&str; 3] = ["5mbit", "20mbit", "100mbit"];
const RTTS: [&str; 3] = ["10ms", "40ms", "100ms"];
/// Queues that Debian's kernels do not have, and what is in their place there.
const NOT_IN_LINUX: [(&str, &str); 3] =
    [("cobalt", "codel:target=20ms"), ("gsp", "fifo:limit=200p"), ("dualpi2", "pie:target=30ms")];
/// Probes at the same time, if NARROWS_TRUTH_AT_A_TIME does not say it. At 100 Mbit/s two processors have time for one, in a release build.
const AT_A_TIME: usize = 3;
const IN_LINUX_AT_A_TIME: usize = 2;

#[derive(Clone)]
struct Setup {
    name: String,
    rate: &'static str,
    rtt: &'static str,
    /// Of the upload and of the download.
    queues: [(&'static str, bool); 2],
    tcp: bool,
}

impl Setup {
    /// Its name as one of a file.
    fn file(&self) -> String {
        self.name.replace([' ', ':', '='], "_")
    }

    /// The set-up as a scenario in which the probe and its server are programs. TCP has been there for 2 s when the probe begins.
    fn scenario(&self) -> String {
        let Setup { name, rate, rtt, queues: [(up, _), (down, _)], tcp } = self;
        let program = env!("CARGO_BIN_EXE_narrows");
        let hop = |name: &str, queue: &str| {
            let (kind, parameter) = queue.split_once(':').unwrap_or((queue, ""));
            let parameter =
                parameter.split_once('=').map_or(String::new(), |(key, value)| format!(", {key} = \"{value}\""));
            format!("[[hop]]\nname = \"{name}\"\nrate = \"{rate}\"\nqueue = {{ kind = \"{kind}\"{parameter} }}\n\n")
        };
        let flow = |name: &str, route: &str, back: &str, more: &str| {
            format!(
                "[[flow]]\nname = \"{name}\"\nrtt = \"{rtt}\"\nroute = [\"{route}\"]\nback = [\"{back}\"]\n{more}\n"
            )
        };
        let probe = format!(
            "start = \"{}s\"\nserver = \"sh -c '$0 probe serve > /tmp/token' {program}\"\n\
             command = \"sh -c 'until [ -s /tmp/token ]; do :; done; read a b c d token rest < /tmp/token; \
             $0 probe {{peer}} --token $token --json >&2' {program}\"\n",
            if *tcp { 2 } else { 0 }
        );
        let mut scenario = format!("name = \"{name}\"\nduration = \"22s\"\n\n") + &hop("up", up) + &hop("down", down);
        scenario += &flow("probe", "up", "down", &probe);
        if *tcp {
            scenario += &flow("upload", "up", "down", "controller = \"cubic\"\n");
            scenario += &flow("download", "down", "up", "controller = \"cubic\"\n");
        }
        scenario
    }
}

/// Each queue once for each direction's turn: the upload of one is the download of the next but one.
fn setups(queues: &[(&'static str, bool)]) -> Vec<Setup> {
    let mut all = Vec::new();
    for tcp in [false, true] {
        for (r, rate) in RATES.into_iter().enumerate() {
            for (t, rtt) in RTTS.into_iter().enumerate() {
                for pair in 0..queues.len() / 2 {
                    // The partner changes, and so does the direction.
                    let up = queues[2 * pair];
                    let down = queues[(2 * pair + 2 * (r + 3 * t) + 1) % queues.len()];
                    let both = if (r + t + usize::from(tcp)) % 2 == 0 { [up, down] } else { [down, up] };
                    let beside = if tcp { "beside TCP" } else { "alone" };
                    let name = format!("{rate} {rtt} {beside} {} {}", both[0].0, both[1].0);
                    all.push(Setup { name, rate, rtt, queues: both, tcp });
                }
            }
        }
    }
    all
}

/// A TCP server that takes everything at one port and sends without end at another.
fn neighbour() -> [u16; 2] {
    let listen = |serve: fn(std::net::TcpStream)| {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream));
            }
        });
        port
    };
    let take = listen(|mut stream| {
        let mut bytes = vec![0; 65_536];
        while stream.read(&mut bytes).is_ok_and(|len| len > 0) {}
    });
    let give = listen(|mut stream| while stream.write_all(&[0; 65_536]).is_ok() {});
    [take, give]
}

/// What the answers were, by class of set-up and truth.
#[derive(Default)]
struct Tally(Mutex<BTreeMap<(String, bool), [u32; 4]>>);

impl Tally {
    /// Counts both directions of an answer, and prints a line for each.
    fn count(&self, setup: &Setup, answer: &Value) {
        for (direction, (queue, fair)) in ["upload", "download"].into_iter().zip(setup.queues) {
            let measured = &answer[direction];
            let said = measured["fair_queuing"].as_str().unwrap_or("nothing");
            let place = ["fair", "shared", "undecided", "nothing"].iter().position(|one| *one == said);
            let class = format!("{:7} {}", setup.rate, if setup.tcp { "beside TCP" } else { "alone" });
            let mut table = self.0.lock().expect("no panic");
            for class in [class, "all".to_owned()] {
                table.entry((class, fair)).or_default()[place.unwrap_or(3)] += 1;
            }
            let mark = match (said, fair) {
                ("fair", false) | ("shared", true) => "WRONG",
                ("fair" | "shared", _) => "right",
                _ => "open",
            };
            eprintln!(
                "{mark:6} {queue:18} {direction:9} {said:10} rate {} base {} buffer {} loss {} late {} decisions {} | {}",
                measured["rate_mbit"],
                measured["base_rtt_ms"],
                measured["buffer_ms"],
                measured["loss"],
                measured["late_ms"],
                measured["evidence"]["decisions"],
                setup.name
            );
        }
    }

    fn print(self) {
        println!("| set-ups | truth | fair | shared | cannot tell | no answer |\n|---|---|---|---|---|---|");
        for ((class, fair), [said_fair, shared, undecided, nothing]) in self.0.into_inner().expect("no panic") {
            let truth = if fair { "fair" } else { "shared" };
            println!("| {class} | {truth} | {said_fair} | {shared} | {undecided} | {nothing} |");
        }
    }
}

/// Probes each set-up whose name contains NARROWS_TRUTH, `at_a_time` of them at once. `probe` returns the answer, empty if there is none, and everything
/// else that the program said.
fn tally(mut setups: Vec<Setup>, at_a_time: usize, probe: impl Fn(&Setup) -> (String, String) + Sync) {
    let only = std::env::var("NARROWS_TRUTH").unwrap_or_default();
    setups.retain(|setup| setup.name.contains(&only));
    setups.reverse();
    let (left, tally) = (Mutex::new(setups), Tally::default());
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                loop {
                    let Some(setup) = left.lock().expect("no panic").pop() else { break };
                    let (answer, said) = probe(&setup);
                    if answer.is_empty() {
                        eprintln!("{}: no answer: {said}", setup.name);
                    }
                    tally.count(&setup, &if answer.is_empty() { Value::Null } else { json(&answer) });
                }
            });
        }
    });
    tally.print();
}

#[test]
#[ignore = "takes a quarter of an hour or more"]
fn table() {
    if !has_bottlenecks() {
        return;
    }
    let place = &Place::new("probe_truth");
    let server = &Server::start(place, &["--clients", "16"]);
    let [take, give] = neighbour();
    let at_a_time =
        std::env::var("NARROWS_TRUTH_AT_A_TIME").map_or(AT_A_TIME, |n| n.parse().expect("a number of probes"));
    tally(setups(&QUEUES), at_a_time, |setup| {
        let beside = if setup.tcp {
            format!("cat /dev/zero > /dev/tcp/{{peer}}/{take} & cat < /dev/tcp/{{peer}}/{give} > /dev/null & sleep 2; ")
        } else {
            String::new()
        };
        let [(up, _), (down, _)] = setup.queues;
        let bottleneck = ["--rate", setup.rate, "--rtt", setup.rtt, "--up-queue", up, "--down-queue", down];
        behind(place, &setup.file(), server, &bottleneck, &beside)
    });
}

/// The same through the kernel's own queues, in a virtual machine: the load of this machine has no effect there.
#[test]
#[ignore = "takes hours"]
fn table_in_linux() {
    let place = &Place::new("probe_truth_linux");
    if !place.run(&["lab", "doctor"]).status.success() {
        return skip("no virtual machine, or no kernel for it");
    }
    let known = |(queue, fair)| {
        let instead = NOT_IN_LINUX.iter().find(|(missing, _)| *missing == queue);
        (instead.map_or(queue, |&(_, instead)| instead), fair)
    };
    let queues = QUEUES.map(known);
    tally(setups(&queues), IN_LINUX_AT_A_TIME, |setup| probed(place, setup));
}

/// A probe in the kernel lab: the answer, empty if there is none, and everything that was said.
fn probed(place: &Place, setup: &Setup) -> (String, String) {
    let file = format!("{}.toml", setup.file());
    place.write(&file, &setup.scenario());
    let output = place.run(&["run", &file, "--on", "kernel", "--out", &setup.file(), "--force"]);
    let said = text(&output.stderr);
    let answer = said.find("\n{\n").zip(said.rfind("\n}\n")).map(|(from, to)| said[from + 1..to + 2].to_owned());
    (answer.unwrap_or_default(), said)
}

#[test]
fn each_direction_behind_its_queue_in_linux() {
    let place = &Place::new("probe_linux");
    if !place.run(&["lab", "doctor"]).status.success() {
        return skip("no virtual machine, or no kernel for it");
    }
    let queues = [("fifo", false), ("fq_codel", true)];
    let setup = Setup { name: "acceptance".to_owned(), rate: "5mbit", rtt: "40ms", queues, tcp: false };
    let (answer, said) = probed(place, &setup);
    assert!(!answer.is_empty(), "{said}");
    let answer = json(&answer);
    for (direction, expected) in [("upload", "shared"), ("download", "fair")] {
        let measured = &answer[direction];
        assert_eq!(measured["fair_queuing"], expected, "{direction}: {answer:#}");
        let rate = figure(&measured["rate_mbit"]);
        assert!((4.7..=5.1).contains(&rate), "{direction}: {rate} Mbit/s: {answer:#}");
        let base = figure(&measured["base_rtt_ms"]);
        assert!((40.0..=42.0).contains(&base), "{direction}: {base} ms: {answer:#}");
    }
}
