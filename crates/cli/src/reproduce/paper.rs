//! `narrows reproduce PAPER`: a paper's studies, run and shown beside what was published.
//!
//! With `--out`, the figures of every finished run are kept in `runs.jsonl` there as they come, so that a long reproduction
//! can be stopped and taken up again: a run is known by its scenario, its seed and the program's version.
use crate::failure::Failure;
use crate::flags::{MOST_JOBS, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::term::{self, Paint};
use crate::world::World;
use narrows_report::sheet::{self, Sheet};
use narrows_study::{Cell, Level, Report, Study};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Flags of a reproduction.
#[derive(clap::Args)]
pub(crate) struct Paper {
    /// Only this figure or table: 8, "figure 8", "table 1"; may be given several times.
    #[arg(long, value_name = "ID")]
    figure: Vec<String>,
    /// One short run of each cell.
    #[arg(long)]
    quick: bool,
    /// As many and as long runs as the paper had; with --out it can be stopped and taken up again.
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Runs of each cell, with seeds 1, 2, … [default: as the figure's file says]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=100_000))]
    runs: Option<u64>,
    /// Runs at the same time; results do not depend on it [default: as many as cores]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MOST_JOBS))]
    jobs: Option<u64>,
    /// JSON on stdout and nothing else.
    #[arg(long)]
    json: bool,
    /// Write a page with the paper's figures redrawn (report.html), the figures (figures.json) and the runs (runs.jsonl) here.
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// One study, with its cells.
struct Planned {
    study: Study,
    cells: Vec<Cell>,
    runs: u64,
}

/// One run of a study's cell.
struct Task {
    study: usize,
    cell: usize,
    run: usize,
    key: String,
}

/// A finished run, as a line of `runs.jsonl`.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    values: Vec<Option<f64>>,
}

/// Points of a line.
type Points = Vec<(f64, f64)>;

/// What one study has given so far: per cell the figures of each run, and what the first of them drew.
struct Gathered {
    values: Vec<Vec<Vec<Option<f64>>>>,
    drawn: Vec<Vec<Option<Points>>>,
}

/// Says which papers there are.
pub(crate) fn list() -> Result<(), Failure> {
    let mut out = String::from("narrows reproduce linux: cells measured on a Linux kernel\n");
    out += "narrows reproduce live: the simulator beside this kernel's TCP in real time\n";
    for paper in narrows_study::papers() {
        out += &format!("narrows reproduce {paper}\n");
        for study in narrows_study::studies(paper).map_err(Failure::other)? {
            let count =
                |level| Ok((study.cells(level).map_err(Failure::other)?.len() as u64) * study.effort(level).runs);
            let (default, full) = (count(Level::Default)?, count(Level::Full)?);
            out += &format!("  {:<10} {}: {default} runs, --full {full}\n", study.figure, study.title);
        }
    }
    term::print(&out)
}

/// Runs the command for a paper.
pub(crate) fn main(paper: &str, args: &Paper) -> Result<(), Failure> {
    interrupt::install()?;
    let level = match (args.quick, args.full) {
        (true, _) => Level::Quick,
        (_, true) => Level::Full,
        _ => Level::Default,
    };
    let plan = plan(paper, args, level)?;
    let kept = args.out.as_deref().map(Keeper::open).transpose()?;
    let gathered = run(&plan, args, kept.as_ref())?;
    let reports: Vec<_> =
        plan.iter().zip(&gathered).map(|(p, g)| p.study.report(&p.cells, &g.values, &g.drawn)).collect();
    let runs = plan.iter().map(|planned| planned.runs).min().unwrap_or(1);
    let mut sheets: Vec<Sheet> = Report::joined(&reports, runs).into_iter().collect();
    let alone = reports.iter().zip(&plan).filter(|(_, planned)| planned.study.join.is_none());
    sheets.extend(alone.map(|(report, planned)| report.sheet(planned.runs)));
    let figures: Vec<_> = reports
        .iter()
        .zip(&plan)
        .map(|(report, planned)| {
            serde_json::json!({
                "figure": planned.study.figure, "title": planned.study.title, "runs": planned.runs,
                "axes": planned.study.row_axes().map(|axis| &axis.name).collect::<Vec<_>>(),
                "pooled": planned.study.axes.iter().filter(|axis| axis.pooled).map(|axis| &axis.name).collect::<Vec<_>>(),
                "cells": report.rows(), "broken": report.broken(),
            })
        })
        .collect();
    let json = serde_json::json!({ "paper": paper, "figures": figures });
    if let Some(dir) = &args.out {
        let title = format!("Reproducing {paper}");
        let page = sheet::page(&title, &sheets).map_err(Failure::other)?;
        replace(&dir.join("report.html"), &page)?;
        let text = serde_json::to_string_pretty(&json).map_err(Failure::other)?;
        replace(&dir.join("figures.json"), &format!("{text}\n"))?;
        let drawings = sheet::drawings(&title, &sheets);
        let folder = dir.join(narrows_report::FIGURES);
        if !drawings.is_empty() {
            fs::create_dir_all(&folder).map_err(|error| Failure::write(&folder, &error))?;
        }
        drawings.iter().try_for_each(|(name, svg)| replace(&folder.join(name), svg))?;
    }
    if args.json {
        return term::print_json(&json);
    }
    let style = term::style();
    let mut out: String = sheets.iter().map(|sheet| sheet::text(sheet, &style) + "\n").collect();
    if let Some(dir) = &args.out {
        out += &format!("{}\n", dir.join("report.html").display());
    }
    let broken = reports.iter().map(|report| report.broken().len()).sum::<usize>();
    if broken > 0 {
        out += &Paint::stdout().bad(&format!("{broken} of what should hold does not.\n"));
    }
    term::print(&out)
}

/// The studies that are asked for, with their cells, every scenario checked.
fn plan(paper: &str, args: &Paper, level: Level) -> Result<Vec<Planned>, Failure> {
    let studies = narrows_study::studies(paper).map_err(Failure::other)?;
    for id in &args.figure {
        if !studies.iter().any(|study| is_called(study, id)) {
            let known: Vec<&str> = studies.iter().map(|study| study.figure.as_str()).collect();
            return Err(Failure::usage(format!("--figure: {paper} has no {id:?}; it has {}", known.join(", "))));
        }
    }
    let wanted =
        studies.into_iter().filter(|study| args.figure.is_empty() || args.figure.iter().any(|id| is_called(study, id)));
    let planned = wanted.map(|study| {
        let cells = study.cells(level).map_err(Failure::other)?;
        let runs = args.runs.unwrap_or(study.effort(level).runs);
        Ok(Planned { study, cells, runs })
    });
    planned.collect()
}

/// Is the study meant by this? `figure 7-8`, `7-8`, `8`; `1` means `figure 1, one flow` and `figure 1, 16 flows`.
fn is_called(study: &Study, id: &str) -> bool {
    let (id, figure) = (id.trim().to_lowercase(), study.figure.to_lowercase());
    let Some(number) = figure.split_whitespace().nth(1).map(|word| word.trim_end_matches(',')) else {
        return figure == id;
    };
    let within = |range: (&str, &str)| match (range.0.parse(), range.1.parse(), id.parse::<u32>()) {
        (Ok(first), Ok(last), Ok(id)) => (first..=last).contains(&id),
        _ => false,
    };
    figure == id || number == id || number.split_once('-').is_some_and(within)
}

/// Runs what is not known yet.
fn run(plan: &[Planned], args: &Paper, kept: Option<&Keeper>) -> Result<Vec<Gathered>, Failure> {
    let mut gathered: Vec<Gathered> = plan
        .iter()
        .map(|p| Gathered {
            values: p.cells.iter().map(|_| vec![Vec::new(); p.runs as usize]).collect(),
            drawn: vec![Vec::new(); p.cells.len()],
        })
        .collect();
    let (mut jobs, mut tasks) = (Vec::new(), Vec::new());
    for (s, planned) in plan.iter().enumerate() {
        for (c, cell) in planned.cells.iter().enumerate() {
            for run in 0..planned.runs {
                let scenario = cell.scenario(run + 1).map_err(Failure::other)?;
                let key = key(&planned.study, &scenario.to_toml());
                let known = kept.and_then(|kept| kept.known.get(&key));
                match known.filter(|_| run > 0 || !planned.study.draws_runs()) {
                    Some(values) => gathered[s].values[c][run as usize].clone_from(values),
                    None => {
                        jobs.push(Job { label: format!("{} seed {}", cell.name(), run + 1), scenario });
                        tasks.push(Task { study: s, cell: c, run: run as usize, key });
                    }
                }
            }
        }
    }
    let options = Options { threads: args.jobs, quiet: true, world: World::Sim };
    let results = grid::run(&jobs, options, |index, result| {
        let Task { study, cell, run, key } = &tasks[index];
        let planned = &plan[*study];
        let values = planned.study.measure(&result);
        if let Some(kept) = kept {
            kept.keep(&Kept { key: key.clone(), values: values.clone() })?;
        }
        let drawn = if *run == 0 { planned.study.draw(&planned.cells[*cell], &result) } else { Vec::new() };
        Ok((values, drawn))
    })?;
    for (task, (values, drawn)) in tasks.iter().zip(results) {
        let gathered = &mut gathered[task.study];
        gathered.values[task.cell][task.run] = values;
        if task.run == 0 {
            gathered.drawn[task.cell] = drawn;
        }
    }
    Ok(gathered)
}

/// By what a run is known: FNV-1a over the program's version, the metrics and the scenario.
fn key(study: &Study, scenario: &str) -> String {
    let metrics = format!("{:?}", study.metrics);
    let text = [env!("CARGO_PKG_VERSION"), &metrics, scenario].join("\n");
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// The file of finished runs.
struct Keeper {
    known: HashMap<String, Vec<Option<f64>>>,
    path: PathBuf,
    file: Mutex<File>,
}

impl Keeper {
    fn open(dir: &Path) -> Result<Keeper, Failure> {
        fs::create_dir_all(dir).map_err(|error| Failure::write(dir, &error))?;
        let path = dir.join("runs.jsonl");
        let text = if path.exists() {
            fs::read_to_string(&path).map_err(|error| Failure::write(&path, &error))?
        } else {
            String::new()
        };
        // A line that was cut off is a run that is made again.
        let known =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).map(|kept: Kept| (kept.key, kept.values));
        let known = known.collect();
        let mut file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(|error| Failure::write(&path, &error))?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(|error| Failure::write(&path, &error))?;
        }
        Ok(Keeper { known, path, file: Mutex::new(file) })
    }

    fn keep(&self, kept: &Kept) -> Result<(), Failure> {
        let line = serde_json::to_string(kept).map_err(Failure::other)? + "\n";
        let mut file = self.file.lock().map_err(Failure::other)?;
        file.write_all(line.as_bytes()).map_err(|error| Failure::write(&self.path, &error))
    }
}

/// Whoever looks sees the old file or the new one.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let part = path.with_extension("part");
    fs::write(&part, text).and_then(|()| fs::rename(&part, path)).map_err(|error| Failure::write(path, &error))
}
