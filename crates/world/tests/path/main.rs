//! The hops of one direction, driven as no thread would: late, irregularly, all at once. What happens does not depend on it.
mod harness;
mod ideal;
mod rest;
mod waking;
