//! Counts how many of a paper's published figures and claims are met by the paper's [`Rule`].
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
    /// The figures and claims that are not met, in words.
    #[serde(skip)]
    pub missed: Vec<String>,
}

impl Score {
    /// The sum of two scores.
    pub fn and(mut self, other: Score) -> Score {
        self.met += other.met;
        self.published += other.published;
        self.missed.extend(other.missed);
        self
    }
}

impl Report<'_> {
    /// The score of all published figures and claims; empty for a study whose figures were never published.
    pub fn score(&self, rule: &Rule) -> Score {
        let study: &Study = self.runs.study;
        let mut score = Score::default();
        for row in self.rows.iter().filter(|_| study.scored) {
            for (entry, metric) in row.entries.iter().zip(&study.metrics) {
                for Held { which, stated, published, measured } in entry.held() {
                    score.published += 1;
                    if measured.is_some_and(|measured| rule.meets(stated, measured, metric)) {
                        score.met += 1;
                        continue;
                    }
                    let place = [&[study.figure.clone()][..], &row.labels].concat().join(", ");
                    let d = metric.decimals;
                    let measured = measured.map_or("not measured".to_owned(), |measured| format!("{measured:.d$}"));
                    score.missed.push(format!("{place}: {}{which} {published}, measured {measured}", metric.name));
                }
            }
        }
        for claim in self.claims(rule) {
            score.published += 1;
            match claim.met {
                true => score.met += 1,
                false => score.missed.push(format!("{}: {}; {}", study.figure, claim.says, claim.measured)),
            }
        }
        score
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
