//! What a case says of a subject.
use super::{Case, Hold, Of};
use crate::report::Report;
use crate::window::Figure;
use narrows_core::Span;
use serde::{Deserialize, Serialize};

/// A verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that must hold does.
    Holds,
    /// Something does not.
    Fails,
    /// The subject does not show what the case would judge.
    Note,
}

/// The least and the most of several runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

/// One expectation beside what was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reading {
    /// The figure.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// The part of the run, s.
    pub from_s: f64,
    /// Its end, s.
    pub to_s: f64,
    /// The expectation in words: `>= 0.95 of link`.
    pub expected: String,
    /// The bound in the figure's unit; of several runs the strictest.
    pub bound: Option<f64>,
    /// The subject's figures.
    pub measured: Option<Spread>,
    /// The reference's figures.
    pub reference: Option<Spread>,
    /// The verdict.
    pub verdict: Verdict,
    /// The source's reason.
    pub because: String,
}

/// What a case says of a subject.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verdicts {
    /// The case.
    pub case: String,
    /// The verdict on the whole.
    pub verdict: Verdict,
    /// The number of runs.
    pub runs: usize,
    /// Why there is no figure, or why the ends were silenced.
    pub failure: Option<String>,
    /// Each expectation.
    pub readings: Vec<Reading>,
}

type Runs<'a> = &'a [Result<Report, String>];

pub(super) fn judge(case: &Case, subject: Runs<'_>, reference: Runs<'_>) -> Verdicts {
    let failed = |run: &Result<Report, String>| match run {
        Ok(report) => report.fault().map(ToString::to_string),
        Err(error) => Some(error.clone()),
    };
    let failure = subject.iter().find_map(failed);
    let readings: Vec<Reading> = case.holds.iter().map(|hold| hold.read_from(subject, reference)).collect();
    let verdict = match () {
        () if failure.is_some() => Verdict::Fails,
        () if readings.iter().any(|reading| reading.verdict == Verdict::Fails) => Verdict::Fails,
        () if readings.iter().all(|reading| reading.verdict == Verdict::Note) => Verdict::Note,
        () => Verdict::Holds,
    };
    Verdicts { case: case.name.clone(), verdict, runs: subject.len(), failure, readings }
}

impl Hold {
    fn read_from(&self, subject: Runs<'_>, reference: Runs<'_>) -> Reading {
        let own = |run: &Result<Report, String>| run.as_ref().ok()?.window(self.figure, self.from, self.to);
        let measured: Option<Vec<f64>> = subject.iter().map(own).collect();
        let beside: Option<Vec<f64>> = reference.iter().map(own).collect();
        let mean = beside.as_ref().map(|all| all.iter().sum::<f64>() / all.len() as f64);
        let bounds = subject.iter().map(|run| self.bound_for(run.as_ref().ok()?, mean)).collect::<Option<Vec<f64>>>();
        let verdict = match (&measured, &bounds) {
            (Some(measured), Some(bounds)) => {
                let meets = |(value, bound): (&f64, &f64)| if self.at_least { value >= bound } else { value <= bound };
                if measured.iter().zip(bounds).all(meets) { Verdict::Holds } else { Verdict::Fails }
            }
            _ => Verdict::Note,
        };
        let strictest = bounds.as_deref().and_then(spread).map(|all| if self.at_least { all.max } else { all.min });
        Reading {
            figure: self.figure.name().to_owned(),
            unit: self.figure.unit().to_owned(),
            from_s: self.from.as_secs_f64(),
            to_s: self.to.as_secs_f64(),
            expected: self.to_string(),
            bound: strictest,
            measured: measured.as_deref().and_then(spread),
            reference: beside.as_deref().and_then(spread),
            verdict,
            because: self.because.clone(),
        }
    }

    fn bound_for(&self, report: &Report, reference: Option<f64>) -> Option<f64> {
        let of = match self.of {
            Of::Unit => Some(1.0),
            Of::Link => Some(report.link(self.from, self.to)),
            Of::Reference => reference,
            Of::Figure(figure, from, to) => report.window(figure, from, to),
        };
        Some(self.bound * of?)
    }
}

impl std::fmt::Display for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let relation = if self.at_least { ">=" } else { "<=" };
        write!(f, "{relation} {}", self.bound)?;
        let part = |f: &mut std::fmt::Formatter<'_>, figure: Figure, from: Span, to: Span| {
            write!(f, " × {} from {from} to {to}", figure.name())
        };
        match self.of {
            Of::Unit if self.figure.unit().is_empty() => Ok(()),
            Of::Unit => write!(f, " {}", self.figure.unit()),
            Of::Link => f.write_str(" × the link's rate"),
            Of::Reference => f.write_str(" × the reference's"),
            Of::Figure(figure, from, to) => part(f, figure, from, to),
        }
    }
}

fn spread(values: &[f64]) -> Option<Spread> {
    let of = |least: fn(f64, f64) -> f64| values.iter().copied().reduce(least);
    Some(Spread { min: of(f64::min)?, max: of(f64::max)? })
}
