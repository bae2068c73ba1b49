//! A run that its caller advances step by step, and sees between two steps: for environments in which a learner acts, and for pictures
//! that move. What happens does not depend on the lengths of the steps, and is what happens in [`run`](crate::run).
use crate::budget::Stopped;
#[cfg(feature = "peers")]
use crate::peers::{PeerFault, Peers};
use crate::segment::Segment;
use crate::side::{NoFigures, Recorded, Share, Side, Whole};
#[cfg(feature = "peers")]
use crate::transport::Transport;
use crate::view::Parts;
use crate::world::World;
use crate::{RunError, build, outcome};
use narrows_core::Time;
use narrows_core::queue::{Backlog, Observer};
use narrows_results::packets::PacketLog;
use narrows_scenario::Scenario;
use narrows_world::meters::Meters;
use narrows_world::network::Network;
#[cfg(feature = "peers")]
use narrows_world::peer::Peer;
use narrows_world::{Packets, Run, Unwatched, Wanted, Watch};

/// A run in progress, on the caller's thread.
pub struct Session {
    world: Box<dyn Stepped>,
    scenario: Scenario,
}

impl Session {
    /// A run at its start. The scenario must be valid and not need the live world.
    pub fn new(scenario: Scenario, wanted: &Wanted) -> Session {
        Session { world: begin(&scenario, wanted), scenario }
    }

    /// Replaces both ends of a flow, before the run begins: from now on these carry what its application sends, from the first of the
    /// two to the second. The flow is the index of one of [`Scenario::flow_names`]. Everything else about it stays as the scenario
    /// says: start and stop, traffic, route, RTT.
    ///
    /// # Panics
    /// If the run has begun, or there is no such flow.
    #[cfg(feature = "peers")]
    pub fn attach(&mut self, flow: usize, ends: [Box<dyn Peer>; 2]) {
        assert!(self.events() == 0, "peers are attached before the run begins");
        self.world.attach(flow, ends);
    }

    /// The two ends of an attached flow, and what went wrong, if anything did; `None` for other flows.
    #[cfg(feature = "peers")]
    pub fn peers(&self, flow: usize) -> Option<([&dyn Peer; 2], Option<PeerFault>)> {
        let Transport::Peers(peers) = &self.world.parts().flows[flow].transport else { return None };
        Some((peers.ends(), peers.fault()))
    }

    /// The scenario that runs.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The time that the run has been advanced to.
    pub fn now(&self) -> Time {
        self.world.parts().now
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.world.parts().handled
    }

    /// Handles everything up to this time, inclusive, and not beyond the scenario's end.
    ///
    /// # Errors
    /// [`RunError::Runaway`] if the run has exceeded its budget of work per second.
    pub fn advance(&mut self, to: Time) -> Result<(), RunError> {
        self.world.advance(to, &mut Unwatched).map_err(|stopped| RunError::new(stopped, &self.scenario))
    }

    /// Runs on to the scenario's end, and returns what [`run`](crate::run) returns.
    ///
    /// # Errors
    /// Those of [`Session::advance`].
    pub fn finish(self) -> Result<Run, RunError> {
        let Session { world, scenario } = self;
        world.finish(&scenario, &mut Unwatched).map_err(|stopped| RunError::new(stopped, &scenario))
    }

    /// The packets recorded so far, if [`Wanted::capture`] asked for them. Packets and events are only ever added at the end, so a caller
    /// that remembers how many it has read can read on from there.
    pub fn log(&self) -> Option<&PacketLog> {
        self.world.parts().recorder.map(|recorder| recorder.log())
    }

    /// Forgets the events of the log, and the packets that are not underway any more, so that a run of any length can be recorded by a
    /// caller that reads the log often enough. The packets that stay get new indices.
    pub fn forget(&mut self) {
        self.world.forget();
    }

    /// The present length of a hop's queue.
    pub fn backlog(&self, hop: usize) -> Backlog {
        self.world.parts().queue(hop).backlog()
    }

    /// Shows the inner state of a hop's queue to an observer: its gauges, and those of each flow in it.
    pub fn observe(&self, hop: usize, observer: &mut dyn Observer) {
        self.world.parts().queue(hop).observe(observer);
    }

    /// A sender's window, packets in flight, pacing rate and smoothed RTT, by the flow's index; `None` before its connection is
    /// established, and for datagrams.
    pub fn meters(&self, flow: usize) -> Option<Meters> {
        self.world.parts().flows[flow].transport.meters()
    }

    /// All packets between their senders and their receivers, in no particular order, each with its flow and place. The caller pays for
    /// it: every call looks at each place for a packet.
    pub fn packets(&self) -> impl Iterator<Item = crate::PacketView> {
        self.world.parts().packets()
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("scenario", &self.scenario.name).field("now", &self.now()).finish()
    }
}

/// A whole run on one thread, whatever it records.
pub(crate) trait Stepped: Send {
    /// Handles everything up to this time, inclusive, and not beyond the end.
    fn advance(&mut self, to: Time, watch: &mut dyn Watch) -> Result<(), Stopped>;
    /// Runs on to the end.
    fn finish(self: Box<Self>, scenario: &Scenario, watch: &mut dyn Watch) -> Result<Run, Stopped>;
    /// What a caller sees of it.
    fn parts(&self) -> Parts<'_>;
    /// See [`Session::forget`].
    fn forget(&mut self);
    /// See [`Session::attach`].
    #[cfg(feature = "peers")]
    fn attach(&mut self, flow: usize, ends: [Box<dyn Peer>; 2]);
}

/// A run at its start, which records what is wanted.
pub(crate) fn begin(scenario: &Scenario, wanted: &Wanted) -> Box<dyn Stepped> {
    match wanted.capture {
        Some(capture) => {
            let mut world = build::world::<Recorded>(scenario, wanted, Share::ALL);
            world.record_packets(scenario, capture);
            Box::new(world)
        }
        None if wanted.figures => Box::new(build::world::<Whole>(scenario, wanted, Share::ALL)),
        None => Box::new(build::world::<NoFigures>(scenario, wanted, Share::ALL)),
    }
}

impl<S: Side<Uplink = Network<Segment>, Returns = ()> + Send> Stepped for World<S> {
    fn advance(&mut self, to: Time, watch: &mut dyn Watch) -> Result<(), Stopped> {
        let to = to.min(self.hosts.end);
        self.run_through(to, watch)?;
        self.hosts.now = self.hosts.now.max(to);
        Ok(())
    }

    fn finish(mut self: Box<Self>, scenario: &Scenario, watch: &mut dyn Watch) -> Result<Run, Stopped> {
        self.run_through(self.hosts.end, watch)?;
        World::finish(&mut self)?;
        let packets = self.recorded().map(Packets::Simulated);
        Ok(Run { result: outcome::collect(scenario, *self), packets })
    }

    fn parts(&self) -> Parts<'_> {
        let World { uplink, hosts, handled, .. } = self;
        Parts {
            network: uplink,
            flows: &hosts.flows,
            routes: &hosts.routes,
            pipes: &hosts.pipes,
            recorder: hosts.recorder.as_deref(),
            now: hosts.now,
            handled: *handled,
        }
    }

    fn forget(&mut self) {
        self.hosts.recorder.iter_mut().for_each(|recorder| recorder.forget());
    }

    #[cfg(feature = "peers")]
    fn attach(&mut self, flow: usize, ends: [Box<dyn Peer>; 2]) {
        self.hosts.flows[flow].transport = Transport::Peers(Box::new(Peers::new(ends)));
        self.hosts.record(|recorder, _| recorder.attach(flow));
    }
}
