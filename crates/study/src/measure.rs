//! Taking a study's figures from the result of a run.
use crate::cells::Cell;
use crate::metric::{FromSeries, Metric, Over, Take};
use crate::model::Study;
use crate::traces::Trace;
use narrows_results::lookup::Lookup;
use narrows_results::{RunResult, Series};

impl Study {
    /// The figures of a run, in the order of the metrics; `None` if the run lacks the figure, or if it derives from another metric.
    pub fn measure(&self, result: &RunResult) -> Vec<Option<f64>> {
        self.measured(None, result)
    }

    /// The figures of a run of this cell, with those that compare it to the cell's recorded trace.
    pub fn measure_cell(&self, cell: &Cell, result: &RunResult) -> Vec<Option<f64>> {
        self.measured(self.trace_of(cell), result)
    }

    fn measured(&self, trace: Option<&Trace>, result: &RunResult) -> Vec<Option<f64>> {
        let summary = Lookup::of(&result.summary);
        self.metrics.iter().map(|metric| Some(metric.of(&summary, trace, result)? * metric.scale)).collect()
    }
}

/// The series of this quantity of a source; a name that ends with `*` is any that begins like this.
pub(crate) fn series<'a>(
    result: &'a RunResult,
    source: &'a str,
    metric: &'a str,
) -> impl Iterator<Item = &'a Series> + use<'a> {
    let is_meant = move |series: &&Series| match source.strip_suffix('*') {
        Some(start) => series.source.starts_with(start),
        None => series.source == source,
    };
    result.series.iter().filter(move |series| series.metric == metric).filter(is_meant)
}

impl Metric {
    fn of(&self, summary: &Lookup, trace: Option<&Trace>, result: &RunResult) -> Option<f64> {
        match (&self.summary, &self.series) {
            (Some(path), _) => {
                // Without `over`, rates and counts of a group are its sums.
                let found = if self.over.is_some() { summary.find_each(path) } else { summary.find(path) };
                let values: Vec<f64> = found.ok()?.values.into_iter().map(|(_, value)| value).collect();
                self.over.unwrap_or_default().fold(&values)
            }
            (_, Some(series)) => series.of(result, self.over.unwrap_or_default()),
            _ => self.rms.as_ref()?.of(trace?, result),
        }
    }
}

impl Over {
    fn fold(self, values: &[f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        let sum: f64 = values.iter().sum();
        Some(match self {
            Over::Mean => sum / values.len() as f64,
            Over::Sum => sum,
            Over::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Over::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

impl FromSeries {
    /// The figure of the series of this source, or of the members of a group of flows.
    fn of(&self, result: &RunResult, over: Over) -> Option<f64> {
        let from = if self.after_warmup { self.from.max(result.summary.warmup_s) } else { self.from };
        let named = || series(result, &self.source, &self.metric);
        if named().next().is_some() {
            return over.fold(&named().filter_map(|series| self.of_one(series, from)).collect::<Vec<_>>());
        }
        let wanted = |series: &&Series| series.metric == self.metric;
        let is_member = |series: &&Series| {
            let number = series.source.strip_prefix(&self.source).and_then(|rest| rest.strip_prefix('.'));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let members: Vec<f64> = result
            .series
            .iter()
            .filter(wanted)
            .filter(is_member)
            .filter_map(|series| self.of_one(series, from))
            .collect();
        over.fold(&members)
    }

    fn of_one(&self, series: &Series, from: f64) -> Option<f64> {
        let to = self.to.unwrap_or(f64::INFINITY);
        let counts =
            |&(t, value): &(f64, f64)| (from..=to).contains(&t) && self.above.is_none_or(|above| value > above);
        let points: Vec<(f64, f64)> = series.points.iter().copied().filter(counts).collect();
        let values: Vec<f64> = points.iter().map(|p| p.1).collect();
        let until = |there: &dyn Fn(f64) -> bool| points.iter().find(|p| there(p.1)).map(|p| p.0 - from);
        match self.take {
            Take::Mean => Over::Mean.fold(&values),
            Take::Min => Over::Min.fold(&values),
            Take::Max => Over::Max.fold(&values),
            Take::Last => values.last().copied(),
            Take::UntilBelow => until(&|value| self.level.is_some_and(|level| value <= level)),
            Take::UntilAbove => until(&|value| self.level.is_some_and(|level| value >= level)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Level, papers, studies};
    use narrows_results::figures::SUMS;

    /// Published figures of groups are means over flows, sums, or of the worst flow. A study says which, because without a word the rates
    /// and counts of a group are sums.
    #[test]
    fn a_study_says_how_the_rates_of_several_flows_are_combined() {
        let mut looked_at = 0;
        for study in papers().into_iter().flat_map(|paper| studies(paper).expect("embedded")) {
            let scenarios: Vec<_> =
                study.cells(Level::Full).expect("cells").iter().map(|cell| cell.scenario(1)).collect();
            for metric in study.metrics.iter().filter(|metric| metric.over.is_none()) {
                let path = metric.summary.as_deref().and_then(|path| path.strip_prefix("flow."));
                let Some((flow, key)) = path.and_then(|path| path.split_once('.')) else { continue };
                if !SUMS.contains(&key) {
                    continue;
                }
                looked_at += 1;
                for scenario in scenarios.iter().map(|scenario| scenario.as_ref().expect("a scenario")) {
                    let group = scenario.flows.iter().find(|group| group.name == flow);
                    let count = group.map_or(0, |group| group.count);
                    assert!(count <= 1, "{}, {}: {key} of {count} flows: over = …", study.figure, metric.name);
                }
            }
        }
        assert!(looked_at > 10, "{looked_at} metrics");
    }
}
