//! The record of a video call: how long frames take until they can be shown, and when the picture freezes.
use super::histogram::Delays;
use crate::quality::video;
use narrows_core::{Span, Time};
use narrows_results::summary::Video;

/// The frames of a call.
#[derive(Clone, Debug)]
pub struct VideoRecord {
    fps: f64,
    /// The constant delay between the last hop and the receiver.
    delays: Delays,
    counts: Counts,
    /// The latest intervals between frames that were shown.
    intervals: [Span; INTERVALS],
    /// The number of intervals so far.
    intervals_ever: usize,
    /// When the latest frame was shown.
    last: Option<Time>,
    /// When the record began: with the first frame, or at the end of the warm-up.
    began: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    frames: u64,
    skipped: u64,
    shown: u64,
    bytes: u64,
    freezes: u64,
    frozen: Span,
    arrived: u64,
    lost: u64,
    resent: u64,
}

/// Intervals whose mean distinguishes a freeze from a slow picture (`freezeCount` in WebRTC's statistics).
const INTERVALS: usize = 30;
/// Intervals before the first freeze is looked for, as in libwebrtc.
const FEWEST: usize = 5;
/// How much longer than the mean a freeze is.
const LONGER: Span = Span::ms(150);

impl VideoRecord {
    /// For a call of this frame rate, with quantiles of this many significant digits.
    pub fn new(fps: f64, digits: u8) -> VideoRecord {
        VideoRecord {
            fps,
            delays: Delays::new(digits),
            counts: Counts::default(),
            intervals: [Span::ZERO; INTERVALS],
            intervals_ever: 0,
            last: None,
            began: None,
        }
    }

    /// The encoder has made a frame.
    pub fn captured(&mut self, now: Time) {
        self.began.get_or_insert(now);
        self.counts.frames += 1;
    }

    /// The encoder has left out a frame.
    pub fn skipped(&mut self) {
        self.counts.skipped += 1;
    }

    /// A packet is sent again.
    pub fn resent(&mut self) {
        self.counts.resent += 1;
    }

    /// A packet has arrived; this many before it are lost.
    pub fn arrived(&mut self, lost: u64) {
        self.counts.arrived += 1;
        self.counts.lost += lost;
    }

    /// A frame of this size is shown that was captured at this time.
    pub fn shown(&mut self, captured: Time, bytes: u64, now: Time) {
        self.delays.record(now.since(captured));
        self.counts.shown += 1;
        self.counts.bytes += bytes;
        if let Some(last) = self.last.replace(now) {
            let interval = now.since(last);
            if self.is_freeze(interval) {
                self.freeze(last, now);
            }
            self.intervals[self.intervals_ever % INTERVALS] = interval;
            self.intervals_ever += 1;
        }
    }

    /// Whether such an interval between two frames is a freeze.
    fn is_freeze(&self, interval: Span) -> bool {
        let known = self.intervals_ever.min(INTERVALS);
        if known < FEWEST {
            return false;
        }
        let sum = self.intervals[..known].iter().fold(Span::ZERO, |sum, &one| sum + one);
        let mean = sum / known as u64;
        interval >= (mean * 3).max(mean + LONGER)
    }

    /// Counts a freeze; of one that began before the record, the part since.
    fn freeze(&mut self, from: Time, to: Time) {
        self.counts.freezes += 1;
        let from = self.began.map_or(from, |began| from.max(began));
        self.counts.frozen += to.since(from);
    }

    /// Ends the warm-up.
    pub fn restart(&mut self, now: Time) {
        self.delays.clear();
        self.counts = Counts::default();
        self.began = self.began.map(|_| now);
    }

    /// Packets lost ÷ (arrived + lost); `None` before any arrived.
    pub fn loss(&self) -> Option<f64> {
        let Counts { arrived, lost, .. } = self.counts;
        (arrived > 0).then(|| lost as f64 / (arrived + lost) as f64)
    }

    /// The figures at the end of the call; `None` if it had no frame.
    pub fn summary(&self, end: Time) -> Option<Video> {
        let (mut record, life) = (self.clone(), end.since(self.began?).as_secs_f64());
        // Without a first picture the whole call is a freeze.
        match self.last {
            Some(last) if record.is_freeze(end.since(last)) => record.freeze(last, end),
            None if life > 0.0 => record.freeze(self.began?, end),
            _ => {}
        }
        let Counts { frames, skipped, shown, bytes, freezes, frozen, resent, .. } = record.counts;
        let frozen_s = frozen.as_secs_f64();
        let share = if life > 0.0 { (frozen_s / life).min(1.0) } else { 0.0 };
        let mbit = |seconds: f64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 };
        let scored = self.fps >= video::SMOOTH_FPS && life > 0.0;
        let picture = scored.then(|| video::picture(1000.0 * mbit(life - frozen_s), self.fps, share));
        let frame_delay_ms = (!record.delays.is_empty()).then(|| record.delays.quantiles_ms());
        Some(Video {
            frames,
            skipped,
            shown,
            frame_delay_ms,
            freezes,
            frozen_s,
            frozen: share,
            rate_mbit: mbit(life),
            resent_packets: resent,
            picture_mos: picture,
            // Without a frame the picture has the worst score.
            mos: picture.map(|picture| video::conversation(picture, frame_delay_ms.map_or(0.0, |ms| ms.mean))),
        })
    }

    /// Memory in use apart from its own size, bytes.
    pub fn bytes(&self) -> usize {
        self.delays.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    /// Frames each 40 ms, each shown 50 ms after its capture; then the times of the last ones.
    fn record(later: &[u64]) -> VideoRecord {
        let mut record = VideoRecord::new(25.0, 3);
        for ms in (0..1000).step_by(40).chain(later.iter().copied()) {
            record.captured(at(ms));
            record.shown(at(ms), 5000, at(ms + 50));
        }
        record
    }

    /// The mean is 40 ms, so that 190 ms are a freeze and 189 ms are none.
    #[test]
    fn a_freeze_is_as_webrtc_defines_it() {
        let found = record(&[960 + 189]).summary(at(1249)).unwrap();
        assert_eq!((found.freezes, found.frozen_s), (0, 0.0));
        let found = record(&[960 + 190]).summary(at(1250)).unwrap();
        assert_eq!((found.freezes, found.frozen_s), (1, 0.19));
        assert!((found.frozen - 0.19 / 1.25).abs() < 1e-12);
        assert_eq!(found.frame_delay_ms.map(|ms| ms.max), Some(50.0));
    }

    /// The same frames, 1.1 s later: they look as good, and nobody can talk.
    #[test]
    fn a_late_picture_is_as_good_and_the_conversation_is_not() {
        let scores = [50, 1100].map(|late| {
            let mut record = VideoRecord::new(25.0, 3);
            for ms in (0..4000).step_by(40) {
                record.captured(at(ms));
                record.shown(at(ms), 5000, at(ms + late));
            }
            let found = record.summary(at(4000)).expect("it has frames");
            (found.picture_mos.expect("25 a second"), found.mos.expect("25 a second"))
        });
        let [(soon_looks, soon), (late_looks, late)] = scores;
        assert_eq!((soon_looks, soon), (late_looks, soon_looks));
        assert!(soon > 4.0 && late < 2.0, "{scores:?}");
    }

    #[test]
    fn a_picture_that_is_frozen_at_the_end_counts() {
        let found = record(&[]).summary(at(3010)).unwrap();
        assert_eq!((found.freezes, found.frozen_s), (1, 2.0));
        assert!(found.mos.is_some_and(|mos| mos < 2.5), "{found:?}");
    }

    #[test]
    fn a_call_without_a_picture_is_one_freeze() {
        let mut record = VideoRecord::new(30.0, 3);
        assert_eq!(record.summary(at(10)), None);
        record.captured(at(0));
        let found = record.summary(at(5000)).unwrap();
        assert_eq!((found.freezes, found.frozen, found.mos), (1, 1.0, Some(1.0)));
    }

    /// A freeze of 2 s of which the warm-up takes half.
    #[test]
    fn the_warm_up_is_left_out() {
        let mut record = record(&[]);
        record.restart(at(2010));
        record.captured(at(2960));
        record.shown(at(2960), 5000, at(3010));
        let found = record.summary(at(3010)).unwrap();
        assert_eq!((found.freezes, found.frozen_s, found.frozen, found.shown), (1, 1.0, 1.0, 1));
    }
}
