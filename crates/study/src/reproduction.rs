//! A paper's studies with the measured figures: tables, data and score.
use crate::gaps::Gaps;
use crate::score::Group;
use crate::{Cell, Choice, Chosen, Level, Missed, Report, Rule, Score, Study, StudyError};
use narrows_report::sheet::{Head, Sheet};
use serde_json::{Value, json};

/// A chosen study, with the cells and the number of runs.
pub struct Planned {
    /// The study.
    pub study: Study,
    /// Its cells.
    pub cells: Vec<Cell>,
    /// Runs of each cell.
    pub runs: u64,
}

impl Planned {
    /// The paper's studies that these figures or tables name, all if there are none, with this number of runs or as many as the study
    /// says.
    ///
    /// # Errors
    /// A study that is wrong, or a name that no study has; the error says which ones there are.
    pub fn of(paper: &str, figures: &[String], level: Level, runs: Option<u64>) -> Result<Vec<Planned>, StudyError> {
        let studies = crate::studies(paper)?;
        if let Some(id) = figures.iter().find(|id| !studies.iter().any(|study| study.is_called(id))) {
            let known: Vec<&str> = studies.iter().map(|study| study.figure.as_str()).collect();
            let message = format!("{paper} has no {id:?}; it has {}", known.join(", "));
            return Err(StudyError { file: "figure".to_owned(), message });
        }
        let wanted = |study: &Study| figures.is_empty() || figures.iter().any(|id| study.is_called(id));
        let planned = |study: Study| {
            let cells = study.cells(level)?;
            let runs = runs.unwrap_or(study.effort(level).runs);
            Ok(Planned { study, cells, runs })
        };
        studies.into_iter().filter(wanted).map(planned).collect()
    }

    /// Keeps the cells whose names, figure included, are wanted.
    pub fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.cells.retain(|cell| is_wanted(cell.name()));
        self.study.keep_only(&self.cells);
    }

    /// Removes the settings that this world's senders lack.
    ///
    /// # Errors
    /// The file of the world's choice is wrong.
    pub fn adapt(&mut self, choice: Choice, paper: &str) -> Result<(), StudyError> {
        let keys = crate::chosen::without(choice, paper)?;
        for cell in &mut self.cells {
            for key in &keys {
                cell.leave_out(key);
            }
        }
        Ok(())
    }

    /// The cells that another world runs of the paper, if there is a choice of them.
    ///
    /// # Errors
    /// A study or the choice is wrong.
    pub fn chosen(
        choice: Choice,
        paper: &str,
        level: Level,
        runs: Option<u64>,
    ) -> Result<Option<Vec<Planned>>, StudyError> {
        let planned = |chosen: Chosen| {
            let runs = runs.or(chosen.runs.into_iter().max()).unwrap_or(1);
            Planned { study: chosen.study, cells: chosen.cells, runs }
        };
        Ok(crate::chosen_of(choice, paper, level)?.map(|chosen| chosen.into_iter().map(planned).collect()))
    }
}

impl Study {
    /// Whether it judges claims, which are about all of its cells.
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// Whether this name selects the study: that of its group, or `figure 7-8`, `7-8` and `8` do; `1` selects both `figure 1, one flow` and `figure 1, 16
    /// flows`.
    pub fn is_called(&self, id: &str) -> bool {
        let (id, figure) = (id.trim().to_lowercase(), self.figure.to_lowercase());
        if self.group.as_ref().is_some_and(|group| group.to_lowercase() == id) {
            return true;
        }
        let Some(number) = figure.split_whitespace().nth(1).map(|word| word.trim_end_matches(',')) else {
            return figure == id;
        };
        let within = |range: (&str, &str)| match (range.0.parse(), range.1.parse(), id.parse::<u32>()) {
            (Ok(first), Ok(last), Ok(id)) => (first..=last).contains(&id),
            _ => false,
        };
        figure == id || number == id || number.split_once('-').is_some_and(within)
    }
}

/// The reports of a paper's studies.
pub struct Reproduction<'a> {
    pub(crate) paper: &'a str,
    plan: &'a [Planned],
    /// One for each study of the plan.
    pub reports: Vec<Report<'a>>,
    pub(crate) rule: Option<Rule>,
    gaps: Gaps,
}

impl<'a> Reproduction<'a> {
    /// The reports of these studies.
    ///
    /// # Errors
    /// The paper's rule is wrong, or its gaps are.
    pub fn new(paper: &'a str, plan: &'a [Planned], reports: Vec<Report<'a>>) -> Result<Reproduction<'a>, StudyError> {
        Ok(Reproduction { paper, plan, reports, rule: crate::rule(paper)?, gaps: crate::gaps(paper)? })
    }

    /// Without the paper's rule, which is for whole figures.
    #[must_use]
    pub fn unscored(mut self) -> Self {
        self.rule = None;
        self
    }

    /// The tables: those that are joined first, then one for each other study.
    pub fn sheets(&self) -> Vec<Sheet> {
        let runs = self.plan.iter().map(|planned| planned.runs).min().unwrap_or(1);
        let mut sheets: Vec<Sheet> = Report::joined(&self.reports, runs).into_iter().collect();
        let alone = self.reports.iter().zip(self.plan).filter(|(_, planned)| planned.study.join.is_none());
        sheets.extend(alone.map(|(report, planned)| report.sheet(planned.runs, self.rule.as_ref())));
        sheets
    }

    /// Everything as data; `subject` is what was measured, if it was not the simulator.
    pub fn json(&self, subject: Option<&str>) -> Value {
        let figure = |(report, planned): (&Report<'_>, &Planned)| {
            let Planned { study, runs, .. } = planned;
            json!({
                "figure": study.figure, "title": study.title, "runs": runs,
                "axes": study.row_axes().map(|axis| &axis.name).collect::<Vec<_>>(),
                "pooled": study.axes.iter().filter(|axis| axis.pooled).map(|axis| &axis.name).collect::<Vec<_>>(),
                "cells": report.rows(), "simulator": report.rows_beside(),
                "claims": self.rule.as_ref().map_or(Vec::new(), |rule| report.claims(rule)),
                "broken": report.broken(),
            })
        };
        let figures: Vec<Value> = self.reports.iter().zip(self.plan).map(figure).collect();
        let mut json = json!({ "paper": self.paper, "figures": figures });
        if let Some(subject) = subject {
            json["measured"] = json!(subject);
        }
        if let Some(score) = self.score() {
            json["score"] = json!(score);
        }
        json
    }

    /// How many of the published figures and claims are met, if the paper has a rule for that.
    pub fn score(&self) -> Option<Score> {
        let rule = self.rule.as_ref()?;
        Some(self.reports.iter().map(|report| report.score(rule, &self.gaps)).fold(Score::default(), Score::and))
    }

    /// The score in words: what is not met, and why; how many figures and claims are met, and for how many of the others an
    /// experiment shows the reason. Empty where nothing is published.
    pub fn verdict(&self) -> String {
        let Some((rule, score)) = self.judged() else { return String::new() };
        let missed: String = score.missed.iter().map(Missed::words).collect();
        format!("{missed}{}", self.counts(rule, &score))
    }

    /// The sheets of a page: the tables, and the score with what is not met.
    pub fn page(&self) -> Vec<Sheet> {
        let mut sheets = self.sheets();
        let Some((rule, score)) = self.judged() else { return sheets };
        let row = |Missed { what, why, command }: &Missed| {
            vec![what.clone(), why.clone().unwrap_or_default(), command.clone().unwrap_or_default()]
        };
        let head = |name: &str| Head { name: name.to_owned(), which: String::new() };
        sheets.push(Sheet {
            heading: "Score".to_owned(),
            title: format!("{} of {} published figures and claims met", score.met, score.published),
            source: String::new(),
            about: self.counts(rule, &score),
            heads: ["not met", "why", "shown by"].map(head).to_vec(),
            names: 3,
            rows: score.missed.iter().map(row).collect(),
            claims: Vec::new(),
            holds: Vec::new(),
            remarks: Vec::new(),
            charts: Vec::new(),
            listings: Vec::new(),
        });
        sheets
    }

    /// The paper's rule with its score, if anything is published.
    fn judged(&self) -> Option<(&Rule, Score)> {
        self.rule.as_ref().zip(self.score()).filter(|(_, score)| score.published > 0)
    }

    /// How many figures and claims are met, and for how many of the others an experiment shows the reason.
    fn counts(&self, rule: &Rule, score: &Score) -> String {
        let shown = score.missed.iter().filter(|missed| missed.command.is_some()).count();
        let others = match score.missed.len() {
            _ if self.gaps.is_empty() => String::new(),
            0 => String::new(),
            1 if shown == 1 => "an experiment shows why the other one is not\n".to_owned(),
            n => format!("of the {n} others, experiments show why for {shown}\n"),
        };
        let Score { met, published, .. } = score;
        let groups: String = score.groups.iter().map(Group::words).collect();
        let figures = match &score.worlds {
            Some([of, here]) => format!("figures of the {here} are as near to {of} as aimed at"),
            None => "published figures and claims met".to_owned(),
        };
        format!("{groups}{met} of {published} {figures}, {}\n{others}", rule.words())
    }

    /// The number of aims that are not met.
    pub fn broken(&self) -> usize {
        self.reports.iter().map(|report| report.broken().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_its_number() {
        let found = |id: &str, paper: &str| -> Vec<String> {
            let planned = Planned::of(paper, &[id.to_owned()], Level::Quick, None);
            let planned = planned.unwrap_or_else(|error| panic!("{error}"));
            planned.into_iter().map(|planned| planned.study.figure).collect()
        };
        assert_eq!(found("8", "cocoa"), ["figure 7-8"]);
        for id in ["III", "table iii", "Table III"] {
            assert_eq!(found(id, "tonopah"), ["table III"], "{id}");
        }
        assert_eq!(found("1", "cp-aqm"), ["figure 1, 16 flows", "figure 1, one flow", "figure 1, datagrams"]);
        let refused = Planned::of("cocoa", &["99".to_owned()], Level::Quick, None).err();
        assert!(refused.is_some_and(|error| error.message.starts_with("cocoa has no \"99\"; it has ")));
    }
}
