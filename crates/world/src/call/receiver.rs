//! The receiver of a call: puts frames together, shows them, and reports.
//!
//! A frame is shown as soon as all of it has arrived and the frame before it was shown; a key frame does not wait for those before it, which
//! are then dropped. There is no jitter buffer.
use super::{Part, Report};
use crate::record::video::VideoRecord;
use narrows_core::{Span, Time};
use std::collections::VecDeque;

/// The receiver of a call.
pub(super) struct Receiver {
    interval: Span,
    /// The number of the packet that comes next if none is lost.
    next: u64,
    /// The first number that the next report names.
    unreported: u64,
    report_at: Option<Time>,
    /// Missing packets that are to be asked for now.
    missing: Option<(u64, u64)>,
    /// The number of the frame that is shown next, and it and later ones.
    frame: u64,
    frames: VecDeque<Frame>,
    /// The time since which no frame was shown.
    stalled_since: Option<Time>,
}

/// A frame of which some has arrived, or a later one has.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Its parts that have arrived.
    parts: u32,
    /// A part of it; `None` if none has arrived.
    part: Option<Part>,
}

/// The receiver asks for a key frame when it has shown nothing for this time.
const STALL: Span = Span::s(1);
/// Frames that it holds at most.
const MOST: u64 = 4096;

impl Receiver {
    /// Reports in such intervals.
    pub(super) fn new(interval: Span) -> Receiver {
        Receiver {
            interval,
            next: 0,
            unreported: 0,
            report_at: None,
            missing: None,
            frame: 0,
            frames: VecDeque::new(),
            stalled_since: None,
        }
    }

    /// A packet arrives. Returns the number of packets before it that are missing since the last one: links do not reorder packets.
    pub(super) fn on_packet(&mut self, number: u64, now: Time) -> u64 {
        self.report_at.get_or_insert(now + self.interval);
        let missing = number.saturating_sub(self.next);
        if missing > 0 {
            self.missing = Some((self.next, number));
        }
        self.next = self.next.max(number + 1);
        missing
    }

    /// A part of a frame arrives.
    pub(super) fn on_part(&mut self, part: &Part, now: Time, record: &mut VideoRecord) {
        self.stalled_since.get_or_insert(now);
        let Some(place) = part.frame.checked_sub(self.frame).filter(|&ahead| ahead < MOST) else { return };
        let place = place as usize;
        if self.frames.len() <= place {
            self.frames.resize(place + 1, Frame::default());
        }
        let frame = &mut self.frames[place];
        (frame.parts, frame.part) = (frame.parts + 1, Some(*part));
        if frame.parts >= part.of && part.is_key {
            self.frames.drain(..place);
            self.frame = part.frame;
        }
        while let Some(part) = self.frames.front().and_then(Frame::complete) {
            self.frames.pop_front();
            self.frame += 1;
            self.stalled_since = Some(now);
            record.shown(part.captured, part.frame_bytes.into(), now);
        }
    }

    /// When a report is due.
    pub(super) fn next_report(&self) -> Option<Time> {
        self.report_at
    }

    /// The packet that is to be sent now: a request for what is missing, or else a report.
    pub(super) fn report(&mut self, now: Time) -> Report {
        if let Some((first, end)) = self.missing.take() {
            return Report::Missing { first, end };
        }
        let first = std::mem::replace(&mut self.unreported, self.next);
        // Without arrivals there is nothing to report; the next one sets the timer again.
        let silent = first == self.next;
        self.report_at = self.report_at.filter(|_| !silent).map(|at| at + self.interval);
        let wants_key = self.stalled_since.is_some_and(|since| now.since(since) >= STALL);
        Report::Arrivals { first, end: self.next, at: now, wants_key }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
    }
}

impl Frame {
    /// A part of it, if all have arrived.
    fn complete(&self) -> Option<Part> {
        self.part.filter(|part| self.parts >= part.of)
    }
}
