//! `narrows sweep`: the table of every combination, whatever the number of jobs and however often it was stopped.
use crate::support::{Place, json, text, without_cost};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

const SCENARIO: &str = "\
duration = \"6s\"
warmup = \"1s\"
[[hop]]
name = \"link\"
rate = \"20mbit\"
queue = \"fq_codel\"
[[flow]]
name = \"bulk\"
count = 2
rtt = \"40ms\"
route = [\"link\"]
[[flow]]
name = \"call\"
traffic = { kind = \"cbr\", rate = \"100kbit\", packet = \"160B\" }
rtt = \"40ms\"
route = [\"link\"]
";

fn place(test: &str) -> Place {
    let place = Place::new(test);
    place.write("S.toml", SCENARIO);
    place
}

/// The rows of a CSV without quotes, by column.
fn rows(place: &Place, file: &str) -> Vec<Vec<(String, String)>> {
    let text = fs::read_to_string(place.path(file)).expect("the table");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
    let names = lines.next().expect("a heading");
    lines
        .map(|cells| {
            assert_eq!(cells.len(), names.len(), "{cells:?}");
            names.iter().cloned().zip(cells).collect()
        })
        .collect()
}

fn cell<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    row.iter().find(|(known, _)| known == name).map_or_else(|| panic!("no column {name}"), |(_, cell)| cell)
}

const AXES: [&str; 4] = ["--set", "hop.rate=5mbit,20mbit", "--set", "flow.rtt=10ms,40ms"];

#[test]
fn a_row_is_a_run_and_a_group_of_flows() {
    let place = place("sweep-rows");
    let printed = place.ok(&[&["sweep", "S.toml", "--runs", "2", "--out", "t.csv"], &AXES[..]].concat());
    assert!(printed.contains("5mbit") && printed.ends_with("t.csv\n"), "{printed}");
    assert_eq!(place.files(""), ["S.toml", "t.csv"].map(std::path::PathBuf::from), "one file, and nothing else");
    let rows = rows(&place, "t.csv");
    assert_eq!(rows.len(), 2 * 2 * 2 * 2, "two rates, two RTTs, two runs, two groups");
    let key = |row: &[(String, String)]| {
        ["run", "seed", "hop.rate_mbit", "flow.rtt_ms", "flow", "flows"]
            .map(|name| cell(row, name).to_owned())
            .join(" ")
    };
    assert_eq!(key(&rows[0]), "1 1 5 10 bulk 2");
    assert_eq!(key(&rows[3]), "2 2 5 10 call 1");
    assert_eq!(key(&rows[15]), "8 2 20 40 call 1");
    for row in &rows {
        let number =
            |name: &str| cell(row, name).parse::<f64>().unwrap_or_else(|_| panic!("{name}: {:?}", cell(row, name)));
        assert_eq!(number("hop.link.rate_mbit"), number("hop.rate_mbit"), "conditions are columns, too");
        assert_eq!(number("base_rtt_ms"), number("flow.rtt_ms"));
        assert_eq!(number("hop.link.queue.target_ms"), 5.0);
        // The hop sends what its flows receive, but for headers and what is on its way.
        let of_run: Vec<_> = rows.iter().filter(|other| cell(other, "run") == cell(row, "run")).collect();
        let of_group = |row: &[(String, String)]| cell(row, "throughput_mbit").parse::<f64>().expect("a number");
        let sum: f64 = of_run.iter().map(|row| of_group(row)).sum();
        let used = number("hop.link.utilisation") * number("hop.rate_mbit");
        assert!((sum - used).abs() < 0.03 * used, "{sum} {used}");
    }
    let output =
        place.run(&["sweep", "S.toml", "--metric", "bulk.retransmits", "--metric", "bulk.nonsense", "--out", "m.csv"]);
    assert!(text(&output.stdout).contains("bulk retransmits"), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    // The table is there, and the script that asked for the figure is not misled.
    assert!(output.status.code() == Some(2) && place.path("m.csv").exists(), "{said}");
    assert!(
        said.contains("--metric bulk.nonsense: no run has") && !said.contains("--metric bulk.retransmits"),
        "{said}"
    );
    // A single run of a combination is what `run` makes of it.
    place.ok(&["sweep", "S.toml", "--set", "link.rate=5mbit", "--out", "one.csv"]);
    let summary = json(&place.ok(&["run", "S.toml", "--set", "hop.link.rate=5mbit", "--json"]));
    let one = self::rows(&place, "one.csv");
    assert_eq!(cell(&one[1], "goodput_mbit").parse::<f64>().ok(), summary["flows"][2]["goodput_mbit"].as_f64());
    assert_eq!(
        cell(&one[0], "hop.link.sojourn_ms.p99").parse::<f64>().ok(),
        summary["hops"][0]["sojourn_ms"]["p99"].as_f64()
    );
    assert_eq!(summary["setup"]["hops"][0]["rate_mbit"].as_f64(), Some(5.0));
}

#[test]
fn the_bytes_do_not_depend_on_jobs_nor_on_the_form() {
    let place = place("sweep-jobs");
    for (jobs, form) in [("1", "csv"), ("4", "csv"), ("1", "parquet"), ("3", "parquet"), ("1", "jsonl"), ("2", "jsonl")]
    {
        let out = format!("t{jobs}.{form}");
        place.ok(&[&["sweep", "S.toml", "--runs", "2", "--jobs", jobs, "--out", &out], &AXES[..]].concat());
    }
    let bytes = |name: &str| fs::read(place.path(name)).expect("the table");
    assert!(bytes("t1.csv") == bytes("t4.csv") && bytes("t1.parquet") == bytes("t3.parquet"));
    assert!(bytes("t1.jsonl") == bytes("t2.jsonl"));
    let csv = rows(&place, "t1.csv");
    let lines = text(&bytes("t1.jsonl"));
    assert_eq!(lines.lines().count(), csv.len());
    for (line, row) in lines.lines().map(json).zip(&csv) {
        for (name, cell) in row {
            let value = &line[name];
            let same = value.as_f64().map_or_else(
                || value.as_str().unwrap_or_default() == cell,
                |number| cell.parse::<f64>().ok() == Some(number),
            );
            assert!(same, "{name}: {cell:?} and {value}");
        }
    }
    let refused = place.run(&["sweep", "S.toml", "--set", "hop.rate=5mbit", "--out", "x.csv", "--format", "parquet"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_folder_has_a_page_and_runs_that_are_asked_for() {
    let place = place("sweep-folder");
    place.ok(&[&["sweep", "S.toml", "--keep-series", "--out", "d", "--format", "jsonl"], &AXES[..]].concat());
    let files: Vec<String> = place.files("d").iter().map(|file| file.display().to_string()).collect();
    let has = |file: &str| files.iter().any(|known| known == file);
    assert!(has("table.jsonl") && has("report.html") && has("svg/s_bulk_goodput.svg"), "{files:?}");
    assert!(has("runs/0003-20mbit-10ms/seed-1/series.parquet"), "{files:?}");
    let page = fs::read_to_string(place.path("d/report.html")).expect("the page");
    assert!(page.contains("class=\"heat\"") && page.contains("hop.rate × flow.rtt"));
    // Not asked for, and replaced.
    place.ok(&[&["sweep", "S.toml", "--out", "d", "--force"], &AXES[..]].concat());
    assert!(!place.path("d/runs").exists() && place.path("d/table.csv").exists());
    let refused = place.run(&["sweep", "S.toml", "--keep-series", "--out", "t.csv"]);
    assert!(text(&refused.stderr).contains("--keep-series needs a folder"));
}

#[test]
fn a_study_of_ones_own_is_swept() {
    let place = Place::new("sweep-study");
    let template = SCENARIO.replace("[[hop]]", "[[scenario.hop]]").replace("[[flow]]", "[[scenario.flow]]");
    let template = template.replace("\"20mbit\"", "\"$rate\"").replace("duration", "[scenario]\nduration");
    let study = format!(
        "title = \"two rates\"\ndefault = {{ runs = 2, duration = \"4s\" }}\n\
         [[axis]]\nname = \"rate\"\nvalues = [\"5mbit\", \"10mbit\"]\n\
         [[axis]]\nname = \"target\"\nset = \"hop.queue.target\"\nvalues = [\"5ms\", {{ label = \"long\", kind = 5 }}]\n\
         [[metric]]\nname = \"late RTT\"\nseries = {{ source = \"flow:bulk\", metric = \"rtt_ms\", take = \"mean\", from = 2.0 }}\n{template}"
    );
    place.write("study.toml", &study);
    let refused = place.run(&["sweep", "study.toml", "--out", "t.csv"]);
    assert!(text(&refused.stderr).contains("target"), "a table is no time: {}", text(&refused.stderr));
    place.write("study.toml", &study.replace("{ label = \"long\", kind = 5 }", "\"50ms\""));
    place.ok(&["sweep", "study.toml", "--out", "t.csv"]);
    let rows = rows(&place, "t.csv");
    assert_eq!(rows.len(), 16);
    assert_eq!(["rate_mbit", "target_ms", "duration_s"].map(|name| cell(&rows[15], name)), ["10", "50", "4"]);
    assert!(cell(&rows[0], "late RTT").parse::<f64>().is_ok_and(|rtt| rtt > 40.0));
    // One more axis on the command line.
    place.ok(&["sweep", "study.toml", "--set", "call.count=0,1", "--runs", "1", "--out", "u.csv"]);
    let rows = self::rows(&place, "u.csv");
    assert_eq!(rows.iter().filter(|row| cell(row, "flow") == "call").count(), 4);
    assert_eq!(rows.iter().filter(|row| cell(row, "flow") == "bulk").count(), 8);
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let place = place("sweep-mistakes");
    place.write("theirs.csv", "a,b\n1,2\n");
    let many = format!("hop.loss={}", (0..700).map(|n| format!("0.{n:04}")).collect::<Vec<_>>().join(","));
    let more = format!("hop.jitter={}", (0..700).map(|n| format!("{n}ns")).collect::<Vec<_>>().join(","));
    for (args, expected) in [
        (&["--set", "hop.rate=5mbit,6mbt"][..], "--set hop.rate=6mbt: rate in [[hop]] cannot be \"6mbt\"; allowed:"),
        (&["--set", "hop.rate=5mbit", "--set", "hop.rate=6mbit"], "--set hop.rate: axis \"hop.rate\" is given twice"),
        (&["--set", "hop.rate=5mbit", "--set", "link.rate=6mbit"], "--set hop.rate=5mbit sets the same key"),
        (&["--set", "hop.rate=5mbit,5000kbit"], "has the value \"5000kbit\" twice"),
        (&["--set", "warmup=1s,9s", "--set", "hop.loss=0,0.01"], "in the combination warmup=9s hop.loss=0"),
        (&["--set", "seed=1,2"], "allowed: --runs, --seed"),
        (&["--set", "hop.rate="], "no value; allowed: PATH=VALUE"),
        (&["--set", &many, "--set", &more], "700 of hop.loss × 700 of hop.jitter × 1 runs are more than 100000 runs"),
        (&["--set", "hop.loss=0,0.1", "--runs", "99999"], "are more than 100000 runs"),
        (&["--set", "hop.loss=0", "--seed", "9223372036854775807", "--runs", "2"], "allowed: seeds up to"),
        (&["--out", "theirs.csv"], "`theirs.csv` exists; choose another --out, or replace it with --force"),
        (&["--out", "theirs.csv", "--force"], "`theirs.csv` was not written by narrows and is left alone"),
        (&["--out", "S.toml/t.csv"], "S.toml"),
    ] {
        let output = place.run(&[&["sweep", "S.toml"], args].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}\n{said}\n{expected}");
        assert_eq!(place.files("").len(), 2, "nothing is left: {:?}", place.files(""));
    }
    assert_eq!(
        place.ok(&["sweep", "S.toml", "--set", "hop.loss=0,0.01", "--runs", "3", "--dry-run"]),
        "6 runs: 2 combinations × 3\n"
    );
    let refused = place.run(&["run", "S.toml", "--set", "hop.rate=5mbit,6mbit"]);
    assert!(text(&refused.stderr).contains("2 values; allowed: one here"), "{}", text(&refused.stderr));
}

#[test]
fn a_killed_sweep_continues_with_the_same_bytes() {
    let place = place("sweep-killed");
    let sets =
        ["--set", "hop.rate=5mbit,10mbit,20mbit,50mbit", "--set", "flow.rtt=10ms,20ms,40ms,80ms,160ms", "--runs", "4"];
    let args = |out| [&["sweep", "S.toml", "--jobs", "2", "--out", out], &sets[..]].concat();
    place.ok(&args("whole.csv"));
    for round in 0..3 {
        let mut child =
            place.command(&args("t.csv")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let index = place.path("t.csv.unfinished/runs.jsonl");
        let lines = || fs::read_to_string(&index).map_or(0, |text| text.lines().count());
        while lines() < 5 + round * 8 && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // SIGKILL.
        child.kill().expect("it is killed");
        child.wait().expect("a child");
        assert!(!place.path("t.csv").exists(), "a table appears when it is whole");
    }
    // Another command leaves it alone.
    let refused = place.run(&["sweep", "S.toml", "--set", "hop.rate=5mbit", "--out", "t.csv"]);
    assert!(text(&refused.stderr).contains("finished runs of a command that was stopped"), "{}", text(&refused.stderr));
    let output = place.run(&args("t.csv"));
    assert!(text(&output.stderr).contains("continuing with"), "{}", text(&output.stderr));
    assert!(fs::read(place.path("t.csv")).expect("the table") == fs::read(place.path("whole.csv")).expect("the table"));
    assert!(!place.path("t.csv.unfinished").exists());
    // An existing table is replaced only when asked.
    assert_eq!(place.run(&args("t.csv")).status.code(), Some(2));
    place.ok(&[&args("t.csv")[..], &["--force"]].concat());
}

#[test]
fn a_kept_run_that_was_changed_is_made_again() {
    let place = place("sweep-changed");
    let sets = ["--set", "hop.rate=5mbit,10mbit,20mbit,50mbit", "--runs", "8", "--jobs", "1"];
    let args = |out, more: &[&'static str]| [&["sweep", "S.toml", "--out", out], &sets[..], more].concat();
    let killed = |args: &[&str], unfinished: &str| {
        let mut child = place.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let index = place.path(unfinished).join("runs.jsonl");
        let lines = || fs::read_to_string(&index).map_or(0, |text| text.lines().count());
        while lines() < 4 && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it is killed");
        child.wait().expect("a child");
        (fs::read_to_string(&index).expect("an index"), index)
    };
    place.ok(&args("whole.csv", &[]));
    let (kept, index) = killed(&args("t.csv", &[]), "t.csv.unfinished");
    let (first, others) = kept.split_once('\n').expect("a line");
    let (key, values) = first.split_once("\"values\":").expect("a run");
    fs::write(&index, format!("{key}\"values\":{}\n{others}", values.replace('1', "2"))).expect("it is changed");
    place.ok(&args("t.csv", &[]));
    assert!(fs::read(place.path("t.csv")).expect("the table") == fs::read(place.path("whole.csv")).expect("the table"));

    // A result's folder is believed no more than a line.
    place.ok(&args("whole", &["--keep-series"]));
    killed(&args("t", &["--keep-series"]), "t.unfinished");
    let file = |folder: &str| place.path(folder).join("runs/0001-5mbit/seed-1/summary.json");
    let summary = |folder: &str| without_cost(json(&fs::read_to_string(file(folder)).expect("a summary")));
    let kept = fs::read_to_string(file("t.unfinished/results")).expect("the first run is kept");
    assert_eq!(summary("t.unfinished/results"), summary("whole"));
    fs::write(file("t.unfinished/results"), kept.replace('1', "2")).expect("it is changed");
    let output = place.run(&args("t", &["--keep-series"]));
    assert!(text(&output.stderr).contains("continuing with"), "{}", text(&output.stderr));
    assert_eq!(summary("t"), summary("whole"));
}

#[test]
fn a_trace_is_found_beside_the_file() {
    let place = Place::new("sweep-trace");
    place.write("in/S.toml", &SCENARIO.replace("\"20mbit\"", "{ trace = \"steady.mahi\" }"));
    place.write("in/steady.mahi", "1\n2\n3\n");
    place.ok(&["sweep", "in/S.toml", "--set", "flow.rtt=10ms,20ms", "--out", "t.csv"]);
    assert_eq!(cell(&rows(&place, "t.csv")[0], "hop.link.rate_kind"), "trace");
}
