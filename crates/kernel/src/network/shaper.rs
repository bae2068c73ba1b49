//! A hop's shaper: `htb` with a class for the link, and below it the hop's queue or the tree of its classes.
use super::{ETHERNET, ETHERNET_HEADER, rate};
use crate::queue;
use narrows_core::framing::Atm;
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::{Dscp, Rate, Span, Time};
use narrows_scenario::{Class, Hop};

/// A timer may be so late without costing rate: this is the time for which `htb` saves tokens where the scenario has no burst, up to a full-sized
/// packet's. Then no second packet follows another at once.
const LATE: Span = Span::us(128);
/// Bytes of these tokens at most: what they are at 100 Mbit/s.
const MOST_SAVED: u64 = 1600;
/// A packet that takes less time than this leaves at once. `tc` counts in units of 64 ns, and a timer for each packet would cost more.
pub(super) const AT_ONCE: Span = Span::us(1);

/// A shaper at the hop's rate with the queue below it. Both count a packet's bytes at the IP layer, and the scenario's overhead. Without
/// `stab` Linux counts the Ethernet header, and those of each segment in a large packet.
pub(super) fn shaper(device: &str, hop: &Hop, below: &Below) -> String {
    let stab = if hop.framing() == ETHERNET_HEADER {
        String::new()
    } else {
        let (mpu, layer) = (hop.mpu.0, if hop.atm == Atm::Atm { "atm" } else { "ethernet" });
        let mpu = if mpu > 0 { format!(" mpu {mpu}") } else { String::new() };
        format!("stab overhead {}{mpu} linklayer {layer} ", beyond_ethernet(hop))
    };
    let Below { default, commands } = below;
    let mut text = format!(
        "qdisc add dev {device} root handle 1: {stab}htb default {default}\n{}",
        class("add", device, hop, rate(hop, Time::ZERO))
    );
    for Command { what, rest } in commands {
        text += &format!("{what} add dev {device} {rest}\n");
    }
    text
}

/// What is below a hop's class `1:1`.
pub(super) struct Below {
    /// The class of packets that no filter knows, in hexadecimal.
    default: String,
    commands: Vec<Command>,
}

/// A command of `tc`, without the device.
struct Command {
    what: &'static str,
    rest: String,
}

/// A hop's queue, or the tree of its classes with theirs.
pub(super) fn below(hop: &Hop, hint: &LinkHint, modules: &mut Vec<String>) -> Result<Below, String> {
    let mut queue = |queue: &QueueConfig, hint: &LinkHint, parent: &str, handle: usize| {
        modules.extend(queue::module(queue).map(str::to_owned));
        let words = queue::words(queue, hint)?.join(" ");
        Ok::<Command, String>(Command { what: "qdisc", rest: format!("parent {parent} handle {handle:x}: {words}") })
    };
    let Some(default) = hop.default_leaf() else {
        let commands = vec![queue(&hop.queue, hint, "1:1", 0x10)?];
        return Ok(Below { default: "1".to_owned(), commands });
    };
    // 1:1 is the link.
    let id = |number: usize| format!("1:{:x}", number + 2);
    let mut commands = Vec::new();
    for (number, ((class, parent), is_leaf)) in hop.classes.iter().zip(hop.parents()).zip(hop.leaves()).enumerate() {
        let (own, parent) = (id(number), parent.map_or("1:1".to_owned(), id));
        let Class { rate, ceil, burst, cburst, prio, quantum, .. } = class;
        let [rate, ceil] = [rate, ceil].map(|rate| rate.as_bps());
        let [burst, cburst, quantum] = [burst, cburst, quantum].map(|bytes| bytes.0);
        let rest = format!(
            "parent {parent} classid {own} htb rate {rate}bit ceil {ceil}bit burst {burst} cburst {cburst} prio {prio} quantum {quantum}"
        );
        commands.push(Command { what: "class", rest });
        if is_leaf {
            let (of_class, hint) = hop.queue_in(class, hint);
            commands.push(queue(of_class, &hint, &own, 0x10 + number)?);
        }
    }
    for (Dscp(point), number) in hop.points() {
        for (pref, protocol) in [(1, "ip"), (2, "ipv6")] {
            let (own, tos) = (id(number), point << 2);
            let rest = format!("parent 1: protocol {protocol} pref {pref} flower ip_tos {tos:#x}/0xfc classid {own}");
            commands.push(Command { what: "filter", rest });
        }
    }
    modules.push("cls_flower".to_owned());
    Ok(Below { default: format!("{:x}", default + 2), commands })
}

/// The hop's overhead beyond the Ethernet header that Linux counts.
pub(crate) fn beyond_ethernet(hop: &Hop) -> i64 {
    hop.overhead.0 as i64 - ETHERNET as i64
}

pub(super) fn class(verb: &str, device: &str, hop: &Hop, rate: Rate) -> String {
    let saved = rate.bytes_in(LATE).0.min(MOST_SAVED).max(rate.bytes_in(AT_ONCE).0);
    let burst = hop.burst.0.max(saved).max(1);
    let rate = rate.as_bps();
    format!(
        "class {verb} dev {device} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst {burst} cburst {burst} quantum 1514\n"
    )
}
