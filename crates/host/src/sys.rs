//! The system calls that the compiler cannot check, each with the reason why it is sound here.
#![expect(unsafe_code, reason = "ioctls with a structure of ours, fork, and unshare have no safe form")]
use std::ffi::{c_int, c_short};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::ioctl::{IntegerSetter, Setter, Updater, ioctl, opcode};
use rustix::mount::{MountFlags, mount};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, wait};
use rustix::thread::UnshareFlags;

/// Leaves namespaces for new ones.
///
/// # Panics
/// When asked to unshare the table of file descriptors, which is what makes the call unsafe.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    assert!(!flags.contains(UnshareFlags::FILES), "the table of file descriptors stays shared");
    // SAFETY: what makes the call unsafe is only FILES, which was ruled out.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// The calling thread goes before all ordinary ones, and before those of a lower priority, as soon as it is to run
/// (`SCHED_FIFO`); what it starts does not.
pub(crate) fn run_first(priority: c_int) -> io::Result<()> {
    // SAFETY: all bytes zero are a value of this structure of integers.
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

/// Makes `tun`, an open `/dev/net/tun`, a device: its name, where `wanted` may hold one `%d` for a number.
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

/// How many bytes of offload header precede every packet of a device.
pub(crate) fn set_header_len(tun: &File, bytes: c_int) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one int.
    Ok(unsafe { ioctl(tun, Setter::<TUNSETVNETHDRSZ, c_int>::new(bytes)) }?)
}

/// What a device may leave to whoever reads it, as a set of `TUN_F_*`.
pub(crate) fn set_offloads(tun: &File, bits: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number in place of a pointer and follows none.
    Ok(unsafe { ioctl(tun, IntegerSetter::<TUNSETOFFLOAD>::new_usize(bits as usize)) }?)
}

/// The calling process's group; none when the group belongs to a PID namespace further out.
pub(crate) fn process_group() -> Option<Pid> {
    // SAFETY: getpgrp has no argument and cannot fail. (`rustix` takes it that a group always has a number.)
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// Lets the calling thread handle no signals.
pub(crate) fn block_signals() {
    set_mask(libc::sigfillset);
}

fn set_mask(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> c_int) {
    let mut mask = MaybeUninit::uninit();
    // SAFETY: `fill` is sigfillset or sigemptyset, which initialise the set; sigprocmask reads it, and may be given nothing to
    // write to. On Linux it is the calling thread's mask.
    unsafe {
        fill(mask.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, mask.as_ptr(), ptr::null_mut());
    }
}

fn default_action(signal: c_int) {
    // SAFETY: SIG_DFL is no code of ours; a signal that allows no action gives an error, which changes nothing.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// The init process's connection to this process.
pub(crate) struct Tie {
    /// A pidfd of this process.
    pub(crate) us: OwnedFd,
    /// A socket: the init says that its death signal is set, and goes on when it is answered.
    pub(crate) answer: OwnedFd,
    /// A pipe, to which the init writes the command's wait status, 4 bytes.
    pub(crate) status: OwnedFd,
}

/// Puts a small init between us and a command that is about to be started by a thread whose children have a PID namespace of
/// their own. The init gets killed when that thread ends, and everything in the namespace with it.
pub(crate) fn with_init(command: &mut Command, tie: Tie) {
    let before_exec = move || between(&tie);
    // SAFETY: the closure runs after fork, where only what takes no lock and no memory is allowed. It makes system calls, and
    // fork, whose handlers this process has none of, and in which glibc and musl put their own locks in order; the child that
    // it is called in has one thread.
    unsafe { command.pre_exec(before_exec) };
}

/// Between fork and exec. Returns in the process that is to become the command.
fn between(tie: &Tie) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if !parent_lives(tie) {
        // Nobody is there to be told.
        // SAFETY: ends the process without running anything of it.
        unsafe { libc::_exit(1) };
    }
    block_signals();
    default_action(libc::SIGCHLD);
    // SAFETY: as above; both processes go on with memory of their own.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // Of what we ignore the command knows nothing; SIGHUP stays as it is (`nohup`).
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
                default_action(signal);
            }
            set_mask(libc::sigemptyset);
            // Where it is refused (a container's /proc with parts masked) the command sees the processes outside; it cannot
            // reach them.
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            let _ = mount(c"proc", c"/proc", c"proc", flags, None);
            Ok(())
        }
        command => init(command, tie.status.as_raw_fd()),
    }
}

/// Whether the death signal was set in time. The thread that it depends on may be gone already, with nothing to tell it by from
/// inside the namespace; but it ends only with the whole process, and an answer shows that the process lived after the signal
/// was set.
fn parent_lives(tie: &Tie) -> bool {
    let (us, answer) = (PollFd::new(&tie.us, PollFlags::IN), PollFd::new(&tie.answer, PollFlags::IN));
    let mut either = [us, answer];
    // A pidfd is readable when its process has ended.
    rustix::net::send(&tie.answer, &[0], SendFlags::NOSIGNAL).is_ok()
        && poll(&mut either, None).is_ok()
        && rustix::net::recv(&tie.answer, &mut [0], RecvFlags::DONTWAIT).is_ok_and(|(len, _)| len == 1)
}

/// PID 1 of the namespace: reaps whatever ends, and ends when the command does, and with it everything that the command left
/// behind.
fn init(command: c_int, status: RawFd) -> ! {
    let _ = rustix::thread::set_name(c"narrows-init");
    // Nothing of ours stays open: not a device, not a pipe whose end somebody waits for.
    // SAFETY: no code runs in this process any more that owns a descriptor, besides `status`, which stays.
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
                // SAFETY: ends the process without running anything of it.
                unsafe { libc::_exit(ended.exit_status().unwrap_or(1)) };
            }
        }
        // We are in the command's process group: whoever sent `SIGINT` to that has sent it to the command, too, and a second one
        // would end what the first one is to let finish.
        if wait_for_signal() == Some(INTERRUPT.as_raw()) && !take_pending(libc::SIGINT) {
            // SAFETY: a number in, a number out. All processes of this namespace but this one.
            unsafe { libc::kill(-1, libc::SIGINT) };
        }
    }
}

/// The signal that asks the init process to interrupt the command.
pub(crate) const INTERRUPT: Signal = Signal::USR1;

/// Whether a blocked signal has come; it is not pending any more then.
fn take_pending(signal: c_int) -> bool {
    let mut set = MaybeUninit::uninit();
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: sigemptyset initialises the set before it is read; sigtimedwait may be given nothing to write to.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigtimedwait(set.as_ptr(), ptr::null_mut(), &at_once) == signal
    }
}

/// Waits for a child's end or a wish from outside. Signals are blocked, so none is lost in between; what processes inside wish
/// is not heard.
fn wait_for_signal() -> Option<c_int> {
    let (mut set, mut info) = (MaybeUninit::uninit(), MaybeUninit::<libc::siginfo_t>::uninit());
    // SAFETY: sigemptyset initialises the set before it is read; sigwaitinfo initialises `info` when it returns a signal, and
    // only then it is read. `si_pid` is there for signals that a process sent.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::sigaddset(set.as_mut_ptr(), INTERRUPT.as_raw());
        let signal = libc::sigwaitinfo(set.as_ptr(), info.as_mut_ptr());
        // Who is not in this namespace has no number in it.
        (signal == libc::SIGCHLD || (signal > 0 && info.assume_init().si_pid() == 0)).then_some(signal)
    }
}
