//! From result folders to comparisons, pages and differences.
use crate::sample::{QUEUES, comparison, run};
use narrows_report::terminal::Style;
use narrows_report::{Comparison, Diff, diff, terminal, write_page};
use narrows_results::Summary;
use narrows_results::folder;
use narrows_scenario::{NoTraces, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

/// An empty folder of this test's own.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("folders").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("the target folder can be written");
    dir
}

fn scenario() -> Scenario {
    let text = "duration = \"60s\"\n[[hop]]\nname = \"bottleneck\"\nrate = \"100mbit\"\nqueue = \"fifo\"\n\
        [[flow]]\nname = \"cubic\"\nrtt = \"50ms\"\nroute = [\"bottleneck\"]\n";
    Scenario::parse(text, "sample.toml", &NoTraces).expect("the sample is a scenario")
}

/// Writes a comparison as the command line does: queues in this order, under folder names of their own.
fn store(dir: &Path, comparison: &Comparison) {
    let mut summaries: Vec<&Summary> = Vec::new();
    for group in &comparison.groups {
        for run in &group.runs {
            let name = group.label.replace([':', '='], "-");
            let sub = dir.join(name).join(format!("seed-{}", run.result.summary.seed));
            folder::write(&sub, &scenario(), &run.result).expect("a result can be written");
            summaries.push(&run.result.summary);
        }
    }
    let json = serde_json::to_string_pretty(&summaries).expect("summaries are JSON");
    fs::write(dir.join(folder::SUMMARY), json).expect("the list can be written");
}

#[test]
fn groups_follow_the_list_and_are_called_by_their_queues() {
    let dir = scratch("order");
    let queues = [QUEUES[4], crate::sample::Queue("fifo:limit=100p", 100.0, "queue_full"), QUEUES[1]];
    let mut written = comparison(&queues, &["cubic"], 3);
    store(&dir, &written);
    let read = Comparison::load(&dir).expect("it can be read");
    let labels: Vec<&str> = read.groups.iter().map(|g| g.label.as_str()).collect();
    assert_eq!(labels, ["fq_codel", "fifo:limit=100p", "codel"]);
    for run in written.groups.iter_mut().flat_map(|group| &mut group.runs) {
        run.scenario = Some(scenario());
        run.scenario_text = Some(scenario().to_toml());
    }
    assert_eq!(read, written);
}

#[test]
fn repeated_runs_of_a_scenario_and_single_runs_are_results_too() {
    let dir = scratch("repeated");
    for seed in [10, 9, 2] {
        let result = run(QUEUES[0], &["cubic"], seed).result;
        folder::write(&dir.join(format!("seed-{seed}")), &scenario(), &result).expect("a result can be written");
    }
    let read = Comparison::load(&dir).expect("it can be read");
    let seeds: Vec<u64> = read.runs().map(|run| run.result.summary.seed).collect();
    assert_eq!((read.groups.len(), seeds), (1, vec![2, 9, 10]), "without a list, by number");
    let one = Comparison::load(&dir.join("seed-9")).expect("it can be read");
    assert_eq!((one.groups.len(), one.groups[0].label.as_str()), (1, "fifo"));
}

#[test]
fn what_is_no_result_is_named() {
    let dir = scratch("none");
    let message = Comparison::load(&dir).expect_err("there is nothing").to_string();
    assert!(message.contains("none") && message.contains("summary.json"), "{message}");
    assert!(Comparison::load(&dir.join("nowhere")).is_err());
    store(&dir, &comparison(&QUEUES[..1], &["cubic"], 1));
    fs::write(dir.join("fifo/seed-1/series.parquet"), b"PAR1 no").expect("a file can be spoiled");
    let message = Comparison::load(&dir).expect_err("it is spoiled").to_string();
    assert!(message.contains("series.parquet"), "{message}");
}

#[test]
fn page_and_figures_are_written_whole_and_alike() {
    let dir = scratch("page");
    store(&dir, &comparison(&QUEUES, &["cubic"], 1));
    let read = Comparison::load(&dir).expect("it can be read");
    let written = write_page(&read, &dir).expect("a page can be written");
    assert_eq!(written.len(), 7, "{written:?}");
    let bytes: Vec<Vec<u8>> = written.iter().map(|path| fs::read(path).expect("it was written")).collect();
    assert!(String::from_utf8_lossy(&bytes[0]).contains("100 Mbit/s"), "the page says what was run");
    assert_eq!(write_page(&read, &dir).expect("again"), written);
    let again: Vec<Vec<u8>> = written.iter().map(|path| fs::read(path).expect("it was written")).collect();
    assert!(bytes == again, "the same result gives the same bytes");
    let stray = |dir: &Path| {
        let entries = fs::read_dir(dir).expect("it is there").filter_map(Result::ok);
        entries.filter(|e| e.file_name().to_string_lossy().starts_with('.')).count()
    };
    assert_eq!(stray(&dir) + stray(&dir.join("svg")), 0, "no temporary files stay");
}

#[test]
fn a_difference_is_a_table() {
    let (first, second) = (scratch("diff-a"), scratch("diff-b"));
    store(&first, &comparison(&QUEUES[..2], &["cubic"], 3));
    let mut other = comparison(&[QUEUES[0], QUEUES[2]], &["cubic"], 3);
    for (n, run) in other.groups[0].runs.iter_mut().enumerate() {
        run.result.summary.hops[0].utilisation -= 0.25 + 1e-6 * n as f64;
        run.result.summary.hops[0].queue_packets.as_mut().expect("it is measured").mean += 0.5;
    }
    store(&second, &other);
    let text = diff(&first, &second).expect("both can be read").text(["first", "second"], &Style::default());
    let row = |figure: &str| text.lines().find(|line| line.starts_with(figure)).unwrap_or_default().to_owned();
    let cells =
        |figure: &str| row(figure).split("  ").map(str::trim).filter(|c| !c.is_empty()).map(str::to_owned).collect();
    let utilisation: Vec<String> = cells("utilisation");
    assert_eq!(utilisation, ["utilisation (%)", "99.90 ±0.02", "74.90 ±0.03", "-25.00", "-25.0", "*"]);
    assert!(!row("queue mean").ends_with('*'), "half a packet is within the spread of 9:\n{text}");
    assert!(text.contains("only in a: codel") && text.contains("only in b: sfq"), "{text}");
}

#[test]
fn single_groups_are_compared_whatever_they_are_called() {
    let (a, b) = (comparison(&QUEUES[..1], &["cubic"], 1), comparison(&QUEUES[1..2], &["cubic"], 1));
    let diff = Diff::between(&a, &b);
    assert_eq!(diff.sections[0].name, "fifo → codel · bottleneck");
    let drops = diff.sections[0].figures.iter().find(|c| c.figure == "drops").expect("drops are compared");
    assert_eq!((drops.difference(), drops.is_significant()), (Some(30.0), None), "one run each: no verdict");
    assert_eq!(drops.percent().map(f64::round), Some(68.0));
}

#[test]
fn what_only_one_world_knows_has_a_dash_and_times_kept_are_said() {
    let (first, second) = (scratch("worlds-a"), scratch("worlds-b"));
    store(&first, &comparison(&QUEUES[..1], &["cubic"], 1));
    let mut live = comparison(&QUEUES[..1], &["cubic"], 1);
    let summary = &mut live.groups[0].runs[0].result.summary;
    summary.flows[0].rtt_ms = None;
    summary.hops[0].marks = 0;
    summary.timing = Some(crate::sample::timing(0.0035));
    store(&second, &live);
    let text = diff(&first, &second).expect("both can be read").text(["first", "second"], &Style::default());
    let row = |figure: &str| text.lines().find(|line| line.starts_with(figure)).unwrap_or_default().to_owned();
    let cells: Vec<String> = row("RTT mean").split_whitespace().skip(3).map(str::to_owned).collect();
    assert_eq!(cells, ["133.4", "–", "–", "–"], "{text}");
    assert!(!text.contains("marks") && !text.contains("completed"), "in neither:\n{text}");
    let end = "\nb  kept its times: 99 % within 0.08 ms, at worst 4 ms\n\
               b  fell behind by 4 ms, 0.35 % of packets by more than 1 ms\n";
    assert!(text.contains(end), "{text}");
    let back = Diff::between(&live, &comparison(&QUEUES[..1], &["cubic"], 1));
    let of_flow = back.sections.last().expect("there are flows");
    let rtt = of_flow.figures.iter().find(|change| change.figure == "RTT mean (ms)").expect("one of them knows it");
    assert_eq!((rtt.first, rtt.difference(), rtt.percent(), rtt.is_significant()), (None, None, None, None));
    assert!(rtt.second.is_some() && back.notes[1].is_empty());
}

/// A result may be anybody's: its names are text in a table, in a page and in a figure, and nothing else.
#[test]
fn regression_names_of_a_result_from_elsewhere_are_harmless_everywhere() {
    let hostile = "x\x1b[31m\u{9b}2J\0\u{202e}]]></script><script>alert(1)</script>&\"'";
    let dir = scratch("hostile");
    let mut written = comparison(&QUEUES[..2], &["cubic", hostile], 1);
    for run in written.groups.iter_mut().flat_map(|group| &mut group.runs) {
        let summary = &mut run.result.summary;
        summary.name = hostile.into();
        summary.hops[0].queue = format!("{}{hostile}", summary.hops[0].queue);
        summary.hops[0].name = hostile.into();
        summary.hops[0].drops.by_reason = [(hostile.to_owned(), 3)].into();
        summary.flows[0].controller = hostile.into();
        run.result.series.iter_mut().for_each(|series| series.source = series.source.replace("bottleneck", hostile));
    }
    store(&dir, &written);
    let read = Comparison::load(&dir).expect("it can be read");
    let shown = |c: char| !c.is_control() || c == '\n';
    let difference = diff(&dir, &dir).expect("it is a result").text([hostile, hostile], &Style::default());
    let text = terminal::comparison(&read, &Style::default()) + &difference;
    assert!(text.chars().all(shown) && !text.contains('\u{202e}'), "{text:?}");
    let files = write_page(&read, &dir).expect("it can be drawn");
    assert!(files.len() > 2, "{files:?}");
    for file in files {
        let drawn = fs::read_to_string(&file).expect("UTF-8");
        assert!(drawn.chars().all(shown) && !drawn.contains('\u{202e}'), "{}", file.display());
        assert!(!drawn.contains("<script>alert"), "{}", file.display());
        if file.extension().is_some_and(|ext| ext == "svg") {
            let parsed = roxmltree::Document::parse(&drawn).expect("it is XML");
            assert!(!parsed.descendants().any(|node| node.has_tag_name("script")));
        }
    }
}
