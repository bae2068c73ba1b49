//! The scoreboard against a model that stores the state of every segment in a list and counts it each time.
use crate::tcp::scoreboard::{LossDecision, Scoreboard, SentSegment};
use narrows_core::sender::delivery::Stamp;
use narrows_core::{Span, Time};
use proptest::prelude::*;

/// The model's state of a segment.
#[derive(Clone, Copy, Debug)]
struct SegmentState {
    sent: Time,
    /// Number of transmissions before this one, which orders equal times.
    order: u64,
    sacked: bool,
    lost: bool,
    retransmitted: bool,
    ever_retransmitted: bool,
}

#[derive(Default)]
struct Model {
    segments: Vec<SegmentState>,
    una: usize,
    orders: u64,
}

impl Model {
    fn out(&self) -> &[SegmentState] {
        &self.segments[self.una..]
    }

    fn count(&self, is: impl Fn(&SegmentState) -> bool) -> u32 {
        self.out().iter().filter(|segment| is(segment)).count() as u32
    }

    fn send(&mut self, now: Time) {
        self.orders += 1;
        let segment = SegmentState {
            sent: now,
            order: self.orders,
            sacked: false,
            lost: false,
            retransmitted: false,
            ever_retransmitted: false,
        };
        self.segments.push(segment);
    }

    fn resend(&mut self, seq: u64, now: Time) {
        self.orders += 1;
        let segment = &mut self.segments[seq as usize];
        (segment.sent, segment.order, segment.retransmitted, segment.ever_retransmitted) =
            (now, self.orders, true, true);
    }

    fn sack(&mut self, start: u64, end: u64) -> Vec<u64> {
        let range = (start as usize).max(self.una)..(end as usize).min(self.segments.len());
        let new: Vec<u64> = range.filter(|&seq| !self.segments[seq].sacked).map(|seq| seq as u64).collect();
        for &seq in &new {
            let segment = &mut self.segments[seq as usize];
            (segment.sacked, segment.lost, segment.retransmitted) = (true, false, false);
        }
        new
    }

    fn next_to_resend(&self) -> Option<u64> {
        let waits = |segment: &SegmentState| segment.lost && !segment.retransmitted && !segment.sacked;
        self.out().iter().position(waits).map(|at| (self.una + at) as u64)
    }

    /// Segments in flight: originals in sequence order, then retransmissions in the order in which they were sent.
    fn in_time_order(&self) -> Vec<u64> {
        let seqs = self.una..self.segments.len();
        let segment = |&seq: &usize| &self.segments[seq];
        let originals =
            seqs.clone().filter(|s| !segment(s).sacked && !segment(s).lost && !segment(s).ever_retransmitted);
        let mut again: Vec<usize> = seqs.filter(|s| segment(s).retransmitted).collect();
        again.sort_by_key(|s| segment(s).order);
        originals.chain(again).map(|seq| seq as u64).collect()
    }

    fn lose(&mut self, seq: u64) {
        let segment = &mut self.segments[seq as usize];
        (segment.lost, segment.retransmitted) = (true, false);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send(u8),
    /// The cumulative acknowledgment advances by this share of the window.
    Acknowledge(f64),
    /// A SACK block that begins at this share of the window, with a length.
    Sack(f64, u8),
    /// Retransmits at most this number of lost segments.
    Resend(u8),
    /// Retransmits the last segment, lost or not, as a probe.
    Probe,
    /// RACK: all segments sent this long ago or longer are lost.
    Walk(u8),
    /// A timeout: the first segment is lost, and all sent this long ago or longer.
    LoseOld(u8),
    FindAll,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (1u8..12).prop_map(Op::Send),
        3 => (0.0..1.0).prop_map(Op::Acknowledge),
        5 => (0.0..1.0, 1u8..6).prop_map(|(at, len)| Op::Sack(at, len)),
        4 => (1u8..8).prop_map(Op::Resend),
        1 => Just(Op::Probe),
        4 => (0u8..12).prop_map(Op::Walk),
        1 => (0u8..12).prop_map(Op::LoseOld),
        1 => Just(Op::FindAll),
    ]
}

fn assert_equal(board: &mut Scoreboard, model: &Model) {
    let lost = model.count(|segment| segment.lost);
    let (sacked, retransmitted) = (model.count(|segment| segment.sacked), model.count(|segment| segment.retransmitted));
    assert_eq!((board.una(), board.nxt()), (model.una as u64, model.segments.len() as u64));
    assert_eq!((board.sacked_out(), board.lost_out(), board.retrans_out()), (sacked, lost, retransmitted));
    assert_eq!(board.inflight(), model.out().len() as u32 + retransmitted - sacked - lost);
    assert_eq!(board.waits_to_be_resent(), model.next_to_resend().is_some());
    assert_eq!(board.next_to_resend(), model.next_to_resend());
}

fn apply(op: &Op, board: &mut Scoreboard, model: &mut Model, now: Time) {
    let (una, out) = (board.una(), u64::from(board.out()));
    let at_share = |share: f64| una + (share * out as f64) as u64;
    match *op {
        Op::Send(count) => {
            for _ in 0..count {
                let seq = board.push(SentSegment::new(now, 1000));
                assert_eq!(seq, model.segments.len() as u64);
                model.send(now);
            }
        }
        Op::Acknowledge(share) => {
            while board.una() < at_share(share) {
                let (record, is_new) = board.acknowledge_first();
                let segment = model.segments[model.una];
                assert_eq!(
                    (record.sent, is_new, record.ever_retransmitted()),
                    (segment.sent, !segment.sacked, segment.ever_retransmitted)
                );
                model.una += 1;
            }
            board.trim();
        }
        Op::Sack(share, len) => {
            // Some ranges begin before the first segment in flight, some end beyond the last: old and invalid acknowledgments.
            let start = at_share(share).saturating_sub(1);
            let end = start + u64::from(len);
            let (mut at, mut found) = (start, Vec::new());
            while let Some(gap) = board.gap(at, end) {
                for seq in gap.0..gap.1 {
                    let before = board.sack(seq);
                    assert_eq!(before.sent, model.segments[seq as usize].sent);
                    found.push(seq);
                }
                board.close(gap);
                at = gap.1;
            }
            assert_eq!(found, model.sack(start, end));
        }
        Op::Resend(count) => {
            for _ in 0..count {
                let Some(seq) = board.next_to_resend() else { break };
                board.resend(seq, now, Stamp::default());
                model.resend(seq, now);
            }
        }
        Op::Probe => {
            // As in a sender: no segment in flight is sacked or lost.
            if board.is_plain() && out > 0 {
                board.resend(board.nxt() - 1, now, Stamp::default());
                model.resend(model.segments.len() as u64 - 1, now);
            }
        }
        Op::Walk(ago) => walk(board, model, now, Span::us(u64::from(ago))),
        Op::LoseOld(ago) => {
            let old = now - Span::us(u64::from(ago));
            let mut told = 0;
            let newly = board.lose_old(|record| record.sent <= old, |_, _, _| told += 1);
            assert_eq!(newly, told, "each is reported once");
            let una = model.una;
            let is_lost = |seq: usize, segment: &SegmentState| !segment.sacked && (seq == una || segment.sent <= old);
            let seqs: Vec<usize> =
                (una..model.segments.len()).filter(|&seq| is_lost(seq, &model.segments[seq])).collect();
            assert_eq!(newly as usize, seqs.iter().filter(|&&seq| !model.segments[seq].lost).count());
            seqs.iter().for_each(|&seq| model.lose(seq as u64));
        }
        Op::FindAll => {
            // A spurious timeout: retransmissions may still be in flight.
            board.find_all();
            model.segments[model.una..].iter_mut().for_each(|segment| segment.lost = false);
        }
    }
}

/// Old segments are lost, younger ones are kept, and the walk stops at the first of the youngest.
fn walk(board: &mut Scoreboard, model: &mut Model, now: Time, ago: Span) {
    let judge = |sent: Time| match now.since(sent) {
        age if age > ago => LossDecision::Lost,
        age if age > ago / 2 => LossDecision::Keep,
        _ => LossDecision::TooYoung,
    };
    let (mut seen, mut told) = (Vec::new(), Vec::new());
    let look = |seq, record: &SentSegment| {
        seen.push((seq, record.sent));
        judge(record.sent)
    };
    board.walk_in_time_order(look, |_, record, _| told.push(record.sent));
    // Each of the two parts ends with the first segment that is too young.
    let (mut expected, mut lost) = (Vec::new(), Vec::new());
    let mut ended = [false; 2];
    for seq in model.in_time_order() {
        let segment = model.segments[seq as usize];
        let part = usize::from(segment.ever_retransmitted);
        if ended[part] {
            continue;
        }
        expected.push((seq, segment.sent));
        match judge(segment.sent) {
            LossDecision::Lost => lost.push(seq),
            LossDecision::Keep => {}
            LossDecision::TooYoung => ended[part] = true,
        }
    }
    assert_eq!(seen, expected);
    assert_eq!(told, lost.iter().map(|&seq| model.segments[seq as usize].sent).collect::<Vec<_>>());
    lost.iter().for_each(|&seq| model.lose(seq));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_counts_and_orders_as_a_naive_list_does(ops in prop::collection::vec(op(), 1..120)) {
        let (mut board, mut model) = (Scoreboard::new(), Model::default());
        for (n, op) in ops.iter().enumerate() {
            apply(op, &mut board, &mut model, Time::ZERO + Span::us(1 + n as u64));
            assert_equal(&mut board, &model);
        }
    }
}
