//! Bulk transfers over a connection, and what both sides need for one.
use crate::error::{Code, Error};
use crate::lateness::Lateness;
use crate::measured::Measured;
use crate::message::{Decoder, Message};
use crate::meter::Meter;
use crate::streams::LoadStreams;
use narrows_core::Time;
use narrows_core::detector::{Finding, Verdict};
use narrows_quic::noq::{RecvStream, SendStream, VarInt};
use narrows_quic::{Config, Connection};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The detector only watches, so that CUBIC fills the queue as it does without one.
const CONTROLLER: &str = "tonopah:on=cubic,fair=nothing,detector=sequential";
/// The second test, for directions that the first one leaves open: it doubles two rates until one subflow's packets wait or are lost.
const RAMP: &str = "startup:shared=cubic,fair=cubic,detector=startup_sprt";
/// Time for a ramp. Its test takes 20 round trips, and beside other traffic they are several times as long as when the path is idle.
pub(crate) const RAMP_TIME: Duration = Duration::from_millis(2500);
/// Data are sent for this long after the ramp has decided.
const SETTLING: Duration = Duration::from_millis(400);
/// Longest wait for the handshake, and as long again for the second path.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
/// A peer that sends nothing for so long is gone.
const IDLE: Duration = Duration::from_secs(5);
/// What may be unacknowledged: 1 Gbit/s over 130 ms.
const BUFFER: u32 = 16 << 20;
/// What may wait unread of a client that has not shown the secret, bytes. Its hello has two hundred.
const STRANGERS_BUFFER: u32 = 16 << 10;
/// Written at a time.
const CHUNK: usize = 32 << 10;
/// Between two looks at what was sent.
const LOOK: Duration = Duration::from_millis(2);
/// Part of the limit for data that may be written; the rest is for headers and for what is sent twice…
const WRITTEN: f64 = 0.8;
/// …and part of it at which the transfer ends; the rest is for messages and for probes of a silent path.
const SENT: f64 = 0.9;
/// The same as `WRITTEN` for a ramp, which overloads the path: most of what it writes may be sent twice.
const RAMP_WRITTEN: f64 = 0.4;
/// IP and UDP headers.
const HEADER_V4: u32 = 28;
const HEADER_V6: u32 = 48;

/// A meter that a connection's events go to.
#[derive(Clone, Default)]
pub(crate) struct SharedMeter(Arc<Mutex<Meter>>);

impl SharedMeter {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Meter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a server configures connections whose clients it does not know yet: little may wait unread. [`widen`] lifts that.
    pub(crate) fn config_of_strangers(&self) -> Result<Config, Error> {
        Ok(self.config()?.first_window(STRANGERS_BUFFER))
    }

    /// How both sides configure their connections.
    pub(crate) fn config(&self) -> Result<Config, Error> {
        let meter = self.clone();
        let config = Config::new().controller(CONTROLLER)?.then(RAMP)?.one_path_will_do().patience(PATIENCE).idle(IDLE);
        Ok(config.buffer(BUFFER).observe(move |event| meter.lock().apply(event)))
    }
}

/// A connection, its meter, and its control stream.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) meter: SharedMeter,
    send: SendStream,
    receive: RecvStream,
    decoder: Decoder,
    pub(crate) lateness: Lateness,
}

/// Limits of a bulk transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) span: Duration,
    /// UDP payload.
    pub(crate) bytes: u64,
    /// bit/s.
    pub(crate) rate: Option<u64>,
}

/// Lets a client that has shown the secret send as much as both sides agree on.
pub(crate) fn widen(connection: &Connection) {
    connection.quic().set_receive_window(VarInt::from_u32(BUFFER));
}

impl Session {
    pub(crate) fn new(connection: Connection, meter: SharedMeter, control: (SendStream, RecvStream)) -> Session {
        let (send, receive) = control;
        // Control messages go before the transfer's data.
        let _ = send.set_priority(1);
        Session { connection, meter, send, receive, decoder: Decoder::default(), lateness: Lateness::watch() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_ns(self.connection.epoch().elapsed().as_nanos() as u64)
    }

    pub(crate) async fn say(&mut self, message: &Message) -> Result<(), Error> {
        let bytes = message.encode()?;
        let written = self.send.write_all(&bytes).await;
        written.map_err(|error| self.ended().unwrap_or_else(|| Error::Lost(format!("cannot send a message: {error}"))))
    }

    /// The next message; an error if there is none within that time.
    pub(crate) async fn hear(&mut self, within: Duration) -> Result<Message, Error> {
        let next = async {
            loop {
                if let Some(message) = self.decoder.next_message()? {
                    return Ok(message);
                }
                match self.receive.read_chunk(64 << 10).await {
                    Ok(Some(chunk)) => self.decoder.push(&chunk),
                    Ok(None) => return Err(Error::Protocol("the control stream has ended".into())),
                    Err(error) => {
                        let ended = self.connection.quic().close_reason().map(Error::closed);
                        return Err(ended.unwrap_or_else(|| Error::Lost(format!("cannot read a message: {error}"))));
                    }
                }
            }
        };
        let late = || Error::Lost(format!("no answer within {} s", within.as_secs_f64()));
        timeout(within, next).await.unwrap_or_else(|_| Err(late()))
    }

    /// Why the connection has ended, if it has.
    pub(crate) fn ended(&self) -> Option<Error> {
        self.connection.quic().close_reason().map(Error::closed)
    }

    pub(crate) fn close(&self, code: Code) {
        self.connection.quic().close(VarInt::from_u32(code as u32), code.why().as_bytes());
    }

    /// Sends as much as the controller allows, and waits until the path is empty again.
    pub(crate) async fn send_load(&mut self, bounds: Bounds) -> Result<(), Error> {
        let mut streams = LoadStreams::open(self.connection.quic()).await?;
        let sent_before = self.meter.lock().sent_bytes();
        let from = self.now();
        self.meter.lock().begin(from);
        let chunk = vec![0x5a; CHUNK];
        let (may_write, may_send) = ((bounds.bytes as f64 * WRITTEN) as u64, (bounds.bytes as f64 * SENT) as u64);
        self.connection.allow(Some(may_send));
        let mut written = 0;
        let mut is_capped = false;
        self.lateness.clear();
        let (mut credit, mut last) = (CHUNK as f64, Duration::ZERO);
        loop {
            let elapsed = Duration::from_nanos(self.now().since(from).as_ns());
            let sent = self.meter.lock().sent_bytes() - sent_before;
            if elapsed >= bounds.span || sent >= may_send {
                break;
            }
            if written >= may_write {
                // The rest of what was written is still to be sent.
                streams.finish();
                if timeout(LOOK, streams.arrived()).await.is_ok() {
                    break;
                }
                continue;
            }
            // What was not sent in time is not made up for.
            let paced = bounds.rate.map(|rate| {
                credit = (credit + rate as f64 / 8.0 * (elapsed - last).as_secs_f64()).min(CHUNK as f64);
                last = elapsed;
                credit as u64
            });
            let room = paced.unwrap_or(u64::MAX).min(may_write - written);
            if room < 1200.min(may_write - written) {
                // All that was written has been sent: the path would carry more.
                is_capped |= sent >= written;
                sleep(Duration::from_millis(1)).await;
                continue;
            }
            self.take_verdicts();
            let part = &chunk[..(room as usize).min(CHUNK)];
            match timeout(LOOK, streams.write(part)).await {
                Ok(Ok(bytes)) => {
                    written += bytes as u64;
                    credit -= bytes as f64;
                }
                Ok(Err(error)) => {
                    return Err(self.ended().unwrap_or_else(|| Error::Lost(format!("cannot send: {error}"))));
                }
                Err(_) => {}
            }
        }
        self.take_verdicts();
        self.connection.allow(None);
        streams.reset();
        self.end_load(is_capped);
        self.drain().await;
        Ok(())
    }

    fn end_load(&self, is_capped: bool) {
        let now = self.now();
        let mut meter = self.meter.lock();
        meter.end(now);
        if is_capped {
            meter.cap();
        }
    }

    /// Sends under the ramp until its test decides; returns its verdict. The path is still full then.
    pub(crate) async fn send_ramp(&mut self, bounds: Bounds) -> Result<Option<Verdict>, Error> {
        self.connection.switch();
        self.lateness.clear();
        let mut streams = LoadStreams::open(self.connection.quic()).await?;
        let (from, sent_before) = (self.now(), self.meter.lock().sent_bytes());
        let chunk = vec![0x5a; CHUNK];
        let decided = |verdict: Option<Verdict>| {
            verdict.is_none_or(|verdict| verdict.finding.judges() || verdict.finding == Finding::Apart)
        };
        let elapsed = || Duration::from_nanos(self.now().since(from).as_ns());
        let mut end = bounds.span;
        let mut has_decided = false;
        let (may_write, may_send) = ((bounds.bytes as f64 * RAMP_WRITTEN) as u64, (bounds.bytes as f64 * SENT) as u64);
        self.connection.allow(Some(may_send));
        let mut written = 0;
        while elapsed() < end && self.meter.lock().sent_bytes() - sent_before < may_send {
            if !has_decided && decided(self.connection.verdict()) {
                // What follows the overload shows what was lost in it. Without it, only a timeout would.
                (has_decided, end) = (true, end.min(elapsed() + SETTLING));
            }
            if written >= may_write {
                sleep(LOOK).await;
                continue;
            }
            let part = &chunk[..CHUNK.min((may_write - written) as usize)];
            match timeout(LOOK, streams.write(part)).await {
                Ok(Ok(bytes)) => written += bytes as u64,
                Ok(Err(error)) => {
                    return Err(self.ended().unwrap_or_else(|| Error::Lost(format!("cannot send: {error}"))));
                }
                Err(_) => {}
            }
        }
        let verdict = self.connection.verdict();
        self.connection.allow(None);
        streams.reset();
        Ok(verdict)
    }

    /// Waits until what was sent has arrived or is lost, at most for two seconds.
    async fn drain(&self) {
        for _ in 0..1000 {
            sleep(LOOK).await;
            if self.connection.meters().is_none_or(|meters| meters.inflight.0 == 0) {
                return;
            }
        }
    }

    /// Hands the verdicts since the last call to the meter.
    fn take_verdicts(&mut self) {
        if let Some(verdict) = self.connection.verdict() {
            let at = self.now();
            self.meter.lock().look(at, verdict);
        }
    }

    /// The figures of what this side has sent.
    pub(crate) fn measured(&self) -> Option<Measured> {
        let header = match self.connection.quic().path(0u32.into()).and_then(|path| path.remote_address().ok()) {
            Some(SocketAddr::V6(address)) if address.ip().to_ipv4_mapped().is_none() => HEADER_V6,
            _ => HEADER_V4,
        };
        // Asked first, because the watcher of the paths reports to the meter.
        let (now, paths) = (self.now(), self.connection.paths());
        let measured = self.meter.lock().measured(now, header, paths)?;
        Some(Measured { late_ms: self.lateness.p95_ms(), ..measured })
    }
}
