//! Counts how many of a paper's published figures and claims are met by the paper's [`Rule`].
use crate::gaps::{Gap, Gaps};
use crate::model::Study;
use crate::report::Report;
use crate::rows::Entry;
use crate::rule::{Rule, Stated};
use serde::Serialize;

/// Published figures and claims, and how many of them are met.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Score {
    /// Number of figures and claims that are met.
    pub met: usize,
    /// Number of figures and claims that were published.
    pub published: usize,
    /// The figures and claims that are not met.
    pub missed: Vec<Missed>,
    /// The world whose figures the simulator is held to, if none were published, and the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worlds: Option<[String; 2]>,
    /// The groups of studies that are also counted by themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
}

/// The cells and figures of a group of studies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Number of cells whose figures are all met.
    pub cells_met: usize,
    /// Number of cells.
    pub cells: usize,
    /// Number of figures that are met.
    pub figures_met: usize,
    /// Number of figures.
    pub figures: usize,
}

impl Group {
    /// In a line of words.
    pub(crate) fn words(&self) -> String {
        let Group { name, cells_met, cells, figures_met, figures } = self;
        format!("{name}: {cells_met} of {cells} cells met in every figure, {figures_met} of {figures} figures\n")
    }
}

/// A figure or a claim that is not met.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Missed {
    /// The published and the measured value.
    pub what: String,
    /// The reason, if the paper's gaps have one.
    pub why: Option<String>,
    /// The command that shows the reason, if there is one.
    pub command: Option<String>,
}

impl Missed {
    fn new(what: String, gaps: &Gaps, gap: Option<&Gap>) -> Missed {
        Missed { what, why: gap.map(|gap| gap.why.clone()), command: gap.and_then(|gap| gaps.command(gap)) }
    }

    /// In lines of words.
    pub(crate) fn words(&self) -> String {
        let further: String =
            [&self.why, &self.command].into_iter().flatten().map(|line| format!("  {line}\n")).collect();
        format!("not met: {}\n{further}", self.what)
    }
}

impl Score {
    /// The sum of two scores.
    pub fn and(mut self, other: Score) -> Score {
        self.met += other.met;
        self.published += other.published;
        self.missed.extend(other.missed);
        self.worlds = self.worlds.or(other.worlds);
        for more in other.groups {
            match self.groups.iter_mut().find(|group| group.name == more.name) {
                Some(group) => {
                    group.cells_met += more.cells_met;
                    group.cells += more.cells;
                    group.figures_met += more.figures_met;
                    group.figures += more.figures;
                }
                None => self.groups.push(more),
            }
        }
        self
    }
}

impl Report<'_> {
    /// The score of all published figures and claims, and the reasons that the paper's gaps have for those not met; empty for a
    /// study whose figures were never published.
    pub fn score(&self, rule: &Rule, gaps: &Gaps) -> Score {
        let study: &Study = self.runs.study;
        let (mut score, mut cells_met) = (Score { worlds: self.worlds(), ..Score::default() }, 0);
        for (n, row) in self.rows.iter().enumerate().filter(|_| study.scored) {
            let missed = score.missed.len();
            for (m, (entry, metric)) in row.entries.iter().zip(&study.metrics).enumerate() {
                let is_judged = rule.allowance(&metric.name, &metric.unit).is_some();
                let held = self.beside_held(n, m).filter(|_| is_judged).map_or_else(|| entry.held(), |held| vec![held]);
                for Held { which, stated, published, measured } in held {
                    score.published += 1;
                    if measured.is_some_and(|measured| rule.meets(stated, measured, metric)) {
                        score.met += 1;
                        continue;
                    }
                    let place = [&[study.figure.clone()][..], &row.labels].concat().join(", ");
                    let d = metric.decimals;
                    let measured = measured.map_or("not measured".to_owned(), |measured| format!("{measured:.d$}"));
                    let [of, here] = score.worlds.as_ref().map_or(["", "measured"], |[of, here]| [of.as_str(), here]);
                    let space = if of.is_empty() { "" } else { " " };
                    let what = format!("{place}: {}{which}{space}{of} {published}, {here} {measured}", metric.name);
                    score.missed.push(Missed::new(what, gaps, gaps.of_figure(study, row, &metric.name)));
                }
            }
            cells_met += usize::from(score.missed.len() == missed);
        }
        if let Some(name) = study.group.clone() {
            let (cells, figures_met, figures) = (self.rows.len(), score.met, score.published);
            score.groups.push(Group { name, cells_met, cells, figures_met, figures });
        }
        for claim in self.claims(rule) {
            score.published += 1;
            if claim.met {
                score.met += 1;
                continue;
            }
            let what = format!("{}: {}; {}", study.figure, claim.says, claim.measured);
            score.missed.push(Missed::new(what, gaps, gaps.of_claim(study, &claim.says)));
        }
        score
    }
}

impl Report<'_> {
    /// The names of two worlds, if the second is held to the first because nothing was published.
    fn worlds(&self) -> Option<[String; 2]> {
        let beside = self.beside.as_ref().filter(|_| self.runs.study.published.is_empty())?;
        Some(beside.names.clone())
    }

    /// A figure of the world that is beside this one, to be held to the one measured here.
    fn beside_held(&self, row: usize, metric: usize) -> Option<Held> {
        self.worlds()?;
        let here = self.rows[row].entries[metric].measured?;
        let beside = self.beside.as_ref()?.rows[row].entries[metric].measured;
        let decimals = self.runs.study.metrics[metric].decimals;
        Some(Held { which: "", stated: Stated::About(here), published: format!("{here:.decimals$}"), measured: beside })
    }
}

/// A published figure with the measured one.
struct Held {
    /// The name of the figure among several.
    which: &'static str,
    stated: Stated,
    published: String,
    measured: Option<f64>,
}

impl Entry {
    /// The published figures: one, or a median and its quartiles.
    fn held(&self) -> Vec<Held> {
        let Some((stated, published)) = self.stated.zip(self.published.as_ref()) else { return Vec::new() };
        let Stated::Spread(spread) = stated else {
            return vec![Held { which: "", stated, published: published.clone(), measured: self.measured }];
        };
        let one = |which, published: f64, measured| Held {
            which,
            stated: Stated::About(published),
            published: published.to_string(),
            measured,
        };
        let here = self.quartiles;
        vec![
            one(", median", spread.median, self.measured),
            one(", first quartile", spread.q1, here.map(|q| q.q1)),
            one(", third quartile", spread.q3, here.map(|q| q.q3)),
        ]
    }
}
