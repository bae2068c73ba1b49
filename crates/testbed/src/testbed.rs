//! The testbed: a scenario, the ends of one of its flows, and a run.
use crate::report::Report;
use narrows_core::{Span, Time};
use narrows_results::packets::Capture;
use narrows_scenario::{NoTraces, Scenario, ScenarioError, shorthand};
use narrows_sim::{RunError, Session};
use narrows_world::peer::Peer;
use narrows_world::{Packets, Run, Wanted};
use std::fmt;

/// The flow between the two ends under test.
pub const FLOW: &str = "test";
/// The hop of [`Testbed::dumbbell`].
pub const HOP: &str = "bottleneck";
/// Spacing of a dumbbell's series.
const SPACING: Span = Span::ms(100);

/// A network and the ends that are attached to it.
pub struct Testbed {
    scenario: Result<Scenario, TestbedError>,
    name: String,
    capture: Option<Capture>,
    ends: Option<[Box<dyn Peer>; 2]>,
}

/// Why there is no report.
#[derive(Debug)]
pub enum TestbedError {
    /// The scenario cannot be read.
    Scenario(ScenarioError),
    /// It has no flow of this name.
    NoFlow(String),
    /// The run was ended, most often because a sender's packets or timers grew without bound.
    Run(RunError),
}

impl fmt::Display for TestbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestbedError::Scenario(error) => error.fmt(f),
            TestbedError::NoFlow(name) => {
                write!(f, "the scenario has no flow called \"{name}\", which is the one under test")
            }
            TestbedError::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TestbedError {}

impl Testbed {
    /// One link and one flow: `"20mbit"`, `"40ms"` of base RTT, and a queue as on the command line, `"fifo:limit=1bdp"`. What is wrong
    /// with them is said by [`Self::run`].
    pub fn dumbbell(rate: &str, rtt: &str, queue: &str) -> Testbed {
        let text = format!(
            "name = \"dumbbell\"\nduration = \"60s\"\n[record]\ninterval = \"{SPACING}\"\n[[hop]]\nname = \"{HOP}\"\nrate = {rate:?}\nqueue = \"fifo\"\n\
             [[flow]]\nname = \"{FLOW}\"\nrtt = {rtt:?}\n"
        );
        let with_queue = || -> Result<Scenario, ScenarioError> {
            let mut scenario = Scenario::parse(&text, "dumbbell", &NoTraces)?;
            let mut queues = shorthand::queues("queue", queue)?;
            if let (1, Some(queue)) = (queues.len(), queues.pop()) {
                scenario.hops[0].queue = queue;
                scenario.validate()?;
                return Ok(scenario);
            }
            Err(ScenarioError::new("queue", format!("\"{queue}\" is not one queue")))
        };
        Testbed::of(with_queue().map_err(TestbedError::Scenario))
    }

    /// The text of a scenario file, in which the flow under test is called `test`. All others are senders of the simulator.
    pub fn scenario(text: &str) -> Testbed {
        Testbed::of(Scenario::parse(text, "scenario", &NoTraces).map_err(TestbedError::Scenario))
    }

    /// A scenario that was made otherwise.
    pub fn from_scenario(scenario: Scenario) -> Testbed {
        Testbed::of(Ok(scenario))
    }

    fn of(scenario: Result<Scenario, TestbedError>) -> Testbed {
        let capture = Some(Capture { recovery: true, ..Capture::default() });
        Testbed { scenario, name: String::new(), capture, ends: None }
    }

    /// The two ends of the flow under test, the sender of its data first, and the name that reports give them.
    #[must_use]
    pub fn peers(mut self, name: &str, ends: [Box<dyn Peer>; 2]) -> Testbed {
        (self.name, self.ends) = (name.to_owned(), Some(ends));
        self
    }

    /// Which packets are recorded, for [`Report::save`]: the first million if this is not called, none with `None`. A packet takes about
    /// 300 bytes of memory until the report is dropped.
    #[must_use]
    pub fn packets(mut self, capture: Option<Capture>) -> Testbed {
        self.capture = capture.map(|capture| Capture { recovery: true, ..capture });
        self
    }

    /// Another seed than the scenario's.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Testbed {
        self.scenario.iter_mut().for_each(|scenario| scenario.seed = seed);
        self
    }

    /// Runs for this long instead of the scenario's duration.
    ///
    /// # Errors
    /// See [`TestbedError`].
    pub fn run(mut self, duration: Span) -> Result<Report, TestbedError> {
        if let Ok(scenario) = &mut self.scenario {
            for flow in &mut scenario.flows {
                if flow.stop == Time::ZERO + scenario.duration {
                    flow.stop = Time::ZERO + duration;
                }
            }
            scenario.duration = duration;
        }
        self.run_whole()
    }

    /// Runs the scenario as it is.
    ///
    /// # Errors
    /// See [`TestbedError`].
    pub fn run_whole(self) -> Result<Report, TestbedError> {
        let Testbed { scenario, name, capture, ends } = self;
        let scenario = scenario?;
        scenario.validate().map_err(TestbedError::Scenario)?;
        let names = scenario.flow_names();
        let flow = names.iter().position(|name| name == FLOW).ok_or_else(|| TestbedError::NoFlow(FLOW.to_owned()))?;
        let mut session = Session::new(scenario.clone(), &Wanted { capture, ..Wanted::RESULT });
        let is_foreign = ends.is_some();
        if let Some(ends) = ends {
            session.attach(flow, ends);
        }
        session.advance(Time::ZERO + scenario.duration).map_err(TestbedError::Run)?;
        let peers = session.peers(flow);
        let shows_losses = peers.as_ref().is_some_and(|([sender, _], _)| sender.shown().lost.is_some());
        let fault = peers.and_then(|(_, fault)| fault);
        let Run { mut result, packets } = session.finish().map_err(TestbedError::Run)?;
        let mut packets = packets.and_then(Packets::simulated);
        if is_foreign {
            let shown = &mut result.summary.flows[flow];
            packets.iter_mut().for_each(|log| log.flows[flow].controller.clone_from(&name));
            shown.controller = name;
            // A peer does not show its timeouts.
            (shown.retransmits, shown.timeouts) = (shown.retransmits.filter(|_| shows_losses), None);
        }
        Ok(Report::new(scenario, flow, result, packets, fault))
    }
}
