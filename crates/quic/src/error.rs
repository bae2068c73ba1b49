//! What can go wrong with a connection.
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why there is no connection, or not the one that was asked for.
#[derive(Debug)]
pub enum Error {
    /// The configuration asks for what this transport cannot do, or is not understood.
    Config(String),
    /// A socket, or the file of a trace.
    Io {
        /// What was being done.
        doing: String,
        /// What the system says.
        error: io::Error,
    },
    /// Certificates or keys.
    Tls(String),
    /// No connection came about, or it ended.
    Connection {
        /// The peer.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
    /// The peer does not speak multipath QUIC, which a controller with a detector needs.
    NeedsMultipath {
        /// The peer.
        peer: SocketAddr,
    },
    /// The second path did not open: its packets or the answers do not get through.
    SecondPath {
        /// The peer.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |error| Error::Io { doing, error }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(what) => f.write_str(what),
            Error::Io { doing, error } => write!(f, "cannot {doing}: {error}"),
            Error::Tls(what) => write!(f, "TLS: {what}"),
            Error::Connection { peer, reason } => write!(f, "no connection with {peer}: {reason}"),
            Error::NeedsMultipath { peer } => write!(
                f,
                "{peer} does not speak multipath QUIC, which a controller with two subflows needs; take one with a single path, such as \
                 cubic"
            ),
            Error::SecondPath { peer, reason } => write!(f, "no second path to {peer}: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
