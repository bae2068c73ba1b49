//! The ends of flows on this machine's kernel, in namespaces that the tests make, over the loopback device. Where making them is
//! not allowed the tests are skipped, with the reason.
mod diagnostics;
mod harness;
mod many;
mod refusals;
mod traffic;
mod transfers;
