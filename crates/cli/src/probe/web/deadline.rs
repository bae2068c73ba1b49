//! One deadline for all that has to happen before a download's bytes come: connecting, TLS, the head of the answer.
//!
//! A timeout of a single read begins anew with every byte, so a server that sends one byte at a time would never be late.
use crate::interrupt;
use narrows_runner::clock::Stopwatch;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A point in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    clock: Stopwatch,
    at: Duration,
}

impl Deadline {
    /// So long from now on.
    pub(super) fn within(span: Duration) -> Deadline {
        Deadline { clock: Stopwatch::start(), at: span }
    }

    /// The earlier one of this and so long from now on.
    pub(super) fn at_most(self, span: Duration) -> Deadline {
        Deadline { at: self.at.min(self.clock.elapsed().saturating_add(span)), ..self }
    }

    /// The time until then.
    pub(super) fn left(self) -> Duration {
        self.at.saturating_sub(self.clock.elapsed())
    }

    fn checked(self) -> io::Result<Duration> {
        if interrupt::requested() {
            return Err(io::Error::other("interrupted"));
        }
        let late = || io::Error::new(ErrorKind::TimedOut, "the server takes too long");
        Some(self.left()).filter(|left| !left.is_zero()).ok_or_else(late)
    }
}

/// A TCP connection whose reads and writes are over at a deadline, until it is open.
#[derive(Debug)]
pub(super) struct Timed {
    tcp: TcpStream,
    /// While the connection is being opened.
    opening: Option<Deadline>,
}

/// Between two looks at the deadline, and at Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

impl Timed {
    pub(super) fn connect(server: &SocketAddr, deadline: Deadline) -> io::Result<Timed> {
        let tcp = TcpStream::connect_timeout(server, deadline.checked()?)?;
        Ok(Timed { tcp, opening: Some(deadline) })
    }

    pub(super) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// The head of the answer is here: from now on a read waits for so long.
    pub(super) fn opened(&mut self, wait: Duration) -> io::Result<()> {
        self.opening = None;
        self.tcp.set_read_timeout(Some(wait))?;
        self.tcp.set_write_timeout(None)
    }

    /// Calls until there is something, or the deadline is there.
    fn until_then<T>(&mut self, mut call: impl FnMut(&mut TcpStream) -> io::Result<T>) -> io::Result<T> {
        let Some(deadline) = self.opening else { return call(&mut self.tcp) };
        loop {
            let wait = Some(deadline.checked()?.min(LOOK));
            self.tcp.set_read_timeout(wait)?;
            self.tcp.set_write_timeout(wait)?;
            match call(&mut self.tcp) {
                Err(error)
                    if [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted].contains(&error.kind()) => {
                }
                other => return other,
            }
        }
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.until_then(|tcp| tcp.read(into))
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_then(|tcp| tcp.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}
