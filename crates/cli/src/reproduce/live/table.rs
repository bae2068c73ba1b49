//! The comparison as a table and as JSON.
use super::cells::Aim;
use super::{Compared, Comparison, DISTURBED, Outcome};
use crate::reproduce::measured::{self, signed};
use crate::term::Paint;
use narrows_core::Span;
use narrows_core::registry::Registered;
use serde_json::{Value, json};
use std::fmt::Write;

/// Width of a row's label.
const LABEL: usize = 12;
/// The same where a verdict stands below it.
const NARROW_LABEL: usize = 24;
/// All cells, grouped by link and queue, and the number of cells that meet every aim.
pub(super) fn text(outcomes: &[Outcome], duration: Span, runs: u64, paint: Paint) -> String {
    let mut out = format!(
        "The simulator and this kernel's TCP through the same queues; {} s, the first\nquarter left out; runs: {runs}.\nAims: {}.\n{}\n\n",
        duration.as_secs_f64(),
        aims(outcomes),
        if measured::is_wide() {
            "late: p99 of how late packets were handed over, ms, and share of packets over 1 ms."
        } else {
            "The simulator is above, live below (--wide: also Δ and lateness)."
        }
    );
    out.push_str(&if measured::is_wide() { wide_head(paint) } else { narrow_head(paint) });
    let mut group = String::new();
    for outcome in outcomes {
        let heading = format!("{}  {}", outcome.cell.path(), outcome.cell.queue);
        if heading != group {
            let _ = writeln!(out, "{}", paint.bold(&heading));
            group = heading;
        }
        out.push_str(&if measured::is_wide() { wide_row(outcome, paint) } else { rows(outcome, paint) });
    }
    let within = outcomes.iter().filter(|outcome| outcome.is_within()).count();
    let _ = writeln!(out, "\n{within} of {} cells within every aim.", outcomes.len());
    let disturbed = outcomes.iter().filter(|outcome| outcome.is_disturbed()).count();
    if disturbed > 0 {
        let _ = writeln!(
            out,
            "{disturbed} disturbed: the machine was so busy that more than {} % of the packets were over 1 ms late; \
             `--only` repeats single cells.",
            100.0 * DISTURBED
        );
    }
    out
}

/// A head of two lines: figures and their units.
fn narrow_head(paint: Paint) -> String {
    let line = |part: fn(Compared) -> &'static str| {
        let parts = Compared::ALL.iter().map(|&figure| format!("{:>width$}", part(figure), width = width(figure)));
        format!("{:NARROW_LABEL$}{}", "", parts.collect::<String>())
    };
    format!("{}\n{}\n", paint.bold(&line(short)), paint.dim(&line(unit)))
}

/// The simulator's figures of a cell, and below them the live ones.
fn rows(outcome: &Outcome, paint: Paint) -> String {
    let label = format!("  {}", outcome.cell.controller.name());
    let (mut sim, mut live) = (format!("{label:NARROW_LABEL$}"), String::new());
    for comparison in &outcome.figures {
        let ((scale, digits), width) = (shown(comparison.figure), width(comparison.figure));
        let _ = write!(sim, "{:>width$.digits$}", scale * comparison.sim.0);
        let figure = format!("{:>width$.digits$}", scale * comparison.live.0);
        live.push_str(&if comparison.is_within() { figure } else { paint.bad(&figure) });
    }
    format!("{sim}\n{}{live}\n", measured::in_front(verdict(outcome, paint), NARROW_LABEL))
}

/// A head with the difference of each figure.
fn wide_head(paint: Paint) -> String {
    let heads = Compared::ALL.map(|figure| format!("  {:>23}", head(figure))).concat();
    let columns = format!("  {:>8} {:>7} {:>6}", "sim", "live", "Δ").repeat(Compared::ALL.len());
    let columns = format!("{:LABEL$}{columns}  {:>14}", "", "late");
    format!("{}\n{}\n", paint.bold(&format!("{:LABEL$}{heads}", "")), paint.dim(&columns))
}

fn wide_row(outcome: &Outcome, paint: Paint) -> String {
    let mut line = format!("{:LABEL$}", format!("  {}", outcome.cell.controller.name()));
    for comparison in &outcome.figures {
        let cells = cells(comparison);
        line.push_str(&if comparison.is_within() { cells } else { paint.bad(&cells) });
    }
    let late = format!("{:.2} {:>7}", outcome.late_ms, format!("{:.2} %", 100.0 * outcome.late_share));
    format!("{line}  {late:>14}  {}\n", verdict(outcome, paint).0)
}

/// Whether every aim is met, and the length of the text in characters.
fn verdict(outcome: &Outcome, paint: Paint) -> (String, usize) {
    let outside = outcome.figures.iter().filter(|comparison| !comparison.is_within());
    let outside: Vec<&str> = outside.map(|comparison| short(comparison.figure)).collect();
    let disturbed = if outcome.is_disturbed() { " (disturbed)" } else { "" };
    let (text, length) = measured::verdict(&outside, paint);
    (text + disturbed, length + disturbed.len())
}

/// Simulated, live, and the difference in the aim's unit: points, per cent, or a count.
fn cells(comparison: &Comparison) -> String {
    let (sim, live) = (comparison.sim.0, comparison.live.0);
    let relative = if live == 0.0 { 0.0 } else { 100.0 * comparison.difference() / live };
    let (scale, digits) = shown(comparison.figure);
    let difference = match comparison.figure {
        Compared::Rtt => format!("{}%", signed(relative, 1)),
        _ => signed(scale * comparison.difference(), digits),
    };
    format!("  {:>8.digits$} {:>7.digits$} {difference:>6}", scale * sim, scale * live)
}

/// The factor to a figure's unit, and its decimals.
const fn shown(figure: Compared) -> (f64, usize) {
    match figure {
        Compared::Utilisation => (100.0, 2),
        Compared::Rtt => (1.0, 2),
        Compared::Queue => (1.0, 1),
        Compared::Loss => (100.0, 3),
        Compared::Retransmits => (1.0, 0),
    }
}

/// Columns of a figure in the narrow table.
const fn width(figure: Compared) -> usize {
    match figure {
        Compared::Utilisation | Compared::Retransmits => 13,
        Compared::Rtt | Compared::Queue | Compared::Loss => 10,
    }
}

const fn unit(figure: Compared) -> &'static str {
    match figure {
        Compared::Utilisation | Compared::Loss => "%",
        Compared::Rtt => "ms",
        Compared::Queue => "packets",
        Compared::Retransmits => "",
    }
}

const fn head(figure: Compared) -> &'static str {
    match figure {
        Compared::Utilisation => "utilisation %",
        Compared::Rtt => "mean RTT, ms",
        Compared::Queue => "queue, packets",
        Compared::Loss => "loss rate %",
        Compared::Retransmits => "retransmits",
    }
}

const fn short(figure: Compared) -> &'static str {
    match figure {
        Compared::Utilisation => "utilisation",
        Compared::Rtt => "mean RTT",
        Compared::Queue => "queue",
        Compared::Loss => "loss",
        Compared::Retransmits => "retransmits",
    }
}

fn aims(outcomes: &[Outcome]) -> String {
    let figures = outcomes.first().map_or(&[][..], |outcome| &outcome.figures);
    let aim = |comparison: &Comparison| {
        let name = short(comparison.figure);
        Some(match comparison.aim? {
            Aim::Points(points) => format!("{name} within {points} points"),
            Aim::Percent(percent) => format!("{name} within {percent} %"),
        })
    };
    figures.iter().filter_map(aim).collect::<Vec<_>>().join(", ")
}

/// The comparison as JSON.
pub(super) fn json(outcomes: &[Outcome], duration: Span, runs: u64) -> Value {
    let figure = |comparison: &Comparison| {
        let value = json!({
            "sim": comparison.sim.0,
            "sim_spread": comparison.sim.1,
            "live": comparison.live.0,
            "live_spread": comparison.live.1,
            "difference": comparison.difference(),
            "tolerance": comparison.aim.map(|aim| aim.tolerance(comparison.live.0)),
            "within": comparison.is_within(),
        });
        (comparison.figure.name().to_owned(), value)
    };
    let cell = |outcome: &Outcome| {
        json!({
            "controller": outcome.cell.controller.name(),
            "queue": outcome.cell.queue.to_string(),
            "rate_mbit": outcome.cell.rate.as_mbit_f64(),
            "base_rtt_ms": outcome.cell.rtt.as_ms_f64(),
            "figures": outcome.figures.iter().map(figure).collect::<serde_json::Map<_, _>>(),
            "late_p99_ms": outcome.late_ms,
            "late_share": outcome.late_share,
            "disturbed": outcome.is_disturbed(),
            "within": outcome.is_within(),
        })
    };
    json!({
        "duration_s": duration.as_secs_f64(),
        "warmup_s": (duration / 4).as_secs_f64(),
        "runs": runs,
        "cells": outcomes.iter().map(cell).collect::<Vec<_>>(),
    })
}
