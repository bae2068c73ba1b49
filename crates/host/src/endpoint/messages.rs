//! Messages over TCP and QUIC, from the write to the read of their last byte.
//!
//! Both ends of a flow are in this process. The sending thread notes each message, and the receiving one sees when it is complete.
use super::EndpointStats;
use narrows_core::Time;
use narrows_world::record::application::Messages;
use std::sync::{Mutex, PoisonError};

/// The messages of each flow that sends some, by flow number.
pub(super) struct MessageRecords {
    flows: Box<[Option<Mutex<OfFlow>>]>,
}

struct OfFlow {
    messages: Option<Box<Messages>>,
    /// The end of the warm-up, until it has passed.
    warmup: Option<Time>,
}

impl MessageRecords {
    /// `None` for a flow that sends none. Figures begin at the end of the warm-up, if there is one.
    pub(super) fn new(flows: impl IntoIterator<Item = Option<Messages>>, warmup: Option<Time>) -> MessageRecords {
        let flow = |messages| Mutex::new(OfFlow { messages: Some(Box::new(messages)), warmup });
        MessageRecords { flows: flows.into_iter().map(|messages| messages.map(flow)).collect() }
    }

    /// Whether this flow sends messages.
    pub(super) fn are_kept_of(&self, flow: usize) -> bool {
        self.flows.get(flow).is_some_and(Option::is_some)
    }

    /// The application has written a message, with which it has written `end` bytes.
    pub(super) fn written(&self, flow: usize, end: u64, at: Time) {
        self.change(flow, |messages| messages.written(end, at), at);
    }

    /// The receiving application has read this many bytes more.
    pub(super) fn read(&self, flow: usize, bytes: u64, at: Time) {
        self.change(flow, |messages| messages.read(bytes, at), at);
    }

    fn change(&self, flow: usize, change: impl FnOnce(&mut Messages), at: Time) {
        let Some(Some(of_flow)) = self.flows.get(flow) else { return };
        let OfFlow { messages, warmup } = &mut *of_flow.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(messages) = messages else { return };
        if warmup.take_if(|end| *end <= at).is_some() {
            messages.restart();
        }
        change(messages);
    }

    /// Hands the records over, at the end.
    pub(super) fn post(&self, stats: &EndpointStats) {
        for (number, of_flow) in self.flows.iter().enumerate() {
            let Some(of_flow) = of_flow else { continue };
            let messages = of_flow.lock().unwrap_or_else(PoisonError::into_inner).messages.take();
            if messages.is_some() {
                stats.post(number, |report| report.messages = messages);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::Span;
    use narrows_scenario::Traffic;
    use narrows_world::record::application::FlowMeasurements;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    #[test]
    fn a_message_takes_from_its_write_to_the_read_of_its_last_byte() {
        let stats = EndpointStats::new(2);
        let records = MessageRecords::new([None, Some(Messages::new(3))], Some(at(100)));
        // Written and read before the end of the warm-up.
        records.written(1, 50, at(10));
        records.read(1, 50, at(90));
        // Two that are read in pieces: the first one's end comes with the second one's beginning.
        records.written(1, 150, at(110));
        records.written(1, 250, at(135));
        records.read(1, 60, at(130));
        records.read(1, 90, at(140));
        records.written(1, 350, at(150));
        // A flow without messages, and one that there is not.
        records.read(0, 10, at(160));
        records.read(7, 10, at(160));
        records.post(&stats);
        let messages = stats.take(1).messages.expect("they were handed over");
        let measured = FlowMeasurements { messages: Some(&messages), ..FlowMeasurements::default() };
        let traffic = Traffic::Thin(Default::default());
        let told = measured.summary(Some(&traffic), at(155)).and_then(|told| told.messages).expect("messages");
        assert_eq!((told.count, told.unread), (1, 2));
        assert!((told.delay_ms.mean - 30.0).abs() < 0.1, "{told:?}");
        records.post(&stats);
        assert!(stats.take(1).messages.is_none(), "only once");
        assert!(stats.take(0).messages.is_none());
    }
}
