//! Packets per second of whole runs, each beside the bare loop of the same link.
use crate::allocator::{self, Usage};
use crate::bare::{self, Link, Pipe};
use crate::clock::{cpu_timed, timed};
use crate::{Options, machine, median};
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Rate, Span, Time};
use narrows_results::RunResult;
use narrows_scenario::{Flow, Hop, RateSpec, Record, Rtt, Scenario, Start};
use narrows_sim::{Unwatched, Wanted};
use serde::Serialize;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

/// The names of the cases.
pub(crate) const NAMES: &[&str] = &["single-fifo", "single-fq_codel", "many", "many-rtts", "crowd"];

/// A case: a scenario, the link of its bare loop, and the aims.
struct Case {
    what: &'static str,
    scenario: Scenario,
    link: Link,
    aim: Aim,
}

/// What the simulator should reach on a current server with one flow on one core.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Aim {
    /// Minimum packets per second.
    pub(crate) packets_per_s: f64,
    /// Minimum ratio to the bare loop's speed.
    pub(crate) of_bare: Option<f64>,
    /// Maximum memory, bytes.
    pub(crate) peak_bytes: Option<u64>,
}

/// Packets per second over the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Speed {
    /// Median.
    pub(crate) median: f64,
    /// The best round, in which the machine had least other work.
    pub(crate) best: f64,
}

/// A case's figures.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) what: &'static str,
    pub(crate) rounds: usize,
    /// Packets dequeued per run.
    pub(crate) packets: u64,
    /// Events handled per packet.
    pub(crate) events_per_packet: f64,
    pub(crate) packets_per_s: Speed,
    /// The speeds of both bare loops.
    pub(crate) bare_packets_per_s: Bare,
    /// Ratio to the bare loop's speed: median over neighbouring rounds.
    pub(crate) of_bare: f64,
    /// The same for the loop with a ring.
    pub(crate) of_ring: f64,
    /// Peak memory of the run's thread according to the counting allocator, bytes.
    pub(crate) peak_bytes: u64,
    /// Peak of the process's resident set according to the kernel, bytes.
    pub(crate) peak_resident_bytes: Option<u64>,
    /// Allocations in a run.
    pub(crate) allocations: u64,
    /// Utilisation of the link, which shows whether the case is as intended.
    pub(crate) utilisation: f64,
    /// Share of the packets that the queue dropped.
    pub(crate) loss_rate: f64,
    /// The same run on several threads, if it uses them.
    pub(crate) threads: Vec<Parallel>,
    pub(crate) aim: Aim,
}

impl Measured {
    /// The run on two threads.
    pub(crate) fn on_two(&self) -> Option<&Parallel> {
        self.threads.iter().find(|run| run.threads == 2)
    }
}

/// A run on several threads.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Parallel {
    pub(crate) threads: usize,
    pub(crate) packets_per_s: Speed,
    /// Median of the ratios to the neighbouring runs on one thread.
    pub(crate) to_one_thread: f64,
    /// CPU time per packet; `None` if the system does not tell it.
    pub(crate) cpu: Option<Cpu>,
    /// Memory of all parts at the end, which is the peak, by their own account, bytes.
    pub(crate) peak_bytes: u64,
    pub(crate) peak_resident_bytes: Option<u64>,
    /// Were its results the same bytes?
    pub(crate) equal: bool,
}

/// CPU time per packet, ns: of the second half of a run, so that building the world and its result do not count. Medians.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cpu {
    /// The thread of the network.
    pub(crate) network_ns: f64,
    /// All threads of hosts together.
    pub(crate) hosts_ns: f64,
    /// All threads, beyond what one thread takes: handing packets over, and what caches bring or cost.
    pub(crate) beyond_one_thread_ns: f64,
}

impl Cpu {
    /// Packets per second on this number of threads, each with a core of its own: those of the slowest thread, if its cost per packet stays
    /// what it was here, and the hosts are divided evenly.
    pub(crate) fn bound(&self, threads: usize) -> f64 {
        1e9 / self.network_ns.max(self.hosts_ns / (threads - 1) as f64)
    }
}

/// Runs the case and the bare loop alternately.
pub(crate) fn measure(name: &str, options: &Options) -> Result<Measured, String> {
    let case = case(name, options.divisor)?;
    let (mut speeds, mut heap, mut ring) = (Vec::new(), Vec::new(), Vec::new());
    let (mut peak_bytes, mut peak_resident_bytes, mut last) = (0, None, None);
    // A run with one flow is never parallel.
    let is_divided = options.threads.unwrap_or_else(machine::cores) > 1 && case.scenario.flows[0].count > 1;
    let mut threads = if is_divided { THREADS.map(ParallelSoFar::on).to_vec() } else { Vec::new() };
    // Otherwise the slowest case would take most of the time. The ratio of neighbouring rounds is stable nevertheless.
    let rounds = if case.scenario.flows[0].count >= 10_000 { options.rounds.min(3) } else { options.rounds };
    for _ in 0..rounds {
        machine::reset_peak_resident();
        let ((result, usage), wall) = timed(|| allocator::measure(|| run(&case.scenario, 1)));
        let result = result?;
        peak_resident_bytes = peak_resident_bytes.max(machine::peak_resident());
        peak_bytes = usage.peak_bytes.max(peak_bytes);
        let packets = result.summary.cost.packets;
        speeds.push(packets as f64 / wall.as_secs_f64());
        heap.push(bare_speed(&case.link, Pipe::Heap, packets));
        ring.push(bare_speed(&case.link, Pipe::Ring, packets));
        if is_divided {
            let alone = cpu_per_packet(&case.scenario, 1)?;
            for several in &mut threads {
                several.measure(&case.scenario, &result, wall, alone)?;
            }
        }
        last = Some((result, usage));
    }
    let (RunResult { summary, .. }, Usage { allocations, .. }) = last.ok_or("no rounds")?;
    let hop = summary.hops.first().ok_or("the run has no hop")?;
    let share = |of: &[f64]| median(speeds.iter().zip(of).map(|(speed, of)| speed / of).collect());
    Ok(Measured {
        name: name.to_owned(),
        what: case.what,
        rounds,
        packets: summary.cost.packets,
        events_per_packet: summary.cost.events as f64 / summary.cost.packets.max(1) as f64,
        of_bare: share(&heap),
        of_ring: share(&ring),
        packets_per_s: Speed::of(speeds),
        bare_packets_per_s: Bare { heap: Speed::of(heap), ring: Speed::of(ring) },
        peak_bytes,
        peak_resident_bytes,
        allocations,
        utilisation: hop.utilisation,
        loss_rate: hop.loss_rate,
        threads: threads.into_iter().map(ParallelSoFar::done).collect(),
        aim: case.aim,
    })
}

/// Numbers of threads: with two the receivers are beside the network, with three beside their senders.
const THREADS: [usize; 2] = [2, 3];

/// The rounds of a parallel run.
#[derive(Clone, Default)]
struct ParallelSoFar {
    threads: usize,
    speeds: Vec<f64>,
    ratios: Vec<f64>,
    /// CPU time per packet of the network and of the hosts, and of all beyond one thread, ns.
    cpu: [Vec<f64>; 3],
    peak_bytes: u64,
    peak_resident_bytes: Option<u64>,
    differ: bool,
}

impl ParallelSoFar {
    fn on(threads: usize) -> ParallelSoFar {
        ParallelSoFar { threads, ..ParallelSoFar::default() }
    }

    /// Makes a round, and compares its result with that of one thread, which took this long, and this much CPU time per packet.
    fn measure(
        &mut self,
        scenario: &Scenario,
        whole: &RunResult,
        whole_took: Duration,
        alone: Option<[f64; 2]>,
    ) -> Result<(), String> {
        machine::reset_peak_resident();
        let (result, wall) = timed(|| run(scenario, self.threads));
        let result = result?;
        let cost = result.summary.cost;
        self.speeds.push(cost.packets as f64 / wall.as_secs_f64());
        self.ratios.push(whole_took.as_secs_f64() / wall.as_secs_f64());
        self.peak_bytes = self.peak_bytes.max(cost.peak_bytes);
        self.peak_resident_bytes = self.peak_resident_bytes.max(machine::peak_resident());
        self.differ |= digest(&result) != digest(whole);
        if let (Some([network, hosts]), Some([alone, _])) = (cpu_per_packet(scenario, self.threads)?, alone) {
            self.cpu.iter_mut().zip([network, hosts, network + hosts - alone]).for_each(|(all, ns)| all.push(ns));
        }
        Ok(())
    }

    fn done(self) -> Parallel {
        let has_cpu = self.cpu.iter().all(|rounds| !rounds.is_empty());
        let [network_ns, hosts_ns, beyond_one_thread_ns] = self.cpu.map(median);
        Parallel {
            threads: self.threads,
            packets_per_s: Speed::of(self.speeds),
            to_one_thread: median(self.ratios),
            cpu: has_cpu.then_some(Cpu { network_ns, hosts_ns, beyond_one_thread_ns }),
            peak_bytes: self.peak_bytes,
            peak_resident_bytes: self.peak_resident_bytes,
            equal: !self.differ,
        }
    }
}

/// CPU time per packet in the second half of a run, ns: of the thread that started it, which has the network, and of all others.
fn cpu_per_packet(scenario: &Scenario, threads: usize) -> Result<Option<[f64; 2]>, String> {
    let half = Scenario { duration: scenario.duration / 2, ..scenario.clone() };
    let [half, whole] = [&half, scenario].map(|scenario| {
        let (result, cpu) = cpu_timed(|| run(scenario, threads));
        result.map(|result| (result.summary.cost.packets, cpu))
    });
    let ((few, before), (many, after)) = (half?, whole?);
    let (Some(before), Some(after)) = (before, after) else { return Ok(None) };
    let per_packet = |n: usize| after[n].saturating_sub(before[n]).as_ns() as f64 / (many - few).max(1) as f64;
    Ok(Some([per_packet(0), per_packet(1)]))
}

/// The bare loop's speed.
#[derive(Debug, Serialize)]
pub(crate) struct Bare {
    /// All events in the heap: the reference of all ratios.
    pub(crate) heap: Speed,
    /// With a ring for packets in the pipe.
    pub(crate) ring: Speed,
}

/// The bare loop for the first case's link, with both pipes alternately.
pub(crate) fn bare_alone(options: &Options) -> Bare {
    let link = Link { rate: Rate::mbit(100), rtt: Span::ms(50), standing: STANDING };
    let packets = 20_000_000 / options.divisor;
    let speed = |pipe| bare_speed(&link, pipe, packets);
    let (heap, ring) = (0..options.rounds).map(|_| (speed(Pipe::Heap), speed(Pipe::Ring))).unzip();
    Bare { heap: Speed::of(heap), ring: Speed::of(ring) }
}

/// Packets per second of one run of the loop.
fn bare_speed(link: &Link, pipe: Pipe, packets: u64) -> f64 {
    let (counters, wall) = timed(|| bare::run(link, pipe, packets));
    counters.packets as f64 / wall.as_secs_f64()
}

impl Speed {
    fn of(speeds: Vec<f64>) -> Speed {
        let best = speeds.iter().copied().fold(0.0, f64::max);
        Speed { median: median(speeds), best }
    }
}

/// Runs a scenario to its end on up to `threads` threads.
pub(crate) fn run(scenario: &Scenario, threads: usize) -> Result<RunResult, String> {
    let ended = narrows_sim::run(scenario, &Wanted { threads, ..Wanted::RESULT }, &mut Unwatched);
    ended.map(|run| run.result).map_err(|_| "the run ended before its time".to_owned())
}

/// A digest of a whole result without its cost.
pub(crate) fn digest(result: &RunResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(serde_json::to_string(&result.summary.without_cost()).unwrap_or_default().as_bytes());
    let series = result.series.iter().map(|series| (&series.source, &series.metric, &series.points));
    let cdfs = result.cdfs.iter().map(|cdf| (&cdf.source, &cdf.metric, &cdf.points));
    for (source, metric, points) in series.chain(cdfs) {
        hasher.write(source.as_bytes());
        hasher.write(metric.as_bytes());
        for (x, y) in points {
            hasher.write_u64(x.to_bits());
            hasher.write_u64(y.to_bits());
        }
    }
    hasher.finish()
}

/// Packets that wait in the bare loop's FIFO: about as many as in a filled buffer or behind an AQM.
const STANDING: u32 = 200;

fn case(name: &str, divisor: u64) -> Result<Case, String> {
    // At least one million packets, whatever the rate.
    let s = |seconds: u64| Span::s(seconds) / divisor;
    let single = Aim { packets_per_s: 8e6, of_bare: Some(0.4), peak_bytes: None };
    let many = Aim { packets_per_s: 4e6, of_bare: None, peak_bytes: Some(64_000_000) };
    let crowd = Aim { packets_per_s: 1.5e6, of_bare: None, peak_bytes: Some(1_500_000_000) };
    let at_once = Start::At(Time::ZERO);
    let (what, bottleneck, flows, length, aim) = match name {
        "single-fifo" => (
            "1 × cubic, 100 Mbit/s, 50 ms, fifo",
            bottleneck(Rate::mbit(100), queue("fifo", &[])?),
            cubic(1, Rtt::Fixed(Span::ms(50)), at_once)?,
            s(600),
            single,
        ),
        "single-fq_codel" => (
            "1 × cubic, 100 Mbit/s, 50 ms, fq_codel",
            bottleneck(Rate::mbit(100), queue("fq_codel", &[])?),
            cubic(1, Rtt::Fixed(Span::ms(50)), at_once)?,
            s(600),
            single,
        ),
        "many" => (
            "1000 × cubic, 1 Gbit/s, 20 ms, fq_codel",
            bottleneck(Rate::gbit(1), queue("fq_codel", &[])?),
            cubic(1000, Rtt::Fixed(Span::ms(20)), at_once)?,
            s(60),
            many,
        ),
        "many-rtts" => (
            "1000 × cubic, 1 Gbit/s, 10–30 ms, fq_codel",
            bottleneck(Rate::gbit(1), queue("fq_codel", &[])?),
            cubic(1000, Rtt::Uniform(Span::ms(10), Span::ms(30)), at_once)?,
            s(60),
            many,
        ),
        "crowd" => (
            "100 000 × cubic, 100 Gbit/s, 10 ms, fq_codel",
            // More buckets than flows, and limits that two packets per flow do not reach.
            bottleneck(
                Rate::gbit(100),
                queue("fq_codel", &[("flows", "131072"), ("limit", "1000000p"), ("memory_limit", "4GB")])?,
            ),
            cubic(100_000, Rtt::Fixed(Span::ms(10)), Start::Uniform(Time::ZERO, Time::ZERO + s(1) / 2))?,
            s(2),
            crowd,
        ),
        _ => return Err("no such case".to_owned()),
    };
    let link = Link { rate: bottleneck.rate.initial(), rtt: base_rtt(flows.rtt), standing: STANDING };
    Ok(Case { what, scenario: scenario(name, bottleneck, flows, length), link, aim })
}

/// A run with one bottleneck, with all records that a run from the command line makes.
pub(crate) fn scenario(name: &str, bottleneck: Hop, flows: Flow, duration: Span) -> Scenario {
    // The spacing in a run of a minute, so that a longer run does not have fewer points per second.
    let spacing = Record::default().spacing(duration.min(Span::s(60)));
    let flows = Flow { stop: Time::ZERO + duration, ..flows };
    Scenario {
        record: Record { interval: Some(spacing), ..Record::default() },
        ..Scenario::new(name, duration, vec![bottleneck], vec![flows])
    }
}

pub(crate) fn bottleneck(rate: Rate, queue: QueueConfig) -> Hop {
    Hop::new("bottleneck", RateSpec::constant(rate), queue)
}

/// Bulk transfers with CUBIC; the scenario sets their stop time.
pub(crate) fn cubic(count: u32, rtt: Rtt, start: Start) -> Result<Flow, String> {
    let controller = ControllerConfig::named("cubic").ok_or("there is no controller called `cubic`")?;
    Ok(Flow { count, controller: Some(controller), rtt, start, ..Flow::new("bulk", Span::ZERO, Time::ZERO) })
}

pub(crate) fn queue(name: &str, parameters: &[(&str, &str)]) -> Result<QueueConfig, String> {
    let mut queue = QueueConfig::named(name).ok_or_else(|| format!("there is no queue called `{name}`"))?;
    for (parameter, value) in parameters {
        queue.set(parameter, value).map_err(|error| format!("{name}: {error}"))?;
    }
    queue.validate().map_err(|error| format!("{name}: {error}"))?;
    Ok(queue)
}

fn base_rtt(rtt: Rtt) -> Span {
    match rtt {
        Rtt::Fixed(rtt) => rtt,
        Rtt::Uniform(from, to) => (from + to) / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_case() {
        for name in NAMES {
            let case = case(name, 10).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(case.scenario.name, *name);
            assert!(case.scenario.duration > Span::ZERO);
        }
    }
}
