//! A picture of the measured figures beside the recorded ones, one dot per figure.
use crate::model::Study;
use crate::reproduction::Reproduction;
use crate::rule::{Rule, Stated};
use crate::{Report, embedded};
use narrows_report::scatter::{Dot, Panel, Scatter};

/// Axes are logarithmic where the largest figure is more than this many times the smallest.
const DECADES: f64 = 20.0;

impl Reproduction<'_> {
    /// The picture, for a paper whose figures were recorded elsewhere and that has a rule. `predicted` says what the measured figures are.
    pub fn predicted(&self, predicted: &str) -> Option<Scatter> {
        let rule = self.rule.as_ref()?;
        embedded(self.paper, crate::RECORDED)?;
        let mut groups: Vec<String> = Vec::new();
        let mut panels: Vec<Panel> = Vec::new();
        for report in &self.reports {
            let study = report.runs.study;
            let name = study.group.clone().unwrap_or_else(|| "figures".to_owned());
            let group = groups.iter().position(|known| *known == name).unwrap_or(groups.len());
            for (title, dot) in dots(study, report, rule, group) {
                if group == groups.len() {
                    groups.push(name.clone());
                }
                match panels.iter_mut().find(|panel| panel.title == title) {
                    Some(panel) => panel.dots.push(dot),
                    None => panels.push(Panel { title, dots: vec![dot], log: false }),
                }
            }
        }
        for panel in &mut panels {
            let figures = || panel.dots.iter().flat_map(|dot| [dot.x, dot.y]).filter(|figure| *figure > 0.0);
            let ends = figures().reduce(f64::min).zip(figures().reduce(f64::max));
            panel.log = ends.is_some_and(|(low, high)| high > DECADES * low);
        }
        let title = format!("{}: one dot per figure", self.paper);
        let axes = ["recorded", predicted].map(str::to_owned);
        (!panels.is_empty()).then_some(Scatter { title, axes, groups, panels })
    }
}

/// Each figure that was recorded and measured, with the title of its panel: the quantity without the flow or hop that it is of.
fn dots(study: &Study, report: &Report<'_>, rule: &Rule, group: usize) -> Vec<(String, Dot)> {
    let mut dots = Vec::new();
    for row in report.rows() {
        for (entry, metric) in row.entries.iter().zip(&study.metrics) {
            let Some((x, y)) = entry.stated.and_then(Stated::figure).zip(entry.measured) else { continue };
            let quantity =
                [" of ", " at "].iter().fold(&*metric.name, |name, joint| name.split(joint).next().unwrap_or(name));
            let label = format!("{}: {x:.4}, {y:.4}", row.labels.join(", "));
            let tolerance = rule.tolerance(&metric.name, &metric.unit, x);
            dots.push((format!("{quantity}, {}", metric.unit), Dot { x, y, tolerance, group, label }));
        }
    }
    dots
}
