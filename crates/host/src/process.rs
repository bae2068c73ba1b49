//! A command in a namespace, and everything that it starts.
//!
//! A thread enters the network namespace, moves to new PID and mount namespaces, starts the command and waits for it. The
//! command's parent is a small init, PID 1 of the new namespace. The kernel kills the init when the thread ends, however it ends
//! (`PR_SET_PDEATHSIG`), and everything in the namespace when the init ends. So the end of the command, the end of this process
//! and a drop of [`Process`] have the same effect.
//!
//! The command stays in this process's session and process group: it has the terminal when this process has it, and Ctrl-C and
//! Ctrl-Z reach both. A shell may give the terminal to another group and end without giving it back; then the thread gives it
//! back.
use std::io::{self, Read};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::net::{self, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, test_kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use rustix::thread::UnshareFlags;

use crate::HostError;
use crate::{Launch, Status};
use crate::{Namespace, sys};

/// A running command. Dropping it kills the command and everything that it started.
#[derive(Debug)]
pub struct Process {
    /// A pidfd of the init: readable when everything has ended.
    init: OwnedFd,
    pid: u32,
    ended: Receiver<Status>,
    status: Option<Status>,
    keeper: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a command in a namespace.
    ///
    /// # Errors
    /// `NotAllowed` names a command that does not exist or cannot be executed. Other errors mean that the system has no more
    /// processes or namespaces.
    pub fn spawn(namespace: &Namespace, launch: &Launch) -> Result<Process, HostError> {
        let command = prepare(launch)?;
        let namespace = namespace.try_clone()?;
        let name = launch.argv[0].to_string_lossy().into_owned();
        let ours = foreground();
        let (here, there) =
            socketpair(net::AddressFamily::UNIX, net::SocketType::STREAM, net::SocketFlags::CLOEXEC, None)
                .map_err(HostError::system("make a pair of sockets"))?;
        let (started, start) = channel();
        let (over, ended) = channel();
        let keep = move || match start_command(&namespace, command, there, &name) {
            Ok(Started { child, status, init }) => {
                // The pidfd is all that a waiter needs. The namespace must not live on after the command has ended.
                drop(namespace);
                let _ = started.send(Ok((init, child.id())));
                attend(child, status, ours, &over);
            }
            Err(error) => mem::drop(started.send(Err(error))),
        };
        let keeper = thread::Builder::new().name("narrows-command".into());
        let keeper = keeper.spawn(keep).map_err(HostError::system("start a thread"))?;
        answer(&here);
        match start.recv() {
            Ok(Ok((init, pid))) => Ok(Process { init, pid, ended, status: None, keeper: Some(keeper) }),
            Ok(Err(error)) => Err(error),
            Err(gone) => Err(HostError::System { doing: "start a command".into(), error: io::Error::other(gone) }),
        }
    }

    /// The status, if the command has ended.
    pub fn try_wait(&mut self) -> Option<Status> {
        self.wait_for(Duration::ZERO)
    }

    /// The status, if the command ends within this time.
    pub fn wait_for(&mut self, time: Duration) -> Option<Status> {
        if self.status.is_none() {
            self.status = self.ended.recv_timeout(time).ok();
        }
        self.status
    }

    /// Waits until the command ends.
    pub fn wait(&mut self) -> Status {
        if let Some(status) = self.status {
            return status;
        }
        // The thread sends the status before it ends. If it could not, the kernel has killed the command with it.
        *self.status.insert(self.ended.recv().unwrap_or(KILLED))
    }

    /// Sends `SIGINT` to the command and everything that it started, as Ctrl-C does for a terminal's foreground; not if Ctrl-C
    /// has just done it.
    pub fn interrupt(&self) {
        // This fails only if it has ended.
        let _ = pidfd_send_signal(&self.init, sys::INTERRUPT);
    }

    /// Kills the command and everything that it started, and waits until they have ended.
    pub fn kill(&mut self) -> Status {
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
        self.wait()
    }

    /// The process id of the command's init, the ancestor of everything else, in this process's PID namespace.
    pub fn id(&self) -> u32 {
        self.pid
    }
}

/// The descriptor is readable when the command has ended.
impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.init.as_fd()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

const KILLED: Status = Status::Signaled(libc::SIGKILL);

/// Waits until the init has set its death signal, and answers it. Returns also if the start failed.
fn answer(init: &OwnedFd) {
    // Nothing is received when the other side is closed. Then the start failed, and `start_command` returns the error.
    if net::recv(init, &mut [0], net::RecvFlags::empty()).is_ok_and(|(len, _)| len == 1) {
        let _ = net::send(init, &[0], net::SendFlags::NOSIGNAL);
    }
}

fn prepare(launch: &Launch) -> Result<Command, HostError> {
    let Some((program, arguments)) = launch.argv.split_first() else {
        return Err(HostError::Unsupported("there is no command to start".into()));
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(launch.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &launch.cwd {
        // Checked here because the error of a start does not distinguish a missing folder from a missing program.
        if !cwd.is_dir() {
            return Err(HostError::NotAllowed(format!("there is no folder {} to start in", cwd.display())));
        }
        command.current_dir(cwd);
    }
    let failed = || HostError::system("hand a stream to a command");
    command.stdin(launch.stdin.stdio().map_err(failed())?);
    command.stdout(launch.stdout.stdio().map_err(failed())?);
    command.stderr(launch.stderr.stdio().map_err(failed())?);
    Ok(command)
}

struct Started {
    child: Child,
    status: io::PipeReader,
    init: OwnedFd,
}

/// Starts the command; called on a thread that lives as long as the command.
fn start_command(
    namespace: &Namespace,
    mut command: Command,
    answer: OwnedFd,
    name: &str,
) -> Result<Started, HostError> {
    sys::block_signals();
    namespace.enter()?;
    let alone = UnshareFlags::NEWPID | UnshareFlags::NEWNS;
    sys::unshare(alone).map_err(HostError::system("make a PID and a mount namespace for a command"))?;
    // Mounts made inside stay inside. Changes of mounts outside are still seen inside.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)
        .map_err(HostError::system("keep a command's mounts to itself"))?;
    let (status, writer) = io::pipe().map_err(HostError::system("make a pipe"))?;
    let us = pidfd_open(getpid(), PidfdFlags::empty()).map_err(HostError::system("hold this process"))?;
    sys::with_init(&mut command, sys::Tie { us, answer, status: writer.into() });
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => HostError::NotAllowed(format!("there is no program `{name}`")),
        io::ErrorKind::PermissionDenied => {
            HostError::NotAllowed(format!("there is no program `{name}` that may be executed"))
        }
        _ => HostError::System { doing: format!("start `{name}`"), error },
    })?;
    let pid = Pid::from_child(&child);
    let held = pidfd_open(pid, PidfdFlags::empty()).map_err(HostError::system("hold a command"));
    match held {
        Ok(init) => Ok(Started { child, status, init }),
        Err(error) => {
            let _ = child.kill().and_then(|()| child.wait());
            Err(error)
        }
    }
}

/// Reads the raw status of `wait`.
fn status_from(raw: i32) -> Status {
    let status = ExitStatus::from_raw(raw);
    status.code().map_or_else(|| Status::Signaled(status.signal().unwrap_or(0)), Status::Exited)
}

/// Waits for the command and sends its status.
fn attend(mut child: Child, mut status: io::PipeReader, ours: Option<Pid>, over: &Sender<Status>) {
    let _ = child.wait();
    let mut raw = [0; 4];
    // The pipe is empty if the init was killed.
    let ended = status.read_exact(&mut raw).map_or(KILLED, |()| status_from(i32::from_ne_bytes(raw)));
    if let Some(group) = ours {
        take_back(group);
    }
    let _ = over.send(ended);
}

/// This process's group, if it has the terminal.
fn foreground() -> Option<Pid> {
    let ours = sys::process_group()?;
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == ours).then_some(ours)
}

/// Gives the terminal back to this process's group if the group that has it no longer exists. If another group has it, this
/// process may be in the background.
fn take_back(ours: Pid) {
    let terminal = io::stdin();
    let left = tcgetpgrp(&terminal).is_ok_and(|group| test_kill_process_group(group) == Err(Errno::SRCH));
    if left {
        // All signals are blocked on this thread; otherwise SIGTTOU would stop a background process here. The call fails if the
        // terminal is gone.
        let _ = tcsetpgrp(terminal, ours);
    }
}
