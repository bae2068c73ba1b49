//! A host that answers small packets: how late they are, over one interface.
//!
//! ICMP timestamps (RFC 792) carry the time at which the reflector received the request, in milliseconds, so that the
//! delays of the two directions are known separately. Not every host answers them. An echo gives the round trip only.
use std::io;
use std::net::{IpAddr, SocketAddr};

use narrows_core::{Span, Time};
use nix::sys::socket::MsgFlags;
use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::Clock;
use crate::received::{self, Receiver};

/// What a reflector answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReflectorKind {
    /// ICMP timestamps.
    Timestamp,
    /// ICMP echo requests.
    Echo,
}

/// The answer to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReflectorAnswer {
    /// The probe's number.
    pub number: u16,
    /// When the kernel received the answer.
    pub heard: Time,
    /// When the reflector received the probe: milliseconds since midnight UTC by its clock.
    pub received_ms: Option<u32>,
}

/// Probes to one address, and the answers.
#[derive(Debug)]
pub struct Reflector {
    socket: Socket,
    receiver: Receiver,
    kind: ReflectorKind,
    is_v6: bool,
    identifier: u16,
    clock: Clock,
}

impl Reflector {
    /// Finds out what the address answers over this interface; `None` if it answers nothing.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, or when there is no such interface.
    pub fn find(interface: &str, address: IpAddr, clock: Clock) -> io::Result<Option<Reflector>> {
        let is_v6 = address.is_ipv6();
        let (domain, protocol) =
            if is_v6 { (Domain::IPV6, Protocol::ICMPV6) } else { (Domain::IPV4, Protocol::ICMPV4) };
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.set_nonblocking(true)?;
        let receiver = Receiver::new(&socket)?;
        let identifier = std::process::id() as u16;
        let mut found = Reflector { socket, receiver, kind: ReflectorKind::Timestamp, is_v6, identifier, clock };
        // Without a route there is no answer either.
        if found.socket.connect(&SockAddr::from(SocketAddr::new(address, 0))).is_err() {
            return Ok(None);
        }
        // ICMPv6 has no timestamps.
        let kinds: &[ReflectorKind] =
            if is_v6 { &[ReflectorKind::Echo] } else { &[ReflectorKind::Timestamp, ReflectorKind::Echo] };
        for kind in kinds {
            found.kind = *kind;
            for number in 0..TRIES {
                found.send(number);
                if found.wait(clock.now() + PATIENCE)?.is_some() {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// What it answers.
    pub fn kind(&self) -> ReflectorKind {
        self.kind
    }

    /// Sends a probe. One that cannot be sent, because the interface is down, is as one that is lost.
    pub fn send(&self, number: u16) {
        let request = request(self.kind, self.is_v6, self.identifier, number);
        let _ = self.socket.send(&request);
    }

    /// Waits for an answer until this time; `None` if there is none.
    ///
    /// # Errors
    /// When the system cannot wait.
    pub fn wait(&mut self, until: Time) -> io::Result<Option<ReflectorAnswer>> {
        let mut packet = [0; 256];
        loop {
            while let Ok(read) = self.receiver.read::<()>(&self.socket, &mut packet, MsgFlags::empty()) {
                let heard = self.heard(read.at);
                let packet = &packet[..read.bytes];
                if let Some((number, received_ms)) = answer(self.kind, self.is_v6, self.identifier, packet) {
                    return Ok(Some(ReflectorAnswer { number, heard, received_ms }));
                }
            }
            let left = until.since(self.clock.now());
            if left == Span::ZERO {
                return Ok(None);
            }
            let ns = left.as_ns();
            let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&timeout)) {
                // A signal ends a program that waits.
                Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Reflector {
    /// The clock's time of a packet that the kernel got then; the present time if that is too long ago, because the system's clock was set.
    fn heard(&self, at: Option<u64>) -> Time {
        let (now, system) = (self.clock.now(), received::now());
        let ago = at.and_then(|at| system.checked_sub(at)).map(Span::ns).filter(|ago| *ago < OLDEST);
        Time::from_ns(now.as_ns().saturating_sub(ago.unwrap_or(Span::ZERO).as_ns()))
    }
}

/// An answer is read after this time at the latest.
const OLDEST: Span = Span::s(1);

/// Probes of each kind before a host counts as one that does not answer them, and the time to the next one. A late answer to an earlier one counts, too.
const TRIES: u16 = 3;
const PATIENCE: Span = Span::ms(300);

/// Length of a message: with IPv4 and Ethernet headers, an echo is as long as [`narrows_core::autorate::PROBE`] and a timestamp 10 bytes shorter.
const ECHO: usize = 30;
const TIMESTAMP: usize = 20;

/// Types of requests and answers: RFC 792, RFC 4443.
const fn types(kind: ReflectorKind, is_v6: bool) -> (u8, u8) {
    match (kind, is_v6) {
        (ReflectorKind::Timestamp, _) => (13, 14),
        (ReflectorKind::Echo, false) => (8, 0),
        (ReflectorKind::Echo, true) => (128, 129),
    }
}

fn request(kind: ReflectorKind, is_v6: bool, identifier: u16, number: u16) -> Vec<u8> {
    let len = if kind == ReflectorKind::Timestamp { TIMESTAMP } else { ECHO };
    let mut message = vec![0; len];
    message[0] = types(kind, is_v6).0;
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&number.to_be_bytes());
    // The kernel sums those of IPv6, with their addresses.
    if !is_v6 {
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    message
}

/// The number of the probe that this packet answers, and when the reflector received it.
fn answer(kind: ReflectorKind, is_v6: bool, identifier: u16, packet: &[u8]) -> Option<(u16, Option<u32>)> {
    // A raw socket of IPv4 has the IP header, too.
    let header = if is_v6 { 0 } else { usize::from(*packet.first()? & 15) * 4 };
    let message = packet.get(header..)?;
    let word = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
    if *message.first()? != types(kind, is_v6).1 || word(4)? != identifier {
        return None;
    }
    let number = word(6)?;
    if kind == ReflectorKind::Echo {
        return Some((number, None));
    }
    let received = u32::from(word(12)?) << 16 | u32::from(word(14)?);
    // RFC 792: with the first bit set it is no time since midnight.
    (received < DAY_MS).then_some((number, Some(received)))
}

/// Milliseconds of a day.
const DAY_MS: u32 = 86_400_000;

/// RFC 1071; for an even length.
fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of IPv4 to this request.
    fn answered(kind: ReflectorKind, received: u32) -> Vec<u8> {
        let mut packet = vec![0x45; 20];
        packet.extend(request(kind, false, 0x1234, 7));
        packet[20] = types(kind, false).1;
        if kind == ReflectorKind::Timestamp {
            packet[32..36].copy_from_slice(&received.to_be_bytes());
        }
        packet
    }

    #[test]
    fn an_answer_has_its_number_and_its_time() {
        let timestamp = answered(ReflectorKind::Timestamp, 86_399_999);
        assert_eq!(answer(ReflectorKind::Timestamp, false, 0x1234, &timestamp), Some((7, Some(86_399_999))));
        let echo = answered(ReflectorKind::Echo, 0);
        assert_eq!(answer(ReflectorKind::Echo, false, 0x1234, &echo), Some((7, None)));
    }

    #[test]
    fn others_packets_are_no_answers() {
        let echo = answered(ReflectorKind::Echo, 0);
        assert_eq!(answer(ReflectorKind::Echo, false, 0x1235, &echo), None, "another program's");
        assert_eq!(answer(ReflectorKind::Timestamp, false, 0x1234, &echo), None, "another kind");
        let own_time = answered(ReflectorKind::Timestamp, 0x8000_0001);
        assert_eq!(answer(ReflectorKind::Timestamp, false, 0x1234, &own_time), None, "a time of its own");
        for len in 0..echo.len() - ECHO + 8 {
            assert_eq!(answer(ReflectorKind::Echo, false, 0x1234, &echo[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn the_checksum_of_a_request_is_right() {
        for kind in [ReflectorKind::Timestamp, ReflectorKind::Echo] {
            assert_eq!(checksum(&request(kind, false, 0xffff, 0xfffe)), 0, "a sum over all words is zero");
        }
    }
}
