//! The present state of a direction, for monitors.
use narrows_core::queue::Observer;
use narrows_core::{FlowId, Span, Time};
use narrows_host::FlowKey;
use narrows_world::record::hop::Latest;

/// The state at the last sample.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The time of the sample.
    pub at: Time,
    /// The hops of the direction.
    pub hops: Vec<HopView>,
    /// The flows that have names, by number.
    pub flows: Vec<FlowKey>,
    /// The largest delay of a packet's hand-over since the start.
    pub late: Span,
}

/// A hop's figures over the last interval.
#[derive(Clone, Debug, Default)]
pub struct HopView {
    /// Throughput, queue, sojourn, drops.
    pub latest: Latest,
    /// The discipline's gauges, for the whole or for one flow.
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
