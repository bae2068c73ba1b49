//! The comparison as a table and as JSON.
use super::subject::Subject;
use super::trace::Pair;
use super::truth::Beside;
use super::{Aimed, Comparison, Outcome};
use crate::reproduce::measured::{self, signed};
use crate::term::Paint;
use serde_json::{Value, json};
use std::fmt::Write;

/// Width of a row's label.
const LABEL: usize = 26;
/// All cells, grouped by bottleneck, those on which the model was developed first. Each of the two groups ends with the number of
/// cells and figures that meet the aims.
pub(super) fn text(outcomes: &[Outcome], skipped: &[String], subject: &Subject, paint: Paint) -> String {
    let mut out = subject.title();
    out.push_str(match subject {
        Subject::Simulator => ". ",
        Subject::Lab { .. } => ".\n",
    });
    out.push_str(
        "Aims: utilisation within 1 point,\nmean queue within 10 % or one packet, loss rate within a fifth, mean RTT\n",
    );
    out.push_str("within 3 %, delay of thin streams within 10 % or 1 ms.");
    let _ = if measured::is_wide() {
        writeln!(out, " ± is half the range over seeds.")
    } else {
        writeln!(out, "\nLinux is above, {} below (--wide: also ± and Δ).", subject.name())
    };
    for (title, fitted) in subject.groups().into_iter().zip([true, false]) {
        let of_kind: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.fitted == fitted).collect();
        if !of_kind.is_empty() {
            let _ = writeln!(out, "\n{}", paint.bold(title));
            out.push_str(&cells_of(&of_kind, subject, paint));
        }
    }
    if !subject.sees_packets() && outcomes.iter().any(|outcome| outcome.setting.beside != Beside::Nothing) {
        out.push_str(
            "The lab does not see single packets, so the recorded delays of thin streams have no figure beside them.\n",
        );
    }
    for reason in skipped {
        let _ = writeln!(out, "Skipped: {reason}.");
    }
    out
}

fn cells_of(outcomes: &[&Outcome], subject: &Subject, paint: Paint) -> String {
    let mut out = if measured::is_wide() { wide_head(subject, paint) } else { head(outcomes, paint) };
    let mut group = String::new();
    for outcome in outcomes {
        let setting = &outcome.setting;
        let heading =
            format!("{}  {} Mbit/s  {} ms  {}", setting.set, setting.rate_mbit, setting.rtt_ms, setting.queue);
        if heading != group {
            let _ = writeln!(out, "{}", paint.bold(&heading));
            group = heading;
        }
        out.push_str(&if measured::is_wide() { wide_row(outcome, paint) } else { rows(outcome, paint) });
    }
    let _ = writeln!(out, "\n{}", counts(outcomes));
    out
}

/// The numbers that meet the aims: of cells in all, and of figures by class.
pub(super) fn counts(outcomes: &[&Outcome]) -> String {
    let within = outcomes.iter().filter(|outcome| outcome.is_within()).count();
    let figures = |set: Option<&str>| {
        let of_set = outcomes.iter().filter(|outcome| set.is_none_or(|set| outcome.setting.set == set));
        let all: Vec<bool> = of_set.flat_map(|outcome| outcome.figures.iter().map(Comparison::is_within)).collect();
        format!("{} of {}", all.iter().filter(|within| **within).count(), all.len())
    };
    let mut sets: Vec<&str> = outcomes.iter().map(|outcome| outcome.setting.set.as_str()).collect();
    sets.sort_unstable();
    sets.dedup();
    let by_set: Vec<String> = sets.iter().map(|set| format!("{set} {}", figures(Some(set)))).collect();
    format!(
        "{within} of {} cells within every aim; {} figures within theirs: {}.",
        outcomes.len(),
        figures(None),
        by_set.join(", ")
    )
}

/// A head of two lines: the figures that these cells have, and their units.
fn head(outcomes: &[&Outcome], paint: Paint) -> String {
    let has = |figure: &Aimed| outcomes.iter().flat_map(|outcome| &outcome.figures).any(|one| one.figure == *figure);
    let shown: Vec<Aimed> = Aimed::ALL.into_iter().filter(has).collect();
    let line = |part: fn(Aimed) -> &'static str| {
        let parts = shown.iter().map(|&figure| format!("{:>width$}", part(figure), width = width(figure)));
        format!("{:LABEL$}{}", "", parts.collect::<String>())
    };
    format!("{}\n{}\n", paint.bold(&line(short)), paint.dim(&line(unit)))
}

/// Linux's figures of a cell, and below them those that were compared with them.
fn rows(outcome: &Outcome, paint: Paint) -> String {
    let (mut linux, mut ours) = (format!("{:LABEL$}", label(outcome)), String::new());
    for comparison in &outcome.figures {
        let ((scale, digits), width) = (shown(comparison), width(comparison.figure));
        let _ = write!(linux, "{:>width$.digits$}", scale * comparison.linux);
        let figure = format!("{:>width$.digits$}", scale * comparison.ours);
        ours.push_str(&if comparison.is_within() { figure } else { paint.bad(&figure) });
    }
    format!("{linux}\n{}{ours}\n", measured::in_front(verdict(outcome, paint), LABEL))
}

/// A head with the spread and the difference of each figure.
fn wide_head(subject: &Subject, paint: Paint) -> String {
    let heads = ["utilisation %", "queue, packets", "loss rate %", "RTT, ms"];
    let heads: String = heads.map(|head| format!("  {head:>28}")).concat();
    let columns = format!("  {:>7} {:>14} {:>5}", "Linux", subject.name(), "Δ").repeat(4);
    let lines = [paint.bold(&format!("{:LABEL$}{heads}", "")), paint.dim(&format!("{:LABEL$}{columns}", ""))];
    format!("{}\n{}\n", lines[0], lines[1])
}

fn label(outcome: &Outcome) -> String {
    let setting = &outcome.setting;
    let flows = if setting.flows == 1 { String::new() } else { format!(" ×{}", setting.flows) };
    let from = match setting.beside {
        Beside::Nothing if setting.warmup_s > 0.0 => format!(" from {} s", setting.warmup_s),
        Beside::Nothing => String::new(),
        Beside::ThinStreams => " + thin".to_owned(),
        Beside::Datagrams(count) => format!(" + {count} UDP"),
    };
    format!("  {}{flows}{from}", outcome.controller)
}

/// Whether every aim is met, and the length of the text in characters.
fn verdict(outcome: &Outcome, paint: Paint) -> (String, usize) {
    let outside = outcome.figures.iter().filter(|comparison| !comparison.is_within());
    measured::verdict(&outside.map(|comparison| short(comparison.figure)).collect::<Vec<_>>(), paint)
}

fn wide_row(outcome: &Outcome, paint: Paint) -> String {
    let mut line = format!("{:LABEL$}", label(outcome));
    for comparison in &outcome.figures {
        let cells = match comparison.figure {
            Aimed::ThinTcp => format!("thin TCP, ms {}", cells(comparison).trim_start()),
            Aimed::ThinUdp => format!("UDP, ms {}", cells(comparison).trim_start()),
            _ => cells(comparison),
        };
        line.push_str("  ");
        line.push_str(&if comparison.is_within() { cells } else { paint.bad(&cells) });
    }
    format!("{line}  {}\n", verdict(outcome, paint).0)
}

/// Linux, ours with its spread, and the difference in the aim's unit: points, packets or per cent.
fn cells(comparison: &Comparison) -> String {
    let relative = match comparison.linux {
        0.0 => 0.0,
        linux => 100.0 * comparison.difference() / linux,
    };
    let (scale, digits) = shown(comparison);
    let difference = match comparison.figure {
        Aimed::Utilisation => signed(100.0 * comparison.difference(), 2),
        Aimed::Loss => format!("{}%", signed(relative, 0)),
        Aimed::Rtt => format!("{}%", signed(relative, 1)),
        Aimed::Queue | Aimed::ThinTcp | Aimed::ThinUdp => signed(comparison.difference(), 1),
    };
    let (linux, ours) = (scale * comparison.linux, scale * comparison.ours);
    let ours = format!("{ours:.digits$} ±{:.digits$}", scale * comparison.ours_spread);
    format!("{linux:>7.digits$} {ours:>14} {difference:>5}")
}

/// The factor to a figure's unit, and its decimals.
fn shown(comparison: &Comparison) -> (f64, usize) {
    match comparison.figure {
        Aimed::Utilisation => (100.0, 2),
        Aimed::Loss if comparison.linux < 0.01 => (100.0, 4),
        Aimed::Loss => (100.0, 2),
        Aimed::Queue | Aimed::Rtt | Aimed::ThinTcp | Aimed::ThinUdp => (1.0, 1),
    }
}

/// Columns of a figure in the narrow table.
const fn width(figure: Aimed) -> usize {
    match figure {
        Aimed::Utilisation => 12,
        Aimed::Queue | Aimed::Loss => 8,
        Aimed::Rtt | Aimed::ThinUdp => 7,
        Aimed::ThinTcp => 10,
    }
}

const fn unit(figure: Aimed) -> &'static str {
    match figure {
        Aimed::Utilisation | Aimed::Loss => "%",
        Aimed::Queue => "packets",
        Aimed::Rtt | Aimed::ThinTcp | Aimed::ThinUdp => "ms",
    }
}

const fn short(figure: Aimed) -> &'static str {
    match figure {
        Aimed::Utilisation => "utilisation",
        Aimed::Queue => "queue",
        Aimed::Loss => "loss",
        Aimed::Rtt => "RTT",
        Aimed::ThinTcp => "thin TCP",
        Aimed::ThinUdp => "UDP",
    }
}

/// The comparison as JSON.
pub(super) fn json(outcomes: &[Outcome], traces: &[Pair], skipped: &[String], subject: &Subject) -> Value {
    let (key, spread) = (subject.key(), format!("{}_spread", subject.key()));
    let figure = |comparison: &Comparison| {
        let value = json!({
            "linux": comparison.linux,
            "linux_spread": comparison.linux_spread,
            key: comparison.ours,
            &spread: comparison.ours_spread,
            "difference": comparison.difference(),
            "tolerance": comparison.figure.tolerance(comparison.linux),
            "within": comparison.is_within(),
        });
        (comparison.figure.name().to_owned(), value)
    };
    let cell = |outcome: &Outcome| {
        json!({
            "set": outcome.setting.set,
            "fitted": outcome.fitted,
            "controller": outcome.controller,
            "queue": outcome.queue.to_string(),
            "rate_mbit": outcome.setting.rate_mbit,
            "base_rtt_ms": outcome.setting.rtt_ms,
            "flows": outcome.setting.flows,
            "duration_s": outcome.setting.duration_s,
            "warmup_s": outcome.setting.warmup_s,
            "figures": outcome.figures.iter().map(figure).collect::<serde_json::Map<_, _>>(),
            "within": outcome.is_within(),
        })
    };
    let mut all = json!({
        "cells": outcomes.iter().map(cell).collect::<Vec<_>>(),
        "traces": traces.iter().map(Pair::json).collect::<Vec<_>>(),
        "skipped": skipped,
    });
    if let Subject::Lab { release } = subject {
        all["kernel"] = json!(release);
    }
    all
}
