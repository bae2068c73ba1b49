//! Cases: a network and what must hold in it, why, and the reference beside it. Each is one file.
//!
//! A case runs its scenario with the subject as the flow `test`, and once more with the reference, a controller of ours whose agreement
//! with Linux is recorded. Several runs differ in the flow's start and in the seed; an expectation has to be met by each of them.
use crate::report::Report;
use crate::subject::{MakeEnds, Subject};
use crate::testbed::{FLOW, HOP, Testbed};
use crate::window::Figure;
use narrows_core::Span;
use narrows_core::congestion::ControllerConfig;
use narrows_core::media::MediaControlConfig;
use narrows_core::params::ParamValue as _;
use narrows_core::registry::Registered as _;
use narrows_scenario::traffic::Traffic;
use narrows_scenario::{NoTraces, Scenario};
use serde::Deserialize;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

mod sheet;
mod verdict;

pub use sheet::{overview, sheet};
pub use verdict::{Reading, Spread, Verdict, Verdicts};

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// The cases that this crate ships, by name.
pub static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let read = |&(name, text): &(&'static str, &str)| Case::parse(name, text).unwrap_or_else(|fault| panic!("{fault}"));
    FILES.iter().map(read).collect()
});

/// Starts of a case's runs differ by this: no multiple of any RTT.
const BETWEEN_STARTS: Span = Span::us(37_300);
/// Runs of a case, unless it says otherwise.
const RUNS: u32 = 3;

/// Judges two ends by the case of this name, beside its reference; `None` if there is no such case. `runs` replaces the case's own number.
pub fn judge(case: &str, name: &str, runs: Option<u32>, ends: MakeEnds) -> Option<Verdicts> {
    let mut case = CASES.iter().find(|known| known.name == case)?.clone();
    case.runs = runs.unwrap_or(case.runs).max(1);
    let subject = Subject::Peers { name: name.to_owned(), control: String::new(), ends };
    Some(case.judge(&case.run(&subject), &case.reference()))
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// `GROUP/NAME`.
    pub name: String,
    /// One sentence.
    pub title: String,
    /// Where it is said what must hold: an RFC's section, a draft.
    pub source: String,
    /// Why it matters.
    pub why: String,
    /// Controls that it concerns: names, or `any` for all but those of calls.
    pub concerns: Vec<String>,
    /// The control beside the subject.
    pub reference: Subject,
    /// Faults that fail it: of [`crate::mutants`] when the reference has them, or controls with other parameters (`bbr3:loss_threshold=0.5`).
    pub mutants: Vec<String>,
    /// Number of runs.
    pub runs: u32,
    /// What must hold.
    pub holds: Vec<Hold>,
    /// The network, and everything else on it.
    pub scenario: Scenario,
}

/// What must hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Hold {
    /// The figure.
    pub figure: Figure,
    /// The part of the run.
    pub from: Span,
    /// Its end.
    pub to: Span,
    /// Whether the figure must be at least, or else at most, the bound.
    pub at_least: bool,
    /// The bound, or the factor of what it is a bound of.
    pub bound: f64,
    /// What the bound is a factor of.
    pub of: Of,
    /// The source's own reason.
    pub because: String,
}

/// What a bound is a factor of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Of {
    /// It is a number in the figure's unit.
    Unit,
    /// What the bottleneck could have carried in the window.
    Link,
    /// The reference's mean of the same figure and window.
    Reference,
    /// Another window or figure of the same run.
    Figure(Figure, Span, Span),
}

/// A case's file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    title: String,
    source: String,
    why: String,
    concerns: Vec<String>,
    reference: String,
    mutants: Vec<String>,
    runs: Option<u32>,
    holds: Vec<HoldFile>,
    scenario: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldFile {
    figure: String,
    from: String,
    to: String,
    at_least: Option<f64>,
    at_most: Option<f64>,
    of: Option<String>,
    because: String,
}

/// A case file that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseError {
    /// The case.
    pub name: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {}: {}", self.name, self.message)
    }
}

impl std::error::Error for CaseError {}

impl Case {
    /// Reads a case file.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Case, CaseError> {
        let fault = |message: String| CaseError { name: name.to_owned(), message };
        let file: CaseFile = toml::from_str(text).map_err(|error| fault(error.to_string()))?;
        let scenario =
            Scenario::parse(&file.scenario, "scenario", &NoTraces).map_err(|error| fault(error.to_string()))?;
        let tests = scenario.flows.iter().filter(|flow| flow.name == FLOW);
        if tests.map(|flow| flow.count).sum::<u32>() != 1 {
            return Err(fault(format!("its scenario must have one flow called \"{FLOW}\"")));
        }
        if !scenario.hops.iter().any(|hop| hop.name == HOP) {
            return Err(fault(format!("its scenario must have a hop called \"{HOP}\"")));
        }
        let control = |text: &String| Subject::read("control", text).map_err(|error| fault(error.to_string()));
        let reference = control(&file.reference)?;
        file.mutants.iter().filter(|text| text.contains(':')).try_for_each(|text| control(text).map(drop))?;
        let holds: Result<Vec<Hold>, String> = file.holds.iter().map(|hold| hold.read(scenario.duration)).collect();
        let case = Case {
            name: name.to_owned(),
            title: file.title,
            source: file.source,
            why: file.why,
            concerns: file.concerns,
            reference,
            mutants: file.mutants,
            runs: file.runs.unwrap_or(RUNS),
            holds: holds.map_err(fault)?,
            scenario,
        };
        if case.holds.is_empty() || case.mutants.is_empty() || case.concerns.is_empty() || case.runs == 0 {
            return Err(fault("it needs at least one each of holds, mutants, concerns and runs".to_owned()));
        }
        Ok(case)
    }

    /// The group that it belongs to.
    pub fn group(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// Whether it concerns a control.
    pub fn concerns(&self, control: &str) -> bool {
        let any = !MediaControlConfig::NAMES.contains(&control);
        self.concerns.iter().any(|family| family == control || any && family == "any")
    }

    /// Runs it with the reference.
    pub fn reference(&self) -> Vec<Result<Report, String>> {
        self.run(&self.reference)
    }

    /// A control with a fault of [`Self::mutants`]; `None` if there is none of this name.
    pub fn mutant(&self, fault: &str) -> Option<Subject> {
        if fault.contains(':') {
            return Subject::read("mutants", fault).ok();
        }
        ControllerConfig::named(&format!("{}_{fault}", self.reference.control())).map(Subject::Controller)
    }

    /// Whether it is about what the subject controls: calls, or else data.
    pub fn suits(&self, subject: &Subject) -> bool {
        self.reference.is_media() == subject.is_media()
    }

    /// Runs it with a subject, in several starts.
    pub fn run(&self, subject: &Subject) -> Vec<Result<Report, String>> {
        (0..self.runs).map(|run| self.run_once(subject, run)).collect()
    }

    fn run_once(&self, subject: &Subject, run: u32) -> Result<Report, String> {
        if !self.suits(subject) {
            return Err(format!("{} is about {}; {} is none", self.name, self.concerns.join(" and "), subject.name()));
        }
        let scenario = self.scenario_of(subject, run);
        let seed = scenario.seed;
        let testbed = Testbed::from_scenario(scenario).packets(None);
        let done = catch_unwind(AssertUnwindSafe(|| match subject {
            Subject::Controller(_) | Subject::Media(_) => testbed.run_whole(),
            Subject::Peers { name, ends, .. } => testbed.peers(name, ends(seed)).run_whole(),
        }));
        match done {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                Err(format!("panicked: {}", text.unwrap_or("without a message")))
            }
        }
    }

    /// The scenario of a run.
    pub fn scenario_of(&self, subject: &Subject, run: u32) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.seed += u64::from(run);
        let delay = BETWEEN_STARTS * u64::from(run);
        if let Subject::Media(control) = subject {
            for flow in &mut scenario.flows {
                if let Traffic::Video(video) = &mut flow.traffic {
                    *video.control.0 = control.clone();
                }
            }
        }
        for flow in scenario.flows.iter_mut().filter(|flow| flow.name == FLOW) {
            if let narrows_scenario::Start::At(at) = &mut flow.start {
                *at += delay;
            }
            if let Subject::Controller(control) = subject {
                flow.controller = Some(control.clone());
            }
        }
        scenario
    }

    /// Judges a subject's runs beside the reference's.
    pub fn judge(&self, subject: &[Result<Report, String>], reference: &[Result<Report, String>]) -> Verdicts {
        verdict::judge(self, subject, reference)
    }
}

impl HoldFile {
    fn read(&self, duration: Span) -> Result<Hold, String> {
        let figure = Figure::read(&self.figure)?;
        let (from, to) = window(&self.from, &self.to, duration)?;
        let (at_least, bound) = match (self.at_least, self.at_most) {
            (Some(bound), None) => (true, bound),
            (None, Some(bound)) => (false, bound),
            _ => return Err(format!("{}: needs either at_least or at_most", self.figure)),
        };
        let of = self.of.as_deref().map_or(Ok(Of::Unit), |text| of(text, (from, to), duration))?;
        Ok(Hold { figure, from, to, at_least, bound, of, because: self.because.clone() })
    }
}

fn window(from: &str, to: &str, duration: Span) -> Result<(Span, Span), String> {
    let span = |text: &str| Span::parse(text).ok_or_else(|| format!("\"{text}\" is not {}", Span::allowed()));
    let (from, to) = (span(from)?, span(to)?);
    if from < to && to <= duration {
        Ok((from, to))
    } else {
        Err(format!("{from} to {to} is not a part of the {duration} of a run"))
    }
}

/// `link`, `reference`, `delay`, or `throughput from 5s to 10s`.
fn of(text: &str, same: (Span, Span), duration: Span) -> Result<Of, String> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["link"] => Ok(Of::Link),
        ["reference"] => Ok(Of::Reference),
        [name] => Ok(Of::Figure(Figure::read(name)?, same.0, same.1)),
        [name, "from", from, "to", to] => {
            let (from, to) = window(from, to, duration)?;
            Ok(Of::Figure(Figure::read(name)?, from, to))
        }
        _ => Err(format!("\"{text}\" is none of: link, reference, FIGURE, FIGURE from A to B")),
    }
}
