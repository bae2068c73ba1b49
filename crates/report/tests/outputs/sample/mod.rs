//! Results that look like real ones, made up: a sawtooth behind each queue.
use narrows_core::Rng;
use narrows_report::{Comparison, Group, Run};
use narrows_results::summary::{
    Completion, Drops, Fairness, FlowSummary, HopSummary, Quantiles, RttQuantiles, Timing, Verdicts,
};
use narrows_results::{Cdf, RunResult, Series, Summary};

/// A queue: label, its largest queue in packets, and the reason for which it drops.
#[derive(Clone, Copy)]
pub(crate) struct Queue(pub(crate) &'static str, pub(crate) f64, pub(crate) &'static str);

pub(crate) const QUEUES: [Queue; 5] = [
    Queue("fifo", 1000.0, "queue_full"),
    Queue("codel", 90.0, "aqm"),
    Queue("sfq", 127.0, "queue_full"),
    Queue("fq", 100.0, "flow_limit"),
    Queue("fq_codel", 60.0, "aqm"),
];

/// A comparison of `queues` with these flows, `seeds` runs each.
pub(crate) fn comparison(queues: &[Queue], flows: &[&str], seeds: u64) -> Comparison {
    let group =
        |q: &Queue| Group { label: q.0.to_owned(), runs: (1..=seeds).map(|seed| run(*q, flows, seed)).collect() };
    Comparison { title: "100mbit, 50ms, cubic".to_owned(), groups: queues.iter().map(group).collect() }
}

/// A run.
pub(crate) fn run(queue: Queue, flows: &[&str], seed: u64) -> Run {
    let mut rng = Rng::stream(seed, queue.0);
    let saw = sawtooth(queue, &mut rng);
    let (rate, base) = (100.0, 50.0);
    let per_packet = 1500.0 * 8.0 / (rate * 1e3);
    let share = 1.0 / flows.len().max(1) as f64;
    let mut series = vec![
        lines("hop:bottleneck", "queue_packets", &saw, |v| v),
        lines("hop:bottleneck", "throughput_mbit", &saw, |v| if v > 0.5 { rate } else { rate * 0.93 }),
    ];
    let mut cdfs = vec![cdf("hop:bottleneck", "sojourn_ms", &saw, |v| v * per_packet)];
    for flow in flows {
        let source = format!("flow:{flow}");
        series.push(lines(&source, "rtt_ms", &saw, |v| base + v * per_packet));
        series.push(lines(&source, "cwnd_packets", &saw, |v| (v + base / per_packet) * share));
        series.push(lines(&source, "throughput_mbit", &saw, |_| rate * share));
        cdfs.push(cdf(&source, "rtt_ms", &saw, |v| base + v * per_packet));
    }
    let result = RunResult { summary: summary(queue, flows, seed, &saw), series, cdfs };
    Run {
        result,
        scenario: None,
        scenario_text: Some("name = \"<sample> & more\"\n[[hop]]\nrate = \"100mbit\"\n".into()),
        events: None,
    }
}

/// 60 s at 60 ms: slow start, then cubes, each with a little noise.
fn sawtooth(queue: Queue, rng: &mut Rng) -> Vec<(f64, f64)> {
    let period = 4.0 + 12.0 * (queue.1 / 1000.0) + rng.unit();
    (0..1000)
        .map(|i| {
            let t = f64::from(i) * 0.06;
            let phase = (t % period) / period;
            let cube = 1.0 + 0.55 * (phase - 0.75).powi(3) * 4.0;
            let start = if t < 1.5 { (2.0f64).powf(t * 4.0 - 6.0) * 1.3 } else { 1.0 };
            (t, (queue.1 * (cube * start - 0.15 + 0.06 * rng.unit())).clamp(0.0, queue.1))
        })
        .collect()
}

fn lines(source: &str, metric: &str, saw: &[(f64, f64)], of: impl Fn(f64) -> f64) -> Series {
    Series { source: source.into(), metric: metric.into(), points: saw.iter().map(|&(t, v)| (t, of(v))).collect() }
}

fn cdf(source: &str, metric: &str, saw: &[(f64, f64)], of: impl Fn(f64) -> f64) -> Cdf {
    let values = sorted(saw, of);
    let n = values.len() as f64;
    let points = values.into_iter().enumerate().map(|(i, v)| (v, (i + 1) as f64 / n)).collect();
    Cdf { source: source.into(), metric: metric.into(), points }
}

fn sorted(saw: &[(f64, f64)], of: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = saw.iter().map(|p| of(p.1)).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn quantiles(saw: &[(f64, f64)], of: impl Fn(f64) -> f64) -> Quantiles {
    let v = sorted(saw, of);
    let at = |q: f64| v[((v.len() - 1) as f64 * q) as usize];
    Quantiles { mean: v.iter().sum::<f64>() / v.len() as f64, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1.0) }
}

fn summary(queue: Queue, flows: &[&str], seed: u64, saw: &[(f64, f64)]) -> Summary {
    let drops = 40 + (3000.0 / queue.1) as u64 + seed;
    let sojourn = quantiles(saw, |v| v * 0.12);
    let utilisation = 0.9996 - 0.4 / queue.1 - 0.0001 * seed as f64;
    let hop = HopSummary {
        name: "bottleneck".into(),
        queue: queue.0.into(),
        utilisation,
        packets: 491_000,
        queue_packets: Some(quantiles(saw, |v| v)),
        sojourn_ms: Some(sojourn),
        offered_packets: 491_000 + drops,
        drops: Drops { total: drops, by_reason: [(queue.2.to_owned(), drops)].into() },
        loss_rate: drops as f64 / 491_000.0,
        marks: 0,
    };
    let share = 1.0 / flows.len().max(1) as f64;
    let flow = |name: &&str| FlowSummary {
        application: None,
        name: (*name).to_owned(),
        controller: narrows_report::comparison::flow_group(name).into(),
        goodput_mbit: 96.5 * utilisation * share,
        throughput_mbit: 100.0 * utilisation * share,
        rtt_ms: Some(RttQuantiles {
            min: 50.12,
            mean: 50.1 + sojourn.mean,
            p50: 50.1 + sojourn.p50,
            p95: 50.1 + sojourn.p95,
            p99: 50.1 + sojourn.p99,
        }),
        sojourn_ms: Some(sojourn),
        retransmits: Some((drops as f64 * share) as u64),
        timeouts: Some(0),
        lost_packets: Some((drops as f64 * share) as u64),
        completion_s: name.starts_with("web").then_some(Completion {
            count: 210,
            mean: 0.41,
            p50: 0.3,
            p95: 1.1,
            p99: 2.25,
            max: 4.0,
        }),
        verdicts: name.starts_with("tonopah").then_some(Verdicts {
            right: 0.97,
            wrong: 0.01,
            undecided: 0.02,
            accuracy: Some(0.97 / 0.98),
            found_s: Some(0.8),
            found_rtts: Some(9),
            changes: 3,
            event_accuracy: Some(0.95),
            detections: 12,
            recoveries: 1,
            events: 40,
            queued_s: Some(8.5),
            queued_right: Some(0.98),
        }),
        route: None,
        five_tuple: None,
        active: None,
    };
    Summary {
        name: "100mbit, 50ms, cubic".into(),
        seed,
        duration_s: 60.0,
        warmup_s: 5.0,
        hops: vec![hop],
        flows: flows.iter().map(flow).collect(),
        fairness: Fairness { jain: 0.987 },
        world: None,
        timing: None,
        setup: None,
        cost: Default::default(),
    }
}

/// The times of a world that was behind by up to 4 ms for this share of its packets.
pub(crate) fn timing(late_share: f64) -> Timing {
    let late_ms = Quantiles { mean: 0.02, p50: 0.015, p95: 0.05, p99: 0.08, max: 4.0 };
    Timing {
        packets: 491_000,
        late_ms,
        late_share,
        stamped_late_share: 0.0,
        overrun_packets: 0,
        unsent_packets: 0,
        broken_connections: 0,
        wakes: 480_000,
        cpu_s: 7.5,
    }
}
