//! Result folders: what goes in comes out, the bytes do not depend on the run, nothing is ever half there.
use narrows_results::folder;
use narrows_results::input::{self, TraceFiles};
use narrows_results::summary::*;
use narrows_results::{Cdf, RunResult, Series, summary_json};
use narrows_scenario::Scenario;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of its own, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("narrows-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn scenario(dir: &Path, rate: &str) -> Scenario {
    let text = format!(
        "[[hop]]\nname = \"a\"\nrate = {rate}\nqueue = \"fifo\"\n[[flow]]\nname = \"f\"\nrtt = \"20ms\"\nroute = [\"a\"]\n"
    );
    Scenario::parse(&text, "t.toml", &TraceFiles(dir)).unwrap()
}

fn result() -> RunResult {
    let quantiles = Quantiles { mean: 1.0 / 3.0, p50: 0.1 + 0.2, p95: 1e-9, p99: 12345.678901234567, max: 2.0 };
    let hop = HopSummary {
        name: "a".into(),
        queue: "fifo:limit=100p".into(),
        utilisation: 0.998,
        packets: 1_000_000,
        queue_packets: Some(quantiles),
        sojourn_ms: Some(quantiles),
        offered_packets: 1_000_010,
        drops: Drops { total: 10, by_reason: BTreeMap::from([("queue_full".into(), 10)]) },
        loss_rate: 1e-5,
        marks: 0,
    };
    let flow = FlowSummary {
        application: Some(Application {
            jitter_ms: Some(0.25),
            voice: Some(Voice::default()),
            ..Application::default()
        }),
        name: "f".into(),
        controller: "cubic".into(),
        goodput_mbit: 95.5,
        throughput_mbit: 99.0,
        rtt_ms: None,
        sojourn_ms: None,
        retransmits: Some(10),
        timeouts: Some(0),
        lost_packets: Some(10),
        completion_s: Some(Completion { count: 3, ..Completion::default() }),
        verdicts: None,
        route: None,
        five_tuple: None,
        active: None,
    };
    let summary = Summary {
        name: "t".into(),
        seed: u64::MAX,
        duration_s: 60.0,
        warmup_s: 0.0,
        hops: vec![hop],
        flows: vec![flow],
        fairness: Fairness { jain: 1.0 },
        world: None,
        timing: None,
        setup: None,
        cost: Cost { packets: 1, events: 2, wall_s: 0.5, packets_per_s: 2.0, peak_bytes: 3 },
    };
    let wave = |n: usize, k: f64| (0..n).map(|i| (i as f64 * 0.01, (i as f64 * k) % 7.3)).collect::<Vec<_>>();
    let series =
        |source: &str, metric: &str, n, k| Series { source: source.into(), metric: metric.into(), points: wave(n, k) };
    let series = vec![
        series("hop:a", "queue_packets", 3000, 1.0),
        series("hop:a", "throughput_mbit", 3000, 0.37),
        series("flow:f", "rtt_ms", 1, 1.0),
    ];
    let cdfs = vec![Cdf { source: "hop:a".into(), metric: "sojourn_ms".into(), points: vec![(0.5, 0.25), (1.5, 1.0)] }];
    RunResult { summary, series, cdfs }
}

#[test]
fn how_times_were_kept_stands_before_the_cost() {
    let dir = Folder::new("timing");
    let late_ms = Quantiles { mean: 0.02, p50: 0.01, p95: 0.05, p99: 0.08, max: 0.9 };
    let timing = Timing {
        packets: 1000,
        late_ms,
        late_share: 0.0,
        stamped_late_share: 0.0,
        overrun_packets: 3,
        unsent_packets: 2,
        broken_connections: 1,
        wakes: 900,
        cpu_s: 1.5,
    };
    let mut result = result();
    result.summary.timing = Some(timing);
    folder::write(&dir.0, &scenario(Path::new(""), "\"1mbit\""), &result).unwrap();
    assert_eq!(folder::read(&dir.0).unwrap().summary, result.summary);
    let text = std::fs::read_to_string(dir.0.join("summary.json")).unwrap();
    let place = |key: &str| text.find(&format!("\n  \"{key}\"")).unwrap();
    assert!(place("fairness") < place("timing") && place("timing") < place("cost"), "{text}");
}

#[test]
fn a_folder_says_which_kernel_sent_and_how_its_time_passed() {
    let dir = Folder::new("world");
    let mut result = result();
    assert!(!summary_json(&result.summary).contains("\"world\""), "the simulator has no kernel");
    for time in [Passing::Virtual, Passing::Real] {
        result.summary.world = Some(MadeIn { name: "kernel".into(), linux: "7.2.12+deb13-cloud-amd64".into(), time });
        folder::write(&dir.0, &scenario(Path::new(""), "\"1mbit\""), &result).unwrap();
        assert_eq!(folder::read(&dir.0).unwrap().summary, result.summary);
        fs::remove_dir_all(&dir.0).unwrap();
    }
    let text = summary_json(&result.summary);
    let world = concat!(
        "  \"world\": {\n    \"name\": \"kernel\",\n",
        "    \"linux\": \"7.2.12+deb13-cloud-amd64\",\n    \"time\": \"real\"\n  },"
    );
    assert!(text.contains(world), "{text}");
}

#[test]
fn what_goes_in_comes_out() {
    let dir = Folder::new("in-out");
    let (scenario, result) = (scenario(Path::new(""), "\"1mbit\""), result());
    folder::write(&dir.0, &scenario, &result).unwrap();
    let stored = folder::read(&dir.0).unwrap();
    assert_eq!(stored.summary, result.summary);
    let text = std::fs::read_to_string(dir.0.join("summary.json")).unwrap();
    assert!(!text.contains("timing"), "virtual time keeps its times:\n{text}");
    assert_eq!(stored.series, result.series);
    assert_eq!(stored.cdfs, result.cdfs);
    assert_eq!(input::load(dir.0.join("scenario.toml")).unwrap(), scenario);
    assert_eq!(dir.names(), ["cdf.parquet", "scenario.toml", "series.parquet", "summary.json"]);
    assert_eq!(fs::read_to_string(dir.0.join("summary.json")).unwrap(), summary_json(&result.summary));
}

#[test]
fn more_points_than_a_row_group_holds() {
    let dir = Folder::new("groups");
    let mut result = result();
    result.series[1].points = (0..300_000).map(|i| (f64::from(i), f64::from(i % 100))).collect();
    folder::write(&dir.0, &scenario(Path::new(""), "\"1mbit\""), &result).unwrap();
    assert!(folder::read(&dir.0).unwrap().series == result.series);
}

#[test]
fn the_same_result_gives_the_same_bytes() {
    let (one, two) = (Folder::new("one"), Folder::new("two"));
    for dir in [&one, &two] {
        folder::write(&dir.0, &scenario(Path::new(""), "\"1mbit\""), &result()).unwrap();
    }
    for name in one.names() {
        assert_eq!(fs::read(one.0.join(&name)).unwrap(), fs::read(two.0.join(&name)).unwrap(), "{name}");
    }
}

#[test]
fn the_summary_keeps_its_order_and_says_null() {
    let json = summary_json(&result().summary);
    let keys =
        ["\"name\"", "\"seed\"", "\"duration_s\"", "\"warmup_s\"", "\"hops\"", "\"flows\"", "\"fairness\"", "\"cost\""];
    let at: Vec<usize> = keys.iter().map(|key| json.find(&format!("\n  {key}: ")).unwrap()).collect();
    assert!(at.is_sorted(), "{json}");
    assert!(json.contains("\"rtt_ms\": null"));
    let mut other = result().summary;
    other.cost.wall_s = 99.0;
    assert_eq!(other.without_cost(), result().summary.without_cost());
    other.hops[0].marks = 1;
    assert_ne!(other.without_cost(), result().summary.without_cost());
}

#[test]
fn a_folder_with_a_trace_runs_again_from_itself() {
    let (from, to) = (Folder::new("trace-from"), Folder::new("trace-to"));
    fs::create_dir_all(&from.0).unwrap();
    fs::write(from.0.join("lte.mahi"), "0\n3\n3\n10\n").unwrap();
    let scenario = scenario(&from.0, "{ trace = \"lte.mahi\" }");
    folder::write(&to.0, &scenario, &result()).unwrap();
    let again = input::load(to.0.join("scenario.toml")).unwrap();
    use narrows_scenario::RateSpec::Trace;
    let (Trace { opportunities: a, period: p, .. }, Trace { opportunities: b, period: q, .. }) =
        (&scenario.hops[0].rate, &again.hops[0].rate)
    else {
        panic!("two traces");
    };
    assert_eq!((a, p), (b, q));
    assert_eq!(a.len(), 4);
}

#[test]
fn a_folder_with_losses_and_a_table_runs_again_from_itself() {
    let (from, to, third) = (Folder::new("files-from"), Folder::new("files-to"), Folder::new("files-third"));
    fs::create_dir_all(from.0.join("data")).unwrap();
    fs::write(from.0.join("data/rain.csv"), "time,loss_percent\n0,0\n0.25,33.3\n1,2\n").unwrap();
    fs::write(from.0.join("outcomes"), "0010 1\n").unwrap();
    fs::write(from.0.join("own.dist"), "# two\n-8192 8192\n").unwrap();
    let delays = "delay = \"9ms\"\njitter = \"2ms\"\ndistribution = { file = \"own.dist\" }";
    let hop =
        |name: &str, keys: &str| format!("[[hop]]\nname = \"{name}\"\nrate = \"9mbit\"\nqueue = \"fifo\"\n{keys}\n");
    let text = hop("a", &format!("loss = \"trace:data/rain.csv\"\n{delays}"))
        + &hop("b", "loss = { trace = \"outcomes\" }")
        + "[[flow]]\nname = \"f\"\nrtt = \"40ms\"\nroute = [\"a\", \"b\"]\n";
    let scenario = Scenario::parse(&text, "t.toml", &TraceFiles(&from.0)).unwrap();
    folder::write(&to.0, &scenario, &result()).unwrap();
    let names = ["hop0-own.dist", "hop0-rain.csv.loss", "hop1-outcomes.loss"];
    assert!(names.iter().all(|name| to.names().contains(&(*name).to_owned())), "{:?}", to.names());
    let again = input::load(to.0.join("scenario.toml")).unwrap();
    let same = |n: usize| narrows_scenario::Hop::differences([&scenario.hops[n], &again.hops[n]], [&scenario, &again]);
    assert_eq!((same(0), same(1)), (vec![], vec![]), "the names of files are no difference");
    assert_ne!(scenario.hops[0].loss, scenario.hops[1].loss);
    // The second folder is as the first one.
    folder::write(&third.0, &again, &result()).unwrap();
    let read = |dir: &Folder, name: &str| fs::read_to_string(dir.0.join(name)).unwrap();
    for name in names.iter().chain(&["scenario.toml"]) {
        assert_eq!(read(&to, name), read(&third, name), "{name}");
    }
}

#[test]
fn a_trace_that_is_wrong_names_its_line() {
    let dir = Folder::new("bad-trace");
    fs::create_dir_all(&dir.0).unwrap();
    let file = dir.0.join("t.mahi");
    let text = "[[hop]]\nname = \"a\"\nrate = { trace = \"t.mahi\" }\nqueue = \"fifo\"\n";
    let cases = [
        (
            "1\n2\nx\n",
            ":3: not a delivery opportunity; allowed: a whole number of milliseconds on each line, of at most a year",
        ),
        (
            "1\n-2\n",
            ":2: not a delivery opportunity; allowed: a whole number of milliseconds on each line, of at most a year",
        ),
        (
            "fast\n",
            ":1: not a delivery opportunity; allowed: a whole number of milliseconds on each line, of at most a year; \
             or CSV with times and rates, or a log of mahimahi's links",
        ),
        ("0,20mbit\n1,fast\n", ":2: not a rate; allowed: a rate with its unit, such as 20mbit"),
        ("5\n4\n", ":2: 4 ms after 5 ms; allowed: milliseconds that do not decrease"),
        ("", ":1: an empty trace; allowed: at least one millisecond"),
        ("0\n0\n", ":2: the trace ends at 0 ms; allowed: more, as its last line is its period"),
    ];
    for (trace, message) in cases {
        fs::write(&file, trace).unwrap();
        let error = Scenario::parse(text, "S.toml", &TraceFiles(&dir.0)).unwrap_err();
        assert_eq!(error.to_string(), format!("{}{message}", file.display()));
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let error = Scenario::parse(text, "S.toml", &TraceFiles(&dir.0)).unwrap_err();
    let problem = format!("cannot read trace \"{}\": not a regular file", file.display());
    assert_eq!(error.to_string(), format!("S.toml:3: {problem} (built-in traces: lte, 5g, wifi, starlink)"));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = Folder::new("blocked");
    fs::write(&dir.0, "a file where the folder should be").unwrap();
    let scenario = scenario(Path::new(""), "\"1mbit\"");
    let error = folder::write(&dir.0, &scenario, &result()).unwrap_err();
    let expected = format!("{}: cannot make the result folder: ", dir.0.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    fs::remove_file(&dir.0).unwrap();
    // A name that is taken by a folder: the write fails, says where, and leaves no summary behind.
    fs::create_dir_all(dir.0.join("series.parquet/x")).unwrap();
    let error = folder::write(&dir.0, &scenario, &result()).unwrap_err();
    assert_eq!(error.path, dir.0.join("series.parquet"));
    assert!(!dir.0.join("summary.json").exists());
}

#[test]
fn a_result_is_never_overwritten() {
    let dir = Folder::new("twice");
    let scenario = scenario(Path::new(""), "\"1mbit\"");
    folder::write(&dir.0, &scenario, &result()).unwrap();
    let mut other = result();
    other.summary.seed = 7;
    let error = folder::write(&dir.0, &scenario, &other).unwrap_err();
    assert!(error.to_string().contains("scenario.toml: cannot write: File exists"), "{error}");
    assert_eq!(folder::read(&dir.0).unwrap().summary, result().summary);
}

/// A FIFO has no end until somebody opens its other side: whoever reads it hangs.
#[cfg(unix)]
#[test]
fn links_and_fifos_are_not_written_through_and_not_waited_for() {
    let dir = Folder::new("odd");
    let scenario = scenario(Path::new(""), "\"1mbit\"");
    for name in folder::files(&scenario) {
        let _ = fs::remove_dir_all(&dir.0);
        fs::create_dir_all(dir.0.join("result")).unwrap();
        let (result_dir, victim) = (dir.0.join("result"), dir.0.join("victim"));
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, result_dir.join(&name)).unwrap();
        assert_eq!(folder::write(&result_dir, &scenario, &result()).unwrap_err().path, result_dir.join(&name));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        fs::remove_dir_all(&result_dir).unwrap();
        folder::write(&result_dir, &scenario, &result()).unwrap();
        fs::remove_file(result_dir.join(&name)).unwrap();
        let fifo = std::process::Command::new("mkfifo").arg(result_dir.join(&name)).status();
        assert!(fifo.unwrap().success());
        match name.as_str() {
            // It is not read again.
            folder::SCENARIO => drop(folder::read(&result_dir).unwrap()),
            _ => {
                let said = folder::read(&result_dir).unwrap_err().to_string();
                assert!(said.ends_with(&format!("{name}: cannot read this result: not a regular file")), "{said}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    let dir = Folder::new("unreadable");
    let read = || folder::read(&dir.0).unwrap_err().to_string();
    assert!(read().contains("summary.json: cannot read this result: "), "{}", read());
    folder::write(&dir.0, &scenario(Path::new(""), "\"1mbit\""), &result()).unwrap();
    let file = |name: &str| dir.0.join(name);
    fs::copy(file("cdf.parquet"), file("series.parquet")).unwrap();
    let expected = "its columns are source, metric, value, share, not source, metric, time_s, value";
    assert!(read().contains(expected), "{}", read());
    let bytes = fs::read(file("cdf.parquet")).unwrap();
    fs::write(file("series.parquet"), &bytes[..bytes.len() / 2]).unwrap();
    assert!(read().contains("series.parquet: not a table of curves: "), "{}", read());
    fs::remove_file(file("series.parquet")).unwrap();
    assert!(read().contains("series.parquet: cannot read this result: "), "{}", read());
    fs::write(file("summary.json"), "{\n  \"name\": 3\n}").unwrap();
    assert!(
        read().contains("summary.json: not a summary: invalid type: integer `3`, expected a string at line 2"),
        "{}",
        read()
    );
}
