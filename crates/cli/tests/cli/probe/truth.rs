//! The truth table of `narrows probe`: many bottlenecks whose kind is known, and what the probe says of them.
//!
//! `cargo test --workspace --test cli probe::truth -- --ignored --nocapture` runs all of it, three probes at a time. With `NARROWS_TRUTH=100mbit` only set-ups
//! run whose name has that in it; the answers stay in the test's folder.
use super::{Server, behind, has_bottlenecks};
use crate::support::{Place, json};
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
/// Probes at the same time.
const AT_A_TIME: usize = 3;

#[derive(Clone)]
struct Setup {
    name: String,
    rate: &'static str,
    rtt: &'static str,
    /// Of the upload and of the download.
    queues: [(&'static str, bool); 2],
    tcp: bool,
}

/// Each queue once for each direction's turn: the upload of one is the download of the next but one.
fn setups() -> Vec<Setup> {
    let mut all = Vec::new();
    for tcp in [false, true] {
        for (r, rate) in RATES.into_iter().enumerate() {
            for (t, rtt) in RTTS.into_iter().enumerate() {
                for pair in 0..QUEUES.len() / 2 {
                    // The partner changes, and so does the direction.
                    let up = QUEUES[2 * pair];
                    let down = QUEUES[(2 * pair + 2 * (r + 3 * t) + 1) % QUEUES.len()];
                    let queues = if (r + t + usize::from(tcp)) % 2 == 0 { [up, down] } else { [down, up] };
                    let beside = if tcp { "beside TCP" } else { "alone" };
                    let name = format!("{rate} {rtt} {beside} {} {}", queues[0].0, queues[1].0);
                    all.push(Setup { name, rate, rtt, queues, tcp });
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

#[test]
#[ignore = "takes a quarter of an hour or more"]
fn table() {
    if !has_bottlenecks() {
        return;
    }
    let place = &Place::new("probe_truth");
    let server = &Server::start(place, &["--clients", "16"]);
    let [take, give] = neighbour();
    let only = std::env::var("NARROWS_TRUTH").unwrap_or_default();
    let mut setups = setups();
    setups.retain(|setup| setup.name.contains(&only));
    setups.reverse();
    let (left, table) = (Mutex::new(setups), Mutex::new(BTreeMap::<(String, bool), [u32; 4]>::new()));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some(setup) = left.lock().expect("no panic").pop() else { break };
                    let beside = if setup.tcp {
                        format!("cat /dev/zero > /dev/tcp/{{peer}}/{take} & cat < /dev/tcp/{{peer}}/{give} > /dev/null & sleep 2; ")
                    } else {
                        String::new()
                    };
                    let [(up, _), (down, _)] = setup.queues;
                    let bottleneck = ["--rate", setup.rate, "--rtt", setup.rtt, "--up-queue", up, "--down-queue", down];
                    let (answer, said) = behind(place, &setup.name.replace([' ', ':', '='], "_"), server, &bottleneck, &beside);
                    let answer = if answer.is_empty() { Value::Null } else { json(&answer) };
                    if answer.is_null() {
                        eprintln!("{}: no answer: {said}", setup.name);
                    }
                    for (direction, (queue, fair)) in ["upload", "download"].into_iter().zip(setup.queues) {
                        let measured = &answer[direction];
                        let said = measured["fair_queuing"].as_str().unwrap_or("nothing");
                        let place = ["fair", "shared", "undecided", "nothing"].iter().position(|one| *one == said);
                        let class = format!("{:7} {}", setup.rate, if setup.tcp { "beside TCP" } else { "alone" });
                        let mut table = table.lock().expect("no panic");
                        for class in [class, "all".to_owned()] {
                            table.entry((class, fair)).or_default()[place.unwrap_or(3)] += 1;
                        }
                        let wrong = (said == "fair" && !fair) || (said == "shared" && fair);
                        let mark = if wrong { "WRONG" } else if said == "fair" || said == "shared" { "right" } else { "open" };
                        eprintln!(
                            "{mark:6} {queue:18} {direction:9} {said:10} rate {} base {} buffer {} loss {} decisions {} | {}",
                            measured["rate_mbit"], measured["base_rtt_ms"], measured["buffer_ms"], measured["loss"], measured["evidence"]["decisions"], setup.name
                        );
                    }
                }
            });
        }
    });
    println!("| set-ups | truth | fair | shared | cannot tell | no answer |\n|---|---|---|---|---|---|");
    for ((class, fair), [said_fair, shared, undecided, nothing]) in table.into_inner().expect("no panic") {
        let truth = if fair { "fair" } else { "shared" };
        println!("| {class} | {truth} | {said_fair} | {shared} | {undecided} | {nothing} |");
    }
}
