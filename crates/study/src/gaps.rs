//! Why a figure is not met, and the experiment that shows it. A paper's gaps are in `experiments/PAPER/gaps.toml`.
//!
//! A gap explains figures or a claim that are not met. An entry for a figure or claim that is met has no effect.
use crate::model::{Study, StudyError};
use crate::rows::Row;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Value;

/// A paper's gaps.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gaps {
    #[serde(skip)]
    paper: String,
    #[serde(default, rename = "gap")]
    gaps: Vec<Gap>,
}

/// A gap: some figures of a metric, or one claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gap {
    /// The study's figure.
    figure: String,
    /// The rows that it explains.
    #[serde(default)]
    at: BTreeMap<String, Value>,
    metric: Option<String>,
    /// A part of the claim's words that no other claim of the study has.
    claim: Option<String>,
    /// The reason in a sentence.
    pub(crate) why: String,
    /// The figure of the study that shows it.
    see: Option<String>,
    /// Another command that shows it. If the reason is unknown, neither is given.
    run: Option<String>,
}

impl Gaps {
    pub(crate) fn parse(text: &str, paper: &str, file: &str) -> Result<Gaps, StudyError> {
        let fault = |error: toml::de::Error| StudyError { file: file.to_owned(), message: error.to_string() };
        Ok(Gaps { paper: paper.to_owned(), ..toml::from_str(text).map_err(fault)? })
    }

    /// Whether the paper has no gaps.
    pub(crate) fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Checks that every gap names an existing figure or claim; `studies` are all studies of the paper.
    pub(crate) fn check(&self, studies: &[Study]) -> Result<(), String> {
        self.gaps.iter().try_for_each(|gap| gap.check(studies))
    }

    /// The command that shows the reason of one of these gaps.
    pub(crate) fn command(&self, gap: &Gap) -> Option<String> {
        let study = gap.see.as_ref().map(|see| format!("narrows reproduce {} --figure {see:?}", self.paper));
        study.or_else(|| gap.run.clone())
    }

    /// The gap of a row's figure.
    pub(crate) fn of_figure(&self, study: &Study, row: &Row, metric: &str) -> Option<&Gap> {
        self.gaps.iter().find(|gap| {
            gap.figure == study.figure && gap.metric.as_deref() == Some(metric) && study.is_row_at(row, &gap.at)
        })
    }

    /// The gap of a claim with these words.
    pub(crate) fn of_claim(&self, study: &Study, says: &str) -> Option<&Gap> {
        let is_about = |gap: &&Gap| gap.claim.as_ref().is_some_and(|claim| says.contains(claim));
        self.gaps.iter().filter(|gap| gap.figure == study.figure).find(is_about)
    }
}

impl Gap {
    fn check(&self, studies: &[Study]) -> Result<(), String> {
        let fault = |why: String| format!("gap of {:?}: {why}", self.figure);
        let called = |figure: &str| {
            let known = || studies.iter().map(|study| study.figure.as_str()).collect::<Vec<_>>().join(", ");
            let found = studies.iter().find(|study| study.figure == figure);
            found.ok_or_else(|| fault(format!("there is no study {figure:?}; there are {}", known())))
        };
        let study = called(&self.figure)?;
        self.see.as_deref().map_or(Ok(()), |see| called(see).map(drop))?;
        if self.see.is_some() && self.run.is_some() {
            return Err(fault("give `see` or `run`".to_owned()));
        }
        study.check_place(&self.at).map_err(fault)?;
        match (&self.metric, &self.claim) {
            (Some(metric), None) => study.metric_index(metric).map(drop).map_err(fault),
            (None, Some(_)) if !self.at.is_empty() => Err(fault("`at` goes with `metric`".to_owned())),
            (None, Some(words)) => match study.claims.iter().filter(|claim| claim.says.contains(words)).count() {
                1 => Ok(()),
                n => Err(fault(format!("{n} claims say {words:?}: give words that one of them has"))),
            },
            _ => Err(fault("give one of `metric`, `claim`".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the gaps of the paper's studies can be these.
    fn checked(text: &str) -> Result<(), String> {
        let gaps = Gaps::parse(text, "cocoa", "gaps.toml").map_err(|error| error.message)?;
        gaps.check(&crate::studies("cocoa").expect("its studies"))
    }

    #[test]
    fn the_gaps_of_every_paper_can_be() {
        for paper in ["cocoa", "cp-aqm", "startup", "thin-streams", "tonopah"] {
            assert!(!crate::gaps(paper).unwrap_or_else(|error| panic!("{error}")).is_empty(), "{paper}");
        }
        assert!(crate::gaps("league").is_ok_and(|gaps| gaps.is_empty()));
    }

    #[test]
    fn a_gap_names_what_there_is() {
        let gap = |keys: &str| checked(&format!("[[gap]]\nfigure = \"figure 9\"\nwhy = \"w\"\n{keys}"));
        assert_eq!(gap("metric = \"RTT before\"\nat = { queue = \"cocoa\" }\nsee = \"BBR's queue\""), Ok(()));
        let refused = |keys: &str, why: &str| {
            let error = gap(keys).expect_err(keys);
            assert!(error.contains(why), "{error}");
        };
        refused("", "give one of `metric`, `claim`");
        refused("metric = \"RTT before\"\nclaim = \"c\"", "give one of `metric`, `claim`");
        refused("metric = \"RTT\"", "there is no metric \"RTT\"");
        refused("metric = \"RTT before\"\nat = { queue = \"red\" }", "axis \"queue\" has no value \"red\"");
        refused("claim = \"nobody says this\"", "0 claims say \"nobody says this\"");
        refused("claim = \"c\"\nat = { queue = \"cocoa\" }", "`at` goes with `metric`");
        refused("metric = \"RTT before\"\nsee = \"figure 10\"", "there is no study \"figure 10\"; there are ");
        refused("metric = \"RTT before\"\nsee = \"figure 9\"\nrun = \"true\"", "give `see` or `run`");
        refused("metric = \"RTT before\"\nwhere = \"here\"", "unknown field `where`");
    }
}
