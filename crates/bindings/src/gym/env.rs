//! One environment: episodes of a simulation, each under conditions of its own.
use super::agent::{Agent, Seen, Shared};
use super::buffer::Buffers;
use super::monitor::Track;
use narrows_core::congestion::ControllerConfig;
use narrows_core::netem::Loss;
use narrows_core::queue::QueueConfig;
use narrows_core::queue::lfq::Features;
use narrows_core::registry::Registered;
use narrows_core::registry::open::Custom;
use narrows_core::{Rate, Rng, Span, Time};
use narrows_scenario::Scenario;
use narrows_scenario::model::{RateSpec, Rtt, Start};
use narrows_sim::{RunError, Session, Wanted};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What an action decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Rate,
    Window,
    Probability,
    Limit,
}

/// The agent's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AgentKind {
    Congestion(Action),
    Aqm(Action),
    Buffer,
}

/// Conditions are drawn from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    fn uniform(self, rng: &mut Rng) -> f64 {
        self.low + (self.high - self.low) * rng.unit()
    }

    /// Uniform in the logarithm; the range is above zero.
    fn log_uniform(self, rng: &mut Rng) -> f64 {
        self.low * (self.high / self.low).powf(rng.unit())
    }
}

/// What all environments of a set have in common.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) kind: AgentKind,
    /// Flows to draw from, each in a scenario.
    pub(super) bases: Vec<Scenario>,
    /// bit/s.
    pub(super) rate: Range,
    /// s.
    pub(super) rtt: Range,
    /// BDP.
    pub(super) buffer: Range,
    pub(super) loss: Range,
    /// Length of an interval in base RTTs, unless it is a time.
    pub(super) interval_rtts: f64,
    pub(super) interval: Option<Span>,
    /// Instead: an interval is the time in which the link sends this number of packets of each flow.
    pub(super) every: u32,
    pub(super) steps: u32,
    /// Length of an episode, unless it is `steps`.
    pub(super) duration: Option<Span>,
    /// The rate is multiplied by a factor from it in the middle of an episode.
    pub(super) rate_step: Range,
    /// A queue in place of the learner's.
    pub(super) instead: Option<QueueConfig>,
    pub(super) history: usize,
    /// Largest change of a rate (share) or a window (powers of two) by an action.
    pub(super) change: f64,
    pub(super) weights: Vec<f64>,
}

/// Numbers per interval in an observation.
pub(super) const FEATURES: usize = 6;
/// Facts about an interval beside the observation: throughput (Mbit/s), mean delay (ms), share that was lost.
pub(super) const FACTS: usize = 3;
/// Payload and length of a full-sized packet, bytes.
pub(super) const MSS: f64 = 1448.0;
const PACKET: f64 = 1500.0;

impl Task {
    pub(super) fn width(&self) -> usize {
        if self.kind == AgentKind::Buffer { Features::RANGES.len() } else { FEATURES * self.history }
    }
}

/// What a step shows beside the observation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    pub(super) reward: f64,
    pub(super) ended: bool,
    pub(super) facts: [f32; FACTS],
}

/// The conditions of an episode.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    rate: f64,
    rtt: f64,
    buffer: u32,
    loss: f64,
}

/// An environment.
pub(super) struct Env {
    task: Arc<Task>,
    seed: u64,
    /// Episodes begun with this seed.
    episodes: u64,
    session: Option<Session>,
    shared: Arc<Shared>,
    conditions: Conditions,
    interval: Span,
    steps: u32,
    /// Those of this episode.
    most_steps: u32,
    /// The rate (bit/s) or the window (bytes) that actions change.
    level: f64,
    track: Track,
}

impl Env {
    pub(super) fn new(task: Arc<Task>) -> Env {
        let track = Track::new(task.width());
        Env {
            task,
            seed: 0,
            episodes: 0,
            session: None,
            shared: Arc::default(),
            conditions: Conditions::default(),
            interval: Span::ZERO,
            steps: 0,
            most_steps: 0,
            level: 0.0,
            track,
        }
    }

    /// Episodes from now on follow from this seed.
    pub(super) fn seed(&mut self, seed: u64) {
        (self.seed, self.episodes) = (seed, 0);
    }

    pub(super) fn conditions(&self) -> (f64, f64, u32, f64) {
        let Conditions { rate, rtt, buffer, loss } = self.conditions;
        (rate, rtt, buffer, loss)
    }

    /// Begins an episode, and runs its first moments: the handshake and a round trip, or one interval of the queue's.
    pub(super) fn reset(&mut self) -> Result<Shown, RunError> {
        let task = Arc::clone(&self.task);
        let mut rng = Rng::stream(self.seed, &format!("gym.{}", self.episodes));
        self.episodes += 1;
        let (rate, rtt) = (task.rate.log_uniform(&mut rng), task.rtt.log_uniform(&mut rng));
        let bdp = rate * rtt / 8.0 / PACKET;
        let buffer = (task.buffer.log_uniform(&mut rng) * bdp).ceil().clamp(2.0, 1e6) as u32;
        let loss = if task.loss.high > 0.0 { task.loss.uniform(&mut rng) } else { 0.0 };
        self.conditions = Conditions { rate, rtt, buffer, loss };
        // With one entry nothing is drawn, so that an episode of the other environments does not change.
        let base = if task.bases.len() > 1 {
            &task.bases[rng.below(task.bases.len() as u64) as usize]
        } else {
            &task.bases[0]
        };
        self.interval = match (task.interval, task.kind) {
            (Some(interval), _) => interval,
            (None, AgentKind::Buffer) => {
                let flows: u32 = base.flows.iter().map(|flow| flow.count).sum();
                Span::from_secs_f64(f64::from(task.every) * f64::from(flows) * PACKET * 8.0 / rate)
            }
            (None, _) => Span::from_secs_f64(rtt * task.interval_rtts),
        };
        self.most_steps = task.duration.map_or(task.steps, |duration| {
            (duration.as_secs_f64() / self.interval.as_secs_f64()).ceil().clamp(1.0, f64::from(u32::MAX)) as u32
        });
        self.steps = 0;
        self.track.begin(rtt);
        self.shared = Arc::default();
        let scenario = self.scenario(&task, base.clone(), &mut rng);
        self.begin(rng);
        let mut session = Session::new(scenario, &Wanted { figures: false, ..Wanted::RESULT });
        let first = match task.kind {
            AgentKind::Congestion(_) => Span::from_secs_f64(2.5 * rtt),
            AgentKind::Aqm(_) | AgentKind::Buffer => self.interval,
        };
        session.advance(Time::ZERO + first)?;
        self.session = Some(session);
        let seen = self.shared.take();
        let mut shown = self.account(&seen, first.as_secs_f64());
        shown.reward = 0.0;
        Ok(shown)
    }

    /// The scenario of this episode.
    fn scenario(&self, task: &Task, mut scenario: Scenario, rng: &mut Rng) -> Scenario {
        let Conditions { rtt, buffer, loss, .. } = self.conditions;
        scenario.seed = rng.next_u64() >> 1;
        let hop = &mut scenario.hops[0];
        hop.rate = self.rates(task, rng);
        hop.loss = Loss::random(loss);
        let rtt = Span::from_secs_f64(rtt);
        for flow in &mut scenario.flows {
            flow.rtt = Rtt::Fixed(rtt);
            flow.start = Start::Uniform(Time::ZERO, Time::ZERO + rtt);
        }
        match task.kind {
            AgentKind::Congestion(_) => {
                // A limit in packets is always legal here.
                let _ = hop.queue.set("limit", &format!("{buffer}p"));
                let agent = &mut scenario.flows[0];
                agent.start = Start::At(Time::ZERO);
                agent.controller = Some(ControllerConfig::Custom(Custom::new("agent", "", Agent::new(&self.shared))));
            }
            AgentKind::Aqm(_) => {
                hop.queue = QueueConfig::Custom(Custom::new("agent", "", Agent::new(&self.shared)));
            }
            AgentKind::Buffer => {
                let buffers = Buffers::new(&self.shared, task.instead.as_ref());
                hop.queue = QueueConfig::Custom(Custom::new("agent", "", buffers));
            }
        }
        scenario
    }

    /// The link's rate.
    fn rates(&self, task: &Task, rng: &mut Rng) -> RateSpec {
        let rate = Rate::bit(self.conditions.rate as u64);
        match task.duration {
            Some(duration) if task.rate_step.low != task.rate_step.high => {
                let later = Rate::bit((self.conditions.rate * task.rate_step.log_uniform(rng)) as u64);
                RateSpec::Schedule(vec![(Time::ZERO, rate), (Time::ZERO + duration / 2, later)])
            }
            _ => RateSpec::constant(rate),
        }
    }

    /// The agent's first setting.
    fn begin(&mut self, mut rng: Rng) {
        let (rate, buffer) = (self.conditions.rate, self.conditions.buffer);
        self.level = match self.task.kind {
            // Aurora begins at 0.3 to 1.5 times the link's rate.
            AgentKind::Congestion(Action::Rate) => rate * Range { low: 0.3, high: 1.5 }.uniform(&mut rng),
            AgentKind::Congestion(_) => 10.0 * MSS,
            AgentKind::Aqm(Action::Probability) => 0.0,
            AgentKind::Aqm(_) => f64::from(buffer),
            AgentKind::Buffer => 256.0,
        };
        self.set(self.level);
    }

    /// Tells the agent.
    fn set(&mut self, level: f64) {
        let Conditions { rtt, buffer, .. } = self.conditions;
        let (amount, rate) = match self.task.kind {
            // Eight round trips at the rate: the window only bounds what is in flight when nothing is heard.
            AgentKind::Congestion(Action::Rate) => ((level * rtt + 20.0 * MSS) as u64, level as u64),
            AgentKind::Congestion(_) => (level as u64, 0),
            AgentKind::Aqm(Action::Probability) => (u64::from(buffer), level.to_bits()),
            AgentKind::Aqm(_) => (level as u64, 0.0_f64.to_bits()),
            AgentKind::Buffer => (level as u64, 0),
        };
        self.shared.amount.store(amount, Ordering::Relaxed);
        self.shared.rate.store(rate, Ordering::Relaxed);
    }

    /// Follows an action.
    fn act(&mut self, action: f64) {
        let Conditions { rtt, buffer, .. } = self.conditions;
        let (change, fastest) = (self.task.change, 4.0 * self.task.rate.high);
        match self.task.kind {
            AgentKind::Congestion(Action::Rate) => {
                let by = change * action.clamp(-1.0, 1.0);
                let rate = if by >= 0.0 { self.level * (1.0 + by) } else { self.level / (1.0 - by) };
                self.level = rate.clamp((2.0 * MSS * 8.0 / rtt).min(fastest), fastest);
            }
            AgentKind::Congestion(_) => {
                let most = fastest * rtt / 8.0 + f64::from(buffer) * MSS;
                self.level =
                    (self.level * (change * action.clamp(-1.0, 1.0)).exp2()).clamp(2.0 * MSS, most.max(10.0 * MSS));
            }
            AgentKind::Aqm(Action::Probability) => self.level = action.clamp(0.0, 1.0),
            AgentKind::Buffer => self.level = 256.0 * (2.0 * action.clamp(-1.0, 1.0)).exp2(),
            AgentKind::Aqm(_) => self.level = 1.0 + action.clamp(0.0, 1.0) * f64::from(buffer.saturating_sub(1)),
        }
        self.set(self.level);
    }

    /// One interval.
    pub(super) fn step(&mut self, action: f32) -> Result<Shown, RunError> {
        if self.session.is_none() || self.steps >= self.most_steps {
            return self.reset();
        }
        self.act(f64::from(action));
        if let Some(session) = &mut self.session {
            let until = session.now() + self.interval;
            session.advance(until)?;
        }
        self.steps += 1;
        let seen = self.shared.take();
        let shown = self.account(&seen, self.interval.as_secs_f64());
        Ok(Shown { ended: self.steps >= self.most_steps, ..shown })
    }

    /// Adds an interval to the observation, and rewards it.
    fn account(&mut self, seen: &Seen, length: f64) -> Shown {
        let Conditions { rate, buffer, .. } = self.conditions;
        let throughput = seen.delivered as f64 * 8.0 / length;
        let weight = |n: usize| self.task.weights.get(n).copied().unwrap_or(0.0);
        let (features, reward, lost) = match self.task.kind {
            AgentKind::Congestion(action) => {
                let window = (action == Action::Window).then_some(self.level);
                let (features, lost) = self.track.sender(seen, length, self.level, window);
                let packets = throughput / 8.0 / PACKET;
                (features, weight(0) * packets - weight(1) * self.track.delay - weight(2) * lost, lost)
            }
            AgentKind::Aqm(_) => {
                let delay = seen.delay.unwrap_or(0.0);
                let waiting = self.session.as_ref().map_or(0, |session| session.backlog(0).packets);
                self.track.delay = delay;
                let lost = share(seen.lost, seen.sent);
                let used = (throughput / rate).clamp(0.0, 1.0);
                let features = [
                    (f64::from(waiting) / f64::from(buffer)).clamp(0.0, 1.0),
                    (delay * 10.0).clamp(0.0, 100.0),
                    used,
                    (seen.sent as f64 * 8.0 / length / rate).clamp(0.0, 100.0),
                    lost,
                    seen.slope.clamp(-10.0, 10.0),
                ];
                (features, weight(0) * used - weight(1) * delay - weight(2) * lost, lost)
            }
            AgentKind::Buffer => return self.account_of_buffer(seen, length),
        };
        self.track.push(features);
        let facts = [(throughput / 1e6) as f32, (self.track.delay * 1e3) as f32, lost as f32];
        Shown { reward, ended: false, facts }
    }

    /// Rewards an interval of the flow's buffer as the paper does, in Mbit: what was sent, less `alpha` (per second) times what waited.
    fn account_of_buffer(&mut self, seen: &Seen, length: f64) -> Shown {
        let sent = seen.delivered as f64 * 8.0;
        let delay = seen.delay.unwrap_or(0.0);
        // Little's law: the bits that waited, times how long.
        let waited = sent * delay;
        let reward = (sent - self.task.weights.first().copied().unwrap_or(0.0) * waited) / 1e6;
        let facts = [(sent / length / 1e6) as f32, (delay * 1e3) as f32, share(seen.lost, seen.sent) as f32];
        Shown { reward, ended: false, facts }
    }

    /// Writes the observation: the last intervals, oldest first; or what the policy saw last.
    pub(super) fn observe(&self, into: &mut [f32]) {
        if self.task.kind == AgentKind::Buffer {
            for (place, feature) in into.iter_mut().zip(&self.shared.features) {
                *place = (f64::from(feature.load(Ordering::Relaxed)) + 1.0).log2() as f32 / 8.0;
            }
            return;
        }
        into.copy_from_slice(self.track.seen());
    }
}

/// A part of a whole; 0 if there is no whole.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}
