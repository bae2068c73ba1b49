//! Attaching a queue to an interface, detaching it, and looking at it.
//!
//! Each step is in the attachment's file before it is done. So one function undoes a finished attachment, one that failed on its
//! way, and one whose process was killed.
use crate::QdiscError;
use crate::attachment::{self, Attachment, Before, Root};
use crate::constants::{Frames, Program, Shaper};
use crate::layout::Memory;
use crate::machine::{self, Machine};
use crate::names::{self, Direction};
use crate::object::{self, RateMap};
use crate::snapshot::Snapshot;
use narrows_core::Rate;
use narrows_core::queue::QueueConfig;
use narrows_host::device::{Device, Devices, Qdisc};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What is to be attached.
#[derive(Clone, Debug)]
pub struct Request {
    /// The interface.
    pub interface: String,
    /// Which of its packets.
    pub direction: Direction,
    /// The queue.
    pub queue: QueueConfig,
    /// The shaper before the link.
    pub shaper: Shaper,
    /// A qdisc that somebody has put at the root may be replaced.
    pub replace: bool,
}

/// Attaches a queue. What an interrupted attachment has left is undone first. Answers what the user should know.
///
/// # Errors
/// `Refused` when the request cannot be met: nothing was changed. `Failed` when something failed on the way; what had been
/// done is undone.
pub fn attach(request: &Request) -> Result<Vec<String>, QdiscError> {
    let Request { interface, direction, queue, shaper, .. } = request;
    Machine::look().is_able()?;
    let mut host = Host::open()?;
    let mut found = host.find(interface)?;
    let header = if found.has_ethernet_header { ETHERNET_HEADER } else { 0 };
    let frames = Frames { mtu: found.mtu, header };
    let program = Program::new(queue, shaper, frames).map_err(QdiscError::Refused)?;
    let _lock = lock()?;
    let key = host.key(interface, *direction);
    let mut notes = Vec::new();
    if let Some(earlier) = read(&key)? {
        if host.is_attached(&earlier)? {
            let Attachment { queue, .. } = &earlier;
            let flag = if *direction == Direction::Ingress { " --ifb" } else { "" };
            return Err(QdiscError::Refused(format!(
                "{interface} has {queue} at its {direction} already; `narrows qdisc detach {interface}{flag}` removes it"
            )));
        }
        host.undo(&key, &earlier)?;
        // As it had been before that one.
        found = host.find(interface)?;
        notes.push(format!("{interface}: an interrupted attachment of {} has been undone", earlier.queue));
    }
    let replaced = host.replaced(request, &found)?;
    machine::mount_bpf()?;
    let mut attachment = Attachment {
        version: attachment::VERSION,
        interface: interface.clone(),
        index: found.index,
        direction: *direction,
        device: interface.clone(),
        device_index: found.index,
        queue: queue.to_string(),
        program: program.name.into(),
        id: String::new(),
        rate_bit_s: shaper.rate.map(Rate::as_bps),
        overhead_bytes: shaper.overhead,
        before: Before { root: replaced, ..Before::default() },
        made_clsact: false,
        complete: false,
        layout: object::layout(&program)?,
    };
    match direction {
        Direction::Egress => attachment.before.gso_max_segs = found.gso_max_segs,
        Direction::Ingress => {
            attachment.before.gro_max_sizes = found.gro_max_size.zip(found.gro_ipv4_max_size);
            attachment.device = host.free_ifb()?;
            attachment.device_index = 0;
        }
    }
    if let Err(error) = host.put(&key, &mut attachment, &program) {
        return Err(match host.undo(&key, &attachment) {
            Ok(()) => error,
            Err(left) => QdiscError::Failed(format!("{error}; and not everything could be undone: {left}")),
        });
    }
    Ok(notes)
}

/// Detaches what is attached to an interface, in one direction or in both, and leaves the interface as it was found. Answers
/// what was detached.
///
/// # Errors
/// `Refused` when nothing is attached there, or without the right to change it.
pub fn detach(interface: &str, direction: Option<Direction>) -> Result<Vec<String>, QdiscError> {
    Machine::look().has_rights()?;
    let mut host = Host::open()?;
    let _lock = lock()?;
    let mut done = Vec::new();
    for direction in
        [Direction::Egress, Direction::Ingress].into_iter().filter(|one| direction.is_none_or(|d| d == *one))
    {
        let key = host.key(interface, direction);
        if let Some(attachment) = read(&key)? {
            host.undo(&key, &attachment)?;
            done.push(format!("{interface}: {} is detached from its {direction}", attachment.queue));
        }
    }
    if done.is_empty() {
        return Err(nothing_at(interface));
    }
    Ok(done)
}

/// Looks at what is attached to an interface, or to any of this network namespace.
///
/// # Errors
/// `Refused` when nothing is attached to the interface.
pub fn show(interface: Option<&str>) -> Result<Vec<Snapshot>, QdiscError> {
    Machine::look().has_rights()?;
    let mut host = Host::open()?;
    let now = clock_gettime(ClockId::Monotonic);
    let now = u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0);
    let mut snapshots = Vec::new();
    for attachment in attached()? {
        let key = host.key(&attachment.interface, attachment.direction);
        if interface.is_some_and(|interface| interface != attachment.interface) {
            continue;
        }
        let is_attached = host.is_attached(&attachment)?;
        let bytes = match object::memory(&pins(&key)) {
            // An attachment that was interrupted before it had a program.
            Err(_) if !is_attached => continue,
            bytes => bytes?,
        };
        let rate = object::rate(&pins(&key)).map(|rate| Some(rate).filter(|rate| *rate > 0));
        let attachment = Attachment { rate_bit_s: rate.unwrap_or(attachment.rate_bit_s), ..attachment };
        let memory = Memory { layout: &attachment.layout, bytes: &bytes };
        snapshots.push(Snapshot::new(&attachment, is_attached, &memory, now).map_err(QdiscError::Failed)?);
    }
    match interface {
        Some(interface) if snapshots.is_empty() => Err(nothing_at(interface)),
        _ => Ok(snapshots),
    }
}

/// The rate of the shaper of what is attached, to change it.
///
/// # Errors
/// When nothing is attached there.
pub fn rate_map(interface: &str, direction: Direction) -> Result<RateMap, QdiscError> {
    RateMap::open(&pins(&names::key(interface, direction, machine::network_namespace())))
}

/// Whether there is such an interface.
///
/// # Errors
/// When the kernel does not list them.
pub fn exists(interface: &str) -> Result<bool, QdiscError> {
    Ok(Host::open()?.list()?.iter().any(|device| device.name == interface))
}

/// The attachments of this network namespace.
///
/// # Errors
/// When their files cannot be read.
pub fn attached() -> Result<Vec<Attachment>, QdiscError> {
    let keys =
        attachment::keys(Path::new(attachment::FOLDER)).map_err(|e| QdiscError::failed("list attachments", e))?;
    let namespace = machine::network_namespace();
    let mut found = Vec::new();
    for key in keys {
        let here = |attachment: &Attachment| names::key(&attachment.interface, attachment.direction, namespace) == key;
        found.extend(read(&key)?.filter(here));
    }
    Ok(found)
}

/// Ethernet's header without a VLAN tag, bytes.
const ETHERNET_HEADER: u32 = 14;

fn nothing_at(interface: &str) -> QdiscError {
    let names: Vec<String> =
        attached().unwrap_or_default().into_iter().map(|attachment| attachment.interface).collect();
    let there = if names.is_empty() {
        "nothing is attached to any interface".into()
    } else {
        format!("attached: {}", names.join(", "))
    };
    QdiscError::Refused(format!("nothing is attached to {interface:?}; {there}"))
}

fn read(key: &str) -> Result<Option<Attachment>, QdiscError> {
    Attachment::read(Path::new(attachment::FOLDER), key)
        .map_err(|error| QdiscError::failed("read an attachment", error))
}

fn pins(key: &str) -> PathBuf {
    Path::new(machine::BPF_FOLDER).join("narrows").join(key)
}

/// One process at a time changes interfaces. The lock ends with the value, and with the process.
fn lock() -> Result<File, QdiscError> {
    let failed = |error: io::Error| QdiscError::failed(&format!("lock {}", attachment::FOLDER), error);
    fs::create_dir_all(attachment::FOLDER).map_err(failed)?;
    let lock = File::create(Path::new(attachment::FOLDER).join("lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    Ok(lock)
}

/// The host's devices, and what is done to them.
struct Host {
    devices: Devices,
    namespace: Option<u64>,
}

impl Host {
    fn open() -> Result<Host, QdiscError> {
        let devices = Devices::open().map_err(|error| QdiscError::failed("open a routing socket", error))?;
        Ok(Host { devices, namespace: machine::network_namespace() })
    }

    fn key(&self, interface: &str, direction: Direction) -> String {
        names::key(interface, direction, self.namespace)
    }

    fn list(&mut self) -> Result<Vec<Device>, QdiscError> {
        self.devices.list().map_err(|error| QdiscError::failed("list the interfaces", error))
    }

    fn find(&mut self, name: &str) -> Result<Device, QdiscError> {
        let mut devices = self.list()?;
        if let Some(at) = devices.iter().position(|device| device.name == name).filter(|_| names::is_interface(name)) {
            return Ok(devices.swap_remove(at));
        }
        let names: Vec<String> = devices.into_iter().map(|device| device.name).collect();
        Err(QdiscError::Refused(format!("there is no interface {name:?}; there are: {}", names.join(", "))))
    }

    /// The device of this number, if it still has this name.
    fn same(&mut self, index: u32, name: &str) -> Result<Option<Device>, QdiscError> {
        Ok(self.list()?.into_iter().find(|device| device.index == index && device.name == name))
    }

    fn qdiscs(&mut self, index: u32) -> Result<Vec<Qdisc>, QdiscError> {
        self.devices.qdiscs(index).map_err(|error| QdiscError::failed("list the queueing disciplines", error))
    }

    fn root(&mut self, index: u32) -> Result<Option<Qdisc>, QdiscError> {
        Ok(self.qdiscs(index)?.into_iter().find(|qdisc| !qdisc.is_ingress))
    }

    fn is_attached(&mut self, attachment: &Attachment) -> Result<bool, QdiscError> {
        Ok(attachment.complete && self.has_qdisc(attachment)?)
    }

    fn has_qdisc(&mut self, attachment: &Attachment) -> Result<bool, QdiscError> {
        if attachment.id.is_empty() || self.same(attachment.device_index, &attachment.device)?.is_none() {
            return Ok(false);
        }
        Ok(self.root(attachment.device_index)?.is_some_and(|root| root.kind == attachment.id))
    }

    /// What would be replaced at the root.
    fn replaced(&mut self, request: &Request, found: &Device) -> Result<Option<Root>, QdiscError> {
        let Request { interface, direction, replace, .. } = request;
        let qdiscs = self.qdiscs(found.index)?;
        if *direction == Direction::Ingress {
            return match qdiscs.into_iter().find(|qdisc| qdisc.is_ingress) {
                None => Ok(None),
                Some(Qdisc { kind, .. }) => Err(QdiscError::Refused(format!(
                    "{interface} has a {kind} at its ingress, which somebody uses; allowed: none (`tc qdisc del dev {interface} {kind}` removes it)"
                ))),
            };
        }
        // Those that the kernel puts there by itself have no number.
        match qdiscs.into_iter().find(|qdisc| !qdisc.is_ingress && qdisc.handle != 0) {
            None => Ok(None),
            Some(Qdisc { kind, handle, options, .. }) if *replace => Ok(Some(Root { kind, handle, options })),
            Some(Qdisc { kind, handle, .. }) => Err(QdiscError::Refused(format!(
                "{interface} has a {kind} at its root ({:x}:), which somebody put there; --replace replaces it until `detach`",
                handle >> 16
            ))),
        }
    }

    /// A name for an ifb device.
    fn free_ifb(&mut self) -> Result<String, QdiscError> {
        let devices = self.list()?;
        let names = (0..u32::MAX).map(|n| format!("ifb{n}"));
        // Loading the module makes ifb0 and ifb1 beside the one that is asked for.
        let free = names.skip(2).find(|name| devices.iter().all(|device| device.name != *name));
        free.ok_or_else(|| QdiscError::Failed("there is no free name for an ifb device".into()))
    }

    /// Does everything, and writes down each step before it.
    fn put(&mut self, key: &str, attachment: &mut Attachment, program: &Program) -> Result<(), QdiscError> {
        let note = |attachment: &Attachment| {
            let written = attachment.write(Path::new(attachment::FOLDER), key);
            written.map_err(|error| QdiscError::failed(&format!("write to {}", attachment::FOLDER), error))
        };
        note(attachment)?;
        if attachment.direction == Direction::Ingress {
            let name = attachment.device.clone();
            self.devices.add_ifb(&name).map_err(|error| {
                // Somebody else's, if there is one now.
                attachment.device.clear();
                QdiscError::failed("make an ifb device (the kernel's module ifb)", error)
            })?;
            let ifb = self.find(&name)?;
            attachment.device_index = ifb.index;
            note(attachment)?;
            self.devices.set_up(ifb.index).map_err(|error| QdiscError::failed(&format!("set {name} up"), error))?;
        }
        let mut registered = object::register(program, attachment.device_index)?;
        attachment.id.clone_from(&registered.id);
        note(attachment)?;
        registered.pin(&pins(key))?;
        let Attachment { index, device_index, interface, device, id, .. } = attachment.clone();
        let single = |error| QdiscError::failed(&format!("have {interface} take packets one by one"), error);
        if attachment.before.gso_max_segs.is_some() {
            self.devices.set_gso_max_segs(index, SINGLE).map_err(single)?;
        }
        if attachment.before.gro_max_sizes.is_some() {
            self.devices.set_gro_max_sizes(index, SINGLE, SINGLE).map_err(single)?;
        }
        let placed = self.devices.replace_root(device_index, &id, 0, &[]);
        placed.map_err(|error| QdiscError::failed(&format!("put the qdisc {id} on {device}"), error))?;
        if attachment.direction == Direction::Ingress {
            attachment.made_clsact = true;
            note(attachment)?;
            let redirected = self.devices.redirect_ingress(index, device_index);
            redirected.map_err(|error| {
                let doing = format!("redirect what {interface} receives to {device} (the kernel's modules sch_ingress, cls_matchall, act_mirred)");
                QdiscError::failed(&doing, error)
            })?;
        }
        attachment.complete = true;
        note(attachment)
    }

    /// Undoes all of an attachment that is there. What others have changed since is left alone.
    fn undo(&mut self, key: &str, attachment: &Attachment) -> Result<(), QdiscError> {
        let Attachment { interface, index, device, device_index, before, .. } = attachment;
        let mut left = Vec::new();
        let mut tell = |doing: String, done: io::Result<()>| {
            if let Err(error) = done {
                left.push(format!("{doing}: {error}"));
            }
        };
        let found = self.same(*index, interface)?;
        if attachment.made_clsact && found.is_some() && self.qdiscs(*index)?.iter().any(|q| q.kind == "clsact") {
            tell(format!("remove clsact from {interface}"), self.devices.delete_clsact(*index));
        }
        if self.has_qdisc(attachment)? {
            tell(format!("remove the qdisc from {device}"), self.devices.delete_root(*device_index));
            if let Some(Root { kind, handle, options }) = &before.root {
                let restored = self.devices.replace_root(*device_index, kind, *handle, options);
                // Not every qdisc takes its options as it lists them.
                let restored = restored.or_else(|_| self.devices.replace_root(*device_index, kind, *handle, &[]));
                tell(format!("put {kind} back on {device}"), restored);
            }
        }
        if let Some(found) = &found {
            if let Some(segments) = before.gso_max_segs.filter(|_| found.gso_max_segs == Some(SINGLE)) {
                tell(format!("set gso_max_segs of {interface}"), self.devices.set_gso_max_segs(*index, segments));
            }
            if let Some((v6, v4)) = before.gro_max_sizes.filter(|_| found.gro_max_size == Some(SINGLE)) {
                tell(format!("set gro_max_size of {interface}"), self.devices.set_gro_max_sizes(*index, v6, v4));
            }
        }
        if attachment.direction == Direction::Ingress {
            // It may have been made when its number had not been written down yet.
            let ifb = self.list()?.into_iter().find(|ifb| ifb.name == *device && [0, ifb.index].contains(device_index));
            if let Some(ifb) = ifb {
                tell(format!("remove {device}"), self.devices.delete(ifb.index));
            }
        }
        tell("remove the pins".into(), object::unpin(&pins(key)));
        if !left.is_empty() {
            return Err(QdiscError::Failed(format!(
                "cannot {}; `narrows qdisc detach {interface}` tries again",
                left.join("; cannot ")
            )));
        }
        let removed = Attachment::remove(Path::new(attachment::FOLDER), key);
        removed.map_err(|error| QdiscError::failed("remove the attachment's file", error))
    }
}

/// For `gso_max_segs`: one segment per packet. For `gro_max_size`: no packet is joined to another.
const SINGLE: u32 = 1;
