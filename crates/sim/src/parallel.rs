//! Parallel simulation of one run on two threads: the senders on one, the network with the receivers on the other.
//!
//! The network affects a sender only after the delay of its return pipe. The senders may therefore be ahead of the network by the
//! shortest of these delays, the lookahead (Chandy and Misra, CACM 24(4), 1981). Both sides proceed in windows of a fraction of
//! the lookahead. The network handles the packets that were sent in the same window; the senders handle the packets that the
//! network returned a fixed number of windows earlier. The result does not depend on the speed of either thread. Because ties are
//! broken by side, it equals that of a single thread.
use crate::budget::Stopped;
use crate::host::InFlight;
use crate::side::{Departure, Receivers, Senders, Whole};
use crate::world::{Hosts, World};
use crate::{build, outcome};
use narrows_core::{Span, Time};
use narrows_scenario::{Scenario, Traffic, Transport};
use narrows_world::{Partition, Unwatched, Wanted, Watch};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Maximum number of windows by which the network may be behind the senders: enough to balance their work. More would only take
/// memory.
const BACKLOG: usize = 4;

/// Maximum number of windows in the shortest return pipe.
const MAX_WINDOWS: u64 = 64;

/// The division of a run into windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Windows {
    length: Span,
    /// The number of windows in the shortest return pipe.
    lag: usize,
}

impl Windows {
    /// The windows of a run, if it can be partitioned and is large enough.
    pub(crate) fn of(scenario: &Scenario, partition: Partition) -> Option<Windows> {
        let flows: u64 = scenario.flows.iter().map(|group| u64::from(group.count)).sum();
        if flows < partition.flows || !scenario.flows.iter().all(has_two_sides) {
            return None;
        }
        let delay = build::shortest_return(scenario)?;
        let packets: u64 = scenario.hops.iter().map(|hop| hop.rate.initial().bytes_in(delay).0 / 1500).sum();
        // At least two, so that both threads work at the same time.
        let lag = (packets / partition.packets).min(MAX_WINDOWS);
        (lag > 1 && delay.as_ns() >= lag).then(|| Windows { length: delay / lag, lag: lag as usize })
    }

    /// The end of each window.
    fn until(self, end: Time) -> impl Iterator<Item = Time> + Clone {
        (1..).map(move |n| Time::ZERO + self.length * n).take_while(move |&last| last < end).chain([end])
    }
}

/// Whether the two ends of a flow learn of each other only through packets.
fn has_two_sides(group: &narrows_scenario::Flow) -> bool {
    // The sender learns of a transfer's completion at once, and the receiver of the time at which a message was written.
    let is_connected = !matches!(group.transport, Transport::Udp(_));
    let waits = match group.traffic {
        // The ends of a call share the list of its packets.
        Traffic::Finite(_) | Traffic::Web(_) | Traffic::Video(_) => true,
        Traffic::Thin(_) => is_connected,
        _ => false,
    };
    // A detector's verdict is checked with data from both ends.
    let is_judged = group.controller.as_ref().is_some_and(|controller| controller.splits());
    !waits && !is_judged
}

/// One side's end of a channel: it sends the packets of each window, and gets empty buffers back.
struct Outlet<T> {
    full: SyncSender<Vec<T>>,
    empty: Receiver<Vec<T>>,
}

/// The other side's end of a channel.
struct Inlet<T> {
    full: Receiver<Vec<T>>,
    empty: SyncSender<Vec<T>>,
}

/// A channel from one side to the other for up to `windows` windows.
fn way<T>(windows: usize) -> (Outlet<T>, Inlet<T>) {
    let (full, filled) = sync_channel(windows);
    // Another buffer may be in the channel and one with each side, so there is always room to return one.
    let (empty, emptied) = sync_channel(windows + 2);
    (Outlet { full, empty: emptied }, Inlet { full: filled, empty })
}

impl<T> Outlet<T> {
    fn room(&self) -> Vec<T> {
        self.empty.try_recv().unwrap_or_default()
    }
}

/// The thread of the senders.
struct SenderThread {
    world: World<Senders>,
    back: Inlet<InFlight>,
    there: Outlet<Departure>,
}

/// The thread of the network and the receivers.
struct NetworkThread {
    world: World<Receivers>,
    there: Inlet<Departure>,
    back: Outlet<InFlight>,
}

/// Runs a scenario until the end, in these windows.
pub(crate) fn run(
    scenario: &Scenario,
    wanted: &Wanted,
    windows: Windows,
    watch: &mut dyn Watch,
) -> Result<World<Whole>, Stopped> {
    let (to_network, from_senders) = way(BACKLOG);
    // All windows in the lookahead may be on their way back at the same time as the backlog.
    let (to_senders, from_network) = way(windows.lag + BACKLOG);
    for _ in 0..windows.lag {
        to_senders.full.send(Vec::new()).map_err(|_| Stopped::Cancelled)?;
    }
    let world = build::world(scenario, wanted);
    let mut network = NetworkThread { world, there: from_senders, back: to_senders };
    let instants = windows.until(network.world.hosts.end);
    std::thread::scope(|scope| {
        let ahead = instants.clone();
        let senders = scope.spawn(move || {
            let world = build::world(scenario, wanted);
            let mut senders = SenderThread { world, back: from_network, there: to_network };
            for last in ahead {
                senders.go_on(last)?;
            }
            senders.world.keep_to_budget()?;
            Ok(senders)
        });
        let ran = instants.into_iter().try_for_each(|last| network.go_on(last, watch));
        let ran = ran.and_then(|()| network.world.finish());
        // If the network's side failed, its channel ends are dropped here, so that the senders do not wait for them.
        let network = ran.map(|()| network);
        let senders = senders.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (network, senders) {
            (Ok(network), Ok(senders)) => Ok(join(network, senders)),
            // The cancelled side only ended because the other side had failed.
            (Err(Stopped::Cancelled), Err(stopped)) | (Err(stopped), _) | (_, Err(stopped)) => Err(stopped),
        }
    })
}

impl SenderThread {
    /// Handles a window up to its end.
    fn go_on(&mut self, last: Time) -> Result<(), Stopped> {
        let world = &mut self.world;
        let hosts = &mut world.hosts;
        let mut back = self.back.full.recv().map_err(|_| Stopped::Cancelled)?;
        for one in back.drain(..) {
            let pipe = hosts.flows[one.flow as usize].place_of(one.what.subflow()).pipe as usize;
            hosts.enter_pipe(pipe, one);
        }
        // If the channel is full the buffer is freed.
        let _ = self.back.empty.try_send(back);
        // The network's side reports to the watch.
        world.run_through(last, &mut Unwatched)?;
        let gone = std::mem::replace(&mut world.uplink, self.there.room());
        self.there.full.send(gone).map_err(|_| Stopped::Cancelled)
    }
}

impl NetworkThread {
    /// Handles a window up to its end.
    fn go_on(&mut self, last: Time, watch: &mut dyn Watch) -> Result<(), Stopped> {
        let world = &mut self.world;
        let mut gone = self.there.full.recv().map_err(|_| Stopped::Cancelled)?;
        world.run_with(last, &gone, watch)?;
        gone.clear();
        let _ = self.there.empty.try_send(gone);
        let back = std::mem::replace(&mut world.hosts.returns, self.back.room());
        // This fails for the last windows, because the senders end before the network does.
        let _ = self.back.full.send(back);
        Ok(())
    }
}

/// Joins the two sides at the end of a run.
fn join(network: NetworkThread, senders: SenderThread) -> World<Whole> {
    let batches =
        held(&senders.back.full) + held(&network.back.empty) + held(&senders.there.empty) + held(&network.there.full);
    let (network, senders) = (network.world, senders.world);
    let elsewhere = batches + outcome::flow_bytes(&network) + outcome::bytes_but_flows(&senders);
    let handled = network.handled + senders.handled;
    let World { uplink, hosts, spacing, gauges, .. } = network;
    let Hosts { end, warmup, tracked, prefetch, events, meter, acks, routes, pipes, flows: receivers, .. } = hosts;
    let mut flows = senders.hosts.flows;
    for (flow, receiver) in flows.iter_mut().zip(receivers) {
        flow.record.join_arrivals(receiver.record);
    }
    let hosts = Hosts {
        returns: (),
        now: end,
        end,
        warmup,
        tracked,
        prefetch,
        events,
        meter,
        acks,
        flows,
        routes,
        pipes,
        recorder: None,
    };
    World { uplink, hosts, spacing, gauges, handled, elsewhere }
}

/// Memory of the buffers in a channel, bytes.
fn held<T>(way: &Receiver<Vec<T>>) -> usize {
    way.try_iter().map(|batch| batch.capacity() * size_of::<T>()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::NoTraces;

    fn windows(hop: &str, flow: &str) -> Option<Windows> {
        let text = format!(
            "duration = \"1s\"\n[[hop]]\nname = \"h\"\nqueue = \"fifo\"\n{hop}\n[[flow]]\nname = \"f\"\nroute = [\"h\"]\n\
             {flow}\n"
        );
        Windows::of(&Scenario::parse(&text, "parallel.toml", &NoTraces).expect("it is legal"), Partition::DEFAULT)
    }

    #[test]
    fn many_flows_far_apart_are_worth_two_threads() {
        let gigabit = "rate = \"1gbit\"";
        // 12 Gbit/s are a million full-sized packets a second.
        let found =
            windows("rate = \"12gbit\"\ndelay = \"4ms\"", "count = 1000\nrtt = \"10ms\"").expect("it is worth it");
        let lag = 6000 / Partition::DEFAULT.packets;
        assert_eq!(found, Windows { length: Span::ms(6) / lag, lag: lag as usize });
        assert!(windows(gigabit, "count = 1000\nrtt = \"20ms\"").is_some());
        assert_eq!(windows(gigabit, "count = 10\nrtt = \"20ms\""), None, "few flows");
        assert_eq!(windows("rate = \"1mbit\"", "count = 1000\nrtt = \"20ms\""), None, "a packet now and then");
        let all_in_the_hop = "rate = \"1gbit\"\ndelay = \"20ms\"";
        assert_eq!(windows(all_in_the_hop, "count = 1000\nrtt = \"20ms\""), None, "no delay on the way back");
        assert_eq!(
            windows(gigabit, "count = 1000\nrtt = \"20ms\"\ntraffic = \"web\""),
            None,
            "completion is known at once"
        );
        let thin = "count = 1000\nrtt = \"20ms\"\ntraffic = \"thin\"";
        assert_eq!(windows(gigabit, thin), None, "the time of a write is known at once");
        assert!(windows(gigabit, &format!("{thin}\ntransport = \"udp\"")).is_some());
    }

    #[test]
    fn windows_end_with_the_run() {
        let windows = Windows { length: Span::ms(3), lag: 2 };
        let ms = |ms| Time::ZERO + Span::ms(ms);
        assert_eq!(windows.until(ms(7)).collect::<Vec<_>>(), [ms(3), ms(6), ms(7)]);
        assert_eq!(windows.until(ms(6)).collect::<Vec<_>>(), [ms(3), ms(6)]);
    }
}
