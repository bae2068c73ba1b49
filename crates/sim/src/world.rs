//! The world and its loop: events, the network, the hosts.
//!
//! A packet's way: the sender hands it to the first hop of its route; a hop's link sends it, its pipe delays it; after
//! the last hop it is at the receiver. Acknowledgments cross the hops of the way back, if there are any, and then the
//! flow's own pipe, which holds what of the base RTT the hops do not account for.
use crate::Watch;
use crate::budget::{Meter, Stopped};
use crate::event::{Bound, Events, Kind};
use crate::host::{Flow, InFlight, ReturnPipe, Routes};
use crate::segment::{Returning, Segment};
use narrows_core::{PacketMeta, Span, Time};
use narrows_world::network::{Due, Network};
use prefetch::Prefetch;

mod applications;
mod edge;
mod ends;
pub(crate) mod prefetch;

/// What happens in a world: everything, or what one half of a run has of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// All there is.
    Both,
    /// Acknowledgments come to senders, their timers and applications act; what leaves them is gathered.
    Senders,
    /// Packets cross the hops and come to receivers; what goes back is gathered.
    Network,
}

/// A packet that leaves its sender; when, its metadata's arrival tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    meta: PacketMeta,
    segment: Segment,
    hop: u16,
}

/// Everything that a run consists of.
pub(crate) struct World {
    pub(crate) network: Network<Segment>,
    pub(crate) hosts: Hosts,
    pub(crate) spacing: Span,
    /// The disciplines' inner state is recorded.
    pub(crate) gauges: bool,
    pub(crate) handled: u64,
    /// Bytes that the other half of the run took.
    pub(crate) elsewhere: usize,
}

/// Senders, receivers and their applications; what lies between them is the network.
pub(crate) struct Hosts {
    pub(crate) side: Side,
    /// What has left the senders, where the network is elsewhere.
    pub(crate) departures: Vec<Departure>,
    /// What has gone back, where the senders are elsewhere.
    pub(crate) returns: Vec<InFlight>,
    pub(crate) now: Time,
    pub(crate) end: Time,
    pub(crate) warmup: Time,
    /// Flows with series of their own: the first ones.
    pub(crate) tracked: usize,
    pub(crate) prefetch: Prefetch,
    pub(crate) events: Events,
    pub(crate) meter: Meter,
    /// Acknowledgments by `PacketId::index`; empty unless some cross hops.
    pub(crate) acks: Vec<Returning>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) routes: Vec<Routes>,
    pub(crate) pipes: Vec<ReturnPipe>,
}

/// How long a budget lasts.
pub(crate) const SECOND: Span = Span::s(1);
/// Events between two looks at the watch, when samples are far apart.
const EVENTS_PER_TICK: u64 = 1 << 16;

impl World {
    /// Runs until the end.
    pub(crate) fn run(&mut self, watch: &mut dyn Watch) -> Result<(), Stopped> {
        self.begin();
        self.run_through(self.hosts.end, &[], watch)?;
        self.finish()
    }

    /// Schedules what comes in every run.
    pub(crate) fn begin(&mut self) {
        // Without a warm-up nothing starts again: what happens at the epoch counts.
        if self.hosts.warmup > Time::ZERO {
            self.hosts.events.schedule(self.hosts.warmup, Kind::WarmedUp, 0);
        }
        self.hosts.events.schedule(Time::ZERO + self.spacing, Kind::Sample, 0);
        self.hosts.events.schedule(Time::ZERO + SECOND, Kind::Second, 0);
    }

    /// The end has come, and nothing is left to happen before it.
    pub(crate) fn finish(&mut self) -> Result<(), Stopped> {
        self.hosts.now = self.hosts.end;
        self.keep_to_budget()?;
        self.network.finish_records(self.hosts.end);
        Ok(())
    }

    /// Handles what happens up to this time: all events, and departures from senders that are elsewhere. Of the same time
    /// the events come first, but for links that give way to what arrives.
    ///
    /// # Panics
    /// If time runs backwards: every figure of such a run would be wrong.
    pub(crate) fn run_through(
        &mut self,
        last: Time,
        departures: &[Departure],
        watch: &mut dyn Watch,
    ) -> Result<(), Stopped> {
        let mut departures = departures;
        loop {
            let until = match departures.first() {
                Some(first) => Bound::arrivals_of(first.meta.arrived),
                None => Bound::through(last),
            };
            while let Some((at, kind, index)) = self.hosts.events.pop_through(until) {
                if at < self.hosts.now {
                    runs_backwards(kind, index, at, self.hosts.now);
                }
                self.hosts.now = at;
                self.handled += 1;
                if self.handled.is_multiple_of(EVENTS_PER_TICK) {
                    self.tick(watch)?;
                }
                let World { network, hosts, .. } = self;
                // What packets bring is part of this loop; the rest is called, so that it does not push the loop's code apart.
                match kind {
                    Kind::Link => network.handle(Due::Link, index, at, hosts),
                    Kind::Pipe => network.handle(Due::Pipe, index, at, hosts),
                    Kind::Ack => hosts.on_returning(network, index),
                    Kind::Retransmit => hosts.on_retransmit(network, index),
                    Kind::Pace => hosts.on_pace(network, index),
                    Kind::DelayedAck => hosts.on_delayed_ack(network, index),
                    Kind::App => hosts.on_application(network, index),
                    Kind::QueueTimer => network.handle(Due::Timer, index, at, hosts),
                    Kind::WarmedUp => self.on_warmed_up(),
                    Kind::Sample => {
                        self.on_sample();
                        self.tick(watch)?;
                    }
                    Kind::Second => self.on_second()?,
                }
            }
            let Some((first, coming)) = departures.split_first() else { return Ok(()) };
            self.hosts.take_over(&mut self.network, first);
            departures = coming;
        }
    }

    #[inline(never)]
    fn tick(&mut self, watch: &mut dyn Watch) -> Result<(), Stopped> {
        self.keep_to_budget()?;
        if watch.tick(self.hosts.now) { Ok(()) } else { Err(Stopped::Cancelled) }
    }

    #[inline(never)]
    fn on_sample(&mut self) {
        let hosts = &mut self.hosts;
        let (now, spacing) = (hosts.now, self.spacing);
        self.network.sample(now, spacing, self.gauges.then_some(hosts.tracked));
        for flow in hosts.flows.iter_mut().take(hosts.tracked) {
            flow.record.sample(now, spacing, flow.transport.meters());
            if let Some(verdicts) = flow.transport.verdicts() {
                verdicts.sample(now, spacing);
            }
        }
        hosts.events.schedule(now + spacing, Kind::Sample, 0);
    }

    #[inline(never)]
    fn on_warmed_up(&mut self) {
        let now = self.hosts.now;
        self.network.restart_records(now);
        for flow in &mut self.hosts.flows {
            flow.record.restart();
            flow.transport.reset_stats();
            if let Some(verdicts) = flow.transport.verdicts() {
                verdicts.restart(now);
            }
        }
    }
}

/// A fault of the simulator: something asked to happen in the past.
#[cold]
#[inline(never)]
fn runs_backwards(kind: Kind, index: usize, at: Time, now: Time) -> ! {
    panic!(
        "time runs backwards: {kind:?} of number {index} was scheduled for {} ns, and it is {} ns already; this is a fault of \
         the simulator, please report it with the scenario",
        at.as_ns(),
        now.as_ns()
    );
}

/// Makes sure that an event comes at the time wanted or before; an earlier one is moved on when it comes.
#[inline]
fn arm(events: &mut Events, armed: &mut Option<Time>, want: Option<Time>, kind: Kind, index: usize) {
    if let Some(at) = want
        && armed.is_none_or(|armed| at < armed)
    {
        events.schedule(at, kind, index);
        *armed = Some(at);
    }
}
