//! Packet sockets (`packet(7)`) with TUN's offload header before every frame.
#![expect(unsafe_code, reason = "addresses and options of packet sockets have no safe form")]
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::io;

/// A socket that receives and sends all frames of a device.
pub(crate) struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Opens one for a device in the calling thread's namespace.
    pub(crate) fn open(device: &str) -> io::Result<PacketSocket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        sockopt::set_socket_recv_buffer_size_force(&fd, BUFFER)?;
        let index = rustix::net::netdevice::name_to_index(&fd, device)?;
        set(&fd, PACKET_VNET_HDR)?;
        // Sends directly to the driver, without the device's queueing discipline.
        set(&fd, PACKET_QDISC_BYPASS)?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: bind reads one `sockaddr_ll`, which lives until it returns.
        let bound = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
        };
        if bound != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(PacketSocket { fd })
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// `linux/if_packet.h`.
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
/// Size of the receive buffer, bytes: large, because nothing upstream waits for room.
const BUFFER: usize = 64 << 20;

fn set(fd: &OwnedFd, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: both options read one int, which lives until the call returns.
    let set = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
