//! Bulk data over QUIC on loopback: `narrows-quic` beside plain noq in turns, and what controller and detector cost for a packet.
//!
//! Sender and receiver share one thread. Plain noq has its own CUBIC, and the same packets and buffers.
use crate::clock::timed;
use crate::live::endpoints::process_time;
use crate::{Options, median};
use narrows_quic::noq::{self, MtuDiscoveryConfig, TransportConfig, VarInt};
use narrows_quic::rustls::{self, RootCertStore};
use narrows_quic::{Config, Identity, Server, Trace, Trust, What, connect};
use serde::Serialize;
use std::io::BufReader;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// The names of the cases.
pub(crate) const NAMES: &[&str] = &["quic-bulk", "quic-control"];

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
    pub(crate) control: Vec<Control>,
}

/// Measures the wanted cases.
pub(crate) fn measure(wanted: impl Fn(&str) -> bool, options: &Options) -> Result<Quic, String> {
    let bytes = (BYTES / options.divisor).max(STREAM);
    let mut quic = Quic::default();
    if wanted("quic-bulk") {
        crate::say("quic-bulk");
        quic.bulk = bulk(bytes, options.rounds)?;
    }
    if wanted("quic-control") {
        crate::say("quic-control");
        quic.control = control(bytes / 4, options.rounds)?;
    }
    Ok(quic)
}

/// Goodput, Mbit/s, and CPU time for a gigabit, s, by round.
type Rounds = (Vec<f64>, Vec<f64>);

/// Each kind of connection after plain noq, in turns.
fn bulk(bytes: u64, rounds: usize) -> Result<Vec<Bulk>, String> {
    // Plain noq comes first.
    let mut all: Vec<Rounds> = vec![(Vec::new(), Vec::new()); 1 + OURS.len()];
    for _ in 0..rounds {
        for (n, figures) in all.iter_mut().enumerate() {
            let before = process_time();
            let (done, wall) = timed(|| match n.checked_sub(1) {
                None => block_on(plain(bytes)),
                Some(n) => block_on(ours(OURS[n].1, bytes, None)),
            });
            done?;
            let gbit = bytes as f64 * 8.0 / 1e9;
            figures.0.push(gbit * 1e3 / wall.as_secs_f64());
            figures.1.push(process_time().saturating_sub(before).as_secs_f64() / gbit);
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

/// Records a connection of each kind, and plays it to its controller.
fn control(bytes: u64, rounds: usize) -> Result<Vec<Control>, String> {
    let mut all = Vec::new();
    for (name, controller) in OURS {
        let file = std::env::temp_dir().join(format!("narrows-bench-{}.trace", std::process::id()));
        let trace = block_on(ours(controller, bytes, Some(&file))).and_then(|()| read(&file));
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

/// A transfer between ends of `narrows-quic`.
async fn ours(controller: &str, bytes: u64, record: Option<&Path>) -> Result<(), String> {
    let identity = Identity::self_signed(NAME).map_err(text)?;
    let trust = Trust::only(identity.certificate()).map_err(text)?;
    let receiving = Config::new().buffer(BUFFER);
    let server = Server::bind(ANY, &identity, &receiving).map_err(text)?;
    let mut config = Config::new().controller(controller).map_err(text)?.mtu(MTU).buffer(BUFFER);
    if let Some(file) = record {
        config = config.record(file);
    }
    let to = server.local_addr().map_err(text)?;
    let (sender, receiver) = tokio::join!(connect(to, NAME, &trust, &config), server.accept());
    let (sender, receiver) = (sender.map_err(text)?, receiver.ok_or("the server is closed")?.map_err(text)?);
    transfer(sender.quic(), receiver.quic(), bytes).await?;
    sender.close().await.map_err(text)
}

/// The same between ends of noq.
async fn plain(bytes: u64) -> Result<(), String> {
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
    let server = noq::Endpoint::server(serving, ANY).map_err(text)?;
    let mut connecting = noq::ClientConfig::new(Arc::new(client));
    connecting.transport_config(transport);
    let endpoint = noq::Endpoint::client(ANY).map_err(text)?;
    let to = server.local_addr().map_err(text)?;
    let sender = endpoint.connect_with(connecting, to, NAME).map_err(text)?;
    let receiver = async { server.accept().await.ok_or("the server is closed")?.await.map_err(text) };
    let (sender, receiver) = tokio::join!(sender, receiver);
    let (sender, receiver) = (sender.map_err(text)?, receiver?);
    transfer(&sender, &receiver, bytes).await?;
    sender.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(())
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

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// The figures as text.
pub(crate) fn render(quic: &Quic) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    let aim = |met: bool| if met { "✓" } else { "✗" };
    if !quic.bulk.is_empty() {
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
        let head = ["case", "Mbit/s", "CPU s per Gbit", "÷ plain", "aim"];
        let _ = writeln!(out, "\n{}", crate::grid::grid(&head, quic.bulk.iter().map(row)));
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
