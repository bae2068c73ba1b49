//! The third world: the Linux kernel's own TCP and queue disciplines, and ours loaded into it.
//!
//! So far it consists of our queue disciplines in C, in `qdisc/`, and of `tests/decisions`, which compares their decisions with those
//! of `narrows-core`.
