//! Which flow a packet belongs to, and how it travels: the answer of [`Flows::find`](super::flows::Flows::find).
use narrows_core::{FlowId, HostId};

/// A packet's flow as the flow table found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Its number.
    pub flow: FlowId,
    /// Its route, as the path numbers them.
    pub route: u16,
    /// It travels with the flow's data, not with its acknowledgments.
    pub forward: bool,
    /// Where it comes from.
    pub src: HostId,
    /// Where it goes.
    pub dst: HostId,
}

/// The number of all flows behind a shell that have no place of their own.
pub const OTHERS: FlowId = FlowId(u32::MAX);
