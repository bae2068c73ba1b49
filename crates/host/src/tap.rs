//! The packets that come by a device, as a packet socket sees them (packet(7)).
use crate::received::{self, Receiver};
use crate::socket::option::Opt;
use crate::sys::bind_to_device;
use crate::tun::index_of;
use crate::{Clock, HostError, Namespace};
use nix::sys::socket::{LinkAddr, MsgFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::OwnedFd;

/// Room for packets that have not been read yet, bytes. The kernel counts all that it allocates for one, not only its length.
const BUFFER: i32 = 256 << 20;

/// A packet socket on a device.
#[derive(Debug)]
pub struct Tap {
    socket: OwnedFd,
    receiver: Receiver,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen<'a> {
    /// When it came by, ns since the epoch of the system's clock (`CLOCK_REALTIME`).
    pub at: u64,
    /// It leaves the system by the device, whose queue it has passed. Otherwise it comes from there.
    pub leaves: bool,
    /// Length at the IP layer, bytes.
    pub ip_len: u32,
    /// Its first bytes, from the IP header on.
    pub head: &'a [u8],
}

impl Tap {
    /// Sees the packets that come by a device of this namespace from now on, with `leaving` also those that leave by it.
    ///
    /// # Errors
    /// There is no such device, or no right to see its packets.
    pub fn open(namespace: &Namespace, device: &str, leaving: bool) -> Result<Tap, HostError> {
        let open = || {
            let index = index_of(device)?;
            // With no protocol: the socket sees nothing before it is bound to the device.
            let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
            Opt::RCVBUF_FORCE.set(&socket, BUFFER.to_ne_bytes())?;
            let receiver = Receiver::new(&socket)?;
            if !leaving {
                Opt::IGNORE_OUTGOING.set(&socket, 1_i32.to_ne_bytes())?;
            }
            bind_to_device(&socket, index)?;
            Ok::<_, io::Error>(Tap { socket, receiver })
        };
        namespace.run(open)?.map_err(HostError::system(format!("see the packets of {device}")))
    }

    /// Reads the packets that have come by, in order; keeps as many bytes of each as fit into `head`.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&mut self, head: &mut [u8], mut see: impl FnMut(Seen<'_>)) -> Result<(), HostError> {
        let failed = || HostError::system("read packets");
        // MSG_TRUNC: the answer is the whole packet's length.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        loop {
            let received = match self.receiver.read::<LinkAddr>(&self.socket, head, flags) {
                Ok(received) => received,
                Err(nix::Error::EAGAIN) => return Ok(()),
                Err(nix::Error::EINTR) => continue,
                Err(error) => return Err(failed()(io::Error::from(error))),
            };
            let leaves = received.from.is_some_and(|from| from.pkttype() == libc::PACKET_OUTGOING);
            let ip_len = received.bytes as u32;
            let at = received.at.ok_or_else(|| failed()(io::Error::other("one has no time")))?;
            let kept = head.len().min(ip_len as usize);
            see(Seen { at, leaves, ip_len, head: &head[..kept] });
        }
    }

    /// Packets that found no room since this was last asked.
    ///
    /// # Errors
    /// The system's.
    pub fn missed(&self) -> Result<u32, HostError> {
        let mut told = [0; 8];
        Opt::PACKET_STATISTICS
            .get(&self.socket, &mut told)
            .map_err(HostError::system("read a packet socket's counters"))?;
        // `struct tpacket_stats`: packets, among them those without room.
        Ok(u32::from_ne_bytes([told[4], told[5], told[6], told[7]]))
    }
}

/// What the system's clock showed at the epoch of a run, ns since its own.
pub fn epoch(clock: &Clock) -> u64 {
    received::now().saturating_sub(clock.now().as_ns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn packets_are_seen_both_ways_with_their_times_and_lengths() {
        let here = match Namespace::create() {
            Ok(here) => here,
            Err(reason) => return println!("skipped: {reason}"),
        };
        let clock = Clock::start();
        let mut both = Tap::open(&here, "lo", true).unwrap();
        let mut incoming = Tap::open(&here, "lo", false).unwrap();
        assert!(Tap::open(&here, "eth7", true).is_err_and(|error| error.to_string().contains("the packets of eth7")));
        let send = || {
            let (from, to) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
            for length in [10, 1000] {
                from.send_to(&vec![7; length], to.local_addr()?)?;
            }
            to.recv(&mut [0; 2000])
        };
        here.run(send).unwrap().unwrap();
        let after = epoch(&clock) + clock.now().as_ns();
        let seen = |tap: &mut Tap| {
            let (mut packets, mut times) = (Vec::new(), Vec::new());
            tap.read(&mut [0; 64], |packet| {
                packets.push((packet.leaves, packet.ip_len, packet.head.len(), packet.head[0]));
                times.push(packet.at);
            })
            .unwrap();
            assert!(times.is_sorted() && times.iter().all(|&at| (epoch(&clock)..=after).contains(&at)), "{times:?}");
            packets
        };
        let [short, long] = [|leaves| (leaves, 38, 38, 0x45), |leaves| (leaves, 1028, 64, 0x45)];
        assert_eq!(seen(&mut both), [short(true), short(false), long(true), long(false)]);
        assert_eq!(seen(&mut incoming), [short(false), long(false)]);
        assert_eq!((both.missed().unwrap(), seen(&mut both)), (0, vec![]));
    }
}
