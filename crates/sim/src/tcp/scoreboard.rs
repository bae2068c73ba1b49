//! The sender's state of each segment in flight: a ring of records, counters, and the order in which RACK examines segments.
//!
//! The counters are Linux's (`packets_out`, `sacked_out`, `lost_out`, `retrans_out`). Two cursors make every operation amortised
//! constant. Originals are sent in sequence order, so RACK's time-ordered list is a cursor over them and a queue of
//! retransmissions. Lost segments are retransmitted in sequence order from a hint.
use narrows_core::sender::delivery::Stamp;
use narrows_core::{Bytes, Time};
use std::collections::VecDeque;

/// A segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentSegment {
    /// When it was last sent.
    pub(super) sent: Time,
    /// Payload, bytes.
    pub(super) len: u16,
    flags: u8,
}

// An acknowledgment touches the window's records, so as many as possible should fit into a cache line.
const _: () = assert!(size_of::<SentSegment>() <= 16);

/// Initial size of the ring, enough for a small window; it doubles when it is full.
const FIRST_RECORDS: usize = 4;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission is in flight.
const RETRANSMITTED: u8 = 4;
/// It has been retransmitted at least once.
const EVER_RESENT: u8 = 8;

impl SentSegment {
    #[inline]
    pub(super) fn new(sent: Time, len: u16) -> SentSegment {
        SentSegment { sent, len, ..SentSegment::default() }
    }

    pub(super) const fn ever_retransmitted(&self) -> bool {
        self.flags & EVER_RESENT != 0
    }

    pub(super) const fn sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
}

/// The segments in flight.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    ring: Box<[SentSegment]>,
    /// The beginnings of delivery rate samples, in a ring of the same length; empty if nobody uses them.
    stamps: Box<[Stamp]>,
    una: u64,
    nxt: u64,
    /// Segments in the network: `out` without those sacked or lost, plus retransmissions in flight.
    inflight: u32,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    /// Lost segments that are not in flight again.
    to_resend: u32,
    /// Selectively acknowledged ranges, ascending and disjoint.
    sacked: VecDeque<(u64, u64)>,
    /// All originals before this one have been acknowledged, sacked, declared lost or retransmitted.
    originals: u64,
    /// Retransmissions in the order in which they were sent.
    retransmitted: VecDeque<(u64, Time)>,
    /// No segment before this one waits to be retransmitted.
    hint: u64,
}

impl Scoreboard {
    pub(super) fn new() -> Scoreboard {
        Scoreboard {
            ring: vec![SentSegment::default(); FIRST_RECORDS].into_boxed_slice(),
            stamps: Box::default(),
            una: 0,
            nxt: 0,
            inflight: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            to_resend: 0,
            sacked: VecDeque::new(),
            originals: 0,
            retransmitted: VecDeque::new(),
            hint: 0,
        }
    }

    /// Keeps stamps from now on. Nothing may be in flight.
    pub(super) fn keep_stamps(&mut self) {
        self.stamps = vec![Stamp::default(); self.ring.len()].into_boxed_slice();
    }

    /// The beginning of a segment's delivery rate sample.
    #[inline]
    pub(super) fn stamp(&self, seq: u64) -> Stamp {
        stamp(&self.stamps, seq)
    }

    #[inline]
    pub(super) fn set_stamp(&mut self, seq: u64, stamp: Stamp) {
        if !self.stamps.is_empty() {
            let mask = self.stamps.len() - 1;
            self.stamps[seq as usize & mask] = stamp;
        }
    }

    /// First segment not acknowledged cumulatively.
    #[inline]
    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    /// Next segment to be sent for the first time.
    #[inline]
    pub(super) const fn nxt(&self) -> u64 {
        self.nxt
    }

    /// The number of segments sent and not acknowledged cumulatively.
    #[inline]
    pub(super) const fn out(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    /// The number of segments in the network, as far as the sender knows (RFC 6675's pipe).
    #[inline]
    pub(super) fn inflight(&self) -> u32 {
        debug_assert_eq!(self.inflight + self.sacked_out + self.lost_out, self.out() + self.retrans_out);
        self.inflight
    }

    pub(super) const fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    /// The segment after the last one that was selectively acknowledged, if any was.
    pub(super) fn sacked_end(&self) -> Option<u64> {
        self.sacked.back().map(|range| range.1)
    }

    pub(super) const fn lost_out(&self) -> u32 {
        self.lost_out
    }

    pub(super) const fn retrans_out(&self) -> u32 {
        self.retrans_out
    }

    pub(super) const fn waits_to_be_resent(&self) -> bool {
        self.to_resend > 0
    }

    /// Whether all segments in flight are originals, without any sacked or lost.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.sacked_out | self.lost_out | self.retrans_out == 0 && self.retransmitted.is_empty()
    }

    #[inline]
    pub(super) fn record(&self, seq: u64) -> &SentSegment {
        debug_assert!(seq >= self.una && seq < self.nxt);
        &self.ring[seq as usize & (self.ring.len() - 1)]
    }

    /// The edges of the window: the records of the first two segments in flight, and of the next one to be sent.
    #[inline]
    pub(crate) fn edges(&self) -> [&SentSegment; 3] {
        [self.una, self.una + 1, self.nxt].map(|seq| &self.ring[seq as usize & (self.ring.len() - 1)])
    }

    #[inline]
    fn record_mut(&mut self, seq: u64) -> &mut SentSegment {
        let mask = self.ring.len() - 1;
        &mut self.ring[seq as usize & mask]
    }

    /// Adds a segment that is sent for the first time; returns its number.
    #[inline]
    pub(super) fn push(&mut self, record: SentSegment) -> u64 {
        if self.out() as usize == self.ring.len() {
            self.grow();
        }
        let seq = self.nxt;
        *self.record_mut(seq) = record;
        self.nxt += 1;
        self.inflight += 1;
        seq
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = vec![SentSegment::default(); self.ring.len() * 2].into_boxed_slice();
        let mask = ring.len() - 1;
        for seq in self.una..self.nxt {
            ring[seq as usize & mask] = *self.record(seq);
        }
        self.ring = ring;
        if !self.stamps.is_empty() {
            let mut stamps = vec![Stamp::default(); self.ring.len()].into_boxed_slice();
            for seq in self.una..self.nxt {
                stamps[seq as usize & mask] = self.stamp(seq);
            }
            self.stamps = stamps;
        }
    }

    /// Removes the first segment, which was acknowledged cumulatively. The flag says that it had not been sacked before.
    #[inline]
    pub(super) fn acknowledge_first(&mut self) -> (SentSegment, bool) {
        let record = *self.record(self.una);
        self.una += 1;
        if record.flags & (SACKED | LOST | RETRANSMITTED) != 0 {
            self.forget(&record);
        }
        self.inflight -= 1;
        (record, !record.sacked())
    }

    /// Removes many originals that were acknowledged at once; returns the last one's record and the payload of all.
    #[inline]
    pub(super) fn acknowledge_plain(&mut self, through: u64) -> (SentSegment, Bytes) {
        debug_assert!(self.is_plain() && through > self.una && through <= self.nxt);
        let mut bytes = 0;
        for seq in self.una..through {
            bytes += u64::from(self.record(seq).len);
        }
        let last = *self.record(through - 1);
        self.inflight -= (through - self.una) as u32;
        self.una = through;
        (last, Bytes(bytes))
    }

    /// Removes sacked ranges that the cumulative acknowledgment has passed.
    #[inline]
    pub(super) fn trim(&mut self) {
        match self.sacked.front_mut() {
            Some(first) if first.1 <= self.una => self.drop_passed(),
            Some(first) => first.0 = first.0.max(self.una),
            None => {}
        }
    }

    fn drop_passed(&mut self) {
        let una = self.una;
        let passed = self.sacked.iter().take_while(|range| range.1 <= una).count();
        self.sacked.drain(..passed);
        if let Some(first) = self.sacked.front_mut() {
            first.0 = first.0.max(una);
        }
    }

    fn forget(&mut self, record: &SentSegment) {
        if record.flags & SACKED != 0 {
            self.sacked_out -= 1;
            self.inflight += 1;
            return;
        }
        if record.flags & LOST != 0 {
            self.lost_out -= 1;
            self.inflight += 1;
            if record.flags & RETRANSMITTED == 0 {
                self.to_resend -= 1;
            }
        }
        if record.flags & RETRANSMITTED != 0 {
            self.retrans_out -= 1;
            self.inflight -= 1;
        }
    }

    /// The first part of a range that was not sacked before. In practice the range extends the last known one, or begins beyond
    /// it.
    #[inline]
    pub(super) fn gap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (start, end) = (start.max(self.una), end.min(self.nxt));
        if start >= end {
            return None;
        }
        match self.sacked.back() {
            Some(last) if start < last.0 => self.gap_within(start, end),
            Some(last) if start < last.1 => (last.1 < end).then_some((last.1, end)),
            _ => Some((start, end)),
        }
    }

    #[cold]
    fn gap_within(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        // Most often it concerns the last range but one.
        let after = match self.sacked.iter().nth_back(1) {
            Some(range) if range.0 <= start && start < range.1 => self.sacked.len() - 2,
            _ => self.sacked.partition_point(|range| range.1 <= start),
        };
        let &(from, to) = self.sacked.get(after)?;
        if start < from {
            return Some((start, end.min(from)));
        }
        let end = self.sacked.get(after + 1).map_or(end, |next| end.min(next.0));
        (to < end).then_some((to, end))
    }

    /// Marks a segment of a [`gap`](Scoreboard::gap) as received; returns its previous record.
    #[inline]
    pub(super) fn sack(&mut self, seq: u64) -> SentSegment {
        let record = self.record_mut(seq);
        let before = *record;
        record.flags = (record.flags & !(LOST | RETRANSMITTED)) | SACKED;
        if before.flags & (LOST | RETRANSMITTED) != 0 {
            self.forget(&before);
        }
        self.sacked_out += 1;
        self.inflight -= 1;
        before
    }

    /// Joins a [`gap`](Scoreboard::gap) to the sacked ranges once all of its segments are marked.
    #[inline]
    pub(super) fn close(&mut self, (start, end): (u64, u64)) {
        match self.sacked.back_mut() {
            Some(last) if start < last.0 => self.close_within(start, end),
            Some(last) if start == last.1 => last.1 = end,
            _ => self.sacked.push_back((start, end)),
        }
    }

    #[cold]
    fn close_within(&mut self, start: u64, end: u64) {
        let after = self.sacked.partition_point(|range| range.1 < start);
        let joins_next = |range: Option<&(u64, u64)>| range.is_some_and(|range| range.0 == end);
        if self.sacked[after].1 != start {
            if joins_next(self.sacked.get(after)) {
                self.sacked[after].0 = start
            } else {
                self.sacked.insert(after, (start, end))
            }
        } else if joins_next(self.sacked.get(after + 1)) {
            self.sacked[after].1 = self.sacked[after + 1].1;
            self.sacked.remove(after + 1);
        } else {
            self.sacked[after].1 = end;
        }
    }

    /// Without SACK a cumulative acknowledgment ends before a hole: the segments beyond it that count as sacked begin after the first one.
    pub(super) fn find_first(&mut self) {
        if self.una == self.nxt || !self.record(self.una).sacked() {
            return;
        }
        let una = self.una;
        self.record_mut(una).flags &= !SACKED;
        (self.sacked_out, self.inflight) = (self.sacked_out - 1, self.inflight + 1);
        let end = self.sacked[0].1;
        self.sacked.clear();
        let end = if end < self.nxt {
            self.sack(end);
            end + 1
        } else {
            end
        };
        if una + 1 < end {
            self.sacked.push_back((una + 1, end));
        }
    }

    /// Without SACK: what was counted as sacked is forgotten (Linux `tcp_reset_reno_sack`).
    pub(super) fn forget_sacks(&mut self) {
        for seq in self.una..self.nxt {
            self.record_mut(seq).flags &= !SACKED;
        }
        self.inflight += self.sacked_out;
        self.sacked_out = 0;
        self.sacked.clear();
        self.originals = self.una;
    }

    /// Without SACK: the first segment is lost, if it is not being sent again.
    pub(super) fn lose_first(&mut self) -> bool {
        let lost = self.una < self.nxt && self.record(self.una).flags & (LOST | RETRANSMITTED) == 0;
        if lost {
            self.lose(self.una);
        }
        lost
    }

    /// The next segment to retransmit, in sequence order.
    pub(super) fn next_to_resend(&mut self) -> Option<u64> {
        if self.to_resend == 0 {
            return None;
        }
        self.hint = self.hint.max(self.una);
        while self.hint < self.nxt {
            let flags = self.record(self.hint).flags;
            if flags & (LOST | RETRANSMITTED | SACKED) == LOST {
                return Some(self.hint);
            }
            self.hint += 1;
        }
        debug_assert!(false, "a segment waits to be sent again below the hint");
        None
    }

    /// A lost segment, or one for a probe, is retransmitted now. It gets a new stamp.
    pub(super) fn resend(&mut self, seq: u64, now: Time, stamp: Stamp) {
        self.set_stamp(seq, stamp);
        let record = self.record_mut(seq);
        record.sent = now;
        let (lost, retransmitted) = (record.flags & LOST != 0, record.flags & RETRANSMITTED != 0);
        record.flags |= RETRANSMITTED | EVER_RESENT;
        if !retransmitted {
            self.retrans_out += 1;
            self.inflight += 1;
            if lost {
                self.to_resend -= 1;
            }
        }
        self.retransmitted.push_back((seq, now));
    }

    /// Marks a segment or its retransmission lost.
    fn lose(&mut self, seq: u64) {
        let record = self.record_mut(seq);
        let (lost, retransmitted) = (record.flags & LOST != 0, record.flags & RETRANSMITTED != 0);
        record.flags = (record.flags | LOST) & !RETRANSMITTED;
        if !lost {
            self.lost_out += 1;
            self.inflight -= 1;
        }
        if retransmitted {
            self.retrans_out -= 1;
            self.inflight -= 1;
        }
        if !lost || retransmitted {
            self.to_resend += 1;
        }
        self.hint = self.hint.min(seq);
    }

    /// Walks the segments in the order of their last transmission, without those already lost (RFC 8985 §6.2 step 5). `judge`
    /// decides about each; `newly` is called for each lost one with its number, its previous record and its stamp.
    #[inline]
    pub(super) fn walk_in_time_order(
        &mut self,
        mut judge: impl FnMut(u64, &SentSegment) -> LossDecision,
        mut newly: impl FnMut(u64, &SentSegment, Stamp),
    ) {
        let (mut seq, mut settled) = (self.originals.max(self.una), true);
        while seq < self.nxt {
            let record = *self.record(seq);
            if record.flags & (SACKED | LOST | EVER_RESENT) == 0 {
                match judge(seq, &record) {
                    LossDecision::Lost => {
                        newly(seq, &record, self.stamp(seq));
                        self.lose(seq);
                    }
                    LossDecision::Keep => settled = false,
                    LossDecision::TooYoung => break,
                }
            }
            seq += 1;
            if settled {
                self.originals = seq;
            }
        }
        let mut n = 0;
        while let Some(&(seq, sent)) = self.retransmitted.get(n) {
            let gone = seq < self.una || {
                let record = self.record(seq);
                record.flags & RETRANSMITTED == 0 || record.sent != sent
            };
            if gone {
                // In practice near the front, because retransmissions are acknowledged in the order in which they were sent.
                self.retransmitted.remove(n);
                continue;
            }
            let record = *self.record(seq);
            match judge(seq, &record) {
                LossDecision::Lost => {
                    newly(seq, &record, self.stamp(seq));
                    self.lose(seq);
                    self.retransmitted.remove(n);
                }
                LossDecision::Keep => n += 1,
                LossDecision::TooYoung => break,
            }
        }
    }

    /// After a timeout, marks the first segment lost, and all segments that are not sacked and that `judge` finds old enough
    /// (Linux `tcp_timeout_mark_lost`; RFC 6298 §5.4 has only the first). `newly` is called for each that was not marked lost
    /// before, with its number and its previous record.
    pub(super) fn lose_old(
        &mut self,
        old: impl Fn(&SentSegment) -> bool,
        mut newly: impl FnMut(u64, &SentSegment, &Stamp),
    ) -> u32 {
        let before = self.lost_out;
        for seq in self.una..self.nxt {
            let record = self.record(seq);
            if !record.sacked() && (seq == self.una || old(record)) {
                if record.flags & LOST == 0 {
                    newly(seq, record, &stamp(&self.stamps, seq));
                }
                self.lose(seq);
            }
        }
        self.originals = self.una;
        self.lost_out - before
    }

    /// Undoes all marks: nothing was lost.
    pub(super) fn find_all(&mut self) {
        for seq in self.una..self.nxt {
            self.record_mut(seq).flags &= !LOST;
        }
        self.inflight += self.lost_out;
        (self.lost_out, self.to_resend, self.originals) = (0, 0, self.una);
    }

    pub(super) fn bytes(&self) -> usize {
        self.ring.len() * size_of::<SentSegment>()
            + self.stamps.len() * size_of::<Stamp>()
            + self.sacked.capacity() * size_of::<(u64, u64)>()
            + self.retransmitted.capacity() * size_of::<(u64, Time)>()
    }
}

/// A segment's stamp, if stamps are kept.
#[inline]
fn stamp(stamps: &[Stamp], seq: u64) -> Stamp {
    stamps.get(seq as usize & stamps.len().wrapping_sub(1)).copied().unwrap_or_default()
}

/// RACK's decision about a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LossDecision {
    /// It is lost.
    Lost,
    /// It was sent before the newest delivered segment, but not long enough ago.
    Keep,
    /// It was sent after the newest delivered segment, and so were all that follow.
    TooYoung,
}
