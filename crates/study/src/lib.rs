//! Published figures as data. A study is a file in `experiments/PAPER/` about one figure or table: an ordinary scenario, axes whose
//! combinations are the cells, the metrics of each cell, the published figures, the aims, and remarks.
//!
//! [`Study::cells`] makes the scenarios, [`Study::measure`] takes the figures from a run's result, and a [`Report`] puts them next
//! to the published ones. The caller runs the scenarios: this crate starts no thread and reads no clock.
mod cells;
mod charts;
mod chosen;
mod claims;
mod drawn;
mod draws;
mod gaps;
mod measure;
mod metric;
mod model;
mod predicted;
mod recorded;
mod report;
mod reproduction;
mod rows;
mod rule;
mod score;
mod spread;
mod statistic;
mod sweep;
mod traces;

pub use cells::Cell;
pub use chosen::{Choice, Chosen, chosen, chosen_of};
pub use claims::ClaimResult;
pub use drawn::{Drawn, DrawnKind, drawn};
pub use gaps::Gaps;
pub use metric::Metric;
pub use model::{Axis, Effort, Level, Study, StudyError};
pub use recorded::{RecordedRuns, recorded, recorded_runs};
pub use report::Report;
pub use reproduction::{Planned, Reproduction};
pub use rows::{Entry, Row};
pub use rule::Rule;
pub use score::{Group, Missed, Score};
pub use spread::{Nearness, Spread};
pub use sweep::{AxisUnit, Request, RunFigures, Sweep, SweepError};

/// The studies that are built into the program: paper, file, text.
const EMBEDDED: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// The file of a paper's rule.
const RULE: &str = "score.toml";

/// The file of a paper's gaps.
const GAPS: &str = "gaps.toml";

/// The file with measured figures that take the place of published ones.
pub const RECORDED: &str = "recorded.csv";

/// The file with figures of the authors' own program, which are shown beside the measured ones.
pub const AUTHORS: &str = "authors.csv";

/// Every paper that has studies, by name.
pub fn papers() -> Vec<&'static str> {
    let mut names: Vec<&str> = EMBEDDED.iter().map(|(paper, ..)| *paper).collect();
    names.dedup();
    names
}

/// The studies of a paper, in the order of their files' names.
pub fn studies(paper: &str) -> Result<Vec<Study>, StudyError> {
    let is_study = |file: &str| {
        file.ends_with(".toml")
            && ![RULE, GAPS].contains(&file)
            && Choice::ALL.iter().all(|choice| file != choice.file())
    };
    let of_paper = EMBEDDED.iter().filter(|(name, file, _)| *name == paper && is_study(file));
    let studies = of_paper.map(|(paper, file, text)| {
        let mut study = Study::parse(text, &format!("experiments/{paper}/{file}"))?;
        study.read_traces(|trace| embedded(paper, trace))?;
        Ok(study)
    });
    let mut studies = studies.collect::<Result<Vec<_>, _>>()?;
    for kind in [recorded::RecordedKind::Published, recorded::RecordedKind::Authors] {
        if let Some(text) = embedded(paper, kind.file()) {
            recorded::add(text, kind, &format!("experiments/{paper}/{}", kind.file()), &mut studies)?;
        }
    }
    Ok(studies)
}

/// The text of a file in a paper's folder, if the program carries it.
pub fn embedded(paper: &str, file: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(name, known, _)| *name == paper && *known == file).map(|(.., text)| *text)
}

/// The rule for how near a paper's figures have to be met; `None` for studies of our own.
pub fn rule(paper: &str) -> Result<Option<Rule>, StudyError> {
    let parse = |text| Rule::parse(text, &format!("experiments/{paper}/{RULE}"), |paper| embedded(paper, RULE));
    embedded(paper, RULE).map(parse).transpose()
}

/// The gaps of a paper: why figures are not met. None if it has no such file.
pub(crate) fn gaps(paper: &str) -> Result<Gaps, StudyError> {
    let Some(text) = embedded(paper, GAPS) else { return Ok(Gaps::default()) };
    let file = format!("experiments/{paper}/{GAPS}");
    let gaps = Gaps::parse(text, paper, &file)?;
    gaps.check(&studies(paper)?).map_err(|message| StudyError { file, message })?;
    Ok(gaps)
}
