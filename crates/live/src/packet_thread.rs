//! One direction of a bottleneck: a thread reads packets from one device, takes them along a path of hops, and writes them to
//! the other device.
//!
//! - Arrival times are the machine's; every time after that is logical. A thread that wakes late hands a packet over late and
//!   changes no decision.
//! - A queue sees what a wire would carry: super-packets are cut before it and joined after it.
//! - A packet in transit costs no allocation, and memory does not grow with the number of flows.
//! - The two threads of a bottleneck share round-trip times, the arrivals that they see, and nothing else.
//!
//! The parts, in a packet's order: [`pump`] is the thread's loop and [`waiting`] its sleep; [`frame`] reads, cuts, marks and
//! joins packets; [`flows`] answers which flow a packet belongs to ([`found`]); [`round_trips`] estimates RTTs for queues that
//! use them; [`flow_recorder`] keeps each flow's figures, [`lateness`] the thread's own, and [`view`] what can be watched.
//!
//! [`frame`], [`flows`], [`flow_recorder`] and [`round_trips`] are sans-I/O and exist on every system.
pub mod flow_recorder;
pub mod flows;
pub mod found;
pub mod frame;
pub mod round_trips;
pub mod view;

#[cfg(target_os = "linux")]
pub mod lateness;
#[cfg(target_os = "linux")]
pub mod pump;
#[cfg(target_os = "linux")]
pub mod run_config;
#[cfg(target_os = "linux")]
pub mod waiting;
