//! Senders and receivers, and their counters. Each side is a network namespace with one address.
use narrows_core::{Span, Time};
use narrows_host::Clock;
use narrows_host::FIRST_PORT;
use narrows_host::Namespace;
use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Addresses of the two sides: the sender's and the receiver's.
pub(crate) const HOSTS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1))];

/// The time in which packets are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) clock: Clock,
    pub(crate) from: Time,
    pub(crate) to: Time,
}

impl Window {
    /// A window of this length, after a settling time.
    pub(crate) fn new(settling: Span, length: Span) -> Window {
        let from = Time::ZERO + settling;
        Window { clock: Clock::start(), from, to: from + length }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.clock.now() >= self.from
    }

    pub(crate) fn is_over(&self) -> bool {
        self.clock.now() >= self.to
    }
}

/// The packets that arrived between the first and the last packet of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    /// Payload without the first packet, whose start is not known.
    pub(crate) bytes: u64,
    /// Time from the first to the last packet.
    pub(crate) time: Span,
    /// CPU time of this process in that time.
    pub(crate) process: Span,
}

impl Arrived {
    /// The rate, Mbit/s.
    pub(crate) fn mbit(&self) -> f64 {
        8.0 * self.bytes as f64 / self.time.as_secs_f64().max(1e-9) / 1e6
    }
}

/// Counts arriving bytes.
struct Counter {
    window: Window,
    first: Option<(Time, Span)>,
    last: Time,
    bytes: u64,
}

impl Counter {
    fn new(window: Window) -> Counter {
        Counter { window, first: None, last: Time::ZERO, bytes: 0 }
    }

    /// Counts a packet; returns whether to go on.
    fn add(&mut self, bytes: usize) -> bool {
        let now = self.window.clock.now();
        if now < self.window.from {
            return true;
        }
        if self.first.is_none() {
            self.first = Some((now, process_time()));
        } else {
            self.bytes += bytes as u64;
        }
        self.last = now;
        now < self.window.to
    }

    fn done(self) -> Arrived {
        let Some((first, cpu)) = self.first else { return Arrived::default() };
        Arrived { bytes: self.bytes, time: self.last.since(first), process: process_time() - cpu }
    }
}

/// A TCP flow without a rate limit.
pub(crate) fn tcp(sides: &[Namespace; 2], window: Window) -> Result<Arrived, String> {
    let at = SocketAddr::new(HOSTS[1], FIRST_PORT);
    let listener = sides[1].run(|| TcpListener::bind(at)).map_err(text)?.map_err(text)?;
    let connect = || {
        let stream = TcpStream::connect_timeout(&at, Duration::from_secs(2))?;
        sockopt::set_tcp_congestion(&stream, "cubic")?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok::<_, std::io::Error>(stream)
    };
    let mut sender = sides[0].run(connect).map_err(text)?.map_err(text)?;
    let (mut receiver, _) = listener.accept().map_err(text)?;
    receiver.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let buffer = vec![0; BUFFER];
            // The receiver closes the connection at the end of the window.
            while sender.write(&buffer).is_ok() && !window.is_over() {}
        });
        let mut buffer = vec![0; BUFFER];
        let mut counter = Counter::new(window);
        while receiver.read(&mut buffer).is_ok_and(|n| n > 0 && counter.add(n)) {}
        drop(receiver);
        Ok(counter.done())
    })
}

/// UDP packets of 1500 bytes at this rate. Also returns the packets sent between the first and the last, by the sender's clock.
pub(crate) fn udp(sides: &[Namespace; 2], window: Window, bit_per_s: u64) -> Result<[Arrived; 2], String> {
    let open = |side: usize| {
        let opened = sides[side].run(|| UdpSocket::bind(SocketAddr::new(HOSTS[side], FIRST_PORT)));
        let socket = opened.map_err(text)?.map_err(text)?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(text)?;
        Ok::<_, String>(socket)
    };
    let (sender, receiver) = (open(0)?, open(1)?);
    sender.connect(SocketAddr::new(HOSTS[1], FIRST_PORT)).map_err(text)?;
    let _ = sockopt::set_socket_recv_buffer_size_force(&receiver, 8 << 20);
    thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            let payload = [0; DATAGRAM];
            let mut counter = Counter::new(window);
            let gap = Span::ns(8 * PACKET * 1_000_000_000 / bit_per_s);
            let mut next = Time::ZERO;
            loop {
                let now = window.clock.now();
                if now < next {
                    thread::sleep(Duration::from_nanos(next.since(now).as_ns()));
                }
                let _ = sender.send(&payload);
                next += gap;
                if !counter.add(PACKET as usize) {
                    break counter.done();
                }
            }
        });
        let mut counter = Counter::new(window);
        let mut buffer = [0; 2048];
        loop {
            match receiver.recv(&mut buffer) {
                Ok(n) if !counter.add(n + (PACKET as usize - DATAGRAM)) => break,
                Err(_) if window.is_over() => break,
                _ => {}
            }
        }
        let sent = sending.join().map_err(|_| "the sender panicked")?;
        Ok([sent, counter.done()])
    })
}

/// Round-trip times of ICMP echo requests, which the other side's kernel answers. Unanswered ones are omitted.
pub(crate) fn ping(sides: &[Namespace; 2], clock: Clock, count: usize, spacing: Duration) -> Result<Vec<Span>, String> {
    let open = || socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::ICMP));
    let socket: UdpSocket = sides[0].run(open).map_err(text)?.map_err(text)?.into();
    socket.connect(SocketAddr::new(HOSTS[1], 0)).map_err(text)?;
    socket.set_read_timeout(Some(Duration::from_secs(1))).map_err(text)?;
    let mut times = Vec::new();
    for number in 0..count as u16 {
        let mut request = [0; 64];
        request[0] = ECHO_REQUEST;
        request[6..8].copy_from_slice(&number.to_be_bytes());
        let sent = clock.now();
        socket.send(&request).map_err(text)?;
        let mut answer = [0; 2048];
        while let Ok(n) = socket.recv(&mut answer) {
            if n >= 8 && answer[6..8] == number.to_be_bytes() {
                times.push(clock.now().since(sent));
                break;
            }
        }
        thread::sleep(spacing);
    }
    Ok(times)
}

/// Keeps this number of threads busy while `during` runs.
pub(crate) fn under_load<T>(threads: usize, during: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let done = during();
        stop.store(true, Ordering::Relaxed);
        done
    })
}

/// RFC 792.
const ECHO_REQUEST: u8 = 8;
const BUFFER: usize = 256 * 1024;
/// Length of an IPv4 packet.
const PACKET: u64 = 1500;
const DATAGRAM: usize = 1472;
/// Maximum time that an end waits for the other before it checks the clock.
const PATIENCE: Duration = Duration::from_millis(300);

/// CPU time of all threads of this process.
pub(crate) fn process_time() -> Span {
    time(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread.
pub(crate) fn thread_time() -> Span {
    time(ClockId::ThreadCPUTime)
}

fn time(clock: ClockId) -> Span {
    let time = clock_gettime(clock);
    Span::s(time.tv_sec as u64) + Span::ns(time.tv_nsec as u64)
}

/// An error as text.
pub(crate) fn text(error: impl ToString) -> String {
    error.to_string()
}
