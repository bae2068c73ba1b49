//! The application on the sending host: decides when it hands data to the transport, and how much.
use narrows_core::rate::TxClock;
use narrows_core::{Rate, Rng, Span, Time};
use narrows_scenario::Traffic;

/// An application and its state.
#[derive(Clone, Debug)]
pub struct Application {
    kind: ApplicationKind,
    rng: Rng,
}

#[derive(Clone, Debug)]
enum ApplicationKind {
    Bulk,
    Finite { size: u64 },
    Cbr { rate: Rate, packet: u32, clock: TxClock },
    Poisson { mean: Span, packet: u32 },
    Thin { size: u32, interval: Span, jitter: f64 },
    OnOff { on: Span, off: Span, rate: Rate, packet: u32, clock: TxClock, until: Option<Time> },
    Web { size: f64, shape: f64, think: Span },
    Video { interval: Span },
}

/// What an application does when it acts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Act {
    /// Hands over data without end.
    Endless,
    /// Hands over a transfer whose completion is awaited, payload bytes.
    Transfer(u64),
    /// Sends a message of this payload.
    Message(u32),
    /// Sends a packet of this length at the IP layer.
    Packet(u32),
    /// Captures a picture for its encoder.
    Frame,
    /// Nothing yet.
    Pause,
}

impl Application {
    /// An application of this kind at its start.
    pub fn new(traffic: &Traffic, rng: Rng) -> Application {
        let kind = match traffic {
            Traffic::Bulk(_) => ApplicationKind::Bulk,
            Traffic::Finite(p) => ApplicationKind::Finite { size: p.size.0 },
            Traffic::Cbr(p) => {
                ApplicationKind::Cbr { rate: p.rate, packet: p.packet.0 as u32, clock: TxClock::default() }
            }
            Traffic::Poisson(p) => ApplicationKind::Poisson {
                mean: p.rate.tx_time(p.packet).unwrap_or(Span::s(1)),
                packet: p.packet.0 as u32,
            },
            Traffic::Thin(p) => ApplicationKind::Thin { size: p.size.0 as u32, interval: p.interval, jitter: p.jitter },
            Traffic::OnOff(p) => ApplicationKind::OnOff {
                on: p.on,
                off: p.off,
                rate: p.rate,
                packet: p.packet.0 as u32,
                clock: TxClock::default(),
                until: None,
            },
            Traffic::Web(p) => ApplicationKind::Web { size: p.size.0 as f64, shape: p.shape, think: p.think },
            Traffic::Video(p) => ApplicationKind::Video { interval: Span::from_secs_f64(1.0 / p.fps) },
        };
        Application { kind, rng }
    }

    /// Acts now. Also returns the time of the application's next action, if it has planned one.
    pub fn act(&mut self, now: Time) -> (Act, Option<Time>) {
        let rng = &mut self.rng;
        match &mut self.kind {
            ApplicationKind::Bulk => (Act::Endless, None),
            ApplicationKind::Finite { size } => (Act::Transfer(*size), None),
            ApplicationKind::Cbr { rate, packet, clock } => {
                (Act::Packet(*packet), Some(now + clock.advance(*rate, *packet).max(Span::ns(1))))
            }
            ApplicationKind::Poisson { mean, packet } => (Act::Packet(*packet), Some(now + exponential(*mean, rng))),
            ApplicationKind::Thin { size, interval, jitter } => {
                let factor = 1.0 + *jitter * (2.0 * rng.unit() - 1.0);
                let gap = Span::from_secs_f64(interval.as_secs_f64() * factor);
                (Act::Message(*size), Some(now + gap.max(Span::ns(1))))
            }
            ApplicationKind::OnOff { on, off, rate, packet, clock, until } => {
                let end = *until.get_or_insert_with(|| now + exponential(*on, rng));
                if now >= end {
                    *until = None;
                    return (Act::Pause, Some(now + exponential(*off, rng)));
                }
                (Act::Packet(*packet), Some(now + clock.advance(*rate, *packet).max(Span::ns(1))))
            }
            ApplicationKind::Video { interval } => (Act::Frame, Some(now + *interval)),
            ApplicationKind::Web { size, shape, .. } => (Act::Transfer(pareto(*size, *shape, rng)), None),
        }
    }

    /// Called when a transfer is complete. Returns the time at which the next one begins.
    pub fn on_complete(&mut self, now: Time) -> Option<Time> {
        match &self.kind {
            ApplicationKind::Web { think, .. } => Some(now + exponential(*think, &mut self.rng)),
            _ => None,
        }
    }
}

fn exponential(mean: Span, rng: &mut Rng) -> Span {
    Span::from_secs_f64(mean.as_secs_f64() * rng.exponential()).max(Span::ns(1))
}

/// Pareto with this mean: scale = mean · (shape − 1) / shape.
fn pareto(mean: f64, shape: f64, rng: &mut Rng) -> u64 {
    let scale = mean * (shape - 1.0) / shape;
    // (1 − u)^(−1/shape) = e^(x/shape) with x exponential.
    let size = scale * libm::exp(rng.exponential() / shape);
    (size as u64).clamp(1, 1 << 40)
}
