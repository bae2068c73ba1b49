//! Connections: made, accepted, watched.
use crate::config::Config;
use crate::control::{Factory, Handle};
use crate::ecn::{Arrivals, EcnCounts, Tally};
use crate::event::What;
use crate::shared_control::{Meters, RttSample, SharedControl};
use crate::socket::{Alias, Socket, TwoSockets};
use crate::tls::{Identity, Trust};
use crate::verdict::{TimedVerdict, Verdicts};
use crate::{Error, PATHS, clock};
use futures_core::Stream;
use narrows_core::detector::{Events, Verdict};
use noq::{
    AsyncUdpSocket, ClientConfig, Endpoint, EndpointConfig, PathError, PathEvent, PathId, PathStatus, Runtime,
    ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Between two attempts to open a second path: the peer may not have issued connection identifiers for it yet.
const RETRY: Duration = Duration::from_millis(5);
/// A watcher looks at least this often, and a controller's timer is never more than this late when nothing is sent.
const LOOK: Duration = Duration::from_millis(20);
/// tokio's timers are no finer.
const TICK: Duration = Duration::from_millis(1);
/// Paths that a server allows at a time: two, and one that replaces another.
const SERVER_PATHS: u32 = 3;

/// A QUIC connection whose sending a controller of the registry governs.
///
/// Streams and datagrams are those of [`noq::Connection`], which [`Connection::quic`] gives. When a `Connection` is dropped, it closes.
#[derive(Debug)]
pub struct Connection {
    quic: noq::Connection,
    handle: Handle,
    verdicts: Option<Verdicts>,
    watcher: JoinHandle<()>,
    state: Arc<Mutex<State>>,
    /// Of a client: lives as long as its connection.
    endpoint: Option<Endpoint>,
    arrivals: Arrivals,
}

/// What the watcher has found.
#[derive(Debug, Default)]
struct State {
    paths: u8,
    lost: Option<String>,
}

/// A place where connections arrive.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    config: Config,
    base: ServerConfig,
    accepted: AtomicU64,
    tally: Tally,
}

/// Connects to a server from an address of the system's choice.
///
/// # Errors
/// When no connection comes about, or there is no second path and the controller needs one.
pub async fn connect(peer: SocketAddr, name: &str, trust: &Trust, config: &Config) -> Result<Connection, Error> {
    let any = match peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let bind = || UdpSocket::bind(any).map_err(Error::io("open a UDP socket"));
    connect_from(vec![bind()?, bind()?], peer, name, trust, config).await
}

/// Connects to a server from these sockets, of which the second one carries the second path. One that is not needed is closed.
///
/// # Errors
/// See [`connect`].
pub async fn connect_from(
    sockets: Vec<UdpSocket>,
    peer: SocketAddr,
    name: &str,
    trust: &Trust,
    config: &Config,
) -> Result<Connection, Error> {
    let alias = Alias::of(peer);
    let tally = Tally::default();
    let endpoint = client_endpoint(sockets, alias, config, &tally)?;
    let making = Making::new(config, 1)?;
    let mut client = ClientConfig::new(trust.config()?);
    let paths = if config.wants_two_paths() { PATHS as u32 } else { 1 };
    client.transport_config(making.control(config.client_transport(paths)?));
    let refused = |reason: String| Error::Connection { peer, reason };
    let connecting = endpoint.connect_with(client, peer, name).map_err(|error| refused(error.to_string()))?;
    let handshake = async {
        let quic = connecting.await.map_err(|error| refused(error.to_string()))?;
        quic.handshake_confirmed().await.map_err(|error| refused(error.to_string()))?;
        Ok(quic)
    };
    let late = |_| refused(format!("no answer within {} s", config.patience.as_secs_f64()));
    let quic = timeout(config.patience, handshake).await.map_err(late)??;
    let second = if config.wants_two_paths() { open_second(&quic, alias, peer, config.patience).await } else { Ok(()) };
    if let (Err(_), Some(closed)) = (&second, quic.close_reason()) {
        return Err(refused(closed.to_string()));
    }
    making.begin_with(second, quic, config, Some(endpoint), Arrivals::new(tally, Some(peer)))
}

fn client_endpoint(sockets: Vec<UdpSocket>, alias: Alias, config: &Config, tally: &Tally) -> Result<Endpoint, Error> {
    let runtime = Arc::new(TokioRuntime);
    let wrap = |socket| wrap(socket, config, tally);
    let mut sockets = sockets.into_iter();
    let too_few = || Error::Config("connect_from: one socket for each path".into());
    let first = wrap(sockets.next().ok_or_else(too_few)?)?;
    let socket: Box<dyn AsyncUdpSocket> = if config.wants_two_paths() {
        Box::new(TwoSockets::new([first, wrap(sockets.next().ok_or_else(too_few)?)?], alias))
    } else {
        Box::new(first)
    };
    let made = Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, socket, runtime.clone());
    made.map_err(Error::io("start a QUIC endpoint"))
}

fn wrap(socket: UdpSocket, config: &Config, tally: &Tally) -> Result<Socket, Error> {
    let socket = TokioRuntime.wrap_udp_socket(socket).map_err(Error::io("make a socket asynchronous"))?;
    Ok(Socket::new(socket, config.is_ecn(), tally.clone()))
}

async fn open_second(quic: &noq::Connection, alias: Alias, peer: SocketAddr, patience: Duration) -> Result<(), Error> {
    if !quic.is_multipath_enabled() {
        return Err(Error::NeedsMultipath { peer });
    }
    // noq's first key update after the handshake fails once there is a second path.
    quic.force_key_update();
    let open = async {
        loop {
            match quic.open_path(alias.address(), PathStatus::Available).await {
                Ok(_) => return Ok(()),
                Err(PathError::RemoteCidsExhausted) => sleep(RETRY).await,
                Err(error) => return Err(Error::SecondPath { peer, reason: error.to_string() }),
            }
        }
    };
    let reason = format!("no answer within {} s", patience.as_secs_f64());
    timeout(patience, open).await.map_err(|_| Error::SecondPath { peer, reason })?
}

impl Server {
    /// Listens at an address.
    ///
    /// # Errors
    /// When the address cannot be had, or the certificate is of no use.
    pub fn bind(at: SocketAddr, identity: &Identity, config: &Config) -> Result<Server, Error> {
        let socket = UdpSocket::bind(at).map_err(Error::io(format!("listen at {at}")))?;
        Server::on(socket, identity, config)
    }

    /// Listens on a socket.
    ///
    /// # Errors
    /// See [`Server::bind`].
    pub fn on(socket: UdpSocket, identity: &Identity, config: &Config) -> Result<Server, Error> {
        let base = ServerConfig::with_crypto(identity.config()?);
        let tally = Tally::default();
        let socket = Box::new(wrap(socket, config, &tally)?);
        let (settings, runtime) = (EndpointConfig::default(), Arc::new(TokioRuntime));
        let made = Endpoint::new_with_abstract_socket(settings, Some(base.clone()), socket, runtime);
        let endpoint = made.map_err(Error::io("start a QUIC endpoint"))?;
        Ok(Server { endpoint, config: config.clone(), base, accepted: AtomicU64::new(0), tally })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.endpoint.local_addr().map_err(Error::io("ask for the server's address"))
    }

    /// Waits for the next connection, and for its second path if the controller needs one; `None` when the server is closed.
    pub async fn accept(&self) -> Option<Result<Connection, Error>> {
        let incoming = self.endpoint.accept().await?;
        Some(self.take(incoming).await)
    }

    /// The endpoint, for servers that want to judge attempts themselves: see [`Server::take`].
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Takes an attempt of the endpoint's.
    ///
    /// # Errors
    /// See [`connect`].
    pub async fn take(&self, incoming: noq::Incoming) -> Result<Connection, Error> {
        self.take_with(incoming, &self.config).await
    }

    /// Takes an attempt of the endpoint's, with a configuration of its own.
    ///
    /// # Errors
    /// See [`connect`].
    pub async fn take_with(&self, incoming: noq::Incoming, config: &Config) -> Result<Connection, Error> {
        let peer = incoming.remote_address();
        let making = Making::new(config, self.accepted.fetch_add(1, Ordering::Relaxed) + 1)?;
        let mut server = self.base.clone();
        server.transport_config(making.control(config.server_transport(SERVER_PATHS)?));
        let refused = |error: noq::ConnectionError| Error::Connection { peer, reason: error.to_string() };
        let late =
            |_| Error::Connection { peer, reason: format!("no answer within {} s", config.patience.as_secs_f64()) };
        let connecting = incoming.accept_with(Arc::new(server)).map_err(refused)?;
        let quic = timeout(config.patience, connecting).await.map_err(late)?.map_err(refused)?;
        let second = if config.wants_two_paths() { await_second(&quic, peer, config.patience).await } else { Ok(()) };
        if matches!(second, Err(Error::NeedsMultipath { .. })) && !config.may_have_one_path() {
            quic.close(VarInt::from_u32(0), b"needs multipath");
        }
        making.begin_with(second, quic, config, None, Arrivals::new(self.tally.clone(), None))
    }

    /// Refuses new connections and ends those that there are.
    pub fn close(&self) {
        self.endpoint.close(VarInt::from_u32(0), b"");
    }
}

async fn await_second(quic: &noq::Connection, peer: SocketAddr, patience: Duration) -> Result<(), Error> {
    if !quic.is_multipath_enabled() {
        return Err(Error::NeedsMultipath { peer });
    }
    let opened = timeout(patience, established(quic.path_events(), second())).await;
    opened.ok().filter(|&opened| opened).map(drop).ok_or_else(|| Error::SecondPath {
        peer,
        reason: format!("the peer has not opened one within {} s", patience.as_secs_f64()),
    })
}

fn second() -> PathId {
    PathId::from(1u32)
}

/// Waits until a path is established; `false` if the connection ends first.
async fn established(mut events: noq::PathEvents, wanted: PathId) -> bool {
    while let Some(event) = next(&mut events).await {
        if matches!(event, Ok(PathEvent::Established { id, .. }) if id == wanted) {
            return true;
        }
    }
    false
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

/// What a connection needs before it exists.
struct Making {
    handle: Handle,
    verdicts: Verdicts,
}

impl Making {
    fn new(config: &Config, number: u64) -> Result<Making, Error> {
        let (tell, verdicts) = unbounded_channel();
        let settings = config.settings();
        let recorder = config.recorder(&settings, number)?;
        let handle = Handle::new(clock::now(), SharedControl::new(settings), recorder, config.observer(), tell);
        Ok(Making { handle, verdicts: Verdicts(verdicts) })
    }

    fn control(&self, mut transport: TransportConfig) -> Arc<TransportConfig> {
        transport.congestion_controller_factory(Arc::new(Factory::new(self.handle.clone())));
        Arc::new(transport)
    }

    /// The handshake is complete. `second`: whether the second path is open, if there is to be one.
    fn begin_with(
        self,
        second: Result<(), Error>,
        quic: noq::Connection,
        config: &Config,
        endpoint: Option<Endpoint>,
        arrivals: Arrivals,
    ) -> Result<Connection, Error> {
        match second {
            Ok(()) => Ok(self.begin(quic, config, endpoint, arrivals)),
            Err(missing) if config.may_have_one_path() => {
                let connection = self.begin(quic, config, endpoint, arrivals);
                leave(&connection.quic, &connection.handle, &connection.state, 1, missing.to_string());
                Ok(connection)
            }
            Err(missing) => Err(missing),
        }
    }

    /// The handshake is complete, and the second path open if there is to be one.
    fn begin(
        self,
        quic: noq::Connection,
        config: &Config,
        endpoint: Option<Endpoint>,
        arrivals: Arrivals,
    ) -> Connection {
        let Making { handle, verdicts } = self;
        let rtt = quic.rtt(PathId::ZERO).unwrap_or(Duration::from_millis(100)).as_nanos() as u64;
        let both = config.controller.splits();
        let mtu = u32::from(config.full_packet());
        handle.tell(clock::now(), What::Begin { rtt, mtu, both });
        let paths = if config.wants_two_paths() { PATHS as u8 } else { 1 };
        let state = Arc::new(Mutex::new(State { paths, lost: None }));
        let watcher =
            tokio::spawn(watch(quic.clone(), handle.clone(), Arc::clone(&state), u64::from(config.buffer_size())));
        Connection { quic, handle, verdicts: Some(verdicts), watcher, state, endpoint, arrivals }
    }
}

/// Advances the controller's time, and leaves a path that has gone silent.
async fn watch(quic: noq::Connection, handle: Handle, state: Arc<Mutex<State>>, buffer: u64) {
    let mut events = quic.path_events();
    loop {
        let now = clock::now();
        let until = [handle.until_timer(now), handle.until_packet(now)].into_iter().flatten().min();
        let wait = until.map_or(LOOK, |until| until.clamp(TICK, LOOK));
        let event = timeout(wait, next(&mut events)).await;
        let lost = match event {
            Ok(None) => return,
            Ok(Some(Ok(PathEvent::Abandoned { id, reason, .. }))) => {
                let path = u8::from(id != PathId::ZERO);
                Some((path, format!("path {path} was abandoned: {reason:?}")))
            }
            _ => handle.silent(clock::now()).map(|(path, silence)| {
                (path, format!("path {path} has been silent for {:.1} s", silence.as_secs_f64()))
            }),
        };
        if let Some((path, why)) = lost {
            leave(&quic, &handle, &state, path, why);
        }
        let now = clock::now();
        let is_due = |until: Option<Duration>| until.is_some_and(|until| until.is_zero());
        let timer = is_due(handle.until_timer(now));
        if timer {
            handle.tell(now, What::Timer);
        }
        if timer || is_due(handle.until_packet(now)) {
            // What the controller allows may have changed. noq looks again after any change of a setting.
            quic.set_send_window(buffer);
        }
        if quic.close_reason().is_some() {
            return;
        }
    }
}

fn leave(quic: &noq::Connection, handle: &Handle, state: &Mutex<State>, path: u8, why: String) {
    {
        // Released before observers are notified: one may ask for the paths.
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.paths < PATHS as u8 {
            return;
        }
        state.paths = 1;
        state.lost = Some(why);
    }
    handle.tell(clock::now(), What::Only { path: 1 - path });
    if let Some(path) = quic.path(PathId::from(u32::from(path))) {
        // It may be closed already, or the last one.
        let _ = path.close();
    }
}

impl Connection {
    /// The connection as the transport knows it: streams, datagrams, statistics.
    pub const fn quic(&self) -> &noq::Connection {
        &self.quic
    }

    /// The detector's verdicts, as they come. The first call takes them all.
    pub fn verdicts(&mut self) -> Option<Verdicts> {
        self.verdicts.take()
    }

    /// The verdicts since the last call, unless [`Connection::verdicts`] has taken them.
    pub fn new_verdicts(&mut self) -> Vec<TimedVerdict> {
        let verdicts = self.verdicts.as_mut();
        verdicts.map_or_else(Vec::new, |verdicts| std::iter::from_fn(|| verdicts.try_next()).collect())
    }

    /// Changes to the controller of [`Config::then`], which starts as on a new connection; nothing happens without one, or if it needs two
    /// paths and one is lost.
    pub fn switch(&self) {
        self.handle.tell(clock::now(), What::Switch);
    }

    /// Begins no packet after this much from now on, bytes of UDP payload, whatever is lost and sent again; `None`: as much as the controller lets.
    /// Acknowledgments and probes of a silent path leave all the same. What waits to be sent notices a larger limit at the next change, such
    /// as a stream's.
    pub fn allow(&self, bytes: Option<u64>) {
        self.handle.allow(bytes);
    }

    /// The detector's present verdict; `None` without a detector, or when one of two paths is lost.
    pub fn verdict(&self) -> Option<Verdict> {
        self.handle.verdict()
    }

    /// The sender's state.
    pub fn meters(&self) -> Option<Meters> {
        self.handle.meters()
    }

    /// The detections and recoveries so far; `None` without a detector.
    pub fn events(&self) -> Option<Events> {
        self.handle.events()
    }

    /// Takes the RTT samples since the last call, the oldest first; only the newest few thousand are kept.
    pub fn take_rtts(&self) -> Vec<RttSample> {
        self.handle.take_rtts()
    }

    /// How many paths there are.
    pub fn paths(&self) -> u8 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).paths
    }

    /// Counts, from now on and from zero, the ECN bits of packets that come from the peer over the paths that there are.
    pub fn count_ecn(&self) {
        let of_path = |id: u32| self.quic.path(PathId::from(id))?.remote_address().ok();
        self.arrivals.watch((0..SERVER_PATHS).filter_map(of_path).collect());
    }

    /// The packets that have come since [`Connection::count_ecn`]; none without it.
    pub fn ecn(&self) -> EcnCounts {
        self.arrivals.counts()
    }

    /// Why there is one path instead of two; `None` if nothing was lost.
    pub fn lost_path(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).lost.clone()
    }

    /// When it was made, by the system's clock: the times of verdicts and traces count from here.
    pub fn epoch(&self) -> Instant {
        self.handle.epoch()
    }

    /// Ends the connection. Waits until the peer knows, and writes out what was recorded.
    ///
    /// # Errors
    /// When the trace could not be written.
    pub async fn close(self) -> Result<(), Error> {
        self.quic.close(VarInt::from_u32(0), b"");
        if let Some(endpoint) = &self.endpoint {
            endpoint.wait_idle().await;
        }
        self.handle.flush().map_err(Error::io("write the trace"))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.watcher.abort();
        self.quic.close(VarInt::from_u32(0), b"");
        // Whoever needs to know whether it worked calls `close`.
        let _ = self.handle.flush();
    }
}
