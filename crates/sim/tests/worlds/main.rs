//! Whole worlds, seen from outside: scenarios go in, results come out.
//!
//! What a person should judge is a table in `expected/`; what arithmetic says is asserted. After a change that is meant
//! to change results, `NARROWS_RECORD=1 cargo test -p narrows-sim --test worlds` writes the tables and the digests
//! again; the difference is then read before it is committed.
mod bbr;
mod bounds;
mod cake;
mod delay_steps;
mod detection;
mod dual_queue;
mod exact;
mod harness;
mod jitter;
mod large;
mod parallel;
mod pcc;
mod random;
mod recovery;
mod regressions;
mod same_bytes;
mod start_up;
mod tables;
mod thin;
mod utilisation;
