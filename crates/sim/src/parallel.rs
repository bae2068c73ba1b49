//! Parallel simulation of one run: the network on one thread, the hosts on the others.
//!
//! The network affects a sender only after the delay of its return pipe. The senders may therefore be ahead of the network by the
//! shortest of these delays, the lookahead (Chandy and Misra, CACM 24(4), 1981). All threads proceed in windows of a fraction of the
//! lookahead. The network handles the packets that were sent in the same window; the hosts handle the packets that the network
//! handed over a fixed number of windows earlier. The result does not depend on the speed of any thread.
//!
//! With two threads the receivers are on the network's. With more they are on the threads of their senders, so that only the network is
//! serial; each such thread has its receivers in the past of its senders, by that number of windows. In either case the flows are
//! divided among the threads of hosts, and the network takes packets of the same time in the order of the events that sent
//! them. This order depends on the kind of event, on its pipe and on its flow ([`TieBreak`](crate::event::TieBreak)), not on the thread. So a
//! result has the same bytes on any number of threads, and on one.
mod channel;
mod merge;
mod threads;

use crate::budget::Stopped;
use crate::build;
use crate::host::Flow;
use crate::side::{NetworkAlone, NetworkAndReceivers, Share, Whole};
use crate::world::{Hosts, Present, World};
use channel::channel;
use narrows_core::{Span, Time};
use narrows_scenario::{Scenario, Traffic, Transport};
use narrows_world::{Partition, Wanted, Watch};
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;
use threads::{HostThread, NetworkPart, NetworkThread};

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

/// How a run is divided among threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    windows: Windows,
    /// Number of threads of hosts, beside that of the network.
    hosts: u32,
    /// The receivers are on these threads, too.
    has_receivers: bool,
}

impl Plan {
    /// The plan for a run that may use several threads; `None` if it takes one.
    pub(crate) fn of(scenario: &Scenario, wanted: &Wanted) -> Option<Plan> {
        let Partition { hosts: most, hosts_with_receivers, .. } = wanted.partition;
        let windows = Windows::of(scenario, wanted.partition)?;
        let threads = wanted.threads.saturating_sub(1).min(most);
        let has_receivers = threads >= hosts_with_receivers && scenario.flows.iter().all(receives_apart);
        let hosts = if has_receivers { threads } else { threads.min(hosts_with_receivers.saturating_sub(1)) };
        (hosts > 0).then_some(Plan { windows, hosts: hosts as u32, has_receivers })
    }
}

/// Whether the receivers of these flows can be apart from the network.
fn receives_apart(group: &narrows_scenario::Flow) -> bool {
    // The network must have answers that cross hops at once. A timer without a delay would come among arrivals of the same
    // instant, in an order that only a single thread knows.
    let has_delay = match &group.transport {
        Transport::Tcp(tcp) => tcp.delayed_ack > Span::ZERO,
        Transport::Quic(quic) => quic.max_ack_delay > Span::ZERO,
        Transport::Udp(_) => true,
    };
    group.back.is_empty() && has_delay
}

/// Runs a scenario until the end, on several threads.
pub(crate) fn run(
    scenario: &Scenario,
    wanted: &Wanted,
    plan: Plan,
    watch: &mut dyn Watch,
) -> Result<World<Whole>, Stopped> {
    if plan.has_receivers {
        run_parts::<NetworkAlone>(scenario, wanted, plan, watch)
    } else {
        run_parts::<NetworkAndReceivers>(scenario, wanted, plan, watch)
    }
}

/// Runs all parts until the end.
fn run_parts<N: NetworkPart>(
    scenario: &Scenario,
    wanted: &Wanted,
    Plan { windows, hosts, .. }: Plan,
    watch: &mut dyn Watch,
) -> Result<World<Whole>, Stopped> {
    std::thread::scope(|scope| {
        // If a thread fails or panics, its ends of the channels are dropped, so that the others do not wait for it.
        let mut network = NetworkThread::new(build::world::<N>(scenario, wanted, Share::ALL), hosts);
        let instants = windows.until(network.world.hosts.end);
        let mut start = |share| {
            let (there, from_hosts) = channel(BACKLOG);
            // All windows in the lookahead may be on their way back at the same time as the backlog.
            let (to_hosts, back) = channel(windows.lag + BACKLOG);
            network.connect(from_hosts, to_hosts);
            let instants = instants.clone();
            scope.spawn(move || {
                let mut hosts = HostThread::<N>::new(scenario, wanted, share, back, there);
                hosts.run(instants, windows.lag).map(|()| hosts)
            })
        };
        let started: Vec<_> = Share::all(hosts).map(&mut start).collect();
        let network = match network.run(instants, watch) {
            Ok(()) => Ok(network),
            Err(stopped) => {
                drop(network);
                Err(stopped)
            }
        };
        let join = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        let hosts = first_cause(started.into_iter().map(join).collect());
        match (network, hosts) {
            (Ok(network), Ok(hosts)) => Ok(self::join(network, hosts)),
            // The network only ended because a thread of hosts had failed.
            (Err(Stopped::Cancelled), Err(stopped)) | (Err(stopped), _) | (_, Err(stopped)) => Err(stopped),
        }
    })
}

/// All values, or the reason why there is not one: a thread that was cancelled may have ended because another one failed.
fn first_cause<T>(all: Vec<Result<T, Stopped>>) -> Result<Vec<T>, Stopped> {
    let (done, failed): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
    let mut causes: Vec<Stopped> = failed.into_iter().filter_map(Result::err).collect();
    causes.sort_by_key(|cause| matches!(cause, Stopped::Cancelled));
    match causes.into_iter().next() {
        Some(cause) => Err(cause),
        None => Ok(done.into_iter().flatten().collect()),
    }
}

/// Joins all parts at the end of a run.
fn join<N: NetworkPart>(mut network: NetworkThread<N>, hosts: Vec<HostThread<N>>) -> World<Whole> {
    let elsewhere = network.bytes() + hosts.iter().map(HostThread::bytes).sum::<usize>();
    let handled = network.world.handled + hosts.iter().map(HostThread::handled).sum::<u64>();
    let (senders, receivers): (Vec<_>, Vec<_>) = hosts.into_iter().map(HostThread::into_flows).unzip();
    let (mut flows, receivers) = (in_turn(senders), in_turn(receivers));
    N::join_arrivals(&mut network.world.hosts, &mut flows, receivers);
    let World { uplink, hosts, spacing, gauges, .. } = network.world;
    let Hosts { end, warmup, share, tracked, prefetch, events, meter, acks, routes, pipes, .. } = hosts;
    let hosts = Hosts {
        returns: (),
        now: end,
        present: Present::default(),
        end,
        warmup,
        share,
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

/// The flows of all parts, in their order.
fn in_turn(mut parts: Vec<Vec<Flow>>) -> Vec<Flow> {
    if let [_] = *parts {
        return parts.remove(0);
    }
    let mut flows = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    let mut next = 0;
    while let Some(flow) = parts[next].next() {
        flows.push(flow);
        next = flows.len() % parts.len();
    }
    flows
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
    fn receivers_run_with_their_senders_where_they_can() {
        let plan = |threads: usize, flow: &str| {
            let text = format!(
                "duration = \"1s\"\n[[hop]]\nname = \"h\"\nrate = \"1gbit\"\nqueue = \"fifo\"\n[[hop]]\nname = \"up\"\n\
                 rate = \"1gbit\"\nqueue = \"fifo\"\n[[flow]]\nname = \"f\"\ncount = 1000\nrtt = \"20ms\"\nroute = [\"h\"]\n{flow}\n"
            );
            let scenario = Scenario::parse(&text, "parallel.toml", &NoTraces).expect("it is legal");
            Plan::of(&scenario, &Wanted { threads, ..Wanted::RESULT }).map(|plan| (plan.hosts, plan.has_receivers))
        };
        let most = Partition::DEFAULT.hosts;
        assert_eq!(
            [1, 2, 3, 100].map(|threads| plan(threads, "")),
            [None, Some((1, false)), Some((2, true)), Some((most as u32, true))]
        );
        assert_eq!(plan(3, "back = [\"up\"]"), Some((1, false)), "answers cross a hop");
        assert_eq!(
            plan(3, "transport = { kind = \"tcp\", delayed_ack = \"0ms\" }"),
            Some((1, false)),
            "a timer without delay"
        );
    }

    #[test]
    fn windows_end_with_the_run() {
        let windows = Windows { length: Span::ms(3), lag: 2 };
        let ms = |ms| Time::ZERO + Span::ms(ms);
        assert_eq!(windows.until(ms(7)).collect::<Vec<_>>(), [ms(3), ms(6), ms(7)]);
        assert_eq!(windows.until(ms(6)).collect::<Vec<_>>(), [ms(3), ms(6)]);
    }
}
