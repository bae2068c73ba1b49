//! `narrows compare`: the same traffic through several queues, one after the other.
use crate::batch::{BatchArgs, Planned};
use crate::failure::Failure;
use crate::flags::{MAX_SEED, whole};
use crate::output::folder_name;
use crate::world::WorldArgs;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::registry::spelled;
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_scenario::shorthand::{self, FlowGroup};
use narrows_scenario::{DelaySpec, Flow, Hop, RateSpec, Record, Release, Scenario, Start, Transport};
use std::path::PathBuf;

/// Compare queues on a bottleneck: a table, and a page with pictures
#[derive(clap::Args)]
#[command(after_help = "`narrows list` shows queues, controllers and kinds of traffic with their parameters.")]
pub(crate) struct Compare {
    /// Rate of the bottleneck
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

/// The parsed flags.
struct Setting {
    rate: Rate,
    rtt: Span,
    flows: Vec<FlowGroup>,
    queues: Vec<QueueConfig>,
    duration: Span,
    warmup: Span,
    record_interval: Option<Span>,
}

/// Runs the command.
pub(crate) fn main(args: &Compare) -> Result<(), Failure> {
    let setting = args.setting()?;
    let world = args.world.world()?;
    let (mut plan, mut refusal) = (Vec::new(), None);
    let seeds = args.batch.seeds(args.seed)?;
    for queue in &setting.queues {
        let all: Result<Vec<Planned>, Failure> =
            seeds.iter().map(|&seed| args.planned(&setting, queue, seed, seeds.len() > 1)).collect();
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
    fn setting(&self) -> Result<Setting, Failure> {
        let span = |flag: &str, text: &str| shorthand::span(flag, text).map_err(Failure::usage);
        let optional = |flag: &str, text: &Option<String>| text.as_ref().map(|text| span(flag, text)).transpose();
        let queues = match &self.queues {
            Some(text) => shorthand::queues("--queues", text).map_err(Failure::usage)?,
            None => QueueConfig::names().iter().filter_map(|name| QueueConfig::named(name)).collect(),
        };
        if let Some(twice) = (1..queues.len()).find(|&n| queues[..n].contains(&queues[n])) {
            return Err(Failure::usage(format!("--queues: \"{}\" is given twice", queues[twice])));
        }
        let duration = shorthand::duration("--duration", &self.duration).map_err(Failure::usage)?;
        Ok(Setting {
            rate: shorthand::rate("--rate", &self.rate).map_err(Failure::usage)?,
            rtt: span("--rtt", &self.rtt)?,
            flows: self.flow_groups()?,
            queues,
            duration,
            warmup: optional("--warmup", &self.warmup)?.unwrap_or((duration / 6).min(Span::s(10))),
            record_interval: optional("--record-interval", &self.record_interval)?,
        })
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

    fn planned(&self, setting: &Setting, queue: &QueueConfig, seed: u64, repeats: bool) -> Result<Planned, Failure> {
        let label = queue.to_string();
        let scenario = self.scenario(setting, queue, seed);
        scenario.validate().map_err(Failure::usage)?;
        let scenario = if repeats { scenario.repeated() } else { scenario };
        let folder = PathBuf::from(folder_name(&label)).join(format!("seed-{seed}"));
        Ok(Planned { folder, label: format!("{label} seed {seed}"), scenario })
    }

    /// One hop with the queue; the whole delay is in the flows' base RTT.
    fn scenario(&self, setting: &Setting, queue: &QueueConfig, seed: u64) -> Scenario {
        Scenario {
            name: format!("{} {} {}", setting.rate, setting.rtt, self.traffic().1),
            duration: setting.duration,
            warmup: setting.warmup,
            seed,
            hops: vec![Hop {
                name: "bottleneck".to_owned(),
                rate: RateSpec::constant(setting.rate),
                delay: DelaySpec::constant(Span::ZERO),
                jitter: Span::ZERO,
                queue: queue.clone(),
                overhead: Bytes::ZERO,
                loss: 0.0,
                release: Release::End,
                burst: Bytes::ZERO,
            }],
            flows: setting.flows.iter().map(|group| self.flow(setting, group)).collect(),
            record: Record { interval: setting.record_interval, ..Record::default() },
        }
    }

    /// Each flow starts within the first round trip, so that several flows are not synchronised.
    fn flow(&self, setting: &Setting, group: &FlowGroup) -> Flow {
        let mut flow = group.clone().over(vec![0], setting.rtt, Time::ZERO + setting.duration);
        if setting.rtt > Span::ZERO {
            flow.start = Start::Uniform(Time::ZERO, Time::ZERO + setting.rtt);
        }
        if let Transport::Tcp(tcp) = &mut flow.transport {
            tcp.ecn |= self.ecn;
        }
        flow
    }
}
