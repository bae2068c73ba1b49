//! What `narrows probe` says of links that change: bursts, rates, and steps of the base RTT, with truth beside it. All of it is in real time in the live world.
//!
//! `cargo test --workspace --test cli probe::links -- --ignored --nocapture --test-threads 1` prints both tables.
use super::has_bottlenecks;
use crate::support::{Place, json, text};
use serde_json::Value;

/// A link in both directions between a probe and its server: the keys of its hops.
fn scenario(place: &Place, name: &str, seconds: u32, hop: &str, serve: &str, probe: &str) -> String {
    let [token, answer] = ["token", "json"].map(|kind| place.path(&format!("{name}.{kind}")).display().to_string());
    let program = env!("CARGO_BIN_EXE_narrows");
    let hops: String = ["up", "down"]
        .map(|way| format!("[[hop]]\nname = \"{way}\"\n{hop}\nqueue = \"fifo\"\ndelay = \"5ms\"\n\n"))
        .concat();
    format!(
        "name = \"{name}\"\nduration = \"{seconds}s\"\n\n{hops}[[flow]]\nname = \"probe\"\nroute = [\"up\"]\nback = [\"down\"]\nrtt = \"40ms\"\n\
         server = \"sh -c '$0 probe serve {serve} > {token}' {program}\"\n\
         command = \"sh -c 'until [ -s {token} ]; do sleep 0.1; done; read a b c d token rest < {token}; \
         $0 probe {{peer}} {probe} --token $token --json > {answer}' {program}\"\n"
    )
}

/// The answer of a probe over such a link.
fn probed(place: &Place, name: &str, seconds: u32, hop: &str, flags: [&str; 2]) -> Option<Value> {
    let file = format!("{name}.toml");
    place.write(&file, &scenario(place, name, seconds, hop, flags[0], flags[1]));
    let output = place.run(&["run", &file, "--on", "live", "--out", name, "--force"]);
    let answer = std::fs::read_to_string(place.path(&format!("{name}.json"))).unwrap_or_default();
    if answer.trim().is_empty() {
        eprintln!("{name}: no answer: {}", text(&output.stderr));
        return None;
    }
    Some(json(&answer))
}

fn hop(rate: &str, mechanism: &str) -> String {
    let mechanism = if mechanism == "wire" { String::new() } else { format!("\nmechanism = \"{mechanism}\"") };
    format!("rate = \"{rate}\"{mechanism}")
}

#[test]
#[ignore = "five minutes in real time, and wants a quiet machine"]
fn bursts_and_rates() {
    if !has_bottlenecks() {
        return;
    }
    let place = &Place::new("probe_bursts");
    let links: [(&str, &[&str], bool); 5] = [
        ("wire", &["5mbit", "20mbit", "50mbit", "100mbit"], false),
        ("leo", &["30mbit", "100mbit"], false),
        ("docsis", &["10mbit", "20mbit", "50mbit"], true),
        ("wifi", &["65mbit", "130mbit"], true),
        ("cellular", &["40mbit", "75mbit"], true),
    ];
    println!("| link | direction | bursts | every ms | rate | range | late ms |\n|---|---|---|---|---|---|---|");
    let mut false_alarms = Vec::new();
    for (mechanism, rates, is_bursty) in links {
        for rate in rates {
            let name = format!("{mechanism}-{rate}");
            let Some(answer) = probed(place, &name, 20, &hop(rate, mechanism), ["", ""]) else { continue };
            for direction in ["upload", "download"] {
                let measured = &answer[direction];
                let of = |key: &str| measured[key].clone();
                let bursts = of("bursts");
                println!(
                    "| {name} | {direction} | {} | {} | {} | {} | {} |",
                    bursts["packets"],
                    bursts["every_ms"],
                    of("rate_mbit"),
                    of("rate_range_mbit"),
                    of("late_ms")
                );
                if !bursts.is_null() && !is_bursty {
                    false_alarms.push(format!("{name} {direction}"));
                }
            }
        }
    }
    assert!(false_alarms.is_empty(), "bursts where there are none: {false_alarms:?}");
}

#[test]
#[ignore = "ten minutes in real time"]
fn steps_of_the_base_rtt() {
    if !has_bottlenecks() {
        return;
    }
    let place = &Place::new("probe_steps");
    println!("| link | steps | every s |\n|---|---|---|");
    for mechanism in ["wire", "docsis", "wifi", "cellular", "leo"] {
        let link = hop("30mbit", mechanism);
        let Some(answer) = probed(place, mechanism, 125, &link, ["--for 120s", "--watch 90s"]) else { continue };
        let steps = &answer["steps"];
        println!("| {mechanism} | {} | {} |", steps["steps"], steps["every_s"]);
        if mechanism == "leo" {
            let every = steps["every_s"].as_f64().expect("satellites are changed");
            assert!((14.5..=15.5).contains(&every), "{steps}");
        } else {
            assert!(steps["every_s"].is_null(), "{mechanism}: {steps}");
        }
    }
}
