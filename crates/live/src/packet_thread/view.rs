//! A direction as it looks now, for whoever watches.
use narrows_core::queue::Observer;
use narrows_core::{FlowId, Span, Time};
use narrows_host::FlowKey;
use narrows_world::record::hop::Latest;

/// What there was to see at the last sample.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// When that was.
    pub at: Time,
    /// Each hop of the direction.
    pub hops: Vec<HopView>,
    /// Flows that there are names for, by number.
    pub flows: Vec<FlowKey>,
    /// The latest that a packet was handed over behind its time, since the start.
    pub late: Span,
}

/// A hop over the last interval.
#[derive(Clone, Debug, Default)]
pub struct HopView {
    /// Throughput, queue, sojourn, drops.
    pub latest: Latest,
    /// What the discipline shows of itself: of the whole, or of a flow.
    pub gauges: Vec<(Option<FlowId>, &'static str, f64)>,
}

impl Observer for HopView {
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.gauges.push((None, name, value));
    }

    fn flow_gauge(&mut self, flow: FlowId, name: &'static str, value: f64) {
        self.gauges.push((Some(flow), name, value));
    }
}
