//! A graph of predicted against measured values, one dot per figure.
use super::subject::Subject;
use super::{Aimed, Comparison, Outcome};
use narrows_report::scatter::{Dot, Panel, Scatter};

/// The quantities: title, the figures that belong to it, their factor, and whether the axes are logarithmic.
const PANELS: [(&str, &[Aimed], f64, bool); 5] = [
    ("utilisation, %", &[Aimed::Utilisation], 100.0, false),
    ("mean queue, packets", &[Aimed::Queue], 1.0, true),
    ("loss rate, %", &[Aimed::Loss], 100.0, true),
    ("mean RTT, ms", &[Aimed::Rtt], 1.0, true),
    ("delay of thin streams, ms", &[Aimed::ThinTcp, Aimed::ThinUdp], 1.0, true),
];

/// All figures of all cells as SVG.
pub(super) fn svg(outcomes: &[Outcome], subject: &Subject) -> String {
    let [fitted, unseen] = match subject {
        Subject::Simulator => ["cells that the model was worked out on", "cells that nobody fitted"],
        Subject::Lab { .. } => subject.groups(),
    };
    let axes = match subject {
        Subject::Simulator => ["measured on Linux", "predicted by Narrows"],
        Subject::Lab { .. } => ["recorded", "measured in the lab"],
    };
    let panel = |&(title, figures, scale, log): &(&str, &[Aimed], f64, bool)| {
        let of_cell = |outcome: &Outcome| {
            let wanted = outcome.figures.iter().filter(|comparison| figures.contains(&comparison.figure));
            wanted.map(|comparison| dot(outcome, comparison, scale)).collect::<Vec<_>>()
        };
        Panel { title: title.to_owned(), dots: outcomes.iter().flat_map(of_cell).collect(), log }
    };
    Scatter {
        title: format!("{}: one dot per figure", subject.title()),
        axes: axes.map(str::to_owned),
        groups: [fitted, unseen].map(str::to_owned).into(),
        panels: PANELS.iter().map(panel).collect(),
    }
    .svg()
}

fn dot(outcome: &Outcome, comparison: &Comparison, scale: f64) -> Dot {
    let setting = &outcome.setting;
    let (x, y) = (scale * comparison.linux, scale * comparison.ours);
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
