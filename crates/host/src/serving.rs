//! When a server is ready for its clients: as soon as it waits for them at a port.
//!
//! The kernel lists the sockets of a namespace that wait for others (`sock_diag(7)`), and `/proc/PID/fd` says whether one of them is the
//! server's. Other programs may listen in the same namespace, so the list alone does not say it.
use crate::socket::Diag;
use crate::{Clock, HostError, Process, Status};
use narrows_core::{Span, Time};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for a server. Some programs at the receiving end never wait for anybody.
pub const LONGEST_START: Span = Span::s(3);
/// Interval between looks.
const LOOK: Duration = Duration::from_millis(10);

impl Process {
    /// Waits until the command, or something that it started, listens at a TCP port or has a UDP port without a peer; at most
    /// `longest`. `diag` shows the namespace of the command. Returns the status if the command has ended instead.
    ///
    /// # Errors
    /// When the kernel does not list the sockets.
    pub fn wait_until_serving(&mut self, diag: &mut Diag, longest: Span) -> Result<Option<Status>, HostError> {
        let clock = Clock::start();
        loop {
            if let Some(status) = self.wait_for(LOOK) {
                return Ok(Some(status));
            }
            if clock.now() >= Time::ZERO + longest || self.holds_one_of(&diag.servers()?) {
                return Ok(None);
            }
        }
    }

    /// Does the command, or something that it started, hold one of the sockets with these inode numbers?
    fn holds_one_of(&self, inodes: &HashSet<u32>) -> bool {
        // Everything that the command starts is in a PID namespace of its own, as the command's init is.
        let namespace = |process: &Path| fs::read_link(process.join("ns/pid")).ok();
        let Some(own) = namespace(&PathBuf::from(format!("/proc/{}", self.id()))) else { return false };
        // What ends meanwhile, or may not be looked at, holds nothing.
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let mut own = processes.filter(|process| namespace(process).as_ref() == Some(&own));
        own.any(|process| {
            let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            open.filter_map(|entry| socket(&fs::read_link(entry.path()).ok()?)).any(|inode| inodes.contains(&inode))
        })
    }
}

/// The inode number of a socket, from the target of its link in `/proc/PID/fd`.
fn socket(target: &Path) -> Option<u32> {
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
