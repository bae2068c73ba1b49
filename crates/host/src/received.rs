//! Packets with the times at which the kernel got them: a program that is late to read one does not make it late.
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrLike, recvmsg};
use nix::sys::time::TimeSpec;
use rustix::time::{ClockId, clock_gettime};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _};

use crate::socket::option::Opt;

/// A packet that was read.
pub(crate) struct Received<Address> {
    /// Its length; with `MSG_TRUNC` all of it.
    pub(crate) bytes: usize,
    pub(crate) from: Option<Address>,
    /// When the kernel got it, ns of [`now`]'s clock.
    pub(crate) at: Option<u64>,
}

/// Reads packets from one socket.
#[derive(Debug)]
pub(crate) struct Receiver {
    control: Vec<u8>,
}

impl Receiver {
    /// Asks the kernel for the times of a socket's packets.
    pub(crate) fn new(socket: impl AsFd) -> std::io::Result<Receiver> {
        Opt::TIMESTAMPNS.set(socket, 1_i32.to_ne_bytes())?;
        Ok(Receiver { control: nix::cmsg_space!(TimeSpec) })
    }

    /// Reads the next packet.
    pub(crate) fn read<Address: SockaddrLike>(
        &mut self,
        socket: impl AsFd,
        into: &mut [u8],
        flags: MsgFlags,
    ) -> nix::Result<Received<Address>> {
        let mut into = [IoSliceMut::new(into)];
        let read = recvmsg::<Address>(socket.as_fd().as_raw_fd(), &mut into, Some(&mut self.control), flags)?;
        let at = read.cmsgs().ok().into_iter().flatten().find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(at) => Some(at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64),
            _ => None,
        });
        Ok(Received { bytes: read.bytes, from: read.address, at })
    }
}

/// The system's clock (`CLOCK_REALTIME`), ns since its epoch.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
