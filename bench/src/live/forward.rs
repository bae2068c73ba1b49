//! The throughput without a rate limit: one TCP flow between two namespaces, with different ways of carrying its packets. These
//! take turns, so that other load on the machine affects all of them.
use super::endpoints::{self, Arrived, Window};
use super::ours::{self, Bottleneck};
use super::{loops, veth};
use crate::{Options, median};
use narrows_core::Span;
use serde::Serialize;

/// A way of carrying packets.
#[derive(Clone, Copy, Debug)]
enum Carrier {
    Ours {
        queue: &'static str,
        whole: bool,
        join: bool,
    },
    /// A bare loop over TUN devices.
    Tun {
        offload: bool,
    },
    /// A bare loop over packet sockets.
    PacketSocket {
        whole: bool,
    },
    /// The kernel alone: a veth pair.
    Veth {
        whole: bool,
        htb: bool,
    },
}

/// Names, carriers, and the aim in Gbit per CPU second of the carrying threads.
const CARRIERS: &[(&str, Carrier, Option<f64>)] = &[
    ("ours, fq_codel, packets single", Carrier::Ours { queue: "fq_codel", whole: false, join: true }, Some(2.0)),
    ("ours, fifo, packets single", Carrier::Ours { queue: "fifo", whole: false, join: true }, Some(2.0)),
    ("ours, fq_codel, single, written singly", Carrier::Ours { queue: "fq_codel", whole: false, join: false }, None),
    ("ours, fq_codel, super-packets whole", Carrier::Ours { queue: "fq_codel", whole: true, join: true }, Some(8.0)),
    ("ours, fifo, super-packets whole", Carrier::Ours { queue: "fifo", whole: true, join: true }, Some(8.0)),
    ("bare TUN loop, super-packets", Carrier::Tun { offload: true }, None),
    ("bare TUN loop, packet by packet", Carrier::Tun { offload: false }, None),
    ("bare packet-socket loop, super-packets", Carrier::PacketSocket { whole: true }, None),
    ("bare packet-socket loop, packet by packet", Carrier::PacketSocket { whole: false }, None),
    ("veth pair, super-packets", Carrier::Veth { whole: true, htb: false }, None),
    ("veth pair, packet by packet", Carrier::Veth { whole: false, htb: false }, None),
    ("veth, htb + pfifo, super-packets", Carrier::Veth { whole: true, htb: true }, None),
    ("veth, htb + pfifo, packet by packet", Carrier::Veth { whole: false, htb: true }, None),
];

/// The carrier to which ratios refer.
const REFERENCE: &str = "bare TUN loop, super-packets";

/// The figures of a carrier: medians over the rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// Payload, Gbit/s.
    pub(crate) goodput_gbit: f64,
    /// CPU time of the threads that carry packets ÷ time; `None` if the kernel carries them.
    pub(crate) cores: Option<f64>,
    /// Payload per CPU second of these threads, Gbit.
    pub(crate) gbit_per_cpu_s: Option<f64>,
    /// CPU time of everything, including both ends, ÷ time.
    pub(crate) all_cores: f64,
    /// Payload per CPU second of everything, Gbit.
    pub(crate) gbit_per_all_cpu_s: f64,
    /// Ratio of that to the bare TUN loop's in the same round.
    pub(crate) of_reference: f64,
    /// Minimum Gbit per CPU second of the threads that carry packets.
    pub(crate) aim: Option<f64>,
}

/// A round of one carrier.
#[derive(Clone, Copy)]
struct Turn {
    arrived: Arrived,
    took: Option<Span>,
}

impl Turn {
    fn gbit(&self) -> f64 {
        8.0 * self.arrived.bytes as f64 / 1e9
    }

    fn per_all(&self) -> f64 {
        self.gbit() / self.arrived.process.as_secs_f64().max(1e-9)
    }
}

/// Measures all carriers, which take turns.
pub(crate) fn measure(options: &Options, missing: &mut Vec<String>) -> Vec<Measured> {
    let length = if options.divisor > 1 { Span::ms(500) } else { Span::s(3) };
    let mut turns: Vec<Vec<Turn>> = CARRIERS.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.rounds {
        for (&(name, carrier, _), turns) in CARRIERS.iter().zip(&mut turns) {
            match turn(carrier, length) {
                Ok(turn) => turns.push(turn),
                Err(why) => missing.push(format!("{name}: {why}")),
            }
        }
    }
    let reference = CARRIERS.iter().position(|&(name, ..)| name == REFERENCE).map(|n| turns[n].clone());
    let reference = reference.unwrap_or_default();
    let rows = CARRIERS.iter().zip(&turns).filter(|(_, turns)| !turns.is_empty());
    rows.map(|(&(name, _, aim), turns)| row(name, aim, turns, &reference)).collect()
}

fn row(name: &'static str, aim: Option<f64>, turns: &[Turn], reference: &[Turn]) -> Measured {
    let of = |figure: &dyn Fn(&Turn) -> f64| median(turns.iter().map(figure).collect());
    let ours = |figure: &dyn Fn(&Turn, f64) -> f64| {
        let known: Option<Vec<f64>> =
            turns.iter().map(|turn| Some(figure(turn, turn.took?.as_secs_f64().max(1e-9)))).collect();
        known.map(median)
    };
    let ratios = turns.iter().zip(reference).map(|(turn, reference)| turn.per_all() / reference.per_all());
    Measured {
        name,
        goodput_gbit: of(&|turn| turn.arrived.mbit() / 1e3),
        cores: ours(&|turn, took| took / turn.arrived.time.as_secs_f64()),
        gbit_per_cpu_s: ours(&|turn, took| turn.gbit() / took),
        all_cores: of(&|turn| turn.arrived.process.as_secs_f64() / turn.arrived.time.as_secs_f64()),
        gbit_per_all_cpu_s: of(&Turn::per_all),
        of_reference: median(ratios.collect()),
        aim,
    }
}

fn turn(carrier: Carrier, length: Span) -> Result<Turn, String> {
    let window = || Window::new(Span::ms(500), length);
    match carrier {
        Carrier::Ours { queue, whole, join } => {
            let bottleneck = Bottleneck { rate: "100gbit", queue, rtt: Span::ZERO, whole, join };
            let window = window();
            let carried = ours::carry(bottleneck, window, |sides| endpoints::tcp(sides, window))?;
            Ok(Turn { arrived: carried.result, took: Some(carried.cpu()) })
        }
        Carrier::Tun { offload } => {
            let window = window();
            let (arrived, took) = loops::tun(offload, window, |sides| endpoints::tcp(sides, window))?;
            Ok(Turn { arrived, took: Some(took) })
        }
        Carrier::PacketSocket { whole } => {
            let window = window();
            let (arrived, took) = loops::packet_sockets(whole, window, |sides| endpoints::tcp(sides, window))?;
            Ok(Turn { arrived, took: Some(took) })
        }
        Carrier::Veth { whole, htb } => {
            let sides = ours::sides()?;
            veth::joined(&sides, whole, htb.then_some("100gbit"))?;
            Ok(Turn { arrived: endpoints::tcp(&sides, window())?, took: None })
        }
    }
}
