//! What this machine and this process can do.
use crate::QdiscError;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use rustix::fs::{FsWord, statfs};
use rustix::mount::{MountFlags, mount};
use rustix::system::uname;
use rustix::thread::{CapabilitySet, capabilities};
use serde::Serialize;
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

/// What a machine offers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Machine {
    /// The kernel's version.
    pub kernel: String,
    /// Why the kernel has no BPF queueing disciplines; `None` if it has.
    pub lacks: Option<String>,
    /// Rights that this process would need and does not have.
    pub missing_rights: Vec<&'static str>,
}

impl Machine {
    /// Looks.
    pub fn look() -> Machine {
        let kernel = uname().release().to_string_lossy().into_owned();
        Machine { lacks: lacks(&kernel), missing_rights: missing_rights(), kernel }
    }

    /// Whether this process may attach here.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn is_able(&self) -> Result<(), QdiscError> {
        self.has_rights()?;
        match &self.lacks {
            Some(message) => Err(QdiscError::Refused(message.clone())),
            None => Ok(()),
        }
    }

    /// Whether this process may change interfaces and their BPF programs.
    ///
    /// # Errors
    /// Names the rights that are missing.
    pub fn has_rights(&self) -> Result<(), QdiscError> {
        if self.missing_rights.is_empty() {
            return Ok(());
        }
        let missing = self.missing_rights.join(", ");
        Err(QdiscError::Refused(format!("queueing disciplines of an interface need {missing}: run narrows as root")))
    }
}

/// The type that the kernel's BTF has with `CONFIG_NET_SCH_BPF`.
const REGISTRATION: &str = "bpf_struct_ops_Qdisc_ops";
const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

fn lacks(kernel: &str) -> Option<String> {
    let needed = format!("Linux 6.16 or later with CONFIG_NET_SCH_BPF; this is {kernel}");
    if !Path::new(KERNEL_BTF).exists() {
        return Some(format!("BPF queueing disciplines need {needed}, without {KERNEL_BTF} (CONFIG_DEBUG_INFO_BTF)"));
    }
    match Btf::from_vmlinux() {
        Ok(btf) if btf.type_by_name::<Struct<'_>>(REGISTRATION).is_some() => None,
        Ok(_) => Some(format!("this kernel has no BPF queueing disciplines: they need {needed}")),
        Err(error) => Some(format!("{KERNEL_BTF} cannot be read: {error}; BPF queueing disciplines need {needed}")),
    }
}

fn missing_rights() -> Vec<&'static str> {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    if held.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN) {
        return Vec::new();
    }
    let needed = [
        (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
        (CapabilitySet::BPF, "CAP_BPF"),
        (CapabilitySet::PERFMON, "CAP_PERFMON"),
    ];
    needed.iter().filter(|right| !held.contains(right.0)).map(|right| right.1).collect()
}

/// Whether the kernel keeps what it knows from its own programs (lockdown in its mode `confidentiality`). They cannot be loaded then
/// if they read packets.
pub(super) fn is_locked_down() -> bool {
    fs::read_to_string("/sys/kernel/security/lockdown").is_ok_and(|modes| modes.contains("[confidentiality]"))
}

/// Where programs are kept while nobody runs that has opened them.
pub(super) const BPF_FOLDER: &str = "/sys/fs/bpf";
/// linux/magic.h.
const BPF_FS_MAGIC: FsWord = 0xcafe_4a11;

/// Sees to it that [`BPF_FOLDER`] is a file system of the kind `bpf`, mounted for all processes.
pub(super) fn mount_bpf() -> Result<(), QdiscError> {
    if statfs(BPF_FOLDER).is_ok_and(|found| found.f_type == BPF_FS_MAGIC) {
        return Ok(());
    }
    if namespace("mnt") != first_namespace("mnt") {
        return Err(QdiscError::Refused(format!(
            "{BPF_FOLDER} is not mounted here, and a mount would end with this command, as in `ip netns exec`; \
             `nsenter --net=/run/netns/NAME narrows qdisc …` enters a network namespace and keeps the mounts"
        )));
    }
    mount("bpf", BPF_FOLDER, "bpf", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .map_err(|error| QdiscError::failed(&format!("mount a file system of the kind bpf at {BPF_FOLDER}"), error))
}

/// The inode of this process's network namespace, unless it is the first process's.
pub(super) fn network_namespace() -> Option<u64> {
    namespace("net").filter(|_| namespace("net") != first_namespace("net"))
}

fn namespace(kind: &str) -> Option<u64> {
    fs::metadata(format!("/proc/self/ns/{kind}")).ok().map(|found| found.st_ino())
}

fn first_namespace(kind: &str) -> Option<u64> {
    fs::metadata(format!("/proc/1/ns/{kind}")).ok().map(|found| found.st_ino())
}
