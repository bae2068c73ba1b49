//! The results of commands: tables, JSON, folders, and the same bytes for any number of threads.
use crate::support::{Place, json, same_files, text, without_cost};
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Entry;
use narrows_core::registry::Registered;
use narrows_scenario::Traffic;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// Small enough for a debug build.
const COMPARE: &[&str] =
    &["compare", "--rate", "5mbit", "--rtt", "20ms", "--flows", "2xnew_reno", "--duration", "3s", "--warmup", "1s"];

fn compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [COMPARE, more].concat()
}

#[test]
fn list_shows_every_entry_with_every_parameter() {
    let place = Place::new("list");
    // Lines are broken at spaces.
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = words(place.ok(&["list"]));
    let parsed = json(&place.ok(&["list", "--json"]));
    let kinds: [(&str, Vec<Entry>); 3] = [
        ("queues", QueueConfig::entries()),
        ("controllers", ControllerConfig::entries()),
        ("traffic", Traffic::entries()),
    ];
    for (kind, entries) in kinds {
        let only = words(place.ok(&["list", kind]));
        assert_eq!(parsed[kind].as_array().map(Vec::len), Some(entries.len()));
        for (n, entry) in entries.iter().enumerate() {
            assert!(shown.contains(entry.summary) && only.contains(entry.summary), "{}", entry.name);
            assert_eq!(parsed[kind][n]["name"], entry.name);
            for (m, spec) in entry.params.iter().enumerate() {
                assert!(only.contains(spec.name) && only.contains(&spec.default), "{}.{}", entry.name, spec.name);
                assert_eq!(parsed[kind][n]["params"][m]["default"], spec.default);
            }
        }
    }
    let keys = words(place.ok(&["list", "keys"]));
    for (n, table) in narrows_scenario::keys::tables().iter().enumerate() {
        assert_eq!(parsed["keys"][n]["name"], table.name);
        for (m, spec) in table.keys.iter().enumerate() {
            assert!(keys.contains(&words(spec.sentence())), "{}.{}", table.name, spec.name);
            assert_eq!(parsed["keys"][n]["params"][m]["name"], spec.name);
        }
    }
    assert!(!shown.contains('\u{1b}'), "no colour without a terminal");
    // An entry by its name, in any spelling; a preset by its other name.
    let cubic = place.ok(&["list", "cubic"]);
    assert!(cubic.starts_with("CONTROLLERS") && cubic.contains("hystart") && !cubic.contains("new_reno  "), "{cubic}");
    assert_eq!(place.ok(&["list", "FQ-CoDel"]), place.ok(&["list", "fq_codel"]));
    assert!(place.ok(&["list", "voip"]).contains("G.711"));
    let both = json(&place.ok(&["list", "startup", "--json"]));
    assert_eq!(both.as_object().map(|kinds| kinds.len()), Some(2), "a controller and a detector: {both}");
}

#[test]
fn schema_is_json() {
    let schema = json(&Place::new("schema").ok(&["schema"]));
    assert!(schema["$schema"].is_string() && schema["properties"]["hop"].is_object(), "{schema}");
}

#[test]
fn help_names_every_command() {
    let help = Place::new("help").ok(&["--help"]);
    for command in ["compare", "run", "list", "schema", "diff", "reproduce"] {
        assert!(help.contains(command), "{command} in\n{help}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = Place::new("pipe");
    let mut child =
        place.command(&["list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success(), "{}", output.status);
}

#[test]
fn compare_writes_the_table_the_folder_and_only_json_when_asked() {
    let place = Place::new("compare");
    let table = place.ok(&compare(&["--queues", "all", "--runs", "2"]));
    for name in QueueConfig::NAMES {
        assert!(table.contains(name), "{name} in\n{table}");
        for file in ["scenario.toml", "summary.json", "series.parquet"] {
            let path = place.path("narrows-out/0001-compare").join(name).join("seed-2").join(file);
            assert!(path.is_file(), "{}", path.display());
        }
    }
    assert!(table.contains("narrows-out/0001-compare/report.html, and 6 figures in svg/\n"), "{table}");
    let page = fs::read_to_string(place.path("narrows-out/latest/report.html")).expect("the page");
    assert!(page.contains("fifo"));

    let output = place.run(&compare(&["--queues", "all", "--runs", "2", "--json"]));
    let printed = text(&output.stdout);
    assert_eq!(text(&output.stderr), "narrows: narrows-out/0002-compare\n");
    assert_eq!(printed, fs::read_to_string(place.path("narrows-out/latest/summary.json")).expect("the summaries"));
    let summaries = json(&printed);
    let summaries = summaries.as_array().expect("an array");
    assert_eq!(summaries.len(), 2 * QueueConfig::NAMES.len());
    assert_eq!((&summaries[0]["seed"], &summaries[1]["seed"]), (&1.into(), &2.into()));
}

/// The first command of a newcomer: one short table with a sentence, and one line for the files.
#[test]
fn the_first_comparison_is_a_screen_with_a_sentence() {
    let place = Place::new("first-comparison");
    let shown = place.ok(&["compare", "--duration", "10s"]);
    assert!(shown.lines().count() <= 30, "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let sentence = shown.lines().find(|line| line.starts_with("call: ")).unwrap_or_default();
    assert!(sentence.contains(" ms (p99) behind fifo, ") && sentence.contains("; download: "), "{shown}");
    for queue in ["fifo", "codel", "fq", "fq_codel", "cocoa", "cake"] {
        assert_eq!(shown.lines().filter(|line| line.split(' ').next() == Some(queue)).count(), 1, "{shown}");
    }
}

/// The system's program gets the page; without one the result stands all the same.
#[cfg(target_os = "linux")]
#[test]
fn the_page_is_opened_on_demand() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new("open");
    let quick = compare(&["--queues", "fifo", "--open", "--out", "out", "--force"]);
    let alone = |path: &str| {
        let output =
            place.command(&quick).env("PATH", path).env_remove("BROWSER").output().expect("the program starts");
        assert!(output.status.success(), "{output:?}");
        text(&output.stderr)
    };
    assert!(alone("").contains("narrows: cannot open out/report.html: "));
    place.write("bin/xdg-open", "#!/bin/sh\necho \"$1\" >opened.new; /bin/mv opened.new opened\n");
    fs::set_permissions(place.path("bin/xdg-open"), fs::Permissions::from_mode(0o755)).expect("an executable file");
    alone(&place.path("bin").to_string_lossy());
    let opened = (0..1000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        fs::read_to_string(place.path("opened")).ok()
    });
    assert_eq!(opened.as_deref(), Some("out/report.html\n"));
}

#[test]
fn run_writes_one_folder_and_its_scenario_runs_again() {
    let place = Place::new("run");
    place.ok(&compare(&["--queues", "fifo:limit=20p", "--out", "first"]));
    let printed = place.ok(&["run", "first/fifo-limit=20p/seed-1/scenario.toml", "--json", "--out", "second"]);
    assert_eq!(printed, fs::read_to_string(place.path("second/summary.json")).expect("the summary"));
    let first = fs::read_to_string(place.path("first/fifo-limit=20p/seed-1/summary.json")).expect("the summary");
    assert_eq!(without_cost(json(&printed)), without_cost(json(&first)));
    let several = place.ok(&["run", "second/scenario.toml", "--runs", "2", "--json", "--out", "second", "--force"]);
    assert_eq!(json(&several).as_array().map(Vec::len), Some(2));
    assert!(!place.path("second/series.parquet").exists(), "the single run is gone");
    let diff = place.ok(&["diff", "first/fifo-limit=20p/seed-1", "second/seed-2"]);
    assert!(diff.contains("utilisation"), "{diff}");
}

#[test]
fn the_same_bytes_for_any_number_of_jobs_and_every_time() {
    let place = Place::new("bytes");
    let runs = [("a", "1"), ("b", "4"), ("c", "4")];
    for (out, jobs) in runs {
        place.ok(&compare(&["--queues", "all", "--runs", "3", "--jobs", jobs, "--out", out]));
    }
    for other in ["b", "c"] {
        assert!(same_files(&place, "a", other) >= 9 * QueueConfig::NAMES.len());
    }
}

#[test]
fn one_run_of_many_flows_is_the_same_on_any_number_of_threads() {
    let place = Place::new("halves");
    place.write(
        "many.toml",
        "duration = \"2s\"\nwarmup = \"500ms\"\n[[hop]]\nname = \"link\"\nrate = \"600mbit\"\nqueue = \"fq_codel\"\n\
         [[flow]]\nname = \"bulk\"\ncount = 300\nrtt = { uniform = [\"15ms\", \"40ms\"] }\nroute = [\"link\"]\n",
    );
    let events = ["1", "2", "3"].map(|jobs| {
        let printed = place.ok(&["run", "many.toml", "--jobs", jobs, "--json", "--out", jobs]);
        json(&printed)["cost"]["events"].as_u64().expect("a number")
    });
    assert!(events.is_sorted_by(|few, more| few < more), "each thread takes samples: {events:?}");
    assert!(same_files(&place, "1", "2") >= 3 && same_files(&place, "1", "3") >= 3);
}

#[test]
fn ctrl_c_ends_a_run_soon_and_leaves_nothing_half_written() {
    let place = Place::new("interrupt");
    place.ok(&compare(&["--queues", "fifo", "--out", "out"]));
    let (before, summary) = (place.files("out"), fs::read(place.path("out/summary.json")).expect("the summary"));
    let args = [
        "compare",
        "--flows",
        "new_reno",
        "--duration",
        "10h",
        "--runs",
        "4",
        "--jobs",
        "2",
        "--out",
        "out",
        "--force",
    ];
    let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    while !place.path("out.unfinished/runs.jsonl").exists() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it began");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let second = place.run(&compare(&["--out", "out", "--force"]));
    assert_eq!(second.status.code(), Some(2), "two programs do not write one folder");
    assert!(text(&second.stderr).contains("another narrows is writing"), "{}", text(&second.stderr));
    let kill = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().expect("sh").success());
    // It takes a second on an idle machine; a busy one gets three.
    let mut ended = None;
    for _ in 0..150 {
        ended = child.try_wait().expect("a child");
        if ended.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let code = ended.and_then(|status| status.code());
    if ended.is_none() {
        let _ = child.kill();
    }
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code, Some(130), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("interrupted"));
    assert_eq!(place.files("out"), before, "the earlier result is whole and nothing is added");
    assert_eq!(fs::read(place.path("out/summary.json")).expect("the summary"), summary);
    assert!(!place.path("out.unfinished").exists());
}

/// The names of `tc` and `iperf3` mean the same in flags and files, and results use one spelling.
#[test]
fn spellings_of_tc_and_iperf3_mean_the_same() {
    let place = Place::new("spellings");
    let ours = ["compare", "--rate", "20mbit", "--rtt", "10ms", "--duration", "1s", "--flows", "2xnew_reno"];
    let queues = ["--queues", "fifo:limit=100p,fq_codel:target=3ms,ecn=false", "--out", "ours"];
    place.ok(&[&ours[..], &queues].concat());
    let theirs = ["compare", "--rate", "20M", "--rtt", "10msec", "-t", "1", "-P", "2", "-C", "reno"];
    let queues = ["--queues", "pfifo limit 100,fq-codel target 3ms noecn", "--out", "theirs"];
    place.ok(&[&theirs[..], &queues].concat());
    assert!(same_files(&place, "ours", "theirs") > 4);
    let folders = ["fifo-limit=100p", "fq_codel-target=3ms-ecn=false"];
    assert!(folders.iter().all(|folder| place.path("theirs").join(folder).is_dir()), "{:?}", place.files("theirs"));

    let file = |rate: &str, queue: &str, controller: &str| {
        format!(
            "name = \"s\"\nduration = \"1s\"\n[[hop]]\nname = \"h\"\nrate = \"{rate}\"\nqueue = {{ kind = \"{queue}\", limit = \"99p\" }}\n\
             [[flow]]\nname = \"f\"\ncontroller = \"{controller}\"\nrtt = \"20ms\"\nroute = [\"h\"]\n"
        )
    };
    place.write("ours.toml", &file("10mbit", "fifo", "new_reno"));
    place.ok(&["run", "ours.toml", "--out", "file-ours"]);
    for (n, (rate, queue, controller)) in
        [("10Mbit", "pfifo", "reno"), ("10m", "PFIFO", "New-Reno")].into_iter().enumerate()
    {
        place.write("theirs.toml", &file(rate, queue, controller));
        let out = format!("file-{n}");
        place.ok(&["run", "theirs.toml", "--out", &out]);
        let read = |folder: &str| fs::read_to_string(place.path(folder).join("scenario.toml")).expect("a scenario");
        assert_eq!(read(&out), read("file-ours"));
    }
    let list = place.ok(&["list", "queues"]);
    assert!(list.contains("Also: pfifo."), "{list}");
}
