//! What the lab needs, and what is missing on this host.
use crate::kernels::{Kernel, lab};
use crate::queue::our_modules;
use crate::tools::find;

/// One thing that the lab needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requirement {
    /// What it is.
    pub name: String,
    /// What was found, or what would help.
    pub text: String,
    /// Whether it is there.
    pub is_there: bool,
    /// Whether no scenario can run without it.
    pub is_needed: bool,
}

/// Programs: what for, the package that has them, and whether a scenario needs them.
const PROGRAMS: &[(&str, &str, &str, bool)] = &[
    ("qemu-system-x86_64", "the virtual machine", "qemu-system-x86", true),
    ("setpriv", "ends the machine with this program", "util-linux", true),
    ("ip", "makes the guest's network", "iproute2", true),
    ("tc", "makes the guest's queues", "iproute2", true),
    ("ldd", "finds the libraries of programs for the guest", "libc-bin", true),
    ("apt-get", "fetches kernels", "apt", false),
    ("dpkg-deb", "unpacks kernels", "dpkg", false),
    ("xz", "unpacks modules", "xz-utils", false),
    ("zstd", "unpacks the kernel, which then starts two seconds sooner", "zstd", false),
    ("lz4", "does the same for 6.1", "lz4", false),
    ("make", "builds our plug-ins for tc", "make", false),
    ("cc", "builds our plug-ins for tc", "gcc", false),
    ("mmdebstrap", "builds our modules", "mmdebstrap", false),
];

/// Looks for everything that the lab needs.
pub fn examine() -> Vec<Requirement> {
    let mut findings = vec![Requirement {
        name: "x86-64".into(),
        text: if cfg!(target_arch = "x86_64") {
            "this host's processor is the guest's, so this program runs in both".into()
        } else {
            "the guest runs this program, which is for another processor; run the lab on x86-64".into()
        },
        is_there: cfg!(target_arch = "x86_64"),
        is_needed: true,
    }];
    findings.extend(PROGRAMS.iter().map(|&(name, purpose, package, is_needed)| {
        let path = find(name);
        let text =
            path.as_ref().map_or_else(|| format!("{purpose}; install {package}"), |path| path.display().to_string());
        Requirement { name: name.into(), text, is_there: path.is_some(), is_needed }
    }));
    findings.extend(kernels());
    findings
}

fn kernels() -> Vec<Requirement> {
    let missing = |text: String| vec![Requirement { name: "kernel".into(), text, is_there: false, is_needed: true }];
    let lab = match lab() {
        Ok(lab) => lab,
        Err(error) => return missing(error.to_string()),
    };
    let kernels = Kernel::all(&lab);
    if kernels.is_empty() {
        return missing(format!("none in {}; `narrows lab fetch` gets one", lab.display()));
    }
    let finding = |kernel: Kernel| {
        let built = our_modules().filter(|(_, module)| kernel.module(module).is_file());
        let built: Vec<&str> = built.map(|(name, _)| name).collect();
        let built = if built.is_empty() { "without our queues".into() } else { format!("with {}", built.join(", ")) };
        Requirement { name: format!("kernel {}", kernel.release()), text: built, is_there: true, is_needed: true }
    };
    kernels.into_iter().map(finding).collect()
}
