//! A paper's claims in words: an order of two queues, their equality, or a bound that holds everywhere.
//!
//! A claim covers one metric of the rows at its place. It counts once in the score, however many rows it covers, and is met if
//! every row meets it. Means are compared without a margin: any difference satisfies a paper that says "below".
use crate::metric::Metric;
use crate::model::{Study, text, wanted};
use crate::report::Report;
use crate::rows::Row;
use crate::rule::{Rule, Stated};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Value;

/// A place in a study: values of axes.
type Place = BTreeMap<String, Value>;

/// A claim as the study's file gives it, with one of `is`, `below`, `above`, `near`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// The paper's words, or nearly, and their place in the paper.
    pub(crate) says: String,
    /// The rows that the claim covers.
    #[serde(default)]
    at: Place,
    metric: String,
    /// A figure or a bound, as under `[[published]]`: `"> 20"`.
    is: Option<Value>,
    /// The metric is less than in each row that differs from this one in these values.
    below: Option<Place>,
    /// The metric is greater than in each such row.
    above: Option<Place>,
    /// The metric is as near to that of each such row as the paper's rule requires of a published figure.
    near: Option<Place>,
    /// The metric on the other side of `below`, `above` and `near`; the same one by default. With it the place may be empty: the row itself.
    than: Option<String>,
}

/// The condition of a claim.
enum Asked<'a> {
    Is(Stated),
    Below(&'a Place),
    Above(&'a Place),
    Near(&'a Place),
}

/// A claim compared with the measured figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClaimResult {
    /// The paper's words.
    pub says: String,
    /// Whether every row meets it.
    pub met: bool,
    /// The comparison, with the figures.
    pub measured: String,
}

impl ClaimResult {
    /// As words for a sheet, and whether the claim is met.
    pub(crate) fn words(self) -> (String, bool) {
        (format!("{}; {}", self.says, self.measured), self.met)
    }
}

/// A row compared with a claim.
struct Compared {
    words: String,
    met: bool,
}

impl Claim {
    pub(crate) fn check(&self, study: &Study) -> Result<(), String> {
        let fault = |why: String| format!("claim {:?}: {why}", self.says);
        self.parts(study).map(drop).map_err(fault)
    }

    /// The condition, its metric, and the metric on the other side.
    fn parts<'a>(&'a self, study: &Study) -> Result<(Asked<'a>, usize, usize), String> {
        let asked = self.asked()?;
        study.check_place(&self.at)?;
        let metric = study.metric_index(&self.metric)?;
        let other = self.than.as_deref().map_or(Ok(metric), |than| study.metric_index(than))?;
        match &asked {
            Asked::Is(_) if self.than.is_some() => Err("`than` goes with `below`, `above` and `near`".to_owned()),
            Asked::Is(_) => Ok(()),
            Asked::Below(place) | Asked::Above(place) | Asked::Near(place) => {
                if place.is_empty() && metric == other {
                    Err("a row is not compared with itself: name the axis on which the other one differs".to_owned())
                } else {
                    study.check_place(place)
                }
            }
        }?;
        Ok((asked, metric, other))
    }

    fn asked(&self) -> Result<Asked<'_>, String> {
        match (&self.is, &self.below, &self.above, &self.near) {
            (Some(is), None, None, None) => {
                let stated = Stated::of(is).ok_or_else(|| format!("`is`: {:?} is no figure and no bound", text(is)))?;
                Ok(Asked::Is(stated))
            }
            (None, Some(place), None, None) => Ok(Asked::Below(place)),
            (None, None, Some(place), None) => Ok(Asked::Above(place)),
            (None, None, None, Some(place)) => Ok(Asked::Near(place)),
            _ => Err("give one of `is`, `below`, `above`, `near`".to_owned()),
        }
    }

    /// The comparison in words: `RTT below goodput`.
    fn head(&self, asked: &Asked<'_>) -> String {
        let relation = match (asked, &self.is) {
            (Asked::Below(_), _) => "below",
            (Asked::Above(_), _) => "above",
            (Asked::Near(_), _) => "near",
            (Asked::Is(_), is) => return format!("{} {}", self.metric, is.as_ref().map_or(String::new(), text)),
        };
        format!("{} {relation} {}", self.metric, self.than.as_deref().unwrap_or("that of"))
    }
}

impl Report<'_> {
    /// Every claim of the study, compared with the measured figures.
    pub fn claims(&self, rule: &Rule) -> Vec<ClaimResult> {
        let study = self.runs.study;
        let verdict = |claim: &Claim| {
            // The study was checked when it was read.
            let (asked, metric, other) = claim.parts(study).ok()?;
            let here = self.rows.iter().filter(|row| study.is_row_at(row, &claim.at));
            let compared: Vec<Compared> =
                here.flat_map(|row| self.compared(row, &asked, (metric, other), rule)).collect();
            let met = !compared.is_empty() && compared.iter().all(|one| one.met);
            let measured = format!("{}: {}", claim.head(&asked), listed(&compared));
            Some(ClaimResult { says: claim.says.clone(), met, measured })
        };
        study.claims.iter().filter_map(verdict).collect()
    }

    /// Compares a row with the condition: alone, or with each row on the other side.
    fn compared(&self, row: &Row, asked: &Asked<'_>, (m, of): (usize, usize), rule: &Rule) -> Vec<Compared> {
        let study = self.runs.study;
        let (metric, other) = (&study.metrics[m], &study.metrics[of]);
        let measured = row.entries[m].measured;
        let here = format!("{} {}", named(row), figure(measured, metric));
        let place = match asked {
            Asked::Is(stated) => {
                let met = measured.is_some_and(|measured| rule.meets(*stated, measured, metric));
                return vec![Compared { words: here, met }];
            }
            Asked::Below(place) | Asked::Above(place) | Asked::Near(place) => place,
        };
        let against = |there: &Row| {
            let bound = there.entries[of].measured;
            let met = measured.zip(bound).is_some_and(|(measured, bound)| match asked {
                Asked::Below(_) => measured < bound,
                Asked::Above(_) => measured > bound,
                Asked::Is(_) | Asked::Near(_) => rule.meets(Stated::About(bound), measured, metric),
            });
            let bound = figure(bound, other);
            let words = if there.labels == row.labels { bound } else { format!("{} {bound}", named(there)) };
            Compared { words: format!("{here}, {words}"), met }
        };
        let there = self.rows.iter().filter(|there| study.differs(row, there, place));
        let compared: Vec<Compared> =
            there.filter(|there| m != of || there.labels != row.labels).map(against).collect();
        if compared.is_empty() {
            vec![Compared { words: format!("{here}, and nothing to compare it with"), met: false }]
        } else {
            compared
        }
    }
}

impl Study {
    /// Whether one row is at this place as seen from the other: both have the same values on the axes that the place does not name.
    fn differs(&self, here: &Row, there: &Row, place: &Place) -> bool {
        let labels = here.labels.iter().zip(&there.labels);
        self.row_axes().zip(labels).all(|(axis, (here, there))| match place.get(&axis.name) {
            Some(value) => wanted(value).contains(there),
            None => here == there,
        })
    }
}

/// The rows that do not meet a claim, if there are any; otherwise all of them.
fn listed(compared: &[Compared]) -> String {
    let missed: Vec<&Compared> = compared.iter().filter(|one| !one.met).collect();
    let of = format!("{} of {} are not: ", missed.len(), compared.len());
    let (head, shown) = match missed.is_empty() {
        true => (String::new(), compared.iter().collect()),
        false if compared.len() == 1 => (String::new(), missed),
        false => (of, missed),
    };
    let words: Vec<&str> = shown.iter().take(SHOWN).map(|one| one.words.as_str()).collect();
    let more = if shown.len() > SHOWN { format!("; and {} more", shown.len() - SHOWN) } else { String::new() };
    format!("{head}{}{more}", words.join("; "))
}

fn named(row: &Row) -> String {
    row.labels.join(" ")
}

fn figure(measured: Option<f64>, metric: &Metric) -> String {
    let d = metric.decimals;
    measured.map_or("not measured".to_owned(), |measured| format!("{measured:.d$}"))
}

/// Maximum number of comparisons shown for a claim.
const SHOWN: usize = 6;
