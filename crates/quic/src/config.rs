//! How connections behave.
use crate::Error;
use crate::event::Event;
use crate::qlog::Files;
use crate::shared_control::Settings;
use crate::trace::{Recorder, Trace};
use narrows_core::congestion::{ControllerConfig, Marks};
use narrows_core::registry::{self, Registered};
use narrows_files::{Existing, OutputFile, Remedy};
use noq::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a connection sends: its controller, its paths, its limits.
///
/// ```
/// let config = narrows_quic::Config::new().controller("tonopah:on=cubic,detector=sequential")?;
/// # Ok::<(), narrows_quic::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) controller: ControllerConfig,
    fallback: ControllerConfig,
    then: Option<ControllerConfig>,
    seed: Option<u64>,
    paths: u8,
    mtu: u16,
    ecn: bool,
    pub(crate) patience: Duration,
    idle: Duration,
    buffer: u32,
    first_window: Option<u32>,
    record: Option<PathBuf>,
    qlog: Option<PathBuf>,
    replace_files: bool,
    one_path_will_do: bool,
    observer: Option<Observer>,
}

/// Hears of every event of a connection.
#[derive(Clone)]
pub(crate) struct Observer(Arc<dyn Fn(&Event) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an observer")
    }
}

impl Observer {
    pub(crate) fn tell(&self, event: &Event) {
        (self.0)(event);
    }
}

/// UDP payload of packets that every IPv6 path carries with room for tunnels; RFC 9000 §14 demands 1200.
const MTU: u16 = 1200;
/// What one stream may have in flight towards us, bytes. noq ends a connection whose stream has more than 1024 gaps, and each lost packet may
/// leave one: this is less than every second packet of that number.
const STREAM: u32 = 2 << 20;
/// What a peer may have in flight towards us, and we may keep until it is acknowledged, bytes.
const BUFFER: u32 = 32 << 20;

impl Default for Config {
    fn default() -> Config {
        Config::new()
    }
}

impl Config {
    /// One path under CUBIC.
    pub fn new() -> Config {
        Config {
            controller: ControllerConfig::Cubic(Default::default()),
            fallback: ControllerConfig::Cubic(Default::default()),
            then: None,
            seed: None,
            paths: 1,
            mtu: MTU,
            ecn: true,
            patience: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            buffer: BUFFER,
            first_window: None,
            record: None,
            qlog: None,
            replace_files: false,
            one_path_will_do: false,
            observer: None,
        }
    }

    /// The congestion controller, as text: `cubic`, `bbr`, `tonopah:on=cubic,detector=sequential`. One with a detector opens two paths.
    ///
    /// # Errors
    /// When there is no such controller or it has no such parameter, or when it needs to know how many packets were marked, which the
    /// transport does not report; the error says what is allowed.
    pub fn controller(self, text: &str) -> Result<Config, Error> {
        let config = registry::read(text).map_err(Error::Config)?;
        self.controlled_by(config)
    }

    /// The congestion controller, as a value.
    ///
    /// # Errors
    /// When it needs to know how many packets were marked.
    pub fn controlled_by(mut self, config: ControllerConfig) -> Result<Config, Error> {
        check(&config)?;
        if config.splits() {
            self.paths = 2;
        }
        self.controller = config;
        Ok(self)
    }

    /// The controller that takes over if one of two paths is lost; CUBIC unless it is set.
    ///
    /// # Errors
    /// See [`Config::controller`]; one with a detector is refused, too.
    pub fn fallback(mut self, text: &str) -> Result<Config, Error> {
        let config = registry::read(text).map_err(Error::Config)?;
        check(&config)?;
        if config.splits() {
            return Err(Error::Config(format!("{} needs two paths; a fallback has one", config.name())));
        }
        self.fallback = config;
        Ok(self)
    }

    /// The controller that [`Connection::switch`](crate::Connection::switch) changes to.
    ///
    /// # Errors
    /// See [`Config::controller`]; one with a detector is refused unless the first controller has one.
    pub fn then(mut self, text: &str) -> Result<Config, Error> {
        let config = registry::read(text).map_err(Error::Config)?;
        check(&config)?;
        if config.splits() && !self.wants_two_paths() {
            return Err(Error::Config(format!("{} needs two paths; the first controller has one", config.name())));
        }
        self.then = Some(config);
        Ok(self)
    }

    /// Seed of the controller's and detector's random numbers; a new one for each connection unless it is set.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Config {
        self.seed = Some(seed);
        self
    }

    /// Opens a second path although this side's controller does not need it: for a client whose server sends with a detector.
    #[must_use]
    pub const fn second_path(mut self) -> Config {
        self.paths = 2;
        self
    }

    /// UDP payload of full-sized packets, bytes, 1200 to 65 527. It has to fit the path: nothing is probed.
    #[must_use]
    pub const fn mtu(mut self, mtu: u16) -> Config {
        self.mtu = if mtu < MTU { MTU } else { mtu };
        self
    }

    /// Whether packets may be marked instead of dropped: ECT(0), RFC 9000 §13.4. They may, unless this says no.
    #[must_use]
    pub const fn ecn(mut self, ecn: bool) -> Config {
        self.ecn = ecn;
        self
    }

    /// How long to wait for the handshake and the second path.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Config {
        self.patience = patience;
        self
    }

    /// How long a connection lives without a packet from the peer.
    #[must_use]
    pub const fn idle(mut self, idle: Duration) -> Config {
        self.idle = idle;
        self
    }

    /// What the peer may have in flight towards this side, and this side may have unacknowledged, bytes. One stream has 2 MiB of it at most: a
    /// faster transfer takes several.
    #[must_use]
    pub const fn buffer(mut self, bytes: u32) -> Config {
        self.buffer = bytes;
        self
    }

    /// What the peer may have in flight towards this side at first, bytes, if that is less than the [buffer](Config::buffer): for a server that
    /// does not know yet who its client is. `noq`'s `set_receive_window` raises it.
    #[must_use]
    pub const fn first_window(mut self, bytes: u32) -> Config {
        self.first_window = Some(bytes);
        self
    }

    /// Records the controller's events in a file, which [`Trace`](crate::Trace) reads. A server's second connection goes to the file
    /// with `.2` after its name, and so on.
    #[must_use]
    pub fn record(mut self, file: impl AsRef<Path>) -> Config {
        self.record = Some(file.as_ref().to_owned());
        self
    }

    /// Writes what the transport does to a file, as qlog (a sequence of JSON texts, draft-ietf-quic-qlog-main-schema-13 §5). A server's second
    /// connection goes to the file with `.2` after its name, and so on.
    #[must_use]
    pub fn qlog(mut self, file: impl AsRef<Path>) -> Config {
        self.qlog = Some(file.as_ref().to_owned());
        self
    }

    /// Whether [`record`](Config::record) and [`qlog`](Config::qlog) replace files of an earlier connection. Otherwise a file that exists is an
    /// error. One that this crate did not write is an error in any case.
    #[must_use]
    pub const fn replace_files(mut self, yes: bool) -> Config {
        self.replace_files = yes;
        self
    }

    /// Where a second path is wanted and does not open within the [patience](Config::patience), or the peer speaks no multipath QUIC, the
    /// connection begins over one path under the [fallback](Config::fallback), instead of failing.
    #[must_use]
    pub const fn one_path_will_do(mut self) -> Config {
        self.one_path_will_do = true;
        self
    }

    /// Calls this for each event before the controller gets it. It runs in the connection's task, so it
    /// has to return at once.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Config {
        self.observer = Some(Observer(Arc::new(observer)));
        self
    }

    pub(crate) fn observer(&self) -> Option<Observer> {
        self.observer.clone()
    }

    pub(crate) const fn may_have_one_path(&self) -> bool {
        self.one_path_will_do
    }

    pub(crate) const fn wants_two_paths(&self) -> bool {
        self.paths == 2
    }

    /// Whether packets may be marked.
    pub const fn is_ecn(&self) -> bool {
        self.ecn
    }

    /// See [`Config::buffer`].
    pub const fn buffer_size(&self) -> u32 {
        self.buffer
    }

    pub(crate) const fn full_packet(&self) -> u16 {
        self.mtu
    }

    pub(crate) fn settings(&self) -> Settings {
        // Keys of a new hasher are random, which is all that is needed here.
        let seed = self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Settings { controller: self.controller.clone(), fallback: self.fallback.clone(), then: self.then.clone(), seed }
    }

    pub(crate) fn recorder(&self, settings: &Settings, connection: u64) -> Result<Option<Recorder>, Error> {
        let Some(file) = &self.record else { return Ok(None) };
        let mut file = file.clone();
        if connection > 1 {
            file.as_mut_os_string().push(format!(".{connection}"));
        }
        let into = new_file(&file, Existing::unless_forced(self.replace_files, Trace::is_own))?;
        Ok(Some(Recorder::new(Box::new(BufWriter::new(into)), settings)))
    }

    /// noq's settings of a client. `paths`: how many there may be.
    pub(crate) fn client_transport(&self, paths: u32) -> Result<TransportConfig, Error> {
        let mut transport = self.transport(paths)?;
        // The RTT of a packet is measured without the receiver's delay, which noq does not report to its controllers: ask for none.
        let mut acknowledgments = AckFrequencyConfig::default();
        acknowledgments.max_ack_delay(Some(Duration::from_millis(1)));
        transport.ack_frequency_config(Some(acknowledgments));
        Ok(transport)
    }

    /// noq's settings of a server. It does not ask for early acknowledgments: noq 1.4.0 puts the request into a packet of the handshake
    /// without looking whether there is room, and panics where there is none. A client's part of the handshake is short.
    pub(crate) fn server_transport(&self, paths: u32) -> Result<TransportConfig, Error> {
        self.transport(paths)
    }

    fn transport(&self, paths: u32) -> Result<TransportConfig, Error> {
        let mut transport = TransportConfig::default();
        let idle = IdleTimeout::try_from(self.idle).map_err(|_| Error::Config("idle: at most 2^62 ms".into()))?;
        transport
            .max_idle_timeout(Some(idle))
            // noq counts what arrives on a path. A receiver may send all acknowledgments over the other one, and a path that is in use
            // would time out. `watch` leaves paths that are lost.
            .default_path_max_idle_timeout(None)
            .default_path_keep_alive_interval(Some(self.idle / 3))
            .initial_mtu(self.mtu)
            .mtu_discovery_config(None::<MtuDiscoveryConfig>)
            .stream_receive_window(VarInt::from_u32(self.buffer.min(STREAM)))
            .receive_window(VarInt::from_u32(self.first_window.map_or(self.buffer, |first| first.min(self.buffer))))
            .send_window(u64::from(self.buffer));
        if paths > 1 {
            transport.max_concurrent_multipath_paths(paths);
        }
        if let Some(file) = &self.qlog {
            transport.qlog_factory(Arc::new(Files::new(file, self.replace_files)?));
        }
        Ok(transport)
    }
}

/// Makes a file for what a connection reports as time goes on.
pub(crate) fn new_file(path: &Path, existing: Existing) -> Result<File, Error> {
    const REMEDY: Remedy<'_> = Remedy { other: "file", force: "`Config::replace_files`" };
    let checked = OutputFile::check(path, existing).map_err(|why| why.into_io(REMEDY));
    checked.and_then(|file| file.create()).map_err(Error::io(format!("write {}", path.display())))
}

fn check(config: &ControllerConfig) -> Result<(), Error> {
    match config.marks() {
        Marks::Classic => Ok(()),
        Marks::Counted | Marks::Scalable => Err(Error::Config(format!(
            "{} answers the number of marked packets, and the transport reports only that there were some",
            config.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_that_cannot_work_are_refused_with_a_reason() {
        let said = |text| match Config::new().controller(text) {
            Ok(config) => format!("{} path(s)", if config.wants_two_paths() { 2 } else { 1 }),
            Err(error) => error.to_string(),
        };
        assert_eq!(said("cubic"), "1 path(s)");
        assert_eq!(said("tonopah:on=cubic,detector=sequential"), "2 path(s)");
        assert_eq!(
            said("dctcp"),
            "dctcp answers the number of marked packets, and the transport reports only that there were some"
        );
        assert!(said("cubik").starts_with("no controller `cubik`; allowed: new_reno | cubic"));
        assert!(said("cubic:alpha=1").starts_with("parameters of cubic: "));
        let then = Config::new().then("tonopah").map(drop).map_err(|error| error.to_string());
        assert_eq!(then, Err("tonopah needs two paths; the first controller has one".into()));
        let fallback = Config::new().fallback("tonopah").map(drop).map_err(|error| error.to_string());
        assert_eq!(fallback, Err("tonopah needs two paths; a fallback has one".into()));
    }
}
