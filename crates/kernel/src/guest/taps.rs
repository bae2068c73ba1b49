//! Sees the packets of a run.
use super::network::Namespaces;
use crate::message::Recorded;
use crate::network::Network;
use crate::sightings::{self, Place, Sighting, Spot};
use narrows_host::layout::Layout;
use narrows_host::tap::{self, Tap};
use narrows_host::{Clock, HostError};
use narrows_results::packets::SNAP;
use std::collections::HashMap;

/// Sees packets at the [`spots`](sightings::spots) of a network.
pub(super) struct Taps {
    recorded: Recorded,
    taps: Vec<(Spot, Tap)>,
    /// The system's clock at the run's epoch, ns.
    epoch: u64,
    /// The ECN fields that recorded packets left with, by their identities.
    known: HashMap<u64, u8>,
    /// How many packets that is.
    packets: u32,
    /// What is recorded of them.
    sightings: Vec<Sighting>,
    /// Sightings of packets that have not been seen to leave, of the latest reading. The devices are read one after the other, so a packet's
    /// leaving may be read after its arrival, in the reading after.
    unknown: Vec<Sighting>,
    /// Packets that the limit has left out.
    missed: u64,
}

impl Taps {
    /// Sees packets from now on.
    pub(super) fn open(
        recorded: Recorded,
        (network, layout): (&Network, &Layout),
        namespaces: &Namespaces,
    ) -> Result<Taps, HostError> {
        let open = |spot: Spot| {
            let namespace = spot.side.map_or(&namespaces.router, |side| &namespaces.sides[side]);
            let tap = Tap::open(namespace, &spot.device, matches!(spot.place, Place::Side(_)))?;
            Ok((spot, tap))
        };
        let taps = sightings::spots(network, layout).into_iter().map(open).collect::<Result<_, HostError>>()?;
        let (known, sightings, unknown) = Default::default();
        Ok(Taps { recorded, taps, epoch: 0, known, packets: 0, sightings, unknown, missed: 0 })
    }

    /// The run begins: what was seen before does not count.
    pub(super) fn start(&mut self, clock: &Clock) {
        self.epoch = tap::epoch(clock);
    }

    /// Reads what has come by.
    pub(super) fn read(&mut self) -> Result<(), HostError> {
        let (mut left, mut others) = (Vec::new(), Vec::new());
        let mut room = [0; SNAP];
        for (spot, (_, tap)) in (0..).zip(&mut self.taps) {
            tap.read(&mut room, |seen| {
                let Some(at) = seen.at.checked_sub(self.epoch) else { return };
                let id = sightings::identity(seen.head, seen.ip_len);
                let sighting =
                    Sighting { spot, leaves: seen.leaves, at, id, ip_len: seen.ip_len, head: seen.head.to_vec() };
                if seen.leaves { left.push(sighting) } else { others.push(sighting) }
            })?;
        }
        left.sort_by_key(|seen| seen.at);
        for seen in left {
            if seen.at < self.recorded.from || self.recorded.until.is_some_and(|until| seen.at >= until) {
                continue;
            }
            if self.packets == self.recorded.limit {
                self.missed += 1;
                continue;
            }
            self.packets += 1;
            self.known.insert(seen.id, sightings::ecn(&seen.head));
            self.sightings.push(seen);
        }
        let late = std::mem::take(&mut self.unknown).into_iter().map(|seen| (seen, true));
        for (mut seen, was_late) in late.chain(others.into_iter().map(|seen| (seen, false))) {
            match self.known.get(&seen.id) {
                Some(&ecn) => {
                    if ecn == sightings::ecn(&seen.head) {
                        seen.head = Vec::new();
                    }
                    self.sightings.push(seen);
                }
                None if was_late => {}
                None => self.unknown.push(seen),
            }
        }
        Ok(())
    }

    /// Returns the sightings, how many packets the limit left out, and how many the kernel had no room for.
    pub(super) fn finish(self) -> Result<(Vec<Sighting>, u64, u64), HostError> {
        let mut lost = 0;
        for (_, tap) in &self.taps {
            lost += u64::from(tap.missed()?);
        }
        Ok((self.sightings, self.missed, lost))
    }
}
