//! HyStart as Linux's CUBIC has it: leave slow start before the queue overflows.
//!
//! Two signs, looked for in each round trip: acknowledgments that keep coming closely spaced for half of the lowest RTT
//! (an ACK train: the flight fills the path), and a round's lowest RTT that has risen by an eighth (a queue builds).
//! Source: Ha and Rhee, "Taming the elephants: new TCP slow start", 2011; Linux `hystart_update`. Deviates: times are
//! in nanoseconds, Linux's in microseconds.
use crate::congestion::{Ack, PathHint};
use crate::params::Packets;
use crate::{Bytes, Span, Time};

choice! {
    /// Which signs count.
    pub enum Detect {
        /// An ACK train or a rising delay.
        Both = "both",
        /// ACK trains only.
        AckTrain = "ack_train",
        /// Rising delay only.
        Delay = "delay",
    }
}

/// What can be set; the defaults are Linux's.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Signs that count.
    pub detect: Detect,
    /// Smallest window at which slow start may be left.
    pub low_window: Packets,
    /// Widest gap between acknowledgments of one train.
    pub ack_delta: Span,
}

impl Default for Settings {
    /// Linux: `hystart_detect` 3, `hystart_low_window` 16, `hystart_ack_delta_us` 2000.
    fn default() -> Settings {
        Settings { detect: Detect::Both, low_window: Packets(16), ack_delta: Span::ms(2) }
    }
}

/// HyStart's state.
#[derive(Clone, Debug)]
pub struct Hystart {
    settings: Settings,
    paced: bool,
    /// Whether slow start has been left by it. Then it sleeps until a timeout.
    found: bool,
    round: Round,
}

/// A round trip: from one acknowledgment to that of the first byte sent after it.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Time,
    /// Ends when more than this has been acknowledged.
    end: Bytes,
    /// When the ACK train was last seen going on.
    train: Time,
    samples: u8,
    min_rtt: Option<Span>,
}

impl Round {
    fn new(now: Time, nxt: Bytes) -> Round {
        Round { start: now, end: nxt, train: now, samples: 0, min_rtt: None }
    }
}

impl Hystart {
    /// At the start of a connection.
    pub fn new(settings: Settings, path: &PathHint, now: Time) -> Hystart {
        Hystart { settings, paced: path.paced, found: false, round: Round::new(now, Bytes::ZERO) }
    }

    /// Slow start begins anew, after a timeout.
    pub fn restart(&mut self, now: Time, nxt: Bytes) {
        self.found = false;
        self.round = Round::new(now, nxt);
    }

    /// An acknowledgment in slow start: is it time to leave? `delay_min` is the lowest RTT known to the controller.
    pub fn should_leave(&mut self, ack: &Ack, rtt: Span, delay_min: Span, cwnd: u64, window: Bytes) -> bool {
        if self.found {
            return false;
        }
        if ack.una > self.round.end {
            self.round = Round::new(ack.now, ack.nxt);
        }
        if cwnd < u64::from(self.settings.low_window.0) {
            return false;
        }
        // Both look at every acknowledgment: each keeps state.
        let train = self.settings.detect != Detect::Delay && self.train_is_long(ack, delay_min, window);
        let delay = self.settings.detect != Detect::AckTrain && self.delay_rises(rtt, delay_min);
        self.found = train || delay;
        self.found
    }

    fn train_is_long(&mut self, ack: &Ack, delay_min: Span, window: Bytes) -> bool {
        if ack.now.since(self.round.train) > self.settings.ack_delta {
            return false;
        }
        self.round.train = ack.now;
        let flight = delay_min + aggregation_delay(ack.srtt, window);
        // Pacing spreads a flight over up to half of the RTT: then half of the RTT is no sign of a full path.
        let longest = if self.paced { flight } else { flight / 2 };
        ack.now.since(self.round.start) > longest
    }

    fn delay_rises(&mut self, rtt: Span, delay_min: Span) -> bool {
        let min_rtt = self.round.min_rtt.map_or(rtt, |lowest| lowest.min(rtt));
        self.round.min_rtt = Some(min_rtt);
        if self.round.samples < MIN_SAMPLES {
            self.round.samples += 1;
            return false;
        }
        min_rtt > delay_min + (delay_min / 8).clamp(DELAY_MIN, DELAY_MAX)
    }
}

/// What segmentation offload and interrupt coalescing may add to a train: four of the largest bursts at the pacing rate
/// of slow start, at most 1 ms (Linux: `hystart_ack_delay`).
fn aggregation_delay(srtt: Span, window: Bytes) -> Span {
    let bytes = 4 * GSO_MAX_SIZE;
    let rate_times_srtt = (2 * window.0).max(1);
    let delay = bytes.saturating_mul(srtt.as_ns()) / rate_times_srtt;
    Span::ns(delay).min(Span::ms(1))
}

/// RTT samples of a round before its lowest one counts. Linux: `HYSTART_MIN_SAMPLES`.
const MIN_SAMPLES: u8 = 8;
/// Least rise of the delay that counts. Linux: `HYSTART_DELAY_MIN`.
const DELAY_MIN: Span = Span::ms(4);
/// Rise of the delay that always counts. Linux: `HYSTART_DELAY_MAX`.
const DELAY_MAX: Span = Span::ms(16);
/// The largest packet before segmentation, bytes. Linux: `GSO_LEGACY_MAX_SIZE`.
const GSO_MAX_SIZE: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::parts::testing::{ack, path};

    const RTT: Span = Span::ms(100);
    const WINDOW: Bytes = Bytes(100 * 1448);

    /// Feeds a round of `n` acknowledgments `gap` apart, with these RTTs; when is slow start left, if at all?
    fn round(h: &mut Hystart, cwnd: u64, n: u64, gap: Span, rtt: impl Fn(u64) -> Span) -> Option<u64> {
        let start = Time::from_ns(1_000_000_000);
        // The round of these acknowledgments ends far beyond them; the first one begins it.
        (0..n).find(|&i| {
            let mut a = ack(start + gap * i, 1);
            (a.una, a.nxt) = (Bytes(1 + i), Bytes(1_000_000));
            a.srtt = RTT;
            h.should_leave(&a, rtt(i), RTT, cwnd, WINDOW)
        })
    }

    fn hystart(paced: bool, detect: Detect) -> Hystart {
        let settings = Settings { detect, ..Settings::default() };
        Hystart::new(settings, &path(10, paced), Time::ZERO)
    }

    #[test]
    fn a_train_for_half_of_the_lowest_rtt_ends_slow_start() {
        // (100 ms + 1 ms of aggregation) / 2 = 50.5 ms, to be exceeded: the 51st gap of 1 ms.
        let mut h = hystart(false, Detect::Both);
        assert_eq!(round(&mut h, 100, 200, Span::ms(1), |_| RTT), Some(51));
        // Paced: the whole of it.
        let mut h = hystart(true, Detect::Both);
        assert_eq!(round(&mut h, 100, 200, Span::ms(1), |_| RTT), Some(102));
    }

    #[test]
    fn a_gap_breaks_the_train() {
        let mut h = hystart(false, Detect::AckTrain);
        assert_eq!(round(&mut h, 100, 200, Span::us(2_001), |_| RTT), None);
        let mut h = hystart(false, Detect::AckTrain);
        assert_eq!(round(&mut h, 100, 200, Span::us(2_000), |_| RTT), Some(26));
    }

    #[test]
    fn a_small_window_never_ends_slow_start() {
        let mut h = hystart(false, Detect::Both);
        assert_eq!(round(&mut h, 15, 200, Span::ms(1), |_| RTT * 2), None);
        assert_eq!(round(&mut h, 16, 200, Span::ms(1), |_| RTT), Some(51));
    }

    #[test]
    fn a_rise_of_the_rounds_lowest_rtt_by_an_eighth_ends_slow_start() {
        let gap = Span::ms(3); // no train
        let over = RTT + RTT / 8 + Span::ns(1);
        assert_eq!(round(&mut hystart(false, Detect::Both), 100, 50, gap, |_| over), Some(8));
        assert_eq!(round(&mut hystart(false, Detect::AckTrain), 100, 50, gap, |_| over), None);
        assert_eq!(round(&mut hystart(false, Detect::Both), 100, 50, gap, |_| RTT + RTT / 8), None);
        // One low sample in the round is enough to go on.
        let one_low = |i| if i == 3 { RTT } else { over };
        assert_eq!(round(&mut hystart(false, Detect::Both), 100, 50, gap, one_low), None);
    }

    #[test]
    fn it_fires_once_until_a_timeout() {
        let mut h = hystart(false, Detect::Both);
        assert!(round(&mut h, 100, 200, Span::ms(1), |_| RTT).is_some());
        assert!(round(&mut h, 100, 200, Span::ms(1), |_| RTT * 2).is_none());
        h.restart(Time::ZERO, Bytes::ZERO);
        assert!(round(&mut h, 100, 200, Span::ms(1), |_| RTT).is_some());
    }

    #[test]
    fn aggregation_is_four_large_bursts_at_twice_the_window_per_rtt() {
        // 262 144 B at 2 × 1 GB per 10 ms: 1.3 µs; at slow rates 1 ms.
        assert_eq!(aggregation_delay(Span::ms(10), Bytes(1_000_000_000)), Span::ns(1_310));
        assert_eq!(aggregation_delay(Span::ms(10), Bytes(144_800)), Span::ms(1));
    }
}
