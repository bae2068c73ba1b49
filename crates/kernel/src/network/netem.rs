//! What is behind a hop's link, and the policer in front of its queue, as `tc` spells them.
use super::shaper::{AT_ONCE, beyond_ethernet};
use super::{MTU, NETEM_LIMIT, rate};
use narrows_core::framing::Atm;
use narrows_core::netem::{Chance, Loss, Reorder};
use narrows_core::params::ParamValue as _;
use narrows_core::policer::{Exceed, Police};
use narrows_core::propagation::Distribution;
use narrows_core::{Bytes, Span, Time};
use narrows_scenario::{FileContent, Hop, Release};
use std::fmt::Write as _;

/// The rate of the `netem` that stands for a wire is higher than `htb`'s by this, per mille. After idling `htb` may send two packets back to back. If both had
/// the same rate, one of them would wait in `netem` until the link idles again, and every packet would take a packet's time too long.
const WIRE_FASTER: u64 = 10;
/// A rate that delays nothing, for its side effect: with a rate `netem` lets no packet overtake another.
const ORDERED: &str = "1000gbit";

/// The `netem`s behind a hop: of a wire by itself, and of everything else. One that is needed only later is there from the start.
pub(super) struct Netems<'a> {
    hop: &'a Hop,
    /// The name of the table of its delays, if it has one.
    table: String,
    devices: [Option<String>; 2],
}

impl<'a> Netems<'a> {
    pub(super) fn of(hop: &'a Hop, device: &str) -> Netems<'a> {
        let used = |words: fn(&Hop, Time, &str) -> Option<String>, name: String| {
            super::steps(hop).into_iter().any(|at| words(hop, at, device).is_some()).then_some(name)
        };
        let devices = [used(wire_alone, format!("{device}w")), used(words, super::delay_of(device))];
        Netems { hop, table: device.to_owned(), devices }
    }

    /// The table that `tc` has to find: its name, and its text.
    pub(super) fn table(&self) -> Option<(String, String)> {
        match &self.hop.distribution {
            Distribution::Table(table) => Some((self.table.clone(), FileContent::Delays(&table.entries).text())),
            Distribution::Named(_) => None,
        }
    }

    /// The device of each, and the command that adds or changes it as it is at a time.
    pub(super) fn lines(&self, verb: &str, at: Time) -> impl Iterator<Item = (String, String)> {
        let all = [wire_alone, words].into_iter().zip(&self.devices);
        all.filter_map(move |(words, device)| {
            let (device, words) = (device.as_ref()?, words(self.hop, at, &self.table));
            let words = words.unwrap_or_else(|| format!("limit {NETEM_LIMIT} delay 0us rate {ORDERED}"));
            Some((device.clone(), format!("qdisc {verb} dev {device} root handle 1: netem {words}\n")))
        })
    }
}

/// What `netem` does behind a hop; `None` if nothing.
fn words(hop: &Hop, at: Time, table: &str) -> Option<String> {
    let delay = hop.delay.0.iter().take_while(|&&(from, _)| from <= at).last().map_or(Span::ZERO, |&(_, delay)| delay);
    // A wire in front of packets that overtake each other is a netem of its own.
    let wire = wire(hop, at).filter(|_| !hop.reorders());
    let effects = effects(hop);
    if delay == Span::ZERO && hop.jitter == Span::ZERO && effects.is_empty() && wire.is_none() {
        return None;
    }
    let limit = hop.delay_limit.map_or(NETEM_LIMIT, |limit| limit.0);
    let mut words = format!("limit {limit} delay {}", us(delay));
    if hop.jitter > Span::ZERO {
        let _ = write!(words, " {}", us(hop.jitter));
        match &hop.distribution {
            uniform if uniform.is_uniform() => {}
            Distribution::Named(named) => {
                let _ = write!(words, " distribution {}", named.show());
            }
            Distribution::Table(_) => {
                let _ = write!(words, " distribution {table}");
            }
        }
    }
    match wire {
        Some(wire) => words += &wire,
        None if hop.reorders() => {}
        None => {
            let _ = write!(words, " rate {ORDERED}");
        }
    }
    Some(words + &effects)
}

/// The `netem` of a wire whose packets overtake each other behind it; `None` for other hops.
fn wire_alone(hop: &Hop, at: Time, _: &str) -> Option<String> {
    let wire = wire(hop, at).filter(|_| hop.reorders())?;
    Some(format!("limit {NETEM_LIMIT} delay 0us{wire}"))
}

/// The time that a packet's bits take on a wire; `None` if they take none, or if a shaper sends the packet.
fn wire(hop: &Hop, at: Time) -> Option<String> {
    let takes_time = rate(hop, at).tx_time(Bytes(MTU)).is_none_or(|time| time >= AT_ONCE);
    if hop.release != Release::End || !takes_time {
        return None;
    }
    let rate = rate(hop, at).as_bps();
    // A short packet is early by what `mpu` adds to it: netem has no such word. The shaper has spaced it by then.
    let cells = if hop.atm == Atm::Atm { " 48 5" } else { "" };
    Some(format!(" rate {}bit {}{cells}", rate.saturating_add(rate / 1000 * WIRE_FASTER), beyond_ethernet(hop)))
}

fn effects(hop: &Hop) -> String {
    let mut words = match &hop.loss {
        loss if loss.is_none() => String::new(),
        // `check` refuses it.
        Loss::Trace(_) => String::new(),
        Loss::Random(chance) => format!(" loss random {}", percent(chance)),
        Loss::Gemodel { p, r, bad, good } => {
            format!(" loss gemodel {}% {}% {}% {}%", p * 100.0, r * 100.0, bad * 100.0, good * 100.0)
        }
    };
    for (word, chance) in [("duplicate", &hop.duplicate), ("corrupt", &hop.corrupt)] {
        if let Some(chance) = chance {
            let _ = write!(words, " {word} {}", percent(chance));
        }
    }
    if let Some(Reorder { chance, gap }) = &hop.reorder {
        let _ = write!(words, " reorder {} gap {gap}", percent(chance));
    }
    words
}

fn percent(chance: &Chance) -> String {
    let share = format!("{}%", chance.share * 100.0);
    if chance.correlation > 0.0 { format!("{share} {}%", chance.correlation * 100.0) } else { share }
}

/// A time as `tc` reads it.
pub(super) fn us(span: Span) -> String {
    format!("{}us", span.as_ns() / 1000)
}

/// A policer at the end of a pair in which packets come out. There Linux counts a packet from its IP header on.
pub(super) fn policer(pair: &str, hop: &Hop, police: &Police) -> String {
    let device = super::out_of(pair);
    let (rate, burst) = (police.rate.as_bps(), police.burst.0);
    let framing = match (hop.overhead.0, hop.mpu.0, hop.atm) {
        (0, 0, Atm::Noatm) => String::new(),
        (overhead, mpu, atm) => {
            let layer = if atm == Atm::Atm { "atm" } else { "ethernet" };
            format!(" mpu {mpu} overhead {overhead} linklayer {layer}")
        }
    };
    let exceed = match police.exceed {
        Exceed::Drop => "drop",
        Exceed::Mark => "continue",
    };
    let filter = format!("filter add dev {device} ingress protocol");
    let mut lines = format!(
        "qdisc add dev {device} clsact\n\
         {filter} all pref 1 matchall \
         action police rate {rate}bit burst {burst}b mtu 64kb{framing} conform-exceed {exceed}/ok\n"
    );
    if police.exceed == Exceed::Mark {
        // What exceeds the rate goes on to these: either bit of the field says that a transport supports ECN.
        for (version, bit) in [("ip", 1), ("ip", 2), ("ipv6", 1), ("ipv6", 2)] {
            let pref = if version == "ip" { 1 + bit } else { 3 + bit };
            let _ = writeln!(
                lines,
                "{filter} {version} pref {pref} flower ip_tos {bit}/{bit} action skbmod ecn pipe action pass"
            );
        }
        let _ = writeln!(lines, "{filter} all pref 6 matchall action drop");
    }
    lines
}
