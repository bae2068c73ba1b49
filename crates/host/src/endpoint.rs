//! The endpoints of a scenario's flows: kernel sockets in two network namespaces.
//!
//! The same [`Application`](narrows_world::application::Application) as in the simulator decides from the same random numbers
//! what is sent and when. The kernel's transport carries it. Both endpoints of every flow are in this process: a transfer is
//! complete when the receiver has read its last byte, and the sender learns of it at once.
//!
//! - One thread sends and one receives, for any number of flows; QUIC's connections have a third one (`quic`), and video calls a
//!   fourth (`video`). The sockets are made before that, in their namespaces.
//! - A flow that uses a feature kernel sockets lack (`spec`) is refused before anything runs.
//! - Linux has one ECN setting per namespace and reads it when a connection begins. It is therefore changed just before a
//!   connection that needs the other value (`sender`), and flows may differ.
//! - A connection has little unsent data (`TCP_NOTSENT_LOWAT`). When an application stops, this data is still sent, which the
//!   simulator does not do. It is at most what the narrowest link sends in 20 ms, or 96 KiB if that is more.
//! - Datagrams are sent at their exact times. If the thread was late, those that are due leave in a burst.
mod messages;
mod quic;
mod receiver;
mod sender;
mod sockets;
mod spec;
mod video;

use crate::priority::{Work, keep_times};
use crate::socket::poll::{Poll, Waker};
use crate::{Clock, EndpointStats, FIRST_PORT, HostError, Namespace, initial_window};
use messages::MessageRecords;
use narrows_core::Time;
use narrows_scenario::Scenario;
use quic::{QuicFlow, QuicSpec};
use receiver::{Inlet, Receivers, Shared};
use sender::{Connection, Datagrams, EcnSwitch, Flow, Outlet, Senders, Stage};
use sockets::Making;
use spec::{Carrier, Spec};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use video::{VideoFlow, Videos};

/// The input for making the endpoints of a scenario's flows.
pub struct Plan<'a> {
    /// The scenario whose flows these are.
    pub scenario: &'a Scenario,
    /// The namespaces of the hosts.
    pub namespaces: &'a [Namespace],
    /// Each single flow's endpoints, by its number.
    pub pairs: &'a [EndpointPair],
    /// Whether the endpoints' threads run before all ordinary ones. A link of unlimited rate keeps them busy, and urgent threads would
    /// then occupy a CPU.
    pub urgent: bool,
    /// Receive buffers of connections: smallest, default and largest, bytes (`net.ipv4.tcp_rmem`).
    pub receive_buffers: &'a str,
    /// Send buffers of connections, in the same way (`net.ipv4.tcp_wmem`).
    pub send_buffers: &'a str,
    /// Payload that a bulk connection's receiver waits for before it reads, bytes (`SO_RCVLOWAT`). With one byte it wakes for every
    /// packet.
    pub read_at_least: u32,
    /// For a qlog of each QUIC flow's sender.
    pub qlog: Option<&'a narrows_world::QlogFolder>,
}

/// Checks that kernel sockets can carry a scenario's flows, before anything is made.
///
/// # Errors
/// Names the flow, the feature that sockets lack, and what they offer.
pub fn check(scenario: &Scenario) -> Result<(), HostError> {
    spec::flows(scenario).map(drop)
}

/// The namespaces and addresses of a flow's endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointPair {
    /// The sender's namespace, as an index into the plan's.
    pub sender_namespace: usize,
    /// The receiver's namespace.
    pub receiver_namespace: usize,
    /// The sender's address.
    pub sender: IpAddr,
    /// The receiver's address, of the same family.
    pub receiver: IpAddr,
}

/// Linux's own receive buffers, with a largest one that limits no window of a scenario.
pub const RECEIVE_BUFFERS: &str = "4096 131072 268435456";

/// Linux's own send buffers, with a largest one that limits no window of a scenario.
pub const SEND_BUFFERS: &str = "4096 16384 268435456";

/// The endpoints of all flows, made and not yet started.
pub struct Endpoints {
    senders: Senders,
    receivers: Receivers,
    quic: Vec<QuicFlow>,
    videos: Option<Videos>,
    messages: MessageRecords,
    urgent: bool,
}

/// The running endpoints of all flows.
pub struct Running {
    shared: Arc<Shared>,
    wakers: Vec<Waker>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Endpoints {
    /// Makes all sockets and sets all their options.
    ///
    /// # Errors
    /// When the scenario uses a feature that kernel sockets lack, or the system does not allow an operation.
    pub fn prepare(plan: &Plan<'_>) -> Result<Endpoints, HostError> {
        let mut specs = spec::flows(plan.scenario)?;
        assert_eq!(specs.len(), plan.pairs.len(), "a pair for each flow");
        allow_files(&specs)?;
        let (mut outlets, mut inlets): (Vec<_>, Vec<_>) = specs.iter().map(|_| (None, None)).unzip();
        let (mut quic_senders, mut quic_receivers) = (BTreeMap::new(), BTreeMap::new());
        let (mut video_senders, mut video_receivers) = (BTreeMap::new(), BTreeMap::new());
        let mut ecn = Vec::with_capacity(plan.namespaces.len());
        for (place, namespace) in plan.namespaces.iter().enumerate() {
            let made = namespace.run(|| make_sockets(place, plan, &specs))??;
            ecn.push(made.switch);
            made.outlets.into_iter().for_each(|(number, outlet)| outlets[number] = Some(outlet));
            made.inlets.into_iter().for_each(|(number, inlet)| inlets[number] = Some(inlet));
            quic_senders.extend(made.quic_senders);
            quic_receivers.extend(made.quic_receivers);
            video_senders.extend(made.video_senders);
            video_receivers.extend(made.video_receivers);
        }
        let (mut quic, names) = (Vec::new(), plan.scenario.flow_names());
        for (number, spec) in specs.iter().enumerate() {
            let Carrier::Quic(of_flow) = &spec.carrier else { continue };
            let sockets = quic_senders.remove(&number).zip(quic_receivers.remove(&number));
            let (senders, receiver) = sockets.expect("every pair is in a namespace of the plan");
            quic.push(QuicFlow {
                number,
                application: spec.application.clone(),
                start: spec.start,
                stop: spec.stop,
                spec: QuicSpec::clone(of_flow),
                qlog: plan.qlog.map(|folder| (folder.path.join(format!("{}.sqlog", names[number])), folder.replace)),
                seed: plan.scenario.seed.wrapping_add(number as u64),
                to: SocketAddr::new(plan.pairs[number].receiver, FIRST_PORT + number as u16),
                senders,
                receiver,
            });
        }
        let mut videos = Vec::new();
        for (number, spec) in specs.iter_mut().enumerate() {
            let Some((call, header)) = spec.call.take() else { continue };
            let sockets = video_senders.remove(&number).zip(video_receivers.remove(&number));
            let (sender, receiver) = sockets.expect("every pair is in a namespace of the plan");
            videos.push(VideoFlow {
                number,
                application: spec.application.clone(),
                start: spec.start,
                stop: spec.stop,
                call: *call,
                header,
                to: SocketAddr::new(plan.pairs[number].receiver, FIRST_PORT + number as u16),
                sender,
                receiver,
            });
        }
        let warmup = Some(Time::ZERO + plan.scenario.warmup).filter(|&end| end > Time::ZERO);
        let messages = MessageRecords::new(specs.iter_mut().map(|spec| spec.messages.take()), warmup);
        let flow = |(spec, outlet): (Spec, Option<Outlet>)| Flow {
            application: spec.application,
            acts: matches!(spec.carrier, Carrier::Tcp(_) | Carrier::Udp(_)).then_some(spec.start),
            stop: spec.stop,
            stopped: false,
            outlet: outlet.expect("every pair is in a namespace of the plan"),
        };
        let flows = specs.into_iter().zip(outlets).map(flow).collect();
        let poll = || Poll::new().map_err(HostError::system("wait for sockets"));
        let senders = Senders::new(flows, poll()?, ecn);
        let inlets = inlets.into_iter().map(|inlet| inlet.unwrap_or(Inlet::Closed)).collect();
        let receivers = Receivers { inlets, poll: poll()?, senders: senders.poll.waker() };
        let of_videos =
            |flows| Videos::new(flows, poll()?, warmup).map_err(HostError::system("read the sockets of calls"));
        let videos = Some(videos).filter(|flows| !flows.is_empty()).map(of_videos).transpose()?;
        Ok(Endpoints { senders, receivers, quic, videos, messages, urgent: plan.urgent })
    }

    /// Starts the endpoints. The clock's epoch is the start of the scenario; `endpoint_stats` needs room for all flows.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(self, clock: Clock, endpoint_stats: Arc<EndpointStats>) -> Result<Running, HostError> {
        let Endpoints { senders, receivers, quic, videos, messages, urgent } = self;
        assert!(endpoint_stats.flows() >= senders.flows.len(), "room for the figures of each flow");
        let shared = Arc::new(Shared::new(endpoint_stats, clock, messages));
        let of_videos = videos.iter().map(|videos| videos.poll.waker());
        let wakers = [senders.poll.waker(), receivers.poll.waker()].into_iter().chain(of_videos).collect();
        let mut running = Running { shared: Arc::clone(&shared), wakers, threads: Vec::new() };
        let (sending, receiving) =
            if urgent { (Work::Sending, Work::Receiving) } else { (Work::Ordinary, Work::Ordinary) };
        let shares = Arc::clone(&shared);
        running.spawn("narrows-receive", receiving, move || receivers.run(&shares))?;
        if !quic.is_empty() {
            let shares = Arc::clone(&shared);
            running.spawn("narrows-quic", receiving, move || quic::run(quic, &shares))?;
        }
        if let Some(videos) = videos {
            let shares = Arc::clone(&shared);
            running.spawn("narrows-video", receiving, move || videos.run(&shares))?;
        }
        running.spawn("narrows-send", sending, move || senders.run(&shared))?;
        Ok(running)
    }
}

impl Running {
    fn spawn(
        &mut self,
        name: &str,
        work: Work,
        run: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), HostError> {
        let exact = move || {
            keep_times(work);
            run()
        };
        let thread = thread::Builder::new().name(name.into()).spawn(exact);
        self.threads.push(thread.map_err(HostError::system("start a thread"))?);
        Ok(())
    }

    /// Whether all threads are running. If not, [`Running::stop`] says why.
    pub fn is_whole(&self) -> bool {
        !self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends all flows in whatever state they are. `endpoint_stats` then has their last figures.
    ///
    /// # Errors
    /// When one of the threads had failed before.
    pub fn stop(mut self) -> Result<(), HostError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), HostError> {
        self.shared.ended.store(true, Ordering::Release);
        self.wakers.iter().for_each(Waker::wake);
        let mut outcome = Ok(());
        for thread in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")));
            outcome = outcome.and(ended);
        }
        self.shared.messages.post(&self.shared.endpoint_stats);
        outcome.map_err(HostError::system("keep the scenario's flows going"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Errors are reported by `stop`.
        let _ = self.end();
    }
}

/// The ECN switch and the sockets of one namespace, with the flows' numbers.
#[derive(Default)]
struct NamespaceSockets {
    switch: Option<EcnSwitch>,
    outlets: Vec<(usize, Outlet)>,
    inlets: Vec<(usize, Inlet)>,
    quic_senders: Vec<(usize, Vec<UdpSocket>)>,
    quic_receivers: Vec<(usize, UdpSocket)>,
    video_senders: Vec<(usize, UdpSocket)>,
    video_receivers: Vec<(usize, UdpSocket)>,
}

/// Makes the sockets of a namespace; called in it.
fn make_sockets(place: usize, plan: &Plan<'_>, specs: &[Spec]) -> Result<NamespaceSockets, HostError> {
    sockets::settle(plan.receive_buffers, plan.send_buffers)?;
    set_initial_windows(place, plan, specs)?;
    let mut made = NamespaceSockets::default();
    let mut asks = false;
    for (number, (spec, pair)) in specs.iter().zip(plan.pairs).enumerate() {
        let to = SocketAddr::new(pair.receiver, FIRST_PORT + number as u16);
        let making = Making { spec, from: pair.sender, to };
        if pair.sender_namespace == place {
            asks |= matches!(&spec.carrier, Carrier::Tcp(tcp) if tcp.ecn);
            made.outlets.push((number, outlet(&making, place)?));
            match &spec.carrier {
                Carrier::Quic(_) => made.quic_senders.push((number, quic::sender_sockets(&making)?)),
                Carrier::Video(udp) => made.video_senders.push((number, video::sender_socket(&making, udp)?)),
                Carrier::Program | Carrier::Tcp(_) | Carrier::Udp(_) => {}
            }
        }
        if pair.receiver_namespace == place {
            made.inlets.push((
                number,
                match &spec.carrier {
                    Carrier::Tcp(tcp) => Inlet::Listener(making.tcp_listener(tcp, plan.read_at_least)?),
                    Carrier::Udp(_) => Inlet::Datagrams(making.udp_receiver()?),
                    Carrier::Program | Carrier::Quic(_) | Carrier::Video(_) => Inlet::Closed,
                },
            ));
            match &spec.carrier {
                Carrier::Quic(_) => made.quic_receivers.push((number, quic::receiver_socket(&making)?)),
                Carrier::Video(_) => made.video_receivers.push((number, video::receiver_socket(&making)?)),
                Carrier::Program | Carrier::Tcp(_) | Carrier::Udp(_) => {}
            }
        }
    }
    let switch = || {
        let file = OpenOptions::new().write(true).open(sockets::TCP_ECN);
        file.map(|file| EcnSwitch { file, is_on: false }).map_err(HostError::system("set net.ipv4.tcp_ecn"))
    };
    made.switch = asks.then(switch).transpose()?;
    Ok(made)
}

/// Sets the initial windows. Each belongs to a route, so all connections from a namespace to an address share one.
fn set_initial_windows(place: usize, plan: &Plan<'_>, specs: &[Spec]) -> Result<(), HostError> {
    let mut windows: BTreeMap<IpAddr, (u32, &str)> = BTreeMap::new();
    for (spec, pair) in specs.iter().zip(plan.pairs) {
        let Carrier::Tcp(tcp) = &spec.carrier else { continue };
        if pair.sender_namespace != place {
            continue;
        }
        let (window, first) = *windows.entry(pair.receiver).or_insert((tcp.initial_window, &spec.name));
        if window != tcp.initial_window {
            return Err(HostError::Unsupported(format!(
                "flow `{}` begins with {} packets and flow `{first}` with {window}; the kernel knows one initial window for \
                 all connections to a host, here {}: let them go to different hosts (`to`)",
                spec.name, tcp.initial_window, pair.receiver
            )));
        }
    }
    let mut others = windows.into_iter().filter(|&(_, (window, _))| window != spec::INITIAL_WINDOW);
    others.try_for_each(|(to, (window, _))| initial_window::set_initial_window(to, window))
}

fn outlet(making: &Making<'_>, place: usize) -> Result<Outlet, HostError> {
    Ok(match &making.spec.carrier {
        Carrier::Program | Carrier::Quic(_) | Carrier::Video(_) => Outlet::Elsewhere,
        Carrier::Tcp(tcp) => Outlet::Connection(Connection {
            socket: making.tcp_sender(tcp)?,
            to: making.to.into(),
            stage: Stage::Closed,
            unsent: Some(0),
            written: 0,
            began: None,
            header: tcp.header,
            ecn: tcp.ecn,
            place,
            paced: tcp.is_paced(),
            delivered: None,
        }),
        Carrier::Udp(udp) => Outlet::Datagrams(Datagrams {
            socket: making.udp_sender(udp)?,
            ever_new: udp.ever_new.then(|| making.to.into()),
            header: sockets::ip_header(making.from) + UDP_HEADER,
        }),
    })
}

/// RFC 768.
const UDP_HEADER: u32 = 8;
/// Files that the process has open in addition to its flows' sockets.
const OTHER_FILES: u64 = 64;

/// Raises the limit of open files. Each flow takes two sockets, and a connection takes a third one while it begins.
fn allow_files(specs: &[Spec]) -> Result<(), HostError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = specs.len() as u64 * 3 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let maximum = limit.maximum.map_or(needed, |maximum| maximum.max(needed));
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum.map(|_| maximum) };
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        HostError::NotAllowed(format!(
            "{} flows need {needed} open files, and this system allows {}; raise the limit (`ulimit -n`) or take fewer flows",
            specs.len(),
            limit.maximum.unwrap_or(needed)
        ))
    })
}
