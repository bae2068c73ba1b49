//! Figures that the endpoints of flows report, for the records.
//!
//! The endpoints run on threads of their own and post their figures; the recording thread takes them once per sampling interval.
use crate::FlowKey;
use narrows_core::detector::{Events, Verdict};
use narrows_core::{Rate, Span, Time};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::record::application::Messages;
use narrows_world::record::verdict::VerdictRecord;
use narrows_world::record::video::VideoRecord;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The figures of a flow. Counters count from the flow's start; lists and meters hold what was posted since they were last taken.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The flow to which the figures belong, where places are reused. They are invalid for any other flow.
    pub whose: Option<FlowKey>,
    /// The sender's state at its last sample.
    pub meters: Option<Meters>,
    /// Samples of the sender's smoothed RTT.
    pub rtts: Vec<Span>,
    /// Payload that the receiving application has read, bytes.
    pub payload: u64,
    /// Completion times of transfers, from handing the data over to reading the last byte.
    pub completions: Vec<Span>,
    /// The sender's counters.
    pub stats: SenderStats,
    /// Datagrams that the system did not take, because its own buffers were full.
    pub refused: u64,
    /// The largest delay of an action of the sending application, if it exceeded a millisecond.
    pub late: Span,
    /// The error that ended the connection early.
    pub trouble: Option<String>,
    /// The rate at which the flow's encoder aims, if it has one.
    pub target: Option<Rate>,
    /// The record of a video call, at its end.
    pub video: Option<Box<VideoRecord>>,
    /// The messages of a connection, at its end.
    pub messages: Option<Box<Messages>>,
    /// RTT samples by subflow, with their times, of a connection that has subflows.
    pub subflow_rtts: Vec<(u8, Time, Span)>,
    /// What the connection's detector held, the oldest first.
    pub held: Vec<Held>,
}

impl Report {
    /// Adds the RTTs of the subflows and what the detector held to the record of the connection.
    pub fn judge(&self, verdicts: &mut VerdictRecord) {
        for &(subflow, at, rtt) in &self.subflow_rtts {
            verdicts.rtt(subflow, rtt, at);
        }
        for held in &self.held {
            verdicts.count(Some(held.events), held.at);
            verdicts.hold(Some(held.verdict), held.stopped, held.at);
        }
    }
}

/// What a connection's detector held at a time.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// When.
    pub at: Time,
    /// The verdict.
    pub verdict: Verdict,
    /// Detections and recoveries until then.
    pub events: Events,
    /// Had the flow stopped?
    pub stopped: bool,
}

/// Shared between the endpoints, which post, and the records, which take.
#[derive(Debug)]
pub struct EndpointStats {
    slots: Box<[Slot]>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Kept separate because it changes with every read.
    payload: AtomicU64,
    report: Mutex<Report>,
}

impl EndpointStats {
    /// Makes room for this number of flows.
    pub fn new(flows: usize) -> EndpointStats {
        EndpointStats { slots: (0..flows).map(|_| Slot::default()).collect() }
    }

    /// Its number of flows.
    pub fn flows(&self) -> usize {
        self.slots.len()
    }

    /// Takes the figures of a flow. They are empty if it has none.
    pub fn take(&self, flow: usize) -> Report {
        let Some(slot) = self.slots.get(flow) else { return Report::default() };
        let mut report = slot.lock();
        let taken = Report {
            whose: report.whose,
            meters: report.meters.take(),
            rtts: std::mem::take(&mut report.rtts),
            completions: std::mem::take(&mut report.completions),
            late: std::mem::take(&mut report.late),
            trouble: report.trouble.take(),
            target: report.target,
            video: report.video.take(),
            messages: report.messages.take(),
            subflow_rtts: std::mem::take(&mut report.subflow_rtts),
            held: std::mem::take(&mut report.held),
            stats: report.stats,
            refused: report.refused,
            payload: slot.payload.load(Ordering::Relaxed),
        };
        drop(report);
        taken
    }

    /// The receiving application has read `bytes` more. Returns the total.
    pub fn read(&self, flow: usize, bytes: u64) -> u64 {
        self.slots[flow].payload.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Changes the figures of a flow that was found in traffic. Figures of another flow in its place are discarded first.
    pub fn post_of(&self, place: usize, flow: FlowKey, change: impl FnOnce(&mut Report)) {
        self.post(place, |report| {
            if report.whose != Some(flow) {
                *report = Report { whose: Some(flow), ..Report::default() };
            }
            change(report);
        });
    }

    /// Changes the figures of a flow.
    pub fn post(&self, flow: usize, change: impl FnOnce(&mut Report)) {
        change(&mut self.slots[flow].lock());
    }
}

impl Slot {
    /// The figures are valid even after another thread panicked, because no change is left half done.
    fn lock(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stay_and_lists_are_taken() {
        let endpoint_stats = EndpointStats::new(2);
        assert_eq!((endpoint_stats.read(1, 100), endpoint_stats.read(1, 20)), (100, 120));
        endpoint_stats.post(1, |report| {
            report.rtts.push(Span::ms(7));
            report.stats.retransmits = 3;
        });
        let first = endpoint_stats.take(1);
        assert_eq!((first.payload, first.rtts, first.stats.retransmits), (120, vec![Span::ms(7)], 3));
        let second = endpoint_stats.take(1);
        assert_eq!((second.payload, second.rtts, second.stats.retransmits), (120, vec![], 3));
        assert_eq!(endpoint_stats.take(0).payload, 0);
        assert_eq!(endpoint_stats.take(9).payload, 0, "a flow that it does not have");
    }
}
