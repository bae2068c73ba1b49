//! The accuracy of a link of 50 Mbit/s with 20 ms, on an idle machine and on a busy one.
use super::endpoints::{self, Arrived, Window};
use super::loops;
use super::ours::{self, Bottleneck, Carried};
use super::veth;
use crate::Options;
use narrows_core::Span;
use narrows_host::Namespace;
use narrows_live::packet_thread::lateness::Lateness;
use narrows_live::packet_thread::pump::Outcome;
use narrows_results::summary::Timing;
use narrows_world::record::histogram::Delays;
use serde::Serialize;
use std::time::Duration;

/// The measurements.
#[derive(Debug, Serialize)]
pub(crate) struct Exactness {
    /// Rates of UDP and TCP.
    pub(crate) rates: Vec<RateCase>,
    /// Delays of echo requests.
    pub(crate) pings: Vec<PingCase>,
}

/// A flow through the link.
#[derive(Debug, Serialize)]
pub(crate) struct RateCase {
    pub(crate) name: String,
    /// The expected rate, Mbit/s; `None` if it depends on the flow.
    pub(crate) due_mbit: Option<f64>,
    /// The measured rate at the receiver, Mbit/s.
    pub(crate) mbit: f64,
    /// The difference in per cent of the expected rate.
    pub(crate) error_percent: Option<f64>,
    pub(crate) kept: Kept,
}

/// Echo requests.
#[derive(Debug, Serialize)]
pub(crate) struct PingCase {
    pub(crate) name: String,
    pub(crate) answered: usize,
    /// RTT minus the link's 20 ms, if it has any: minimum, median, p99 and maximum, ms.
    pub(crate) above_ms: [f64; 4],
    /// The timing of the live world's threads.
    pub(crate) kept: Option<Kept>,
}

/// The timing accuracy and the CPU time of the live world's threads.
#[derive(Debug, Serialize)]
pub(crate) struct Kept {
    /// Delays of handing over packets: p50, p99, p99.9 and maximum, ms.
    pub(crate) late_ms: [f64; 4],
    pub(crate) timing: Timing,
    /// CPU time ÷ time.
    pub(crate) cores: f64,
}

impl<T> Carried<T> {
    /// The timing accuracy of the threads.
    pub(crate) fn kept(&self) -> Kept {
        let both = self.outcomes.each_ref().map(|outcome: &Outcome| &outcome.lateness);
        let timing = Lateness::timing(&both);
        let mut late = Delays::new(2);
        both.iter().for_each(|thread| late.add(thread.late()));
        let quantiles = late.at_shares([0.5, 0.99, 0.999].into_iter());
        let late_ms = [quantiles[0], quantiles[1], quantiles[2], timing.late_ms.max];
        Kept { late_ms, timing, cores: timing.cpu_s / self.time.as_secs_f64() }
    }
}

/// Measures each flow, first on an idle machine and then with every core busy.
pub(crate) fn measure(options: &Options, missing: &mut Vec<String>) -> Exactness {
    let length = if options.divisor > 1 { Span::s(2) } else { Span::s(10) };
    let pings = if options.divisor > 1 { 50 } else { 600 };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut exactness = Exactness { rates: Vec::new(), pings: Vec::new() };
    for (spinning, busy) in [(0, ""), (cores, ", processor saturated")] {
        for (name, sent) in [("UDP at 80 Mbit/s", 80_000_000), ("UDP at 40 Mbit/s", 40_000_000)] {
            let name = format!("{name}{busy}");
            match endpoints::under_load(spinning, || udp(&name, sent, length)) {
                Ok(case) => exactness.rates.push(case),
                Err(why) => missing.push(format!("{name}: {why}")),
            }
        }
        for (name, rate) in [("TCP", RATE), ("TCP at 1 Gbit/s", "1gbit")] {
            let name = format!("{name}{busy}");
            match endpoints::under_load(spinning, || tcp(&name, rate, length)) {
                Ok(case) => exactness.rates.push(case),
                Err(why) => missing.push(format!("{name}: {why}")),
            }
        }
        for (name, over) in OVER {
            let name = format!("{name}{busy}");
            match endpoints::under_load(spinning, || ping(&name, over, pings)) {
                Ok(case) => exactness.pings.push(case),
                Err(why) => missing.push(format!("ping, {name}: {why}")),
            }
        }
    }
    exactness
}

const RATE: &str = "50mbit";
const RATE_MBIT: f64 = 50.0;
const RTT: Span = Span::ms(20);

fn link(rate: &'static str, queue: &'static str) -> Bottleneck {
    Bottleneck { rate, queue, rtt: RTT, whole: false, join: true }
}

fn udp(name: &str, bit_per_s: u64, length: Span) -> Result<RateCase, String> {
    let window = Window::new(Span::s(1), length);
    let carried = ours::carry(link(RATE, "fifo"), window, |sides| endpoints::udp(sides, window, bit_per_s))?;
    let [sent, arrived]: [Arrived; 2] = carried.result;
    let due = sent.mbit().min(RATE_MBIT);
    let (mbit, kept) = (arrived.mbit(), carried.kept());
    let error_percent = Some(100.0 * (mbit / due - 1.0));
    Ok(RateCase { name: name.to_owned(), due_mbit: Some(due), mbit, error_percent, kept })
}

fn tcp(name: &str, rate: &'static str, length: Span) -> Result<RateCase, String> {
    let window = Window::new(Span::s(2), length);
    let carried = ours::carry(link(rate, "fq_codel"), window, |sides| endpoints::tcp(sides, window))?;
    let (mbit, kept) = (carried.result.mbit(), carried.kept());
    Ok(RateCase { name: name.to_owned(), due_mbit: None, mbit, error_percent: None, kept })
}

/// What the echo requests cross.
#[derive(Clone, Copy)]
enum Over {
    Link,
    TunLoop,
    PacketSocketLoop,
    Veth,
}

const OVER: [(&str, Over); 4] = [
    ("our link", Over::Link),
    ("bare TUN loop", Over::TunLoop),
    ("bare packet-socket loop", Over::PacketSocketLoop),
    ("veth pair", Over::Veth),
];

fn ping(name: &str, over: Over, count: usize) -> Result<PingCase, String> {
    let spacing = Duration::from_millis(20);
    // Long enough for all requests, their spacing and their round trips.
    let window = Window::new(Span::ms(100), Span::ms(42) * count as u64);
    let ask = |sides: &[Namespace; 2]| endpoints::ping(sides, window.clock, count, spacing);
    let (times, base, kept) = match over {
        Over::Link => {
            let carried = ours::carry(link(RATE, "fq_codel"), window, ask)?;
            let kept = carried.kept();
            (carried.result, RTT, Some(kept))
        }
        Over::TunLoop => (loops::tun(true, window, ask)?.0, Span::ZERO, None),
        Over::PacketSocketLoop => (loops::packet_sockets(true, window, ask)?.0, Span::ZERO, None),
        Over::Veth => {
            let sides = ours::sides()?;
            veth::joined(&sides, true, None)?;
            (ask(&sides)?, Span::ZERO, None)
        }
    };
    let mut above: Vec<f64> = times.iter().map(|time| (time.as_ns() as f64 - base.as_ns() as f64) / 1e6).collect();
    above.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * above.len() as f64).ceil() as usize;
        above.get(rank.clamp(1, above.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
    };
    let above_ms = [at(0.0), at(0.5), at(0.99), at(1.0)];
    Ok(PingCase { name: name.to_owned(), answered: times.len(), above_ms, kept })
}
