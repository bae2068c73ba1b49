//! The commands, where they can be had.
use super::autorate::{Autorate, Following, Found};
use super::{Attach, Detach, Show, Status};
use crate::failure::Failure;
use crate::interrupt;
use crate::term;
use narrows_core::Span;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_qdisc::QdiscError;
use narrows_qdisc::constants::{PROGRAMS, Shaper};
use narrows_qdisc::interface::{self, Request};
use narrows_qdisc::machine::Machine;
use narrows_qdisc::names::Direction;
use narrows_qdisc::snapshot::Snapshot;
use narrows_qdisc::watchdog::{Stuck, Watchdog};
use narrows_scenario::shorthand;
use serde_json::json;
use std::time::Duration;

/// Flows that are shown without --all.
const FLOWS: usize = 20;
/// From one look to the next.
const LOOK: Duration = Duration::from_secs(1);
const FOLLOWED: Span = Span::s(1);
/// A watchdog looks once a second; a slow link may take a second for one packet.
const MIN_PATIENCE: Span = Span::s(2);
const MAX_PATIENCE: Span = Span::s(3600);
/// How often Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(50);

impl From<QdiscError> for Failure {
    fn from(error: QdiscError) -> Failure {
        match error {
            QdiscError::Refused(message) => Failure::Usage(message),
            QdiscError::Failed(message) => Failure::Other(message),
        }
    }
}

/// `narrows qdisc attach`.
pub(super) fn attach(args: &Attach) -> Result<(), Failure> {
    let queue = queue(&args.queue, &args.set)?;
    let autorate = Autorate::read(args, &queue)?;
    let rate = args.rate.as_deref().map(|rate| shorthand::rate("--rate", rate)).transpose().map_err(Failure::usage)?;
    let rate = autorate.as_ref().map(|autorate| autorate.start).or(rate);
    let shaper = Shaper { rate, overhead: args.overhead };
    shaper.validate().map_err(Failure::usage)?;
    let direction = if args.ifb { Direction::Ingress } else { Direction::Egress };
    let patience = args.watchdog.as_deref().map(patience).transpose()?;
    let found = autorate.as_ref().map(|autorate| autorate.find(&args.interface)).transpose()?;
    if patience.is_some() || autorate.is_some() {
        interrupt::install()?;
    }
    let request = Request { interface: args.interface.clone(), direction, queue, shaper, replace: args.replace };
    for line in interface::attach(&request)? {
        term::note(&format!("narrows: {line}"));
    }
    let shaped = rate.map_or_else(|| "not shaped".to_owned(), |rate| format!("shaped to {rate}"));
    let Request { interface, queue, .. } = &request;
    term::print(&format!("{interface}: {queue} is attached to its {direction}, {shaped}\n"))?;
    let following =
        autorate.as_ref().zip(found).map(|(autorate, found)| follow(autorate, found, &request)).transpose()?;
    if patience.is_none() && following.is_none() {
        return Ok(());
    }
    watch_over(interface, direction, patience, following)
}

/// Begins to follow the link of what was attached, or detaches it.
fn follow(autorate: &Autorate, found: Found, request: &Request) -> Result<Following, Failure> {
    let Request { interface, direction, .. } = request;
    let start = || {
        let mut attached = interface::attached()?.into_iter();
        let device = attached.find(|a| a.interface == *interface && a.direction == *direction).map(|a| a.device);
        let device = device.unwrap_or_else(|| interface.clone());
        let map = interface::rate_map(interface, *direction)?;
        let set_rate = Box::new(move |rate| Ok(map.set(rate)?));
        let is_behind = *direction == Direction::Ingress;
        Following::start(autorate, found, (interface, &device, is_behind), set_rate)
    };
    let started = start();
    if started.is_err() {
        let is_gone = !interface::exists(interface)?;
        interface::detach(interface, Some(*direction))?;
        if is_gone {
            return Err(gone(interface));
        }
    }
    started
}

fn gone(interface: &str) -> Failure {
    Failure::other(format!("{interface} is gone, and the queue with it"))
}

/// The time that a queue may make no progress.
fn patience(text: &str) -> Result<Span, Failure> {
    let patience = shorthand::span("--watchdog", text).map_err(Failure::usage)?;
    let allowed = MIN_PATIENCE..=MAX_PATIENCE;
    if allowed.contains(&patience) {
        return Ok(patience);
    }
    Err(Failure::usage(format!("--watchdog: {patience} is not allowed; allowed: {MIN_PATIENCE} to {MAX_PATIENCE}")))
}

/// Looks at the queue each second, while its rate follows the link. Detaches it when it makes no progress, and on Ctrl-C; ends when somebody
/// else has detached it or the interface is gone.
fn watch_over(
    interface: &str,
    direction: Direction,
    patience: Option<Span>,
    mut following: Option<Following>,
) -> Result<(), Failure> {
    let mut watchdog = patience.map(|patience| Watchdog::new(patience.as_secs_f64()));
    let ends = if following.is_some() { "--autorate" } else { "its watchdog" };
    let detach = || {
        let lines = interface::detach(interface, Some(direction))?;
        term::print(&lines.into_iter().map(|line| line + "\n").collect::<String>())
    };
    let mut failed = None;
    loop {
        let attached = interface::attached()?.iter().any(|a| a.interface == interface && a.direction == direction);
        let snapshots = if attached { interface::show(Some(interface))? } else { Vec::new() };
        let Some(now) = snapshots.iter().find(|now| now.direction == direction && now.attached) else {
            if following.is_some() && !interface::exists(interface)? {
                detach()?;
                return Err(gone(interface));
            }
            term::note(&format!("narrows: {interface}: the queue is not there any more; {ends} ends"));
            return Ok(());
        };
        if let Some(error) = failed {
            detach()?;
            return Err(error);
        }
        if let Some(Stuck { packets, for_s }) = watchdog.as_mut().and_then(|watchdog| watchdog.look(now)) {
            detach()?;
            let queue = &now.queue;
            return Err(Failure::other(format!(
                "{interface}: none of the {packets} packets in {queue} had left for {for_s:.0} s, so it was detached"
            )));
        }
        let waited = following.as_mut().map_or_else(|| Ok(interrupted_while_waiting()), |it| it.follow_for(FOLLOWED));
        match waited {
            Ok(true) => return detach(),
            Ok(false) => {}
            // It may be that the queue or the interface is gone.
            Err(error) => failed = Some(error),
        }
    }
}

/// Waits until the next look, or until Ctrl-C.
fn interrupted_while_waiting() -> bool {
    for _ in 0..LOOK.as_millis() / TICK.as_millis() {
        std::thread::sleep(TICK);
        if interrupt::requested() {
            interrupt::answered();
            return true;
        }
    }
    false
}

/// `narrows qdisc detach`.
pub(super) fn detach(args: &Detach) -> Result<(), Failure> {
    let direction = args.ifb.then_some(Direction::Ingress);
    let lines = interface::detach(&args.interface, direction)?;
    term::print(&lines.into_iter().map(|line| line + "\n").collect::<String>())
}

/// `narrows qdisc show`.
pub(super) fn show(args: &Show) -> Result<(), Failure> {
    if args.watch {
        return watch(args);
    }
    let snapshots = interface::show(args.interface.as_deref())?;
    if args.json { term::print_json(&snapshots) } else { term::print(&text(args, &snapshots, &[])) }
}

/// `narrows qdisc status`.
pub(super) fn status(args: &Status) -> Result<(), Failure> {
    let machine = Machine::look();
    let attached = interface::attached()?;
    if args.json {
        let attached: Vec<_> = attached
            .iter()
            .map(|a| json!({ "interface": a.interface, "direction": a.direction, "queue": a.queue, "rate_bit_s": a.rate_bit_s }))
            .collect();
        return term::print_json(&json!({ "machine": machine, "programs": PROGRAMS, "attached": attached }));
    }
    let rights = match machine.missing_rights.as_slice() {
        [] => "yes".to_owned(),
        missing => format!("no: {} missing; run narrows as root", missing.join(", ")),
    };
    let possible = machine.lacks.as_ref().map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"));
    let mut text = format!("kernel      {}\nBPF queues  {possible}\nrights      {rights}\n", machine.kernel);
    text += &format!("programs    {}\n", PROGRAMS.join(", "));
    for (n, a) in attached.iter().enumerate() {
        let name = if n == 0 { "attached" } else { "" };
        text += &format!("{name:<12}{} {} {}\n", a.interface, a.direction, a.queue);
    }
    if attached.is_empty() {
        text += "attached    nothing\n";
    }
    term::print(&text)
}

/// The queue with its parameters, those of --set last.
fn queue(text: &str, set: &[String]) -> Result<QueueConfig, Failure> {
    let mut queues = shorthand::queues("QUEUE", text).map_err(Failure::usage)?;
    let (Some(mut queue), true) = (queues.pop(), queues.is_empty()) else {
        return Err(Failure::usage(format!(
            "QUEUE: {text:?} does not name exactly one queue; allowed: {}",
            PROGRAMS.join(", ")
        )));
    };
    for pair in set {
        // Read as part of a queue: the same names, units and messages.
        let mut changed = shorthand::queues("--set", &format!("{}:{pair}", queue.name())).map_err(Failure::usage)?;
        let name = pair.split('=').next().unwrap_or_default().trim();
        let value = match (changed.pop(), changed.is_empty()) {
            (Some(changed), true) => changed.get(name),
            _ => None,
        };
        let value =
            value.ok_or_else(|| Failure::usage(format!("--set: {pair:?} is no parameter; allowed: NAME=VALUE")))?;
        queue.set(name, &value).map_err(|error| Failure::usage(format!("--set: {error}")))?;
    }
    queue.validate().map_err(|error| Failure::usage(format!("QUEUE: {error}")))?;
    Ok(queue)
}

/// Shows again and again, with the rate since the look before.
fn watch(args: &Show) -> Result<(), Failure> {
    interrupt::install()?;
    let mut before: Vec<Snapshot> = Vec::new();
    loop {
        let snapshots = interface::show(args.interface.as_deref())?;
        if args.json {
            let line = serde_json::to_string(&snapshots).map_err(Failure::other)?;
            term::print_json_text(&(line + "\n"))?;
        } else {
            term::redraw(&text(args, &snapshots, &before))?;
        }
        before = snapshots;
        if interrupted_while_waiting() {
            return Ok(());
        }
    }
}

fn text(args: &Show, snapshots: &[Snapshot], before: &[Snapshot]) -> String {
    if snapshots.is_empty() {
        return "nothing is attached\n".to_owned();
    }
    let most = if args.all { usize::MAX } else { FLOWS };
    let show = |now: &Snapshot| {
        let earlier = before.iter().find(|earlier| earlier.id == now.id && earlier.sent.bytes <= now.sent.bytes);
        let rate = earlier.map(|earlier| (now.sent.bytes - earlier.sent.bytes) as f64 * 8.0 / now.since(earlier));
        now.text(most, rate)
    };
    snapshots.iter().map(show).collect::<Vec<_>>().join("\n")
}
