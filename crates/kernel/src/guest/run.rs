//! A scenario between kernel sockets, through the kernel's own queues.
use super::gauges;
use super::network::{self, Namespaces};
use super::record::{Counters, Datagrams, FlowFigures, HopRecord, datagrams};
use super::taps::Taps;
use crate::message::Recorded;
use crate::network::{Network, delay_of, out_of, policer_of};
use crate::sightings::Sighting;
use narrows_core::registry::Registered as _;
use narrows_core::{Rng, Span, Time};
use narrows_host::endpoint::{self, EndpointPair, Endpoints};
use narrows_host::layout::{FlowEnds, Layout};
use narrows_host::priority::{Work, keep_times};
use narrows_host::programs::Programs;
use narrows_host::{Clock, EndpointStats, HostError, Namespace, Qdisc};
use narrows_results::summary::{Cost, Summary};
use narrows_results::{Routes, RunResult};
use narrows_scenario::{Flow, Scenario};
use narrows_world::record::MANY_FLOWS;
use narrows_world::{WorldError, build};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The queues are asked for their length once in each interval of this length, at a random moment of it. At equal distances they would be asked at the same
/// points of what traffic that is sent at equal distances makes of them.
const SAMPLE: Span = Span::ms(5);
/// The receive buffer that `transport = "tcp"` has unless it says otherwise: `tcp_rmem` of the guest.
const RECEIVE_BUFFERS: &str = "4096 16777216 16777216";
/// Room for 4 MB from the start, so that a flow with data to send never waits for its buffer. Linux's own 16 KiB grow with the window, and an
/// application is woken only when a third of the buffer is empty.
const SEND_BUFFERS: &str = "4096 4194304 268435456";
/// A guest's processor is shared with the network: receivers that wake for every packet would double the time that a packet costs.
const READ_AT_LEAST: u32 = 32 * 1024;
/// Between making the network and the start of the scenario: what the kernel does later about new devices is done then.
const SETTLE: Duration = Duration::from_millis(100);
/// How often programs that may still run after the end are looked after.
const AFTERWARDS: Duration = Duration::from_millis(20);

/// The progress of a run.
pub(super) enum Event {
    /// It has come this far.
    At(Time),
    /// A flow could not do what the scenario says.
    Trouble(String),
    /// By how much the end was late: the guest's processor had too much to do.
    Late(Span),
    /// Packets that came by.
    Seen(Vec<Sighting>),
    /// The number of packets that the limit left out.
    Missed(u64),
}

/// Packets of a message.
const CHUNK: usize = 4096;

/// Runs a scenario to its end. `tell` gets its progress, and ends it with `false`.
pub(super) fn run(
    scenario: &Scenario,
    recorded: Option<Recorded>,
    mut tell: impl FnMut(Event) -> bool,
) -> Result<RunResult, WorldError> {
    let layout = Layout::new(scenario).map_err(failed)?;
    let network = crate::network::network(scenario, &layout).map_err(WorldError::Refused)?;
    let namespaces = network::make(&network)?;
    let pair = |flow: &FlowEnds| EndpointPair {
        sender_namespace: flow.side,
        receiver_namespace: 1 - flow.side,
        sender: flow.sender,
        receiver: flow.receiver,
    };
    let pairs: Vec<EndpointPair> = layout.flows.iter().map(pair).collect();
    let between = endpoint::Plan {
        qlog: None,
        scenario,
        namespaces: &namespaces.sides,
        pairs: &pairs,
        urgent: true,
        receive_buffers: RECEIVE_BUFFERS,
        send_buffers: SEND_BUFFERS,
        read_at_least: READ_AT_LEAST,
    };
    let endpoints = Endpoints::prepare(&between).map_err(failed)?;
    let stats = Arc::new(EndpointStats::new(layout.flows.len()));
    let mut records = Records::new(scenario, &network, &namespaces)?;
    keep_times(Work::Ordinary);
    first_connection(&namespaces)?;
    let mut programs = Programs::prepare(&between).map_err(failed)?;
    thread::sleep(SETTLE);
    let open = |recorded| Taps::open(recorded, (&network, &layout), &namespaces).map_err(failed);
    records.taps = recorded.map(open).transpose()?;
    let clock = Clock::start();
    records.taps.iter_mut().for_each(|taps| taps.start(&clock));
    let running = endpoints.start(clock, Arc::clone(&stats)).map_err(failed)?;
    let mut goes_on = |now| tell(Event::At(now)) && running.is_whole();
    let outcome = attend(&clock, &mut records, (&network, &namespaces), &stats, &mut programs, &mut goes_on);
    let late = clock.now().since(Time::ZERO + scenario.duration);
    running.stop().map_err(failed)?;
    outcome?;
    tell(Event::Late(late));
    let seen = records.taps.take().map(Taps::finish).transpose().map_err(failed)?;
    let (result, troubles) = records.finish(&layout, &namespaces, &stats)?;
    for trouble in troubles {
        tell(Event::Trouble(trouble));
    }
    // Nothing is measured any more.
    while !programs.have_finished() {
        thread::sleep(AFTERWARDS);
        programs.attend(clock.now(), &stats).map_err(failed)?;
        tell(Event::At(clock.now()));
    }
    programs.finish();
    if let Some((sightings, missed, lost)) = seen {
        if lost > 0 {
            tell(Event::Trouble(format!("packets: {lost} came by too fast to be recorded")));
        }
        tell(Event::Missed(missed));
        let mut rest = sightings.into_iter().peekable();
        while rest.peek().is_some() {
            tell(Event::Seen(rest.by_ref().take(CHUNK).collect()));
        }
    }
    Ok(result)
}

/// Makes a connection within the router and ends it. The SYN of a kernel's first connection leaves 12 to 28 ms late (it probably fills the table
/// for the choice of ports with random numbers first), and that would be the scenario's first flow.
fn first_connection(namespaces: &Namespaces) -> Result<(), WorldError> {
    let connect = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut sender = TcpStream::connect(listener.local_addr()?)?;
        let (mut receiver, _) = listener.accept()?;
        sender.write_all(&[0])?;
        receiver.read_exact(&mut [0])
    };
    let outcome = namespaces.router.run(connect).map_err(failed)?;
    outcome.map_err(|error| WorldError::Failed(format!("cannot make a connection in the guest: {error}")))
}

fn failed(error: HostError) -> WorldError {
    match error {
        HostError::NotAllowed(text) | HostError::Unsupported(text) => WorldError::Refused(text),
        other => WorldError::Failed(other.to_string()),
    }
}

/// The times of a run, in order: samples of the queues, points of the series, changes of the network, the end of the warm-up.
fn attend(
    clock: &Clock,
    records: &mut Records<'_>,
    (network, namespaces): (&Network, &Namespaces),
    stats: &EndpointStats,
    programs: &mut Programs<'_>,
    goes_on: &mut dyn FnMut(Time) -> bool,
) -> Result<(), WorldError> {
    let scenario = records.scenario;
    let (end, warmup) = (Time::ZERO + scenario.duration, Time::ZERO + scenario.warmup);
    let spacing = scenario.record.spacing(scenario.duration);
    let told = (scenario.duration / 100).max(Span::ms(100));
    let mut changes = network.changes.iter().peekable();
    let mut rng = Rng::stream(scenario.seed, "lab samples");
    let mut within = || Span::ns(rng.below(SAMPLE.as_ns()));
    let mut interval = Time::ZERO;
    let (mut sample, mut point, mut tell) = (interval + within(), Time::ZERO + spacing, Time::ZERO + told);
    let mut warm = scenario.warmup == Span::ZERO;
    loop {
        let change = changes.peek().map(|change| change.0);
        let warming = (!warm).then_some(warmup);
        let next =
            [Some(sample), Some(point), change, warming, programs.due()].into_iter().flatten().fold(end, Time::min);
        sleep_until(clock, next);
        programs.attend(next, stats).map_err(failed)?;
        if change == Some(next)
            && let Some((_, text)) = changes.next()
        {
            network::batch(&namespaces.router, "tc", text)?;
        }
        let is_end = next == end;
        if next == point || warming == Some(next) || is_end {
            programs.look(stats).map_err(failed)?;
        }
        if next == sample || next == point || warming == Some(next) || is_end {
            records.read()?;
        }
        if next == sample {
            records.sample(interval);
        }
        while sample <= next {
            interval += SAMPLE;
            sample = interval + within();
        }
        if next == point {
            records.point(stats, next, spacing)?;
            point += spacing;
        }
        if warming == Some(next) {
            records.restart(stats, next, namespaces)?;
            warm = true;
        }
        if is_end {
            return Ok(());
        }
        if next >= tell {
            tell = next + told;
            if !goes_on(next) {
                return Ok(());
            }
        }
    }
}

fn sleep_until(clock: &Clock, at: Time) {
    let now = clock.now();
    if at > now {
        thread::sleep(Duration::from_nanos(at.since(now).as_ns()));
    }
}

/// A hop that a flow crosses.
struct WatchedHop {
    /// Its number in the scenario.
    number: usize,
    queue: Qdisc,
    /// What loses packets after the queue, if anything does.
    loss: Option<Qdisc>,
    /// What polices packets in front of it.
    policer: Option<Qdisc>,
    record: HopRecord,
}

impl WatchedHop {
    fn open(
        scenario: &Scenario,
        number: usize,
        router: &Namespace,
        device: &str,
        points: usize,
    ) -> Result<Self, HostError> {
        let hop = &scenario.hops[number];
        // `htb` at the root counts for all its classes.
        let queue = Qdisc::open(router, device, if hop.classes.is_empty() { (1, 1) } else { Qdisc::ROOT })?;
        let loss = hop.is_lossy().then(|| Qdisc::open(router, &delay_of(device), Qdisc::ROOT)).transpose()?;
        let policer = || Qdisc::open(router, &out_of(&policer_of(device)), Qdisc::INGRESS);
        let policer = hop.police.is_some().then(policer).transpose()?;
        Ok(WatchedHop { number, queue, loss, policer, record: HopRecord::new(points) })
    }

    fn read(&mut self) -> Result<(), HostError> {
        let drops = |qdisc: &mut Option<Qdisc>| {
            Ok::<u32, HostError>(qdisc.as_mut().map(Qdisc::stats).transpose()?.map_or(0, |stats| stats.drops))
        };
        let (lost, policed) = (drops(&mut self.loss)?, drops(&mut self.policer)?);
        self.record.read(Counters { queue: self.queue.stats()?, lost, policed });
        Ok(())
    }
}

/// The records of all hops and flows.
struct Records<'a> {
    scenario: &'a Scenario,
    /// Each hop that a flow crosses.
    hops: Vec<WatchedHop>,
    flows: Vec<FlowFigures>,
    marks_before: Vec<u64>,
    /// What programs had received at the end of the warm-up, by flow.
    datagrams_before: Vec<Datagrams>,
    /// Where packets are seen, if they are recorded.
    taps: Option<Taps>,
}

impl<'a> Records<'a> {
    fn new(scenario: &'a Scenario, network: &Network, namespaces: &Namespaces) -> Result<Records<'a>, WorldError> {
        let spacing = scenario.record.spacing(scenario.duration);
        let points = (scenario.duration.as_ns() / spacing.as_ns().max(1)) as usize + 1;
        let mut hops = Vec::new();
        for (number, device) in network.devices.iter().enumerate() {
            let Some(device) = device else { continue };
            hops.push(WatchedHop::open(scenario, number, &namespaces.router, device, points).map_err(failed)?);
        }
        let count: usize = scenario.flows.iter().map(|group| group.count as usize).sum();
        let digits = if count > MANY_FLOWS { 1 } else { 3 };
        let groups = scenario.flows.iter().flat_map(|group| (0..group.count).map(move |_| group));
        let has_warmup = scenario.warmup > Span::ZERO;
        let flow = |(number, group): (usize, &Flow)| {
            let points = (number < scenario.record.flows as usize).then_some(points);
            let splits = group.controller.as_ref().is_some_and(|controller| controller.splits());
            let truth = splits.then(|| build::is_fair(scenario, &group.route, group.dscp));
            FlowFigures::new(group, points, digits, has_warmup).judged_by(truth)
        };
        let flows = groups.enumerate().map(flow).collect();
        let marks_before = vec![0; hops.len()];
        let datagrams_before = vec![Datagrams::default(); count];
        Ok(Records { scenario, hops, flows, marks_before, datagrams_before, taps: None })
    }

    fn read(&mut self) -> Result<(), WorldError> {
        self.hops.iter_mut().try_for_each(WatchedHop::read).map_err(failed)?;
        self.taps.as_mut().map_or(Ok(()), Taps::read).map_err(failed)
    }

    fn sample(&mut self, interval: Time) {
        self.hops.iter_mut().for_each(|hop| hop.record.sample(interval));
    }

    fn point(&mut self, stats: &EndpointStats, now: Time, spacing: Span) -> Result<(), WorldError> {
        for WatchedHop { number, queue, record, .. } in &mut self.hops {
            record.point(now, spacing);
            let hop = &self.scenario.hops[*number];
            if self.scenario.record.gauges && hop.classes.is_empty() {
                let own = queue.own_stats().map_err(failed)?;
                record.gauges(now, hop.queue.name(), &own);
            }
        }
        for (number, flow) in self.flows.iter_mut().enumerate() {
            let meters = flow.take(stats, number);
            flow.point(meters, now, spacing);
        }
        Ok(())
    }

    fn restart(&mut self, stats: &EndpointStats, now: Time, namespaces: &Namespaces) -> Result<(), WorldError> {
        for (hop, before) in self.hops.iter_mut().zip(&mut self.marks_before) {
            hop.record.restart(now);
            *before = marks(self.scenario, hop.number, &mut hop.queue)?;
        }
        for (number, flow) in self.flows.iter_mut().enumerate() {
            flow.take(stats, number);
            flow.restart(now);
        }
        self.datagrams_before = received(self.scenario, namespaces)?;
        Ok(())
    }

    /// The result, and what went wrong with single flows.
    fn finish(
        self,
        layout: &Layout,
        namespaces: &Namespaces,
        stats: &EndpointStats,
    ) -> Result<(RunResult, Vec<String>), WorldError> {
        let Records { scenario, hops, mut flows, marks_before, datagrams_before, taps: _ } = self;
        let datagrams = received(scenario, namespaces)?;
        for (number, (flow, (now, before))) in flows.iter_mut().zip(datagrams.iter().zip(&datagrams_before)).enumerate()
        {
            flow.take(stats, number);
            flow.datagrams(now.since(before));
        }
        let (warmup, end) = (Time::ZERO + scenario.warmup, Time::ZERO + scenario.duration);
        let (mut series, mut cdfs, mut packets) = (Vec::new(), Vec::new(), 0);
        let mut hop_summaries = Vec::new();
        for (WatchedHop { number, mut queue, mut record, .. }, before) in hops.into_iter().zip(marks_before) {
            let hop = &scenario.hops[number];
            let marks = marks(scenario, number, &mut queue)? - before;
            hop_summaries.push(record.summary(hop, warmup, end, marks));
            packets += record.sent_ever();
            series.extend(record.series(&format!("hop:{}", hop.name)));
        }
        let (mut flow_summaries, mut troubles) = (Vec::new(), Vec::new());
        for ((name, ends), figures) in scenario.flow_names().into_iter().zip(&layout.flows).zip(flows) {
            let group = &scenario.flows[ends.group];
            let controller = build::controller_name(group);
            let life = ends.stop.min(end).since(ends.start.max(warmup));
            troubles.extend(figures.trouble(&name));
            let (summary, of_flow, curves) = figures.finish(name, &controller, (life, ends.stop), end);
            flow_summaries.push(summary);
            cdfs.extend(of_flow);
            series.extend(curves);
        }
        let summary = Summary {
            name: scenario.name.clone(),
            seed: scenario.seed,
            duration_s: scenario.duration.as_secs_f64(),
            warmup_s: scenario.warmup.as_secs_f64(),
            hops: hop_summaries,
            fairness: Routes::of(Some(scenario)).fairness(&flow_summaries),
            flows: flow_summaries,
            world: None,
            timing: None,
            setup: None,
            cost: Cost { packets, ..Cost::default() },
        };
        Ok((RunResult { summary, series, cdfs }, troubles))
    }
}

/// The packets that a hop's discipline has marked so far.
fn marks(scenario: &Scenario, hop: usize, qdisc: &mut Qdisc) -> Result<u64, WorldError> {
    let hop = &scenario.hops[hop];
    if hop.classes.is_empty() {
        Ok(gauges::marks(hop.queue.name(), &qdisc.own_stats().map_err(failed)?))
    } else {
        Ok(0)
    }
}

/// The datagrams that programs have received so far, by flow.
fn received(scenario: &Scenario, namespaces: &Namespaces) -> Result<Vec<Datagrams>, WorldError> {
    let count = scenario.flows.iter().map(|group| group.count as usize).sum();
    let mut all = vec![Datagrams::default(); count];
    if scenario.flows.iter().any(|flow| flow.command.is_some()) {
        for side in &namespaces.sides {
            for (number, of_flow) in datagrams(&network::counters(side)?) {
                if let Some(slot) = all.get_mut(number) {
                    *slot = of_flow;
                }
            }
        }
    }
    Ok(all)
}
