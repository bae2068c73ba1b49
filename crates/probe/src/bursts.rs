//! Whether packets leave the bottleneck in bursts, as of a link that sends aggregates or by grants. Behind a wire that is busy, acknowledgments come
//! evenly, one for each two packets. Behind such a link those of a burst come at once, and the next ones when the link sends again.
//!
//! The figures are medians: a host that is late now and then makes some acknowledgments come together, and not most of them.
use crate::meter::{Load, Meter};
use narrows_core::{Span, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bursts in which packets arrive.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Packets of a burst, median.
    pub packets: u32,
    /// Time from one to the next, ms, median.
    pub every_ms: f64,
}

impl fmt::Display for Bursts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bursts { packets, every_ms } = self;
        write!(
            f,
            "packets come in bursts of {packets}, every {every_ms:.1} ms: the link sends aggregates, or by grants"
        )
    }
}

/// Fewer packets say nothing.
const TELLING: usize = 200;
/// A burst is twice the packets that one acknowledgment has: a receiver acknowledges two at a time (RFC 9000 §13.2.2).
const LEAST_PACKETS: u32 = 4;
/// Shorter times between bursts are those in which hosts take packets from their devices, ms.
const LEAST_MS: f64 = 1.5;

impl Meter {
    /// The bursts in which packets were acknowledged after the transfer's first quarter; `None` if they came evenly.
    pub(crate) fn bursts(&self, load: Load, to: Time) -> Option<Bursts> {
        let from = load.from + to.since(load.from) / 4;
        let arrivals: Vec<Time> =
            self.acknowledged.iter().map(|packet| packet.at).filter(|at| (from..=to).contains(at)).collect();
        let (first, last) = (arrivals.first()?, arrivals.last()?);
        if arrivals.len() < TELLING {
            return None;
        }
        // What comes within half of a packet's time comes at once.
        let at_once = last.since(*first) / (2 * arrivals.len() as u64);
        let bursts: Vec<&[Time]> = arrivals.chunk_by(|one, next| next.since(*one) <= at_once).collect();
        let mut sizes: Vec<usize> = bursts.iter().map(|burst| burst.len()).collect();
        let mut gaps: Vec<Span> = bursts.windows(2).map(|pair| pair[1][0].since(pair[0][0])).collect();
        sizes.sort_unstable();
        gaps.sort_unstable();
        let packets = u32::try_from(*sizes.get(sizes.len() / 2)?).ok()?;
        let every_ms = gaps.get(gaps.len() / 2)?.as_ms_f64();
        (packets >= LEAST_PACKETS && every_ms >= LEAST_MS).then_some(Bursts { packets, every_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_quic::{Event, What};

    /// A transfer of four seconds whose packets arrive at these times, two for each acknowledgment.
    fn found(arrivals: impl Iterator<Item = Time>) -> Option<Bursts> {
        let mut meter = Meter::default();
        meter.begin(Time::ZERO);
        let arrivals: Vec<Time> = arrivals.collect();
        for (number, _) in (0..).zip(&arrivals) {
            meter.apply(&Event { at: Time::ZERO, what: What::Sent { path: 0, number, bytes: 1200 } });
        }
        for (number, pair) in (0..).step_by(2).zip(arrivals.chunks_exact(2)) {
            for number in [number, number + 1] {
                meter.apply(&Event { at: pair[1], what: What::Acknowledged { path: 0, number, bytes: 1200 } });
            }
        }
        let load = meter.load().expect("it has begun");
        meter.bursts(load, Time::ZERO + Span::s(4))
    }

    /// Evenly at 20 Mbit/s, and `late` by so much, by their number.
    fn evenly(late: impl Fn(u64) -> Span) -> impl Iterator<Item = Time> {
        let mut last = Time::ZERO;
        (0..8000u64).map(move |n| {
            last = last.max(Time::ZERO + Span::us(491) * n + late(n));
            last
        })
    }

    #[test]
    fn a_wire_has_no_bursts() {
        assert_eq!(found(evenly(|_| Span::ZERO)), None);
        // Every fiftieth packet is held back for 8 ms, and those behind it come with it.
        assert_eq!(found(evenly(|n| if n.is_multiple_of(50) { Span::ms(8) } else { Span::ZERO })), None);
        assert_eq!(found(evenly(|_| Span::ZERO).take(180)), None, "too few");
        // A host that takes 20 packets at a time from its device, each 0.2 ms at 1 Gbit/s.
        assert_eq!(found((0..20_000u64).map(|n| Time::ZERO + Span::us(200) * (n / 20))), None);
    }

    #[test]
    fn grants_and_aggregates_are_bursts() {
        // Four packets each 2 ms, as a modem's grants at 20 Mbit/s; 24 each 6 ms, as aggregates.
        let grants = found((0..8000u64).map(|n| Time::ZERO + Span::ms(2) * (n / 4)));
        assert_eq!(grants, Some(Bursts { packets: 4, every_ms: 2.0 }));
        let aggregates = found((0..16_000u64).map(|n| Time::ZERO + Span::ms(6) * (n / 24)));
        assert_eq!(aggregates, Some(Bursts { packets: 24, every_ms: 6.0 }));
    }
}
