//! What the sender knows of each segment in flight: a ring of records, counters over them, and the order in which RACK
//! looks at them.
//!
//! The counters are Linux's (`packets_out`, `sacked_out`, `lost_out`, `retrans_out`). Two cursors make every operation
//! amortised constant: originals leave in sequence order, so RACK's time-ordered list is a cursor over them and a queue of
//! retransmissions; and lost segments are retransmitted in sequence order from a hint.
use crate::delivery::Stamp;
use crate::prefetch::prefetch;
use narrows_core::{Bytes, Time};
use std::collections::VecDeque;

/// A segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    /// When it was last sent.
    pub(super) sent: Time,
    /// Payload.
    pub(super) len: u16,
    flags: u8,
}

// The window's records are what an acknowledgment touches: as many per cache line as can be.
const _: () = assert!(size_of::<Record>() <= 16);

/// Room for a small window; the ring doubles when it is full.
const FIRST_RECORDS: usize = 4;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission is in flight.
const RESENT: u8 = 4;
/// It has been retransmitted at least once.
const EVER_RESENT: u8 = 8;

impl Record {
    #[inline]
    pub(super) fn new(sent: Time, len: u16) -> Record {
        Record { sent, len, ..Record::default() }
    }

    pub(super) const fn ever_resent(&self) -> bool {
        self.flags & EVER_RESENT != 0
    }

    pub(super) const fn sacked(&self) -> bool {
        self.flags & SACKED != 0
    }
}

/// The segments in flight.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    ring: Box<[Record]>,
    /// What makes delivery rate samples, in a ring as long; empty where nobody reads them.
    stamps: Box<[Stamp]>,
    una: u64,
    nxt: u64,
    sacked_out: u32,
    lost_out: u32,
    resent_out: u32,
    /// Lost and not in flight again.
    to_resend: u32,
    /// Selectively acknowledged ranges, ascending and disjoint.
    sacked: Vec<(u64, u64)>,
    /// Originals below have been acknowledged, sacked, lost or sent again.
    originals: u64,
    /// Retransmissions in the order of their sending.
    resent: VecDeque<(u64, Time)>,
    /// No segment below waits to be sent again.
    hint: u64,
}

impl Scoreboard {
    pub(super) fn new() -> Scoreboard {
        Scoreboard {
            ring: vec![Record::default(); FIRST_RECORDS].into_boxed_slice(),
            stamps: Box::default(),
            una: 0,
            nxt: 0,
            sacked_out: 0,
            lost_out: 0,
            resent_out: 0,
            to_resend: 0,
            sacked: Vec::new(),
            originals: 0,
            resent: VecDeque::new(),
            hint: 0,
        }
    }

    /// Stamps are kept from now on; nothing is in flight.
    pub(super) fn keep_stamps(&mut self) {
        self.stamps = vec![Stamp::default(); self.ring.len()].into_boxed_slice();
    }

    /// What a segment's delivery rate sample begins with.
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

    /// Sent and not acknowledged cumulatively.
    #[inline]
    pub(super) const fn out(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    /// In the network as far as the sender can tell (RFC 6675's pipe).
    #[inline]
    pub(super) const fn inflight(&self) -> u32 {
        (self.out() + self.resent_out) - (self.sacked_out + self.lost_out)
    }

    pub(super) const fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    pub(super) const fn lost_out(&self) -> u32 {
        self.lost_out
    }

    pub(super) const fn resent_out(&self) -> u32 {
        self.resent_out
    }

    pub(super) const fn waits_to_be_resent(&self) -> bool {
        self.to_resend > 0
    }

    /// Is everything in flight an original of which nothing else is known?
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.sacked_out | self.lost_out | self.resent_out == 0 && self.resent.is_empty()
    }

    #[inline]
    pub(super) fn record(&self, seq: u64) -> &Record {
        debug_assert!(seq >= self.una && seq < self.nxt);
        &self.ring[seq as usize & (self.ring.len() - 1)]
    }

    #[inline]
    fn record_mut(&mut self, seq: u64) -> &mut Record {
        let mask = self.ring.len() - 1;
        &mut self.ring[seq as usize & mask]
    }

    /// Appends a segment that is sent for the first time.
    #[inline]
    pub(super) fn push(&mut self, record: Record) -> u64 {
        if self.out() as usize == self.ring.len() {
            self.grow();
        }
        let seq = self.nxt;
        *self.record_mut(seq) = record;
        self.nxt += 1;
        seq
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = vec![Record::default(); self.ring.len() * 2].into_boxed_slice();
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

    /// Takes the first segment off, which was acknowledged cumulatively. `true` with it: not selectively before.
    #[inline]
    pub(super) fn acknowledge_first(&mut self) -> (Record, bool) {
        let record = *self.record(self.una);
        self.una += 1;
        if record.flags & (SACKED | LOST | RESENT) != 0 {
            self.forget(&record);
        }
        (record, !record.sacked())
    }

    /// Acknowledges many plain originals at once: the last one's record and the payload of all.
    #[inline]
    pub(super) fn acknowledge_plain(&mut self, through: u64) -> (Record, Bytes) {
        debug_assert!(self.is_plain() && through > self.una && through <= self.nxt);
        let mut bytes = 0;
        for seq in self.una..through {
            bytes += u64::from(self.record(seq).len);
        }
        let last = *self.record(through - 1);
        self.una = through;
        (last, Bytes(bytes))
    }

    /// Drops the sacked ranges that the cumulative acknowledgment has passed.
    pub(super) fn trim(&mut self) {
        let una = self.una;
        let passed = self.sacked.iter().take_while(|range| range.1 <= una).count();
        if passed > 0 {
            self.sacked.drain(..passed);
        }
        if let Some(first) = self.sacked.first_mut() {
            first.0 = first.0.max(una);
        }
    }

    fn forget(&mut self, record: &Record) {
        if record.flags & SACKED != 0 {
            self.sacked_out -= 1;
            return;
        }
        if record.flags & LOST != 0 {
            self.lost_out -= 1;
            if record.flags & RESENT == 0 {
                self.to_resend -= 1;
            }
        }
        if record.flags & RESENT != 0 {
            self.resent_out -= 1;
        }
    }

    /// Marks a range as received; `found` is called with each segment that was not known to be, as it was before,
    /// and with all [`stamp`]s.
    pub(super) fn sack(&mut self, start: u64, end: u64, mut found: impl FnMut(u64, &Record, &[Stamp])) {
        let (start, end) = (start.max(self.una), end.min(self.nxt));
        if start >= end {
            return;
        }
        // Ranges that touch [start, end): usually none but the last.
        let from = match self.sacked.last() {
            Some(last) if last.0 <= start => self.sacked.len() - usize::from(last.1 >= start),
            _ => self.sacked.partition_point(|range| range.1 < start),
        };
        let mut to = from;
        let (mut merged, mut at) = ((start, end), start);
        while let Some(&(s, e)) = self.sacked.get(to).filter(|range| range.0 <= end) {
            if s <= start && e >= end {
                return;
            }
            self.sack_gap(at, s.min(end), &mut found);
            at = at.max(e);
            merged = (merged.0.min(s), merged.1.max(e));
            to += 1;
        }
        self.sack_gap(at, end, &mut found);
        match to - from {
            0 => self.sacked.insert(from, merged),
            _ => {
                self.sacked[from] = merged;
                self.sacked.drain(from + 1..to);
            }
        }
    }

    fn sack_gap(&mut self, from: u64, to: u64, found: &mut impl FnMut(u64, &Record, &[Stamp])) {
        for seq in from..to {
            let before = *self.record(seq);
            found(seq, &before, &self.stamps);
            self.forget(&before);
            self.sacked_out += 1;
            let record = self.record_mut(seq);
            record.flags = (record.flags & !(LOST | RESENT)) | SACKED;
        }
    }

    /// The next segment to send again, in sequence order.
    pub(super) fn next_to_resend(&mut self) -> Option<u64> {
        if self.to_resend == 0 {
            return None;
        }
        self.hint = self.hint.max(self.una);
        while self.hint < self.nxt {
            let flags = self.record(self.hint).flags;
            if flags & (LOST | RESENT | SACKED) == LOST {
                return Some(self.hint);
            }
            self.hint += 1;
        }
        debug_assert!(false, "a segment waits to be sent again below the hint");
        None
    }

    /// A segment is sent again now: lost before, or probed. It takes a new stamp.
    pub(super) fn resend(&mut self, seq: u64, now: Time, stamp: Stamp) {
        self.set_stamp(seq, stamp);
        let record = self.record_mut(seq);
        record.sent = now;
        let (lost, resent) = (record.flags & LOST != 0, record.flags & RESENT != 0);
        record.flags |= RESENT | EVER_RESENT;
        if !resent {
            self.resent_out += 1;
            if lost {
                self.to_resend -= 1;
            }
        }
        self.resent.push_back((seq, now));
    }

    /// Marks a segment lost, or its retransmission.
    fn lose(&mut self, seq: u64) {
        let record = self.record_mut(seq);
        let (lost, resent) = (record.flags & LOST != 0, record.flags & RESENT != 0);
        record.flags = (record.flags | LOST) & !RESENT;
        if !lost {
            self.lost_out += 1;
        }
        if resent {
            self.resent_out -= 1;
        }
        if !lost || resent {
            self.to_resend += 1;
        }
        self.hint = self.hint.min(seq);
    }

    /// Walks the segments in the order of their last sending, those lost already left out (RFC 8985 §6.2 step 5). `judge`
    /// says what becomes of each.
    pub(super) fn walk_in_time_order(&mut self, mut judge: impl FnMut(u64, &Record, &[Stamp]) -> Verdict) {
        let (mut seq, mut settled) = (self.originals.max(self.una), true);
        while seq < self.nxt {
            let record = *self.record(seq);
            if record.flags & (SACKED | LOST | EVER_RESENT) == 0 {
                match judge(seq, &record, &self.stamps) {
                    Verdict::Lost => self.lose(seq),
                    Verdict::Keep => settled = false,
                    Verdict::TooYoung => break,
                }
            }
            seq += 1;
            if settled {
                self.originals = seq;
            }
        }
        let mut n = 0;
        while let Some(&(seq, sent)) = self.resent.get(n) {
            let gone = seq < self.una || {
                let record = self.record(seq);
                record.flags & RESENT == 0 || record.sent != sent
            };
            if gone {
                // In practice at the front: retransmissions are acknowledged in the order of their sending.
                self.resent.remove(n);
                continue;
            }
            let record = *self.record(seq);
            match judge(seq, &record, &self.stamps) {
                Verdict::Lost => {
                    self.lose(seq);
                    self.resent.remove(n);
                }
                Verdict::Keep => n += 1,
                Verdict::TooYoung => break,
            }
        }
    }

    /// After a timeout the first segment is taken for lost, and all that are not selectively acknowledged and that `judge`
    /// finds old enough (Linux `tcp_timeout_mark_lost`; RFC 6298 §5.4 knows the first only).
    /// `newly` is called with each that was not known to be lost, as it was before.
    pub(super) fn lose_old(&mut self, old: impl Fn(&Record) -> bool, mut newly: impl FnMut(&Record, &Stamp)) -> u32 {
        let before = self.lost_out;
        for seq in self.una..self.nxt {
            let record = self.record(seq);
            if !record.sacked() && (seq == self.una || old(record)) {
                if record.flags & LOST == 0 {
                    newly(record, &stamp(&self.stamps, seq));
                }
                self.lose(seq);
            }
        }
        self.originals = self.una;
        self.lost_out - before
    }

    /// Nothing was lost after all.
    pub(super) fn find_all(&mut self) {
        for seq in self.una..self.nxt {
            self.record_mut(seq).flags &= !LOST;
        }
        (self.lost_out, self.to_resend, self.originals) = (0, 0, self.una);
    }

    /// Starts to load the segments that the next acknowledgment is about, and the one that is sent next.
    #[inline]
    pub(super) fn prefetch(&self) {
        let mask = self.ring.len() - 1;
        for seq in [self.una, self.una + 1, self.nxt] {
            prefetch(&self.ring[seq as usize & mask]);
        }
        if let Some(last) = self.sacked.last() {
            prefetch(last);
        }
        if let Some(first) = self.resent.front() {
            prefetch(first);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.ring.len() * size_of::<Record>()
            + self.stamps.len() * size_of::<Stamp>()
            + self.sacked.capacity() * size_of::<(u64, u64)>()
            + self.resent.capacity() * size_of::<(u64, Time)>()
    }
}

/// A segment's stamp in a ring of them, if they are kept.
#[inline]
pub(super) fn stamp(stamps: &[Stamp], seq: u64) -> Stamp {
    stamps.get(seq as usize & stamps.len().wrapping_sub(1)).copied().unwrap_or_default()
}

/// What RACK says of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Lost.
    Lost,
    /// Sent before the newest delivered, but not long enough ago.
    Keep,
    /// Sent after the newest delivered: so are all that follow.
    TooYoung,
}
