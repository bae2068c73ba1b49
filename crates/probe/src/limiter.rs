//! How a path limits the rate: is too much dropped at once, or does it wait first?
use crate::meter::Meter;
use narrows_core::Time;
use serde::{Deserialize, Serialize};

/// How a rate is limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// What is too much is dropped, and nothing waits.
    Policer,
    /// What is too much waits.
    Shaper,
}

/// A packet whose fate is known.
#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: Time,
    bytes: u32,
    is_lost: bool,
}

/// With fewer losses there is no telling.
const LOSSES: usize = 15;
/// A bucket counts as empty when its level is this near to the usual one at a loss, full-sized packets…
const NEAR: f64 = 10.0;
/// …and such a share of the losses has to find it empty…
const EMPTY: f64 = 0.7;
/// …and no larger share of the others may find less in it.
const OVERDRAWN: f64 = 0.15;

impl Meter {
    /// Whether the losses are those of a token bucket, in the manner of Flach et al., "An Internet-Wide Analysis of Traffic Policing"
    /// (SIGCOMM 2016), section 3: a bucket that fills at the rate that was delivered between the first loss and the last one would have been
    /// as good as empty at the losses, and no emptier at other times. Losses by chance do not care about its level. The level that counts
    /// as empty is the median at the losses, because the bucket's filling at the first one is not known. A short queue does the same, so
    /// whether packets waited is for the caller to see.
    pub(crate) fn is_policed(&self) -> bool {
        let of = |sent, bytes, is_lost| Packet { sent, bytes, is_lost };
        let delivered = self.acknowledged.iter().map(|packet| of(packet.sent, packet.bytes, false));
        let lost = self.losses.iter().map(|loss| of(loss.sent, loss.bytes, true));
        let mut packets: Vec<Packet> = delivered.chain(lost).collect();
        packets.sort_by_key(|packet| packet.sent);
        if self.losses.len() < LOSSES {
            return false;
        }
        let place = |of: Option<usize>| of.map(|n| &packets[n]);
        let first = place(packets.iter().position(|packet| packet.is_lost));
        let last = place(packets.iter().rposition(|packet| packet.is_lost));
        let Some((first, last)) = first.zip(last) else { return false };
        let between = || packets.iter().filter(|packet| (first.sent..=last.sent).contains(&packet.sent));
        let seconds = last.sent.since(first.sent).as_secs_f64();
        let bytes: f64 = between().filter(|packet| !packet.is_lost).map(|packet| f64::from(packet.bytes)).sum();
        if seconds <= 0.0 || bytes <= 0.0 {
            return false;
        }
        let (mut level, mut at_losses, mut at_others) = (0.0, Vec::new(), Vec::new());
        let mut before = first.sent;
        for packet in between() {
            level += bytes / seconds * packet.sent.since(before).as_secs_f64();
            before = packet.sent;
            if packet.is_lost {
                at_losses.push(level);
            } else {
                level -= f64::from(packet.bytes);
                at_others.push(level);
            }
        }
        at_losses.sort_by(f64::total_cmp);
        let empty = at_losses[at_losses.len() / 2];
        let near = NEAR * f64::from(packets.iter().map(|packet| packet.bytes).max().unwrap_or(0));
        let share = |of: &[f64], holds: &dyn Fn(f64) -> bool| {
            of.iter().filter(|&&level| holds(level)).count() as f64 / of.len().max(1) as f64
        };
        share(&at_losses, &|level| (level - empty).abs() <= near) >= EMPTY
            && share(&at_others, &|level| level < empty - near) <= OVERDRAWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::{Rng, Span};
    use narrows_quic::{Event, What};

    /// Four seconds of 1200-byte packets whose rate goes up from 10 to 30 Mbit/s and back to 10, once a second. `takes`: of a packet, by its time.
    fn sawtooth(mut takes: impl FnMut(Time) -> bool) -> Meter {
        let mut meter = Meter::default();
        meter.begin(Time::ZERO);
        let mut at = Time::ZERO;
        let mut number = 0;
        while at < Time::ZERO + Span::s(4) {
            let mbit = 10.0 + 20.0 * at.since(Time::ZERO).as_secs_f64().fract();
            meter.apply(&Event { at, what: What::Sent { path: 0, number, bytes: 1200 } });
            let what = if takes(at) {
                What::Acknowledged { path: 0, number, bytes: 1200 }
            } else {
                What::Lost { path: 0, number, bytes: 1200 }
            };
            // All that matters here is when it was sent.
            meter.apply(&Event { at, what });
            at += Span::from_secs_f64(9600.0 / (mbit * 1e6));
            number += 1;
        }
        meter
    }

    /// A bucket of this many bytes that fills with 15 Mbit/s.
    fn bucket(burst: f64) -> impl FnMut(Time) -> bool {
        let (mut tokens, mut before) = (burst, Time::ZERO);
        move |at| {
            tokens = (tokens + 15e6 / 8.0 * at.since(before).as_secs_f64()).min(burst);
            before = at;
            let takes = tokens >= 1200.0;
            tokens -= if takes { 1200.0 } else { 0.0 };
            takes
        }
    }

    /// A bucket that is full for long before the losses come does not show: it fills with less than was delivered.
    #[test]
    fn a_token_bucket_is_a_policer() {
        for burst in [60e3, 100e3, 300e3] {
            let meter = sawtooth(bucket(burst));
            assert!(meter.losses.len() >= LOSSES && meter.is_policed(), "{burst} B, {} losses", meter.losses.len());
        }
    }

    #[test]
    fn losses_by_chance_are_none() {
        for (share, seed) in [(0.005, 1), (0.01, 2), (0.03, 3), (0.1, 4), (0.3, 5)] {
            let mut rng = Rng::stream(seed, "loss");
            let meter = sawtooth(|_| rng.unit() >= share);
            assert!(meter.losses.len() >= LOSSES && !meter.is_policed(), "{share}");
        }
    }

    #[test]
    fn few_losses_say_nothing() {
        let mut left = LOSSES - 1;
        let mut policed = bucket(2400.0);
        let meter = sawtooth(|at| {
            let is_lost = !policed(at) && left > 0;
            left -= usize::from(is_lost);
            !is_lost
        });
        assert!(meter.losses.len() == LOSSES - 1 && !meter.is_policed());
        assert!(!Meter::default().is_policed());
    }
}
