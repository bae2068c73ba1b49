//! What the ends of flows tell the records.
use narrows_core::{FlowId, Span};
use narrows_world::meters::{Meters, SenderStats};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What has been reported of a flow since the last time.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The sender's state now.
    pub meters: Option<Meters>,
    /// Round-trip times measured.
    pub rtts: Vec<Span>,
    /// How long transfers took that are complete.
    pub completions: Vec<Span>,
    /// What the sender has counted since the beginning.
    pub stats: Option<SenderStats>,
}

/// Reports on their way to the records.
#[derive(Debug, Default)]
pub struct Board(Mutex<HashMap<FlowId, Report>>);

impl Board {
    /// Adds to a flow's report.
    pub fn report(&self, flow: FlowId, add: impl FnOnce(&mut Report)) {
        add(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(flow).or_default());
    }

    /// Takes a flow's report away.
    pub fn take(&self, flow: FlowId) -> Report {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&flow).unwrap_or_default()
    }
}
