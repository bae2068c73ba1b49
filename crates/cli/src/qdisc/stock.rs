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

/// Our queues that are BPF programs.
const PROGRAMS: [&str; 3] = ["cocoa", "cp", "lfq"];

/// The queue, if `tc` is to attach it: one of Linux, or with `--autorate` one of our modules.
pub(super) fn queue(args: &Attach) -> Option<QueueConfig> {
    // What cannot be read is refused by what reads all of it.
    let [queue] = <[_; 1]>::try_from(shorthand::queues("QUEUE", &args.queue).ok()?).ok()?;
    let is_attached = PROGRAMS.contains(&queue.name()) || is_ours(&queue) && args.autorate.is_none();
    let has_commands = || args.autorate.is_some() || commands(args, queue.clone(), None).is_ok();
    (!is_attached && has_commands()).then_some(queue)
}

/// Refuses a queue of Linux with the commands that put it on the interface; with `--autorate` does it, and follows the link.
pub(super) fn attach(args: &Attach, queue: QueueConfig) -> Result<(), Failure> {
    let rate = args.rate.as_deref().map(|rate| shorthand::rate("--rate", rate)).transpose().map_err(Failure::usage)?;
    if args.autorate.is_some() {
        return follow(args, queue);
    }
    let name = queue.name();
    let lines = commands(args, queue, rate).map_err(Failure::usage)?;
    let received = if args.ifb { "; for what it receives: `narrows advise`" } else { "" };
    let lines = lines.join(" && ");
    let allowed = PROGRAMS.join(", ");
    Err(Failure::usage(format!("QUEUE: {name} is part of Linux; allowed: {allowed}; write `{lines}`{received}")))
}

#[cfg(not(all(any(feature = "bpf", feature = "host"), target_os = "linux")))]
fn follow(_: &Attach, _: QueueConfig) -> Result<(), Failure> {
    Err(Failure::usage(
        "--autorate: this build or this system has no queues on interfaces; allowed: Linux, with the feature host",
    ))
}

/// Attaches the queue below a shaper, follows the link until Ctrl-C, and detaches it.
#[cfg(all(any(feature = "bpf", feature = "host"), target_os = "linux"))]
fn follow(args: &Attach, queue: QueueConfig) -> Result<(), Failure> {
    use super::autorate::Autorate;
    let (name, interface) = (queue.name(), args.interface.as_str());
    let for_programs = [(args.ifb, "--ifb"), (args.replace, "--replace"), (args.watchdog.is_some(), "--watchdog")];
    if let Some((_, flag)) = for_programs.iter().find(|(is_given, _)| *is_given) {
        let allowed = PROGRAMS.join(", ");
        return Err(Failure::usage(format!(
            "{flag}: {name} is attached by `tc`; allowed with --autorate: for {allowed}"
        )));
    }
    let Some(autorate) = Autorate::read(args, &queue)? else { return Ok(()) };
    let lines = commands(args, queue, Some(autorate.start)).map_err(Failure::usage)?;
    let mut shaper = shaper::Shaper::find(interface)?;
    let found = autorate.find(interface)?;
    crate::interrupt::install()?;
    shaper.put(&lines)?;
    let start = autorate.start;
    crate::term::print(&format!("{interface}: {name} is attached to its egress, shaped to {start}\n"))?;
    let followed = shaper.follow(&autorate, found);
    let is_detached = shaper.remove()?;
    followed?;
    if is_detached {
        crate::term::print(&format!("{interface}: {name} is detached from its egress\n"))?;
    }
    Ok(())
}

#[cfg(all(any(feature = "bpf", feature = "host"), target_os = "linux"))]
mod shaper;

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

#[cfg(all(test, feature = "bpf", target_os = "linux"))]
mod tests {
    /// Builds without the library name its programs, too.
    #[test]
    fn the_programs_are_those_of_the_library() {
        assert_eq!(super::PROGRAMS[..], *narrows_qdisc::constants::PROGRAMS);
    }
}
