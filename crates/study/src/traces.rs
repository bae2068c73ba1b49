//! Series that were recorded elsewhere, such as the window of a Linux sender. A study's `trace` names the file of each cell; its columns are `t_s`, the time
//! in seconds, and a quantity each.
use crate::cells::Cell;
use crate::measure;
use crate::metric::Rms;
use crate::model::{Study, StudyError};
use crate::rows::Points;
use narrows_results::RunResult;
use std::collections::BTreeMap;

/// A recorded trace: the points of each column.
pub(crate) type Trace = BTreeMap<String, Points>;

/// Traces by the names of their files.
pub(crate) type Traces = BTreeMap<String, Trace>;

/// The column of times.
const TIME: &str = "t_s";

impl Study {
    /// The recorded trace of a cell.
    pub(crate) fn trace_of(&self, cell: &Cell) -> Option<&Trace> {
        self.traces.get(cell.trace.as_ref()?)
    }

    /// Reads the traces of the cells; `text` is the content of a file.
    pub(crate) fn read_traces(&mut self, text: impl Fn(&str) -> Option<&'static str>) -> Result<(), StudyError> {
        if self.trace.is_none() {
            return Ok(());
        }
        for name in self.cells(crate::Level::Full)?.into_iter().filter_map(|cell| cell.trace) {
            let fault = |message: String| StudyError { file: name.clone(), message };
            let known = text(&name).ok_or_else(|| fault("there is no such recorded trace".to_owned()))?;
            let trace = parse(known).map_err(fault)?;
            self.traces.insert(name, trace);
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Trace, String> {
    let mut file = csv::Reader::from_reader(text.as_bytes());
    let heads = file.headers().map_err(|error| error.to_string())?.clone();
    let time = heads.iter().position(|head| head == TIME).ok_or_else(|| format!("there is no column {TIME}"))?;
    let mut trace = Trace::new();
    for row in file.into_records() {
        let row = row.map_err(|error| error.to_string())?;
        let line = row.position().map_or(0, csv::Position::line);
        let number = |text: &str| text.parse().map_err(|_| format!("line {line}: {text:?} is no number"));
        let t = number(row.get(time).unwrap_or_default())?;
        for (head, value) in heads.iter().zip(&row) {
            trace.entry(head.to_owned()).or_default().push((t, number(value)?));
        }
    }
    Ok(trace)
}

impl Rms {
    /// Over the moments of the trace at which the run has a value as well, within half a sampling interval.
    pub(crate) fn of(&self, trace: &Trace, result: &RunResult) -> Option<f64> {
        let (recorded, here) = (trace.get(&self.column)?, measure::series(result, &self.source, &self.metric).next()?);
        let spacing = recorded.windows(2).map(|pair| pair[1].0 - pair[0].0).reduce(f64::min)?;
        let difference = |&(t, value): &(f64, f64)| Some(nearest(&here.points, t, 0.505 * spacing)? - value);
        let squares: Vec<f64> =
            recorded.iter().filter_map(difference).map(|difference| difference * difference).collect();
        (!squares.is_empty()).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
    }
}

/// The value nearest to a time, if it is as near as this.
fn nearest(points: &[(f64, f64)], t: f64, within: f64) -> Option<f64> {
    let after = points.partition_point(|point| point.0 < t);
    let candidates = points.get(after.saturating_sub(1)..points.len().min(after + 1))?;
    let distance = |point: &&(f64, f64)| (point.0 - t).abs();
    let found = candidates.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    found.filter(|point| distance(point) <= within).map(|point| point.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_results::{Series, Summary};

    #[test]
    fn moments_are_matched_and_differences_squared() {
        let trace = parse("t_s,cwnd\n0.02,10\n0.04,20\n0.5,1\n").expect("a trace");
        let points = vec![(0.0, 0.0), (0.02, 13.0), (0.04, 16.0)];
        let series = Series { source: "flow:bulk_cubic".into(), metric: "cwnd_packets".into(), points };
        let result = RunResult { summary: Summary::default(), series: vec![series], cdfs: vec![] };
        let rms = |column: &str, source: &str| {
            Rms { column: column.into(), source: source.into(), metric: "cwnd_packets".into() }.of(&trace, &result)
        };
        let expected = 12.5_f64.sqrt();
        assert!(
            rms("cwnd", "flow:bulk*").is_some_and(|rms| (rms - expected).abs() < 1e-12),
            "the run ends before 0.5 s"
        );
        assert_eq!([rms("cwnd", "flow:thin*"), rms("queue", "flow:bulk*")], [None, None]);
    }

    #[test]
    fn every_cell_that_names_a_trace_has_it() {
        let studies = crate::studies("linux").expect("embedded");
        let study = studies.iter().find(|study| study.trace.is_some()).expect("the start-up traces");
        let cells = study.cells(crate::Level::Quick).expect("cells");
        let points = |cell: &Cell| study.trace_of(cell).and_then(|trace| trace.get("cwnd")).map_or(0, Vec::len);
        assert!(cells.len() == 8 && cells.iter().all(|cell| points(cell) > 490));
        // A plot has the run's line, and that of the trace.
        let (values, drawn) = (vec![Vec::new(); 8], vec![vec![Some(vec![(1.0, 2.0)]); study.plots.len()]; 8]);
        let chart = study.report(&cells, &values, &drawn).sheet(1, None).charts.remove(0);
        let lines: Vec<_> = chart.lines.iter().map(|line| (line.published, line.x.len() > 400)).collect();
        assert_eq!(lines[..2], [(false, false), (true, true)], "{}", chart.title);
    }

    #[test]
    fn what_is_no_trace_is_named() {
        assert_eq!(parse("t,cwnd\n1,2\n"), Err("there is no column t_s".to_owned()));
        assert_eq!(parse("t_s,cwnd\n1,2\n2,many\n"), Err("line 3: \"many\" is no number".to_owned()));
        assert!(parse("t_s,cwnd\n1\n").is_err(), "a field too few");
    }
}
