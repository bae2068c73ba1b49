//! The sending side: one thread that runs the application of every flow and keeps the sockets filled.
use super::receiver::Shared;
use super::sockets::{ECN_ACCEPTED, ECN_ASKED};
use crate::socket::poll::{Poll, WOKEN};
use crate::socket::tcp_info::TcpInfo;
use narrows_core::{Span, Time};
use narrows_world::application::{Act, Application};
use rustix::event::epoll::EventFlags;
use socket2::{SockAddr, Socket};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// The payload of all connections and datagrams, and the longest write. The kernel handles no acknowledgment of a connection while it copies what is
/// written to it: 24 µs for 64 KiB in the lab's guest, and 88 for 256 KiB.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
/// Writes to one connection before the next one is served.
const TURN: usize = 32;
/// Actions in a row before sockets are polled again, when the thread is late.
const ACTS: usize = 1024;
/// Interval between reads of connections' `TCP_INFO`.
const LOOK: Span = Span::ms(10);
/// Connections read per interval: at most 2000 reads per second, about 2 ms of CPU time.
const LOOKS: usize = 20;
/// An application that acts later than this is reported as late.
const LATE: Span = Span::ms(1);
/// A datagram that is later than this is not sent, so that an overloaded thread falls no further behind.
const TOO_LATE: Span = Span::ms(100);

/// The sending side of a flow.
pub(super) struct Flow {
    pub(super) application: Application,
    /// The time of its next action.
    pub(super) acts: Option<Time>,
    pub(super) stop: Time,
    pub(super) stopped: bool,
    pub(super) outlet: Outlet,
}

pub(super) enum Outlet {
    Connection(Connection),
    Datagrams(Datagrams),
    /// A program makes the flow, or the thread of QUIC or of video calls.
    Elsewhere,
}

pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) to: SockAddr,
    pub(super) stage: Stage,
    /// Bytes handed over that the socket has not taken yet; `None`: unlimited.
    pub(super) unsent: Option<u64>,
    /// Payload handed over so far.
    pub(super) written: u64,
    /// When the transfer in progress began.
    pub(super) began: Option<Time>,
    /// Headers that the scenario counts in a packet's length.
    pub(super) header: u32,
    /// Whether the flow asks for ECN.
    pub(super) ecn: bool,
    pub(super) place: usize,
    /// Whether the connection paces at the rate that the kernel shows.
    pub(super) paced: bool,
    /// Packets delivered when the connection was last sampled.
    pub(super) delivered: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Nothing has been handed over yet.
    Closed,
    /// Connected or connecting.
    Open,
    /// It has ended.
    Ended,
}

pub(super) struct Datagrams {
    pub(super) socket: Socket,
    /// The receiver, if each datagram is to have a new source port.
    pub(super) ever_new: Option<SockAddr>,
    /// Length of the IP and UDP headers, bytes.
    pub(super) header: u32,
}

/// The ECN setting of a namespace. Connections that begin while it is on ask for ECN.
pub(super) struct EcnSwitch {
    pub(super) file: File,
    pub(super) is_on: bool,
}

impl EcnSwitch {
    fn turn(&mut self, on: bool) -> io::Result<()> {
        if self.is_on != on {
            self.file.write_all_at(if on { ECN_ASKED } else { ECN_ACCEPTED }, 0)?;
            self.is_on = on;
        }
        Ok(())
    }
}

/// The sending sides of all flows, by flow number.
pub(super) struct Senders {
    pub(super) flows: Vec<Flow>,
    pub(super) poll: Poll,
    /// ECN switches of the namespaces in which a flow asks for ECN.
    pub(super) ecn: Vec<Option<EcnSwitch>>,
    due: BinaryHeap<Reverse<(Time, usize)>>,
    /// Connections that can take more data but have used up their writes for this round.
    hungry: Vec<usize>,
    /// Connections to sample, round-robin.
    watched: Vec<usize>,
    looked: usize,
    next_look: Option<Time>,
}

impl Senders {
    pub(super) fn new(flows: Vec<Flow>, poll: Poll, ecn: Vec<Option<EcnSwitch>>) -> Senders {
        let due = flows.iter().enumerate().filter_map(|(number, flow)| Some(Reverse((flow.acts?, number)))).collect();
        Senders { flows, poll, ecn, due, hungry: Vec::new(), watched: Vec::new(), looked: 0, next_look: None }
    }

    pub(super) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut happened = Vec::new();
        while !shared.ended.load(Ordering::Acquire) {
            self.act_all(shared)?;
            self.look(shared);
            let until = if self.hungry.is_empty() {
                self.due.peek().map(|due| due.0.0).into_iter().chain(self.next_look).min()
            } else {
                Some(Time::ZERO)
            };
            self.poll.wait(shared.clock.now(), until, &mut happened)?;
            for &number in &happened {
                match number {
                    WOKEN => self.complete_all(shared),
                    flow => self.push(flow as usize, shared),
                }
            }
            for flow in std::mem::take(&mut self.hungry) {
                self.push(flow, shared);
            }
        }
        for flow in self.watched.clone() {
            self.look_at(flow, shared);
        }
        Ok(())
    }

    /// Performs every action that is due, each with its own time, so that rates stay exact even if the thread is late.
    fn act_all(&mut self, shared: &Shared) -> io::Result<()> {
        for _ in 0..ACTS {
            let Some(&Reverse((at, number))) = self.due.peek() else { break };
            let now = shared.clock.now();
            if at > now {
                break;
            }
            self.due.pop();
            let flow = &mut self.flows[number];
            if flow.acts != Some(at) || flow.stopped {
                continue;
            }
            flow.acts = None;
            if at >= flow.stop {
                self.stop(number);
                continue;
            }
            let late = now.since(at);
            if late > LATE {
                shared.endpoint_stats.post(number, |report| report.late = report.late.max(late));
            }
            let (act, next) = flow.application.act(at);
            let is_too_late = late > TOO_LATE && matches!(flow.outlet, Outlet::Datagrams(_));
            self.schedule(number, at, next);
            if is_too_late {
                let missed = u64::from(act != Act::Pause);
                shared.endpoint_stats.post(number, |report| report.refused += missed);
                continue;
            }
            self.perform(number, act, at, shared)?;
        }
        Ok(())
    }

    /// Schedules the application's next action, or the flow's stop if that comes first.
    fn schedule(&mut self, number: usize, now: Time, next: Option<Time>) {
        let flow = &mut self.flows[number];
        let at = next.map_or(flow.stop, |at| at.min(flow.stop)).max(now);
        flow.acts = Some(at);
        self.due.push(Reverse((at, number)));
    }

    fn stop(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        flow.stopped = true;
        if let Outlet::Connection(connection) = &mut flow.outlet {
            connection.unsent = Some(0);
            if connection.stage == Stage::Open {
                // This fails only if the connection is already gone.
                let _ = connection.socket.shutdown(std::net::Shutdown::Write);
            }
        }
    }

    fn perform(&mut self, number: usize, act: Act, at: Time, shared: &Shared) -> io::Result<()> {
        let connection = match &mut self.flows[number].outlet {
            Outlet::Connection(connection) => connection,
            Outlet::Datagrams(datagrams) => {
                let payload = match act {
                    Act::Message(payload) => payload,
                    Act::Packet(ip_len) => ip_len.saturating_sub(datagrams.header),
                    Act::Endless | Act::Transfer(_) | Act::Frame | Act::Pause => return Ok(()),
                };
                if !datagrams.send(payload as usize) {
                    shared.endpoint_stats.post(number, |report| report.refused += 1);
                }
                return Ok(());
            }
            Outlet::Elsewhere => return Ok(()),
        };
        let bytes = match act {
            Act::Endless => None,
            Act::Transfer(bytes) => Some(bytes),
            Act::Message(payload) => Some(u64::from(payload)),
            Act::Packet(ip_len) => Some(u64::from(ip_len.saturating_sub(connection.header).max(1))),
            Act::Frame | Act::Pause => return Ok(()),
        };
        connection.unsent = connection.unsent.zip(bytes).map(|(unsent, bytes)| unsent + bytes);
        connection.written += bytes.unwrap_or(0);
        if matches!(act, Act::Message(_)) {
            shared.messages.written(number, connection.written, at);
        }
        if matches!(act, Act::Transfer(_)) {
            connection.began = Some(at);
            shared.goals[number].store(connection.written, Ordering::Release);
        }
        if connection.stage == Stage::Closed {
            return self.connect(number, shared);
        }
        self.push(number, shared);
        Ok(())
    }

    fn connect(&mut self, number: usize, shared: &Shared) -> io::Result<()> {
        let Outlet::Connection(connection) = &mut self.flows[number].outlet else { return Ok(()) };
        if let Some(switch) = &mut self.ecn[connection.place] {
            // This call sends the SYN, which carries the request for ECN.
            switch.turn(connection.ecn)?;
        }
        connection.stage = Stage::Open;
        let flags = EventFlags::OUT | EventFlags::ET;
        let begun = connection.socket.connect(&connection.to);
        match begun {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                connection.stage = Stage::Ended;
                shared.endpoint_stats.post(number, |report| report.trouble = Some(error.to_string()));
            }
            _ => {
                self.poll.add(&connection.socket, number as u64, flags)?;
                self.watched.push(number);
                self.next_look.get_or_insert(shared.clock.now() + LOOK);
            }
        }
        Ok(())
    }

    /// Writes to a connection until it takes no more or its writes for this round are used up.
    fn push(&mut self, number: usize, shared: &Shared) {
        let Outlet::Connection(connection) = &mut self.flows[number].outlet else { return };
        if connection.stage != Stage::Open {
            return;
        }
        if let Ok(Some(error)) = connection.socket.take_error() {
            return self.end(number, &error, shared);
        }
        for _ in 0..TURN {
            let most = connection.unsent.map_or(ZEROS.len(), |unsent| unsent.min(ZEROS.len() as u64) as usize);
            if most == 0 {
                return;
            }
            // The last segment of a write waits for the next write, which fills it.
            let more = if connection.unsent == Some(most as u64) { 0 } else { libc::MSG_MORE };
            match connection.socket.send_with_flags(&ZEROS[..most], libc::MSG_NOSIGNAL | more) {
                Ok(sent) => {
                    if let Some(unsent) = &mut connection.unsent {
                        *unsent -= sent as u64;
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    // It is still connecting.
                    io::ErrorKind::NotConnected => return,
                    io::ErrorKind::Interrupted => {}
                    _ => return self.end(number, &error, shared),
                },
            }
        }
        self.hungry.push(number);
    }

    /// Handles an error that ended a connection.
    fn end(&mut self, number: usize, error: &io::Error, shared: &Shared) {
        self.look_at(number, shared);
        if let Outlet::Connection(connection) = &mut self.flows[number].outlet {
            connection.stage = Stage::Ended;
        }
        self.watched.retain(|&watched| watched != number);
        shared.endpoint_stats.post(number, |report| report.trouble = Some(error.to_string()));
    }

    fn complete_all(&mut self, shared: &Shared) {
        for (number, at) in shared.take_completed() {
            let flow = &mut self.flows[number];
            let Outlet::Connection(connection) = &mut flow.outlet else { continue };
            let Some(began) = connection.began.take() else { continue };
            shared.endpoint_stats.post(number, |report| report.completions.push(at.since(began)));
            if let Some(next) = flow.application.on_complete(at) {
                self.schedule(number, at, Some(next));
            }
            // A short transfer may begin and end between two samples.
            self.look_at(number, shared);
        }
    }

    fn look(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        if self.next_look.is_none_or(|at| at > now) {
            return;
        }
        for _ in 0..LOOKS.min(self.watched.len()) {
            self.looked = (self.looked + 1) % self.watched.len();
            self.look_at(self.watched[self.looked], shared);
        }
        self.next_look = Some(now + LOOK);
    }

    fn look_at(&mut self, number: usize, shared: &Shared) {
        let Outlet::Connection(connection) = &mut self.flows[number].outlet else { return };
        let Ok(info) = TcpInfo::of(&connection.socket) else { return };
        // The smoothed RTT is a new sample only if data were delivered since the last one.
        let is_new = info.delivered.is_none() || info.delivered != connection.delivered;
        connection.delivered = info.delivered;
        shared.endpoint_stats.post(number, |report| {
            report.meters = Some(info.meters(connection.paced));
            report.stats = info.stats();
            report.rtts.extend(info.srtt.filter(|_| is_new));
        });
    }
}

impl Datagrams {
    /// Sends a datagram of zeros; `false` if the system did not take it.
    fn send(&self, payload: usize) -> bool {
        let payload = &ZEROS[..payload.min(MAX_PAYLOAD)];
        let sent = match &self.ever_new {
            // Disconnecting frees the port that the kernel chose. The next datagram gets another one.
            Some(to) => rustix::net::connect_unspec(&self.socket)
                .map_err(io::Error::from)
                .and_then(|()| self.socket.send_to(payload, to)),
            None => self.socket.send(payload),
        };
        match sent {
            Ok(_) => true,
            // An ICMP error reports that nobody received an earlier datagram.
            Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        }
    }
}

/// The longest payload of a datagram over IPv4.
pub(super) const MAX_PAYLOAD: usize = 65_507;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;
    use socket2::{Domain, Type};
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

    /// The source ports of datagrams that each have a new one.
    fn ports(at: SocketAddr, datagrams: usize) -> BTreeSet<u16> {
        let receiver = UdpSocket::bind(at).unwrap();
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM, None).unwrap();
        socket.bind(&at.into()).unwrap();
        let to = receiver.local_addr().unwrap().into();
        let datagrams_of = Datagrams { socket, ever_new: Some(to), header: 28 };
        let port = |_| {
            assert!(datagrams_of.send(100));
            let (len, from) = receiver.recv_from(&mut [0; 200]).unwrap();
            assert_eq!((len, from.ip()), (100, at.ip()));
            from.port()
        };
        (0..datagrams).map(port).collect()
    }

    #[test]
    fn ever_new_ports_are_new() {
        let here = match Namespace::create() {
            Ok(here) => here,
            Err(reason) => return println!("skipped: {reason}"),
        };
        let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::LOCALHOST, 0).into()];
        let counts = here.run(|| addresses.map(|at| ports(at, 1000).len())).unwrap();
        // The kernel draws from about 28 000 ports: of 1000 datagrams about 1000² / 2 / 28 000 = 18 get an earlier one's port.
        assert!(counts.iter().all(|&count| count > 950), "{counts:?}");
    }
}
