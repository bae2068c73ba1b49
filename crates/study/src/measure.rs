//! Taking a study's figures from the result of a run.
use crate::model::{FromSeries, Metric, Over, Study, Take};
use narrows_results::metric::Lookup;
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
