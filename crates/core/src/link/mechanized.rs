//! A link that a [mechanism](crate::mechanism) empties.
use super::departs;
use crate::mechanism::{AnyMechanism, Burst, Flight, Flying, Opens, Room};
use crate::pool::PacketId;
use crate::queue::{Ctx, Next, Queue};
use crate::rate::Bytes;
use crate::time::Time;

/// What a mechanism takes packets from.
pub(super) trait Source {
    /// Bytes that wait.
    fn waiting(&self) -> Bytes;
    /// Takes the next packet.
    fn take(&mut self, cx: &mut Ctx<'_>) -> Taken;
}

/// A packet, or a probe, with its length; or why there is none.
pub(super) enum Taken {
    One(Option<PacketId>, u32),
    At(Time),
    Empty,
}

impl Source for Queue {
    fn waiting(&self) -> Bytes {
        self.backlog().bytes
    }

    fn take(&mut self, cx: &mut Ctx<'_>) -> Taken {
        match self.dequeue(cx) {
            Next::Packet(id) => Taken::One(Some(id), departs(id, cx)),
            Next::At(at) => Taken::At(at),
            Next::Empty => Taken::Empty,
        }
    }
}

/// What such a link does next.
pub(super) enum Step {
    Arrived(Flying),
    Wait(Time),
    Idle,
}

/// A mechanism, and what it has taken from the queue.
pub(super) struct Mechanized {
    mechanism: AnyMechanism,
    flight: Flight,
    /// A packet that was cut: its length, and the bytes still to be sent.
    begun: Option<(Option<PacketId>, u32, u64)>,
}

impl Mechanized {
    pub(super) fn new(mechanism: AnyMechanism) -> Mechanized {
        Mechanized { mechanism, flight: Flight::new(), begun: None }
    }

    /// See [`Mechanism::needs`](crate::mechanism::Mechanism::needs).
    pub(super) fn needs(&mut self, now: Time) -> Bytes {
        self.mechanism.needs(now)
    }

    /// The packets that have left the queue and not yet arrived.
    pub(super) fn packets(&self) -> impl Iterator<Item = PacketId> {
        let begun = self.begun.and_then(|(id, ..)| id);
        self.flight.iter().filter_map(|one| one.packet).chain(begun)
    }

    pub(super) fn poll(&mut self, source: &mut impl Source, cx: &mut Ctx<'_>) -> Step {
        loop {
            let arrives = self.flight.front().and_then(|one| one.arrives);
            if arrives.is_some_and(|at| at <= cx.now)
                && let Some(one) = self.flight.pop_front()
            {
                return Step::Arrived(one);
            }
            let first = |other: Option<Time>| match (arrives, other) {
                (Some(a), Some(b)) => Step::Wait(a.min(b)),
                (Some(at), None) | (None, Some(at)) => Step::Wait(at),
                (None, None) => Step::Idle,
            };
            let unsettled = self.flight.back().is_some_and(|one| one.arrives.is_none());
            let begun = self.begun.map_or(0, |(.., left)| left);
            let backlog = source.waiting() + Bytes(begun);
            if backlog == Bytes::ZERO && !unsettled {
                return first(None);
            }
            let room = match self.mechanism.opens(cx.now, backlog, &self.flight) {
                Opens::At(at) => return first(Some(at)),
                Opens::Now(room) => room,
            };
            let (burst, until) = self.take(source, room, unsettled, cx);
            if burst.bytes == 0 && !unsettled {
                // The discipline shapes, or has dropped all that waited.
                return first(until);
            }
            self.mechanism.sends(cx.now, burst, &mut self.flight);
        }
    }

    /// Takes what there is room for. `resends` says that the burst has something else in it, so that nothing new need fit.
    fn take(&mut self, source: &mut impl Source, room: Room, resends: bool, cx: &mut Ctx<'_>) -> (Burst, Option<Time>) {
        let mut burst = Burst { bytes: 0, is_cut: false };
        loop {
            let (id, len, left) = match self.begun.take() {
                Some(begun) => begun,
                None if burst.bytes >= room.bytes && (resends || burst.bytes > 0) => return (burst, None),
                None => match source.take(cx) {
                    Taken::One(id, len) => (id, len, u64::from(len)),
                    Taken::At(at) => return (burst, Some(at)),
                    Taken::Empty => return (burst, None),
                },
            };
            let fits = burst.bytes + left + u64::from(room.each) <= room.bytes;
            let goes_whole = !self.mechanism.cuts() && burst.bytes == 0 && !resends;
            if fits || goes_whole {
                burst.bytes += left + u64::from(room.each);
                let flying = Flying {
                    packet: id,
                    len,
                    end: burst.bytes,
                    arrives: None,
                    tries: 0,
                    is_done: false,
                    is_lost: false,
                };
                self.flight.push_back(flying);
                continue;
            }
            let part = if self.mechanism.cuts() { room.bytes - burst.bytes } else { 0 };
            self.begun = Some((id, len, left - part));
            burst.bytes += part;
            burst.is_cut = part > 0;
            return (burst, None);
        }
    }
}
