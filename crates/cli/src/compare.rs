//! `narrows compare`: the same traffic through one queue after the other.
use crate::batch::{BatchArgs, Planned};
use crate::failure::Failure;
use crate::output::folder_name;
use crate::term::Paint;
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_scenario::transport::TcpParams;
use narrows_scenario::{
    Flow, Hop, RateSpec, Record, Release, Rtt, Scenario, Start, Traffic, Transport, shorthand,
};
use std::path::PathBuf;

/// Compare queues on a bottleneck: a table, and a page with pictures
///
/// Without arguments: one CUBIC flow on 100 Mbit/s and 50 ms for 60 s, through every queue there is.
#[derive(clap::Args)]
pub(crate) struct Compare {
    /// Rate of the bottleneck
    #[arg(long, default_value = "100mbit", value_parser = shorthand::rate)]
    rate: Rate,
    /// Base round-trip time, without queues
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = shorthand::span)]
    rtt: Span,
    /// Flows by controller: 3xcubic,1xnew_reno
    #[arg(long, default_value = "1xcubic")]
    flows: String,
    /// Queues with parameters: fifo:limit=100p,fq_codel:target=10ms,ecn=false [default: every one]
    #[arg(long)]
    queues: Option<String>,
    /// Length of a run
    #[arg(short = 't', long, value_name = "TIME", default_value = "60s", value_parser = shorthand::span)]
    duration: Span,
    /// Start of a run that counts in no mean [default: 10s, at most a sixth of the duration]
    #[arg(long, value_name = "TIME", value_parser = shorthand::span)]
    warmup: Option<Span>,
    /// Seeds every random choice: when flows start, in which bucket they fall
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Let the flows negotiate ECN, so that queues mark instead of dropping
    #[arg(long)]
    ecn: bool,
    /// Spacing of the time series [default: a thousandth of the duration]
    #[arg(long, value_name = "TIME", value_parser = shorthand::span)]
    record_interval: Option<Span>,
    #[command(flatten)]
    batch: BatchArgs,
}

/// Runs the command.
pub(crate) fn main(args: &Compare) -> Result<(), Failure> {
    let done = args.batch.execute(args.plan()?)?;
    let paint = Paint::stdout();
    done.print(args.batch.json, |summaries| narrows_report::terminal::comparison(summaries, paint.is_on()))
}

impl Compare {
    /// Every queue with every seed.
    fn plan(&self) -> Result<Vec<Planned>, Failure> {
        let flows = shorthand::flows(&self.flows).map_err(|error| flag("--flows", error))?;
        let queues = match &self.queues {
            Some(text) => shorthand::queues(text).map_err(|error| flag("--queues", error))?,
            None => QueueConfig::NAMES.iter().filter_map(|name| QueueConfig::named(name)).collect(),
        };
        if let Some(twice) = (1..queues.len()).find(|&n| queues[..n].contains(&queues[n])) {
            return Err(flag("--queues", format!("`{}` is given twice", queues[twice])));
        }
        let seeds = self.batch.seeds(self.seed)?;
        let plan = queues.iter().flat_map(|queue| seeds.iter().map(|&seed| self.planned(queue, &flows, seed)));
        plan.collect()
    }

    fn planned(&self, queue: &QueueConfig, flows: &[(u32, ControllerConfig)], seed: u64) -> Result<Planned, Failure> {
        let label = queue.to_string();
        let scenario = self.scenario(queue, flows, seed);
        scenario.validate().map_err(|error| Failure::usage(format!("with {label}: {error}")))?;
        let folder = PathBuf::from(folder_name(&label)).join(format!("seed-{seed}"));
        Ok(Planned { folder, label: format!("{label} seed {seed}"), scenario })
    }

    /// One hop that holds the queue; all delay in the flows' base RTT.
    fn scenario(&self, queue: &QueueConfig, flows: &[(u32, ControllerConfig)], seed: u64) -> Scenario {
        Scenario {
            name: format!("{} {} {}", self.rate, self.rtt, self.flows),
            duration: self.duration,
            warmup: self.warmup.unwrap_or((self.duration / 6).min(Span::s(10))),
            seed,
            hops: vec![Hop {
                name: "bottleneck".to_owned(),
                rate: RateSpec::constant(self.rate),
                delay: Span::ZERO,
                queue: queue.clone(),
                overhead: Bytes::ZERO,
                loss: 0.0,
                release: Release::End,
                burst: Bytes::ZERO,
            }],
            flows: (0..flows.len()).map(|n| self.flow(flows, n)).collect(),
            record: Record { interval: self.record_interval, ..Record::default() },
        }
    }

    /// The n-th group of flows, named after its controller. Each flow starts within the first round trip, so that
    /// several do not move in lockstep and several seeds are several experiments.
    fn flow(&self, flows: &[(u32, ControllerConfig)], n: usize) -> Flow {
        let (count, controller) = &flows[n];
        let before = flows[..n].iter().filter(|(_, other)| other.name() == controller.name()).count();
        let name = controller.name().to_owned();
        Flow {
            name: if before == 0 { name } else { format!("{name}-{}", before + 1) },
            count: *count,
            controller: Some(controller.clone()),
            traffic: Traffic::Bulk(Default::default()),
            rtt: Rtt::Fixed(self.rtt),
            route: vec![0],
            back: vec![],
            start: match self.rtt {
                Span::ZERO => Start::At(Time::ZERO),
                rtt => Start::Uniform(Time::ZERO, Time::ZERO + rtt),
            },
            stop: Time::ZERO + self.duration,
            transport: Transport::Tcp(TcpParams { ecn: self.ecn, ..TcpParams::default() }),
        }
    }
}

fn flag(flag: &str, error: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{flag}: {error}"))
}
