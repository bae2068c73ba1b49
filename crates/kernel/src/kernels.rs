//! The kernels that were fetched: where they are, and which modules a scenario needs.
//!
//! ```text
//! LAB/kernels/RELEASE/vmlinuz
//! LAB/kernels/RELEASE/vmlinux          the same, not compressed, if it could be unpacked
//! LAB/kernels/RELEASE/modules.builtin  the modules that are part of the image
//! LAB/kernels/RELEASE/modules/*.ko     the kernel's and ours, not compressed
//! LAB/kernels/RELEASE/tc/q_*.so        plug-ins for the host's tc, if they could be built
//! ```
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The list of modules that are part of the image: a path on each line.
pub(crate) const BUILT_IN: &str = "modules.builtin";

/// The name of the kernel that was unpacked.
pub(crate) const UNPACKED: &str = "vmlinux";

/// A kernel and its modules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// Its folder.
    pub folder: PathBuf,
}

/// What is missing, and what would help; where a program has failed, with the end of its output in further lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The folder of the lab: `NARROWS_LAB_DIR`, or `narrows/lab` in the user's cache.
///
/// # Errors
/// None of `NARROWS_LAB_DIR`, `XDG_CACHE_HOME` and `HOME` is set.
pub fn lab() -> Result<PathBuf, Missing> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("NARROWS_LAB_DIR")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("narrows/lab")))
        .or_else(|| Some(variable("HOME")?.join(".cache/narrows/lab")))
        .ok_or_else(|| Missing("there is no folder for kernels; set NARROWS_LAB_DIR".into()))
}

impl Kernel {
    /// The kernels in a lab's folder, the newest release last.
    pub fn all(lab: &Path) -> Vec<Kernel> {
        let entries = fs::read_dir(lab.join("kernels")).into_iter().flatten().flatten();
        let kernels = entries.map(|entry| Kernel { folder: entry.path() });
        let mut kernels: Vec<Kernel> = kernels.filter(|kernel| kernel.compressed().is_file()).collect();
        kernels.sort_by_key(|kernel| numbers(&kernel.release()));
        kernels
    }

    /// The kernel whose release begins with this text, or the newest.
    ///
    /// # Errors
    /// There is none; lists those that there are.
    pub fn find(lab: &Path, release: Option<&str>) -> Result<Kernel, Missing> {
        let all = Kernel::all(lab);
        let Some(wanted) = release else {
            return all
                .into_iter()
                .last()
                .ok_or_else(|| Missing("there is no kernel yet; `narrows lab fetch` gets one".into()));
        };
        let found = all.iter().rev().find(|kernel| kernel.release().starts_with(wanted));
        found.cloned().ok_or_else(|| {
            let known: Vec<String> = all.iter().map(Kernel::release).collect();
            let known =
                if known.is_empty() { "none yet; `narrows lab fetch` gets one".to_owned() } else { known.join(", ") };
            Missing(format!("there is no kernel {wanted}; allowed: {known}"))
        })
    }

    /// Its release: `6.1.0-50-cloud-amd64`.
    pub fn release(&self) -> String {
        self.folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// What a machine starts: the kernel, or its compressed image.
    pub fn image(&self) -> PathBuf {
        let unpacked = self.folder.join(UNPACKED);
        if unpacked.is_file() { unpacked } else { self.compressed() }
    }

    fn compressed(&self) -> PathBuf {
        self.folder.join("vmlinuz")
    }

    /// The folder of the plug-ins for `tc`.
    pub fn plugins(&self) -> PathBuf {
        self.folder.join("tc")
    }

    /// The file of a module.
    pub fn module(&self, name: &str) -> PathBuf {
        self.folder.join("modules").join(name).with_extension("ko")
    }

    /// Whether it has a module, as a file or in its image.
    pub fn has(&self, name: &str) -> bool {
        let list = || fs::read_to_string(self.folder.join(BUILT_IN)).unwrap_or_default();
        self.module(name).is_file() || list().lines().any(|path| module_name(path) == name)
    }

    /// Files of modules with everything that they depend on, each after what it depends on. Modules that are part of the image have no
    /// file.
    ///
    /// # Errors
    /// Names a module that is not there.
    pub fn modules(&self, names: &[String]) -> Result<Vec<PathBuf>, Missing> {
        let (mut files, mut seen) = (Vec::new(), BTreeSet::new());
        for name in names {
            if !self.has(name) {
                let release = self.release();
                let linux = crate::queue::linux_modules().into_iter().find(|(_, module)| module == name);
                let help = match linux {
                    _ if name.starts_with(crate::queue::OURS) => {
                        "; `narrows lab fetch` builds our own if it can: see `narrows lab doctor`".to_owned()
                    }
                    _ if name.starts_with("virtio_") => "; `narrows lab fetch` has to get this kernel again".to_owned(),
                    Some((discipline, _)) => format!("; `narrows lab fetch --also {discipline}` builds it"),
                    None => String::new(),
                };
                return Err(Missing(format!("the kernel {release} has no module {name}{help}")));
            }
            self.visit(name, &mut seen, &mut files)?;
        }
        Ok(files)
    }

    fn visit(&self, name: &str, seen: &mut BTreeSet<String>, files: &mut Vec<PathBuf>) -> Result<(), Missing> {
        let path = self.module(name);
        if !path.is_file() || !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let bytes = fs::read(&path).map_err(|error| Missing(format!("{}: {error}", path.display())))?;
        for needed in depends(&bytes) {
            self.visit(&needed.replace('-', "_"), seen, files)?;
        }
        files.push(path);
        Ok(())
    }
}

/// The name of the module in a file: `kernel/net/sched/sch_fq.ko` is `sch_fq`.
fn module_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.split('.').next().unwrap_or_default().replace('-', "_")
}

/// Numbers in a release's name, for the order of releases.
pub(crate) fn numbers(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// The modules that a module names in its section `.modinfo`: `depends=a,b`.
fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let at = module.windows(key.len()).position(|window| window == key);
    let Some(rest) = at.and_then(|at| module.get(at + key.len()..)) else { return Vec::new() };
    let text = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_is_not_the_last_of_the_alphabet() {
        assert!(numbers("7.2.12+deb13-cloud-amd64") > numbers("7.2.9+deb13-cloud-amd64"));
        assert!(numbers("6.1.0-50-cloud-amd64") > numbers("6.1.0-9-cloud-amd64"));
    }

    #[test]
    fn modules_come_after_those_they_need() {
        let folder = std::env::temp_dir().join(format!("narrows-kernel-{}", std::process::id())).join("6.1");
        let kernel = Kernel { folder: folder.clone() };
        fs::create_dir_all(folder.join("modules")).expect("a folder");
        let write = |name: &str, needs: &str| {
            fs::write(kernel.module(name), format!("ELF\0license=GPL\0depends={needs}\0name={name}\0"))
                .expect("a file");
        };
        write("tcp_bbr", "");
        write("sch_cake", "nf_conntrack,built-in");
        write("nf_conntrack", "nf_defrag_ipv4");
        write("nf_defrag_ipv4", "");
        fs::write(folder.join(BUILT_IN), "kernel/net/sched/sch_fq_codel.ko\nkernel/lib/crc-ccitt.ko\n")
            .expect("a file");
        let names = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(|name| name.to_string()).collect();
            let files = kernel.modules(&list).map_err(|missing| missing.to_string())?;
            Ok::<_, String>(
                files.iter().map(|f| f.file_stem().expect("a name").to_string_lossy().into_owned()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            names(&["sch_cake", "tcp_bbr"]),
            Ok(["nf_defrag_ipv4", "nf_conntrack", "sch_cake", "tcp_bbr"].map(str::to_owned).into())
        );
        assert_eq!(names(&["sch_fq_codel", "crc_ccitt"]), Ok(Vec::new()));
        assert_eq!(names(&["sch_gsp"]), Err("the kernel 6.1 has no module sch_gsp".into()));
        let told = "the kernel 6.1 has no module sch_dualpi2; `narrows lab fetch --also dualpi2` builds it";
        assert_eq!(names(&["sch_dualpi2"]), Err(told.into()));
        fs::remove_dir_all(folder.parent().expect("it has one")).expect("it was made");
    }
}
