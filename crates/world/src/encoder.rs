//! The encoder of a video call: the sizes of frames at a target rate, in the manner of RFC 8593's statistical model.
//!
//! A frame's size varies around the mean of the rate by a Laplace distribution. A key frame is several times as large; the frames after it
//! are smaller, so that the rate holds over half a second. The encoder follows a new target with the next frame.
use narrows_core::{Bytes, Rate, Rng, Time};
use narrows_scenario::traffic::Video;

/// An encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    traffic: Video,
    /// Headers of a packet, bytes.
    header: f64,
    rng: Rng,
    /// Bytes sent beyond the rate so far, which the next frames make up for.
    debt: f64,
    last_key: Option<Time>,
    key_wanted: bool,
}

/// A coded frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Its size, bytes.
    pub bytes: u32,
    /// It depends on no other frame.
    pub is_key: bool,
}

/// Frames over which a debt is paid back: half a second at 30 frames per second.
const PAYBACK: f64 = 15.0;
/// Smallest size ÷ mean size.
const LEAST: f64 = 0.2;
/// Largest ratio that the noise makes.
const MOST: f64 = 3.0;

impl Encoder {
    /// An encoder of this call, whose packets have so long headers.
    pub fn new(traffic: &Video, header: Bytes, rng: Rng) -> Encoder {
        let header = header.0 as f64;
        Encoder { traffic: traffic.clone(), header, rng, debt: 0.0, last_key: None, key_wanted: false }
    }

    /// Makes the next frame a key frame.
    pub fn want_key(&mut self) {
        self.key_wanted = true;
    }

    /// Codes the picture of this time. The rate is one at the IP layer, headers included.
    pub fn encode(&mut self, rate: Rate, now: Time) -> Frame {
        let Video { fps, packet, key_interval, key_size, variation, .. } = self.traffic;
        let mean = rate.as_bps() as f64 / 8.0 / fps;
        let is_due = self.last_key.is_none_or(|last| now.since(last) >= key_interval);
        let is_key = is_due || std::mem::take(&mut self.key_wanted);
        let noise = (1.0 + self.laplace() * variation).clamp(LEAST, MOST);
        let size = if is_key {
            self.last_key = Some(now);
            self.key_wanted = false;
            mean * key_size
        } else {
            ((mean - self.debt / PAYBACK) * noise).max(LEAST * mean)
        };
        // A debt of more than two seconds would make the picture unusable for as long.
        self.debt = (self.debt + size - mean).clamp(-2.0 * mean, 2.0 * fps * mean);
        let packets = (size / packet.0 as f64).ceil().max(1.0);
        Frame { bytes: (size - packets * self.header).max(1.0) as u32, is_key }
    }

    /// Laplace-distributed with scale 1.
    fn laplace(&mut self) -> f64 {
        let size = self.rng.exponential();
        if self.rng.chance(0.5) { size } else { -size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::Span;

    fn frames(traffic: &Video, seconds: u64) -> Vec<Frame> {
        let mut encoder = Encoder::new(traffic, Bytes(48), Rng::stream(1, "encoder"));
        let times = (0..seconds * 30).map(|n| Time::ZERO + Span::ms(1000 * n / 30));
        times.map(|now| encoder.encode(Rate::mbit(1), now)).collect()
    }

    /// At 1 Mbit/s a frame has 4167 B at the IP layer: four packets with 48 B of headers each.
    #[test]
    fn the_rate_holds_over_key_frames() {
        let traffic = Video::default();
        let frames = frames(&traffic, 100);
        let keys: Vec<u32> = frames.iter().filter(|frame| frame.is_key).map(|frame| frame.bytes).collect();
        assert_eq!(keys.len(), 10, "one in ten seconds");
        assert!(keys.iter().all(|&bytes| bytes == 16_666 - 14 * 48), "{keys:?}");
        let on_wire = |frame: &Frame| {
            let payload = 1200 - 48;
            f64::from(frame.bytes + frame.bytes.div_ceil(payload) * 48)
        };
        let mbit = frames.iter().map(on_wire).sum::<f64>() * 8.0 / 100.0 / 1e6;
        assert!((0.99..=1.01).contains(&mbit), "{mbit}");
    }

    #[test]
    fn a_key_frame_comes_when_it_is_asked_for() {
        let mut encoder = Encoder::new(&Video::default(), Bytes(48), Rng::stream(1, "encoder"));
        let mut key = |ms: u64| encoder.encode(Rate::mbit(1), Time::ZERO + Span::ms(ms)).is_key;
        assert!(key(0) && !key(33));
        encoder.want_key();
        let mut key = |ms: u64| encoder.encode(Rate::mbit(1), Time::ZERO + Span::ms(ms)).is_key;
        assert!(key(67) && !key(100));
    }

    #[test]
    fn without_variation_all_frames_are_alike() {
        let traffic = Video { variation: 0.0, key_size: 1.0, ..Video::default() };
        let sizes: Vec<u32> = frames(&traffic, 2).iter().map(|frame| frame.bytes).collect();
        assert!(sizes.iter().all(|&bytes| bytes == sizes[0]), "{sizes:?}");
    }
}
