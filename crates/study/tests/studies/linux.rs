//! `experiments/linux/recorded.csv` has what the judged columns of the measured runs have.
use narrows_study::RecordedRuns;
use std::collections::HashMap;
use std::path::Path;

type Row = HashMap<String, String>;

fn rows(file: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/linux").join(file);
    let mut table = csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    table.deserialize().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The name of the cell that a run is of.
fn cell(run: &Row) -> String {
    let (set, udp) = run["set"].split_once("_m").map_or((&*run["set"], None), |(set, count)| (set, Some(count)));
    let words: Vec<&str> = run["qdisc"].split(' ').collect();
    let queue = match words[..] {
        ["pfifo", _, limit] => format!("fifo {limit}"),
        _ => words[0].to_owned(),
    };
    let controllers: Vec<&str> =
        run["cc"].split('+').map(|name| if name == "reno" { "new_reno" } else { name }).collect();
    let rest = match (set, udp) {
        ("T2", _) => format!(" from {}s", run["warmup_s"]),
        (_, Some(count)) => format!(" {count} UDP"),
        _ => String::new(),
    };
    let (controllers, flows, rate, rtt) =
        (controllers.join("+"), &run["n_flows"], &run["rate_mbit"], &run["base_rtt_ms"]);
    format!("{set} {controllers} x{flows} {rate}mbit {rtt}ms {queue}{rest}")
}

#[test]
fn the_recorded_figures_are_those_of_the_measured_runs() {
    let text = narrows_study::embedded("linux", narrows_study::RECORDED).expect("it is there");
    let recorded = RecordedRuns::parse(text, "recorded.csv").unwrap_or_else(|error| panic!("{error}"));
    let mut expected: HashMap<(String, String, &str), Vec<f64>> = HashMap::new();
    let (thin, udp) = (rows("unseen/thin.csv"), rows("unseen/udp.csv"));
    for (runs, fitted) in [(rows("truth.csv"), true), (rows("unseen/truth.csv"), false)] {
        for run in &runs {
            let is_with_streams = run["set"].starts_with("T3");
            let figure = ["unseen cells", "unseen streams", "fitted cells"]
                [2 * usize::from(fitted) + usize::from(is_with_streams)];
            let mut add = |metric, row: &Row, column: &str, factor: f64| {
                let value: f64 = row[column].parse().expect("a number");
                expected.entry((figure.to_owned(), cell(run), metric)).or_default().push(factor * value);
            };
            add("utilisation", run, "utilisation", 100.0);
            add("queue", run, "mean_queue_packets", 1.0);
            add("loss", run, "loss_rate", 100.0);
            add("rtt", run, "mean_srtt_ms", 1.0);
            let is_of_run = |row: &&Row| ["set", "qdisc", "n_flows", "seed"].iter().all(|key| row[*key] == run[*key]);
            for stream in thin.iter().chain(&udp).filter(is_of_run) {
                match stream.get("probe").map(String::as_str) {
                    Some("tcp") => add("thin TCP", stream, "p50_ms", 1.0),
                    _ => add("UDP", stream, "mean_ms", 1.0),
                }
            }
        }
    }
    assert_eq!((expected.len(), text.lines().count()), (284, 285), "a line per figure, and the heading");
    for ((figure, cell, metric), runs) in expected {
        let found = recorded.find(&figure, &cell, metric).unwrap_or_else(|| panic!("{figure}, {cell}: {metric}"));
        let is_same = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        assert!(
            found.len() == runs.len() && found.iter().zip(&runs).all(is_same),
            "{cell}, {metric}: {found:?} {runs:?}"
        );
    }
}
