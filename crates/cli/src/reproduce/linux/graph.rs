//! A graph of predicted against measured values, one dot per figure.
use super::{Comparison, Figure, Outcome};
use narrows_report::scatter::{Dot, Panel, Scatter};

/// The quantities: title, the figures that belong to it, their factor, and whether the axes are logarithmic.
const PANELS: [(&str, &[Figure], f64, bool); 5] = [
    ("utilisation, %", &[Figure::Utilisation], 100.0, false),
    ("mean queue, packets", &[Figure::Queue], 1.0, true),
    ("loss rate, %", &[Figure::Loss], 100.0, true),
    ("mean RTT, ms", &[Figure::Rtt], 1.0, true),
    ("delay of thin streams, ms", &[Figure::ThinTcp, Figure::ThinUdp], 1.0, true),
];

/// All figures of all cells as SVG.
pub(super) fn svg(outcomes: &[Outcome]) -> String {
    let panel = |&(title, figures, scale, log): &(&str, &[Figure], f64, bool)| {
        let of_cell = |outcome: &Outcome| {
            let wanted = outcome.figures.iter().filter(|comparison| figures.contains(&comparison.figure));
            wanted.map(|comparison| dot(outcome, comparison, scale)).collect::<Vec<_>>()
        };
        Panel { title: title.to_owned(), dots: outcomes.iter().flat_map(of_cell).collect(), log }
    };
    Scatter {
        title: "Linux 7.2 and Narrows: one dot per figure".to_owned(),
        axes: ["measured on Linux".to_owned(), "predicted by Narrows".to_owned()],
        groups: vec!["cells that the model was worked out on".to_owned(), "cells that nobody fitted".to_owned()],
        panels: PANELS.iter().map(panel).collect(),
    }
    .svg()
}

fn dot(outcome: &Outcome, comparison: &Comparison, scale: f64) -> Dot {
    let setting = &outcome.setting;
    let (x, y) = (scale * comparison.linux, scale * comparison.narrows);
    Dot {
        x,
        y,
        tolerance: scale * comparison.figure.tolerance(comparison.linux),
        group: usize::from(!outcome.fitted),
        label: format!(
            "{} {} ×{} {} Mbit/s {} ms {}: {x:.4}, {y:.4}",
            setting.set, outcome.controller, setting.flows, setting.rate_mbit, setting.rtt_ms, outcome.queue
        ),
    }
}
