//! Taking a study's figures from the result of a run.
use crate::model::{FromSeries, Metric, Over, Study, Take};
use narrows_results::lookup::Lookup;
use narrows_results::{RunResult, Series};

impl Study {
    /// The figures of a run, in the order of the metrics; `None` if the run lacks the figure, or if it derives from another metric.
    pub fn measure(&self, result: &RunResult) -> Vec<Option<f64>> {
        let summary = Lookup::of(&result.summary);
        self.metrics.iter().map(|metric| Some(metric.of(&summary, result)? * metric.scale)).collect()
    }
}

impl Metric {
    fn of(&self, summary: &Lookup, result: &RunResult) -> Option<f64> {
        match (&self.summary, &self.series) {
            (Some(path), _) => {
                // Without `over`, rates and counts of a group are its sums.
                let found = if self.over.is_some() { summary.find_each(path) } else { summary.find(path) };
                let values: Vec<f64> = found.ok()?.values.into_iter().map(|(_, value)| value).collect();
                self.over.unwrap_or_default().fold(&values)
            }
            (_, Some(series)) => series.of(result, self.over.unwrap_or_default()),
            _ => None,
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
        let wanted = |series: &&Series| series.metric == self.metric;
        if let Some(series) = result.series.iter().filter(wanted).find(|series| series.source == self.source) {
            return self.of_one(series);
        }
        let is_member = |series: &&Series| {
            let number = series.source.strip_prefix(&self.source).and_then(|rest| rest.strip_prefix('.'));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let members: Vec<f64> =
            result.series.iter().filter(wanted).filter(is_member).filter_map(|series| self.of_one(series)).collect();
        over.fold(&members)
    }

    fn of_one(&self, series: &Series) -> Option<f64> {
        let to = self.to.unwrap_or(f64::INFINITY);
        let points: Vec<(f64, f64)> =
            series.points.iter().copied().filter(|(t, _)| (self.from..=to).contains(t)).collect();
        let values: Vec<f64> = points.iter().map(|p| p.1).collect();
        let until = |there: &dyn Fn(f64) -> bool| points.iter().find(|p| there(p.1)).map(|p| p.0 - self.from);
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
