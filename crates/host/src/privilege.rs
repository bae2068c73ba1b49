//! The privileges for network namespaces and devices, and the messages for when they are missing.
use std::fs::{self, File, OpenOptions};
use std::io;

use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, UnshareFlags, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

use crate::HostError;
use crate::sys;

/// The source of the right to make namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// The process already had it.
    Root,
    /// The process made a user namespace. The right holds in namespaces made from there, and nowhere else.
    UserNamespace,
}

/// Gets the right to make namespaces and devices. A process with `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` has it. Any other moves to a
/// new user namespace, where it has the same user and group as before. Must be called while the process has only one thread.
///
/// Children of a process in a user namespace inherit these rights for what was made in it, so a nested shell can reach the outer
/// one.
///
/// # Errors
/// `NotAllowed` says what the system forbids and what would help.
pub fn gain() -> Result<Privilege, HostError> {
    let held = capabilities(None).map_err(HostError::system("ask for this process's capabilities"))?.effective;
    let privilege = if held.contains(NEEDED) {
        Privilege::Root
    } else {
        own_user_namespace()?;
        Privilege::UserNamespace
    };
    device_is_there()?;
    Ok(privilege)
}

const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// Capabilities that children in a user namespace inherit: to make namespaces and devices, to ping, to listen on a low port.
const PASSED_ON: [CapabilitySet; 4] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW, CapabilitySet::NET_BIND_SERVICE];

fn own_user_namespace() -> Result<(), HostError> {
    let threads = fs::read_dir("/proc/self/task").map_err(HostError::system("count this process's threads"))?.count();
    if threads > 1 {
        return Err(HostError::NotAllowed(format!(
            "a process with {threads} threads cannot move to a user namespace: gain() must come before threads are started"
        )));
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    sys::unshare(UnshareFlags::NEWUSER).map_err(no_user_namespace)?;
    // A group can be mapped only after the right to drop groups has been given up (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny").map_err(no_user_namespace)?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).map_err(no_user_namespace)?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).map_err(no_user_namespace)?;
    let failed = || HostError::system("keep capabilities in a user namespace");
    let mut sets = capabilities(None).map_err(failed())?;
    sets.inheritable |= PASSED_ON.into_iter().collect();
    set_capabilities(None, sets).map_err(|e| no_user_namespace(e.into()))?;
    for capability in PASSED_ON {
        configure_capability_in_ambient_set(capability, true).map_err(failed())?;
    }
    Ok(())
}

/// Explains why there is no user namespace, from the settings with which distributions forbid them.
fn no_user_namespace(error: io::Error) -> HostError {
    let without = "without root, a network namespace needs a user namespace, and this system does not allow one";
    let help = if is("/proc/sys/user/max_user_namespaces", "0") {
        "user.max_user_namespaces is 0; `sysctl user.max_user_namespaces=10000` as root allows them".into()
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "kernel.unprivileged_userns_clone is 0; `sysctl kernel.unprivileged_userns_clone=1` as root allows them".into()
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "AppArmor restricts them; `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as root, or an AppArmor profile with `userns,` for narrows, allows them"
            .into()
    } else {
        format!("{error}; in a container it takes `--cap-add SYS_ADMIN --cap-add NET_ADMIN --device /dev/net/tun`")
    };
    HostError::NotAllowed(format!("{without}: {help}. As root, narrows needs none of this"))
}

/// Explains why there is no network namespace.
pub(crate) fn refused(error: io::Error) -> HostError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => HostError::NotAllowed(
            "a network namespace needs CAP_SYS_ADMIN: run narrows as root, or in a container with `--cap-add SYS_ADMIN --cap-add NET_ADMIN`"
                .into(),
        ),
        Some(libc::ENOSPC) => HostError::NotAllowed(
            "no more network namespaces: user.max_net_namespaces is reached; `sysctl user.max_net_namespaces=10000` as root allows more".into(),
        ),
        Some(libc::EINVAL) => HostError::NotAllowed("this kernel has no network namespaces (CONFIG_NET_NS)".into()),
        _ => HostError::System { doing: "make a network namespace".into(), error },
    }
}

fn device_is_there() -> Result<(), HostError> {
    open_device().map(drop)
}

/// Opens `/dev/net/tun`, from which TUN devices are made, in the network namespace of the calling thread.
pub(crate) fn open_device() -> Result<File, HostError> {
    use std::os::unix::fs::OpenOptionsExt;

    let opened =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(DEVICE);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => HostError::NotAllowed(format!(
            "there is no {DEVICE}: `modprobe tun` as root loads it; in a container it takes `--device {DEVICE}`"
        )),
        Some(libc::EACCES | libc::EPERM) => HostError::NotAllowed(format!(
            "{DEVICE} cannot be read and written by this user: `chmod 666 {DEVICE}` as root, as distributions have it, allows it"
        )),
        _ => HostError::System { doing: format!("open {DEVICE}"), error },
    })
}

const DEVICE: &str = "/dev/net/tun";

fn is(path: &str, value: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
}
