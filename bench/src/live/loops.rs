//! Bare loops: the cost of receiving packets and sending them again, without any other work.
use super::endpoints::{Window, text, thread_time};
use super::ours;
use super::packet_socket::PacketSocket;
use super::veth;
use narrows_core::Span;
use narrows_host::Namespace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{Errno, read, write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A loop over TUN devices. With offloads super-packets arrive uncut, without them each packet arrives by itself.
pub(crate) fn tun<T>(
    offload: bool,
    window: Window,
    during: impl FnOnce(&[Namespace; 2]) -> Result<T, String>,
) -> Result<(T, Span), String> {
    let sides = ours::sides()?;
    let devices = ours::devices(&sides, offload)?;
    both([devices[0].as_fd(), devices[1].as_fd()], window, || during(&sides))
}

/// A loop over packet sockets on the inner ends of two veth pairs; `whole` means with offloads.
pub(crate) fn packet_sockets<T>(
    whole: bool,
    window: Window,
    during: impl FnOnce(&[Namespace; 2]) -> Result<T, String>,
) -> Result<(T, Span), String> {
    let sides = ours::sides()?;
    let middle = Namespace::create().map_err(text)?;
    for (side, inner) in sides.iter().zip(INNER) {
        veth::pair([side, &middle], ["veth0", inner], whole)?;
    }
    veth::address(&sides)?;
    let socket = |name: &str| middle.run(|| PacketSocket::open(name)).map_err(text)?.map_err(text);
    let sockets = [socket(INNER[0])?, socket(INNER[1])?];
    both([sockets[0].as_fd(), sockets[1].as_fd()], window, || during(&sides))
}

const INNER: [&str; 2] = ["left", "right"];

/// Runs a thread for each direction; returns the CPU time of both in the window.
fn both<T>(
    devices: [BorrowedFd<'_>; 2],
    window: Window,
    during: impl FnOnce() -> Result<T, String>,
) -> Result<(T, Span), String> {
    let stop = AtomicBool::new(false);
    let pass = |from: usize| {
        let (from, to) = (devices[from], devices[1 - from]);
        let stop = &stop;
        move || pass(from, to, window, stop)
    };
    thread::scope(|scope| {
        let threads = [scope.spawn(pass(0)), scope.spawn(pass(1))];
        let result = during();
        stop.store(true, Ordering::Relaxed);
        let mut took = Span::ZERO;
        for thread in threads {
            took += thread.join().map_err(|_| "a loop panicked")?.map_err(text)?;
        }
        Ok((result?, took))
    })
}

/// Passes packets until it is told to stop; returns its CPU time since the beginning of the window.
fn pass(from: BorrowedFd<'_>, to: BorrowedFd<'_>, window: Window, stop: &AtomicBool) -> Result<Span, Errno> {
    let mut buffer = vec![0; 1 << 17];
    let (mut before, mut counts) = (thread_time(), false);
    while !stop.load(Ordering::Relaxed) {
        if !counts && window.clock.now() >= window.from {
            (before, counts) = (thread_time(), true);
        }
        match read(from, &mut buffer) {
            // A packet that a device does not take is lost, as on a wire.
            Ok(n) => drop(write(to, &buffer[..n])),
            Err(Errno::AGAIN) => {
                let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
                let _ = poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&timeout));
            }
            Err(Errno::INTR | Errno::NETDOWN) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(thread_time() - before)
}
