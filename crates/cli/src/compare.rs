//! `narrows compare`: the same traffic through several queues, one after the other.
use crate::batch::{BatchArgs, Planned};
use crate::failure::Failure;
use crate::flags::{MAX_SEED, whole};
use crate::world::WorldArgs;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::spelled;
use narrows_results::folder::folder_name;
use narrows_results::input::TraceFiles;
use narrows_scenario::RateSpec;
use narrows_scenario::bottleneck::{self, Bottleneck};
use narrows_scenario::shorthand::{self, FlowGroup};
use std::path::{Path, PathBuf};

/// Compare queues on a bottleneck: a table, and a page with charts
#[derive(clap::Args)]
#[command(
    after_help = "  narrows compare                                     # a download beside a call, behind six queues
  narrows compare --rate 50mbit --rtt 20ms --queues fifo,cake --open
  narrows compare --flows 3xcubic,1xbbr --queues all --runs 10

`narrows list` shows queues, controllers and kinds of traffic with their parameters."
)]
pub(crate) struct Compare {
    /// Queues: the same as --queues, cake fq_codel fifo:limit=100p
    #[arg(value_name = "QUEUE", conflicts_with = "queues")]
    named: Vec<String>,
    /// Rate of the bottleneck, or a trace as trace:FILE or trace:NAME (`narrows list traces`)
    #[arg(long, default_value = "20mbit", allow_hyphen_values = true)]
    rate: String,
    /// Base round-trip time, without queues
    #[arg(long, value_name = "TIME", default_value = "30ms", allow_hyphen_values = true)]
    rtt: String,
    /// Flows by use, controller or traffic: download,call or 3xcubic,1xnew_reno,cbr:rate=5mbit
    #[arg(long, default_value = "download,call", allow_hyphen_values = true)]
    flows: String,
    /// Number of bulk flows, as iperf3 spells it; instead of --flows
    #[arg(short = 'P', long, value_name = "N", conflicts_with = "flows", allow_hyphen_values = true)]
    parallel: Option<String>,
    /// Their congestion control [default: cubic]
    #[arg(short = 'C', long, value_name = "NAME", conflicts_with = "flows", allow_hyphen_values = true)]
    congestion: Option<String>,
    /// Queues: fifo:limit=100p,fq_codel:target=10ms,ecn=false; in tc's words: "fq_codel limit 1000p noecn"; "all" for every one
    /// [default: six]
    #[arg(long, allow_hyphen_values = true)]
    queues: Option<String>,
    /// Length of a run; a bare number is seconds
    #[arg(
        short = 't',
        long,
        visible_alias = "time",
        value_name = "TIME",
        default_value = "60s",
        allow_hyphen_values = true
    )]
    duration: String,
    /// End of the warm-up, which the means leave out [default: 10s, at most a sixth of the duration]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    warmup: Option<String>,
    /// Seeds every random choice, such as when flows start and in which bucket they fall
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = whole(0..=MAX_SEED))]
    seed: u64,
    /// Share of packets lost behind the queue: 0.01 or 1%
    #[arg(long, value_name = "SHARE", default_value = "0", allow_hyphen_values = true)]
    loss: String,
    /// Let TCP negotiate ECN, so that queues mark instead of dropping
    #[arg(long)]
    ecn: bool,
    /// Spacing of the time series [default: a thousandth of the duration]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    record_interval: Option<String>,
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    batch: BatchArgs,
}

/// The queues of the first comparison: tail drop, an AQM, fair queuing, both together, and one of the papers' queues.
const QUEUES: &str = "fifo,codel,fq,fq_codel,cocoa,cake";
/// Stands for every queue in the registry.
const ALL: &str = "all";

/// Runs the command.
pub(crate) fn main(args: &Compare) -> Result<(), Failure> {
    let (bottleneck, (queues, named)) = (args.bottleneck()?, args.chosen()?);
    let world = args.world.world()?;
    let (mut plan, mut refusal) = (Vec::new(), None);
    let seeds = args.batch.seeds(args.seed)?;
    for queue in &queues {
        let all: Result<Vec<Planned>, Failure> =
            seeds.iter().map(|&seed| args.planned(&bottleneck, queue, seed, seeds.len() > 1)).collect();
        let all = all?;
        match all.first().map(|planned| world.check(&planned.scenario)) {
            // A world need not have every queue, but it must have those that were named.
            Some(Err(error)) if !named => refusal = refusal.or(Some(error)),
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(())) | None => plan.extend(all),
        }
    }
    if let (true, Some(refusal)) = (plan.is_empty(), refusal) {
        return Err(refusal.into());
    }
    args.batch.execute("compare", plan, world.as_ref(), None)
}

impl Compare {
    fn bottleneck(&self) -> Result<Bottleneck, Failure> {
        let span = |flag: &str, text: &str| shorthand::span(flag, text).map_err(Failure::usage);
        let optional = |flag: &str, text: &Option<String>| text.as_ref().map(|text| span(flag, text)).transpose();
        let rate =
            shorthand::rate_or_trace("--rate", &self.rate, &TraceFiles(Path::new(""))).map_err(Failure::usage)?;
        let shown = match &rate {
            RateSpec::Schedule(_) => rate.initial().to_string(),
            RateSpec::Trace { .. } => self.rate.trim().to_owned(),
        };
        let rtt = span("--rtt", &self.rtt)?;
        let duration = shorthand::duration("--duration", &self.duration).map_err(Failure::usage)?;
        Ok(Bottleneck {
            name: format!("{shown} {rtt} {}", self.traffic().1),
            rate,
            rtt,
            flows: self.flow_groups()?,
            duration,
            warmup: optional("--warmup", &self.warmup)?.unwrap_or_else(|| Bottleneck::warmup(duration)),
            record_interval: optional("--record-interval", &self.record_interval)?,
            loss: shorthand::loss("--loss", &self.loss, &TraceFiles(Path::new(""))).map_err(Failure::usage)?,
            ecn: self.ecn,
        })
    }

    /// The queues, and whether they were named. A command of `tc` is one queue, also where a shell has split it.
    fn chosen(&self) -> Result<(Vec<QueueConfig>, bool), Failure> {
        let is_command = self.named.first().is_some_and(|word| ["tc", "sudo", "qdisc"].contains(&word.as_str()));
        let (flag, text) = match (&self.queues, self.named.is_empty()) {
            (Some(text), _) => ("--queues", text.clone()),
            (None, true) => ("--queues", QUEUES.to_owned()),
            (None, false) => ("QUEUE", self.named.join(if is_command { " " } else { "," })),
        };
        if text.trim() == ALL {
            return Ok((Bottleneck::all_queues(), false));
        }
        let queues = shorthand::queues(flag, &text).map_err(|error| match self.named.len() {
            0 | 1 => Failure::usage(error),
            _ => Failure::usage(format!("{error}; a queue in tc's words is one argument: \"fq_codel limit 1000p\"")),
        })?;
        bottleneck::distinct(flag, &queues).map_err(Failure::usage)?;
        Ok((queues, text != QUEUES))
    }

    fn flow_groups(&self) -> Result<Vec<FlowGroup>, Failure> {
        let (flag, text) = self.traffic();
        shorthand::flows(flag, &text).map_err(Failure::usage)
    }

    /// The flows, and the flag that gave them.
    fn traffic(&self) -> (&'static str, String) {
        let count = self.parallel.as_deref().unwrap_or("1");
        match (&self.parallel, &self.congestion) {
            (None, None) => ("--flows", self.flows.clone()),
            (_, Some(name)) => ("--congestion", format!("{count}x{}", spelled(name))),
            (Some(_), None) => ("--parallel", format!("{count}xcubic")),
        }
    }

    fn planned(
        &self,
        bottleneck: &Bottleneck,
        queue: &QueueConfig,
        seed: u64,
        repeats: bool,
    ) -> Result<Planned, Failure> {
        let label = queue.to_string();
        let scenario = self.world.adapted(bottleneck.scenario(queue, seed).map_err(Failure::usage)?)?;
        let scenario = if repeats { scenario.repeated() } else { scenario };
        let folder = PathBuf::from(folder_name(&label)).join(format!("seed-{seed}"));
        Ok(Planned { folder, label: format!("{label} seed {seed}"), scenario })
    }
}
