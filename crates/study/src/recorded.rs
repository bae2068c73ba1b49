//! Figures that were measured elsewhere, on a Linux kernel, and take the place of published ones: one line per figure of a cell.
//!
//! `figure,cell,metric,value`, where a cell is named by the labels of its axes' values, joined by ` / `.
use crate::model::{Published, Study, StudyError};
use crate::rows::Row;
use toml::Value;

const HEADING: [&str; 4] = ["figure", "cell", "metric", "value"];
/// Between the labels of a cell.
const JOINT: &str = " / ";

/// Adds a study's measured figures to the file.
fn write(study: &Study, rows: &[Row], file: &mut csv::Writer<Vec<u8>>) -> csv::Result<()> {
    for row in rows {
        let cell = row.labels.join(JOINT);
        for entry in &row.entries {
            if let Some(measured) = entry.measured {
                let metric = study.metrics.iter().find(|metric| metric.name == entry.metric);
                let digits = metric.map_or(2, |metric| metric.decimals);
                file.write_record([&study.figure, &cell, &entry.metric, &format!("{measured:.digits$}")])?;
            }
        }
    }
    Ok(())
}

/// The file of these studies with their measured rows.
pub fn recorded<'a>(measured: impl Iterator<Item = (&'a Study, &'a [Row])>) -> String {
    let mut file = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = file.write_record(HEADING);
    for (study, rows) in measured {
        let _ = write(study, rows, &mut file);
    }
    String::from_utf8(file.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Adds the figures of a file to the studies, as published ones. `name` is the file's name in errors.
pub(crate) fn add(text: &str, name: &str, studies: &mut [Study]) -> Result<(), StudyError> {
    let fault = |n: u64, message: String| StudyError { file: format!("{name}, line {n}"), message };
    let lines = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut lines = lines.into_records().map(|line| line.map_err(|error| fault(1, error.to_string())));
    if lines.next().transpose()?.is_none_or(|heading| heading != HEADING[..]) {
        return Err(fault(1, format!("the heading is `{}`", HEADING.join(","))));
    }
    for line in lines {
        let line = line?;
        let n = line.position().map_or(1, csv::Position::line);
        let fields: Vec<&str> = line.iter().collect();
        let &[figure, cell, metric, value] = &fields[..] else {
            return Err(fault(n, format!("{} fields, not 4", fields.len())));
        };
        let study = studies.iter_mut().find(|study| study.figure == figure);
        let study = study.ok_or_else(|| fault(n, format!("there is no figure {figure:?}")))?;
        let value: f64 = value.parse().map_err(|_| fault(n, format!("{value:?} is no number")))?;
        study.add_published(cell, metric, value).map_err(|message| fault(n, message))?;
    }
    Ok(())
}

impl Study {
    fn add_published(&mut self, cell: &str, metric: &str, value: f64) -> Result<(), String> {
        let labels: Vec<&str> = cell.split(JOINT).collect();
        let axes: Vec<String> = self.row_axes().map(|axis| axis.name.clone()).collect();
        if labels.len() != axes.len() {
            return Err(format!("cell {cell:?} has {} labels; the axes are {}", labels.len(), axes.join(", ")));
        }
        let labels = labels.into_iter().map(|label| Value::String(label.to_owned()));
        let at = axes.into_iter().zip(labels).collect();
        self.check_place(&at)?;
        self.metric_index(metric)?;
        let value = (metric.to_owned(), Value::Float(value));
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
        let text = recorded([(&study, report.rows())].into_iter());
        assert_eq!(
            text,
            "figure,cell,metric,value\n\
             f,fifo / 10ms,use,0.00\nf,fifo / 20ms,use,1.00\nf,\"fq, new / 10ms\",use,2.00\nf,\"fq, new / 20ms\",use,3.00\n"
        );
        let mut studies = [study.clone()];
        add(&text, "recorded.csv", &mut studies).unwrap_or_else(|error| panic!("{error}"));
        let [again] = &studies;
        let again = again.report(&cells, &values, &drawn);
        let published: Vec<_> = again.rows().iter().map(|row| row.entries[0].difference).collect();
        assert_eq!(published, [Some(0.0); 4]);
    }

    #[test]
    fn what_does_not_belong_there_is_refused_with_its_line() {
        let told = |text: &str| {
            let error = add(&format!("{}\n{text}", HEADING.join(",")), "recorded.csv", &mut [study()]);
            error.map_err(|error| error.to_string()).expect_err("it is wrong")
        };
        assert_eq!(told("g,fifo / 20ms,use,1"), "recorded.csv, line 2: there is no figure \"g\"");
        assert_eq!(told("f,fifo,use,1"), "recorded.csv, line 2: cell \"fifo\" has 1 labels; the axes are queue, rtt");
        assert!(told("f,fifo / 30ms,use,1").contains("axis \"rtt\" has no value \"30ms\""));
        assert_eq!(told("f,fifo / 20ms,load,1"), "recorded.csv, line 2: there is no metric \"load\"");
        assert_eq!(told("f,fifo / 20ms,use,much"), "recorded.csv, line 2: \"much\" is no number");
        assert_eq!(told("f,fifo / 20ms,use"), "recorded.csv, line 2: 3 fields, not 4");
        assert!(add("x", "recorded.csv", &mut []).is_err());
    }
}
