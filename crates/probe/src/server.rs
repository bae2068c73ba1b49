//! The side that waits. It answers nobody who has not proved that it receives at its address, and bounds what a client may ask for. A client
//! takes one of the places when it has shown the secret; before that it is one of the strangers, who are bounded in number, time and memory.
use crate::error::{Code, Error};
use crate::load::{Bounds, Session, SharedMeter, widen};
use crate::measured::{Ecn, Measured};
use crate::message::{Message, VERSION};
use crate::strangers::{Stranger, Strangers};
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
    /// A client has shown the secret and is served.
    Client(SocketAddr),
    /// A client is gone; with the reason, unless all was done.
    Gone(SocketAddr, Option<Error>),
    /// A client was refused, because the server is full.
    Refused(SocketAddr),
}

/// A client that has not said hello by then is dropped.
const HELLO: Duration = Duration::from_secs(3);
/// So is one whose handshake, second path and hello take longer together.
const ADMISSION: Duration = Duration::from_secs(9);
/// So is one that says nothing for so long.
const SILENCE: Duration = Duration::from_secs(12);
/// No RTT is longer, µs.
const MINUTE: u64 = 60_000_000;

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
    let (places, strangers) = (Arc::new(Semaphore::new(limits.clients)), Arc::new(Strangers::default()));
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
        let stranger = strangers.enter(peer.ip());
        let (server, log, token, places) =
            (Arc::clone(&server), Arc::clone(&log), Arc::clone(&token), Arc::clone(&places));
        tasks.spawn(async move {
            let ended = match admitted(&server, incoming, &token, stranger).await {
                Ok(session) => client(session, peer, limits, &places, log.as_ref()).await,
                Err(error) => Err(error),
            };
            log(match ended {
                Err(Error::Closed(Code::Full)) => Serving::Refused(peer),
                ended => Serving::Gone(peer, ended.err()),
            });
        });
    }
    server.endpoint().close(VarInt::from_u32(Code::Ends as u32), Code::Ends.why().as_bytes());
    // So that clients hear of it.
    let _ = timeout(Duration::from_millis(100), server.endpoint().wait_idle()).await;
    Ok(())
}

/// The session of a client that has shown the secret.
async fn admitted(server: &Server, incoming: Incoming, token: &Token, stranger: Stranger) -> Result<Session, Error> {
    tokio::select! {
        // The connection is dropped without a word: there may be thousands.
        () = stranger.pushed_out() => Err(Error::Lost("others came without end; the oldest had to go".into())),
        heard = timeout(ADMISSION, hello(server, incoming, token)) => {
            heard.unwrap_or_else(|_| Err(Error::Lost("the client takes too long to say hello".into())))
        }
    }
}

async fn hello(server: &Server, incoming: Incoming, token: &Token) -> Result<Session, Error> {
    let meter = SharedMeter::default();
    let connection = server.take_with(incoming, &meter.config_of_strangers()?).await?;
    let control = timeout(HELLO, connection.quic().accept_bi()).await;
    let control = control.map_err(|_| Error::Lost("the client asks for nothing".into()))?.map_err(Error::closed)?;
    let mut session = Session::new(connection, meter, control);
    let refused = match session.hear(HELLO).await {
        Ok(Message::Hello { version, .. }) if version != VERSION => Error::Closed(Code::Protocol),
        Ok(Message::Hello { secret, .. }) if token.is_secret(&secret) => return Ok(session),
        Ok(Message::Hello { .. }) => Error::Closed(Code::Token),
        Ok(_) => Error::Protocol("a client says hello first".into()),
        Err(error) => error,
    };
    close(&session, &refused);
    Err(refused)
}

/// Serves a client, if there is a place.
async fn client(
    mut session: Session,
    peer: SocketAddr,
    limits: Limits,
    places: &Semaphore,
    log: &(impl Fn(Serving) + Sync),
) -> Result<(), Error> {
    let served = match places.try_acquire() {
        Err(_) => Err(Error::Closed(Code::Full)),
        Ok(_place) => {
            log(Serving::Client(peer));
            widen(&session.connection);
            let served = timeout(limits.span, answer(&mut session, limits)).await;
            served.unwrap_or(Err(Error::Closed(Code::Time)))
        }
    };
    match &served {
        Ok(()) => session.close(Code::Done),
        Err(error) => close(&session, error),
    }
    served
}

/// Says why, as far as the other side needs to know.
fn close(session: &Session, why: &Error) {
    session.close(match why {
        Error::Closed(code) => *code,
        Error::Protocol(_) => Code::Protocol,
        _ => Code::Done,
    });
}

async fn answer(session: &mut Session, limits: Limits) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NAME;
    use crate::client::{Probe, probe};
    use std::future::pending;
    use std::net::Ipv4Addr;
    use tokio::sync::mpsc::unbounded_channel;

    /// Serves one client at a time. Returns the address and the token.
    async fn served() -> Result<(SocketAddr, Token), Error> {
        let credentials = Credentials::new()?;
        let token = credentials.token();
        let (tell, mut told) = unbounded_channel();
        let log = move |event| {
            if let Serving::At(at) = event {
                let _ = tell.send(at);
            }
        };
        tokio::spawn(async move {
            let limits = Limits { clients: 1, ..Limits::default() };
            serve((Ipv4Addr::LOCALHOST, 0).into(), &credentials, limits, log, pending()).await
        });
        Ok((told.recv().await.expect("it listens"), token))
    }

    #[test]
    fn strangers_take_no_place_and_leave_little_behind() {
        let ended = crate::block_on(async {
            let (peer, token) = served().await?;
            let mut crowd = Vec::new();
            for _ in 0..12 {
                crowd.push(narrows_quic::connect(peer, NAME, &token.trust(), &Config::new()).await?);
            }
            // One of them sends all that it may, and says nothing.
            let mut stream = crowd[0].quic().open_uni().await.map_err(Error::closed)?;
            let mut sent = 0;
            while let Ok(Ok(written)) = timeout(Duration::from_millis(300), stream.write(&[0; 4096])).await {
                sent += written;
            }
            assert!(sent <= 16 << 10, "{sent} bytes are kept for a stranger");
            let span = Duration::from_secs(2);
            let what = Probe {
                peer,
                token,
                span,
                watch: Duration::ZERO,
                bytes: 1 << 20,
                from: vec![],
                record: None,
                replace_record: false,
            };
            probe(&what, |_| {}, pending()).await
        });
        let answer = ended.expect("a runtime").expect("the owner of the secret is let in");
        assert!(answer.idle_rtt_ms.is_some(), "{answer:?}");
    }
}
