//! The queue disciplines in C (`c/include/narrows`) make the same decisions as those of the core.
//!
//! Both are driven by the same random operations, with parameters that are drawn too, at their bounds as well. After each
//! operation every answer must be the same: packets that are sent and dropped, with the reasons and in the same order, marks,
//! what waits, and from time to time what each flow's state shows, its limit above all.
//!
//! `NARROWS_DECISIONS` is the number of operations per discipline: 300 000 unless it is set. For a full run:
//!
//! ```text
//! NARROWS_DECISIONS=10000000 cargo test --release -p narrows-qdisc --test decisions
//! ```
//!
//! A run that fails prints its seed; `NARROWS_DECISIONS_SEED` starts with it.
#![cfg(unix)]

#[cfg(qdisc_headers)]
mod draw;
#[cfg(qdisc_headers)]
mod drive;
#[cfg(qdisc_headers)]
mod ffi;

#[cfg(qdisc_headers)]
mod cocoa;
#[cfg(qdisc_headers)]
mod cp;
#[cfg(qdisc_headers)]
mod fq_codel_fair;
#[cfg(qdisc_headers)]
mod fq_cp;
#[cfg(qdisc_headers)]
mod lfq;

#[cfg(not(qdisc_headers))]
#[test]
fn the_headers_compile() {
    panic!("the build script could not compile qdisc/test with a C compiler; its warning says why");
}
