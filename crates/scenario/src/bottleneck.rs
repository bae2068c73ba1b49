//! Flows over one bottleneck, described in a few words: the scenario that queues are compared in.
use crate::error::ScenarioError;
use crate::model::{DelaySpec, Flow, Hop, RateSpec, Record, Scenario, Start};
use crate::shorthand::FlowGroup;
use crate::traffic::Traffic;
use crate::transport::Transport;
use narrows_core::netem::Loss;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Span, Time};

/// One hop, and flows over it. The whole delay is in the flows' base RTT.
#[derive(Clone, PartialEq, Debug)]
pub struct Bottleneck {
    /// Its name as a scenario.
    pub name: String,
    /// Rate of the hop.
    pub rate: RateSpec,
    /// Base round-trip time of every flow, without queues.
    pub rtt: Span,
    /// The flows.
    pub flows: Vec<FlowGroup>,
    /// Length of a run.
    pub duration: Span,
    /// End of the warm-up, which the means leave out.
    pub warmup: Span,
    /// Spacing of the time series; a thousandth of the duration if `None`.
    pub record_interval: Option<Span>,
    /// Packets lost behind the queue.
    pub loss: Loss,
    /// Whether TCP negotiates ECN, whatever the flows say.
    pub ecn: bool,
}

impl Bottleneck {
    /// The warm-up for a run of this length: ten seconds, at most a sixth.
    pub fn warmup(duration: Span) -> Span {
        (duration / 6).min(Span::s(10))
    }

    /// Every queue discipline there is, with its defaults.
    pub fn all_queues() -> Vec<QueueConfig> {
        QueueConfig::names().iter().filter_map(|name| QueueConfig::named(name)).collect()
    }

    /// The scenario with this queue.
    ///
    /// # Errors
    /// The part that is out of its limits.
    pub fn scenario(&self, queue: &QueueConfig, seed: u64) -> Result<Scenario, ScenarioError> {
        let hop = Hop {
            delay: DelaySpec::constant(self.delay()),
            loss: self.loss.clone(),
            ..Hop::new("bottleneck", self.rate.clone(), queue.clone())
        };
        let flows = self.flows.iter().map(|group| self.flow(group)).collect();
        let scenario = Scenario {
            warmup: self.warmup,
            seed,
            record: Record { interval: self.record_interval, ..Record::default() },
            ..Scenario::new(&self.name, self.duration, vec![hop], flows)
        };
        scenario.validate()?;
        Ok(scenario)
    }

    /// The delay of the link. Where one-way delays are figures it is half of the RTT, as on a symmetric path. Bulk flows feel the
    /// round trip only; for them the way back has all of it, and a packet is an event less.
    fn delay(&self) -> Span {
        let is_felt = |group: &FlowGroup| matches!(group.traffic, Traffic::Thin(_) | Traffic::Video(_));
        let has_datagrams = |group: &FlowGroup| matches!(group.transport, Transport::Udp(_));
        let is_one_way = self.flows.iter().any(|group| is_felt(group) || has_datagrams(group));
        if is_one_way { self.rtt / 2 } else { Span::ZERO }
    }

    /// Each flow starts within the first round trip, so that several flows are not synchronised.
    fn flow(&self, group: &FlowGroup) -> Flow {
        let mut flow = group.clone().over(vec![0], self.rtt, Time::ZERO + self.duration);
        if self.rtt > Span::ZERO {
            flow.start = Start::Uniform(Time::ZERO, Time::ZERO + self.rtt);
        }
        if let Transport::Tcp(tcp) = &mut flow.transport {
            tcp.ecn |= self.ecn;
        }
        flow
    }
}

/// Refuses a list in which a queue is given twice.
pub fn distinct(flag: &str, queues: &[QueueConfig]) -> Result<(), ScenarioError> {
    match (1..queues.len()).find(|&n| queues[..n].contains(&queues[n])) {
        Some(twice) => Err(ScenarioError::new(flag, format!("\"{}\" is given twice", queues[twice]))),
        None => Ok(()),
    }
}
