//! A user's own detectors in the registry: [`FairQueuingDetector`] as an object.
use super::{Control, DetectorConfig, FairQueuingDetector, Verdict};
use crate::hint::PathHint;
use crate::packet_feedback::{PacketFeedback, Sent, Split};
use crate::registry::DynParams;
use crate::registry::open::{Blueprint, Custom, Of, Open, Table};
use crate::{Bytes, Rate, Rng, Time};
use alloc::boxed::Box;

/// [`FairQueuingDetector`] as an object; every detector is one.
pub trait DynDetector: Send {
    /// See [`FairQueuingDetector::on_sent`].
    fn on_sent(&mut self, event: &Sent);
    /// See [`FairQueuingDetector::on_packet_feedback`].
    fn on_packet_feedback(&mut self, event: &PacketFeedback);
    /// See [`FairQueuingDetector::on_timer`].
    fn on_timer(&mut self, now: Time);
    /// See [`FairQueuingDetector::next_timer`].
    fn next_timer(&self) -> Option<Time>;
    /// See [`FairQueuingDetector::on_control`].
    fn on_control(&mut self, event: Control, now: Time) -> bool;
    /// See [`FairQueuingDetector::split`].
    fn split(&self) -> Split;
    /// See [`FairQueuingDetector::sets_rate`].
    fn sets_rate(&self) -> Option<Rate>;
    /// See [`FairQueuingDetector::inflight_limit`].
    fn inflight_limit(&self) -> Option<Bytes>;
    /// See [`FairQueuingDetector::measured`].
    fn measured(&self) -> Option<Rate>;
    /// See [`FairQueuingDetector::verdict`].
    fn verdict(&self) -> Verdict;
}

impl<D: FairQueuingDetector + Send> DynDetector for D {
    fn on_sent(&mut self, event: &Sent) {
        FairQueuingDetector::on_sent(self, event);
    }
    fn on_packet_feedback(&mut self, event: &PacketFeedback) {
        FairQueuingDetector::on_packet_feedback(self, event);
    }
    fn on_timer(&mut self, now: Time) {
        FairQueuingDetector::on_timer(self, now);
    }
    fn next_timer(&self) -> Option<Time> {
        FairQueuingDetector::next_timer(self)
    }
    fn on_control(&mut self, event: Control, now: Time) -> bool {
        FairQueuingDetector::on_control(self, event, now)
    }
    fn split(&self) -> Split {
        FairQueuingDetector::split(self)
    }
    fn sets_rate(&self) -> Option<Rate> {
        FairQueuingDetector::sets_rate(self)
    }
    fn inflight_limit(&self) -> Option<Bytes> {
        FairQueuingDetector::inflight_limit(self)
    }
    fn measured(&self) -> Option<Rate> {
        FairQueuingDetector::measured(self)
    }
    fn verdict(&self) -> Verdict {
        FairQueuingDetector::verdict(self)
    }
}

/// The registry of detectors, open.
#[derive(Debug)]
pub struct Detectors;

static TABLE: Table<Detectors> = Table::new();

impl Open for Detectors {
    type Args = (PathHint, Time, Rng);
    type Built = Box<dyn DynDetector>;
    type Traits = ();
    fn table() -> &'static Table<Detectors> {
        &TABLE
    }
}

impl<D> Blueprint<Detectors> for Of<D, D::Params>
where
    D: FairQueuingDetector<Params: Send + Sync> + Send + 'static,
{
    fn params(&self) -> &dyn DynParams {
        &self.params
    }
    fn params_mut(&mut self) -> &mut dyn DynParams {
        &mut self.params
    }
    fn traits(&self) {}
    fn build(&self, (path, now, rng): (PathHint, Time, Rng)) -> Box<dyn DynDetector> {
        Box::new(D::new(&self.params, &path, now, rng))
    }
    fn copy(&self) -> Box<dyn Blueprint<Detectors>> {
        Box::new(Of { params: self.params.clone(), of: self.of })
    }
}

impl DetectorConfig {
    /// A detector of a user's own with its default parameters, registered or not.
    pub fn custom<D>(name: &'static str, summary: &'static str) -> DetectorConfig
    where
        D: FairQueuingDetector<Params: Send + Sync> + Send + 'static,
    {
        DetectorConfig::Custom(Custom::new(name, summary, Of::<D, D::Params>::default()))
    }
}
