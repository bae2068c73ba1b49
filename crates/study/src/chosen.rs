//! The cells for worlds that are slower than the simulator: `experiments/PAPER/kernel.toml` and `live.toml`.
//!
//! In a guest, a second at 100 Mbit/s takes as long as hours in the simulator, and the live world runs in real time. So these worlds run only a few
//! cells of a study, and shorten them. A file names places in the paper's studies, each with a duration by level; a place without a level's duration is not run at that level.
use crate::cells::Cell;
use crate::model::{Level, Study, StudyError};
use crate::rows::Runs;
use crate::{EMBEDDED, embedded, papers, studies};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The worlds whose cells are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// A Linux kernel in a virtual machine.
    Kernel,
    /// Real time.
    Live,
}

impl Choice {
    /// All of them.
    pub(crate) const ALL: [Choice; 2] = [Choice::Kernel, Choice::Live];

    /// The name of the file in a paper's folder.
    pub const fn file(self) -> &'static str {
        match self {
            Choice::Kernel => "kernel.toml",
            Choice::Live => "live.toml",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cells: Vec<Place>,
    /// Keys of the studies' scenarios that keep their defaults here, also in the simulator beside this world: settings that its senders lack.
    #[serde(default)]
    without: Vec<String>,
    /// Remarks on figures in this world.
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

/// A place in a study. If several places name a cell, the first one applies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    figure: String,
    #[serde(default)]
    at: BTreeMap<String, Value>,
    quick: Option<String>,
    default: Option<String>,
    full: String,
    /// Independent runs, except at the quick level.
    #[serde(default = "one")]
    runs: u64,
}

const fn one() -> u64 {
    1
}

/// A study, and the cells of it that a world runs.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The paper's name.
    pub paper: &'static str,
    /// The study.
    pub study: Study,
    /// The cells, in the study's order, with scenarios as long as the file says.
    pub cells: Vec<Cell>,
    /// How many runs of each are made.
    pub runs: Vec<u64>,
    /// Remarks on the figure in this world.
    pub note: Option<String>,
}

/// The cells of every paper that a world runs at a level. A study without any is left out.
///
/// # Errors
/// Names a file, and a figure or a place in it that does not exist.
pub fn chosen(choice: Choice, level: Level) -> Result<Vec<Chosen>, StudyError> {
    let mut all = Vec::new();
    for paper in papers() {
        all.extend(chosen_of(choice, paper, level)?.unwrap_or_default());
    }
    Ok(all)
}

/// The keys of a paper's scenarios that this world's senders cannot set.
pub(crate) fn without(choice: Choice, paper: &str) -> Result<Vec<String>, StudyError> {
    let read = |text| match toml::from_str::<File>(text) {
        Ok(file) => Ok(file.without),
        Err(error) => {
            Err(StudyError { file: format!("experiments/{paper}/{}", choice.file()), message: error.to_string() })
        }
    };
    embedded(paper, choice.file()).map_or(Ok(Vec::new()), read)
}

/// Those of one paper; `None` if it has no file for the world.
///
/// # Errors
/// As [`chosen`].
pub fn chosen_of(choice: Choice, paper: &str, level: Level) -> Result<Option<Vec<Chosen>>, StudyError> {
    let file = EMBEDDED.iter().find(|(name, file, _)| *name == paper && *file == choice.file());
    file.map(|&(paper, file, text)| choose(paper, file, text, studies(paper)?, level)).transpose()
}

fn choose(
    paper: &'static str,
    name: &str,
    text: &str,
    studies: Vec<Study>,
    level: Level,
) -> Result<Vec<Chosen>, StudyError> {
    let fault = |message: String| StudyError { file: format!("experiments/{paper}/{name}"), message };
    let mut file: File = toml::from_str(text).map_err(|error| fault(error.to_string()))?;
    let named = file.cells.iter().map(|place| &place.figure).chain(file.notes.keys());
    if let Some(unknown) = named.into_iter().find(|name| !studies.iter().any(|study| study.figure == **name)) {
        return Err(fault(format!("{paper} has no figure {unknown:?}")));
    }
    let mut all = Vec::new();
    let mut left_out = vec![false; file.without.len()];
    for mut study in studies {
        // By the place in the study's order.
        let mut cells: BTreeMap<usize, (Cell, u64)> = BTreeMap::new();
        for place in file.cells.iter().filter(|place| place.figure == study.figure) {
            study.check_cells(&place.at).map_err(|message| fault(format!("{}: {message}", study.figure)))?;
            let Some(duration) = place.at_level(level) else { continue };
            let set = Table::from_iter([("duration".to_owned(), Value::String(duration.clone()))]);
            for (n, mut cell) in study.cells_with(&set)?.into_iter().enumerate() {
                for (key, is_there) in file.without.iter().zip(&mut left_out) {
                    *is_there |= cell.leave_out(key);
                }
                if study.is_at(&cell, &place.at) {
                    cells.entry(n).or_insert((cell, place.runs_at(level)));
                }
            }
        }
        if !cells.is_empty() {
            let note = file.notes.remove(&study.figure);
            let (cells, runs): (Vec<Cell>, Vec<u64>) = cells.into_values().unzip();
            study.keep_only(&cells);
            all.push(Chosen { paper, study, cells, runs, note });
        }
    }
    match file.without.iter().zip(left_out).find(|&(_, is_there)| !is_there && level == Level::Full) {
        Some((key, _)) => Err(fault(format!("without: no scenario of the cells has the key {key:?}"))),
        None => Ok(all),
    }
}

impl Study {
    /// Leaves out the totals of axes that these cells have only a part of, and the aims that none of their rows has.
    pub(crate) fn keep_only(&mut self, cells: &[Cell]) {
        for (n, axis) in self.axes.iter_mut().enumerate() {
            let has = |label: &String| cells.iter().any(|cell| cell.labels[n] == *label);
            if !axis.labels().iter().all(has) {
                axis.total = None;
            }
        }
        let rows = Runs { study: self, cells, values: &vec![Vec::new(); cells.len()] }.rows();
        let mut holds = std::mem::take(&mut self.holds);
        holds.retain(|hold| rows.iter().any(|row| self.is_row_at(row, &hold.at)));
        self.holds = holds;
    }
}

impl Place {
    fn at_level(&self, level: Level) -> Option<&String> {
        match level {
            Level::Quick => self.quick.as_ref(),
            Level::Default => self.default.as_ref(),
            Level::Full => Some(&self.full),
        }
    }

    fn runs_at(&self, level: Level) -> u64 {
        if level == Level::Quick { 1 } else { self.runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::Span;

    #[test]
    fn a_part_of_an_axis_has_no_total_and_its_aims_are_not_judged() {
        let of = |text: &str| {
            let studies = studies("tonopah").expect("embedded");
            choose("tonopah", "live.toml", text, studies, Level::Full).expect("it is right").remove(0).study
        };
        let totals = |study: &Study| study.axes.iter().filter_map(|axis| axis.total.clone()).collect::<Vec<_>>();
        let figure = "[[cells]]\nfigure = \"table II\"\nfull = \"5s\"\n";
        let whole = of(figure);
        assert_eq!((totals(&whole), whole.holds.len()), (vec!["all paths".to_owned()], 1));
        let part = of(&format!("{figure}at = {{ path = \"10 ms, 10 Mbit/s\", rule = \"published\" }}\n"));
        assert_eq!((totals(&part), part.holds.len()), (vec![], 0));
    }

    fn of(text: &str, level: Level) -> Result<Vec<Chosen>, String> {
        let studies = studies("cocoa").expect("embedded");
        choose("cocoa", "kernel.toml", text, studies, level).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_place_that_names_a_cell_counts() {
        let text = "[[cells]]\nfigure = \"table 1\"\nat = { queue = \"cocoa\" }\ndefault = \"3s\"\nfull = \"5s\"\nruns = 3\n\
                    [[cells]]\nfigure = \"table 1\"\nat = { controller = \"cubic\" }\nfull = \"7s\"\n[notes]\n\"table 1\" = \"short\"\n";
        let lasting = |level| {
            let chosen = of(text, level).expect("it is right");
            let cells = chosen.iter().flat_map(|chosen| &chosen.cells);
            let lasts = |cell: &Cell| cell.scenario(1).expect("a scenario").duration;
            cells.map(|cell| (cell.labels.join(" "), lasts(cell))).collect::<Vec<_>>()
        };
        let named = |list: &[(&str, u64)]| list.iter().map(|&(n, s)| (n.to_owned(), Span::s(s))).collect::<Vec<_>>();
        assert_eq!(lasting(Level::Quick), []);
        assert_eq!(lasting(Level::Default), named(&[("cubic cocoa", 3), ("new_reno cocoa", 3)]));
        let full = [("cubic fq", 7), ("cubic fq_codel", 7), ("cubic cocoa", 5), ("new_reno cocoa", 5)];
        assert_eq!(lasting(Level::Full), named(&full));
        let full = of(text, Level::Full).expect("it is right");
        assert_eq!((full[0].note.as_deref(), &full[0].runs[..]), (Some("short"), &[1, 1, 3, 3][..]));
    }

    #[test]
    fn keys_are_left_out_wherever_they_stand() {
        let keys = ["initial_window", "by_ack", "hystart", "recovery"];
        let with = |keys: &[&str]| {
            let text = format!("without = {keys:?}\n[[cells]]\nfigure = \"figure 1, one flow\"\nfull = \"40s\"\n");
            let studies = studies("cp-aqm").expect("embedded");
            let chosen = choose("cp-aqm", "kernel.toml", &text, studies, Level::Full).expect("it is right").remove(0);
            chosen.cells.iter().map(|cell| cell.scenario(1).expect("a scenario").to_toml()).collect::<Vec<_>>()
        };
        for (as_written, without) in with(&[]).iter().zip(with(&keys)) {
            let growth = if without.contains("new_reno") { "by_ack = " } else { "hystart = " };
            for part in ["initial_window = ", "recovery = ", growth] {
                let line = |text: &str| text.lines().find(|line| line.contains(part)).map(str::to_owned);
                assert!(line(as_written).is_some() && line(as_written) != line(&without), "{part} in\n{without}");
            }
        }
    }

    #[test]
    fn what_a_study_does_not_have_is_named() {
        let of = |text| of(text, Level::Full).err().unwrap_or_default();
        assert_eq!(
            of("[[cells]]\nfigure = \"figure 99\"\nfull = \"5s\"\n"),
            "experiments/cocoa/kernel.toml: cocoa has no figure \"figure 99\""
        );
        let place = "[[cells]]\nfigure = \"table 1\"\nat = { queue = \"red\" }\nfull = \"5s\"\n";
        assert!(of(place).contains("table 1: axis \"queue\" has no value \"red\"; it has fq, fq_codel, cocoa"));
        assert!(of("[[cells]]\nfigure = \"table 1\"\n").contains("missing field `full`"));
        let keys = "without = [\"queue\", \"hue\"]\n[[cells]]\nfigure = \"table 1\"\nfull = \"5s\"\n";
        assert!(of(keys).contains("without: no scenario of the cells has the key \"hue\""));
    }

    #[test]
    fn every_file_names_cells_that_are_scenarios() {
        let count = |choice, level| {
            let chosen = chosen(choice, level).unwrap_or_else(|error| panic!("{error}"));
            for Chosen { study, cells, .. } in &chosen {
                cells.iter().for_each(|cell| drop(study.run(cell, 1, 1).unwrap_or_else(|error| panic!("{error}"))));
            }
            chosen.iter().map(|chosen| chosen.cells.len()).sum::<usize>()
        };
        for choice in Choice::ALL {
            let [quick, default, full] = [Level::Quick, Level::Default, Level::Full].map(|level| count(choice, level));
            assert!(0 < quick && quick < default && default < full, "{choice:?}: {quick} {default} {full}");
        }
    }
}
