//! The world and its loop: events, the network, the hosts.
//!
//! The sender hands a packet to the first hop of its route. Each hop's link sends it and its pipe delays it. After the last hop
//! it is at the receiver. Acknowledgments cross the hops of the way back, if there are any, and then the flow's return pipe,
//! which has the part of the base RTT that the hops do not account for.
use crate::budget::{Meter, SECOND, Stopped};
use crate::endpoint::Connection;
use crate::event::{Bound, EventKind, Events, Order, Popped, Turn};
use crate::host::{Flow, ReturnPipe, Routes};
use crate::segment::{Returning, Segment};
use crate::side::{Delivery, Departure, Receivers, Share, Side, Uplink as _};
use crate::{Unwatched, Watch};
use narrows_core::{Span, Time};
use narrows_world::network::{Due, Network};
use narrows_world::record::packets::PacketRecorder;
use prefetch::Prefetch;

mod applications;
pub(crate) mod edge;
pub(crate) mod handlers;
mod packets;
pub(crate) mod prefetch;

/// A run, or a part of a parallel run.
pub(crate) struct World<S: Side> {
    pub(crate) uplink: S::Uplink,
    pub(crate) hosts: Hosts<S>,
    pub(crate) spacing: Span,
    /// Record the disciplines' gauges?
    pub(crate) gauges: bool,
    pub(crate) handled: u64,
    /// Memory of the other parts of a parallel run, bytes.
    pub(crate) elsewhere: usize,
}

/// Senders, receivers and their applications; the network is between them.
pub(crate) struct Hosts<S: Side> {
    pub(crate) returns: S::Returns,
    pub(crate) now: Time,
    /// The present event, if the side keeps its order.
    pub(crate) present: Present,
    pub(crate) end: Time,
    pub(crate) warmup: Time,
    /// Which of the run's flows these are.
    pub(crate) share: Share,
    /// The number of flows with series, which are the first ones.
    pub(crate) tracked: usize,
    pub(crate) prefetch: Prefetch,
    pub(crate) events: Events,
    pub(crate) meter: Meter,
    /// Acknowledgments in the network, by `PacketId::index`; empty if none cross hops.
    pub(crate) acks: Vec<Returning>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) routes: Vec<Routes>,
    pub(crate) pipes: Vec<ReturnPipe>,
    /// The record of every packet, if the side has one.
    pub(crate) recorder: Option<Box<PacketRecorder>>,
}

/// What a side of a parallel run keeps of the present event.
#[derive(Clone, Copy, Default)]
pub(crate) struct Present {
    /// Its order among the events of this time.
    pub(crate) order: Order,
    /// The latest order of the events that have been handled at this time. It does not decrease where an event schedules one of the
    /// same time that comes before itself.
    pub(crate) reached: Order,
    /// It has sent a packet.
    pub(crate) has_sent: bool,
}

/// Events between two calls of the watch, in case samples are far apart.
const EVENTS_PER_TICK: u64 = 1 << 16;

impl<S: Side<Uplink = Network<Segment>>> World<S> {
    /// As [`Self::run_through`], with packets that leave the senders in that time, in order. Each comes in the turn of the event that
    /// sent it.
    pub(crate) fn run_with<'a>(
        &mut self,
        last: Time,
        departures: impl Iterator<Item = &'a Departure>,
        watch: &mut dyn Watch,
    ) -> Result<(), Stopped> {
        for departure in departures {
            // The packets of one event enter the network together.
            if departure.is_first {
                self.run_until(Bound::before(departure.meta.arrived, departure.order), watch)?;
            }
            self.hosts.take_over(&mut self.uplink, departure);
        }
        self.run_through(last, watch)
    }
}

impl World<Receivers> {
    /// As [`Self::run_through`], with packets that arrive in that time, in order.
    pub(crate) fn receive_through(&mut self, last: Time, deliveries: &[Delivery]) -> Result<(), Stopped> {
        for (n, delivery) in deliveries.iter().enumerate() {
            self.hosts.prefetch_receiver(deliveries, n);
            self.run_until(Bound::before(delivery.at, delivery.order), &mut Unwatched)?;
            self.hosts.take_delivery(&mut self.uplink, delivery);
        }
        self.run_through(last, &mut Unwatched)
    }
}

impl<S: Side> World<S> {
    /// Schedules the events that every run has.
    pub(crate) fn begin(&mut self) {
        // Without a warm-up the records are not restarted, so that events at the epoch count.
        if self.hosts.warmup > Time::ZERO {
            self.hosts.events.schedule(self.hosts.warmup, EventKind::WarmedUp, 0);
        }
        self.hosts.events.schedule(Time::ZERO + self.spacing, EventKind::Sample, 0);
        self.hosts.events.schedule(Time::ZERO + SECOND, EventKind::Second, 0);
    }

    /// Ends a run whose events have all been handled.
    pub(crate) fn finish(&mut self) -> Result<(), Stopped> {
        self.hosts.now = self.hosts.end;
        self.keep_to_budget()?;
        self.uplink.finish_records(self.hosts.end);
        Ok(())
    }

    /// Handles all events up to this time, inclusive.
    ///
    /// # Panics
    /// If time runs backwards, because every figure of such a run would be wrong.
    pub(crate) fn run_through(&mut self, last: Time, watch: &mut dyn Watch) -> Result<(), Stopped> {
        self.run_until(Bound::through(last), watch)
    }

    fn run_until(&mut self, until: Bound, watch: &mut dyn Watch) -> Result<(), Stopped> {
        // Events of packets are handled inline in this loop; the most frequent ones without a look at their kind. All others are calls,
        // so that they do not enlarge the loop.
        while let Some(event) = self.hosts.events.pop_through(until) {
            match event {
                Popped::FirstLink(turn) => {
                    self.turn_to(turn, EventKind::Link, 0, watch)?;
                    self.uplink.handle(&mut self.hosts, Due::Link, 0);
                }
                Popped::FirstAck(turn) => {
                    self.turn_to(turn, EventKind::Ack, 0, watch)?;
                    self.hosts.on_returning(&mut self.uplink, 0);
                }
                Popped::Other(turn, kind, index) => {
                    self.turn_to(turn, kind, index, watch)?;
                    self.on_event(kind, index, watch)?;
                }
            }
        }
        Ok(())
    }

    /// The clock is at an event's time.
    #[inline(always)]
    fn turn_to(&mut self, turn: Turn, kind: EventKind, index: usize, watch: &mut dyn Watch) -> Result<(), Stopped> {
        let (hosts, at) = (&mut self.hosts, turn.at());
        if at < hosts.now {
            runs_backwards(at, kind, index, hosts.now);
        }
        if S::KEEPS_ORDER {
            let reached = if at > hosts.now { Order::default() } else { hosts.present.reached };
            let order = turn.order();
            hosts.present = Present { order, reached: reached.max(order), has_sent: false };
        }
        hosts.now = at;
        self.handled += 1;
        if self.handled.is_multiple_of(EVENTS_PER_TICK) { self.tick(watch) } else { Ok(()) }
    }

    #[inline(always)]
    fn on_event(&mut self, kind: EventKind, index: usize, watch: &mut dyn Watch) -> Result<(), Stopped> {
        let World { uplink, hosts, .. } = self;
        match kind {
            EventKind::Link => uplink.handle(hosts, Due::Link, index),
            EventKind::Pipe => uplink.handle(hosts, Due::Pipe, index),
            EventKind::Ack => hosts.on_returning(uplink, index),
            EventKind::Retransmit => hosts.on_retransmit(uplink, index),
            EventKind::Pace => hosts.on_pace(uplink, index),
            EventKind::DelayedAck => hosts.on_delayed_ack(uplink, index),
            EventKind::App => hosts.on_application(uplink, index),
            EventKind::QueueTimer => uplink.handle(hosts, Due::Timer, index),
            EventKind::WarmedUp => self.on_warmed_up(),
            EventKind::Sample => {
                self.on_sample();
                self.tick(watch)?;
            }
            EventKind::Second => self.on_second()?,
        }
        Ok(())
    }

    #[inline(never)]
    fn tick(&mut self, watch: &mut dyn Watch) -> Result<(), Stopped> {
        self.keep_to_budget()?;
        if watch.tick(self.hosts.now) { Ok(()) } else { Err(Stopped::Cancelled) }
    }

    /// Starts the budget of the next second.
    #[inline(never)]
    fn on_second(&mut self) -> Result<(), Stopped> {
        self.keep_to_budget()?;
        self.hosts.meter.renew(self.handled);
        self.hosts.events.schedule(self.hosts.now + SECOND, EventKind::Second, 0);
        Ok(())
    }

    pub(crate) fn keep_to_budget(&self) -> Result<(), Stopped> {
        let hosts = &self.hosts;
        let rate = |(n, flow): (usize, &Flow)| Some((hosts.share.flow(n), flow.transport.meters()?.pacing?));
        let fastest = || hosts.flows.iter().enumerate().filter_map(rate).max_by_key(|&(_, rate)| rate);
        hosts.meter.check(hosts.now, self.handled, fastest)
    }

    #[inline(never)]
    fn on_sample(&mut self) {
        let hosts = &mut self.hosts;
        let (now, spacing) = (hosts.now, self.spacing);
        self.uplink.sample(now, spacing, self.gauges.then_some(hosts.tracked));
        for flow in hosts.flows.iter_mut().take(hosts.tracked) {
            flow.record.sample(now, spacing, flow.transport.meters());
            let records = flow.transport.records();
            if let Some(rate) = records.target_rate {
                flow.record.sample_target(now, rate);
            }
            if let Some(verdicts) = records.verdicts {
                verdicts.sample(now, spacing);
            }
        }
        hosts.events.schedule(now + spacing, EventKind::Sample, 0);
    }

    #[inline(never)]
    fn on_warmed_up(&mut self) {
        let now = self.hosts.now;
        self.uplink.restart_records(now);
        S::restart(&mut self.hosts.returns);
        for flow in &mut self.hosts.flows {
            flow.record.restart();
            flow.transport.reset_stats();
            if let Some(messages) = flow.transport.connection().and_then(Connection::messages) {
                messages.restart();
            }
            let records = flow.transport.records();
            if let Some(video) = records.video {
                video.restart(now);
            }
            if let Some(verdicts) = records.verdicts {
                verdicts.restart(now);
            }
        }
    }
}

/// A bug in the simulator: an event was scheduled in the past.
#[cold]
#[inline(never)]
fn runs_backwards(at: Time, kind: EventKind, index: usize, now: Time) -> ! {
    panic!(
        "time runs backwards: {kind:?} {index} of {} ns comes at {} ns; this is a fault of the simulator, please report it with the scenario",
        at.as_ns(),
        now.as_ns()
    );
}

/// Makes sure that an event comes at the wanted time or earlier; the handler of an earlier one schedules it again.
#[inline]
fn arm(events: &mut Events, armed: &mut Option<Time>, want: Option<Time>, kind: EventKind, index: usize) {
    if let Some(at) = want
        && armed.is_none_or(|armed| at < armed)
    {
        events.schedule(at, kind, index);
        *armed = Some(at);
    }
}
