//! Our queue disciplines for the Linux kernel.
//!
//! Their C is in `c/`: headers, kernel modules, BPF programs and plug-ins for `tc`. `tests/decisions` compares the headers' decisions with
//! those of `narrows-core`. This library puts the BPF programs on network interfaces: attach, detach, show (Linux 6.16 and later,
//! struct_ops `Qdisc_ops`). The crate that runs scenarios in a kernel is `narrows-kernel`.
//!
//! - `constants`: a choice of queue with its parameters becomes the constants of a program.
//! - `names`: what a qdisc is called in the kernel, and its folder under `/sys/fs/bpf`.
//! - `attachment`: what has been done to an interface, as a file under `/run`; detaching undoes it from there.
//! - `layout`, `snapshot`: the program's variables, read from its memory and shown.
//! - `watchdog`: a queue that makes no progress.
//!
//! These are portable, and read and write nothing. With the feature `bpf`, on Linux:
//!
//! - `machine`: what the kernel and this process can do.
//! - `object`: the programs, which are part of the library, with constants set, loaded and registered.
//! - `interface`: attaching and detaching. The function that undoes an attachment also undoes one that failed or was killed on its way.
pub mod attachment;
pub mod constants;
mod error;
pub mod layout;
pub mod names;
pub mod params;
pub mod snapshot;
pub mod watchdog;

#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod interface;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod machine;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod object;

pub use error::QdiscError;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub use object::RateMap;
