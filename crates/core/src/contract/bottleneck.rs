//! A sender behind a bottleneck: the load that it offers is bounded by what gets through, whatever its parameters are.
//!
//! The path is one link with a tail-drop buffer and random losses, and everything that happens on it reaches the controller
//! one round trip after it was sent. In each round trip a sender may offer [`MAX`] times the sum of what the link can carry in
//! it, what the buffer can hold, and an initial window. Slow start offers twice what is delivered; detection at start-up
//! raises its rate several times before the first feedback, and offers up to ten times as much for a moment. A controller whose rate
//! grows without bound breaks this law, such as one that ignores losses.
use super::params::ensure;
use crate::congestion::open::ControllerTraits;
use crate::congestion::{
    Ack, Controller, ControllerConfig, Flight, Loss, LossKind, PacketFeedback, PacketOutcome, PathHint, Phase,
    RateSample, Sent,
};
use crate::{Bytes, Rate, Rng, Span, Time};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

/// Largest offered load, as a multiple of what the bottleneck can take.
const MAX: u64 = 16;
const MSS: Bytes = Bytes(1448);
const INITIAL_WINDOW: u64 = 10;
/// Length of a run, round trips.
const ROUND_TRIPS: u64 = 1000;

/// A path.
#[derive(Clone, Copy, Debug)]
struct Path {
    line: Rate,
    rtt: Span,
    /// Packets that wait, besides the one on the wire.
    buffer: u64,
    loss: f64,
}

/// A packet in flight, and its fate.
struct Packet {
    seq: u64,
    sent: Time,
    /// Time at which the sender learns of it.
    heard: Time,
    arrives: bool,
    subflow: u8,
    inflight: Bytes,
    delivered: Bytes,
    lost: Bytes,
}

struct Sender {
    traits: ControllerTraits,
    controller: Controller,
    path: Path,
    rng: Rng,
    now: Time,
    /// Time at which the link will have sent its backlog.
    free: Time,
    /// When pacing lets the next packet go.
    gate: Time,
    in_flight: VecDeque<Packet>,
    next: u64,
    delivered: Bytes,
    lost: Bytes,
    /// Lost since the last acknowledgment.
    untold: Bytes,
    srtt: Span,
    min_rtt: Span,
    /// The episode of loss ends when this is acknowledged.
    episode: Option<u64>,
    heard: Time,
}

/// Sends through bottlenecks with a buffer of any length, with and without losses.
pub(super) fn check_offered(config: &ControllerConfig) -> Result<(), String> {
    for buffer in [0, 40] {
        for loss in [0.0, 0.3] {
            let path = Path { line: Rate::mbit(10), rtt: Span::ms(20), buffer, loss };
            Sender::new(config, path).live().map_err(|law| format!("{law}; over {path:?} with {config}"))?;
        }
    }
    Ok(())
}

impl Sender {
    fn new(config: &ControllerConfig, path: Path) -> Sender {
        let now = Time::ZERO + path.rtt;
        let hint = PathHint {
            mss: MSS,
            initial_window: MSS * INITIAL_WINDOW,
            rtt: Some(path.rtt),
            paced: false,
            resume: None,
        };
        Sender {
            traits: config.traits(),
            controller: config.build(&hint, now, Rng::stream(3, "bottleneck.controller")),
            path,
            rng: Rng::stream(3, "bottleneck.path"),
            now,
            free: now,
            gate: now,
            in_flight: VecDeque::new(),
            next: 0,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            untold: Bytes::ZERO,
            srtt: path.rtt,
            min_rtt: path.rtt,
            episode: None,
            heard: now,
        }
    }

    fn on_wire(&self) -> Span {
        self.path.line.tx_time(MSS).unwrap_or(Span::ZERO)
    }

    /// Sends for several round trips, and checks the load offered in each.
    fn live(mut self) -> Result<(), String> {
        // With a full buffer a round trip takes longer.
        let round = self.path.rtt + self.on_wire() * (self.path.buffer + 1);
        let takes = self.path.line.bytes_in(round).0.div_ceil(MSS.0) + self.path.buffer + 1;
        let most = MAX * (takes + INITIAL_WINDOW);
        for n in 0..ROUND_TRIPS {
            let (end, before) = (self.now + round, self.next);
            while self.now < end {
                self.step(end);
                let offered = self.next - before;
                ensure(offered <= most, || {
                    format!("offers more than {most} packets in round trip {n}, of which the path takes {takes}")
                })?;
            }
        }
        Ok(())
    }

    /// The next event, if it is before `end`.
    fn step(&mut self, end: Time) {
        let plan = self.controller.send_limits();
        let opens = (self.in_flight.len() as u64 * MSS.0 < plan.cwnd.0).then_some(self.gate.max(self.now));
        let hears = self.in_flight.front().map(|packet| packet.heard);
        let fires = self.controller.next_timer().map(|at| at.max(self.now));
        let expires = (!self.in_flight.is_empty()).then_some(self.heard + Span::s(1));
        let next = [opens, hears, fires, expires].into_iter().flatten().min().unwrap_or(end);
        self.now = next.min(end);
        if self.now == end && next > end {
            return;
        }
        if hears == Some(next) {
            self.hear();
        } else if fires == Some(next) {
            self.controller.on_timer(next);
            // A controller that asks for the same time again breaks another law.
            self.now += Span::ns(1);
        } else if opens == Some(next) {
            self.send();
        } else {
            self.expire();
        }
    }

    fn send(&mut self) {
        let wait = self.free.max(self.now).since(self.now);
        let waiting = wait.as_ns() / self.on_wire().as_ns();
        let arrives = waiting <= self.path.buffer && !self.rng.chance(self.path.loss);
        if arrives {
            self.free = self.free.max(self.now) + self.on_wire();
        }
        let seq = self.next;
        self.next += 1;
        let subflow = if self.traits.splits { (seq % 2) as u8 } else { 0 };
        let inflight = MSS * (self.in_flight.len() as u64 + 1);
        self.in_flight.push_back(Packet {
            seq,
            sent: self.now,
            heard: self.free.max(self.now) + self.path.rtt,
            arrives,
            subflow,
            inflight,
            delivered: self.delivered,
            lost: self.lost,
        });
        self.controller.on_sent(&Sent {
            now: self.now,
            bytes: MSS,
            inflight,
            retransmit: self.episode.is_some(),
            idle: None,
            app_limited: false,
            subflow,
        });
        if let Some(gap) = self.controller.send_limits().pacing.and_then(|rate| rate.tx_time(MSS)) {
            self.gate = self.gate.max(self.now) + gap;
        }
    }

    /// What became of the oldest packet.
    fn hear(&mut self) {
        let prior = MSS * self.in_flight.len() as u64;
        let Some(packet) = self.in_flight.pop_front() else { return };
        self.heard = self.now;
        let rtt = self.now.since(packet.sent);
        if !packet.arrives {
            self.lost += MSS;
            self.untold += MSS;
        }
        let outcome = if packet.arrives { PacketOutcome::Delivered { rtt: Some(rtt) } } else { PacketOutcome::Lost };
        if self.traits.packet_feedback {
            let flight = Flight { inflight: packet.inflight, lost: self.lost - packet.lost, app_limited: false };
            let Packet { sent, subflow, .. } = packet;
            self.controller.on_packet_feedback(&PacketFeedback {
                now: self.now,
                sent,
                bytes: MSS,
                subflow,
                flight,
                outcome,
            });
        }
        match packet.arrives {
            true => self.acknowledge(&packet, rtt, prior),
            false if self.episode.is_none() => {
                self.episode = Some(self.next);
                self.controller.on_loss(&self.loss(LossKind::Loss));
            }
            false => {}
        }
    }

    fn acknowledge(&mut self, packet: &Packet, rtt: Span, prior: Bytes) {
        let in_reduction = self.episode.is_some();
        if self.episode.is_some_and(|end| packet.seq + 1 >= end) {
            self.episode = None;
        }
        self.delivered += MSS;
        self.srtt = (self.srtt * 7 + rtt) / 8;
        self.min_rtt = self.min_rtt.min(rtt);
        let inflight = MSS * self.in_flight.len() as u64;
        let event = Ack {
            now: self.now,
            acked: MSS,
            lost: core::mem::take(&mut self.untold),
            marked: 0,
            total_lost: self.lost,
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            prior_inflight: prior,
            inflight,
            una: MSS * (packet.seq + 1),
            nxt: MSS * self.next,
            delivered: self.delivered,
            in_reduction,
            phase: if self.episode.is_some() { Phase::Recovery } else { Phase::Open },
            edt: self.gate.max(self.now),
            may_raise: true,
            cwnd_limited: prior + MSS > self.controller.send_limits().cwnd,
            rate: RateSample {
                delivered: self.delivered - packet.delivered,
                interval: rtt,
                prior_delivered: packet.delivered,
                prior_inflight: packet.inflight,
                lost: self.lost - packet.lost,
                app_limited: false,
            },
        };
        self.controller.on_ack(&event);
    }

    /// Nothing was heard for a second.
    fn expire(&mut self) {
        self.heard = self.now;
        self.controller.on_loss(&self.loss(LossKind::Timeout));
    }

    fn loss(&self, kind: LossKind) -> Loss {
        Loss {
            now: self.now,
            kind,
            lost: MSS,
            total_lost: self.lost,
            inflight: MSS * self.in_flight.len() as u64,
            nxt: MSS * self.next,
            first: true,
        }
    }
}
