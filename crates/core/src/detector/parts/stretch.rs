//! How the packets of a step of the ramp arrive: as fast as they were sent, or at the rate of an overloaded bottleneck?
use crate::packet_feedback::{PacketFeedback, PacketOutcome};
use crate::time::Time;

/// The packets of a step whose fate is known, per subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stretch {
    /// Times of sending and of arrival, of the first packet that arrived and of the last.
    spans: [Option<[(Time, Time); 2]>; 2],
    /// Packets that arrived.
    came: [u32; 2],
    /// Packets that were lost.
    lost: [u32; 2],
}

/// What the two subflows sent: r and 2r.
const PARTS: [f64; 2] = [1.0, 2.0];

impl Stretch {
    /// A packet was delivered or lost.
    pub fn add(&mut self, event: &PacketFeedback) {
        let subflow = usize::from(event.subflow & 1);
        if event.outcome == PacketOutcome::Lost {
            self.lost[subflow] += 1;
            return;
        }
        self.came[subflow] += 1;
        match &mut self.spans[subflow] {
            Some([_, last]) => *last = (last.0.max(event.sent), event.now),
            none => *none = Some([(event.sent, event.now); 2]),
        }
    }

    /// Packets that arrived, per subflow.
    pub const fn came(&self) -> [u32; 2] {
        self.came
    }

    /// Packets that were lost, per subflow.
    pub const fn lost(&self) -> [u32; 2] {
        self.lost
    }

    /// When the first and the last packet of a subflow that arrived had been sent.
    pub fn sent(&self, subflow: usize) -> Option<(Time, Time)> {
        self.spans[subflow].map(|[first, last]| (first.0, last.0))
    }

    /// How long the sending and the arrival of a subflow's packets took, s.
    fn lasted(&self, subflow: usize) -> Option<(f64, f64)> {
        let [first, last] = self.spans[subflow]?;
        let (sent, came) = (last.0.since(first.0).as_secs_f64(), last.1.since(first.1).as_secs_f64());
        (sent > 0.0 && came > 0.0).then_some((sent, came))
    }

    /// The rate at which both subflows sent, over the rate at which their packets arrive. Each subflow counts by itself, because one may
    /// wait longer than the other. `None` with too few packets.
    pub fn ratio(&self) -> Option<f64> {
        let arrives = |n: usize| {
            let (sent, came) = self.lasted(n)?;
            let (all, came_packets) = (f64::from(self.came[n] + self.lost[n]), f64::from(self.came[n]));
            Some(PARTS[n] * sent / came * came_packets / all)
        };
        Some((PARTS[0] + PARTS[1]) / (arrives(0)? + arrives(1)?))
    }

    /// Packets of a subflow that arrived after its first one, and the time that they took, s.
    pub fn arrivals(&self, subflow: usize) -> (f64, f64) {
        self.lasted(subflow).map_or((0.0, 0.0), |(_, lasted)| (f64::from(self.came[subflow] - 1), lasted))
    }

    /// The rate at which the packets of both subflows arrive, packets/s.
    pub fn arrival_rate(&self) -> Option<f64> {
        let rate = |n: usize| self.lasted(n).map(|(_, lasted)| f64::from(self.came[n] - 1) / lasted);
        Some(rate(0)? + rate(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_feedback::Flight;
    use crate::rate::Bytes;
    use crate::time::Span;

    /// The first subflow sends every 20 ms, the second every 10 ms; the times between their arrivals are these, ms. Every `lost`-th packet
    /// of the second is lost.
    fn stretch(first: u64, second: u64, lost: u64) -> Stretch {
        let at = |ms: u64| Time::ZERO + Span::ms(ms);
        let mut stretch = Stretch::default();
        for n in 0..60u64 {
            let packets = [(0, 20 * n, first * n), (1, 10 * n, second * n)];
            // Both send for 600 ms.
            for (subflow, sent, came) in packets.into_iter().skip(usize::from(n >= 30)) {
                let is_lost = subflow == 1 && n % lost == lost - 1;
                let outcome = if is_lost { PacketOutcome::Lost } else { PacketOutcome::Delivered { rtt: None } };
                stretch.add(&PacketFeedback {
                    now: at(40 + came),
                    sent: at(sent),
                    bytes: Bytes(1000),
                    subflow,
                    flight: Flight::default(),
                    outcome,
                });
            }
        }
        stretch
    }

    #[test]
    fn the_ratio_is_that_of_the_rates() {
        let close = |ratio: Option<f64>, to: f64| assert!((ratio.unwrap() - to).abs() < 0.03, "{ratio:?}, not {to}");
        close(stretch(20, 10, 1000).ratio(), 1.0);
        // One queue: both take half as long again.
        close(stretch(30, 15, 1000).ratio(), 1.5);
        close(stretch(30, 15, 1000).arrival_rate(), 100.0);
        // Served in turn: only the second takes longer. 50 and 66.7 packets/s arrive of 150.
        close(stretch(20, 15, 1000).ratio(), 1.286);
        // A fifth of the second's packets is lost: 50 and 80.
        close(stretch(20, 10, 5).ratio(), 1.154);
        assert_eq!((stretch(20, 10, 5).came(), stretch(20, 10, 5).lost()), ([30, 48], [0, 12]));
    }

    #[test]
    fn one_packet_has_no_rate() {
        assert!(Stretch::default().ratio().is_none() && Stretch::default().arrival_rate().is_none());
    }
}
