//! Our queue disciplines for the Linux kernel: in C in `qdisc/`, `tests/decisions`, which compares their decisions with those of
//! `narrows-core`, and [`qdisc`], which puts those of them that are BPF programs on a network interface. Scenarios run in a kernel by
//! `narrows-lab`.
pub mod qdisc;
