//! Queues that Linux has itself, which `tc` attaches.
use super::Attach;
use crate::advise::below_htb;
use crate::failure::Failure;
use narrows_core::queue::{LinkHint, QueueConfig};
use narrows_core::registry::Registered as _;
use narrows_core::{Bytes, Rate, Span};
use narrows_kernel::queue::{is_ours, words};
use narrows_scenario::shorthand;

/// A link without a shaper, for what a discipline derives from it.
const PORT: LinkHint = LinkHint { rate: Rate::gbit(1), rtt: Span::ms(100), mtu: Bytes(1514) };
/// The header of an Ethernet frame, from which `stab` counts; `cake` counts from the IP packet.
const ETHERNET: i32 = 14;

/// Refuses a queue of Linux with the commands that put it on the interface.
pub(super) fn refuse(args: &Attach) -> Result<(), Failure> {
    // What cannot be read is refused by what reads all of it.
    let Ok([queue]) =
        shorthand::queues("QUEUE", &args.queue).map_or(Err(()), |queues| <[_; 1]>::try_from(queues).map_err(|_| ()))
    else {
        return Ok(());
    };
    if is_ours(&queue) {
        return Ok(());
    }
    let rate = args.rate.as_deref().map(|rate| shorthand::rate("--rate", rate)).transpose().map_err(Failure::usage)?;
    let name = queue.name();
    let Ok(lines) = commands(args, queue, rate) else { return Ok(()) };
    let received = if args.ifb { "; for what it receives: `narrows advise`" } else { "" };
    let lines = lines.join(" && ");
    Err(Failure::usage(format!("QUEUE: {name} is part of Linux; allowed: cocoa, cp, lfq; write `{lines}`{received}")))
}

fn commands(args: &Attach, queue: QueueConfig, rate: Option<Rate>) -> Result<Vec<String>, String> {
    let hint = LinkHint { rate: rate.unwrap_or(PORT.rate), ..PORT };
    let mut words = words(&queue, &hint)?;
    // Defaults of Linux need no words; a FIFO's limit is the device's queue length then.
    if queue.to_string() == queue.name() && queue.name() != "fifo" && queue.name() != "red" {
        words.truncate(1);
    }
    let overhead = args.overhead;
    if queue.get("bandwidth").is_some() && words[0] == "cake" {
        let bandwidth = rate.map(|rate| format!("bandwidth {}kbit", rate.as_bps() / 1000));
        words.retain(|word| bandwidth.is_none() || word != "unlimited");
        words.splice(1..1, bandwidth);
        words.extend((overhead != 0).then(|| format!("overhead {}", overhead.saturating_add(ETHERNET))));
    } else if let Some(rate) = rate {
        let stab = if overhead == 0 { String::new() } else { format!("stab overhead {overhead} linklayer ethernet ") };
        return Ok(below_htb(&args.interface, (stab, rate), &words.join(" ")));
    }
    Ok(vec![format!("tc qdisc replace dev {} root {}", args.interface, words.join(" "))])
}
