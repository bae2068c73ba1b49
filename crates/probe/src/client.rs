//! The side that asks: idle RTT, upload, download, in this order on one connection.
use crate::NAME;
use crate::answer::{Answer, PartialEnd};
use crate::error::{Code, Error};
use crate::load::{Bounds, RAMP_TIME, Session, SharedMeter};
use crate::measured::{Ecn, Measured};
use crate::message::{Message, VERSION};
use crate::steps::{Ping, Steps};
use crate::streams;
use crate::token::Token;
use narrows_core::Span;
use narrows_quic::Error as QuicError;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The server.
    pub peer: SocketAddr,
    /// Its token.
    pub token: Token,
    /// Longest duration, from the first packet to the answer, but for `watch`.
    pub span: Duration,
    /// Time for pings before the transfers, which show whether the base RTT changes in steps. Shorter times than
    /// [`SHORTEST_WATCH`](crate::SHORTEST_WATCH) show nothing.
    pub watch: Duration,
    /// Most bytes of UDP payload, both directions together.
    pub bytes: u64,
    /// Addresses of this host to send from: none for one of the system's choice, one for both flows, or one for each.
    pub from: Vec<IpAddr>,
    /// A file for the events of the upload's sender, which `narrows_quic::Trace` reads.
    pub record: Option<PathBuf>,
    /// Whether the record of an earlier probe is replaced.
    pub replace_record: bool,
}

/// What is being done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Waits for the server.
    Connecting,
    /// Pings.
    Idle,
    /// Sends.
    Upload,
    /// Receives.
    Download,
}

/// Time for pings.
const IDLE: Duration = Duration::from_secs(1);
/// Between two pings, at least.
const GAP: Duration = Duration::from_millis(50);
/// By how much each gap is longer than the one before, up to the second of these, µs. Pings at equal distances would meet a link that sends at
/// equal intervals at the same moment of each, and their lowest RTT would be that moment's.
const LONGER: u64 = 1700;
const MOST_LONGER: u64 = 10_000;
/// Pings without other traffic: the median exceeds the lowest by at most this part of it, and a few milliseconds of the hosts.
const QUIET: u32 = 5;
const UNQUIET: Duration = Duration::from_millis(4);
/// Longest transfer of a direction.
const TRANSFER: Duration = Duration::from_secs(4);
/// Kept for emptying the path after the download.
const LEFT_OVER: Duration = Duration::from_millis(1500);
/// Longest wait for an answer, on top of what was asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Measures. When it ends early, by `stop` or because the server is gone, the answer has what was known by then.
///
/// # Errors
/// When nothing was measured.
pub async fn probe(what: &Probe, mut tell: impl FnMut(Stage), stop: impl Future<Output = ()>) -> Result<Answer, Error> {
    let begun = Instant::now();
    tokio::pin!(stop);
    tell(Stage::Connecting);
    let mut session = tokio::select! {
        session = timeout(PATIENCE * 2, connect(what)) => session.map_err(|_| Error::Silent { peer: what.peer })??,
        () = &mut stop => return Err(Error::Stopped),
    };
    let mut answer = Answer { server: what.peer.to_string(), ..Answer::default() };
    let ended = tokio::select! {
        ended = timeout(what.span + what.watch + PATIENCE, work(what, &mut session, &mut answer, begun, &mut tell)) => {
            ended.unwrap_or_else(|_| Err(Error::Lost("it did not end in time: the connection stood still".into())))
        }
        () = &mut stop => Err(Error::Stopped),
    };
    // The server's reason, which the connection knows better than the stream.
    let ended = ended.map_err(|error| session.ended().unwrap_or(error));
    if answer.paths == 0 {
        answer.paths = session.connection.paths();
    }
    answer.lost_path = session.connection.lost_path();
    answer.sent_bytes = session.meter.lock().sent_bytes();
    if answer.upload.is_none() {
        answer.upload = session.measured().filter(|measured| measured.rate_mbit.is_some());
    }
    [&mut answer.upload, &mut answer.download].into_iter().flatten().for_each(Measured::mind_lateness);
    session.close(Code::Done);
    // Until the server knows, so that it has a place for the next client.
    let _ = timeout(Duration::from_millis(500), session.connection.close()).await;
    match ended {
        Ok(()) => Ok(answer),
        Err(error) if answer.upload.is_none() && answer.idle_rtt_ms.is_none() => Err(error),
        Err(error) => Ok(Answer { ended: Some(PartialEnd::of(&error)), ..answer }),
    }
}

async fn connect(what: &Probe) -> Result<Session, Error> {
    let peer = what.peer;
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    // The system knows whether there is a route at all.
    let route = UdpSocket::bind(any).and_then(|socket| socket.connect(peer));
    route.map_err(|error| Error::NoRoute { peer, error })?;
    let meter = SharedMeter::default();
    let mut config = meter.config()?;
    if let Some(file) = &what.record {
        config = config.record(file).replace_files(what.replace_record);
    }
    let trust = what.token.trust();
    let connection = match sockets(&what.from)? {
        None => narrows_quic::connect(peer, NAME, &trust, &config).await,
        Some(sockets) => narrows_quic::connect_from(sockets, peer, NAME, &trust, &config).await,
    };
    let connection = connection.map_err(|error| match error {
        QuicError::Connection { reason, .. } if reason.starts_with("no answer") => Error::Silent { peer },
        QuicError::Connection { reason, .. } if reason.contains("certificate") => Error::WrongServer { peer },
        QuicError::Connection { reason, .. } if reason.contains(Code::Full.why()) => Error::Closed(Code::Full),
        other => Error::Quic(other),
    })?;
    let control = connection.quic().open_bi().await.map_err(Error::closed)?;
    Ok(Session::new(connection, meter, control))
}

/// A socket for each flow, if it matters where they leave from.
fn sockets(from: &[IpAddr]) -> Result<Option<Vec<UdpSocket>>, Error> {
    let (Some(&first), Some(&last)) = (from.first(), from.last()) else { return Ok(None) };
    let bind = |address| UdpSocket::bind((address, 0)).map_err(|error| Error::NoSource { address, error });
    Ok(Some(vec![bind(first)?, bind(last)?]))
}

/// Whether these first bytes of a file belong to the record of a probe.
pub fn is_record(head: &[u8]) -> bool {
    narrows_quic::Trace::is_own(head)
}

async fn work(
    what: &Probe,
    session: &mut Session,
    answer: &mut Answer,
    begun: Instant,
    tell: &mut impl FnMut(Stage),
) -> Result<(), Error> {
    session.say(&Message::Hello { version: VERSION, secret: what.token.secret() }).await?;
    let (span, bytes, rate) = match session.hear(PATIENCE).await? {
        Message::Welcome { for_ms, max_bytes, rate_bps } => {
            let allowed = Duration::from_millis(for_ms);
            if what.watch > Duration::ZERO && allowed < what.span + what.watch {
                return Err(Error::Closed(Code::Time));
            }
            (what.span.min(allowed), what.bytes.min(max_bytes), rate_bps)
        }
        _ => return Err(Error::Protocol("no welcome after a hello".into())),
    };
    let left = |reserve: Duration| (span + what.watch).saturating_sub(begun.elapsed() + reserve);
    tell(Stage::Idle);
    let at_rest = IDLE.min(span / 8);
    let pings = ping(session, at_rest + what.watch).await?;
    answer.steps = Steps::of(&pings);
    // Of a path that changes, what counts is how it is just before the transfers.
    let (idle, is_idle) = idle(latest(&pings, at_rest));
    answer.idle_rtt_ms = Some(idle.as_secs_f64() * 1e3);
    let idle_us = idle.as_micros() as u64;
    session.meter.lock().idle(Span::us(idle_us));
    tell(Stage::Upload);
    session.say(&Message::Upload {}).await?;
    // Directions that are not decided take a ramp's time besides.
    let (ramp, left_over) = (RAMP_TIME.min(span / 6), LEFT_OVER.min(span / 10));
    let each = (left(left_over + ramp * 2) / 2).min(TRANSFER);
    session.send_load(Bounds { span: each, bytes: bytes / 2, rate }).await?;
    answer.upload = session.measured();
    match session.hear(PATIENCE).await? {
        Message::Received { ecn, late_ms, .. } => answer.upload.iter_mut().for_each(|upload| {
            upload.beside_others |= !is_idle;
            upload.ecn = upload.ecn.or(ecn);
            upload.note_lateness(late_ms);
        }),
        _ => return Err(Error::Protocol("no `received` after an upload".into())),
    }
    tell(Stage::Download);
    let each = left(left_over + ramp * 2).min(TRANSFER);
    if each < Duration::from_millis(500) {
        return Err(Error::Lost("the upload took all the time".into()));
    }
    session.say(&Message::Download { for_ms: each.as_millis() as u64, max_bytes: bytes / 2, idle_us }).await?;
    let quic = session.connection.quic().clone();
    session.connection.count_ecn();
    session.lateness.clear();
    let download = async {
        let mut first: Option<Instant> = None;
        streams::receive(&quic, PATIENCE, bytes / 2, |bytes| {
            answer.received_bytes = bytes;
            let seconds = first.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
            // Until the server reports, the bytes received are all that is known.
            if seconds > 1.0 {
                let rate_mbit = Some(bytes as f64 * 8.0 / seconds / 1e6);
                answer.download = Some(Measured { rate_mbit, bytes, seconds, ..Measured::default() });
            }
        })
        .await
    };
    timeout(each + PATIENCE, download).await.map_err(|_| Error::Lost("the download does not end".into()))??;
    let ecn = Ecn::of(&session.connection.ecn());
    match session.hear(PATIENCE).await? {
        Message::Report { measured } => {
            let mut measured = measured.sanitized();
            measured.note_lateness(session.lateness.p95_ms());
            measured.beside_others |= !is_idle;
            answer.download = Some(Measured { ecn: ecn.or(measured.ecn), ..measured });
        }
        _ => return Err(Error::Protocol("no report after a download".into())),
    }
    answer.paths = session.connection.paths();
    if rate.is_none() && answer.paths > 1 {
        // The figures are complete without the ramps, so what goes wrong with them is no failure.
        let _ =
            timeout(left(Duration::ZERO), ramps(session, answer, bytes / 2, || left(left_over / 2).min(RAMP_TIME * 2)))
                .await;
    }
    Ok(())
}

/// For each direction in which the flows may have queues of their own, or where it is not decided; they share the time that is left. Both come last, because a path is slow to recover from one.
async fn ramps(
    session: &mut Session,
    answer: &mut Answer,
    most: u64,
    left: impl Fn() -> Duration,
) -> Result<(), Error> {
    let is_download_open = answer.download.as_ref().is_some_and(Measured::is_open);
    let upload = answer.upload.as_mut().filter(|upload| upload.is_open());
    let has_sent = upload.is_some();
    if let Some(upload) = upload {
        session.say(&Message::Upload {}).await?;
        let span = if is_download_open { left() / 2 } else { left() };
        let bytes = most.saturating_sub(session.meter.lock().sent_bytes());
        upload.add_ramp(session.send_ramp(Bounds { span, bytes, rate: None }).await?);
        upload.note_lateness(session.lateness.p95_ms());
    }
    let Some(download) = answer.download.as_mut().filter(|download| download.is_open()) else { return Ok(()) };
    if has_sent {
        match session.hear(PATIENCE).await? {
            Message::Received { late_ms, .. } => {
                answer.upload.iter_mut().for_each(|upload| upload.note_lateness(late_ms));
            }
            _ => return Err(Error::Protocol("no `received` after an upload".into())),
        }
    }
    let (most, span) = (most.saturating_sub(answer.received_bytes), left());
    session.say(&Message::Ramp { for_ms: span.as_millis() as u64, max_bytes: most }).await?;
    let before = answer.received_bytes;
    session.lateness.clear();
    let quic = session.connection.quic().clone();
    streams::receive(&quic, PATIENCE, most, |bytes| answer.received_bytes = before + bytes).await?;
    match session.hear(PATIENCE).await? {
        Message::Report { measured } => {
            let late_ms = download.late_ms;
            let beside_others = download.beside_others;
            *download = Measured { ecn: download.ecn, beside_others, ..measured.sanitized() };
            download.note_lateness(late_ms);
            download.note_lateness(session.lateness.p95_ms());
        }
        _ => return Err(Error::Protocol("no report after a ramp".into())),
    }
    Ok(())
}

/// Pings for so long, three or more.
async fn ping(session: &mut Session, span: Duration) -> Result<Vec<Ping>, Error> {
    let begun = Instant::now();
    let (mut pings, mut n) = (Vec::new(), 0);
    while n < 3 || begun.elapsed() < span {
        let sent = Instant::now();
        session.say(&Message::Ping { n }).await?;
        match session.hear(PATIENCE).await? {
            Message::Pong { n: answered } if answered == n => pings.push((sent - begun, sent.elapsed())),
            _ => return Err(Error::Protocol("no pong after a ping".into())),
        }
        n += 1;
        let gap = GAP + Duration::from_micros(u64::from(n) * LONGER % MOST_LONGER);
        sleep(gap.saturating_sub(sent.elapsed())).await;
    }
    Ok(pings)
}

/// The times of the pings of this last part of the time, three or more.
fn latest(pings: &[Ping], span: Duration) -> Vec<Duration> {
    let last = pings.last().map_or(Duration::ZERO, |ping| ping.0);
    let from = pings.partition_point(|ping| ping.0 + span < last).min(pings.len().saturating_sub(3));
    pings[from..].iter().map(|ping| ping.1).collect()
}

/// The lowest of some pings' times, and whether the median is not much higher.
fn idle(mut times: Vec<Duration>) -> (Duration, bool) {
    times.sort_unstable();
    let lowest = times.first().copied().unwrap_or_default();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    (lowest, median <= lowest + lowest / QUIET + UNQUIET)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Credentials;
    use narrows_quic::{Config, Server};
    use std::net::Ipv4Addr;

    /// Answers each ping after three seconds.
    async fn dawdle(server: Server) -> Result<(), Error> {
        let meter = SharedMeter::default();
        let incoming = server.endpoint().accept().await.expect("a client");
        let connection = server.take_with(incoming, &meter.config()?).await?;
        let control = connection.quic().accept_bi().await.map_err(Error::closed)?;
        let mut session = Session::new(connection, meter, control);
        session.hear(PATIENCE).await?;
        session.say(&Message::Welcome { for_ms: 60_000, max_bytes: 1 << 20, rate_bps: None }).await?;
        loop {
            let Message::Ping { n } = session.hear(PATIENCE).await? else { return Ok(()) };
            sleep(Duration::from_secs(3)).await;
            session.say(&Message::Pong { n }).await?;
        }
    }

    #[test]
    fn the_idle_rtt_is_that_of_the_last_pings() {
        let ms = Duration::from_millis;
        let pings: Vec<Ping> = (0..100).map(|n| (ms(50 * n), ms(if n < 60 { 20 } else { 30 }))).collect();
        assert_eq!(idle(latest(&pings, IDLE)), (ms(30), true));
        assert_eq!((latest(&pings[..2], IDLE).len(), latest(&pings, Duration::ZERO).len()), (2, 3));
    }

    #[test]
    fn pings_that_wait_for_other_traffic_are_not_idle() {
        let of = |ms: &[u64]| idle(ms.iter().copied().map(Duration::from_millis).collect());
        assert_eq!(of(&[31, 29, 30, 29, 45]), (Duration::from_millis(29), true));
        assert_eq!(of(&[29, 63, 58, 71, 66]), (Duration::from_millis(29), false));
    }

    #[test]
    fn a_server_that_takes_its_time_is_not_waited_for() {
        let ended = crate::block_on(async {
            let credentials = Credentials::new()?;
            let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), credentials.identity(), &Config::new())?;
            let peer = server.local_addr()?;
            let serving = tokio::spawn(dawdle(server));
            let span = Duration::from_secs(1);
            let what = Probe {
                peer,
                token: credentials.token(),
                span,
                watch: Duration::ZERO,
                bytes: 1 << 20,
                from: vec![],
                record: None,
                replace_record: false,
            };
            let begun = Instant::now();
            // Three pings would take nine seconds.
            let answer = probe(&what, |_| {}, std::future::pending()).await;
            assert!(begun.elapsed() < span + PATIENCE + PATIENCE / 4, "it took {:?}", begun.elapsed());
            serving.abort();
            answer.map(drop)
        });
        let error = ended.expect("a runtime").expect_err("nothing was measured").to_string();
        assert!(error.contains("did not end in time"), "{error}");
    }
}
