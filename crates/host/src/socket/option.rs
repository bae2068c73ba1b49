//! Socket options that neither rustix nor socket2 has.
#![expect(unsafe_code, reason = "getsockopt and setsockopt take pointers")]
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A socket option of Linux: its level and number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    level: libc::c_int,
    number: libc::c_int,
}

impl Opt {
    /// A connection's state.
    pub(crate) const TCP_INFO: Opt = Opt { level: libc::IPPROTO_TCP, number: libc::TCP_INFO };
    /// Minimum retransmission timeout, microseconds (Linux 6.15).
    pub(crate) const TCP_RTO_MIN_US: Opt = Opt { level: libc::IPPROTO_TCP, number: 45 };
    /// Maximum pacing rate, bytes per second. Any value but the highest switches pacing on.
    pub(crate) const MAX_PACING_RATE: Opt = Opt { level: libc::SOL_SOCKET, number: libc::SO_MAX_PACING_RATE };
    /// Receive buffer beyond the system's limit.
    pub(crate) const RCVBUF_FORCE: Opt = Opt { level: libc::SOL_SOCKET, number: libc::SO_RCVBUFFORCE };
    /// Bytes that must have arrived before a socket is readable; accepted sockets have their listener's.
    pub(crate) const RCVLOWAT: Opt = Opt { level: libc::SOL_SOCKET, number: libc::SO_RCVLOWAT };
    /// Send buffer beyond the system's limit.
    pub(crate) const SNDBUF_FORCE: Opt = Opt { level: libc::SOL_SOCKET, number: libc::SO_SNDBUFFORCE };
    /// Binds an address now and a port only at connect, so connections to different receivers may use the same port.
    pub(crate) const BIND_NO_PORT: Opt = Opt { level: libc::IPPROTO_IP, number: libc::IP_BIND_ADDRESS_NO_PORT };
    /// What becomes of packets longer than the path allows.
    pub(crate) const MTU_DISCOVER: Opt = Opt { level: libc::IPPROTO_IP, number: libc::IP_MTU_DISCOVER };
    /// The same for IPv6.
    pub(crate) const IPV6_MTU_DISCOVER: Opt = Opt { level: libc::IPPROTO_IPV6, number: libc::IPV6_MTU_DISCOVER };
    /// Refuses IPv6 packets longer than the MTU instead of cutting them.
    pub(crate) const IPV6_DONTFRAG: Opt = Opt { level: libc::IPPROTO_IPV6, number: libc::IPV6_DONTFRAG };

    /// A packet socket sees no packets that leave (Linux 4.20).
    pub(crate) const IGNORE_OUTGOING: Opt = Opt { level: libc::SOL_PACKET, number: 23 };
    /// A packet socket's counters since they were last read.
    pub(crate) const PACKET_STATISTICS: Opt = Opt { level: libc::SOL_PACKET, number: libc::PACKET_STATISTICS };
    /// Received packets carry their times, ns.
    pub(crate) const TIMESTAMPNS: Opt = Opt { level: libc::SOL_SOCKET, number: libc::SO_TIMESTAMPNS };

    /// Sets the option to a value of N bytes in native byte order.
    pub(crate) fn set<const N: usize>(self, socket: impl AsFd, value: [u8; N]) -> io::Result<()> {
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: the pointer and the length are those of `value`, which the kernel only reads during the call.
        let answer =
            unsafe { libc::setsockopt(fd, self.level, self.number, value.as_ptr().cast(), N as libc::socklen_t) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Reads the option; returns how many bytes of the buffer the kernel has filled.
    pub(crate) fn get(self, socket: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
        let fd = socket.as_fd().as_raw_fd();
        let mut len = libc::socklen_t::try_from(into.len()).unwrap_or(libc::socklen_t::MAX);
        // SAFETY: the kernel writes at most `len` bytes, no more than `into` has, and sets `len` to how many it wrote.
        let answer = unsafe { libc::getsockopt(fd, self.level, self.number, into.as_mut_ptr().cast(), &raw mut len) };
        if answer == 0 { Ok(into.len().min(len as usize)) } else { Err(io::Error::last_os_error()) }
    }
}
