//! What `narrows diff --json` prints.
use super::{Watched, short};
use narrows_report::diff::{Change, Section};
use narrows_report::{Diff, Estimate};
use serde_json::{Value, json};

/// The comparison: what was compared, the figures of each part that both results have, and what `--fail-on` found.
pub(super) fn answer(diff: &Diff, names: [&str; 2], watched: &[Watched<'_>]) -> Value {
    let result = |which: usize, only: &[String]| {
        let notes: Vec<Value> =
            diff.notes[which].iter().map(|note| json!({ "text": note.text, "warning": note.is_warning })).collect();
        json!({ "result": names[which], "basis": diff.basis[which], "only_here": only, "notes": notes })
    };
    let limit = |figure: &Watched<'_>| {
        json!({
            "part": figure.section.name,
            "figure": short(&figure.change.figure),
            "allowed_percent": figure.limit.percent,
            "percent": figure.change.percent(),
            "holds": figure.complaint().is_none(),
        })
    };
    json!({
        "first": result(0, &diff.only_first),
        "second": result(1, &diff.only_second),
        "conditions": diff.contrast.conditions,
        "algorithms": diff.contrast.algorithms,
        "parts": diff.sections.iter().map(part).collect::<Vec<_>>(),
        "limits": watched.iter().map(limit).collect::<Vec<_>>(),
    })
}

/// A hop, or flows of one kind.
fn part(section: &Section) -> Value {
    json!({ "name": section.name, "figures": section.figures.iter().map(figure).collect::<Vec<_>>() })
}

fn figure(change: &Change) -> Value {
    let unit = change.figure.split_once(" (").map(|(_, unit)| unit.trim_end_matches(')'));
    json!({
        "figure": short(&change.figure),
        "unit": unit,
        "first": change.first.as_ref().map(estimate),
        "second": change.second.as_ref().map(estimate),
        "difference": change.difference(),
        "percent": change.percent(),
        "p": change.verdict.map(|verdict| verdict.p),
        "significant": change.is_significant(),
    })
}

/// The mean over runs, and half the width of its 95 % confidence interval.
fn estimate(estimate: &Estimate) -> Value {
    json!({ "mean": estimate.mean, "half_width": estimate.half_width, "runs": estimate.runs })
}
