//! QUIC flows: connections of `narrows-quic`, all on one thread of their own.
//!
//! Each flow is one connection. Its data go over one stream after the other, because a single stream has little room for what is in flight;
//! several are under way at a time. When an application stops, the last stream is reset, so that its unsent data are discarded. The thread's
//! timers are no finer than a millisecond: an application acts that late, and paced packets leave in groups.
use super::UDP_HEADER;
use super::receiver::Shared;
use super::sockets::{self, Making};
use crate::HostError;
use crate::endpoint_stats::Held;
use narrows_core::congestion::ControllerConfig;
use narrows_core::{Span, Time};
use narrows_quic::{Config, Connection, Identity, Server, Trust, connect_from, noq};
use narrows_scenario::transport::QuicParams;
use narrows_world::application::{Act, Application};
use narrows_world::meters::{Meters, SenderStats};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{interval, sleep, sleep_until};

/// Written to a stream at a time.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
/// Data of one stream, bytes: well below what the receiver lets a stream have in flight.
const STREAM: u64 = 1 << 20;
/// Between two posts of a flow's figures.
const POST: Duration = Duration::from_millis(10);
/// Between two looks whether the run has ended.
const LOOK: Duration = Duration::from_millis(20);
/// An application that acts later than this is reported as late: several times the runtime's granularity.
const LATE: Span = Span::ms(5);
/// The name in the certificate, which is new in every run and known to no one else.
const NAME: &str = "narrows";
/// Data that may wait for acknowledgment beyond a path's own, bytes.
const BUFFERS: (u64, u64) = (1 << 20, 64 << 20);

/// One flow, as options of a QUIC connection.
#[derive(Clone, Debug)]
pub(super) struct QuicSpec {
    config: Config,
    /// Length of a full-sized packet at the IP layer, bytes.
    packet: u32,
    /// Headers that the scenario counts in a packet. An application's packet becomes the payload that is left without them.
    header: u32,
}

impl QuicSpec {
    /// `in_flight`: what the flow's path and its queues hold, bytes.
    pub(super) fn new(
        params: &QuicParams,
        controller: Option<&ControllerConfig>,
        in_flight: u64,
    ) -> Result<QuicSpec, String> {
        let default = QuicParams::default();
        if params.initial_window != default.initial_window {
            return Err("quic has no initial_window of its own in the live world; leave it out".into());
        }
        if (params.ack_every, params.max_ack_delay) != (default.ack_every, default.max_ack_delay) {
            return Err(
                "the receiver is asked for an acknowledgment of every second packet, at most 1 ms late; leave out \
                        ack_every and max_ack_delay"
                    .into(),
            );
        }
        if (params.timer_slack, params.turn) != (default.timer_slack, default.turn) {
            return Err(
                "timers are as fine as the runtime's, and a turn lasts a millisecond; leave out timer_slack and turn"
                    .into(),
            );
        }
        let modelled = |params: &QuicParams| {
            let QuicParams { ack_chance, overshoot, subflow_pacing, subflow_burst, packet_numbers, .. } = *params;
            (ack_chance, overshoot, subflow_pacing, subflow_burst, packet_numbers)
        };
        if modelled(params) != modelled(&default) {
            return Err("real connections pace and acknowledge in their own way; leave out ack_chance, overshoot, \
                        subflow_pacing, subflow_burst and packet_numbers"
                .into());
        }
        let packet = params.packet.0 as u32;
        if packet < LEAST {
            return Err(format!("quic has no packets under {LEAST} B (RFC 9000 §14)"));
        }
        let config = match controller {
            Some(controller) => Config::new().controlled_by(controller.clone()).map_err(|error| error.to_string())?,
            None => Config::new(),
        };
        let buffer = in_flight.clamp(BUFFERS.0, BUFFERS.1) as u32;
        Ok(QuicSpec { config: config.ecn(params.ecn).buffer(buffer), packet, header: params.header.0 as u32 })
    }

    /// The settings of a flow between addresses of this family.
    fn config(&self, to: SocketAddr) -> Config {
        let mtu = self.packet - sockets::ip_header(to.ip()) - UDP_HEADER;
        self.config.clone().mtu(mtu.min(u32::from(u16::MAX)) as u16)
    }
}

/// RFC 9000 §14: the smallest datagram that a path must carry, in a packet of either family.
const LEAST: u32 = 1200 + 40 + UDP_HEADER;

/// The sockets of a flow that are in its sender's namespace, one for each path.
pub(super) fn sender_sockets(making: &Making<'_>) -> Result<Vec<UdpSocket>, HostError> {
    (0..narrows_quic::PATHS).map(|_| making.udp_for_quic(SocketAddr::new(making.from, 0))).collect()
}

/// The socket of a flow in its receiver's namespace.
pub(super) fn receiver_socket(making: &Making<'_>) -> Result<UdpSocket, HostError> {
    making.udp_for_quic(making.to)
}

/// A QUIC flow, ready to start.
pub(super) struct QuicFlow {
    pub(super) number: usize,
    pub(super) application: Application,
    pub(super) start: Time,
    pub(super) stop: Time,
    pub(super) spec: QuicSpec,
    /// The file for its sender's qlog, and whether it may replace another one.
    pub(super) qlog: Option<(PathBuf, bool)>,
    /// Seed of its controller's random numbers.
    pub(super) seed: u64,
    pub(super) to: SocketAddr,
    pub(super) senders: Vec<UdpSocket>,
    pub(super) receiver: UdpSocket,
}

/// Runs all QUIC flows until the run ends.
pub(super) fn run(flows: Vec<QuicFlow>, shared: &Arc<Shared>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let tls = |error: narrows_quic::Error| io::Error::other(error.to_string());
    runtime.block_on(async {
        for flow in flows {
            let identity = Identity::self_signed(NAME).map_err(tls)?;
            let trust = Trust::only(identity.certificate()).map_err(tls)?;
            let (tell, progress) = watch::channel((0, Time::ZERO));
            let receiving = Config::new().ecn(flow.spec.config.is_ecn()).buffer(flow.spec.config.buffer_size());
            let QuicFlow { number, receiver, .. } = flow;
            let server = Server::on(receiver, &identity, &receiving).map_err(tls)?;
            tokio::spawn(receive(server, number, tell, Arc::clone(shared)));
            let config = flow.spec.config(flow.to).seed(flow.seed);
            let config =
                flow.qlog.iter().fold(config, |config, (file, replace)| config.qlog(file).replace_files(*replace));
            let sending = Sending {
                number,
                application: flow.application,
                stop: flow.stop,
                config,
                header: flow.spec.header,
                shared: Arc::clone(shared),
                progress,
            };
            tokio::spawn(sending.run(flow.start, flow.to, flow.senders, trust));
        }
        while !shared.ended.load(Ordering::Acquire) {
            sleep(LOOK).await;
        }
        Ok(())
    })
}

/// Reads what the peer sends until it stops.
async fn receive(server: Server, number: usize, tell: watch::Sender<(u64, Time)>, shared: Arc<Shared>) {
    let Some(Ok(connection)) = server.accept().await else { return };
    let tell = Arc::new(tell);
    // Ends when the sender has ended the connection.
    while let Ok(stream) = connection.quic().accept_uni().await {
        tokio::spawn(read(stream, number, Arc::clone(&tell), Arc::clone(&shared)));
    }
}

/// Reads a stream to its end.
async fn read(mut stream: noq::RecvStream, number: usize, tell: Arc<watch::Sender<(u64, Time)>>, shared: Arc<Shared>) {
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
        let (bytes, now) = (chunk.len() as u64, shared.clock.now());
        let total = shared.endpoint_stats.read(number, bytes);
        shared.messages.read(number, bytes, now);
        tell.send_replace((total, now));
    }
}

/// The sending side of a flow.
struct Sending {
    number: usize,
    application: Application,
    stop: Time,
    config: Config,
    header: u32,
    shared: Arc<Shared>,
    /// Payload read by the receiver, and when.
    progress: watch::Receiver<(u64, Time)>,
}

/// What the application has given to the connection to send.
#[derive(Default)]
struct Handed {
    /// Bytes that the stream has not taken yet; `None`: unlimited.
    unsent: Option<u64>,
    written: u64,
    /// When the transfer in progress began.
    began: Option<Time>,
}

impl Sending {
    async fn run(self, start: Time, to: SocketAddr, sockets: Vec<UdpSocket>, trust: Trust) {
        let clock = self.shared.clock;
        sleep_until(clock.instant(start).into()).await;
        let made = connect_from(sockets, to, NAME, &trust, &self.config).await;
        let connection = match made {
            Ok(connection) => connection,
            Err(error) => return self.trouble(error.to_string()),
        };
        let stream = match connection.quic().open_uni().await {
            Ok(stream) => stream,
            Err(error) => return self.trouble(error.to_string()),
        };
        self.converse(connection, stream, start).await;
    }

    fn trouble(&self, what: String) {
        self.shared.endpoint_stats.post(self.number, |report| report.trouble = Some(what));
    }

    /// Acts for the application, and fills the stream, until the flow stops.
    async fn converse(mut self, mut connection: Connection, mut stream: noq::SendStream, start: Time) {
        let clock = self.shared.clock;
        let mut handed = Handed { unsent: Some(0), ..Handed::default() };
        let mut in_stream = 0;
        let mut due = Some(start);
        let mut post = interval(POST);
        loop {
            let most = handed.unsent.map_or(ZEROS.len(), |unsent| unsent.min(ZEROS.len() as u64) as usize);
            let next = due.map_or(self.stop, |at| at.min(self.stop));
            tokio::select! {
                biased;
                () = sleep_until(clock.instant(next).into()) => {
                    if next >= self.stop {
                        break;
                    }
                    due = self.act(&mut handed, next);
                }
                _ = post.tick() => self.post(&mut connection, false),
                changed = self.progress.changed(), if handed.began.is_some() => {
                    let (total, at) = *self.progress.borrow_and_update();
                    if changed.is_ok() && total >= handed.written {
                        due = self.complete(&mut handed, at).or(due);
                    }
                }
                wrote = write(&connection, &mut stream, &mut in_stream, &ZEROS[..most]), if most > 0 => match wrote {
                    Ok(bytes) => handed.unsent = handed.unsent.map(|unsent| unsent - bytes),
                    Err(error) => {
                        self.trouble(error);
                        break;
                    }
                },
            }
        }
        // Data of the last transfer may still be on their way; what is not sent yet is discarded.
        if handed.unsent == Some(0) {
            let _ = stream.finish();
        } else {
            let _ = stream.reset(0u8.into());
        }
        self.post(&mut connection, true);
        // The connection stays until the run ends: what is in flight may still be lost and sent again.
        while connection.quic().close_reason().is_none() {
            post.tick().await;
            self.post(&mut connection, true);
        }
    }

    /// Performs the application's action; returns the time of its next one.
    fn act(&mut self, handed: &mut Handed, at: Time) -> Option<Time> {
        let late = self.shared.clock.now().since(at);
        if late > LATE {
            self.shared.endpoint_stats.post(self.number, |report| report.late = report.late.max(late));
        }
        let (act, next) = self.application.act(at);
        let bytes = match act {
            Act::Endless => None,
            Act::Transfer(bytes) => Some(bytes),
            Act::Message(payload) => Some(u64::from(payload)),
            Act::Packet(ip_len) => Some(u64::from(ip_len.saturating_sub(self.header).max(1))),
            Act::Frame | Act::Pause => return next,
        };
        handed.unsent = handed.unsent.zip(bytes).map(|(unsent, bytes)| unsent + bytes);
        handed.written += bytes.unwrap_or(0);
        match act {
            Act::Transfer(_) => handed.began = Some(at),
            Act::Message(_) => self.shared.messages.written(self.number, handed.written, at),
            _ => {}
        }
        next
    }

    /// A transfer has been read to its last byte; returns the time of the application's next action.
    fn complete(&mut self, handed: &mut Handed, at: Time) -> Option<Time> {
        let took = at.since(handed.began.take()?);
        self.shared.endpoint_stats.post(self.number, |report| report.completions.push(took));
        self.application.on_complete(at)
    }

    fn post(&self, connection: &mut Connection, stopped: bool) {
        let (clock, epoch) = (self.shared.clock, connection.epoch());
        let of_run = |at: Time| clock.at(epoch + Duration::from_nanos(at.as_ns()));
        let rtts = connection.take_rtts();
        let lost = (0..narrows_quic::PATHS as u32)
            .filter_map(|path| Some(connection.quic().path_stats(path.into())?.lost_packets))
            .sum();
        let meters = connection.meters().map(|meters| {
            let packets = |bytes: narrows_core::Bytes| bytes.0 as f64 / meters.mtu.0.max(1) as f64;
            Meters {
                cwnd: packets(meters.cwnd),
                inflight: Some(packets(meters.inflight)),
                ssthresh: meters.ssthresh.map(packets),
                pacing: meters.pacing,
                srtt: meters.srtt,
            }
        });
        let now = clock.now();
        let mut held = Vec::new();
        if let Some(events) = connection.events() {
            let verdicts = connection.new_verdicts();
            held.extend(verdicts.into_iter().map(|one| Held {
                at: of_run(one.at),
                verdict: one.verdict,
                events,
                stopped,
            }));
            held.extend(connection.verdict().map(|verdict| Held { at: now, verdict, events, stopped }));
        }
        self.shared.endpoint_stats.post(self.number, |report| {
            report.meters = meters;
            report.stats = SenderStats { retransmits: lost, timeouts: 0 };
            report.rtts.extend(rtts.iter().map(|sample| sample.rtt));
            report.subflow_rtts.extend(rtts.iter().map(|sample| (sample.path, of_run(sample.at), sample.rtt)));
            report.held.extend(held);
        });
    }
}

/// Writes to the stream, and goes on to another one when it has its share; returns how many bytes it took. Nothing is lost when this is
/// given up while it waits.
async fn write(
    connection: &Connection,
    stream: &mut noq::SendStream,
    in_stream: &mut u64,
    bytes: &[u8],
) -> Result<u64, String> {
    if *in_stream >= STREAM {
        let next = connection.quic().open_uni().await.map_err(|error| error.to_string())?;
        // It has been finished or reset only if the peer has ended the connection, which the next write reports.
        let _ = std::mem::replace(stream, next).finish();
        *in_stream = 0;
    }
    let wrote = stream.write(bytes).await.map_err(|error| error.to_string())? as u64;
    *in_stream += wrote;
    Ok(wrote)
}
