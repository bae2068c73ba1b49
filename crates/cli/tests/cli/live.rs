//! `--on live`: what it writes, what it refuses, and what remains when it is ended. Where the system allows no namespaces the
//! tests are skipped, with the reason.
use crate::support::{Place, json, text};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const SCENARIO: &str = r#"
name = "both"
duration = "1s"
warmup = "200ms"
seed = 1

[[hop]]
name = "down"
rate = "4mbit"
queue = "fq_codel"
delay = "5ms"

[[flow]]
name = "bulk"
controller = "new_reno"
rtt = "20ms"
route = ["down"]

[[flow]]
name = "even"
traffic = { kind = "cbr", rate = "400kbit", packet = "500B" }
rtt = "20ms"
route = ["down"]
"#;

/// A folder with the scenario, on a machine that allows the live world.
fn live(test: &str) -> Option<Place> {
    let place = Place::new(test);
    place.write("x.toml", SCENARIO);
    // This flow is refused only after the rights for namespaces have been gained.
    place.write("copa.toml", &SCENARIO.replace("\"new_reno\"", "\"copa\""));
    let said = text(&place.run(&["run", "copa.toml", "--on", "live"]).stderr);
    if said.contains("no copa") {
        return Some(place);
    }
    println!("skipped: {said}");
    None
}

#[test]
fn a_papers_cells_in_real_time_have_the_simulators_figures_beside_them() {
    let Some(place) = live("live_paper") else { return };
    let args = ["reproduce", "tonopah", "--on", "live", "--quick", "--jobs", "2", "--out", "out"];
    let printed = place.run(&args);
    let (said, table) = (text(&printed.stderr), text(&printed.stdout));
    assert!(printed.status.success(), "{said}");
    assert!(said.contains("2 runs in real time, 2 at a time: 0.1 min"), "{said}");
    for part in ["Real senders", "live", "simulator", "nobody"] {
        assert!(table.contains(part), "{table}");
    }
    let figures = json(&fs::read_to_string(place.path("out/figures.json")).expect("the figures"));
    let figure = &figures["figures"][0];
    for queue in 0..2 {
        let rate = |world: &str| {
            let entries = figure[world][queue]["entries"].as_array().expect("figures").clone();
            let found = entries.iter().find(|entry| entry["metric"] == "utilisation").expect("it is there");
            found["measured"].as_f64().unwrap_or_default()
        };
        let [live, simulator] = ["cells", "simulator"].map(rate);
        assert!(live > 10.0 && simulator > 10.0 && live != simulator, "{live} {simulator}: {figures}");
    }
    // The aims are for all queues together.
    assert_eq!(figure["broken"], json("[]"), "{figures}");
    // The same again makes no run.
    let again = text(&place.run(&[&args[..], &["--force"]].concat()).stderr);
    assert!(again.contains("0 runs in real time"), "{again}");
}

#[test]
fn a_scenario_in_both_worlds_and_the_difference() {
    let Some(place) = live("live_both") else { return };
    let printed = place.ok(&["run", "x.toml", "--on", "live", "--json", "--out", "live"]);
    let summary: Value = serde_json::from_str(&printed).expect("JSON and nothing else");
    assert_eq!(printed, fs::read_to_string(place.path("live/summary.json")).expect("the summary"));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
    assert_eq!(summary["world"], serde_json::json!({ "name": "live", "linux": release.trim_end(), "time": "real" }));
    assert!(summary["timing"]["packets"].as_u64().is_some_and(|packets| packets > 100), "{summary}");
    assert!(summary["hops"][0]["utilisation"].as_f64().is_some_and(|share| share > 0.5), "{summary}");
    for flow in 0..2 {
        assert!(summary["flows"][flow]["goodput_mbit"].as_f64().is_some_and(|rate| rate > 0.1), "{summary}");
    }
    let files = place.files("live");
    for file in ["scenario.toml", "summary.json", "series.parquet", "cdf.parquet", "report.html"] {
        assert!(files.iter().any(|path| path.as_os_str() == file), "{file} is not among {files:?}");
    }
    // The scenario in the result runs again in the other world.
    place.ok(&["run", "live/scenario.toml", "--out", "sim"]);
    let difference = place.ok(&["diff", "sim", "live"]);
    for figure in ["down", "bulk", "even", "utilisation", "goodput"] {
        assert!(difference.contains(figure), "{figure} is not in\n{difference}");
    }
    let table = place.ok(&["run", "x.toml", "--on", "live", "--ipv6", "--force", "--out", "live"]);
    assert!(table.contains("bulk") && table.contains("live/report.html"), "{table}");
}

#[test]
fn what_the_live_world_does_not_have_is_refused_with_what_it_has() {
    let Some(place) = live("live_refused") else { return };
    let with = |from: &str, to: &str| {
        assert!(SCENARIO.contains(from), "the table fits the scenario");
        SCENARIO.replacen(from, to, 1)
    };
    let table: &[(String, &[&str], &[&str])] = &[
        (with("", ""), &["--mtu", "100"], &["--mtu", "1280 to 65535"]),
        (with("", ""), &["--mtu", "70000"], &["--mtu", "1280 to 65535"]),
        (with("", ""), &["--mtu", "9k"], &["--mtu", "1280 to 65535"]),
        (with("", ""), &["--on", "moon"], &["moon", "sim", "live"]),
        (
            with("controller = \"new_reno\"", "controller = \"prague\"\ntransport = \"quic\""),
            &[],
            &["bad.toml", "`bulk`", "prague answers the number of marked packets"],
        ),
        (with("\"new_reno\"", "\"copa\""), &[], &["`bulk`", "no copa", "it has: ", "reno"]),
        (
            with("\"new_reno\"", "{ kind = \"cubic\", hystart = false }"),
            &[],
            &["bad.toml", "`bulk`", "no parameters", "hystart"],
        ),
        (
            with("route = [\"down\"]", "route = [\"down\"]\nback = [\"down\"]"),
            &[],
            &["bad.toml", "\"down\"", "one direction"],
        ),
        (
            with(
                "controller = \"new_reno\"",
                "controller = \"new_reno\"\ntransport = { kind = \"tcp\", gso_max_segs = 45 }",
            ),
            &[],
            &["flow \"bulk\"", "gso_max_segs", "leave it out"],
        ),
        (
            with(
                "controller = \"new_reno\"",
                "controller = \"new_reno\"\ntransport = { kind = \"tcp\", receive_limit = true }",
            ),
            &[],
            &["flow \"bulk\"", "receive_limit", "leave it out"],
        ),
        (
            with("controller = \"new_reno\"", "command = \"/no/such/program {peer}\""),
            &[],
            &["there is no program `/no/such/program`"],
        ),
    ];
    for (scenario, flags, expected) in table {
        place.write("bad.toml", scenario);
        let args = [&["run", "bad.toml", "--on", "live"], *flags].concat();
        // A command line has `--on` only once.
        let args: Vec<&str> = if flags.contains(&"--on") { [&["run", "bad.toml"], *flags].concat() } else { args };
        let output = place.run(&args);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{args:?}\n{said}");
        for part in *expected {
            assert!(said.contains(part), "{args:?}: no `{part}` in\n{said}");
        }
        assert!(!said.contains("panicked"), "{said}");
        assert!(!place.path("narrows-out").exists(), "{args:?} has left a folder");
    }
}

/// Needs no namespace.
#[test]
fn flags_of_the_live_world_alone_are_refused_elsewhere() {
    let place = Place::new("live_flags");
    place.write("x.toml", SCENARIO);
    place.write("command.toml", &SCENARIO.replace("controller = \"new_reno\"", "command = \"true\""));
    for (args, expected) in [(&["run", "x.toml", "--mtu", "9000"][..], "--on live"), (&["run", "command.toml"], "live")]
    {
        let output = place.run(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn a_command_that_fails_is_named_and_leaves_no_result() {
    let Some(place) = live("live_failing") else { return };
    place.write(
        "f.toml",
        &SCENARIO.replace("controller = \"new_reno\"", "command = \"sh -c 'echo oh dear >&2; exit 3'\""),
    );
    let output = place.run(&["run", "f.toml", "--on", "live", "--json"]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""), "{said}");
    assert!(said.contains("flow \"bulk\": `sh -c 'echo oh dear >&2; exit 3'` ended with 3"), "{said}");
    assert!(said.contains("oh dear\n"), "what a command says is to be seen: {said}");
    assert!(!place.path("narrows-out").exists());
}

/// The output of a scenario's program is not part of the result.
#[test]
fn what_a_command_prints_is_not_on_stdout() {
    let Some(place) = live("live_printing") else { return };
    place.write("p.toml", &SCENARIO.replace("controller = \"new_reno\"", "command = \"echo noise {peer}\""));
    let output = place.run(&["run", "p.toml", "--on", "live", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(serde_json::from_str::<Value>(&text(&output.stdout)).is_ok());
    assert!(text(&output.stderr).contains("noise 10.2.0."), "{}", text(&output.stderr));
}

/// Starts a long run whose programs sleep for this time, in a new process group; returns when they run.
fn long_run(place: &Place, seconds: &str) -> Child {
    let command = format!("command = \"sh -c 'sleep {seconds} & sleep {seconds}'\"\nserver = \"sleep {seconds}\"");
    let scenario = SCENARIO.replace("controller = \"new_reno\"", &command).replace("\"1s\"", "\"1000s\"");
    place.write("long.toml", &scenario);
    let mut child = place
        .command(&["run", "long.toml", "--on", "live", "--out", "out"])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    for _ in 0..1000 {
        if sleeping(seconds).len() == 3 {
            return child;
        }
        assert!(child.try_wait().expect("a child").is_none(), "it ended before its programs began");
        sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    panic!("its programs do not run: {:?}", sleeping(seconds));
}

/// Processes `sleep SECONDS`, with their network namespaces.
fn sleeping(seconds: &str) -> Vec<(String, String)> {
    let line = format!("sleep\0{seconds}\0");
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let found =
        entries.filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|found| found == line.as_bytes()));
    let namespace = |path: std::path::PathBuf| fs::read_link(path.join("ns/net")).unwrap_or_default();
    found
        .map(|entry| (entry.file_name().to_string_lossy().into(), namespace(entry.path()).to_string_lossy().into()))
        .collect()
}

/// Processes in one of these namespaces, and descriptors that hold one. Without either, the namespace and its devices are gone.
fn holders(namespaces: &[String]) -> Vec<String> {
    let is = |path: std::path::PathBuf| {
        fs::read_link(path).is_ok_and(|to| namespaces.iter().any(|namespace| to.as_os_str() == namespace.as_str()))
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        if is(entry.path().join("ns/net")) {
            found.push(entry.path().display().to_string());
        }
        let open = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        found.extend(open.filter(|fd| is(fd.path())).map(|fd| fd.path().display().to_string()));
    }
    found
}

/// Waits up to two seconds for a condition.
fn comes(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..200 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("not within two seconds: {what}");
}

fn all_goes(seconds: &str, namespaces: &[String]) {
    comes("the programs are gone", || sleeping(seconds).is_empty());
    comes("the namespaces are gone", || holders(namespaces).is_empty());
}

fn namespaces_of(seconds: &str) -> Vec<String> {
    let own = fs::read_link("/proc/self/ns/net").expect("a namespace").to_string_lossy().into_owned();
    let namespaces: Vec<String> = sleeping(seconds).into_iter().map(|(_, namespace)| namespace).collect();
    assert!(!namespaces.contains(&own), "the programs are in namespaces of their own");
    namespaces
}

#[test]
fn nothing_stays_after_a_kill() {
    let Some(place) = live("live_kill") else { return };
    let mut child = long_run(&place, "81.625");
    let namespaces = namespaces_of("81.625");
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    all_goes("81.625", &namespaces);
    // The unfinished folder does not prevent the next run.
    place.write("short.toml", &SCENARIO.replace("\"1s\"", "\"300ms\""));
    place.ok(&["run", "short.toml", "--on", "live", "--out", "out"]);
    assert!(!place.path("out/.narrows-partial").exists());
}

/// To the program alone, and, as a terminal does, to the whole foreground group.
#[test]
fn ctrl_c_ends_everything_and_leaves_no_result() {
    let Some(place) = live("live_interrupt") else { return };
    for whole_group in [false, true] {
        let child = long_run(&place, "82.625");
        let namespaces = namespaces_of("82.625");
        let to = if whole_group { format!("-{}", child.id()) } else { child.id().to_string() };
        let kill = format!("kill -s INT -- {to}");
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("sh").success());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("interrupted"), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
        all_goes("82.625", &namespaces);
        assert!(!place.path("out").exists(), "{:?}", place.files("out"));
    }
}
