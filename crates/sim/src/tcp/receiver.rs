//! The receiving side: what to acknowledge, and when (RFC 9293 §3.8.6.3, RFC 2018, RFC 2883, RFC 3168).
//!
//! The rules are Linux's (`__tcp_ack_snd_check`). The first segments of a connection, the first after a pause or after an old
//! segment, and those with which the receive window grows, are acknowledged one by one. Later every second one is, or a single
//! one after a delay. While segments are missing, three duplicate acknowledgments are sent at once, and later ones are
//! compressed for up to a millisecond. A compressed one is sent before a new range displaces those that it has to report
//! (`tcp_sack_new_ofo_skb`). A segment that fills the last hole is acknowledged at once. Any acknowledgment ends both waits.
use super::AckSegment;
use super::delayed_ack::DelayedAck;
use super::window::ReceiveWindow;
use crate::ranges::Ranges;
use narrows_core::congestion::Marks;
use narrows_core::{Span, Time};
use narrows_scenario::Family;
use narrows_scenario::transport::TcpParams;

/// Number of SACK blocks that the receiver remembers (Linux `TCP_NUM_SACKS`). With timestamps only three fit into a header.
const REMEMBERED: usize = 4;
/// A sender is expected to get this number of blocks from an acknowledgment, because others may be lost (Linux
/// `TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED: usize = 2;
/// Duplicate acknowledgments sent at once before compression begins (Linux `TCP_FASTRETRANS_THRESH`).
const PROMPT_DUPLICATES: u32 = 3;
/// Maximum number of acknowledgments compressed into one (Linux `tcp_comp_sack_nr`).
const MAX_GATHERED: u32 = 44;
/// Compression lasts at most this share of an RTT: a third (Linux `tcp_comp_sack_rtt_percent`).
const GATHERING_RTT_DIVISOR: u64 = 3;
/// Segments acknowledged at once after a mark (Linux `__tcp_ecn_check_ce`).
const QUICK_AFTER_MARK: u32 = 2;

/// A TCP receiver. The fields that every in-order segment uses come first.
#[repr(C)]
pub(crate) struct Receiver {
    next: u64,
    /// Every segment before this one has been acknowledged.
    acknowledged: u64,
    delayed: Option<Time>,
    /// Segments received beyond `next`.
    beyond: Ranges,
    /// In-order segments not acknowledged yet.
    pending: u32,
    quick: u32,
    every: u32,
    delayed_ack: DelayedAck,
    /// Number of segments that are acknowledged one by one after a pause.
    prompt: u32,
    /// Segments with no more payload than this do not make the window grow.
    settled: u32,
    /// Timestamp of the last segment that started at `acknowledged`, which is echoed (RFC 7323 §4.3).
    stamp: u32,
    echo: bool,
    /// What the sender needs to know: marks are echoed until it answers, or counted and reported (AccECN), or counted, and the last
    /// packet's is echoed (RFC 8257 §3.2).
    marks: Marks,
    /// Number of CE-marked packets, modulo 256; and whether the last packet was marked.
    marked: u8,
    last_marked: bool,
    duplicate: bool,
    /// Whether ranges are reported to the sender (SACK).
    sacks: bool,
    /// Whether the window limits the sender.
    limits: bool,
    /// The number of ranges in `recent`.
    remembered: u8,
    gathering: Option<Time>,
    gather: Span,
    gathered: u32,
    /// A compressed acknowledgment was sent before the segment that arrives now was taken.
    has_reported: bool,
    duplicates: u32,
    duplicates_at: u64,
    window: ReceiveWindow,
    /// The segments that arrived twice, if `duplicate` says that there are any.
    duplicated: (u64, u64),
    /// The most recently received ranges, the latest first (Linux `selective_acks`).
    recent: [(u64, u64); REMEMBERED],
}

/// An arriving segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Incoming {
    /// Its number.
    pub(crate) seq: u64,
    /// Its payload, bytes.
    pub(crate) len: u32,
    /// Its timestamp, ms.
    pub(crate) stamp: u32,
    /// It is CE-marked.
    pub(crate) marked: bool,
    /// It has the CWR flag.
    pub(crate) cwr: bool,
}

/// The result of a segment's arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// It had not arrived before.
    pub(crate) is_new: bool,
    /// An acknowledgment is to be sent now.
    pub(crate) acknowledge: bool,
}

/// What a segment was to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Placed {
    /// It had arrived before and was acknowledged cumulatively.
    Old,
    /// It had arrived before, beyond a hole.
    Twice,
    /// Nothing is missing before any segment that has arrived.
    LastHole,
    /// Something still is.
    AmongHoles,
}

impl Receiver {
    pub(crate) fn new(params: &TcpParams, family: Family, rtt: Span) -> Receiver {
        Receiver {
            next: 0,
            beyond: Ranges::default(),
            recent: [(0, 0); REMEMBERED],
            remembered: 0,
            duplicated: (0, 0),
            pending: 0,
            quick: params.quick_acks.0,
            every: params.ack_every.0,
            delayed_ack: DelayedAck::new(params, rtt),
            prompt: params.quick_acks.0,
            settled: 0,
            window: ReceiveWindow::new(params, family, rtt),
            sacks: params.sack,
            limits: params.receive_limit,
            gather: if params.sack { params.sack_compression.min(rtt / GATHERING_RTT_DIVISOR) } else { Span::ZERO },
            gathered: 0,
            has_reported: false,
            duplicates: 0,
            duplicates_at: 0,
            delayed: None,
            gathering: None,
            echo: false,
            marks: Marks::Classic,
            marked: 0,
            last_marked: false,
            duplicate: false,
            acknowledged: 0,
            stamp: 0,
        }
    }

    /// From now on reports marks as the sender needs them.
    pub(crate) fn report_marks(&mut self, marks: Marks) {
        self.marks = marks;
    }

    /// A segment arrives.
    #[inline(always)]
    pub(crate) fn on_segment(&mut self, segment: Incoming, now: Time) -> Arrival {
        let Incoming { seq, len, stamp, marked, cwr } = segment;
        if seq <= self.acknowledged {
            self.stamp = stamp;
        }
        if marked | cwr | self.last_marked {
            self.notice_ecn(marked, cwr);
        }
        if seq == self.next && self.beyond.is_empty() {
            self.advance(now);
            if len > self.settled {
                self.grow_window(len, now);
            }
            return Arrival { is_new: true, acknowledge: self.acknowledge_in_order(now) };
        }
        self.on_disorder(seq, len, now)
    }

    /// Whether the segments that have come in order are acknowledged now. If not, the delay begins.
    #[inline(always)]
    fn acknowledge_in_order(&mut self, now: Time) -> bool {
        let acknowledge = self.pending >= self.every || self.quick > 0;
        if !acknowledge && self.delayed.is_none() {
            self.delayed = Some(self.delayed_ack.deadline(now));
        }
        acknowledge
    }

    /// The next segment in order has come.
    #[inline]
    fn advance(&mut self, now: Time) {
        self.next += 1;
        self.pending += 1;
        if self.delayed_ack.note(now) {
            self.acknowledge_promptly();
        }
    }

    /// The next segments are acknowledged one by one (Linux `tcp_incr_quickack`).
    #[cold]
    fn acknowledge_promptly(&mut self) {
        self.quick = self.quick.max(self.prompt);
    }

    /// One of them has been acknowledged (Linux `tcp_dec_quickack_mode`).
    #[cold]
    fn spend_prompt(&mut self) {
        self.quick -= 1;
        if self.quick == 0 {
            self.delayed_ack.reset();
        }
    }

    /// If the window grows, the sender hears of it at once (Linux `tcp_grow_window`).
    #[inline(never)]
    fn grow_window(&mut self, len: u32, now: Time) {
        if self.window.grow(len, self.next, now) {
            self.quick |= 1;
        } else if !self.window.is_autotuned() {
            self.settled = self.window.largest();
        }
    }

    #[cold]
    fn notice_ecn(&mut self, marked: bool, cwr: bool) {
        if self.marks != Marks::Classic {
            self.echo = marked && self.marks == Marks::Counted;
            // A change is reported at once (AccECN §3.2.2.5.1; RFC 8257 §3.2).
            if marked != self.last_marked {
                self.quick = self.quick.max(1);
            }
            self.marked = self.marked.wrapping_add(u8::from(marked));
            self.last_marked = marked;
            return;
        }
        if cwr {
            self.echo = false;
        }
        if marked {
            if !self.echo {
                self.quick = self.quick.max(QUICK_AFTER_MARK);
            }
            self.echo = true;
        }
    }

    #[cold]
    #[inline(never)]
    fn on_disorder(&mut self, seq: u64, len: u32, now: Time) -> Arrival {
        match self.place(seq, len, now) {
            Placed::Old => Arrival { is_new: false, acknowledge: true },
            Placed::LastHole => Arrival { is_new: true, acknowledge: true },
            Placed::AmongHoles => Arrival { is_new: true, acknowledge: self.acknowledge_in_disorder(now) },
            Placed::Twice => Arrival { is_new: false, acknowledge: self.acknowledge_in_disorder(now) },
        }
    }

    /// Whether the compressed acknowledgment must be sent before the segments from `start` up to `end` are taken. They may be a new range,
    /// which would displace one that has not been reported.
    #[inline(always)]
    pub(crate) fn must_report(&mut self, start: u64, end: u64) -> bool {
        self.gathered > 0 && self.would_displace(start, end)
    }

    /// Linux `tcp_sack_new_ofo_skb`, as far as it sends (`tcp_sack_compress_send_ack`): the range is not among the first two blocks.
    /// A later block is extended first, and so reported with them if it is the third.
    #[cold]
    fn would_displace(&mut self, start: u64, end: u64) -> bool {
        if start <= self.next {
            return false;
        }
        let at = self.block_beside((start, end));
        if let Some(block) = at.filter(|&at| at >= EXPECTED).map(|at| &mut self.recent[at]) {
            *block = joined(*block, (start, end));
        }
        self.has_reported = at.unwrap_or(usize::from(self.remembered)) >= EXPECTED;
        self.has_reported
    }

    /// A packet with several segments in a row arrives (`offload.rs`). They are acknowledged together, if at all: returns whether
    /// they are. `packet` has the number of the first segment and the payload of all. Every segment but the last has the MSS.
    /// `each` gets the number of every segment, and its payload if it is new.
    #[cold]
    pub(crate) fn on_large_packet(
        &mut self,
        packet: Incoming,
        extra_segments: u8,
        mss: u32,
        now: Time,
        mut each: impl FnMut(u64, Option<u32>),
    ) -> bool {
        let Incoming { seq: first, len: mut left, stamp, marked, cwr } = packet;
        if first <= self.acknowledged {
            self.stamp = stamp;
        }
        if marked | cwr | self.last_marked {
            self.notice_ecn(marked, cwr);
            if marked && self.marks != Marks::Classic {
                self.marked = self.marked.wrapping_add(extra_segments);
            }
        }
        self.window.measure(left.min(mss), left);
        let in_order = first == self.next && self.beyond.is_empty();
        let (mut is_new, mut is_old, mut has_filled) = (false, false, false);
        for seq in first..=first + u64::from(extra_segments) {
            let len = left.min(mss);
            left -= len;
            let placed = self.place(seq, len, now);
            let new = matches!(placed, Placed::LastHole | Placed::AmongHoles);
            (is_new, is_old) = (is_new | new, is_old | (placed == Placed::Old));
            has_filled |= placed == Placed::LastHole;
            each(seq, new.then_some(len));
        }
        if in_order {
            return self.acknowledge_in_order(now);
        }
        (is_old && !is_new) || has_filled || self.acknowledge_in_disorder(now)
    }

    /// Takes a segment, wherever it belongs.
    fn place(&mut self, seq: u64, len: u32, now: Time) -> Placed {
        if seq < self.next {
            // Linux `tcp_enter_quickack_mode`.
            self.acknowledge_promptly();
            self.delayed_ack.reset();
            self.note_duplicate(seq);
            return Placed::Old;
        }
        if self.beyond.contains(seq) {
            self.note_duplicate(seq);
            self.remember((seq, seq + 1));
            return Placed::Twice;
        }
        if len > self.settled {
            self.grow_window(len, now);
        }
        if seq == self.next {
            self.advance(now);
            if let Some(end) = self.beyond.take_from(self.next) {
                self.pending += (end - self.next) as u32;
                self.next = end;
            }
            self.forget_passed();
            if self.beyond.is_empty() {
                return Placed::LastHole;
            }
        } else {
            self.beyond.insert(seq);
            self.remember((seq, seq + 1));
        }
        Placed::AmongHoles
    }

    /// A segment has arrived twice (Linux `tcp_dsack_set`). Those of one packet are one range.
    fn note_duplicate(&mut self, seq: u64) {
        let follows = self.duplicate && self.duplicated.1 == seq;
        self.duplicated = (if follows { self.duplicated.0 } else { seq }, seq + 1);
        self.duplicate = true;
    }

    fn acknowledge_in_disorder(&mut self, now: Time) -> bool {
        // Linux has scheduled an acknowledgment of this segment already, and the one that it sends first takes its place
        // (`inet_csk_schedule_ack`, `tcp_event_ack_sent`): this segment is reported with the next.
        if core::mem::take(&mut self.has_reported) {
            return false;
        }
        if self.pending >= self.every || self.quick > 0 || self.gathered >= MAX_GATHERED {
            return true;
        }
        if self.duplicates_at != self.next {
            self.duplicates_at = self.next;
            self.duplicates = 0;
        }
        if self.duplicates < PROMPT_DUPLICATES || self.gather == Span::ZERO {
            self.duplicates += 1;
            return true;
        }
        self.gathered += 1;
        if self.gathering.is_none() {
            self.gathering = Some(now + self.gather);
        }
        false
    }

    /// The first of the remembered ranges that overlaps with this one or touches it.
    fn block_beside(&self, range: (u64, u64)) -> Option<usize> {
        self.recent[..usize::from(self.remembered)].iter().position(|&block| touch(block, range))
    }

    /// Remembers a range, as the most recent one (RFC 2018 §4; Linux `tcp_sack_new_ofo_skb`). It joins the remembered ranges that
    /// it touches; what has been forgotten does not come back.
    fn remember(&mut self, range: (u64, u64)) {
        let count = usize::from(self.remembered);
        let known = self.block_beside(range);
        let at = known.unwrap_or(count.min(REMEMBERED - 1));
        let mut newest = known.map_or(range, |at| joined(self.recent[at], range));
        self.recent[..=at].rotate_right(1);
        let mut kept = 1;
        // Linux `tcp_sack_maybe_coalesce`.
        for n in 1..count + usize::from(known.is_none() && count < REMEMBERED) {
            let block = self.recent[n];
            if touch(newest, block) {
                newest = joined(newest, block);
            } else {
                self.recent[kept] = block;
                kept += 1;
            }
        }
        self.recent[0] = newest;
        self.remembered = kept as u8;
    }

    /// Forgets the ranges that are acknowledged cumulatively (Linux `tcp_sack_remove`).
    fn forget_passed(&mut self) {
        let mut count = 0;
        for n in 0..usize::from(self.remembered) {
            if self.recent[n].0 > self.next {
                self.recent[count] = self.recent[n];
                count += 1;
            }
        }
        self.remembered = count as u8;
    }

    /// Makes the acknowledgment. It ends all waits for a later one (Linux `tcp_event_ack_sent`).
    #[inline]
    pub(crate) fn acknowledge(&mut self) -> AckSegment {
        if self.quick > 0 {
            self.spend_prompt();
        }
        self.pending = 0;
        self.delayed = None;
        self.gathering = None;
        self.gathered = 0;
        self.acknowledged = self.next;
        let mut ack = AckSegment {
            ack: self.next,
            ece: self.echo,
            marked: self.marked,
            echo: self.stamp,
            window: self.limits.then(|| self.window.offered()),
            ..AckSegment::default()
        };
        if self.remembered > 0 || self.duplicate {
            self.add_blocks(&mut ack);
        }
        ack
    }

    /// The acknowledgment with SACK blocks.
    #[cold]
    fn add_blocks(&mut self, ack: &mut AckSegment) {
        ack.duplicate = core::mem::take(&mut self.duplicate) && self.sacks;
        if !self.sacks {
            return;
        }
        // A D-SACK takes the first block (RFC 2883 §4).
        let duplicate = ack.duplicate.then_some(self.duplicated);
        let blocks = duplicate.iter().chain(&self.recent[..usize::from(self.remembered)]);
        for (slot, &(start, end)) in ack.sacks.iter_mut().zip(blocks) {
            *slot = (start.wrapping_sub(self.next) as u32, end.wrapping_sub(self.next) as u32);
            ack.blocks += 1;
        }
    }

    /// When a delayed or compressed acknowledgment is due.
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Time> {
        match (self.delayed, self.gathering) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether an acknowledgment is overdue.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        self.next_timer().is_some_and(|at| at <= now)
    }
}

/// Do these ranges overlap, or does one follow the other (Linux `tcp_sack_extend`)?
fn touch(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

/// The range of two that touch.
fn joined(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.min(b.0), a.1.max(b.1))
}
