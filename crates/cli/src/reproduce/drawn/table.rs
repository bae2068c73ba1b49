//! Drawn cells as tables, and as JSON.
use narrows_report::sheet::{Head, Sheet};
use narrows_study::{Drawn, DrawnKind, Metric, Nearness, Rule, Spread};
use serde_json::{Value, json};

/// All cells of a draw.
pub(super) struct Judged<'a> {
    pub(super) seed: u64,
    /// Which kernel.
    pub(super) linux: String,
    pub(super) cells: Vec<Cell<'a>>,
}

/// A cell with its figures.
pub(super) struct Cell<'a> {
    drawn: &'a Drawn,
    figures: Vec<DrawnFigure<'a>>,
}

/// A figure in both worlds.
struct DrawnFigure<'a> {
    metric: &'a Metric,
    linux: Spread,
    simulator: Spread,
    allowed: f64,
    nearness: Nearness,
}

/// How many figures there are, how many are within the aims, and how many lie outside both spreads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Count {
    cells: usize,
    figures: usize,
    within: usize,
    outside: usize,
}

impl<'a> Cell<'a> {
    /// Judges the figures that both worlds have.
    pub(super) fn judged(rule: &Rule, drawn: &'a Drawn, linux: &[Vec<f64>], simulator: &[Vec<f64>]) -> Cell<'a> {
        let runs = linux.iter().zip(simulator).map(|(linux, simulator)| Spread::of(linux).zip(Spread::of(simulator)));
        let figure = |(metric, both): (&'a Metric, Option<(Spread, Spread)>)| {
            let (linux, simulator) = both?;
            let allowed = rule.tolerance(&metric.name, &metric.unit, linux.mean);
            Some(DrawnFigure { metric, linux, simulator, allowed, nearness: rule.nearness(metric, linux, simulator) })
        };
        Cell { drawn, figures: drawn.study.metrics.iter().zip(runs).filter_map(figure).collect() }
    }
}

impl Count {
    fn of<'a>(cells: impl Iterator<Item = &'a Cell<'a>>) -> Count {
        cells.fold(Count::default(), |count, cell| {
            let number = |nearness| cell.figures.iter().filter(|figure| figure.nearness == nearness).count();
            Count {
                cells: count.cells + 1,
                figures: count.figures + cell.figures.len(),
                within: count.within + number(Nearness::Within),
                outside: count.outside + number(Nearness::OutsideBoth),
            }
        })
    }

    fn percent(self) -> String {
        if self.figures == 0 {
            return "–".to_owned();
        }
        format!("{:.1}", 100.0 * self.within as f64 / self.figures as f64)
    }

    fn row(self, name: &str) -> Vec<String> {
        let Count { cells, figures, within, outside } = self;
        vec![
            name.to_owned(),
            cells.to_string(),
            figures.to_string(),
            within.to_string(),
            self.percent(),
            outside.to_string(),
        ]
    }

    fn json(self) -> Value {
        let Count { cells, figures, within, outside } = self;
        json!({ "cells": cells, "figures": figures, "within": within, "outside_both_spreads": outside })
    }
}

impl Judged<'_> {
    /// The counts: by kind, without and with BBR, of all.
    fn counts(&self) -> Vec<(String, Count)> {
        let kinds = DrawnKind::ALL
            .iter()
            .map(|&kind| (kind.name().to_owned(), Count::of(self.cells.iter().filter(|cell| cell.drawn.kind == kind))));
        let bbr = [(false, "without BBR"), (true, "with BBR")].map(|(has, name)| {
            (name.to_owned(), Count::of(self.cells.iter().filter(|cell| cell.drawn.has_bbr == has)))
        });
        let all = ("all".to_owned(), Count::of(self.cells.iter()));
        kinds.chain(bbr).filter(|(_, count)| count.cells > 0).chain([all]).collect()
    }

    /// The last line.
    pub(super) fn verdict(&self) -> String {
        let all = Count::of(self.cells.iter());
        let Count { figures, within, outside, .. } = all;
        format!("{within} of {figures} figures within the aims ({} %), {outside} outside both spreads\n", all.percent())
    }

    /// The numbers of runs in a world: `3`, or `1 to 3`.
    fn runs(&self, of: impl Fn(&DrawnFigure<'_>) -> usize) -> String {
        let all = || self.cells.iter().flat_map(|cell| &cell.figures).map(&of);
        match (all().min().unwrap_or(0), all().max().unwrap_or(0)) {
            (least, most) if least == most => most.to_string(),
            (least, most) => format!("{least} to {most}"),
        }
    }
}

/// The table of kinds, the figures outside both spreads, and all figures.
pub(super) fn sheets(judged: &Judged<'_>, rule: &Rule) -> [Sheet; 3] {
    let runs = [judged.runs(|figure| figure.linux.runs), judged.runs(|figure| figure.simulator.runs)];
    let source = format!("{}, runs of each cell: {} in Linux, {} in the simulator", judged.linux, runs[0], runs[1]);
    let kinds = Sheet {
        heading: "Linux, drawn anew".to_owned(),
        title: format!("{} cells from seed {}", judged.cells.len(), judged.seed),
        source: source.clone(),
        about: format!("Means are compared, {}.", rule.words()),
        heads: heads(&["kind", "cells", "figures", "within", "%", "outside both"]),
        names: 1,
        rows: judged.counts().into_iter().map(|(name, count)| count.row(&name)).collect(),
        ..Sheet::default()
    };
    let outside = |figure: &DrawnFigure<'_>| figure.nearness == Nearness::OutsideBoth;
    let rows = |is_wanted: &dyn Fn(&DrawnFigure<'_>) -> bool| {
        judged.cells.iter().flat_map(|cell| cell.rows(is_wanted)).collect::<Vec<_>>()
    };
    // A terminal has no room for what the cells are.
    let narrow = |row: Vec<String>| [&row[..1], &row[2..6]].concat();
    [
        kinds,
        Sheet {
            heading: "Outside both spreads".to_owned(),
            title: "neither world's mean is among the other's runs".to_owned(),
            heads: heads(&["cell", "figure", "Linux", "simulator", "allowed"]),
            names: 2,
            rows: rows(&outside).into_iter().map(narrow).collect(),
            ..Sheet::default()
        },
        Sheet {
            heading: "All figures".to_owned(),
            title: "mean (lowest–highest)".to_owned(),
            source,
            heads: heads(&["cell", "about", "figure", "Linux", "simulator", "allowed", ""]),
            names: 3,
            rows: rows(&|_| true),
            ..Sheet::default()
        },
    ]
}

fn heads(names: &[&str]) -> Vec<Head> {
    names.iter().map(|name| Head { name: (*name).to_owned(), which: String::new() }).collect()
}

impl Cell<'_> {
    fn rows(&self, is_wanted: &dyn Fn(&DrawnFigure<'_>) -> bool) -> Vec<Vec<String>> {
        let row = |(n, figure): (usize, &DrawnFigure<'_>)| {
            let first = |text: &str| if n == 0 { text.to_owned() } else { String::new() };
            let d = figure.metric.decimals;
            vec![
                first(&self.drawn.name),
                first(&self.drawn.about),
                format!("{}, {}", figure.metric.name, figure.metric.unit),
                figure.linux.words(d),
                figure.simulator.words(d),
                format!("± {:.d$}", figure.allowed),
                match figure.nearness {
                    Nearness::Within => "within".to_owned(),
                    Nearness::InSpread => "in a spread".to_owned(),
                    Nearness::OutsideBoth => "OUTSIDE".to_owned(),
                },
            ]
        };
        self.figures.iter().filter(|figure| is_wanted(figure)).enumerate().map(row).collect()
    }
}

/// Everything as data.
pub(super) fn json(judged: &Judged<'_>) -> Value {
    let figure = |figure: &DrawnFigure<'_>| {
        json!({
            "metric": figure.metric.name, "unit": figure.metric.unit, "linux": figure.linux,
            "simulator": figure.simulator, "allowed": figure.allowed, "nearness": figure.nearness,
        })
    };
    let cell = |cell: &Cell<'_>| {
        json!({
            "cell": cell.drawn.name, "kind": cell.drawn.kind.name(), "about": cell.drawn.about,
            "scenario": format!("scenarios/{}", cell.drawn.file()),
            "figures": cell.figures.iter().map(figure).collect::<Vec<_>>(),
        })
    };
    let counts = judged.counts().into_iter().map(|(name, count)| (name, count.json()));
    json!({
        "seed": judged.seed, "measured": judged.linux, "counts": counts.collect::<serde_json::Map<_, _>>(),
        "cells": judged.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cells with made-up runs: the first one's figures as in Linux, but for an RTT 2 % too long; the second one's queue outside both spreads and its
    /// loss far from Linux's mean, which is among its runs.
    fn with_judged(test: impl Fn(&Judged<'_>, &Rule)) {
        let rule = narrows_study::rule("linux-lab").expect("it is legal").expect("it is there");
        let drawn = narrows_study::drawn(3, 1).expect("it is drawn");
        let metrics = |n: usize| drawn[n].study.metrics.len();
        let linux = |n: usize| vec![vec![90.0, 100.0, 110.0]; metrics(n)];
        let mut simulator: Vec<Vec<Vec<f64>>> = (0..3).map(|n| vec![vec![100.0; 8]; metrics(n)]).collect();
        let place = |n: usize, name: &str| {
            drawn[n].study.metrics.iter().position(|metric| metric.name.starts_with(name)).expect("a metric")
        };
        simulator[0][place(0, "rtt of")] = vec![102.0; 8];
        simulator[2][place(2, "queue")] = vec![120.0; 8];
        simulator[2][place(2, "loss")] = vec![70.0, 130.0, 30.0];
        // The kernel did not see it.
        simulator[2][place(2, "rtt of")] = Vec::new();
        let cell = |n: usize| Cell::judged(&rule, &drawn[n], &linux(n), &simulator[n]);
        test(&Judged { seed: 1, linux: "Linux 7".to_owned(), cells: vec![cell(0), cell(2)] }, &rule);
    }

    #[test]
    fn figures_are_counted_by_kind() {
        with_judged(|judged, _| {
            let counts = judged.counts();
            let count = |name: &str| counts.iter().find(|(known, _)| known == name).map(|(_, count)| *count);
            let [plain, step] = [0, 1].map(|n| judged.cells[n].figures.len());
            assert_eq!(count("plain"), Some(Count { cells: 1, figures: plain, within: plain, outside: 0 }));
            assert_eq!(count("delay step"), Some(Count { cells: 1, figures: step, within: step - 2, outside: 1 }));
            assert_eq!(count("chain"), None);
            assert_eq!(
                step + 1,
                judged.cells[1].drawn.study.metrics.len(),
                "a figure that one world lacks is not judged"
            );
            let all = plain + step;
            let percent = 100.0 * (all - 2) as f64 / all as f64;
            assert_eq!(
                judged.verdict(),
                format!("{} of {all} figures within the aims ({percent:.1} %), 1 outside both spreads\n", all - 2)
            );
        });
    }

    #[test]
    fn the_second_table_has_what_is_outside_both_spreads() {
        with_judged(|judged, rule| {
            let [kinds, outside, all] = sheets(judged, rule);
            assert!(kinds.source.contains("3 in Linux, 3 to 8 in the simulator"), "{}", kinds.source);
            let [row] = &outside.rows[..] else { panic!("{:?}", outside.rows) };
            assert_eq!(row[1..], ["queue, packets", "100.00 (90.00–110.00)", "120.00", "± 10.00"]);
            assert_eq!(all.rows.len(), judged.cells.iter().map(|cell| cell.figures.len()).sum::<usize>());
            let json = json(judged);
            assert_eq!(json["counts"]["all"]["outside_both_spreads"], 1);
            assert_eq!(json["cells"][1]["scenario"], "scenarios/03-delay-step.toml");
        });
    }
}
