//! Video calls: both ends of each [call](narrows_world::call), all on one thread of their own.
//!
//! A packet on the network has the length that its frame's part asks for, and a report the length that RFC 8888 gives it. Both carry a number
//! only, because both ends are in this process and share what the number stands for. Frames are captured, packets paced and reports sent at
//! the times that the call asks for, or as much later as the thread is.
use super::UDP_HEADER;
use super::receiver::Shared;
use super::sender::MAX_PAYLOAD;
use super::sockets::{self, Making};
use super::spec::UdpSpec;
use crate::HostError;
use crate::socket::option::Opt;
use crate::socket::poll::{Poll, WOKEN};
use narrows_core::{Span, Time};
use narrows_world::application::{Act, Application};
use narrows_world::call::{Call, Report};
use noq_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use rustix::event::epoll::EventFlags;
use socket2::SockRef;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

/// What is behind the number in a datagram.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
/// Length of the number in a datagram, bytes.
const NUMBER: usize = 8;
/// Reads from one socket before the next one is served.
const TURN: usize = 64;
/// Reports that are remembered until they arrive.
const REPORTS: usize = 1024;
/// A frame that is captured later than this is reported as late.
const LATE: Span = Span::ms(1);

/// The socket of a call's sender.
pub(super) fn sender_socket(making: &Making<'_>, udp: &UdpSpec) -> Result<UdpSocket, HostError> {
    making.udp_sender(udp).map(UdpSocket::from)
}

/// The socket of a call's receiver.
pub(super) fn receiver_socket(making: &Making<'_>) -> Result<UdpSocket, HostError> {
    making.udp_receiver().map(UdpSocket::from)
}

/// A call, ready to start.
pub(super) struct VideoFlow {
    pub(super) number: usize,
    pub(super) application: Application,
    pub(super) start: Time,
    pub(super) stop: Time,
    pub(super) call: Call,
    /// Headers of its packets from IP's to RTP's, bytes.
    pub(super) header: u32,
    /// The receiver's address.
    pub(super) to: SocketAddr,
    pub(super) sender: UdpSocket,
    pub(super) receiver: UdpSocket,
}

/// All calls, and what their thread waits for.
pub(super) struct Videos {
    flows: Vec<Flow>,
    pub(super) poll: Poll,
    /// The end of the warm-up, until it has come.
    warmup: Option<Time>,
    /// When each call has something to do next, by its place; an entry that differs from [`Flow::due`] is void.
    due: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Videos {
    /// The warm-up ends at this time, if there is one.
    pub(super) fn new(flows: Vec<VideoFlow>, poll: Poll, warmup: Option<Time>) -> io::Result<Videos> {
        let flows = flows.into_iter().map(Flow::new).collect::<io::Result<Vec<_>>>()?;
        for (place, flow) in flows.iter().enumerate() {
            let number = 2 * place as u64;
            poll.add(&flow.sender, number, EventFlags::IN)?;
            poll.add(&flow.receiver.socket, number + 1, EventFlags::IN)?;
        }
        let due = flows.iter().enumerate().filter_map(|(place, flow)| Some(Reverse((flow.due?, place)))).collect();
        Ok(Videos { flows, poll, warmup, due })
    }

    /// Carries all calls until the run ends.
    pub(super) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let (mut happened, mut buffer) = (Vec::new(), vec![0; ZEROS.len()]);
        while !shared.ended.load(Ordering::Acquire) {
            let now = shared.clock.now();
            while let Some(&Reverse((at, place))) = self.due.peek()
                && at <= now
            {
                self.warm_up(at);
                self.due.pop();
                if self.flows[place].due.take_if(|due| *due == at).is_some() {
                    self.attend(place, shared);
                }
            }
            self.warm_up(now);
            let next = self.due.peek().map(|due| due.0.0).into_iter().chain(self.warmup).min();
            self.poll.wait(shared.clock.now(), next, &mut happened)?;
            for &number in happened.iter().filter(|&&number| number != WOKEN) {
                let place = (number / 2) as usize;
                self.flows[place].read(number % 2 == 1, &mut buffer, shared);
                self.attend(place, shared);
            }
        }
        for flow in &mut self.flows {
            // What has arrived counts, also where there was no time to read it.
            while flow.read(true, &mut buffer, shared) == TURN {}
            flow.end(shared);
        }
        Ok(())
    }

    /// Ends the warm-up if its time has come.
    fn warm_up(&mut self, now: Time) {
        if let Some(end) = self.warmup.take_if(|end| *end <= now) {
            self.flows.iter_mut().for_each(|flow| flow.call.record().restart(end));
        }
    }

    fn attend(&mut self, place: usize, shared: &Shared) {
        let flow = &mut self.flows[place];
        let before = flow.due;
        flow.attend(shared);
        self.due.extend(flow.due.filter(|_| flow.due != before).map(|at| Reverse((at, place))));
    }
}

/// The receiver's socket.
struct Inlet {
    socket: UdpSocket,
    /// Reads datagrams with their ECN bits.
    state: UdpSocketState,
}

impl Inlet {
    fn new(socket: UdpSocket) -> io::Result<Inlet> {
        let state = UdpSocketState::new((&socket).into())?;
        // The library is QUIC's, whose packets must not be fragmented. A report on many packets is longer than the MTU.
        if socket.local_addr()?.is_ipv4() {
            Opt::MTU_DISCOVER.set(&socket, libc::IP_PMTUDISC_WANT.to_ne_bytes())?;
        } else {
            Opt::IPV6_MTU_DISCOVER.set(&socket, libc::IPV6_PMTUDISC_WANT.to_ne_bytes())?;
            Opt::IPV6_DONTFRAG.set(&socket, 0_i32.to_ne_bytes())?;
        }
        Ok(Inlet { socket, state })
    }

    /// Reads datagrams that have come in one piece. Calls `each` with the number and the length of each and whether it is marked CE, and
    /// returns where they are from; `None` if there are none.
    fn read(&self, buffer: &mut [u8], mut each: impl FnMut(u64, usize, bool)) -> Option<SocketAddr> {
        let mut meta = [RecvMeta::default()];
        let count = self.state.recv((&self.socket).into(), &mut [IoSliceMut::new(buffer)], &mut meta).ok()?;
        let [RecvMeta { addr, len, stride, ecn, .. }] = meta;
        let marked = ecn == Some(EcnCodepoint::Ce);
        for datagram in buffer[..len].chunks(stride.max(1)).take(if count > 0 { len } else { 0 }) {
            if let Some(number) = number(datagram) {
                each(number, datagram.len(), marked);
            }
        }
        Some(addr)
    }
}

/// The number that a datagram carries.
fn number(datagram: &[u8]) -> Option<u64> {
    datagram.first_chunk::<NUMBER>().map(|&number| u64::from_be_bytes(number))
}

/// A call that runs.
struct Flow {
    number: usize,
    application: Application,
    /// When its next frame is captured.
    acts: Option<Time>,
    stop: Time,
    call: Call,
    header: u32,
    /// Headers of IP and UDP, which the system makes.
    system: u32,
    sender: UdpSocket,
    receiver: Inlet,
    /// Where the sender is, once a packet has come from it.
    from: Option<SocketAddr>,
    /// The reports that have left and not arrived; the first one's number.
    reports: VecDeque<Report>,
    first_report: u64,
    /// When it has something to do next.
    due: Option<Time>,
}

impl Flow {
    fn new(flow: VideoFlow) -> io::Result<Flow> {
        let VideoFlow { number, application, start, stop, call, header, to, sender, receiver } = flow;
        Ok(Flow {
            number,
            application,
            acts: Some(start),
            stop,
            call,
            header,
            system: sockets::ip_header(to.ip()) + UDP_HEADER,
            sender,
            receiver: Inlet::new(receiver)?,
            from: None,
            reports: VecDeque::new(),
            first_report: 0,
            due: Some(start),
        })
    }

    /// Does all that is due.
    fn attend(&mut self, shared: &Shared) {
        let now = shared.clock.now();
        while let Some(at) = self.acts.filter(|&at| at <= now) {
            if at >= self.stop {
                self.acts = None;
                self.call.stop();
                break;
            }
            let late = now.since(at);
            if late > LATE {
                shared.endpoint_stats.post(self.number, |report| report.late = report.late.max(late));
            }
            let (act, next) = self.application.act(at);
            if act == Act::Frame {
                self.call.capture(at);
            }
            self.acts = Some(next.map_or(self.stop, |next| next.min(self.stop)));
        }
        while let Some(leaving) = self.call.poll_transmit(self.header, now) {
            let len = leaving.ip_len.saturating_sub(self.system) as usize;
            self.send(leaving.number, len, None, shared);
        }
        if self.call.next_report().is_some_and(|at| at <= now) {
            self.report(now, shared);
        }
        let times = [self.acts, self.call.next_departure(now), self.call.next_report()];
        self.due = times.into_iter().flatten().min();
    }

    /// Sends the receiver's packet that is to be sent now.
    fn report(&mut self, now: Time, shared: &Shared) {
        let report = self.call.report(now);
        if self.reports.len() >= REPORTS {
            self.reports.pop_front();
            self.first_report += 1;
        }
        let number = self.first_report + self.reports.len() as u64;
        self.reports.push_back(report);
        let len = (report.ip_len(self.system) - self.system) as usize;
        if let Some(from) = self.from {
            self.send(number, len, Some(from), shared);
        }
    }

    /// Sends a number in a datagram of this length: the receiver's to an address, or else the sender's.
    fn send(&self, number: u64, len: usize, to: Option<SocketAddr>, shared: &Shared) {
        let (number, len) = (number.to_be_bytes(), len.clamp(NUMBER, MAX_PAYLOAD));
        let parts = [io::IoSlice::new(&number), io::IoSlice::new(&ZEROS[..len - NUMBER])];
        let sent = match to {
            Some(to) => SockRef::from(&self.receiver.socket).send_to_vectored(&parts, &to.into()),
            None => SockRef::from(&self.sender).send_vectored(&parts),
        };
        // An ICMP error reports that nobody received an earlier datagram.
        if sent.is_err_and(|error| error.kind() != io::ErrorKind::ConnectionRefused) {
            shared.endpoint_stats.post(self.number, |report| report.refused += 1);
        }
    }

    /// Reads what has come to one end, for a turn; returns how many times there was something.
    fn read(&mut self, is_receiver: bool, buffer: &mut [u8], shared: &Shared) -> usize {
        (0..TURN)
            .take_while(|_| if is_receiver { self.receive(buffer, shared) } else { self.hear(buffer, shared) })
            .count()
    }

    /// The receiver reads packets; `false` if there are none.
    fn receive(&mut self, buffer: &mut [u8], shared: &Shared) -> bool {
        let (call, now) = (&mut self.call, shared.clock.now());
        let (mut missing, mut payload) = (0, 0);
        let from = self.receiver.read(buffer, |number, len, marked| {
            if let Some(before) = call.on_packet(number, marked, now) {
                missing += before;
                payload += (len as u32 + self.system).saturating_sub(self.header);
            }
        });
        self.from = from.or(self.from);
        shared.endpoint_stats.read(self.number, payload.into());
        if missing > 0 {
            self.report(now, shared);
        }
        from.is_some()
    }

    /// The sender reads a report; `false` if there is none.
    fn hear(&mut self, buffer: &mut [u8], shared: &Shared) -> bool {
        let Ok(len) = self.sender.recv(buffer) else { return false };
        let place =
            number(&buffer[..len]).and_then(|number| usize::try_from(number.checked_sub(self.first_report)?).ok());
        if let Some(place) = place.filter(|&place| place < self.reports.len()) {
            // Those before it are lost: links do not reorder packets.
            let report = self.reports.drain(..=place).next_back();
            self.first_report += place as u64 + 1;
            let rtt = report.and_then(|report| self.call.on_report(&report, shared.clock.now()));
            self.post(rtt, shared);
        }
        true
    }

    fn post(&self, rtt: Option<Span>, shared: &Shared) {
        let (stats, target) = (self.call.stats(), self.call.target_rate());
        shared.endpoint_stats.post(self.number, |report| {
            report.stats = stats;
            report.target = Some(target);
            report.rtts.extend(rtt);
        });
    }

    /// Posts the figures of the whole call.
    fn end(&mut self, shared: &Shared) {
        self.post(None, shared);
        let record = self.call.record().clone();
        shared.endpoint_stats.post(self.number, |report| report.video = Some(Box::new(record)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// What a receiver reads of datagrams with these ECN bits that came before it looked.
    fn read(at: SocketAddr, bits: [u32; 2]) -> Vec<(u64, usize, bool)> {
        let inlet = Inlet::new(UdpSocket::bind(at).unwrap()).unwrap();
        inlet.socket.set_nonblocking(true).unwrap();
        let from = UdpSocket::bind(SocketAddr::new(at.ip(), 0)).unwrap();
        for (number, bits) in (7..).zip(bits) {
            let socket = SockRef::from(&from);
            if at.is_ipv4() { socket.set_tos_v4(bits) } else { socket.set_tclass_v6(bits) }.unwrap();
            let datagram = [&u64::to_be_bytes(number)[..], &[0; 92]].concat();
            from.send_to(&datagram, inlet.socket.local_addr().unwrap()).unwrap();
        }
        from.send_to(&[1; NUMBER - 1], inlet.socket.local_addr().unwrap()).unwrap();
        let (mut found, mut buffer) = (Vec::new(), vec![0; ZEROS.len()]);
        while let Some(peer) = inlet.read(&mut buffer, |number, len, marked| found.push((number, len, marked))) {
            assert_eq!(peer, from.local_addr().unwrap());
        }
        found
    }

    #[test]
    fn numbers_lengths_and_marks_are_read_over_either_ip() {
        for at in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::LOCALHOST, 0).into()] {
            assert_eq!(
                read(at, [0b10, 0b11]),
                [(7, 100, false), (8, 100, true)],
                "a datagram without a number is none"
            );
            assert_eq!(read(at, [0b11, 0b00]), [(7, 100, true), (8, 100, false)]);
        }
    }
}
