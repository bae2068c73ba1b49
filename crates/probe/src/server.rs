//! The side that waits. It answers nobody who has not proved that it receives at its address, and bounds what a client may ask for.
use crate::error::{Code, Error};
use crate::load::{Bounds, Session, SharedMeter};
use crate::measured::{Ecn, Measured};
use crate::message::{Message, VERSION};
use crate::streams;
use crate::token::{Credentials, Token};
use narrows_core::Span;
use narrows_quic::noq::{Incoming, VarInt};
use narrows_quic::{Config, Server};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What a server allows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// Clients at a time.
    pub clients: usize,
    /// Rate of each direction of a client, bit/s; `None`: any.
    pub rate: Option<u64>,
    /// Length of a client's connection.
    pub span: Duration,
    /// Bytes of UDP payload of a client, both directions together.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { clients: 4, rate: None, span: Duration::from_secs(30), bytes: 400_000_000 }
    }
}

/// Something that happens at a server, for its log.
#[derive(Debug)]
pub enum Serving {
    /// It listens there.
    At(SocketAddr),
    /// A client has come in.
    Client(SocketAddr),
    /// A client is gone; with the reason, unless all was done.
    Gone(SocketAddr, Option<Error>),
    /// A client was refused, because the server is full.
    Refused(SocketAddr),
}

/// A client that has not said hello by then is dropped.
const HELLO: Duration = Duration::from_secs(3);
/// So is one that says nothing for so long.
const SILENCE: Duration = Duration::from_secs(12);
/// No RTT is longer, µs.
const MINUTE: u64 = 60_000_000;
/// Beyond this many refusals at a time there is no explanation.
const REFUSALS: usize = 16;

/// Serves until `stop` is ready, or there is no socket any more.
///
/// # Errors
/// When the address cannot be had.
pub async fn serve(
    at: SocketAddr,
    credentials: &Credentials,
    limits: Limits,
    log: impl Fn(Serving) + Send + Sync + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let server = Arc::new(Server::bind(at, credentials.identity(), &Config::new())?);
    let log = Arc::new(log);
    log(Serving::At(server.local_addr()?));
    let token = Arc::new(credentials.token());
    let (places, refusals) = (Arc::new(Semaphore::new(limits.clients)), Arc::new(Semaphore::new(REFUSALS)));
    let mut tasks = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let incoming = tokio::select! {
            () = &mut stop => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            incoming = server.endpoint().accept() => incoming,
        };
        let Some(incoming) = incoming else { break };
        if !incoming.remote_address_validated() {
            // It may fail only for addresses that are validated.
            let _ = incoming.retry();
            continue;
        }
        let peer = incoming.remote_address();
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let (server, log, token) = (Arc::clone(&server), Arc::clone(&log), Arc::clone(&token));
            tasks.spawn(async move {
                log(Serving::Client(peer));
                let ended = timeout(limits.span + HELLO, client(&server, incoming, &token, limits)).await;
                log(Serving::Gone(peer, ended.unwrap_or(Err(Error::Closed(Code::Time))).err()));
                drop(place);
            });
        } else if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
            log(Serving::Refused(peer));
            tasks.spawn(async move {
                refuse(incoming).await;
                drop(place);
            });
        } else {
            incoming.refuse();
        }
    }
    server.endpoint().close(VarInt::from_u32(Code::Ends as u32), Code::Ends.why().as_bytes());
    // So that clients hear of it.
    let _ = timeout(Duration::from_millis(100), server.endpoint().wait_idle()).await;
    Ok(())
}

/// Completes the handshake, so that the reason can be said.
async fn refuse(incoming: Incoming) {
    let Ok(connecting) = incoming.accept() else { return };
    if let Ok(Ok(connection)) = timeout(HELLO, connecting).await {
        connection.close(VarInt::from_u32(Code::Full as u32), Code::Full.why().as_bytes());
        let _ = timeout(HELLO, connection.closed()).await;
    }
}

async fn client(server: &Server, incoming: Incoming, token: &Token, limits: Limits) -> Result<(), Error> {
    let meter = SharedMeter::default();
    let connection = server.take_with(incoming, &meter.config()?).await?;
    let control = timeout(HELLO, connection.quic().accept_bi()).await;
    let control = control.map_err(|_| Error::Lost("the client asks for nothing".into()))?.map_err(Error::closed)?;
    let mut session = Session::new(connection, meter, control);
    let served = timeout(limits.span, answer(&mut session, token, limits)).await;
    let served = served.unwrap_or(Err(Error::Closed(Code::Time)));
    match &served {
        Ok(()) => session.close(Code::Done),
        Err(Error::Closed(code)) => session.close(*code),
        Err(Error::Protocol(_)) => session.close(Code::Protocol),
        Err(_) => session.close(Code::Done),
    }
    served
}

async fn answer(session: &mut Session, token: &Token, limits: Limits) -> Result<(), Error> {
    match session.hear(HELLO).await? {
        Message::Hello { version, .. } if version != VERSION => return Err(Error::Closed(Code::Protocol)),
        Message::Hello { secret, .. } if token.is_secret(&secret) => {}
        Message::Hello { .. } => return Err(Error::Closed(Code::Token)),
        _ => return Err(Error::Protocol("a client says hello first".into())),
    }
    let for_ms = limits.span.as_millis() as u64;
    session.say(&Message::Welcome { for_ms, max_bytes: limits.bytes, rate_bps: limits.rate }).await?;
    let mut left = limits.bytes;
    let (mut uploads, mut downloads) = (0, 0);
    let mut measured = Measured::default();
    loop {
        let message = match session.hear(SILENCE).await {
            // The client has said goodbye.
            Err(Error::Closed(Code::Done)) => return Ok(()),
            other => other?,
        };
        match message {
            Message::Ping { n } => session.say(&Message::Pong { n }).await?,
            Message::Upload {} if uploads < 2 => {
                uploads += 1;
                let quic = session.connection.quic().clone();
                session.connection.count_ecn();
                session.lateness.clear();
                let bytes = streams::receive(&quic, HELLO, left, |_| {}).await?;
                left -= bytes.min(left);
                let ecn = Ecn::of(&session.connection.ecn());
                session.say(&Message::Received { bytes, ecn, late_ms: session.lateness.p95_ms() }).await?;
            }
            Message::Download { for_ms, max_bytes, idle_us } if downloads == 0 => {
                downloads += 1;
                let bytes = max_bytes.min(left);
                session.meter.lock().idle(Span::us(idle_us.min(MINUTE)));
                let span = Duration::from_millis(for_ms).min(limits.span);
                session.send_load(Bounds { span, bytes, rate: limits.rate }).await?;
                measured = session.measured().unwrap_or_default();
                left -= session.meter.lock().sent_bytes().min(left);
                session.say(&Message::Report { measured: Box::new(measured.clone()) }).await?;
            }
            // A ramp overloads the path, so a server with a limit has none.
            Message::Ramp { for_ms, max_bytes } if downloads == 1 => {
                downloads += 1;
                let (bytes, span) = (max_bytes.min(left), Duration::from_millis(for_ms).min(limits.span));
                if limits.rate.is_none() {
                    let verdict = session.send_ramp(Bounds { span, bytes, rate: None }).await?;
                    measured.add_ramp(verdict);
                    measured.note_lateness(session.lateness.p95_ms());
                }
                session.say(&Message::Report { measured: Box::new(measured.clone()) }).await?;
            }
            _ => return Err(Error::Protocol("a message that does not belong there".into())),
        }
    }
}
