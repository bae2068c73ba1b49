//! smoltcp's TCP over IPv4 as a peer: whole IP packets, and a clock in microseconds.
use crate::{Bytes, Datagram, Peer, Span, Stream, Time};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};
use std::collections::VecDeque;

/// Socket buffers that no case fills: 2 Gbit/s for a quarter of a second.
const BUFFER: usize = 1 << 26;
const PORT: u16 = 80;
const MTU: usize = 1500;
/// The application writes and reads in such pieces, bytes.
const PIECE: usize = 1 << 16;

/// An interface with one TCP socket.
pub struct Smoltcp {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    device: Memory,
    /// When [`Interface::poll_at`] wants to be called.
    timeout: Option<Time>,
    piece: Vec<u8>,
}

/// Makes both ends of a connection: the client, which connects and sends, and the server, which listens.
pub fn ends(control: CongestionControl) -> [Box<dyn Peer>; 2] {
    let mut client = Smoltcp::new(1, control);
    let server_address = (IpAddress::Ipv4(address(2)), PORT);
    let connected =
        client.sockets.get_mut::<Socket<'_>>(client.socket).connect(client.interface.context(), server_address, 40_000);
    connected.expect("a new socket connects");
    client.timeout = Some(Time::ZERO);
    let mut server = Smoltcp::new(2, control);
    server.sockets.get_mut::<Socket<'_>>(server.socket).listen(PORT).expect("a new socket listens");
    [Box::new(client), Box::new(server)]
}

fn address(host: u8) -> Ipv4Address {
    Ipv4Address::new(10, 0, 0, host)
}

fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_ns() / 1000) as i64)
}

impl Smoltcp {
    fn new(host: u8, control: CongestionControl) -> Smoltcp {
        let mut device = Memory::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = host.into();
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(IpAddress::Ipv4(address(host)), 24)).expect("there is room for one address");
        });
        let buffer = || SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(control);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Smoltcp { interface, sockets, socket, device, timeout: None, piece: vec![0; PIECE] }
    }

    fn poll(&mut self, now: Time) {
        self.interface.poll(instant(now), &mut self.device, &mut self.sockets);
        let next = self.interface.poll_at(instant(now), &self.sockets);
        // Its clock is coarser than ours: a time that it has reached already is due in its next microsecond.
        self.timeout = next.map(|at| {
            let at = Time::ZERO + Span::us(at.total_micros().max(0) as u64);
            if at > now { at } else { Time::from_ns((now.as_ns() / 1000 + 1) * 1000) }
        });
    }
}

impl Peer for Smoltcp {
    fn receive(&mut self, datagram: &mut Datagram, now: Time) {
        self.device.arrived.push_back(std::mem::take(&mut datagram.bytes));
        self.poll(now);
    }

    fn transmit(&mut self, datagram: &mut Datagram, _now: Time) -> bool {
        let Some(packet) = self.device.leaving.pop_front() else { return false };
        (datagram.bytes, datagram.headers) = (packet, Bytes(0));
        true
    }

    fn timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn on_timeout(&mut self, now: Time) {
        self.poll(now);
    }

    fn application(&mut self, stream: &mut Stream, now: Time) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        let (mut wrote, mut read) = (0, 0);
        while socket.can_send() && stream.unwritten() > 0 {
            let piece = stream.unwritten().min(PIECE as u64) as usize;
            let Ok(taken @ 1..) = socket.send_slice(&self.piece[..piece]) else { break };
            stream.wrote(taken);
            wrote += taken;
        }
        while socket.can_recv() {
            let Ok(taken @ 1..) = socket.recv_slice(&mut self.piece) else { break };
            stream.has_read(taken);
            read += taken;
        }
        if wrote + read > 0 {
            self.poll(now);
        }
    }
}

/// A network device that queues its packets in memory.
#[derive(Default)]
struct Memory {
    arrived: VecDeque<Vec<u8>>,
    leaving: VecDeque<Vec<u8>>,
}

struct Arrived(Vec<u8>);
struct Leaving<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let written = write(&mut packet);
        self.0.push_back(packet);
        written
    }
}

impl Device for Memory {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leaving<'_>)> {
        let packet = self.arrived.pop_front()?;
        Some((Arrived(packet), Leaving(&mut self.leaving)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.medium, capabilities.max_transmission_unit) = (Medium::Ip, MTU);
        capabilities
    }
}

/// Its controls.
pub const STACKS: [crate::Stack; 2] = [
    crate::Stack { name: "smoltcp:reno", control: "new_reno", repeats: true, ends: || ends(CongestionControl::Reno) },
    crate::Stack { name: "smoltcp:cubic", control: "cubic", repeats: true, ends: || ends(CongestionControl::Cubic) },
];
