//! The figures as sheets, as CSV and as JSON.
use super::figures::CellFigure;
use super::rule::{self, Score};
use super::{Outcome, Reproduced};
use narrows_core::registry::Registered;
use narrows_report::sheet::{Head, Sheet};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A sheet for each figure of a paper.
pub(super) fn sheets(reproduced: &[Reproduced], release: &str) -> Vec<Sheet> {
    reproduced.iter().map(|figure| sheet(figure, release)).collect()
}

fn sheet(figure: &Reproduced, release: &str) -> Sheet {
    let study = &figure.study;
    let head = |name: &str, which: &str| Head { name: name.to_owned(), which: which.to_owned() };
    let mut heads: Vec<Head> = study.row_axes().map(|axis| head(&axis.name.replace('_', " "), "")).collect();
    heads.push(head("figure", ""));
    let names = heads.len();
    heads.extend([head("published", ""), head("kernel", ""), head("simulator", ""), head("allowed", ""), head("", "")]);
    let rows = figure.outcomes.iter().flat_map(|outcome| {
        outcome.figures.iter().enumerate().map(|(n, figure)| {
            let labels = outcome.labels.iter().map(|label| if n == 0 { label.clone() } else { String::new() });
            labels.chain(cells(figure)).collect()
        })
    });
    let mut durations: Vec<String> = figure.outcomes.iter().map(|o| format!("{} s", o.duration_s)).collect();
    durations.dedup();
    let mut remarks: Vec<String> = figure.note.iter().cloned().collect();
    if !figure.unseen.is_empty() {
        remarks.push(format!(
            "Not in the table, because the kernel's world does not see them: {}.",
            figure.unseen.join(", ")
        ));
    }
    remarks.extend(figure.skipped.iter().map(|reason| format!("Left out: {reason}.")));
    let here = if durations.is_empty() {
        "no cell of it runs here".to_owned()
    } else {
        let mut runs: Vec<String> = figure.outcomes.iter().map(|o| o.runs.to_string()).collect();
        runs.dedup();
        let word = if runs == ["1"] { "run" } else { "runs" };
        format!(
            "here {} {word} of each cell in Linux {release} and as many in the simulator, {}",
            runs.join(" or "),
            durations.join(", ")
        )
    };
    Sheet {
        heading: format!("{}, {}", figure.paper, study.figure),
        title: study.title.clone(),
        source: format!("{}; {here}", study.source),
        about: String::new(),
        heads,
        names,
        rows: rows.collect(),
        claims: Vec::new(),
        holds: Vec::new(),
        remarks: remarks.into_iter().map(|remark| (String::new(), remark)).collect(),
        charts: Vec::new(),
        listings: Vec::new(),
    }
}

/// Name, published, kernel, simulator, the allowed difference, the verdict.
fn cells(figure: &CellFigure) -> [String; 6] {
    let d = figure.decimals;
    let number = |value: f64| format!("{value:.d$}");
    let unit = if figure.unit.is_empty() { String::new() } else { format!(", {}", figure.unit) };
    [
        format!("{}{unit}", figure.name),
        figure.published.clone().unwrap_or_default(),
        number(figure.kernel),
        figure.simulator.map_or("–".to_owned(), number),
        figure.tolerance.map_or(String::new(), |tolerance| format!("± {tolerance:.d$}")),
        match figure.holds() {
            Some(true) => "holds".to_owned(),
            Some(false) => "OFF".to_owned(),
            None => String::new(),
        },
    ]
}

/// How many figures of our disciplines are within the rule, and of Linux's.
pub(super) fn scores(reproduced: &[Reproduced]) -> [Score; 2] {
    [true, false].map(|ours| {
        let outcomes = reproduced.iter().flat_map(|figure| &figure.outcomes).filter(|outcome| outcome.is_ours == ours);
        Score::of(outcomes.flat_map(|outcome| outcome.figures.iter().filter_map(CellFigure::holds)))
    })
}

/// The rule, the figures outside it, and the score; whether it is met.
pub(super) fn verdict(reproduced: &[Reproduced]) -> (String, bool) {
    let mut out = format!("Kernel and simulator, figure by figure: {}.\n", rule::WORDS);
    for figure in reproduced {
        for outcome in &figure.outcomes {
            for off in outcome.figures.iter().filter(|figure| figure.holds() == Some(false)) {
                let _ = writeln!(out, "off: {}", off_words(figure, outcome, off));
            }
        }
    }
    let [ours, linux] = scores(reproduced);
    let _ = match ours.percent() {
        None => writeln!(out, "No figure of our disciplines was measured."),
        Some(percent) => writeln!(
            out,
            "Our disciplines: {} of {} figures within the rule, {percent:.1} %; asked for: {} %.",
            ours.within,
            ours.of,
            rule::ASKED
        ),
    };
    if linux.of > 0 {
        let _ = writeln!(out, "Linux's own disciplines, for comparison: {} of {} figures.", linux.within, linux.of);
    }
    (out, ours.is_met())
}

fn off_words(figure: &Reproduced, outcome: &Outcome, off: &CellFigure) -> String {
    let [name, _, kernel, simulator, allowed, _] = cells(off);
    let whose = if outcome.is_ours { "" } else { " (Linux's own)" };
    let place = [&[figure.paper.to_owned(), figure.study.figure.clone()][..], &outcome.labels].concat().join(", ");
    format!("{place}{whose}: {name}: kernel {kernel}, simulator {simulator}, allowed {allowed}")
}

/// Of the file of figures.
const COLUMNS: [&str; 14] = [
    "paper",
    "figure",
    "cell",
    "queue",
    "ours",
    "runs",
    "duration_s",
    "metric",
    "unit",
    "published",
    "kernel",
    "simulator",
    "tolerance",
    "holds",
];

/// One line per figure.
pub(super) fn csv(reproduced: &[Reproduced]) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = out.write_record(COLUMNS);
    for figure in reproduced {
        for outcome in &figure.outcomes {
            for one in &outcome.figures {
                let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                let fields = [
                    figure.paper.to_owned(),
                    figure.study.figure.clone(),
                    outcome.labels.join("; "),
                    outcome.queue.to_string(),
                    outcome.is_ours.to_string(),
                    outcome.runs.to_string(),
                    outcome.duration_s.to_string(),
                    one.name.clone(),
                    one.unit.clone(),
                    one.published.clone().unwrap_or_default(),
                    one.kernel.to_string(),
                    number(one.simulator),
                    number(one.tolerance),
                    one.holds().map_or(String::new(), |holds| holds.to_string()),
                ];
                let _ = out.write_record(fields);
            }
        }
    }
    String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Everything as JSON.
pub(super) fn json(reproduced: &[Reproduced], release: &str) -> Value {
    let figure = |figure: &CellFigure| {
        json!({
            "metric": figure.name, "unit": figure.unit, "published": figure.published,
            "kernel": figure.kernel, "simulator": figure.simulator,
            "tolerance": figure.tolerance, "holds": figure.holds(),
        })
    };
    let cell = |outcome: &Outcome| {
        json!({
            "labels": outcome.labels, "queue": outcome.queue.to_string(), "discipline": outcome.queue.name(),
            "ours": outcome.is_ours, "runs": outcome.runs, "duration_s": outcome.duration_s,
            "figures": outcome.figures.iter().map(figure).collect::<Vec<_>>(),
        })
    };
    let study = |figure: &Reproduced| {
        json!({
            "paper": figure.paper, "figure": figure.study.figure, "title": figure.study.title,
            "axes": figure.study.row_axes().map(|axis| &axis.name).collect::<Vec<_>>(),
            "cells": figure.outcomes.iter().map(cell).collect::<Vec<_>>(),
            "unseen": figure.unseen, "skipped": figure.skipped,
        })
    };
    let [ours, linux] = scores(reproduced).map(|score| json!({ "within": score.within, "figures": score.of }));
    json!({
        "kernel": release, "rule": rule::WORDS, "asked_percent": rule::ASKED, "ours": ours, "linux": linux,
        "figures": reproduced.iter().map(study).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_holds() {
        let figure = |simulator, tolerance| CellFigure {
            name: "RTT".into(),
            unit: "ms".into(),
            decimals: 1,
            published: Some("≈ 98".into()),
            kernel: 100.0,
            simulator,
            tolerance,
        };
        let shown = |simulator, tolerance| cells(&figure(simulator, tolerance)).join("|");
        assert_eq!(shown(Some(102.0), Some(3.0)), "RTT, ms|≈ 98|100.0|102.0|± 3.0|holds");
        assert_eq!(shown(Some(104.0), Some(3.0)), "RTT, ms|≈ 98|100.0|104.0|± 3.0|OFF");
        assert_eq!(shown(None, Some(3.0)), "RTT, ms|≈ 98|100.0|–|± 3.0|");
        assert_eq!(shown(Some(104.0), None), "RTT, ms|≈ 98|100.0|104.0||");
    }
}
