//! A packet's flow and how the packet travels: the answer of [`Flows::find`](super::flows::Flows::find).
use narrows_core::{FlowId, HostId};

/// A packet's flow as the flow table found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its number.
    pub flow: FlowId,
    /// Its route, as the path numbers them.
    pub route: u16,
    /// It travels in the direction of the flow's data, not of its acknowledgments.
    pub forward: bool,
    /// The source host.
    pub src: HostId,
    /// The destination host.
    pub dst: HostId,
}

/// The number that stands for all flows behind a shell without a slot.
pub const OTHERS: FlowId = FlowId(u32::MAX);
