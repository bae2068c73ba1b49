//! One direction of a bottleneck: a thread reads packets from one device, takes them along a path of hops, and writes them to
//! the other device.
//!
//! - Arrival times come from the machine's clock; every later time is logical. A thread that wakes late hands a packet over late
//!   and changes no decision.
//! - A queue sees the packets that a wire would carry: super-packets are cut before it and joined after it.
//! - A packet in transit costs no allocation, and memory does not grow with the number of flows.
//! - The two threads of a bottleneck share round-trip times and the arrivals that they see, and nothing else.
//!
//! The parts, in a packet's order: [`pump`] is the thread's loop and [`waiting`] its sleep; [`frame`] reads, cuts, marks and
//! joins packets; [`flows`] finds a packet's flow ([`found`]); [`round_trips`] measures RTTs for queues that use them;
//! [`flow_recorder`] records each flow's figures (`quic_record` those of QUIC), [`frame_recorder`] the capture, [`lateness`] the thread's timing, and [`view`] is the state that monitors see.
//!
//! [`frame`], [`frame_recorder`], [`flows`], [`flow_recorder`] and [`round_trips`] are sans-I/O and exist on every system.
pub mod flow_recorder;
pub mod flows;
pub mod found;
pub mod frame;
pub mod frame_recorder;
pub mod round_trips;
pub mod view;

#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod lateness;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod pump;
pub mod quic_record;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod run_config;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod waiting;
