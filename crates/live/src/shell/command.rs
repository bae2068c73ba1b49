//! Runs a command behind a bottleneck: in a namespace whose only way out leads through two hops, one for each direction.
//!
//! The inner device is in the command's own namespace. For root the outer device is in the namespace of the caller: the command
//! reaches this machine and whatever this machine forwards to, and a nested shell goes through both bottlenecks. Without root the
//! outer device is in a second new namespace, where the command reaches only a companion program.
use crate::LiveError;
use crate::bottleneck::result::{Named, collect};
use crate::bottleneck::{DEVICE_QUEUE, Direction, Running, drive};
use crate::packet_thread::flow_recorder::Entry;
use crate::packet_thread::flows::{Flows, MAX_SEEN};
use crate::packet_thread::frame_recorder::FrameRecorder;
use crate::packet_thread::pump::Outcome;
use crate::packet_thread::run_config::{RunConfig, carries_whole};
use crate::shell::launch::{Monitor, SIDES, Shell, ShellRun, Wish};
use narrows_core::{Bytes, Span, Time};
use narrows_host::Clock;
use narrows_host::EndpointStats;
use narrows_host::FlowKey;
use narrows_host::LONGEST_START;
use narrows_host::socket::Diag;
use narrows_host::{Block, Namespace, Privilege, Process, Route, Status, Tun, TunSpec};
use narrows_world::path::{self, Sampling};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The environment variables with the outer end's addresses.
pub const PEER: [&str; 2] = ["NARROWS_PEER", "NARROWS_PEER6"];
/// Interval between checks of the command and its sockets.
const TICK: Duration = Duration::from_millis(50);
/// Time that a command gets to end after it was asked to.
const GRACE: Span = Span::s(2);
/// Maximum time to wait for the command's last packets.
const LONGEST_WAIT: Span = Span::s(1);
/// Number of flows that a result names: those with the most payload. The others are summed.
const NAMED: usize = 64;

/// Runs a command behind its bottleneck until it ends. Needs the rights that [`gain`](narrows_host::gain) gets.
///
/// # Errors
/// When the system does not allow an operation, or the command does not exist. A command that fails is not an error; its status
/// says so.
pub fn shell(shell: Shell, privilege: Privilege, monitor: &mut dyn Monitor) -> Result<ShellRun, LiveError> {
    let Shell { mut scenario, mtu, mut launch, companion, capture } = shell;
    let outer = match privilege {
        Privilege::Root => Namespace::current()?,
        Privilege::UserNamespace => Namespace::create()?,
    };
    let inner = Namespace::create()?;
    let sizes = TunSpec { mtu, queue: DEVICE_QUEUE, ..TunSpec::default() };
    let (block, outer_device) = Block::take(&outer, &sizes)?;
    let devices = [inner_device(&inner, &block, sizes)?, outer_device];
    let peers = block.outer().map(|(address, _)| address);
    launch.argv = launch.argv.into_iter().map(|word| filled(word, peers[0])).collect();
    launch.env.extend(PEER.iter().zip(peers).map(|(name, address)| (OsString::from(name), address.to_string().into())));
    let stats = [(); 2].map(|()| Arc::new(EndpointStats::new(MAX_SEEN)));
    let mut frames =
        capture.map_or([None, None], |capture| FrameRecorder::both(&scenario, [&[0], &[1]], SIDES, capture).map(Some));
    let mut direction = |n: usize| Direction {
        hops: vec![n],
        routes: vec![path::Route { hops: vec![0], tail: Span::ZERO }],
        flows: Flows::seen(),
        endpoint_stats: Arc::clone(&stats[n]),
        quic: Vec::new(),
        videos: Vec::new(),
        whole: carries_whole(&scenario, &[n]),
        frames: frames[n].take(),
    };
    let directions = [direction(0), direction(1)];
    let clock = Clock::start();
    let spacing = scenario.record.spacing(scenario.duration);
    let run_config = RunConfig {
        scenario: &scenario,
        clock,
        sampling: Sampling {
            spacing,
            warmup: Time::ZERO,
            points: 0,
            gauges: scenario.record.gauges.then_some(scenario.record.flows as usize),
        },
        tracked: scenario.record.flows as usize,
        end: None,
        linger: Span::ZERO,
        mtu: Bytes(u64::from(mtu)),
        join: true,
    };
    let afterwards =
        scenario.hops.iter().fold(Span::ms(5), |sum, hop| sum + hop.delay.max() + hop.jitter).min(LONGEST_WAIT);
    let mut sockets = [Sockets::open(&inner, &stats[0])?, Sockets::open(&outer, &stats[1])?];
    let ((status, end), mut outcomes) = drive([&devices[0], &devices[1]], directions, run_config, |running| {
        let mut companion = companion.map(|launch| Process::spawn(&outer, &launch)).transpose()?;
        if let Some(companion) = &mut companion {
            let ended = companion.wait_until_serving(&mut sockets[1].diag, LONGEST_START)?;
            // Its output is not shown, so a failure (its port is taken) has to be told.
            if let Some(status) = ended.filter(|status| !status.success()) {
                return Err(LiveError::Companion(status));
            }
        }
        let command = Process::spawn(&inner, &launch)?;
        let status = attend(command, running, clock, &mut sockets, monitor)?;
        // The command's last packets are still in flight.
        std::thread::sleep(Duration::from_nanos(afterwards.as_ns()));
        Ok((status, clock.now()))
    })?;
    // A run has a minimum length, however short its command was.
    let end = end.max(Time::ZERO + spacing);
    scenario.duration = end.since(Time::ZERO);
    scenario.flows.iter_mut().for_each(|flow| flow.stop = end);
    let is_device_gone = outcomes.iter().any(|outcome| outcome.is_device_gone);
    let hops = [&*scenario.hops[0].name, &*scenario.hops[1].name];
    let program = scenario.flows.first().map_or("", |flow| &flow.name);
    let frames = FrameRecorder::finish(outcomes.each_mut().map(|outcome| outcome.frames.take()), end);
    let result =
        collect(&scenario, [&[0], &[1]], |outcomes| named(outcomes, &sockets, program, hops, spacing), outcomes, end);
    Ok(ShellRun { status, scenario, result, frames, is_device_gone })
}

/// Waits until the command has ended.
fn attend(
    mut command: Process,
    running: &Running<'_>,
    clock: Clock,
    sockets: &mut [Sockets; 2],
    monitor: &mut dyn Monitor,
) -> Result<Status, LiveError> {
    let mut asked = None;
    loop {
        if let Some(status) = command.wait_for(TICK) {
            return Ok(status);
        }
        let now = clock.now();
        if running.is_stopped() {
            // One direction has failed; its error is returned later.
            return Ok(command.kill());
        }
        let views = [running.view(0), running.view(1)];
        for (sockets, view) in sockets.iter_mut().zip(&views) {
            sockets.look(&view.flows)?;
        }
        match (monitor.look(now, views), asked) {
            (Wish::GoOn, None) => {}
            (Wish::Interrupt, None) => command.interrupt(),
            (Wish::End, None) => {
                command.interrupt();
                asked = Some(now);
            }
            (_, Some(since)) if now.since(since) > GRACE => return Ok(command.kill()),
            (_, Some(_)) => {}
        }
    }
}

/// The kernel's state of connections whose data go in one direction, for senders in this namespace.
struct Sockets {
    diag: Diag,
    endpoint_stats: Arc<EndpointStats>,
    /// The flows by number, each with the congestion control of its socket, if that was seen.
    flows: Vec<(FlowKey, Option<String>)>,
    places: HashMap<FlowKey, usize>,
}

impl Sockets {
    fn open(namespace: &Namespace, endpoint_stats: &Arc<EndpointStats>) -> Result<Sockets, LiveError> {
        let (flows, places) = (Vec::new(), HashMap::new());
        Ok(Sockets { diag: Diag::open(namespace)?, endpoint_stats: Arc::clone(endpoint_stats), flows, places })
    }

    fn look(&mut self, flows: &[FlowKey]) -> Result<(), LiveError> {
        self.follow(flows);
        for (key, sample) in self.diag.connections()? {
            let Some(&place) = self.places.get(&key) else { continue };
            self.flows[place].1.get_or_insert(sample.controller.clone());
            self.endpoint_stats.post_of(place, key, |report| {
                report.stats = sample.info.stats();
                // A connection with nothing in flight does not measure the path.
                if sample.info.inflight() > 0 {
                    report.rtts.extend(sample.info.srtt);
                    report.meters = Some(sample.info.meters(sample.is_paced()));
                }
            });
        }
        Ok(())
    }

    /// Follows changes of the flows' slots.
    fn follow(&mut self, flows: &[FlowKey]) {
        for (place, &key) in flows.iter().enumerate() {
            match self.flows.get_mut(place) {
                Some((known, _)) if *known == key => continue,
                Some(known) => {
                    let (gone, _) = std::mem::replace(known, (key, None));
                    // The flow may have another slot by now.
                    if self.places.get(&gone) == Some(&place) {
                        self.places.remove(&gone);
                    }
                }
                None => self.flows.push((key, None)),
            }
            self.places.insert(key, place);
        }
    }

    fn controller(&self, place: usize, key: &FlowKey) -> Option<&str> {
        let (known, controller) = self.flows.get(place)?;
        controller.as_deref().filter(|_| known == key)
    }
}

/// The flows that carried most, by the time of their first packet, and for each hop the sum of the others. Their names are those of
/// the program, the hop and the transport: the same in every run. `least` is the minimum lifetime of a flow.
fn named(
    outcomes: &mut [Outcome; 2],
    sockets: &[Sockets; 2],
    program: &str,
    hops: [&str; 2],
    least: Span,
) -> Vec<Named> {
    // A rate over almost no time, as of a single packet or burst, would be meaningless.
    let life = |entry: &Entry, first: Time| entry.last.since(first).max(least);
    let mut all: Vec<(u64, Time, Named)> = Vec::new();
    for (direction, (outcome, sockets)) in outcomes.iter().zip(sockets).enumerate() {
        for ((number, entry), key) in outcome.flow_recorder.entries().iter().enumerate().zip(outcome.flows.keys()) {
            let Some(first) = entry.first.filter(|_| entry.record.payload() > 0) else { continue };
            let controller = sockets.controller(number, key).unwrap_or("none").to_owned();
            let named = Named {
                name: format!("{program}.{}.{}", hops[direction], key.protocol_name()),
                controller,
                direction,
                number,
                life: life(entry, first),
                stop: None,
                is_programs: true,
                traffic: None,
                five_tuple: Some(key.to_string()),
            };
            all.push((entry.record.payload(), first, named));
        }
    }
    all.sort_by_key(|(payload, ..)| std::cmp::Reverse(*payload));
    all.truncate(NAMED);
    all.sort_by_key(|(_, first, _)| *first);
    let mut named: Vec<Named> = all.into_iter().map(|(.., named)| named).collect();
    number_groups(&mut named);
    for (direction, (outcome, hop)) in outcomes.iter_mut().zip(hops).enumerate() {
        let places: Vec<usize> =
            named.iter().filter(|flow| flow.direction == direction).map(|flow| flow.number).collect();
        let Some(number) = outcome.flow_recorder.keep(&places) else { continue };
        let entry = &outcome.flow_recorder.entries()[number];
        let (name, controller) = (format!("others {hop}"), "various".to_owned());
        let life = entry.first.map_or(least, |first| life(entry, first));
        let (stop, traffic, five_tuple) = (None, None, None);
        named.push(Named { name, controller, direction, number, life, stop, is_programs: false, traffic, five_tuple });
    }
    named
}

/// Numbers the flows that share a name, as those of a scenario's group: `app.up.tcp.0`.
fn number_groups(flows: &mut [Named]) {
    let mut groups: HashMap<String, (usize, usize)> = HashMap::new();
    flows.iter().for_each(|flow| groups.entry(flow.name.clone()).or_default().0 += 1);
    for flow in flows {
        let Some((_, next)) = groups.get_mut(&flow.name).filter(|(count, _)| *count > 1) else { continue };
        let _ = write!(flow.name, ".{next}");
        *next += 1;
    }
}

/// Replaces `{peer}` in a word of the command by the outer end's address. A word that is not UTF-8 stays as it is.
fn filled(word: OsString, peer: IpAddr) -> OsString {
    match word.into_string() {
        Ok(text) => text.replace("{peer}", &peer.to_string()).into(),
        Err(word) => word,
    }
}

/// The device on the command's side, with the default route.
fn inner_device(namespace: &Namespace, block: &Block, sizes: TunSpec) -> Result<Tun, LiveError> {
    let everywhere = |(address, _): (IpAddr, u8)| Route {
        to: Some(match address {
            IpAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED.into(), 0),
            IpAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED.into(), 0),
        }),
        via: None,
        src: None,
    };
    let addresses = block.inner();
    let spec = TunSpec { addresses: addresses.to_vec(), routes: addresses.map(everywhere).to_vec(), ..sizes };
    Ok(Tun::create(namespace, &spec)?)
}
