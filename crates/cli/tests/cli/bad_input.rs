//! Bad input of every kind gives exit code 2 and one message that says where it is and what is allowed.
use crate::support::{Place, text};
use std::fs;

const SCENARIO: &str = r#"
name = "test"
duration = "2s"
warmup = "0s"
seed = 1

[[hop]]
name = "bottleneck"
rate = "10mbit"
queue = "fifo"

[[flow]]
name = "bulk"
controller = "new_reno"
traffic = "bulk"
rtt = "20ms"
route = ["bottleneck"]
"#;

/// Checks for exit code 2, nothing on stdout, and all of `expected` in one message on stderr.
pub(crate) fn refused(place: &Place, args: &[&str], expected: &[&str]) {
    let output = place.run(args);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{args:?}\n{stderr}");
    assert_eq!(stdout, "", "{args:?}");
    for part in expected {
        assert!(stderr.contains(part), "{args:?}: no `{part}` in\n{stderr}");
    }
    assert!(!stderr.contains("panicked"), "{args:?}\n{stderr}");
}

#[test]
fn flags() {
    let place = Place::new("flags");
    let table: &[(&[&str], &[&str])] = &[
        (&["compare", "--rate", "20"], &["--rate", "20mbit"]),
        (&["compare", "--rate", "0mbit"], &["rate"]),
        (&["compare", "--rate", "-1mbit"], &["-1mbit"]),
        (&["compare", "--rate", "20mbps"], &["--rate", "20 MB/s to tc and 20 mbit/s to others", "20mbit"]),
        (&["compare", "--rate", "20"], &["--rate", "20 bits per second", "20bit"]),
        (&["compare", "--rtt", "20"], &["--rtt", "\"20us\" to tc and \"20s\" to iperf3"]),
        (&["compare", "--queues", "fifo:limit=45k"], &["limit", "45KiB", "45KB"]),
        (&["compare", "--queues", "bfifo"], &["bfifo", "limit is in bytes"]),
        (&["compare", "--queues", "pfifo_fast"], &["three bands", "fifo"]),
        (&["compare", "--queues", "fq_codel limit"], &["limit", "no value"]),
        (&["compare", "-P", "0"], &["number of flows"]),
        (&["compare", "-C", "htcp"], &["htcp", "prague"]),
        (&["compare", "-C", "reno", "--flows", "2xcubic"], &["--congestion", "--flows"]),
        (&["compare", "--rtt", "50mbit"], &["--rtt", "5ms"]),
        (&["compare", "--queues", "fiffo"], &["fiffo", "fifo"]),
        (&["compare", "--queues", "fifo:limit=0p"], &["limit", "0p"]),
        (&["compare", "--queues", "fifo:depth=3p"], &["depth", "limit"]),
        (&["compare", "--queues", "fifo,fifo"], &["fifo", "twice"]),
        (&["compare", "--queues", ""], &["--queues"]),
        (&["compare", "--flows", "3xnew_rino"], &["new_rino", "new_reno"]),
        (&["compare", "--flows", "0xnew_reno"], &["--flows"]),
        (&["compare", "--flows", ""], &["--flows"]),
        (&["compare", "--flows", "new_reno", "--duration", "5s", "--warmup", "5s"], &["warmup"]),
        (&["compare", "--flows", "new_reno", "--duration", "0s"], &["duration"]),
        (&["compare", "--runs", "0"], &["--runs", "1 to"]),
        (&["compare", "--jobs", "0"], &["--jobs", "1 to"]),
        (&["compare", "--seed", "-1"], &["--seed", "0 to"]),
        (&["compare", "--flows", "new_reno", "--seed", "18446744073709551615"], &["--seed"]),
        (&["compare", "--nosuch"], &["--nosuch"]),
        (&["compaer"], &["compaer", "compare"]),
        (&["nosuch"], &["nosuch", "--help"]),
        (&["qdisc"], &["attach", "detach", "show", "status"]),
        (&["qdisc", "attach", "eth0"], &["QUEUE"]),
        (
            &["qdisc", "attach", "eth0", "cake", "--rate", "50mbit"],
            &["tc qdisc replace dev eth0 root cake bandwidth 50000kbit`"],
        ),
        (&["qdisc", "attach", "eth0", "cake:rtt=50ms", "--rate", "5mbit"], &["bandwidth 5000kbit diffserv3 "]),
        (&["qdisc", "attach", "eth0", "cake", "--overhead", "2147483647"], &["overhead 2147483647`"]),
        (&["qdisc", "attach", "eth0", "fq_codel"], &["part of Linux", "`tc qdisc replace dev eth0 root fq_codel`"]),
        (
            &["qdisc", "attach", "eth0", "pie", "--rate", "9mbit", "--overhead", "4"],
            &["stab overhead 4", "htb rate 9000kbit"],
        ),
        (&["qdisc", "attach", "eth0", "cocoa", "--overhead", "much"], &["--overhead", "much"]),
        (&["list", "queue"], &["queues", "controllers"]),
        (&["list", "cubik"], &["cubik", "did you mean \"cubic\"?"]),
        (&["list", "netem"], &["tc's netem", "`delay`, `jitter`, `loss`"]),
        (&["compare", "cake", "fq_coddle"], &["QUEUE: unknown queue \"fq_coddle\"", "did you mean \"fq_codel\"?"]),
        (&["compare", "fq_codel", "limit", "1000p"], &["\"limit\"", "\"fq_codel limit 1000p\""]),
        (&["compare", "cake", "--queues", "fifo"], &["--queues"]),
        (&["compare", "--loss", "100%"], &["--loss", "less than 1", "\"1%\""]),
        (
            &["compare", "--queues", "tbf rate 1mbit burst 32kbit latency 400ms"],
            &["tc's tbf shapes", "`release = \"start\"`"],
        ),
        (&["compare", "--queues", "fq nopacing maxrate 50mbit"], &["`maxrate` of tc's fq", "first hop"]),
        (&["compare", "--flows", "cubic cal"], &["\"cal\"", "did you mean \"call\"?"]),
        (&["run"], &["SCENARIO"]),
        (&["run", "missing.toml"], &["missing.toml"]),
        (&["diff", "missing", "missing"], &["missing"]),
        (&["reproduce", "nosuch"], &["nosuch", "allowed: linux, kernel"]),
        (&[], &["Usage"]),
    ];
    for (args, expected) in table {
        refused(&place, args, expected);
    }
    assert_eq!(place.files("."), Vec::<std::path::PathBuf>::new(), "nothing was written");
}

#[test]
fn scenario_files() {
    let place = Place::new("scenario_files");
    let table: &[(&str, &str, &[&str])] = &[
        ("queue = \"fifo\"", "qeue = \"fifo\"", &["bad.toml:10", "qeue", "queue"]),
        ("\"10mbit\"", "\"10ms\"", &["bad.toml:9", "mbit"]),
        ("\"10mbit\"", "\"0mbit\"", &["bad.toml:9", "rate"]),
        ("\"fifo\"", "\"fq_codle\"", &["bad.toml:10", "fq_codle", "fifo"]),
        ("\"fifo\"", "{ kind = \"fifo\", limit = \"0p\" }", &["bad.toml:10", "limit"]),
        ("\"new_reno\"", "\"renoo\"", &["bad.toml:14", "renoo", "new_reno"]),
        ("[\"bottleneck\"]", "[]", &["bad.toml:17", "route"]),
        ("[\"bottleneck\"]", "[\"nowhere\"]", &["bad.toml:17", "nowhere", "bottleneck"]),
        ("rtt = \"20ms\"", "rtt = \"20ms\"\nstart = \"1s\"\nstop = \"0.5s\"", &["bad.toml:", "stop"]),
        ("\"10mbit\"", "{ trace = \"missing.mahi\" }", &["missing.mahi"]),
        ("\"10mbit\"", "{ trace = \"words.mahi\" }", &["words.mahi:2"]),
        ("name = \"test\"", "name = ", &["bad.toml:2"]),
        (
            "controller = \"new_reno\"\ntraffic = \"bulk\"",
            "command = \"iperf3 -c {peer}\"",
            &["bad.toml: flow \"bulk\" runs a command: only the live world can do that; allowed here: traffic"],
        ),
    ];
    place.write("words.mahi", "10\nten\n");
    for (from, to, expected) in table {
        assert!(SCENARIO.contains(from), "the table fits the scenario");
        place.write("bad.toml", &SCENARIO.replacen(from, to, 1));
        refused(&place, &["run", "bad.toml"], expected);
    }
    assert!(!place.path("narrows-out").exists(), "nothing was written");
}

#[test]
fn regression_a_seed_that_is_too_large_is_the_files_fault() {
    let place = Place::new("large_seed");
    let largest = "9223372036854775807";
    place.write("s.toml", &SCENARIO.replacen("seed = 1", "seed = 9223372036854775808", 1));
    let allowed = format!("s.toml:5: seed in the scenario cannot be 9223372036854775808; allowed: 0 to {largest}");
    refused(&place, &["run", "s.toml"], &[&allowed]);
    place
        .write("s.toml", &SCENARIO.replacen("seed = 1", &format!("seed = {largest}"), 1).replace("\"2s\"", "\"0.1s\""));
    assert!(place.run(&["run", "s.toml", "--out", "one"]).status.success());
    refused(&place, &["run", "s.toml", "--runs", "2"], &["2 runs with seeds from 9223372036854775807 on", largest]);
}

#[test]
fn a_folder_that_cannot_be_written() {
    let place = Place::new("unwritable");
    place.write("file", "mine");
    place.write("good.toml", SCENARIO);
    for args in [
        &["run", "good.toml", "--out", "file"][..],
        &["run", "good.toml", "--out", "file/below"],
        &["compare", "--flows", "new_reno", "--out", "file/below"],
        &["reproduce", "linux", "--quick", "--out", "file/below"],
    ] {
        refused(&place, args, &["file", "--out"]);
    }
    assert_eq!(fs::read_to_string(place.path("file")).expect("still there"), "mine");
}

#[test]
fn files_of_the_user_are_not_overwritten() {
    let place = Place::new("foreign");
    fs::create_dir(place.path("out")).expect("a folder");
    place.write("out/summary.json", "mine");
    place.write("good.toml", SCENARIO);
    refused(
        &place,
        &["run", "good.toml", "--out", "out"],
        &["`out` holds files that narrows did not write, such as `summary.json`", "--out"],
    );
    assert_eq!(fs::read_to_string(place.path("out/summary.json")).expect("still there"), "mine");
    // The scenario is in the output folder, under the name that the result would have.
    place.write("scenario.toml", SCENARIO);
    refused(&place, &["run", "scenario.toml", "--out", "."], &["`.` is the current folder", "--out ./results"]);
    assert_eq!(fs::read_to_string(place.path("scenario.toml")).expect("still there"), SCENARIO);
}

#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_begins() {
    let place = Place::new("memory");
    place.write("many.toml", &format!("{SCENARIO}count = 10000000\n"));
    let expected = ["a run needs about", "--memory allows 4.0 GB", "the largest: flows", "allowed: a smaller count"];
    refused(&place, &["run", "many.toml", "--memory", "4GB", "--out", "out"], &expected);
    assert!(place.files("out").is_empty());
    let dense = SCENARIO.replace("\n[[hop]]", "\n[record]\ninterval = \"1us\"\nflows = 1000\n[[hop]]");
    place.write("dense.toml", &format!("{dense}count = 1000\n"));
    let expected = ["the largest: series", "allowed: a longer interval or fewer flows in [record]"];
    refused(&place, &["run", "dense.toml", "--memory", "14GB", "--out", "out"], &expected);
    refused(&place, &["run", "dense.toml", "--memory", "much"], &["--memory", "such as 16GB"]);
}

#[test]
#[cfg(unix)]
fn devices_and_pipes_are_not_read() {
    let place = Place::new("devices");
    refused(&place, &["run", "/dev/zero"], &["/dev/zero: cannot read the scenario: not a regular file"]);
    refused(&place, &["run", "."], &["not a regular file"]);
}

/// Without the feature the command says how to get it; with it, what is wrong is said before anything is looked at.
#[test]
fn queues_on_interfaces() {
    let place = Place::new("qdisc");
    if cfg!(all(feature = "bpf", target_os = "linux")) {
        let attach = ["qdisc", "attach", "lo"];
        let table: &[(&[&str], &[&str])] = &[
            (&["coca"], &["coca", "cocoa"]),
            (&["cocoa,cp"], &["exactly one queue", "cocoa, cp"]),
            (&["cocoa:target=5ms"], &["target", "multiplier"]),
            (&["cocoa", "--set", "limit=0p"], &["--set", "limit", "0p"]),
            (&["cocoa", "--set", "limit"], &["--set", "limit"]),
            (&["cocoa", "--set", "limit=5p,cp"], &["--set", "cp"]),
            (&["cocoa", "--rate", "1"], &["--rate", "1bit"]),
            (&["cocoa", "--rate", "200gbit"], &["--rate", "from 8kbit to 100gbit"]),
            (&["cocoa", "--overhead", "300", "--rate", "1mbit"], &["--overhead", "-64", "256"]),
            (&["cocoa", "--overhead", "18"], &["--overhead", "--rate"]),
        ];
        for (args, expected) in table {
            refused(&place, &[&attach[..], args].concat(), expected);
        }
        return;
    }
    for args in [
        &["qdisc", "status"][..],
        &["qdisc", "attach", "eth0", "cocoa"],
        &["qdisc", "show"],
        &["qdisc", "detach", "eth0"],
    ] {
        let expected = if cfg!(target_os = "linux") { "--features bpf" } else { "another system" };
        refused(&place, args, &[expected]);
    }
}
