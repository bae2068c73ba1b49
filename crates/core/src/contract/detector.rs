//! The laws of fair-queuing detectors.
//!
//! A byte string is read as the events of a connection over two subflows, legal or not: packets are sent and lost, acknowledged
//! late, twice or never; timers come late. Whatever happens:
//!
//! - the same events give the same verdicts, splits and timers
//! - shares are between 0 and 1 and add up to 1; a rate that it sets is not zero; a confidence is between 0 and 1
//! - a timer that is asked for lies ahead once it has been served
//! - without a delivered packet it stays undecided
//! - its memory is bounded: it is a value without a heap
use super::params::{self, ensure};
use crate::detector::{DetectorConfig, FairQueuingDetector, Finding};
use crate::hint::PathHint;
use crate::packet_feedback::{Flight, PacketFeedback, PacketOutcome, Sent};
use crate::registry::Registered;
use crate::{Bytes, Rate, Rng, Span, Time};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Payload of a packet here.
const MSS: Bytes = Bytes(1000);
/// Largest detector, bytes: it lives in its connection.
const LARGEST: usize = 8 * 1024;

/// Plays a script against a detector with its defaults.
pub fn check_run<D: FairQueuingDetector>(script: &[u8]) -> Result<(), String> {
    let mut bytes = script.iter().copied();
    let mut model = Model::<D>::new(bytes.next().unwrap_or(0));
    let mut step = 0;
    while let Some(op) = bytes.next() {
        let amount = u64::from(bytes.next().unwrap_or(1));
        model.play(op, amount).map_err(|law| format!("step {step} ({op}, {amount}): {law}"))?;
        step += 1;
    }
    Ok(())
}

/// Plays a script against any registered detector with its defaults; the first byte chooses it.
pub fn check_any(script: &[u8]) -> Result<(), String> {
    let (&choice, script) = script.split_first().unwrap_or((&0, &[]));
    let names = DetectorConfig::NAMES;
    let name = names[usize::from(choice) % names.len()];
    crate::detector::check_named(name, script).map_err(|law| format!("{name}: {law}"))
}

/// Parameters: the defaults are valid and survive being written and read; absurd values are refused. The detector is small.
pub fn check_parameters<D: FairQueuingDetector>() -> Result<(), String> {
    params::check(&D::Params::default(), |params| params)?;
    ensure(size_of::<D>() <= LARGEST, || format!("a detector of {} bytes", size_of::<D>()))
}

struct Model<D> {
    subject: D,
    twin: D,
    now: Time,
    /// Sent and not accounted for: when, and over which subflow.
    underway: Vec<(Time, u8)>,
    delivered: bool,
    /// The packet whose fate was reported last.
    told: Option<(Time, u8)>,
}

impl<D: FairQueuingDetector> Model<D> {
    fn new(kind: u8) -> Model<D> {
        let rtt = (kind & 1 > 0).then_some(Span::ms(20));
        let path = PathHint { mss: MSS, initial_window: MSS * 10, rtt, paced: true, resume: None };
        let now = Time::from_ns(u64::from(kind) << 24);
        let params = D::Params::default();
        let make = || D::new(&params, &path, now, Rng::stream(7, "contract"));
        Model { subject: make(), twin: make(), now, underway: Vec::new(), delivered: false, told: None }
    }

    fn play(&mut self, op: u8, amount: u64) -> Result<(), String> {
        match op % 8 {
            0 | 1 => self.send(1 + amount % 32, op)?,
            2 | 3 => self.resolve(1 + amount % 32, op, PacketOutcome::Delivered { rtt: None })?,
            4 => self.resolve(1 + amount % 4, op, PacketOutcome::Lost)?,
            5 => self.now += Span::us(200 * amount),
            6 => self.now += Span::ms(5 * amount),
            _ => {
                // A report that no transport should make: about a packet sent long ago, or reported before.
                let outcome = if op & 32 > 0 { PacketOutcome::Delivered { rtt: None } } else { PacketOutcome::Lost };
                let long_ago = (Time::from_ns(self.now.as_ns() / (1 + amount)), op >> 7);
                let (sent, subflow) = if op & 16 > 0 { self.told.unwrap_or(long_ago) } else { long_ago };
                self.delivered |= outcome != PacketOutcome::Lost;
                self.tell(sent, subflow, outcome)?;
            }
        }
        for _ in 0..4 {
            if self.subject.next_timer().is_none_or(|at| at > self.now) {
                break;
            }
            let now = self.now;
            self.both(|d| d.on_timer(now))?;
        }
        ensure(self.subject.next_timer().is_none_or(|at| at > self.now), || "a timer that is not served".into())
    }

    fn both(&mut self, act: impl Fn(&mut D)) -> Result<(), String> {
        act(&mut self.subject);
        act(&mut self.twin);
        let (verdict, split) = (self.subject.verdict(), self.subject.split());
        ensure(verdict == self.twin.verdict(), || "the same events give other verdicts".into())?;
        ensure(split == self.twin.split(), || "the same events give other splits".into())?;
        ensure(self.subject.next_timer() == self.twin.next_timer(), || "the same events give other timers".into())?;
        ensure(self.subject.inflight_limit() == self.twin.inflight_limit(), || {
            "the same events give other limits".into()
        })?;
        ensure((0.0..=1.0).contains(&verdict.confidence), || format!("a confidence of {}", verdict.confidence))?;
        let [first, second] = split.shares;
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        ensure(is_share(first) && is_share(second) && (first + second - 1.0).abs() < 1e-9, || {
            format!("shares of {first} and {second}")
        })?;
        ensure((0.0..=1.0).contains(&split.jitter), || format!("a jitter of {}", split.jitter))?;
        ensure(self.subject.sets_rate().is_none_or(|rate| rate > Rate::ZERO), || "drives at a rate of zero".into())?;
        ensure(self.delivered || verdict.finding == Finding::Undecided, || "a verdict from silence".into())
    }

    fn send(&mut self, packets: u64, op: u8) -> Result<(), String> {
        for n in 0..packets {
            let subflow = if op & 16 > 0 { (n % 2) as u8 } else { op >> 7 };
            let inflight = MSS * (self.underway.len() as u64 + 1);
            let app_limited = op & 32 > 0;
            let now = self.now;
            let sent = Sent { now, bytes: MSS, inflight, retransmit: false, idle: None, app_limited, subflow };
            self.underway.push((now, subflow));
            self.both(|d| d.on_sent(&sent))?;
        }
        Ok(())
    }

    fn resolve(&mut self, packets: u64, op: u8, outcome: PacketOutcome) -> Result<(), String> {
        for n in 0..packets {
            if self.underway.is_empty() {
                break;
            }
            // The oldest, or any other one.
            let which = if op & 64 > 0 { n as usize * 7 % self.underway.len() } else { 0 };
            let (sent, subflow) = self.underway.remove(which);
            let outcome = match outcome {
                PacketOutcome::Delivered { .. } => {
                    self.delivered = true;
                    PacketOutcome::Delivered { rtt: (op & 32 == 0).then(|| self.now.since(sent)) }
                }
                PacketOutcome::Lost => PacketOutcome::Lost,
            };
            self.tell(sent, subflow, outcome)?;
        }
        Ok(())
    }

    fn tell(&mut self, sent: Time, subflow: u8, outcome: PacketOutcome) -> Result<(), String> {
        self.told = Some((sent, subflow));
        let fate = PacketFeedback { now: self.now, sent, bytes: MSS, subflow, flight: Flight::default(), outcome };
        self.both(|d| d.on_packet_feedback(&fate))
    }
}
