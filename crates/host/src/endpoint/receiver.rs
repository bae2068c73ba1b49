//! The receiving side: one thread that reads and counts all data.
use super::messages::MessageRecords;
use crate::Clock;
use crate::EndpointStats;
use crate::socket::poll::{Poll, WOKEN, Waker};
use narrows_core::Time;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use socket2::Socket;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The kernel discards at most this many bytes of a connection per call; nothing is copied.
const STREAM: usize = 4 << 20;
/// The length of a datagram is reported even if the buffer is smaller.
const DATAGRAM: usize = 64;
/// Datagrams read from one socket before the next socket is read.
const TURN: usize = 256;

/// State that both sides of all flows share.
pub(super) struct Shared {
    pub(super) endpoint_stats: Arc<EndpointStats>,
    pub(super) clock: Clock,
    pub(super) ended: AtomicBool,
    /// Payload at which a flow's transfer is complete; zero if no transfer is in progress.
    pub(super) goals: Box<[AtomicU64]>,
    /// Completed transfers for the sending side, with the time at which their last byte was read.
    pub(super) completed: Mutex<Vec<(usize, Time)>>,
    /// Messages that are on their way, and how long others took.
    pub(super) messages: MessageRecords,
}

impl Shared {
    pub(super) fn new(endpoint_stats: Arc<EndpointStats>, clock: Clock, messages: MessageRecords) -> Shared {
        let goals = (0..endpoint_stats.flows()).map(|_| AtomicU64::new(0)).collect();
        let (ended, completed) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        Shared { endpoint_stats, clock, ended, goals, completed, messages }
    }

    pub(super) fn take_completed(&self) -> Vec<(usize, Time)> {
        std::mem::take(&mut self.completed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The receiving socket of a flow.
pub(super) enum Inlet {
    Listener(Socket),
    Connection(Socket),
    Datagrams(Socket),
    Closed,
}

/// The receiving sides of all flows, by flow number.
pub(super) struct Receivers {
    pub(super) inlets: Vec<Inlet>,
    pub(super) poll: Poll,
    /// Wakes the sending side.
    pub(super) senders: Waker,
}

impl Receivers {
    pub(super) fn run(mut self, shared: &Shared) -> io::Result<()> {
        for (number, inlet) in self.inlets.iter().enumerate() {
            if let Inlet::Listener(socket) | Inlet::Datagrams(socket) = inlet {
                self.poll.add(socket, number as u64, EventFlags::IN)?;
            }
        }
        let (mut happened, mut buffer) = (Vec::new(), vec![0; STREAM]);
        while !shared.ended.load(Ordering::Acquire) {
            self.poll.wait(shared.clock.now(), None, &mut happened)?;
            for &number in happened.iter().filter(|&&number| number != WOKEN) {
                self.ready(number as usize, shared, &mut buffer)?;
            }
        }
        // Datagrams that have arrived count, also where there was no time to read them.
        for (flow, inlet) in self.inlets.iter().enumerate() {
            if let Inlet::Datagrams(socket) = inlet {
                while read_datagrams(flow, socket, shared, &mut buffer) == TURN {}
            }
        }
        Ok(())
    }

    fn ready(&mut self, flow: usize, shared: &Shared, buffer: &mut [u8]) -> io::Result<()> {
        match &self.inlets[flow] {
            Inlet::Listener(listener) => match listener.accept() {
                Ok((socket, _)) => {
                    socket.set_nonblocking(true)?;
                    self.poll.add(&socket, flow as u64, EventFlags::IN)?;
                    // A flow is one connection, so the listener is no longer needed.
                    self.inlets[flow] = Inlet::Connection(socket);
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            },
            Inlet::Connection(socket) => {
                let more = match recv(socket, &mut *buffer, RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
                    Ok((_, 0)) => false,
                    Ok((_, bytes)) => {
                        self.arrived(flow, bytes as u64, shared);
                        true
                    }
                    // The sending side reports the connection's error.
                    Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
                };
                if !more {
                    self.inlets[flow] = Inlet::Closed;
                }
            }
            Inlet::Datagrams(socket) => {
                read_datagrams(flow, socket, shared, buffer);
            }
            Inlet::Closed => {}
        }
        Ok(())
    }

    fn arrived(&self, flow: usize, bytes: u64, shared: &Shared) {
        let total = shared.endpoint_stats.read(flow, bytes);
        if shared.messages.are_kept_of(flow) {
            shared.messages.read(flow, bytes, shared.clock.now());
        }
        let goal = shared.goals[flow].load(Ordering::Acquire);
        if goal != 0 && total >= goal {
            shared.goals[flow].store(0, Ordering::Relaxed);
            let mut completed = shared.completed.lock().unwrap_or_else(PoisonError::into_inner);
            completed.push((flow, shared.clock.now()));
            drop(completed);
            self.senders.wake();
        }
    }
}

/// Reads datagrams for a turn; returns how many there were.
fn read_datagrams(flow: usize, socket: &Socket, shared: &Shared, buffer: &mut [u8]) -> usize {
    let (mut datagrams, mut bytes) = (0, 0);
    while datagrams < TURN
        && let Ok((_, length)) = recv(socket, &mut buffer[..DATAGRAM], RecvFlags::TRUNC | RecvFlags::DONTWAIT)
    {
        datagrams += 1;
        bytes += length as u64;
    }
    shared.endpoint_stats.read(flow, bytes);
    datagrams
}

/// Does the error only mean that there is nothing to read or accept now? A connection may have been closed before it was
/// accepted.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn regression_what_has_arrived_counts_although_the_end_came_before_it_was_read() {
        let (receiver, sender) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        for _ in 0..100 {
            sender.send_to(&[0; 10], receiver.local_addr().unwrap()).unwrap();
        }
        let stats = Arc::new(EndpointStats::new(1));
        let shared = Shared::new(Arc::clone(&stats), Clock::start(), MessageRecords::new([], None));
        shared.ended.store(true, Ordering::Release);
        let senders = Poll::new().unwrap();
        let inlets = vec![Inlet::Datagrams(receiver.into())];
        Receivers { inlets, poll: Poll::new().unwrap(), senders: senders.waker() }.run(&shared).unwrap();
        assert_eq!(stats.take(0).payload, 10 * 100);
    }
}
