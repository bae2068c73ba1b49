//! Why there is no answer, or not a whole one.
use crate::message::BadMessage;
use narrows_quic::noq::ConnectionError;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Why there is no answer, or not a whole one.
#[derive(Debug)]
pub enum Error {
    /// The request cannot be met.
    Usage(String),
    /// The system refuses something.
    Io {
        /// What was being done.
        doing: String,
        /// What the system says.
        error: io::Error,
    },
    /// This host does not have the address to send from.
    NoSource {
        /// The address.
        address: IpAddr,
        /// What the system says.
        error: io::Error,
    },
    /// No packet can be sent to the server.
    NoRoute {
        /// The server.
        peer: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Nothing came back.
    Silent {
        /// The server.
        peer: SocketAddr,
    },
    /// The server does not have the token's certificate.
    WrongServer {
        /// The server.
        peer: SocketAddr,
    },
    /// The server has closed the connection, for this reason.
    Closed(Code),
    /// The connection has ended otherwise.
    Lost(String),
    /// The other side does not keep to the protocol.
    Protocol(String),
    /// QUIC or its configuration.
    Quic(narrows_quic::Error),
    /// The caller has ended it.
    Stopped,
}

/// Why a side closes the connection, as QUIC's application error code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// All is done.
    Done = 0,
    /// The secret is not the server's.
    Token = 1,
    /// The server has as many clients as it may have.
    Full = 2,
    /// The client's time is over.
    Time = 3,
    /// More bytes than are allowed.
    Data = 4,
    /// A message that is not understood or does not belong there.
    Protocol = 5,
    /// The server ends.
    Ends = 6,
}

impl Code {
    const ALL: [Code; 7] = [Code::Done, Code::Token, Code::Full, Code::Time, Code::Data, Code::Protocol, Code::Ends];

    pub(crate) const fn why(self) -> &'static str {
        match self {
            Code::Done => "the server has closed the connection",
            Code::Token => "the server does not know this token",
            Code::Full => "the server is full: it has as many clients as it may have; try again in half a minute",
            Code::Time => "the server's time for a client is over",
            Code::Data => "the server's limit of data for a client is reached",
            Code::Protocol => "the server does not understand this version of narrows",
            Code::Ends => "the server was ended",
        }
    }
}

impl Error {
    pub(crate) fn io(doing: impl Into<String>, error: io::Error) -> Error {
        Error::Io { doing: doing.into(), error }
    }

    /// The reason why a connection is closed.
    pub(crate) fn closed(reason: ConnectionError) -> Error {
        match reason {
            ConnectionError::ApplicationClosed(close) => {
                let code = Code::ALL.into_iter().find(|&code| code as u64 == close.error_code.into_inner());
                code.map_or_else(|| Error::Lost("the server has closed the connection".into()), Error::Closed)
            }
            ConnectionError::TimedOut => Error::Lost("the server is gone: nothing came from it any more".into()),
            ConnectionError::Reset => Error::Lost("the server was started anew".into()),
            other => Error::Lost(format!("the connection has ended: {other}")),
        }
    }
}

impl From<narrows_quic::Error> for Error {
    fn from(error: narrows_quic::Error) -> Error {
        Error::Quic(error)
    }
}

impl From<BadMessage> for Error {
    fn from(error: BadMessage) -> Error {
        Error::Protocol(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(message) | Error::Lost(message) => f.write_str(message),
            Error::Io { doing, error } => write!(f, "cannot {doing}: {error}"),
            Error::NoSource { address, error } => {
                write!(f, "cannot send from {address}: {error}; allowed: an address of this host")
            }
            Error::NoRoute { peer, error } => write!(f, "no packet can be sent to {peer}: {error}"),
            Error::Silent { peer } => write!(
                f,
                "nobody answers at {peer}; does `narrows probe serve` run there, and does each firewall let UDP port {} through?",
                peer.port()
            ),
            Error::WrongServer { peer } => write!(
                f,
                "the server at {peer} is not the one of this token; take the token that it prints (--keep makes it last)"
            ),
            Error::Closed(code) => f.write_str(code.why()),
            Error::Protocol(what) => write!(f, "the other side does not keep to the protocol: {what}"),
            Error::Quic(error) => error.fmt(f),
            Error::Stopped => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
