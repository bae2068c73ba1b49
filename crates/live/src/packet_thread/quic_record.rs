//! What is recorded of a QUIC flow beyond its packets. Its stream is encrypted, so the receiving application says what arrived; the
//! sender says what its detector holds; and the source port tells its two subflows apart.
use narrows_core::{Span, Time};
use narrows_host::endpoint_stats::Report;
use narrows_results::Series;
use narrows_results::summary::Verdicts;
use narrows_world::record::verdict::VerdictRecord;
use std::sync::Arc;

/// For each of these times on, does the narrowest hop of a flow's route queue fairly?
pub type Truth = Arc<[(Time, bool)]>;

/// A QUIC flow's record.
pub struct QuicRecord {
    /// With a detector.
    verdicts: Option<VerdictRecord>,
    /// Payload that has been counted.
    payload: u64,
    /// Source port of the first path. Its packets come first, because the handshake is on it.
    first_port: Option<u16>,
}

impl QuicRecord {
    /// `truth` is for a flow with a detector; `points` is the capacity of its series, if it has any.
    pub fn new(truth: Option<&Truth>, points: Option<usize>) -> QuicRecord {
        let verdicts = truth.map(|truth| VerdictRecord::new(Arc::clone(truth), points));
        QuicRecord { verdicts, payload: 0, first_port: None }
    }

    /// A packet of this length at the IP layer has come from the sender; returns its subflow.
    pub fn sent(&mut self, source_port: u16, ip_len: u32) -> u8 {
        let subflow = u8::from(*self.first_port.get_or_insert(source_port) != source_port);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.sent(subflow, ip_len);
        }
        subflow
    }

    /// It has left the last hop after this time in queues.
    pub fn delivered(&mut self, subflow: u8, ip_len: u32, queued: Span) {
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.received(subflow, ip_len, queued);
        }
    }

    /// Takes what both ends report; returns the payload that is new.
    pub fn take(&mut self, report: &Report) -> u64 {
        if let Some(verdicts) = &mut self.verdicts {
            report.judge(verdicts);
        }
        let new = report.payload.saturating_sub(self.payload);
        self.payload = report.payload;
        new
    }

    /// Ends an interval of the series.
    pub fn sample(&mut self, now: Time, spacing: Span) {
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.sample(now, spacing);
        }
    }

    /// Ends the warm-up.
    pub fn restart(&mut self, now: Time) {
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.restart(now);
        }
    }

    /// The verdicts' shares of the time up to `end`.
    pub fn verdicts(&mut self, end: Time) -> Option<Verdicts> {
        self.verdicts.as_mut().map(|verdicts| verdicts.verdicts(end))
    }

    /// Series of the verdicts and of each subflow.
    pub fn series(self, source: &str) -> Vec<Series> {
        self.verdicts.map_or_else(Vec::new, |verdicts| verdicts.series(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::detector::{Events, Finding, Verdict};
    use narrows_host::endpoint_stats::Held;

    #[test]
    fn ports_are_subflows_and_verdicts_are_judged() {
        let truth: Truth = [(Time::ZERO, true)].into();
        let mut record = QuicRecord::new(Some(&truth), None);
        assert_eq!([7000, 8000, 7000].map(|port| record.sent(port, 1500)), [0, 1, 0]);
        let at = |s| Time::ZERO + Span::s(s);
        let held = |s, finding| Held {
            at: at(s),
            verdict: Verdict { finding, confidence: 1.0, decisions: 1 },
            events: Events::default(),
            stopped: false,
        };
        let findings = [(0, Finding::Undecided), (1, Finding::Shared), (2, Finding::Fair), (4, Finding::Fair)];
        let report =
            Report { payload: 500, held: findings.map(|(s, finding)| held(s, finding)).to_vec(), ..Report::default() };
        assert_eq!(record.take(&report), 500);
        assert_eq!(record.take(&Report { payload: 700, ..Report::default() }), 200);
        let verdicts = record.verdicts(at(4)).unwrap();
        assert_eq!((verdicts.undecided, verdicts.wrong, verdicts.right), (0.25, 0.25, 0.5));
        assert_eq!(verdicts.found_s, Some(2.0));
    }
}
