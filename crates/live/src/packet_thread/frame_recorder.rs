//! The capture of one direction: the first bytes of each packet, and what happens to it.
use crate::packet_thread::flow_recorder::FlowRecorder;
use crate::packet_thread::frame::{Offload, complete_checksum, mark_ce};
use narrows_core::{DropReason, PacketId, PacketMeta, Span, Time};
use narrows_results::packets::{Capture, Event, FrameLog, SNAP, What};
use narrows_scenario::Scenario;
use narrows_world::network::{Decision, DecisionKind};
use narrows_world::path::PathObserver;
use narrows_world::record::packets::{events, hops};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes a [`FrameLog`].
pub struct FrameRecorder {
    log: FrameLog,
    /// The side from which this direction's packets come.
    side: u8,
    /// The direction's hops, by their index in the scenario.
    hops: Vec<u16>,
    /// The packets in the path, by [`PacketId::index`].
    places: Vec<Place>,
    /// Packets that both directions have recorded so far.
    taken: Arc<AtomicU32>,
    /// The packet whose checksum is completed.
    scratch: Vec<u8>,
    is_closed: bool,
}

/// A place in the path.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The packet's index in the log.
    row: Option<u32>,
    /// It waits in a queue.
    queued: bool,
}

/// Packets for which room is reserved before the run; a capture of more than these may grow while packets pass.
const RESERVED: usize = 1 << 20;
/// Events of a packet that crosses one hop.
const EVENTS: usize = 5;

impl FrameRecorder {
    /// The recorders of both directions, whose hops have these indices in the scenario. `sides` names the two sides.
    pub fn both(
        scenario: &Scenario,
        directions: [&[usize]; 2],
        sides: [&str; 2],
        capture: Capture,
    ) -> [FrameRecorder; 2] {
        let taken = Arc::new(AtomicU32::new(0));
        let room = (capture.limit as usize).min(RESERVED);
        [0, 1].map(|side| FrameRecorder {
            log: FrameLog {
                about: "real packets in front of and behind queues in user space",
                name: scenario.name.clone(),
                seed: scenario.seed,
                end: Time::ZERO,
                capture,
                sides: sides.map(str::to_owned),
                hops: hops(scenario),
                frames: Vec::with_capacity(room),
                bytes: Vec::with_capacity(room * SNAP),
                events: Vec::with_capacity(room * EVENTS),
                missed: 0,
            },
            side: side as u8,
            hops: directions[side].iter().map(|&hop| hop as u16).collect(),
            places: Vec::new(),
            taken: Arc::clone(&taken),
            scratch: Vec::new(),
            is_closed: false,
        })
    }

    /// The packet at this place is not recorded.
    fn leaves_out(&mut self, id: PacketId) {
        if self.places.len() <= id.index() {
            self.places.resize(id.index() + 1, Place::default());
        }
        self.places[id.index()] = Place::default();
    }

    /// A packet arrives that gets this place in the path.
    pub fn arrives(&mut self, id: PacketId, offload: Offload, packet: &[u8], now: Time) {
        self.leaves_out(id);
        if self.is_closed || !self.log.capture.covers(now) {
            return;
        }
        if self.taken.fetch_add(1, Ordering::Relaxed) >= self.log.capture.limit {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            self.log.missed += 1;
            return;
        }
        let row = if offload.needs_checksum() && !offload.is_super() {
            self.scratch.clear();
            self.scratch.extend_from_slice(packet);
            let mut offload = offload;
            // A checksum that cannot be completed stays as the kernel handed it over.
            let _ = complete_checksum(&mut offload, &mut self.scratch);
            self.log.push(self.side, &self.scratch, now)
        } else {
            self.log.push(self.side, packet, now)
        };
        self.places[id.index()].row = Some(row);
    }

    /// A packet is handed to the device at the other end.
    pub fn delivered(&mut self, id: PacketId, at: Time) {
        let place = self.places.get_mut(id.index()).map(std::mem::take);
        self.tell(place.and_then(|place| place.row), at, What::Arrived);
    }

    /// Packets that arrive from now on are left out.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// A queue has decided about a packet; its link has handed it over now.
    fn decided(&mut self, decision: Decision, now: Time) {
        let Some(place) = self.places.get_mut(decision.packet.index()) else { return };
        let happened = events(decision, self.hops[decision.hop], &mut place.queued, now);
        let row = if let DecisionKind::Dropped(_) = decision.verdict { std::mem::take(place).row } else { place.row };
        if let (DecisionKind::Marked, Some(row)) = (decision.verdict, row) {
            self.log.mark(row, mark_ce);
        }
        // Between dequeuing and the device there is nothing that a capture could show.
        for (at, what) in happened.into_iter().flatten().filter(|(_, what)| !matches!(what, What::Dequeued(_))) {
            self.tell(row, at, what);
        }
    }

    fn tell(&mut self, row: Option<u32>, at: Time, what: What) {
        if let Some(packet) = row {
            self.log.events.push(Event { at, packet, what });
        }
    }

    /// The log of both directions, if they have recorded one.
    pub fn finish(recorders: [Option<FrameRecorder>; 2], end: Time) -> Option<FrameLog> {
        let [Some(there), Some(back)] = recorders else { return None };
        let mut log = there.log;
        log.merge(back.log);
        log.end = end;
        Some(log)
    }
}

/// The records of one direction.
pub struct Recorders {
    /// Those of flows.
    pub flows: FlowRecorder,
    /// The capture, if there is one.
    pub frames: Option<FrameRecorder>,
    /// Packets that the path has copied, each with its copy, whose frames are still to be copied.
    pub copies: Vec<(PacketId, PacketId)>,
}

impl PathObserver for Recorders {
    const DECISIONS: bool = true;

    fn dropped(&mut self, meta: &PacketMeta, reason: DropReason) {
        self.flows.dropped(meta, reason);
    }

    fn copied(&mut self, original: PacketId, copy: PacketId) {
        self.copies.push((original, copy));
        if let Some(frames) = &mut self.frames {
            frames.leaves_out(copy);
        }
    }

    fn sampled(&mut self, now: Time, spacing: Span) {
        self.flows.sampled(now, spacing);
    }

    fn warmed_up(&mut self, now: Time) {
        self.flows.warmed_up(now);
    }

    fn decided(&mut self, decision: Decision, now: Time) {
        if let Some(frames) = &mut self.frames {
            frames.decided(decision, now);
        }
    }
}
