//! A network for a transport's own tests: two ends of any stack, over hops and beside traffic that a scenario describes, in virtual time.
//!
//! A stack that separates its protocol from sockets and clocks takes part as two [`Peer`]s. They meet in the simulator's network, whose
//! queues and links are held to Linux's, beside its reference senders. A seed gives the same bytes each time.
//!
//! ```
//! use narrows_testbed::{Peer, Span, Testbed};
//! # fn both() -> [Box<dyn Peer>; 2] { [Box::new(narrows_testbed::Silent), Box::new(narrows_testbed::Silent)] }
//! let report = Testbed::dumbbell("20mbit", "40ms", "fifo:limit=1bdp").peers("mine", both()).run(Span::s(10)).unwrap();
//! // A real stack would have delivered most of 20 Mbit/s; this one never sent.
//! assert_eq!(report.goodput().as_bps(), 0);
//! ```
//!
//! [`cases`] are such tests as files: set-up, what must hold and why, and the reference beside it.
pub mod adapter;
pub mod cases;
pub mod mutants;
mod report;
mod subject;
mod testbed;
mod window;

pub use narrows_core::{Bytes, Ecn, Rate, Span, Time};
pub use narrows_results::packets::Capture;
pub use narrows_sim::{PeerFault, PeerFaultKind};
pub use narrows_world::peer::{Datagram, Peer, Shown, Stream};
pub use report::{CAPTURE, QLOGS, Report};
pub use subject::{MakeEnds, Stack, Subject};
pub use testbed::{FLOW, HOP, Testbed, TestbedError};
pub use window::{Figure, Window};

/// An end that never sends.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Peer for Silent {
    fn receive(&mut self, _datagram: &mut Datagram, _now: Time) {}

    fn transmit(&mut self, _datagram: &mut Datagram, _now: Time) -> bool {
        false
    }

    fn timeout(&self) -> Option<Time> {
        None
    }

    fn on_timeout(&mut self, _now: Time) {}

    fn application(&mut self, _stream: &mut Stream, _now: Time) {}
}
