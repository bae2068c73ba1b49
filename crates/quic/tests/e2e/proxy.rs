//! A UDP proxy between a client and a server, on a thread of its own: faults in both directions, drawn from a seed.
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What happens to packets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Delay of each direction.
    pub(crate) delay: Duration,
    /// A FIFO towards the server of this rate in Mbit/s that holds at most 60 ms of data; 0: none.
    pub(crate) rate_mbit: u64,
    /// One packet in this many is lost, sent twice, kept back by `late`, or has a byte changed; 0: none.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) late: u64,
    pub(crate) spoilt: u64,
    /// The client's second port is blocked after this many packets; 0: never.
    pub(crate) second_ends_after: u64,
    /// Nothing of the client's second port gets through.
    pub(crate) second_blocked: bool,
    /// After this many packets a client's port gets a new port towards the server, as behind a NAT that forgets; 0: never.
    pub(crate) rebinds_every: u64,
}

/// How much later a late packet comes.
const LATE: Duration = Duration::from_millis(3);

pub(crate) struct Proxy {
    pub(crate) at: SocketAddr,
    pub(crate) clients: Arc<AtomicU64>,
    /// How often a port was exchanged for another.
    pub(crate) rebound: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr, faults: Faults) -> Proxy {
        let front = socket();
        let at = front.local_addr().expect("bound");
        let (stop, clients) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let rebound = Arc::new(AtomicU64::new(0));
        let (stops, counts) = (Arc::clone(&stop), [&clients, &rebound].map(Arc::clone));
        let thread = thread::spawn(move || Running::new(front, server, faults, counts).run(&stops));
        Proxy { at, clients, rebound, stop, thread: Some(thread) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    socket.set_nonblocking(true).expect("non-blocking");
    socket
}

fn towards(server: SocketAddr) -> UdpSocket {
    let socket = socket();
    socket.connect(server).expect("loopback");
    socket
}

struct Running {
    front: UdpSocket,
    server: SocketAddr,
    faults: Faults,
    /// The client's addresses, each with a socket towards the server and the packets seen.
    clients: Vec<(SocketAddr, UdpSocket, u64)>,
    /// Of clients, and of exchanged ports.
    counts: [Arc<AtomicU64>; 2],
    /// When, for which client, towards the server?, what.
    waiting: Vec<(Instant, usize, bool, Vec<u8>)>,
    state: u64,
    /// When the FIFO will be empty.
    free: Instant,
}

/// What the FIFO holds.
const BACKLOG: Duration = Duration::from_millis(60);

impl Running {
    fn new(front: UdpSocket, server: SocketAddr, faults: Faults, counts: [Arc<AtomicU64>; 2]) -> Running {
        Running { front, server, faults, clients: Vec::new(), counts, waiting: Vec::new(), state: 1, free: now() }
    }

    /// One time in `n`; never if that is 0.
    fn happens(&mut self, n: u64) -> bool {
        // SplitMix64, which needs no crate.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n > 0 && (z ^ (z >> 31)).is_multiple_of(n)
    }

    fn pass(&mut self, client: usize, to_server: bool, packet: &[u8]) {
        let faults = self.faults;
        if client == 1 && faults.second_blocked {
            return;
        }
        if client == 1 && faults.second_ends_after > 0 && self.clients[1].2 > faults.second_ends_after {
            return;
        }
        if self.happens(faults.lost) {
            return;
        }
        let mut packet = packet.to_vec();
        if self.happens(faults.spoilt) {
            let middle = packet.len() / 2;
            packet[middle] ^= 0x55;
        }
        let mut due = now();
        if to_server && faults.rate_mbit > 0 {
            self.free = self.free.max(due);
            if self.free - due > BACKLOG {
                return;
            }
            self.free += Duration::from_nanos(packet.len() as u64 * 8_000 / faults.rate_mbit);
            due = self.free;
        }
        due += faults.delay;
        if self.happens(faults.late) {
            due += LATE;
        }
        if self.happens(faults.doubled) {
            self.waiting.push((due, client, to_server, packet.clone()));
        }
        self.waiting.push((due, client, to_server, packet));
    }

    fn run(mut self, stop: &AtomicBool) {
        let mut buffer = vec![0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            let mut idle = true;
            while let Ok((len, from)) = self.front.recv_from(&mut buffer) {
                idle = false;
                let known = self.clients.iter().position(|client| client.0 == from);
                let client = known.unwrap_or_else(|| {
                    self.clients.push((from, towards(self.server), 0));
                    self.counts[0].store(self.clients.len() as u64, Ordering::Relaxed);
                    self.clients.len() - 1
                });
                self.clients[client].2 += 1;
                let every = self.faults.rebinds_every;
                if every > 0 && self.clients[client].2.is_multiple_of(every) {
                    self.clients[client].1 = towards(self.server);
                    self.counts[1].fetch_add(1, Ordering::Relaxed);
                }
                self.pass(client, true, &buffer[..len]);
            }
            for client in 0..self.clients.len() {
                while let Ok(len) = self.clients[client].1.recv(&mut buffer) {
                    idle = false;
                    self.pass(client, false, &buffer[..len]);
                }
            }
            let at = now();
            let mut waiting = std::mem::take(&mut self.waiting);
            waiting.sort_by_key(|packet| packet.0);
            waiting.retain(|(due, client, to_server, packet)| {
                if *due > at {
                    return true;
                }
                // A full socket loses packets, as a network does.
                let _ = if *to_server {
                    self.clients[*client].1.send(packet)
                } else {
                    self.front.send_to(packet, self.clients[*client].0)
                };
                false
            });
            self.waiting = waiting;
            if idle {
                thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a real network's delays")]
fn now() -> Instant {
    Instant::now()
}
