//! System calls that need unsafe code, each with the reason why it is sound here.
#![expect(unsafe_code, reason = "ioctls with a structure of ours, fork, and unshare have no safe form")]
use std::ffi::{c_int, c_short};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::ioctl::{IntegerSetter, Setter, Updater, ioctl, opcode};
use rustix::mount::{MountFlags, mount};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, wait};
use rustix::thread::UnshareFlags;

/// Moves the calling thread to new namespaces.
///
/// # Panics
/// When asked to unshare the table of file descriptors, which is the case that makes the call unsafe.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    assert!(!flags.contains(UnshareFlags::FILES), "the table of file descriptors stays shared");
    // SAFETY: the call is unsafe only because of FILES, which was ruled out.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Runs the calling thread before all ordinary threads and before those with a lower real-time priority (`SCHED_FIFO`). Its
/// children do not inherit this.
pub(crate) fn run_first(priority: c_int) -> io::Result<()> {
    // SAFETY: all zero bytes are a valid value of this structure of integers.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    // SAFETY: the call reads `param`, which outlives it; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `struct ifreq` of `linux/if.h`: a name and a union of 24 bytes on 64-bit machines, 16 on others.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: c_short,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() >= size_of::<libc::ifreq>());

/// `_IOW('T', 202, int)`.
const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<c_int>(b'T', 202);
/// `_IOW('T', 208, unsigned int)`.
const TUNSETOFFLOAD: rustix::ioctl::Opcode = opcode::write::<c_int>(b'T', 208);
/// `_IOW('T', 216, int)`.
const TUNSETVNETHDRSZ: rustix::ioctl::Opcode = opcode::write::<c_int>(b'T', 216);

/// Makes a device of `tun`, an open `/dev/net/tun`, and returns its name. `wanted` may hold one `%d`, which the kernel replaces
/// by a number.
pub(crate) fn attach(tun: &File, wanted: &str, flags: c_int) -> io::Result<String> {
    let mut request = InterfaceRequest { name: [0; 16], flags: flags as c_short, rest: [0; 22] };
    if wanted.len() >= request.name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device's name has at most 15 bytes"));
    }
    request.name[..wanted.len()].copy_from_slice(wanted.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`; ours is at least as long, and any bytes are valid in it.
    unsafe { ioctl(tun, Updater::<TUNSETIFF, _>::new(&mut request)) }?;
    let len = request.name.iter().position(|&b| b == 0).unwrap_or(request.name.len());
    Ok(String::from_utf8_lossy(&request.name[..len]).into_owned())
}

/// Sets the length of the offload header before every packet, bytes.
pub(crate) fn set_header_len(tun: &File, bytes: c_int) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one int.
    Ok(unsafe { ioctl(tun, Setter::<TUNSETVNETHDRSZ, c_int>::new(bytes)) }?)
}

/// Sets the work that the kernel may leave to the reader of a device, as a set of `TUN_F_*`.
pub(crate) fn set_offloads(tun: &File, bits: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number in place of a pointer and follows none.
    Ok(unsafe { ioctl(tun, IntegerSetter::<TUNSETOFFLOAD>::new_usize(bits as usize)) }?)
}

/// Has a packet socket see the packets of all protocols that come by a device (packet(7)).
pub(crate) fn bind_to_device(socket: impl AsFd, index: u32) -> io::Result<()> {
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: all zero bytes are a valid value of this structure of integers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as c_int;
    // SAFETY: the pointer and the length are those of `address`, which the kernel only reads during the call.
    match unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The calling process's group; `None` if the group belongs to an outer PID namespace.
pub(crate) fn process_group() -> Option<Pid> {
    // SAFETY: getpgrp has no argument and cannot fail. (`rustix` assumes that a group always has a number.)
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// Blocks all signals on the calling thread.
pub(crate) fn block_signals() {
    set_mask(libc::sigfillset);
}

fn set_mask(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> c_int) {
    let mut mask = MaybeUninit::uninit();
    // SAFETY: `fill` is sigfillset or sigemptyset, which initialise the set; sigprocmask reads it, and its last argument may be
    // null. On Linux it sets the calling thread's mask.
    unsafe {
        fill(mask.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, mask.as_ptr(), ptr::null_mut());
    }
}

fn default_action(signal: c_int) {
    // SAFETY: SIG_DFL installs no code; a signal whose action cannot be changed gives an error without effect.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// The init process's connection to this process.
pub(crate) struct Tie {
    /// A pidfd of this process.
    pub(crate) us: OwnedFd,
    /// A socket: the init reports that its death signal is set, and continues after the answer.
    pub(crate) answer: OwnedFd,
    /// A pipe to which the init writes the command's wait status, 4 bytes.
    pub(crate) status: OwnedFd,
}

/// Puts a small init between this process and a command. The command is about to be started by a thread whose children get a new
/// PID namespace. The kernel kills the init when that thread ends, and everything in the namespace with it.
pub(crate) fn with_init(command: &mut Command, tie: Tie) {
    let before_exec = move || between(&tie);
    // SAFETY: the closure runs after fork in a child with one thread, where only code without locks and allocation is allowed. It
    // makes system calls and forks; this process has no fork handlers, and glibc and musl put their own locks in order.
    unsafe { command.pre_exec(before_exec) };
}

/// Runs between fork and exec. Returns in the process that becomes the command.
fn between(tie: &Tie) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if !parent_lives(tie) {
        // Nobody is left to report to.
        // SAFETY: ends the process without running any of its code.
        unsafe { libc::_exit(1) };
    }
    block_signals();
    default_action(libc::SIGCHLD);
    // SAFETY: as above; each process continues with its own memory.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // The command gets default actions for signals that this process ignores; SIGHUP stays as it is (`nohup`).
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
                default_action(signal);
            }
            set_mask(libc::sigemptyset);
            // Where mounting is refused (a container's /proc with masked parts) the command sees outside processes, but cannot
            // reach them.
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            let _ = mount(c"proc", c"/proc", c"proc", flags, None);
            Ok(())
        }
        command => init(command, tie.status.as_raw_fd()),
    }
}

/// Whether the death signal was set in time. The thread that starts the command may have ended before, which the init cannot see from
/// inside the namespace. But that thread ends only with the whole process, and an answer shows that the process was alive after
/// the signal was set.
fn parent_lives(tie: &Tie) -> bool {
    let (us, answer) = (PollFd::new(&tie.us, PollFlags::IN), PollFd::new(&tie.answer, PollFlags::IN));
    let mut either = [us, answer];
    // A pidfd is readable when its process has ended.
    rustix::net::send(&tie.answer, &[0], SendFlags::NOSIGNAL).is_ok()
        && poll(&mut either, None).is_ok()
        && rustix::net::recv(&tie.answer, &mut [0], RecvFlags::DONTWAIT).is_ok_and(|(len, _)| len == 1)
}

/// PID 1 of the namespace: reaps all children. When the command ends it ends, too, and with it everything that the command left
/// behind.
fn init(command: c_int, status: RawFd) -> ! {
    let _ = rustix::thread::set_name(c"narrows-init");
    // No inherited descriptor stays open: neither a device nor a pipe on which another process waits.
    // SAFETY: no code that owns a descriptor runs in this process any more, except for `status`, which stays open.
    unsafe {
        if status > 0 {
            libc::syscall(libc::SYS_close_range, 0, status - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, status + 1, c_int::MAX, 0);
    }
    loop {
        while let Ok(Some((pid, ended))) = wait(WaitOptions::NOHANG) {
            if pid.as_raw_pid() == command {
                let raw: c_int = ended.as_raw() as c_int;
                // SAFETY: see above.
                let status = unsafe { BorrowedFd::borrow_raw(status) };
                let _ = rustix::io::write(status, &raw.to_ne_bytes());
                // SAFETY: ends the process without running any of its code.
                unsafe { libc::_exit(ended.exit_status().unwrap_or(1)) };
            }
        }
        // The init is in the command's process group. If it got `SIGINT` itself, so did the command, and a second one could abort
        // the command's orderly exit.
        if wait_for_signal() == Some(INTERRUPT.as_raw()) && !take_pending(libc::SIGINT) {
            // SAFETY: takes and returns numbers. It signals all processes of this namespace but this one.
            unsafe { libc::kill(-1, libc::SIGINT) };
        }
    }
}

/// The signal that asks the init process to interrupt the command.
pub(crate) const INTERRUPT: Signal = Signal::USR1;

/// Whether this blocked signal is pending. If so, it is consumed.
fn take_pending(signal: c_int) -> bool {
    let mut set = MaybeUninit::uninit();
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: sigemptyset initialises the set before it is read; sigtimedwait's second argument may be null.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigtimedwait(set.as_ptr(), ptr::null_mut(), &at_once) == signal
    }
}

/// Waits for a child's end or an interrupt request from outside. Signals are blocked, so none is lost between calls. Requests
/// from processes inside the namespace are ignored.
fn wait_for_signal() -> Option<c_int> {
    let (mut set, mut info) = (MaybeUninit::uninit(), MaybeUninit::<libc::siginfo_t>::uninit());
    // SAFETY: sigemptyset initialises the set before it is read; sigwaitinfo initialises `info` when it returns a signal, and
    // `info` is read only then. `si_pid` is valid for signals that a process sent.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::sigaddset(set.as_mut_ptr(), INTERRUPT.as_raw());
        let signal = libc::sigwaitinfo(set.as_ptr(), info.as_mut_ptr());
        // A sender outside this namespace has pid 0 in it.
        (signal == libc::SIGCHLD || (signal > 0 && info.assume_init().si_pid() == 0)).then_some(signal)
    }
}
