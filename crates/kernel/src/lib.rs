//! The kernel's world: a scenario in which everything is real, in a Linux kernel of a virtual machine.
//!
//! The guest is a stock kernel of a distribution, its modules, and this same program as its first process; nothing is installed, and there
//! is no disk. Its clock counts instructions (`qemu -icount`), and time in which it is idle is skipped, so that the host's load has no
//! effect on what is measured.
//!
//! - [`queue`], [`network`]: a scenario as `ip` and `tc` spell it; no I/O.
//! - [`kernels`]: the kernels that were fetched; [`fetch`]: fetches one from the distribution's packages; [`doctor`]: what is missing.
//! - `image`: the kernel in its compressed image.
//! - `programs`: the files of the host that the user's programs need.
//! - `machine`: a virtual machine, from its start to its result.
//! - `sightings`: the packets of a run, from where they came by.
//! - `guest`: what this program does as the guest's first process.
pub mod doctor;
#[cfg(not(all(feature = "linux", target_os = "linux")))]
mod elsewhere;
pub mod fetch;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod guest;
mod image;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod initramfs;
pub mod kernels;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod machine;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod message;
pub mod network;
#[cfg_attr(
    not(all(feature = "linux", target_os = "linux")),
    allow(dead_code, reason = "without a machine nobody asks for its arguments")
)]
mod pace;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod programs;
pub mod queue;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod sightings;
mod tools;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod world;

#[cfg(not(all(feature = "linux", target_os = "linux")))]
pub use elsewhere::{Lab, usable};
pub use pace::Pace;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use world::{Lab, usable};

/// Compares with a file of `tests/expected`; with `NARROWS_RECORD=1` writes it.
#[cfg(test)]
fn expected(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if std::env::var_os("NARROWS_RECORD").is_some() {
        std::fs::write(&path, text).expect("the folder is there");
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{name}; NARROWS_RECORD=1 writes it");
}
