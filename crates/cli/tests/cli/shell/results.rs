//! A shell leaves a folder of results like any other command.
use super::{Running, allowed, figure, is_result, summary};
use crate::support::Place;
use std::fs;

/// Some traffic without a server: a datagram, and the ICMP error that comes back.
const SAYS_HELLO: &str = "echo to stdout; echo to stderr >&2; echo hello >/dev/udp/{peer}/9; sleep 0.3";

#[test]
fn a_shell_leaves_what_a_run_leaves_and_its_scenario_runs_again() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-folder");
    let args = ["--rtt", "20ms", "--queue", "fq_codel", "--down-queue", "cocoa", "--seed", "3"];
    let ended = Running::shell(&place, "first", &args, SAYS_HELLO).ends().ok();
    assert_eq!(ended.stdout, "to stdout\n");
    assert!(ended.stderr.contains("to stderr") && ended.stderr.contains("first/report.html"), "{}", ended.stderr);
    assert!(is_result(&place.path("first")));
    let first = summary(&place, "first");
    assert_eq!((&first["name"], &first["seed"]), (&"bash".into(), &3.into()));
    let hop = |n: usize, key: &str| first["hops"][n][key].as_str().map(str::to_owned);
    assert_eq!([hop(0, "name"), hop(1, "name")], ["up", "down"].map(|name| Some(name.to_owned())));
    assert_eq!([hop(0, "queue"), hop(1, "queue")], ["fq_codel", "cocoa"].map(|name| Some(name.to_owned())));
    assert!(figure(&first["duration_s"]) >= 0.3);
    let flows = first["flows"].as_array().expect("flows");
    let hello = flows.iter().find(|flow| flow["name"] == "app.up.udp").expect("the datagram's flow");
    let tuple = hello["five_tuple"].as_str().expect("a 5-tuple");
    assert!(tuple.starts_with("udp 1") && tuple.contains(" > ") && tuple.ends_with(":9"), "{tuple}");
    let page = fs::read_to_string(place.path("first/report.html")).expect("the page");
    assert!(page.contains("fq_codel") && page.contains("cocoa"));

    // The scenario runs the same command again in the live world, and is refused in the simulator.
    let again = Running::start(
        &place,
        "again",
        place.command(&["run", "first/scenario.toml", "--on", "live", "--out", "second"]),
    );
    again.ends().ok();
    assert!(is_result(&place.path("second")));
    let second = summary(&place, "second");
    assert_eq!((&second["seed"], &second["hops"][1]["queue"]), (&3.into(), &"cocoa".into()));
    assert!(figure(&second["hops"][0]["packets"]) >= 1.0, "{second}");
    let diff = place.ok(&["diff", "first", "second"]);
    assert!(diff.contains("utilisation"), "{diff}");
}

#[test]
fn a_program_that_removes_its_device_keeps_its_exit_code_and_its_figures() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-device");
    let device = "$(ip -o link | grep -o 'narrows[0-9]*' | head -n 1)";
    let script = format!("{SAYS_HELLO}; ip link del {device}; sleep 0.2; exit 7");
    let ended = Running::shell(&place, "out", &["--rtt", "20ms"], &script).ends();
    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert!(ended.stderr.contains("removed its network device"), "{}", ended.stderr);
    assert!(is_result(&place.path("out")));
    let summary = summary(&place, "out");
    assert!(figure(&summary["hops"][0]["packets"]) >= 1.0 && figure(&summary["duration_s"]) >= 0.5, "{summary}");
}

#[test]
fn json_is_all_that_is_on_stdout() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-json");
    let ended = Running::shell(&place, "out", &["--json"], SAYS_HELLO).ends().ok();
    assert_eq!(ended.stdout, fs::read_to_string(place.path("out/summary.json")).expect("the summary"));
    let mut said: Vec<&str> = ended.stderr.lines().collect();
    said.sort_unstable();
    assert_eq!(said, ["to stderr", "to stdout"]);
}

#[test]
fn expectations_refer_to_the_programs_flows_and_the_peers_output_is_kept() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-expects");
    let peer = "bash -c 'echo here; echo there >&2; exec sleep 20'";
    let expects = |args: &[&str]| {
        let kept = ["--rtt", "20ms", "--peer", peer, "--peer-log", "peer.txt"];
        Running::shell(&place, "out", &[&kept, args].concat(), SAYS_HELLO).ends()
    };
    let met = expects(&["--expect", "app.delay.p99 >= 10ms", "--expect", "app.up.udp.loss == 0"]).ok();
    assert!(met.stderr.contains("app.delay.p99 >= 10ms") && met.stderr.contains("holds"), "{}", met.stderr);
    let log = fs::read_to_string(place.path("peer.txt")).expect("the peer's output");
    assert!(log.starts_with("# narrows shell --peer bash -c") && log.ends_with("here\nthere\n"), "{log}");

    let failed = expects(&["--expect", "app.delay.p99 < 10ms"]);
    assert_eq!(failed.code, Some(3), "{}", failed.stderr);
    assert!(failed.stderr.contains("1 of 1 expectations does not hold"), "{}", failed.stderr);
    assert!(place.run(&["check", "out"]).status.code() == Some(3), "the folder keeps what was expected");
}

#[test]
fn what_failed_has_a_result_too_and_replaces_the_one_before() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-replaced");
    Running::shell(&place, "out", &["--seed", "1"], SAYS_HELLO).ends().ok();
    let ended = Running::shell(&place, "out", &["--seed", "2"], "exit 1").ends();
    assert_eq!(ended.code, Some(1));
    assert_eq!(summary(&place, "out")["seed"], 2);
    // Pictures of packets are removed, because there were none.
    assert!(!place.files("out").iter().any(|file| file.to_string_lossy().contains("sojourn")));
}
