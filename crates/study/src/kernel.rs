//! The cells that a kernel in a virtual machine runs: `experiments/PAPER/kernel.toml`.
//!
//! A guest takes as long for a second at 100 Mbit/s as the simulator for hours, so it runs a few cells of a study, and shorter ones. The file names places
//! in the paper's studies, each with a duration by level; a place without a level's duration is not run at that level.
use crate::cells::Cell;
use crate::model::{Level, Study, StudyError};
use crate::{EMBEDDED, papers, studies};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The name of the file in a paper's folder.
pub(crate) const FILE: &str = "kernel.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cells: Vec<Place>,
    /// What a reader should know of a figure here.
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

/// A place in a study. Of several that name a cell the first one counts.
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

/// A study, and the cells of it that a kernel runs.
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
    /// What a reader should know of the figure here.
    pub note: Option<String>,
}

/// The cells of every paper at a level. A study without any is left out.
///
/// # Errors
/// Names a file, and a figure or a place in it that does not exist.
pub fn for_kernel(level: Level) -> Result<Vec<Chosen>, StudyError> {
    let mut all = Vec::new();
    for paper in papers() {
        let Some((.., text)) = EMBEDDED.iter().find(|(name, file, _)| *name == paper && *file == FILE) else {
            continue;
        };
        all.extend(chosen(paper, text, studies(paper)?, level)?);
    }
    Ok(all)
}

fn chosen(paper: &'static str, text: &str, studies: Vec<Study>, level: Level) -> Result<Vec<Chosen>, StudyError> {
    let fault = |message: String| StudyError { file: format!("experiments/{paper}/{FILE}"), message };
    let mut file: File = toml::from_str(text).map_err(|error| fault(error.to_string()))?;
    let named = file.cells.iter().map(|place| &place.figure).chain(file.notes.keys());
    if let Some(unknown) = named.into_iter().find(|name| !studies.iter().any(|study| study.figure == **name)) {
        return Err(fault(format!("{paper} has no figure {unknown:?}")));
    }
    let mut all = Vec::new();
    for study in studies {
        // By the place in the study's order.
        let mut cells: BTreeMap<usize, (Cell, u64)> = BTreeMap::new();
        for place in file.cells.iter().filter(|place| place.figure == study.figure) {
            study.check_place(&place.at).map_err(|message| fault(format!("{}: {message}", study.figure)))?;
            let Some(duration) = place.at_level(level) else { continue };
            let set = Table::from_iter([("duration".to_owned(), Value::String(duration.clone()))]);
            for (n, cell) in study.cells_with(&set)?.into_iter().enumerate() {
                if study.is_at(&cell, &place.at) {
                    cells.entry(n).or_insert((cell, place.runs_at(level)));
                }
            }
        }
        if !cells.is_empty() {
            let note = file.notes.remove(&study.figure);
            let (cells, runs) = cells.into_values().unzip();
            all.push(Chosen { paper, study, cells, runs, note });
        }
    }
    Ok(all)
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

    fn of(text: &str, level: Level) -> Result<Vec<Chosen>, String> {
        let studies = studies("cocoa").expect("embedded");
        chosen("cocoa", text, studies, level).map_err(|error| error.to_string())
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
    fn what_a_study_does_not_have_is_named() {
        let of = |text| of(text, Level::Full).err().unwrap_or_default();
        assert_eq!(
            of("[[cells]]\nfigure = \"figure 99\"\nfull = \"5s\"\n"),
            "experiments/cocoa/kernel.toml: cocoa has no figure \"figure 99\""
        );
        let place = "[[cells]]\nfigure = \"table 1\"\nat = { queue = \"red\" }\nfull = \"5s\"\n";
        assert!(of(place).contains("table 1: axis \"queue\" has no value \"red\"; it has fq, fq_codel, cocoa"));
        assert!(of("[[cells]]\nfigure = \"table 1\"\n").contains("missing field `full`"));
    }

    #[test]
    fn every_file_names_cells_that_are_scenarios() {
        let count = |level| {
            let chosen = for_kernel(level).unwrap_or_else(|error| panic!("{error}"));
            for Chosen { study, cells, .. } in &chosen {
                cells.iter().for_each(|cell| drop(study.run(cell, 1, 1).unwrap_or_else(|error| panic!("{error}"))));
            }
            chosen.iter().map(|chosen| chosen.cells.len()).sum::<usize>()
        };
        let [quick, default, full] = [Level::Quick, Level::Default, Level::Full].map(count);
        assert!(0 < quick && quick < default && default < full, "{quick} {default} {full}");
    }
}
