//! A probe's page: the figures of both directions, and curves of both subflows over time.
use narrows_probe::{Answer, Curves, Measured};
use narrows_report::chart::{Chart, ChartKind, Line};
use narrows_report::sheet::{Head, Headline, Sheet};

/// What the grades mean.
pub(super) const GRADES: &str = "The grade is of the delay that load adds, at its 95th percentile: A+ below 5 ms, A 30, B 60, C 200, D 400, F above.";

/// The answer of each direction that was measured: its grade, and three numbers.
pub(super) fn headlines(answer: &Answer) -> Vec<Headline> {
    let of = |(name, measured): (&str, &Measured)| {
        let number = |value: Option<f64>, digits: usize, unit: &str, what: &str| {
            value.map(|value| [format!("{value:.digits$}"), unit.to_owned(), what.to_owned()])
        };
        let numbers = [
            number(measured.rate_mbit, 1, "Mbit/s", "rate"),
            number(measured.base_rtt_ms, 1, "ms", "round trip without load"),
            number(measured.added_ms(), 1, "ms", "longer under load"),
        ];
        Headline {
            heading: name.to_owned(),
            grade: measured.grade().map_or_else(String::new, |grade| grade.to_string()),
            numbers: numbers.into_iter().flatten().collect(),
            sentence: measured.advice(&name.to_lowercase(), answer.paths),
        }
    };
    measured(answer).map(of).collect()
}

/// One sheet for each direction that was measured.
pub(super) fn sheets(answer: &Answer) -> Vec<Sheet> {
    measured(answer).map(|(name, measured)| sheet(name, measured, answer)).collect()
}

/// The directions that were measured, with their names.
fn measured(answer: &Answer) -> impl Iterator<Item = (&'static str, &Measured)> {
    let directions = [("Upload", &answer.upload), ("Download", &answer.download)];
    directions.into_iter().filter_map(|(name, measured)| Some((name, measured.as_ref()?)))
}

fn sheet(name: &str, measured: &Measured, answer: &Answer) -> Sheet {
    let cell =
        |value: Option<f64>, digits: usize| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"));
    let fairness = serde_json::to_value(measured.fair_queuing).ok().and_then(|value| Some(value.as_str()?.to_owned()));
    let columns = [
        ("fair queuing", "", fairness.unwrap_or_default()),
        ("confidence", "", cell(measured.confidence, 3)),
        ("rate", "Mbit/s", cell(measured.rate_mbit, 1)),
        ("base RTT", "ms", cell(measured.base_rtt_ms, 1)),
        ("RTT under load", "p50, ms", cell(measured.working_rtt_ms.map(|rtt| rtt.p50), 1)),
        ("RTT under load", "p95, ms", cell(measured.working_rtt_ms.map(|rtt| rtt.p95), 1)),
        ("round trips", "per minute", cell(measured.rpm, 0)),
        ("buffer", "ms", cell(measured.buffer_ms, 0)),
        ("loss", "%", cell(measured.loss.map(|loss| loss * 100.0), 2)),
        ("grade", "", measured.grade().map_or_else(|| "–".to_owned(), |grade| grade.to_string())),
    ];
    Sheet {
        heading: name.to_owned(),
        title: "the measurement".to_owned(),
        source: format!("{}, {:.1} s, one run", answer.server, measured.seconds),
        about: about(measured, answer),
        heads: columns.iter().map(|(name, which, _)| Head { name: (*name).into(), which: (*which).into() }).collect(),
        names: 1,
        rows: vec![columns.into_iter().map(|(_, _, cell)| cell).collect()],
        claims: Vec::new(),
        holds: Vec::new(),
        remarks: Vec::new(),
        charts: measured.curves.as_ref().map_or_else(Vec::new, charts),
        listings: Vec::new(),
    }
}

/// What is to be known of a link that is no wire, or not alone.
fn about(measured: &Measured, answer: &Answer) -> String {
    let beside = measured.beside_others.then(|| BESIDE.to_owned());
    let bursts = measured.bursts.map(|bursts| format!("Here {bursts}."));
    let steps = answer.steps.as_ref().map(|steps| format!("Steps: {steps}."));
    beside.into_iter().chain(bursts).chain(steps).collect::<Vec<_>>().join(" ")
}

/// What a rate is that varied, or pings that did.
const BESIDE: &str =
    "Measured beside other traffic, or the link's own rate varies: the link may carry more, and its base RTT be lower.";

fn charts(curves: &Curves) -> Vec<Chart> {
    let chart = |title: &str, y: &str, lines: Vec<Line>| Chart {
        kind: ChartKind::Series,
        title: title.into(),
        x: "time, s".into(),
        y: y.into(),
        lines,
        grid: None,
    };
    let line = |name: String, colour, points: Vec<(f64, f64)>| {
        let (x, y) = points.into_iter().unzip();
        Line { name, colour, published: false, x, y, spans: None }
    };
    let rtt = curves.rtt_ms.iter().enumerate().map(|(path, values)| {
        let points = curves.at_s.iter().zip(values).filter_map(|(&at, value)| Some((at, (*value)?)));
        line(format!("subflow {}", path + 1), path, points.collect())
    });
    let rate = curves.rate_mbit.iter().enumerate().map(|(path, values)| {
        line(format!("subflow {}", path + 1), path, curves.at_s.iter().copied().zip(values.iter().copied()).collect())
    });
    // A detector that never decided has nothing to draw.
    let decided = curves.verdicts.iter().any(|&(_, finding, _)| finding != 0);
    let verdict = curves.verdicts.iter().filter(|_| decided);
    let verdict = verdict.map(|&(at, finding, confidence)| (at, f64::from(finding) * confidence));
    let verdict = steps(verdict.collect(), curves.at_s.last().copied());
    let mut all = vec![
        chart("RTT", "ms", rtt.collect()),
        chart("Delivered", "Mbit/s", rate.collect()),
        chart("Verdict", "confidence: 1 fair, −1 shared", vec![line("verdict".into(), 2, verdict)]),
    ];
    for chart in &mut all {
        chart.lines.retain(|line| !line.x.is_empty());
    }
    all.retain(|chart| !chart.lines.is_empty());
    all
}

/// Points of a line that keeps each value until the next one, and the last until `end`.
fn steps(values: Vec<(f64, f64)>, end: Option<f64>) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(2 * values.len());
    for (at, value) in values {
        points.extend(points.last().map(|&(_, held)| (at, held)));
        points.push((at, value));
    }
    if let (Some(&(at, held)), Some(end)) = (points.last(), end)
        && at < end
    {
        points.push((end, held));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_holds_until_the_next() {
        let verdicts = vec![(1.0, 0.5), (3.0, -0.9)];
        assert_eq!(steps(verdicts.clone(), Some(8.0)), [(1.0, 0.5), (3.0, 0.5), (3.0, -0.9), (8.0, -0.9)]);
        assert_eq!(steps(verdicts, Some(2.0)), [(1.0, 0.5), (3.0, 0.5), (3.0, -0.9)]);
        assert_eq!(steps(Vec::new(), Some(8.0)), []);
    }

    #[test]
    fn a_path_without_a_verdict_has_no_chart_of_it() {
        let titles = |verdicts: Vec<(f64, i8, f64)>| {
            let curves =
                Curves { at_s: vec![0.0, 1.0], rtt_ms: vec![vec![Some(9.0); 2]; 2], verdicts, ..Curves::default() };
            charts(&curves).into_iter().map(|chart| chart.title).collect::<Vec<_>>()
        };
        assert!(!titles(vec![(0.1, 0, 0.0), (0.9, 0, 0.0)]).contains(&"Verdict".to_owned()));
        assert!(titles(vec![(0.1, 0, 0.0), (0.9, 1, 0.9)]).contains(&"Verdict".to_owned()));
    }
}
