//! A controller's input, as values that are written to a file and read again.
//!
//! A recorded connection is a line with the controller and its settings, and a line for each event. [`Trace`](crate::Trace) reads it; played back, the
//! events lead to the same windows and verdicts, since controllers and detectors know nothing else.
use narrows_core::Time;
use std::fmt;
use std::str::FromStr;

/// What happened on a connection, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, since the connection was made.
    pub at: Time,
    /// What.
    pub what: What,
}

/// What happened on a connection. Paths count from 0, packet numbers are a path's own, lengths are bytes of UDP payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The handshake is complete, after this RTT (ns), and the second path open if there is to be one. What was sent before does not count.
    Begin {
        /// RTT of the handshake, ns.
        rtt: u64,
        /// Length of a full-sized packet.
        mtu: u32,
        /// Whether both paths may carry data.
        both: bool,
    },
    /// A packet that counts against the window was sent.
    Sent {
        /// The path.
        path: u8,
        /// Its number.
        number: u64,
        /// Its length.
        bytes: u32,
    },
    /// A packet was acknowledged.
    Acknowledged {
        /// The path.
        path: u8,
        /// Its number.
        number: u64,
        /// Its length.
        bytes: u32,
    },
    /// The acknowledgments that came together end here.
    EndAcks {
        /// The path.
        path: u8,
        /// In flight on the path, as the transport counts.
        inflight: u64,
        /// Had the application nothing to send?
        app_limited: bool,
        /// The largest number acknowledged so far.
        largest: u64,
    },
    /// A packet was declared lost.
    Lost {
        /// The path.
        path: u8,
        /// Its number.
        number: u64,
        /// Its length.
        bytes: u32,
    },
    /// What was lost or marked counts as congestion.
    Congestion {
        /// The path.
        path: u8,
        /// Were all packets lost for three probe timeouts (RFC 9002 §7.6)?
        persistent: bool,
        /// Whether it was a mark.
        ecn: bool,
    },
    /// From now on this path alone carries data.
    Only {
        /// The path that is left.
        path: u8,
    },
    /// The second controller takes over.
    Switch,
    /// Time has passed.
    Timer,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.as_ns();
        let bit = u8::from;
        match self.what {
            What::Begin { rtt, mtu, both } => write!(f, "{at} begin {rtt} {mtu} {}", bit(both)),
            What::Sent { path, number, bytes } => write!(f, "{at} sent {path} {number} {bytes}"),
            What::Acknowledged { path, number, bytes } => write!(f, "{at} ack {path} {number} {bytes}"),
            What::EndAcks { path, inflight, app_limited, largest } => {
                write!(f, "{at} end {path} {inflight} {} {largest}", bit(app_limited))
            }
            What::Lost { path, number, bytes } => write!(f, "{at} lost {path} {number} {bytes}"),
            What::Congestion { path, persistent, ecn } => {
                write!(f, "{at} congestion {path} {} {}", bit(persistent), bit(ecn))
            }
            What::Only { path } => write!(f, "{at} only {path}"),
            What::Switch => write!(f, "{at} switch"),
            What::Timer => write!(f, "{at} timer"),
        }
    }
}

/// A line that is no event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoEvent;

impl FromStr for Event {
    type Err = NoEvent;

    fn from_str(line: &str) -> Result<Event, NoEvent> {
        let mut words = line.split_ascii_whitespace();
        let at = Time::from_ns(number(words.next())?);
        let kind = words.next().ok_or(NoEvent)?;
        let what = match kind {
            "begin" => {
                What::Begin { rtt: number(words.next())?, mtu: number(words.next())?, both: flag(words.next())? }
            }
            "sent" => {
                What::Sent { path: path(words.next())?, number: number(words.next())?, bytes: number(words.next())? }
            }
            "ack" => What::Acknowledged {
                path: path(words.next())?,
                number: number(words.next())?,
                bytes: number(words.next())?,
            },
            "end" => What::EndAcks {
                path: path(words.next())?,
                inflight: number(words.next())?,
                app_limited: flag(words.next())?,
                largest: number(words.next())?,
            },
            "lost" => {
                What::Lost { path: path(words.next())?, number: number(words.next())?, bytes: number(words.next())? }
            }
            "congestion" => What::Congestion {
                path: path(words.next())?,
                persistent: flag(words.next())?,
                ecn: flag(words.next())?,
            },
            "only" => What::Only { path: path(words.next())? },
            "switch" => What::Switch,
            "timer" => What::Timer,
            _ => return Err(NoEvent),
        };
        words.next().is_none().then_some(Event { at, what }).ok_or(NoEvent)
    }
}

fn number<T: FromStr>(word: Option<&str>) -> Result<T, NoEvent> {
    word.and_then(|word| word.parse().ok()).ok_or(NoEvent)
}

fn path(word: Option<&str>) -> Result<u8, NoEvent> {
    number(word).and_then(|path: u8| (usize::from(path) < crate::PATHS).then_some(path).ok_or(NoEvent))
}

fn flag(word: Option<&str>) -> Result<bool, NoEvent> {
    match word {
        Some("0") => Ok(false),
        Some("1") => Ok(true),
        _ => Err(NoEvent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_survives_being_written() {
        let all = [
            What::Begin { rtt: 20_000_000, mtu: 1200, both: true },
            What::Sent { path: 1, number: 7, bytes: 1200 },
            What::Acknowledged { path: 0, number: 7, bytes: 1200 },
            What::EndAcks { path: 1, inflight: 0, app_limited: true, largest: u64::MAX },
            What::Lost { path: 0, number: 9, bytes: 40 },
            What::Congestion { path: 1, persistent: false, ecn: true },
            What::Only { path: 1 },
            What::Switch,
            What::Timer,
        ];
        for what in all {
            let event = Event { at: Time::from_ns(3_000_000_001), what };
            assert_eq!(event.to_string().parse(), Ok(event));
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in
            ["", "5", "x timer", "5 sent 2 0 0", "5 sent 0 0", "5 only 0 1", "5 end 0 0 2 0", "-1 timer", "5 nothing"]
        {
            assert_eq!(line.parse::<Event>(), Err(NoEvent), "{line}");
        }
    }
}
