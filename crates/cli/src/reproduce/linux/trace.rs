//! Start-up traces: window and queue of Linux and of the run here at the same times, of a flow that starts at the same time.
use super::subject::Subject;
use super::truth::{self, Beside, Point, Setting, Trace};
use crate::failure::Failure;
use crate::grid::{self, Job, Options};
use crate::term::Paint;
use narrows_core::{Span, Time};
use narrows_results::RunResult;
use narrows_scenario::Start;
use serde_json::{Value, json};
use std::fmt::Write;

/// The set that the traces belong to.
pub(super) const SET: &str = "T6";

/// Times shown in the table, s.
const SHOWN_S: [f64; 14] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 9.0];

/// A trace of Linux and one of ours at the same times.
pub(super) struct Pair {
    controller: &'static str,
    limit: u32,
    seed: u64,
    /// Linux, ours.
    points: Vec<(Point, Point)>,
}

/// Runs every trace whose controller is available.
pub(super) fn run(traces: Vec<Trace>, subject: &Subject, options: Options<'_>) -> Result<Vec<Pair>, Failure> {
    let mut jobs = Vec::new();
    let mut runnable = Vec::new();
    for trace in traces {
        if let Some(job) = job(&trace, subject)? {
            jobs.push(job);
            runnable.push(trace);
        }
    }
    let ours = grid::run(&jobs, options, |_, run| points(&run.result))?;
    Ok(runnable.into_iter().zip(ours).map(|(linux, ours)| Pair::new(linux, &ours)).collect())
}

/// The cell that a trace is of.
pub(super) fn setting(trace: &Trace) -> Setting {
    Setting {
        set: SET.to_owned(),
        beside: Beside::Nothing,
        controller: trace.controller.to_owned(),
        queue: format!("pfifo limit {}", trace.limit),
        rate_mbit: 50.0,
        rtt_ms: 40.0,
        flows: 1,
        duration_s: 10.0,
        warmup_s: 0.0,
    }
}

fn job(trace: &Trace, subject: &Subject) -> Result<Option<Job>, Failure> {
    let Some(controller) = super::controller(trace.controller) else { return Ok(None) };
    let setting = setting(trace);
    let queue = truth::queue(&setting.queue)?;
    let controllers = core::slice::from_ref(&controller);
    let mut scenario = super::scenario(&setting, &queue, controllers, trace.seed, subject.processing());
    scenario.record.interval = Some(Span::ms(20));
    for flow in &mut scenario.flows {
        flow.start = Start::At(Time::ZERO + Span::from_secs_f64(trace.start_s));
    }
    Ok(Some(Job { label: format!("trace {controller} {queue}"), scenario }))
}

/// Window and queue of the run's only flow and hop.
fn points(result: &RunResult) -> Result<Vec<Point>, Failure> {
    let series = |source: &str, metric: &str| {
        let found = result.series.iter().find(|series| series.source.starts_with(source) && series.metric == metric);
        found.ok_or_else(|| Failure::other(format!("no series {metric} of a {source}")))
    };
    let (cwnd, queue) = (series("flow:", "cwnd_packets")?, series("hop:", "queue_packets")?);
    let point = |&(t_s, cwnd): &(f64, f64)| {
        let nearest = nearest(&queue.points, t_s, |point| point.0)?;
        Some(Point { t_s, cwnd, queue: nearest.1 })
    };
    Ok(cwnd.points.iter().filter_map(point).collect())
}

/// The element nearest to this time, within half a sampling interval.
fn nearest<T>(points: &[T], t_s: f64, time: impl Fn(&T) -> f64) -> Option<&T> {
    let after = points.partition_point(|point| time(point) < t_s);
    let candidates = points.get(after.saturating_sub(1)..points.len().min(after + 1))?;
    let distance = |point: &&T| (time(point) - t_s).abs();
    candidates.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).filter(|point| distance(point) <= 0.0101)
}

impl Pair {
    fn new(linux: Trace, ours: &[Point]) -> Pair {
        let beside = |point: &Point| nearest(ours, point.t_s, |ours| ours.t_s).map(|&ours| (*point, ours));
        let points = linux.points.iter().filter_map(beside).collect();
        Pair { controller: linux.controller, limit: linux.limit, seed: linux.seed, points }
    }

    /// Root of the mean squared difference of a quantity.
    fn rms(&self, of: impl Fn(&Point) -> f64) -> f64 {
        let squares: f64 = self.points.iter().map(|(linux, ours)| (of(ours) - of(linux)).powi(2)).sum();
        (squares / self.points.len().max(1) as f64).sqrt()
    }

    fn title(&self) -> String {
        format!("{} limit {} run {}", self.controller, self.limit, self.seed)
    }

    /// Name of the file with both traces.
    pub(super) fn file_name(&self) -> String {
        format!("startup_{}_lim{}_s{}.csv", self.controller, self.limit, self.seed)
    }

    /// Both traces, side by side.
    pub(super) fn csv(&self, subject: &Subject) -> String {
        let key = subject.key();
        let mut out = format!("t_s,linux_cwnd,{key}_cwnd,linux_queue,{key}_queue\n");
        for (linux, ours) in &self.points {
            let _ = writeln!(out, "{},{},{},{},{}", linux.t_s, linux.cwnd, ours.cwnd, linux.queue, ours.queue);
        }
        out
    }

    /// The differences between the traces.
    pub(super) fn json(&self) -> Value {
        json!({
            "controller": self.controller,
            "limit_packets": self.limit,
            "linux_seed": self.seed,
            "points": self.points.len(),
            "cwnd_rms_packets": self.rms(|point| point.cwnd),
            "queue_rms_packets": self.rms(|point| point.queue),
        })
    }
}

/// The differences between the traces; with `full` also the values at some times.
pub(super) fn text(pairs: &[Pair], full: bool, subject: &Subject, paint: Paint) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let title = "Start-up, 50 Mbit/s, 40 ms, one flow: root mean square difference over 10 s";
    let mut out = format!("\n{}\n", paint.bold(title));
    for pair in pairs {
        let (cwnd, queue) = (pair.rms(|point| point.cwnd), pair.rms(|point| point.queue));
        let _ = writeln!(out, "  {:24}  cwnd {cwnd:>7.1} packets   queue {queue:>7.1} packets", pair.title());
    }
    for pair in pairs.iter().filter(|_| full) {
        let _ = writeln!(out, "\n{}", paint.bold(&pair.title()));
        let name = subject.name();
        let heads = format!("{:>6}  {:>9} {name:>9}  {:>9} {name:>9}", "t, s", "cwnd", "queue");
        let _ = writeln!(out, "{}", paint.dim(&heads));
        for (linux, ours) in SHOWN_S.iter().filter_map(|&t| nearest(&pair.points, t, |(linux, _)| linux.t_s)) {
            let (t, cwnd, queue) = (linux.t_s, linux.cwnd, linux.queue);
            let _ = writeln!(out, "{t:>6.2}  {cwnd:>9} {:>9.1}  {queue:>9} {:>9.1}", ours.cwnd, ours.queue);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(t_s: f64, cwnd: f64, queue: f64) -> Point {
        Point { t_s, cwnd, queue }
    }

    #[test]
    fn moments_are_matched_and_differences_squared() {
        let linux = Trace {
            controller: "cubic",
            limit: 50,
            seed: 1,
            start_s: 0.0,
            points: vec![point(0.02, 10.0, 0.0), point(0.04, 20.0, 5.0), point(0.5, 1.0, 1.0)],
        };
        let pair = Pair::new(linux, &[point(0.0, 0.0, 0.0), point(0.02, 13.0, 0.0), point(0.04, 16.0, 5.0)]);
        assert_eq!(pair.points.len(), 2, "no sample of ours near 0.5 s");
        assert!((pair.rms(|point| point.cwnd) - 12.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(pair.rms(|point| point.queue), 0.0);
    }
}
