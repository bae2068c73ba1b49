//! Figures that were measured elsewhere: on a Linux kernel, in place of published ones, or with the authors' own program, beside them. One line per
//! figure of a cell; lines that begin with `#` are comments.
//!
//! `figure,cell,metric,value`, where a cell is named by the labels of its axes' values, joined by ` / `. The value is that of one run, or those of
//! several, separated by spaces. Their mean is what the simulator is compared with, and their spread is shown beside it.
use crate::model::{Published, Study, StudyError};
use crate::report::Report;
use crate::rows::Row;
use crate::spread::Spread;
use std::collections::BTreeMap;
use toml::Value;

const HEADING: [&str; 4] = ["figure", "cell", "metric", "value"];
/// Between the labels of a cell.
const JOINT: &str = " / ";

/// The origin of the figures in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordedKind {
    /// They take the place of published ones.
    Published,
    /// They come from the authors' own program.
    Authors,
}

impl RecordedKind {
    /// The name of the file with such figures.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            RecordedKind::Published => crate::RECORDED,
            RecordedKind::Authors => crate::AUTHORS,
        }
    }
}

/// A figure of a cell from the authors' own program.
#[derive(Clone, Debug)]
pub(crate) struct Authors {
    pub(crate) at: BTreeMap<String, Value>,
    pub(crate) metric: String,
    pub(crate) runs: Spread,
}

/// A line: a figure of a cell, as measured in each run.
struct Line {
    number: u64,
    figure: String,
    cell: String,
    metric: String,
    runs: Vec<f64>,
}

/// The figures of a file, by cell and metric.
pub struct RecordedRuns(Vec<Line>);

impl RecordedRuns {
    /// Reads a file; `name` is its name in errors.
    ///
    /// # Errors
    /// Names the line that is wrong.
    pub fn parse(text: &str, name: &str) -> Result<RecordedRuns, StudyError> {
        let fault = |n: u64, message: String| fault(name, n, message);
        let mut reader = csv::ReaderBuilder::new();
        let lines = reader.has_headers(false).flexible(true).comment(Some(b'#')).from_reader(text.as_bytes());
        let mut lines = lines.into_records().map(|line| line.map_err(|error| fault(1, error.to_string())));
        if lines.next().transpose()?.is_none_or(|heading| heading != HEADING[..]) {
            return Err(fault(1, format!("the heading is `{}`", HEADING.join(","))));
        }
        let read = |line: Result<csv::StringRecord, StudyError>| {
            let line = line?;
            let number = line.position().map_or(1, csv::Position::line);
            let fields: Vec<&str> = line.iter().collect();
            let &[figure, cell, metric, value] = &fields[..] else {
                return Err(fault(number, format!("{} fields, not 4", fields.len())));
            };
            let number_of = |word: &str| {
                let parsed = word.parse().ok().filter(|value: &f64| value.is_finite());
                parsed.ok_or_else(|| fault(number, format!("{word:?} is no number")))
            };
            let runs: Vec<f64> = value.split_whitespace().map(number_of).collect::<Result<_, _>>()?;
            if runs.is_empty() {
                return Err(fault(
                    number,
                    "no value; allowed: one, or one of each run, separated by spaces".to_owned(),
                ));
            }
            let [figure, cell, metric] = [figure, cell, metric].map(str::to_owned);
            Ok(Line { number, figure, cell, metric, runs })
        };
        lines.map(read).collect::<Result<_, _>>().map(RecordedRuns)
    }

    /// The runs of a figure; the cell is named by its labels, joined by ` / `.
    pub fn find(&self, figure: &str, cell: &str, metric: &str) -> Option<&[f64]> {
        let is_it = |line: &&Line| line.figure == figure && line.cell == cell && line.metric == metric;
        self.0.iter().find(is_it).map(|line| &*line.runs)
    }
}

fn fault(name: &str, n: u64, message: String) -> StudyError {
    StudyError { file: format!("{name}, line {n}"), message }
}

/// Adds a figure to the file, unless no run has it.
fn write(study: &Study, cell: &str, metric: usize, runs: &[f64], file: &mut csv::Writer<Vec<u8>>) {
    let metric = &study.metrics[metric];
    let runs: Vec<String> = runs.iter().map(|run| format!("{run:.0$}", metric.decimals)).collect();
    if !runs.is_empty() {
        // Writing to memory does not fail.
        let _ = file.write_record([&*study.figure, cell, &*metric.name, &*runs.join(" ")]);
    }
}

/// The text of a file whose lines `fill` writes.
fn file(fill: impl FnOnce(&mut csv::Writer<Vec<u8>>)) -> String {
    let mut file = csv::Writer::from_writer(Vec::new());
    let _ = file.write_record(HEADING);
    fill(&mut file);
    String::from_utf8(file.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// The file of the measured rows of these reports.
pub fn recorded(reports: &[Report<'_>]) -> String {
    file(|file| {
        for report in reports {
            let study = report.runs.study;
            for row in report.rows() {
                for (m, entry) in row.entries.iter().enumerate() {
                    let runs = row.members.iter().flat_map(|&member| &report.runs.values[member]);
                    let mut runs: Vec<f64> = runs.filter_map(|run| run.get(m).copied().flatten()).collect();
                    if runs.is_empty() || study.metrics[m].is_derived() {
                        // Computed from other figures.
                        runs = entry.measured.into_iter().collect();
                    }
                    write(study, &row.labels.join(JOINT), m, &runs, file);
                }
            }
        }
    })
}

/// The file of studies with a single cell, from the runs of each metric.
pub fn recorded_runs<'a>(measured: impl Iterator<Item = (&'a Study, &'a [Vec<f64>])>) -> String {
    file(|file| {
        for (study, metrics) in measured {
            metrics.iter().enumerate().for_each(|(m, runs)| write(study, "", m, runs, file));
        }
    })
}

/// Adds the figures of a file to the studies. `name` is the file's name in errors.
pub(crate) fn add(text: &str, kind: RecordedKind, name: &str, studies: &mut [Study]) -> Result<(), StudyError> {
    for Line { number, figure, cell, metric, runs } in RecordedRuns::parse(text, name)?.0 {
        let fault = |message: String| fault(name, number, message);
        let study = studies.iter_mut().find(|study| study.figure == figure);
        let study = study.ok_or_else(|| fault(format!("there is no figure {figure:?}")))?;
        study.add_recorded(kind, &cell, &metric, &runs).map_err(fault)?;
    }
    Ok(())
}

impl Study {
    /// The runs of the authors' program for a row's figure.
    pub(crate) fn authors_of(&self, row: &Row, metric: &str) -> Option<Spread> {
        let is_it = |known: &&Authors| known.metric == metric && self.is_row_at(row, &known.at);
        self.authors.iter().find(is_it).map(|known| known.runs)
    }

    /// Whether its published figures are recorded ones.
    pub(crate) fn is_recorded(&self) -> bool {
        self.published.iter().flat_map(|published| published.values.values()).any(Value::is_array)
    }

    fn add_recorded(&mut self, kind: RecordedKind, cell: &str, metric: &str, runs: &[f64]) -> Result<(), String> {
        let labels: Vec<&str> = cell.split(JOINT).collect();
        let axes: Vec<String> = self.row_axes().map(|axis| axis.name.clone()).collect();
        if labels.len() != axes.len() {
            return Err(format!("cell {cell:?} has {} labels; the axes are {}", labels.len(), axes.join(", ")));
        }
        let labels = labels.into_iter().map(|label| Value::String(label.to_owned()));
        let at = axes.into_iter().zip(labels).collect();
        self.check_place(&at)?;
        self.metric(metric)?;
        if kind == RecordedKind::Authors {
            let metric = metric.to_owned();
            self.authors.extend(Spread::of(runs).map(|runs| Authors { at, metric, runs }));
            return Ok(());
        }
        let value = (metric.to_owned(), Value::Array(runs.iter().copied().map(Value::Float).collect()));
        match self.published.last_mut().filter(|last| last.at == at) {
            Some(same) => drop(same.values.insert(value.0, value.1)),
            None => self.published.push(Published { at, scored: true, values: [value].into() }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Level;

    fn study() -> Study {
        let text = r#"
figure = "f"
title = "t"
source = "s"
quick = { runs = 1 }
default = { runs = 1 }
full = { runs = 1 }
[[axis]]
name = "queue"
values = ["fifo", { label = "fq, new", kind = "fq" }]
[[axis]]
name = "rtt"
values = ["10ms", "20ms"]
[scenario]
duration = "1s"
[[metric]]
name = "use"
unit = "%"
summary = "hop.link.utilisation"
[[metric]]
name = "loss"
decimals = 3
summary = "hop.link.loss_rate"
"#;
        Study::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let study = study();
        let cells = study.cells(Level::Quick).unwrap_or_else(|error| panic!("{error}"));
        let values: Vec<_> = (0..4).map(|n| vec![vec![Some(f64::from(n)), None]]).collect();
        let drawn = vec![Vec::new(); 4];
        let report = study.report(&cells, &values, &drawn);
        let text = recorded(&[report]);
        assert_eq!(
            text,
            "figure,cell,metric,value\n\
             f,fifo / 10ms,use,0.00\nf,fifo / 20ms,use,1.00\nf,\"fq, new / 10ms\",use,2.00\nf,\"fq, new / 20ms\",use,3.00\n"
        );
        let mut studies = [study.clone()];
        add(&text, RecordedKind::Published, "recorded.csv", &mut studies).unwrap_or_else(|error| panic!("{error}"));
        let [again] = &studies;
        let again = again.report(&cells, &values, &drawn);
        let published: Vec<_> = again.rows().iter().map(|row| row.entries[0].difference).collect();
        assert_eq!(published, [Some(0.0); 4]);
    }

    /// One run is no truth: the mean of several is what counts, and their spread is shown.
    #[test]
    fn several_runs_are_written_read_and_compared_by_their_mean() {
        let study = study();
        let cells = study.cells(Level::Quick).unwrap_or_else(|error| panic!("{error}"));
        let runs = |of: [f64; 3]| of.map(|value| vec![Some(value), None]).to_vec();
        let values = vec![runs([1.0, 2.0, 6.0]), runs([1.0; 3]), Vec::new(), Vec::new()];
        let text = recorded(&[study.report(&cells, &values, &[])]);
        assert_eq!(
            text,
            "figure,cell,metric,value\nf,fifo / 10ms,use,1.00 2.00 6.00\nf,fifo / 20ms,use,1.00 1.00 1.00\n"
        );
        let read = RecordedRuns::parse(&text, "recorded.csv").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.find("f", "fifo / 10ms", "use"), Some(&[1.0, 2.0, 6.0][..]));
        assert_eq!(read.find("f", "fifo / 10ms", "loss"), None);
        let mut studies = [study.clone()];
        add(&text, RecordedKind::Published, "recorded.csv", &mut studies).unwrap_or_else(|error| panic!("{error}"));
        let here: Vec<_> = (0..4).map(|_| vec![vec![Some(3.5), None]]).collect();
        let again = studies[0].report(&cells, &here, &[]);
        let entry = &again.rows()[0].entries[0];
        assert_eq!(entry.published.as_deref(), Some("3.00 [1.00–6.00]"));
        assert_eq!(entry.difference, Some(0.5));
        let rule = crate::Rule::parse("why = \"near\"\nwithin = 0.2\n", "score.toml", |_| None).expect("a rule");
        let score = again.score(&rule, &crate::Gaps::default());
        assert_eq!((score.met, score.published), (1, 2), "each is one figure: 3.5 for 3.0 and for 1.0");
    }

    #[test]
    fn runs_of_the_authors_program_stand_beside_the_measured_figures() {
        let text = "# of their program\nfigure,cell,metric,value\nf,fifo / 10ms,use,1 4\nf,fifo / 20ms,use,7\n";
        let mut studies = [study()];
        add(text, RecordedKind::Authors, "authors.csv", &mut studies).unwrap_or_else(|error| panic!("{error}"));
        let [study] = &studies;
        let cells = study.cells(Level::Quick).unwrap_or_else(|error| panic!("{error}"));
        let (values, drawn) = (vec![vec![vec![Some(2.0), Some(0.5)]]; 4], vec![Vec::new(); 4]);
        let report = study.report(&cells, &values, &drawn);
        let sheet = report.sheet(1, None);
        let heads: Vec<&str> = sheet.heads.iter().map(|head| head.which.as_str()).collect();
        assert_eq!(
            heads,
            ["", "", "authors' program", "measured", "measured"],
            "no column for a metric without such figures"
        );
        let column = |n: usize| sheet.rows.iter().map(|row| row[n].as_str()).collect::<Vec<_>>();
        assert_eq!(column(2), ["2.50 (1.00–4.00)", "7.00", "", ""]);
        assert_eq!(column(3), ["2.00"; 4]);
    }

    #[test]
    fn what_does_not_belong_there_is_refused_with_its_line() {
        let told = |text: &str| {
            let error =
                add(&format!("{}\n{text}", HEADING.join(",")), RecordedKind::Published, "recorded.csv", &mut [study()]);
            error.map_err(|error| error.to_string()).expect_err("it is wrong")
        };
        assert_eq!(told("g,fifo / 20ms,use,1"), "recorded.csv, line 2: there is no figure \"g\"");
        assert_eq!(told("f,fifo,use,1"), "recorded.csv, line 2: cell \"fifo\" has 1 labels; the axes are queue, rtt");
        assert!(told("f,fifo / 30ms,use,1").contains("axis \"rtt\" has no value \"30ms\""));
        assert_eq!(told("f,fifo / 20ms,load,1"), "recorded.csv, line 2: there is no metric \"load\"");
        assert_eq!(told("f,fifo / 20ms,use,much"), "recorded.csv, line 2: \"much\" is no number");
        assert!(told("f,fifo / 20ms,use,1 much").ends_with("\"much\" is no number"));
        assert!(told("f,fifo / 20ms,use,NaN").ends_with("\"NaN\" is no number"));
        assert!(told("f,fifo / 20ms,use,\" \"").contains("no value; allowed: one, or one of each run"));
        assert_eq!(told("f,fifo / 20ms,use"), "recorded.csv, line 2: 3 fields, not 4");
        assert!(add("x", RecordedKind::Published, "recorded.csv", &mut []).is_err());
    }
}
