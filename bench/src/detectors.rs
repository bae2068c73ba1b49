//! Nanoseconds per packet of every registered detector of fair queuing.
//!
//! Packets are sent at 100 Mbit/s over 40 ms, whatever rate a ramp asks for, and come back in order, some of them late. Rounds of `signal`,
//! which only hears of them, alternate with rounds of each detector; the difference of neighbouring rounds is the detector's own cost.
use crate::clock::timed;
use crate::{Options, median};
use narrows_core::detector::{Control, DetectorConfig};
use narrows_core::hint::PathHint;
use narrows_core::packet_feedback::{Flight, PacketFeedback, PacketOutcome, Sent};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rng, Span, Time};
use serde::Serialize;
use std::collections::VecDeque;

/// A detector's cost.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) detector: String,
    /// Time per packet, its sending and its fate, ns; median.
    pub(crate) ns: f64,
    /// Median of the ratios to `signal` of neighbouring rounds.
    pub(crate) to_signal: f64,
    /// Median of the differences to them, ns.
    pub(crate) own_ns: f64,
    /// The share of that of a core ten times slower than this one at 100 Mbit/s.
    pub(crate) old_core: f64,
}

const MSS: Bytes = Bytes(1448);
/// 100 Mbit/s in packets of 1500 bytes.
const STEP: Span = Span::ns(120_000);
const RTT: Span = Span::ms(40);
/// How much slower an old router's core is.
const SLOWER: f64 = 10.0;

/// Measures all detectors.
pub(crate) fn measure(options: &Options) -> Vec<Measured> {
    let packets = 2_000_000 / options.divisor;
    let Some(signal) = DetectorConfig::named("signal") else { return Vec::new() };
    let mut measured = Vec::new();
    for config in DetectorConfig::NAMES.iter().filter_map(|name| DetectorConfig::named(name)) {
        let (mut ns, mut ratios, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let (this, reference) = (drive(&config, packets), drive(&signal, packets));
            ns.push(this);
            ratios.push(this / reference);
            own.push(this - reference);
        }
        let (ns, own_ns) = (median(ns), median(own).max(0.0));
        let old_core = own_ns * SLOWER / STEP.as_ns() as f64;
        measured.push(Measured { detector: config.name().to_owned(), ns, to_signal: median(ratios), own_ns, old_core });
    }
    measured
}

/// Plays packets to a detector. A ramp that is over begins anew, so that measuring is measured.
fn drive(config: &DetectorConfig, packets: u64) -> f64 {
    let path = PathHint { mss: MSS, initial_window: MSS * 10, rtt: Some(RTT), paced: true, resume: None };
    let mut now = Time::ZERO;
    let mut rng = Rng::stream(1, "detectors");
    let mut detector = config.build(&path, now, Rng::stream(1, "detector"));
    let mut underway: VecDeque<(Time, u8)> = VecDeque::with_capacity(1024);
    let mut second = 0.0;
    detector.on_control(Control::SlowStart(false), now);
    let (_, took) = timed(|| {
        for _ in 0..packets {
            now += STEP;
            while detector.next_timer().is_some_and(|at| at <= now) {
                detector.on_timer(now);
            }
            second += detector.split().shares[1];
            let subflow = u8::from(second >= 1.0);
            second -= f64::from(subflow);
            let inflight = MSS * (underway.len() as u64 + 1);
            detector.on_sent(&Sent {
                now,
                bytes: MSS,
                inflight,
                retransmit: false,
                idle: None,
                app_limited: false,
                subflow,
            });
            underway.push_back((now, subflow));
            // Now and then a few wait for the next one.
            while underway.front().is_some_and(|&(sent, _)| now.since(sent) >= RTT) && rng.below(8) > 0 {
                let Some((sent, subflow)) = underway.pop_front() else { break };
                let outcome = PacketOutcome::Delivered { rtt: Some(now.since(sent)) };
                let flight = Flight { inflight, ..Flight::default() };
                detector.on_packet_feedback(&PacketFeedback { now, sent, bytes: MSS, subflow, flight, outcome });
            }
            if detector.verdict().decisions > 0 && detector.next_timer().is_none() && config.name() != "signal" {
                detector = config.build(&path, now, Rng::stream(1, "detector"));
            }
        }
    });
    took.as_secs_f64() * 1e9 / packets as f64
}
