//! The third world: the Linux kernel's own TCP and queue disciplines, and ours loaded into it.
//!
//! So far it consists of our queue disciplines in C, in `qdisc/`, of `tests/decisions`, which compares their decisions with those
//! of `narrows-core`, and of [`qdisc`], which puts those of them that are BPF programs on a network interface.
pub mod qdisc;
