//! Whole worlds, seen from outside: scenarios go in, results come out.
//!
//! Figures that a person should judge are tables in `expected/`; figures known from arithmetic are asserted. After a change that
//! is meant to change results, `NARROWS_RECORD=1 cargo test -p narrows-sim --test worlds` rewrites the tables and the digests;
//! review the difference before committing it.
mod applications;
mod bbr;
mod bounds;
mod cake;
mod delay_steps;
mod detection;
mod dual_queue;
mod effects;
mod exact;
mod figures;
mod harness;
mod jitter;
mod large;
mod loss_by_transport;
mod offload;
mod packets;
mod parallel;
mod pcc;
mod random;
mod random_paths;
mod recovery;
mod regressions;
mod same_bytes;
mod session;
mod start_up;
mod tables;
mod thin;
mod utilisation;
mod video;
