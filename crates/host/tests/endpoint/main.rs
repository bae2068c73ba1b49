//! The endpoints of flows on this machine's kernel, over the loopback device of namespaces that the tests make. Where namespaces
//! are not allowed the tests are skipped, with the reason.
mod diagnostics;
mod harness;
mod many;
mod refusals;
mod traffic;
mod transfers;
