//! A shaper of Linux on an interface, `cake` or `htb`, whose rate is changed.
use crate::failure::Failure;
use crate::qdisc::autorate::{Autorate, Following, Found};
use crate::term;
use narrows_core::{Rate, Span};
use narrows_host::device::{Device, Devices, Qdisc};
use std::process::Command;

/// From one look whether it is still there to the next.
const LOOK: Span = Span::s(1);

/// An interface with the shaper at its root.
pub(super) struct Shaper {
    interface: String,
    index: u32,
    devices: Devices,
    /// The kind of what was put there.
    kind: String,
}

impl Shaper {
    /// The interface, if nobody has put a queueing discipline there.
    pub(super) fn find(interface: &str) -> Result<Shaper, Failure> {
        let mut devices = Devices::open().map_err(Failure::other)?;
        let list = devices.list().map_err(Failure::other)?;
        let Some(Device { index, .. }) = list.iter().find(|device| device.name == interface) else {
            let names: Vec<&str> = list.iter().map(|device| device.name.as_str()).collect();
            let names = names.join(", ");
            return Err(Failure::usage(format!("there is no interface {interface:?}; there are: {names}")));
        };
        let mut shaper = Shaper { interface: interface.into(), index: *index, devices, kind: String::new() };
        match shaper.root()? {
            // Those that the kernel puts there by itself have no number.
            Some(Qdisc { kind, handle, .. }) if handle != 0 => Err(Failure::usage(format!(
                "{interface} has a {kind} at its root ({:x}:), which somebody put there; allowed: none (`tc qdisc del dev {interface} root` removes it)",
                handle >> 16
            ))),
            _ => Ok(shaper),
        }
    }

    fn root(&mut self) -> Result<Option<Qdisc>, Failure> {
        let qdiscs = self.devices.qdiscs(self.index).map_err(Failure::other)?;
        Ok(qdiscs.into_iter().find(|qdisc| !qdisc.is_ingress))
    }

    /// Runs the commands of `tc`. If one fails, what the others have put there is removed.
    pub(super) fn put(&mut self, lines: &[String]) -> Result<(), Failure> {
        for line in lines {
            let mut words = line.split_whitespace();
            let program = words.next().unwrap_or_default();
            let output = Command::new(program).args(words).output();
            let output = output.map_err(|error| Failure::usage(format!("cannot run `{program}`: {error}")))?;
            if !output.status.success() {
                // Nobody else's: there was none.
                let _ = self.devices.delete_root(self.index);
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().map(str::trim).filter(|said| !said.is_empty()).collect::<Vec<_>>().join(" | ");
                return Err(Failure::other(format!("`{line}` failed: {said}")));
            }
        }
        self.kind = self.root()?.map(|root| root.kind).unwrap_or_default();
        Ok(())
    }

    /// Follows the link until Ctrl-C, or until somebody else has removed the shaper or the interface.
    pub(super) fn follow(&mut self, autorate: &Autorate, found: Found) -> Result<(), Failure> {
        let mut devices = Devices::open().map_err(Failure::other)?;
        let (index, is_cake, interface) = (self.index, self.kind == "cake", self.interface.clone());
        let set_rate = move |rate: Rate| {
            let set = if is_cake { devices.set_cake_rate(index, rate) } else { devices.set_htb_rate(index, rate) };
            set.map_err(|error| Failure::other(format!("cannot change the rate of {interface}'s shaper: {error}")))
        };
        let place = (self.interface.as_str(), self.interface.as_str(), false);
        let mut following = Following::start(autorate, found, place, Box::new(set_rate))?;
        loop {
            let followed = following.follow_for(LOOK);
            let interface = &self.interface;
            let list = self.devices.list().map_err(Failure::other)?;
            if !list.iter().any(|device| device.index == self.index && device.name == *interface) {
                return Err(Failure::other(format!("{interface} is gone, and the queue with it")));
            }
            if !self.is_there()? {
                term::note(&format!("narrows: {}: the queue is not there any more; --autorate ends", self.interface));
                return Ok(());
            }
            if followed? {
                return Ok(());
            }
        }
    }

    fn is_there(&mut self) -> Result<bool, Failure> {
        let kind = self.kind.clone();
        Ok(self.root()?.is_some_and(|root| root.kind == kind && root.handle != 0))
    }

    /// Removes the shaper, if it is still there.
    pub(super) fn remove(&mut self) -> Result<bool, Failure> {
        let is_there = self.is_there()?;
        if is_there {
            let removed = self.devices.delete_root(self.index);
            removed.map_err(|error| {
                Failure::other(format!("cannot remove {} from {}: {error}", self.kind, self.interface))
            })?;
        }
        Ok(is_there)
    }
}
