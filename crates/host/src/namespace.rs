//! Network namespaces, held by file descriptors.
//!
//! A new namespace has the kernel's defaults, with these differences: loopback is up. TCP's settings are copied from the
//! namespace in which it was made, so that a program uses TCP as this machine does. Metrics are not kept from one connection to
//! the next (`tcp_no_metrics_save`), so that one run does not depend on the one before. Anybody may `ping`. Packets are
//! forwarded, so that shells nest. IPv6 addresses can be used at once.
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic;
use std::path::Path;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::HostError;
use crate::netlink::Netlink;
use crate::{privilege, sys};

/// A network namespace. It lives as long as this value, and as long as a process, a socket or a device's descriptor in it.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

impl Namespace {
    /// The calling thread's namespace.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub fn current() -> Result<Namespace, HostError> {
        here().map_err(HostError::system("open the network namespace of this process"))
    }

    /// Makes a namespace with only a loopback device. Needs the rights that [`gain`](crate::gain) gets.
    ///
    /// # Errors
    /// When the system does not allow it; the message says what would help.
    pub fn create() -> Result<Namespace, HostError> {
        on_a_thread(|| {
            let outside = tcp_settings();
            sys::unshare(UnshareFlags::NEWNET).map_err(privilege::refused)?;
            let made = here().map_err(HostError::system("open a new network namespace"))?;
            let mut netlink = Netlink::open().map_err(HostError::system("open a routing socket"))?;
            netlink.set_up(LOOPBACK).map_err(HostError::system("bring up the loopback device"))?;
            settle(&outside);
            Ok(made)
        })
    }

    /// Runs `f` in the namespace, on a new thread. Sockets and files that it opens belong to the namespace for good.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    ///
    /// # Panics
    /// Panics if `f` panics.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, HostError> {
        on_a_thread(|| {
            self.enter()?;
            Ok(f())
        })
    }

    /// A second descriptor for the same namespace.
    ///
    /// # Errors
    /// When no file descriptors are left.
    pub fn try_clone(&self) -> Result<Namespace, HostError> {
        let fd = self.fd.try_clone().map_err(HostError::system("hold a network namespace"))?;
        Ok(Namespace { fd })
    }

    /// The number that identifies the namespace to the kernel, as `/proc/PID/ns/net` shows it.
    ///
    /// # Errors
    /// When the descriptor cannot be read.
    pub fn id(&self) -> Result<u64, HostError> {
        let stat = rustix::fs::fstat(&self.fd).map_err(HostError::system("ask for a namespace's number"))?;
        Ok(stat.st_ino)
    }

    /// Moves the calling thread into the namespace for the rest of its life.
    pub(crate) fn enter(&self) -> Result<(), HostError> {
        // Entering takes a right that a user namespace does not give for the network namespace in which it was made. Staying
        // there takes none.
        if Namespace::current()?.id()? == self.id()? {
            return Ok(());
        }
        move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(HostError::system("enter a network namespace"))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The loopback device's index, the same in every namespace.
const LOOPBACK: u32 = 1;

fn here() -> io::Result<Namespace> {
    Ok(Namespace { fd: File::open("/proc/thread-self/ns/net")?.into() })
}

/// Runs `f` on a thread that ends with it, because a thread that has entered a namespace stays there.
fn on_a_thread<T: Send>(f: impl FnOnce() -> Result<T, HostError> + Send) -> Result<T, HostError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("narrows-ns".into());
        let running = thread.spawn_scoped(scope, f).map_err(HostError::system("start a thread"))?;
        running.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}

/// TCP's settings in the calling thread's namespace: path and value.
fn tcp_settings() -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir("/proc/sys/net/ipv4") else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let wanted = names.filter(|name| name.starts_with("tcp_") && !NOT_COPIED.contains(&name.as_str()));
    let paths = wanted.map(|name| format!("/proc/sys/net/ipv4/{name}"));
    paths.filter_map(|path| fs::read_to_string(&path).ok().map(|value| (path, value))).collect()
}

/// Settings that are not copied: a secret, a size for child namespaces, and one that is set below.
const NOT_COPIED: [&str; 3] = ["tcp_fastopen_key", "tcp_child_ehash_entries", "tcp_no_metrics_save"];

/// Applies the settings of a new namespace, from a thread in it. Where `/proc/sys` cannot be written (containers mount it
/// read-only) the namespace still works, and a later step that needs a setting fails with its own message. Duplicate address
/// detection is skipped either way.
fn settle(tcp: &[(String, String)]) {
    for (path, value) in tcp {
        if fs::read_to_string(path).is_ok_and(|own| own != *value) {
            set(path, value);
        }
    }
    for (path, value) in OWN {
        set(path, value);
    }
    // Every group may ping. In a user namespace only the groups that it maps exist.
    let ping = "/proc/sys/net/ipv4/ping_group_range";
    if !set(ping, "0 2147483647") {
        let gid = rustix::process::getegid().as_raw();
        set(ping, &format!("{gid} {gid}"));
    }
}

/// `default` applies to devices made later, `all` to the namespace.
const OWN: [(&str, &str); 8] = [
    ("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"),
    ("/proc/sys/net/ipv4/ip_forward", "1"),
    ("/proc/sys/net/ipv6/conf/all/forwarding", "1"),
    // Setting `all` sets this one, too, but a device that forwards sends reports of the routers' multicast group on the link.
    ("/proc/sys/net/ipv6/conf/default/forwarding", "0"),
    ("/proc/sys/net/ipv6/conf/all/accept_dad", "0"),
    ("/proc/sys/net/ipv6/conf/default/accept_dad", "0"),
    ("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1"),
    ("/proc/sys/net/ipv6/conf/default/router_solicitations", "0"),
];

fn set(path: impl AsRef<Path>, value: &str) -> bool {
    fs::write(path, value).is_ok()
}
