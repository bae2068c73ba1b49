//! Verdicts as tables and curves.
use super::{Case, Reading, Spread, Verdict, Verdicts};
use crate::report::Report;
use crate::testbed::FLOW;
use narrows_report::chart::{Chart, ChartKind, Line};
use narrows_report::sheet::{Head, Sheet};

/// A table of all verdicts, a row for each expectation.
pub fn overview(subject: &str, all: &[Verdicts]) -> Sheet {
    let count = |verdict| all.iter().filter(|one| one.verdict == verdict).count();
    let (holds, fails, notes) = (count(Verdict::Holds), count(Verdict::Fails), count(Verdict::Note));
    let noted = if notes > 0 { format!(", {notes} cannot be judged from outside") } else { String::new() };
    Sheet {
        heading: "Testbed".to_owned(),
        title: subject.to_owned(),
        source: format!("{holds} of {} cases hold, {fails} fail{noted}", all.len()),
        heads: heads(true),
        names: 3,
        rows: all.iter().flat_map(rows_of).collect(),
        ..Sheet::default()
    }
}

/// A case with its reasons, and the subject's rate beside the reference's.
pub fn sheet(case: &Case, verdicts: &Verdicts, subject: (&str, &Report), reference: &Report) -> Sheet {
    let (name, report) = subject;
    let beside = format!("reference: {}", case.reference.name());
    let lines = [curve(name, report, 0), curve(&beside, reference, 1)].into_iter().flatten().collect();
    Sheet {
        heading: case.name.clone(),
        title: case.title.clone(),
        source: format!("{}; {} runs", case.source, verdicts.runs),
        about: case.why.clone(),
        heads: heads(false),
        names: 2,
        rows: verdicts.readings.iter().map(row).collect(),
        holds: verdicts
            .readings
            .iter()
            .map(|reading| (reading.because.clone(), reading.verdict != Verdict::Fails))
            .collect(),
        charts: vec![Chart {
            kind: ChartKind::Series,
            title: "Rate of the flow under test".to_owned(),
            x: "time, s".to_owned(),
            y: "throughput, Mbit/s".to_owned(),
            lines,
            grid: None,
        }],
        listings: vec![("The network".to_owned(), case.scenario.to_toml())],
        ..Sheet::default()
    }
}

fn heads(with_case: bool) -> Vec<Head> {
    let head = |&(name, which): &(&str, &str)| Head { name: name.to_owned(), which: which.to_owned() };
    let case: &[(&str, &str)] = if with_case { &[("case", "")] } else { &[] };
    let rest = [("verdict", ""), ("figure", "from to"), ("measured", ""), ("expected", ""), ("reference", "")];
    case.iter().chain(&rest).map(head).collect()
}

fn rows_of(verdicts: &Verdicts) -> Vec<Vec<String>> {
    if let Some(failure) = &verdicts.failure {
        let rest = ["FAILS", failure, "", "", ""].map(str::to_owned);
        return vec![[vec![verdicts.case.clone()], rest.to_vec()].concat()];
    }
    let one = |(n, reading): (usize, &Reading)| {
        let case = if n == 0 { verdicts.case.clone() } else { String::new() };
        [vec![case], row(reading)].concat()
    };
    verdicts.readings.iter().enumerate().map(one).collect()
}

fn row(reading: &Reading) -> Vec<String> {
    let verdict = word(reading.verdict).to_owned();
    let unit = if reading.unit.is_empty() { String::new() } else { format!(" {}", reading.unit) };
    let shown = |all: Option<Spread>| all.map_or("not shown".to_owned(), |all| format!("{}{unit}", between(all)));
    let figure = format!("{} {} to {} s", reading.figure, reading.from_s, reading.to_s);
    let bound =
        reading.bound.map_or(String::new(), |bound| format!("{} {}{unit}", &reading.expected[..2], digits(bound)));
    vec![verdict, figure, shown(reading.measured), bound, shown(reading.reference)]
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "FAILS",
        Verdict::Note => "note",
    }
}

fn between(all: Spread) -> String {
    let (min, max) = (digits(all.min), digits(all.max));
    if min == max { min } else { format!("{min} to {max}") }
}

/// Three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn curve(name: &str, report: &Report, colour: usize) -> Option<Line> {
    let source = format!("flow:{FLOW}");
    let is_rate = |series: &&narrows_results::Series| series.source == source && series.metric == "throughput_mbit";
    let series = report.result().series.iter().find(is_rate)?;
    let (x, y) = series.points.iter().copied().unzip();
    Some(Line { name: name.to_owned(), colour, published: false, x, y, spans: None })
}
