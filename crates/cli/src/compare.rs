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

/// Compare queues on a bottleneck: a table, and a page with pictures
#[derive(clap::Args)]
#[command(after_help = "`narrows list` shows queues, controllers and kinds of traffic with their parameters.")]
pub(crate) struct Compare {
    /// Rate of the bottleneck, or a trace as trace:FILE or trace:NAME (`narrows list traces`)
    #[arg(long, default_value = "100mbit", allow_hyphen_values = true)]
    rate: String,
    /// Base round-trip time, without queues
    #[arg(long, value_name = "TIME", default_value = "50ms", allow_hyphen_values = true)]
    rtt: String,
    /// Flows by controller or by traffic: 3xcubic,1xnew_reno,cbr:rate=5mbit
    #[arg(long, default_value = "1xcubic", allow_hyphen_values = true)]
    flows: String,
    /// Number of bulk flows, as iperf3 spells it; instead of --flows
    #[arg(short = 'P', long, value_name = "N", conflicts_with = "flows", allow_hyphen_values = true)]
    parallel: Option<String>,
    /// Their congestion control [default: cubic]
    #[arg(short = 'C', long, value_name = "NAME", conflicts_with = "flows", allow_hyphen_values = true)]
    congestion: Option<String>,
    /// Queues with parameters: fifo:limit=100p,fq_codel:target=10ms,ecn=false [default: every one]
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

/// Runs the command.
pub(crate) fn main(args: &Compare) -> Result<(), Failure> {
    let (bottleneck, queues) = (args.bottleneck()?, args.queues()?);
    let world = args.world.world()?;
    let (mut plan, mut refusal) = (Vec::new(), None);
    let seeds = args.batch.seeds(args.seed)?;
    for queue in &queues {
        let all: Result<Vec<Planned>, Failure> =
            seeds.iter().map(|&seed| args.planned(&bottleneck, queue, seed, seeds.len() > 1)).collect();
        let all = all?;
        match all.first().map(|planned| world.check(&planned.scenario)) {
            // A world need not have every queue; those that were asked for by name it must have.
            Some(Err(error)) if args.queues.is_none() => refusal = refusal.or(Some(error)),
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(())) | None => plan.extend(all),
        }
    }
    if let (true, Some(refusal)) = (plan.is_empty(), refusal) {
        return Err(refusal.into());
    }
    args.batch.execute("compare", plan, world.as_ref())
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
            ecn: self.ecn,
        })
    }

    fn queues(&self) -> Result<Vec<QueueConfig>, Failure> {
        let Some(text) = &self.queues else { return Ok(Bottleneck::all_queues()) };
        let queues = shorthand::queues("--queues", text).map_err(Failure::usage)?;
        bottleneck::distinct("--queues", &queues).map_err(Failure::usage)?;
        Ok(queues)
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
