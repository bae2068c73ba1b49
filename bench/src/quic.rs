//! Bulk data over QUIC, on loopback and over a live link: `narrows-quic` beside plain noq in turns, and what controller and detector cost
//! for a packet.
//!
//! Sender and receiver share one thread. Plain noq has its own CUBIC, and the same packets and buffers.
use crate::clock::timed;
use crate::live::endpoints::{HOSTS, Window, process_time, text, thread_time};
use crate::live::ours::{Bottleneck, carry};
use crate::{Options, median};
use narrows_core::Span;
use narrows_quic::noq::{self, EndpointConfig, MtuDiscoveryConfig, TransportConfig, VarInt};
use narrows_quic::rustls::{self, RootCertStore};
use narrows_quic::{Config, Identity, Server, Trace, Trust, What, connect_from};
use rustix::net::sockopt;
use serde::Serialize;
use std::io::BufReader;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::Arc;

/// The names of the cases.
pub(crate) const NAMES: &[&str] = &["quic-bulk", "quic-link", "quic-control"];

/// The connections that are compared with plain noq, and their controllers.
const OURS: [(&str, &str); 2] =
    [("one path, cubic", "cubic"), ("two paths, sequential", "tonopah:on=cubic,fair=nothing,detector=sequential")];
/// Goodput beside plain noq's.
const AIM: f64 = 0.9;
/// Controller and detector for a packet, ns.
const AIM_NS: f64 = 150.0;
/// Payload of a transfer, bytes.
const BYTES: u64 = 400 << 20;
/// Data of one stream, bytes: a single stream has room for 1024 gaps.
const STREAM: u64 = 1 << 20;
/// UDP payload of a full-sized packet.
const MTU: u16 = 1452;
/// The link of the live world.
const LINK: Bottleneck = Bottleneck { rate: "1gbit", queue: "fq_codel", rtt: Span::ms(10), whole: false, join: true };
/// What may be unacknowledged, bytes.
const BUFFER: u32 = 16 << 20;
const NAME: &str = "bench";

/// The figures of one kind of connection; medians.
#[derive(Debug, Serialize)]
pub(crate) struct Bulk {
    pub(crate) name: &'static str,
    pub(crate) goodput_mbit: f64,
    /// CPU time of both ends for a gigabit of payload, s.
    pub(crate) cpu_s_per_gbit: f64,
    /// Goodput beside that of plain noq in the same round; `None` for plain noq.
    pub(crate) to_plain: Option<f64>,
    pub(crate) aim: f64,
}

/// What controller and detector cost.
#[derive(Debug, Serialize)]
pub(crate) struct Control {
    pub(crate) name: &'static str,
    /// Packets of the recorded connection.
    pub(crate) packets: u64,
    /// For a packet, its acknowledgment included, ns; median.
    pub(crate) ns: f64,
    pub(crate) aim: f64,
}

/// The measurements.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Quic {
    pub(crate) bulk: Vec<Bulk>,
    /// Over a link of the live world.
    pub(crate) link: Vec<Bulk>,
    pub(crate) control: Vec<Control>,
}

/// Measures the wanted cases. `prepared`: whether namespaces may be made.
pub(crate) fn measure(
    wanted: impl Fn(&str) -> bool,
    prepared: Result<(), String>,
    options: &Options,
) -> Result<Quic, String> {
    let bytes = (BYTES / options.divisor).max(STREAM);
    let mut quic = Quic::default();
    if wanted("quic-bulk") {
        crate::say("quic-bulk");
        quic.bulk = in_turns(options.rounds, |connection| {
            let before = process_time();
            let (done, wall) =
                timed(|| block_on(connection.carry(&on_loopback()?, async |from, to| transfer(from, to, bytes).await)));
            done?;
            Ok(Carried { bytes, seconds: wall.as_secs_f64(), cpu: process_time().saturating_sub(before) })
        })?;
    }
    if wanted("quic-link") {
        crate::say("quic-link");
        prepared?;
        let length = Span::ms(4000 / options.divisor);
        quic.link = in_turns(options.rounds, |connection| over_link(connection, length))?;
    }
    if wanted("quic-control") {
        crate::say("quic-control");
        quic.control = control(bytes / 4, options.rounds)?;
    }
    Ok(quic)
}

/// Goodput, Mbit/s, and CPU time for a gigabit, s, by round.
type Rounds = (Vec<f64>, Vec<f64>);

/// What was carried, in which time.
struct Carried {
    bytes: u64,
    seconds: f64,
    /// CPU time of both ends.
    cpu: Span,
}

/// Each kind of connection after plain noq, in turns.
fn in_turns(rounds: usize, carry: impl Fn(Connection) -> Result<Carried, String>) -> Result<Vec<Bulk>, String> {
    // Plain noq comes first.
    let connections =
        || [Connection::Plain].into_iter().chain(OURS.map(|(_, controller)| Connection::Ours(controller)));
    let mut all: Vec<Rounds> = vec![(Vec::new(), Vec::new()); 1 + OURS.len()];
    for _ in 0..rounds {
        for (connection, figures) in connections().zip(&mut all) {
            let carried = carry(connection)?;
            let gbit = carried.bytes as f64 * 8.0 / 1e9;
            figures.0.push(gbit * 1e3 / carried.seconds);
            figures.1.push(carried.cpu.as_secs_f64() / gbit);
        }
    }
    let plain = all[0].0.clone();
    let names = ["plain noq, cubic"].into_iter().chain(OURS.map(|(name, _)| name));
    let figure = |(n, (name, (goodput, cpu))): (usize, (&'static str, Rounds))| Bulk {
        name,
        to_plain: (n > 0).then(|| median(goodput.iter().zip(&plain).map(|(ours, plain)| ours / plain).collect())),
        goodput_mbit: median(goodput),
        cpu_s_per_gbit: median(cpu),
        aim: AIM,
    };
    Ok(names.zip(all).enumerate().map(figure).collect())
}

/// A transfer over a link of the live world, after a second in which it reaches the link's rate.
fn over_link(connection: Connection, length: Span) -> Result<Carried, String> {
    let window = Window::new(Span::s(1), length);
    let carried = carry(LINK, window, |sides| {
        let open = |side: usize| {
            let socket = sides[side].run(|| UdpSocket::bind((HOSTS[side], 0))).map_err(text)?.map_err(text)?;
            // What arrives while the thread sends has to wait somewhere. The system may give less.
            sockopt::set_socket_recv_buffer_size(&socket, BUFFER as usize / 4).map_err(text)?;
            Ok::<_, String>(socket)
        };
        let sockets = Sockets { server: open(1)?, client: [open(0)?, open(0)?] };
        block_on(connection.carry(&sockets, async |from, to| transfer_within(from, to, window).await))
    })?;
    Ok(carried.result)
}

/// Records a connection of each kind, and plays it to its controller.
fn control(bytes: u64, rounds: usize) -> Result<Vec<Control>, String> {
    let mut all = Vec::new();
    for (name, controller) in OURS {
        let file = std::env::temp_dir().join(format!("narrows-bench-{}.trace", std::process::id()));
        let recorded = Connection::Recorded(controller, &file);
        let sockets = on_loopback()?;
        let carried = recorded.carry(&sockets, async |from, to| transfer(from, to, bytes).await);
        let trace = block_on(carried).and_then(|()| read(&file));
        // It may not be there.
        let _ = std::fs::remove_file(&file);
        let trace = trace?;
        let packets = trace.events().iter().filter(|event| matches!(event.what, What::Sent { .. })).count() as u64;
        let ns = |_| timed(|| std::hint::black_box(trace.replay())).1.as_nanos() as f64 / packets.max(1) as f64;
        all.push(Control { name, packets, ns: median((0..rounds).map(ns).collect()), aim: AIM_NS });
    }
    Ok(all)
}

fn read(file: &Path) -> Result<Trace, String> {
    let from = std::fs::File::open(file).map_err(text)?;
    Trace::read(BufReader::new(from)).map_err(text)
}

fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(text)?.block_on(work)
}

/// A kind of connection.
#[derive(Clone, Copy)]
enum Connection<'a> {
    Plain,
    /// With this controller.
    Ours(&'a str),
    /// The same, recorded to a file.
    Recorded(&'a str, &'a Path),
}

/// Where a connection's ends are.
struct Sockets {
    server: UdpSocket,
    /// One for each path.
    client: [UdpSocket; 2],
}

fn on_loopback() -> Result<Sockets, String> {
    let open = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(text);
    Ok(Sockets { server: open()?, client: [open()?, open()?] })
}

impl Connection<'_> {
    /// Connects, works and closes.
    async fn carry<T>(
        self,
        sockets: &Sockets,
        work: impl AsyncFnOnce(&noq::Connection, &noq::Connection) -> Result<T, String>,
    ) -> Result<T, String> {
        match self {
            Connection::Plain => plain(sockets, work).await,
            Connection::Ours(controller) => ours(controller, sockets, None, work).await,
            Connection::Recorded(controller, file) => ours(controller, sockets, Some(file), work).await,
        }
    }
}

/// Between ends of `narrows-quic`.
async fn ours<T>(
    controller: &str,
    sockets: &Sockets,
    record: Option<&Path>,
    work: impl AsyncFnOnce(&noq::Connection, &noq::Connection) -> Result<T, String>,
) -> Result<T, String> {
    let identity = Identity::self_signed(NAME).map_err(text)?;
    let trust = Trust::only(identity.certificate()).map_err(text)?;
    let receiving = Config::new().buffer(BUFFER);
    let server = Server::on(sockets.server.try_clone().map_err(text)?, &identity, &receiving).map_err(text)?;
    let mut config = Config::new().controller(controller).map_err(text)?.mtu(MTU).buffer(BUFFER);
    if let Some(file) = record {
        config = config.record(file);
    }
    let to = server.local_addr().map_err(text)?;
    let client = sockets.client.iter().map(UdpSocket::try_clone).collect::<Result<Vec<_>, _>>().map_err(text)?;
    let (sender, receiver) = tokio::join!(connect_from(client, to, NAME, &trust, &config), server.accept());
    let (sender, receiver) = (sender.map_err(text)?, receiver.ok_or("the server is closed")?.map_err(text)?);
    let done = work(sender.quic(), receiver.quic()).await?;
    sender.close().await.map_err(text)?;
    Ok(done)
}

/// The same between ends of noq.
async fn plain<T>(
    sockets: &Sockets,
    work: impl AsyncFnOnce(&noq::Connection, &noq::Connection) -> Result<T, String>,
) -> Result<T, String> {
    let identity = Identity::self_signed(NAME).map_err(text)?;
    let (certificate, key) = (identity.certificate().clone(), identity.key().clone_key());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = &[&rustls::version::TLS13];
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).map_err(text)?;
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions);
    let server = server.map_err(text)?.with_no_client_auth().with_single_cert(vec![certificate], key).map_err(text)?;
    let client = rustls::ClientConfig::builder_with_provider(provider).with_protocol_versions(versions);
    let client = client.map_err(text)?.with_root_certificates(roots).with_no_client_auth();
    let server = noq::crypto::rustls::QuicServerConfig::try_from(server).map_err(text)?;
    let client = noq::crypto::rustls::QuicClientConfig::try_from(client).map_err(text)?;
    let transport = Arc::new(transport());
    let mut serving = noq::ServerConfig::with_crypto(Arc::new(server));
    serving.transport_config(Arc::clone(&transport));
    let endpoint = |serving, socket: &UdpSocket| {
        let socket = socket.try_clone()?;
        noq::Endpoint::new(EndpointConfig::default(), serving, socket, Arc::new(noq::TokioRuntime))
    };
    let server = endpoint(Some(serving), &sockets.server).map_err(text)?;
    let mut connecting = noq::ClientConfig::new(Arc::new(client));
    connecting.transport_config(transport);
    let endpoint = endpoint(None, &sockets.client[0]).map_err(text)?;
    let to = server.local_addr().map_err(text)?;
    let sender = endpoint.connect_with(connecting, to, NAME).map_err(text)?;
    let receiver = async { server.accept().await.ok_or("the server is closed")?.await.map_err(text) };
    let (sender, receiver) = tokio::join!(sender, receiver);
    let (sender, receiver) = (sender.map_err(text)?, receiver?);
    let done = work(&sender, &receiver).await?;
    sender.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(done)
}

/// Plain noq with our packets and buffers.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(MTU)
        .mtu_discovery_config(None::<MtuDiscoveryConfig>)
        .stream_receive_window(VarInt::from_u32(2 << 20))
        .receive_window(VarInt::from_u32(BUFFER))
        .send_window(u64::from(BUFFER));
    transport
}

/// Sends this number of bytes over one stream after the other, and waits until they have been read.
async fn transfer(from: &noq::Connection, to: &noq::Connection, bytes: u64) -> Result<(), String> {
    let send = async {
        let chunk = vec![0x5a; STREAM as usize];
        let mut left = bytes;
        while left > 0 {
            let part = left.min(STREAM);
            let mut stream = from.open_uni().await.map_err(text)?;
            stream.write_all(&chunk[..part as usize]).await.map_err(text)?;
            stream.finish().map_err(text)?;
            left -= part;
        }
        Ok::<(), String>(())
    };
    let receive = async {
        let mut left = bytes;
        while left > 0 {
            let mut stream = to.accept_uni().await.map_err(text)?;
            while let Some(chunk) = stream.read_chunk(usize::MAX).await.map_err(text)? {
                left -= chunk.len() as u64;
            }
        }
        Ok::<(), String>(())
    };
    tokio::try_join!(send, receive).map(drop)
}

/// Sends until the window is over; returns what arrived in it, and this thread's CPU time.
async fn transfer_within(from: &noq::Connection, to: &noq::Connection, window: Window) -> Result<Carried, String> {
    let chunk = vec![0x5a; STREAM as usize];
    let send = async {
        loop {
            let mut stream = from.open_uni().await.map_err(text)?;
            stream.write_all(&chunk).await.map_err(text)?;
            stream.finish().map_err(text)?;
        }
    };
    let receive = async {
        let (mut bytes, mut begun) = (0, None);
        while !window.is_over() {
            let mut stream = to.accept_uni().await.map_err(text)?;
            while let Some(chunk) = stream.read_chunk(usize::MAX).await.map_err(text)? {
                if window.is_over() {
                    break;
                }
                if window.has_begun() {
                    begun.get_or_insert_with(|| (window.clock.now(), thread_time()));
                    bytes += chunk.len() as u64;
                }
            }
        }
        let (at, cpu) = begun.ok_or("nothing arrived")?;
        Ok::<_, String>(Carried {
            bytes,
            seconds: window.clock.now().since(at).as_secs_f64(),
            cpu: thread_time().saturating_sub(cpu),
        })
    };
    tokio::select! {
        failed = send => failed,
        carried = receive => carried,
    }
}

/// The figures as text.
pub(crate) fn render(quic: &Quic) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    let aim = |met: bool| if met { "✓" } else { "✗" };
    for (place, rows) in [("loopback", &quic.bulk), ("link of 1 Gbit/s", &quic.link)] {
        if rows.is_empty() {
            continue;
        }
        let row = |m: &Bulk| {
            let (to_plain, held) = match m.to_plain {
                Some(ratio) => (format!("{ratio:.2}"), format!("≥ {} {}", m.aim, aim(ratio >= m.aim))),
                None => ("–".to_owned(), String::new()),
            };
            vec![
                m.name.to_owned(),
                format!("{:.0}", m.goodput_mbit),
                format!("{:.2}", m.cpu_s_per_gbit),
                to_plain,
                held,
            ]
        };
        let head = [place, "Mbit/s", "CPU s per Gbit", "÷ plain", "aim"];
        let _ = writeln!(out, "\n{}", crate::grid::grid(&head, rows.iter().map(row)));
    }
    if !quic.control.is_empty() {
        let row = |m: &Control| {
            let held = format!("≤ {} {}", m.aim, aim(m.ns <= m.aim));
            vec![m.name.to_owned(), m.packets.to_string(), format!("{:.0}", m.ns), held]
        };
        let head = ["case", "packets", "ns per packet", "aim"];
        let _ = writeln!(out, "\n{}", crate::grid::grid(&head, quic.control.iter().map(row)));
    }
    out
}
