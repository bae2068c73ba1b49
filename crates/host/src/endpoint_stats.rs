//! What the ends of flows tell the records.
//!
//! The ends run on threads of their own and post what they see; the thread that records takes it once per sampling interval.
use crate::FlowKey;
use narrows_core::Span;
use narrows_world::meters::{Meters, SenderStats};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is known of a flow. Counters count from the flow's start; lists and meters are what came since the last taking.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Whose it is, where places on the endpoint_stats change hands. It is void for any other flow.
    pub whose: Option<FlowKey>,
    /// The sender's state when it was last looked at.
    pub meters: Option<Meters>,
    /// Round-trip times, as the sender has smoothed them.
    pub rtts: Vec<Span>,
    /// Payload that the receiving application has read, bytes.
    pub payload: u64,
    /// What each completed transfer took, from its handing over to the reading of its last byte.
    pub completions: Vec<Span>,
    /// What the sender counts.
    pub stats: SenderStats,
    /// Datagrams that the system did not take: its own buffers were full before the network saw them.
    pub refused: u64,
    /// How late the sending application acted at worst, if it was a millisecond or more.
    pub late: Span,
    /// What ended the connection before its time.
    pub trouble: Option<String>,
}

/// Where ends post, and the records take.
#[derive(Debug)]
pub struct EndpointStats {
    slots: Box<[Slot]>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Apart from the rest: it changes with every read.
    payload: AtomicU64,
    report: Mutex<Report>,
}

impl EndpointStats {
    /// For this number of flows.
    pub fn new(flows: usize) -> EndpointStats {
        EndpointStats { slots: (0..flows).map(|_| Slot::default()).collect() }
    }

    /// How many flows it has room for.
    pub fn flows(&self) -> usize {
        self.slots.len()
    }

    /// Takes what there is of a flow; nothing of one that is not on the endpoint_stats.
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
            stats: report.stats,
            refused: report.refused,
            payload: slot.payload.load(Ordering::Relaxed),
        };
        drop(report);
        taken
    }

    /// The receiving application has read `bytes` more; returns how many in all.
    pub fn read(&self, flow: usize, bytes: u64) -> u64 {
        self.slots[flow].payload.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Changes what is posted of a found flow. What was posted of another in its place is gone.
    pub fn post_of(&self, place: usize, flow: FlowKey, change: impl FnOnce(&mut Report)) {
        self.post(place, |report| {
            if report.whose != Some(flow) {
                *report = Report { whose: Some(flow), ..Report::default() };
            }
            change(report);
        });
    }

    /// Changes what is posted of a flow.
    pub fn post(&self, flow: usize, change: impl FnOnce(&mut Report)) {
        change(&mut self.slots[flow].lock());
    }
}

impl Slot {
    /// What a thread left behind that panicked is as good as before: every change is whole.
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
        assert_eq!(endpoint_stats.take(9).payload, 0, "not on the endpoint_stats");
    }
}
