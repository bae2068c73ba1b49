//! The thread of one direction: reads frames from one device, sends them along the path, writes them to the other device.
//!
//! The thread sleeps until a frame comes or the first packet may leave the path, whichever is sooner. It does not wake for
//! departures within the path, which are processed later with their own times. Super-packets are cut before the queue. Packets of
//! a flow that leave the path together are joined for one write, as a network card's GRO would do, if their times are at most
//! [`JOIN_WITHIN`] apart.
//!
//! Frames are in buffers that are reused: after a short time nothing is allocated per packet.
use crate::packet_thread::flow_recorder::{FlowRecorder, PacketContext};
use crate::packet_thread::flows::Flows;
use crate::packet_thread::frame::{Header, Join, Offload, Segments, corrupt, mark_ce};
use crate::packet_thread::frame_recorder::{FrameRecorder, Recorders};
use crate::packet_thread::lateness::Lateness;
use crate::packet_thread::round_trips::RoundTrips;
use crate::packet_thread::run_config::RunConfig;
use crate::packet_thread::view::{HopView, View};
use crate::packet_thread::waiting::Waiting;
use narrows_core::{DropReason, PacketId, PacketMeta, Role, Span, Time};
use narrows_host::Clock;
use narrows_host::priority::{Work, keep_times};
use narrows_world::path::{Delivery, Path, PathObserver as _};
use rustix::fd::AsFd;
use rustix::io::{Errno, readv, writev};
use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A direction's thread.
pub struct Pump<'a, D> {
    from: &'a D,
    to: &'a D,
    clock: Clock,
    path: Path,
    flows: Flows,
    recorders: Recorders,
    lateness: Lateness,
    /// End of the warm-up; the epoch once it is over.
    warmup: Time,
    /// When packets were last handed over.
    handed_over: Time,
    shared: Shared,
    /// When the view was last made, and the flow table's version then.
    viewed: Time,
    viewed_flows: u64,
    frames: Vec<Frame>,
    /// The next segment, before it has a packet id.
    spare: Vec<u8>,
    /// Super-packets pass through the queue uncut.
    whole: bool,
    /// Packets that leave the path together are joined for one write.
    join: bool,
    linger: Span,
    seed: u64,
    stray: u64,
    refused: u64,
    /// The run has no end of its own but a command's, which may remove its device: the records go on without it.
    outlives_device: bool,
    is_device_gone: bool,
}

/// Parts that the thread shares with other threads.
pub struct Shared {
    /// The state that monitors see.
    pub view: Arc<Mutex<View>>,
    /// Shared with the other direction: round trips of flows.
    pub rounds: RoundTrips,
    /// Shared with the other direction: arrivals that it sees.
    pub waiting: Waiting,
}

/// The parts of a direction after its end.
pub struct Outcome {
    /// The hops and their records.
    pub path: Path,
    /// The flow table.
    pub flows: Flows,
    /// The records of flows.
    pub flow_recorder: FlowRecorder,
    /// The capture, if there was one.
    pub frames: Option<FrameRecorder>,
    /// The thread's timing.
    pub lateness: Lateness,
    /// Memory of the frame buffers, bytes.
    pub frame_bytes: usize,
    /// Frames that belonged to no flow or were malformed.
    pub stray: u64,
    /// Packets that the receiving device did not take.
    pub refused: u64,
    /// The device that was read has been removed.
    pub is_device_gone: bool,
}

/// Packets that leave the path at most this far apart are joined for one write.
pub const JOIN_WITHIN: Span = Span::us(50);
/// Minimum interval between wake-ups for handing packets over.
const MIN_APART: Span = Span::us(50);
/// Maximum length of a sleep.
const LONGEST_SLEEP: Span = Span::ms(50);
/// Maximum number of frames read before due packets are written.
const READS_AT_A_TIME: usize = 32;
/// The largest frame that a device hands over.
const LARGEST: usize = 1 << 16;
/// Maximum number of packets in one write.
const MAX_JOINED: usize = 64;
/// Between two looks for the end, without a device to read.
const WITHOUT_DEVICE: Duration = Duration::from_millis(5);

/// Whether this is what the kernel says of a device that no longer exists.
fn is_gone(error: Errno) -> bool {
    [Errno::BADF, Errno::BADFD].contains(&error)
}

/// The bytes of a packet, its offload header and its flow context.
#[derive(Clone, Default)]
struct Frame {
    bytes: Vec<u8>,
    offload: Offload,
    context: PacketContext,
}

impl<'a, D: AsFd> Pump<'a, D> {
    /// Makes the thread's state for carrying frames from one device to the other.
    pub fn new(
        [from, to]: [&'a D; 2],
        run_config: RunConfig<'_>,
        path: Path,
        flows: Flows,
        flow_recorder: FlowRecorder,
        whole: bool,
        shared: Shared,
    ) -> Pump<'a, D> {
        Pump {
            from,
            to,
            clock: run_config.clock,
            path,
            flows,
            recorders: Recorders { flows: flow_recorder, frames: None, copies: Vec::new() },
            lateness: Lateness::start(),
            warmup: run_config.sampling.warmup,
            handed_over: Time::ZERO,
            shared,
            viewed: Time::ZERO,
            viewed_flows: 0,
            frames: Vec::new(),
            spare: Vec::with_capacity(LARGEST),
            whole,
            join: run_config.join,
            linger: run_config.linger,
            seed: run_config.scenario.seed,
            stray: 0,
            refused: 0,
            outlives_device: run_config.end.is_none(),
            is_device_gone: false,
        }
    }

    /// Records the packets, too.
    #[must_use]
    pub fn capturing(mut self, frames: Option<FrameRecorder>) -> Pump<'a, D> {
        self.recorders.frames = frames;
        self
    }

    /// Runs until it is stopped or until `end`, with everything recorded up to that time.
    pub fn run(mut self, stop: &AtomicBool, end: Option<Time>) -> Result<Outcome, Errno> {
        // A link fast enough for uncut super-packets keeps its thread busy, which would occupy a CPU at real-time priority.
        keep_times(if self.whole { Work::Ordinary } else { Work::Packets });
        self.lateness = Lateness::start();
        let mut buffer = vec![0; LARGEST].into_boxed_slice();
        let mut idle = true;
        loop {
            let now = self.clock.now();
            if stop.load(Ordering::Relaxed) || end.is_some_and(|end| now >= end) {
                break;
            }
            if self.warmup > Time::ZERO && now >= self.warmup {
                self.warmup = Time::ZERO;
                self.lateness = Lateness::start();
            }
            if self.is_device_gone {
                thread::sleep(WITHOUT_DEVICE);
            } else {
                let received =
                    if idle { self.sleep(now, end) } else { Ok(()) }.and_then(|()| self.receive(&mut buffer));
                idle = match received {
                    Err(error) if self.outlives_device && is_gone(error) => {
                        self.is_device_gone = true;
                        continue;
                    }
                    other => other?,
                };
            }
            self.advance(self.clock.now());
            self.hand_over()?;
            if self.path.sampled() > self.viewed {
                self.show();
            }
        }
        self.advance(end.unwrap_or(self.clock.now()));
        // Packets that left the path by then are delivered, because they are recorded as such.
        self.hand_over()?;
        self.lateness.stop();
        if let Some(end) = end.filter(|_| self.linger > Span::ZERO) {
            self.pass_on(stop, end + self.linger, &mut buffer)?;
        }
        Ok(Outcome {
            path: self.path,
            flows: self.flows,
            flow_recorder: self.recorders.flows,
            frames: self.recorders.frames,
            lateness: self.lateness,
            stray: self.stray,
            refused: self.refused,
            is_device_gone: self.is_device_gone,
            frame_bytes: self.frames.iter().map(|frame| frame.bytes.capacity() + size_of::<Frame>()).sum(),
        })
    }

    /// Lets packets pass until then without recording them.
    fn pass_on(&mut self, stop: &AtomicBool, until: Time, buffer: &mut [u8]) -> Result<(), Errno> {
        let lateness = std::mem::replace(&mut self.lateness, Lateness::start());
        let (records, stray, refused) = (self.path.take_records(), self.stray, self.refused);
        self.recorders.flows.close();
        self.recorders.frames.iter_mut().for_each(FrameRecorder::close);
        let mut idle = true;
        loop {
            let now = self.clock.now();
            if stop.load(Ordering::Relaxed) || now >= until {
                break;
            }
            if idle {
                self.sleep(now, Some(until))?;
            }
            idle = self.receive(buffer)?;
            self.advance(self.clock.now());
            self.hand_over()?;
        }
        self.path.put_records(records);
        (self.lateness, self.stray, self.refused) = (lateness, stray, refused);
        Ok(())
    }

    /// Updates the view, unless a monitor is just reading it.
    fn show(&mut self) {
        self.viewed = self.path.sampled();
        let Ok(mut view) = self.shared.view.try_lock() else { return };
        view.at = self.viewed;
        view.late = self.lateness.latest();
        if self.viewed_flows != self.flows.changes() {
            self.viewed_flows = self.flows.changes();
            view.flows.clear();
            view.flows.extend_from_slice(self.flows.keys());
        }
        view.hops.clear();
        for (queue, record) in self.path.hops() {
            let mut hop = HopView { latest: record.latest(), gauges: Vec::new() };
            queue.observe(&mut hop);
            view.hops.push(hop);
        }
    }

    /// Sleeps until a frame comes or a packet may leave the path.
    fn sleep(&mut self, now: Time, end: Option<Time>) -> Result<(), Errno> {
        // Packets that follow each other closely share a wake-up, as packets share an interrupt in a network card.
        let due = self.path.sleeps_until().map(|at| at.max(self.handed_over + MIN_APART));
        let until = [due, end].into_iter().flatten().fold(now + LONGEST_SLEEP, Time::min);
        self.shared.waiting.wait(self.from, self.clock, until, self.handed_over)?;
        self.lateness.woke(until, self.clock.now());
        Ok(())
    }

    /// Reads frames; returns whether all have been read for now.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, Errno> {
        let mut first_came = self.shared.waiting.first_came();
        for _ in 0..READS_AT_A_TIME {
            let mut offload = [0; Offload::LEN];
            let read = readv(self.from, &mut [IoSliceMut::new(&mut offload), IoSliceMut::new(buffer)]);
            match read {
                Ok(n) if n > Offload::LEN => {
                    let packet = &buffer[..n - Offload::LEN];
                    let read = self.clock.now();
                    self.shared.waiting.has_read(read);
                    self.take_in(Offload::from_bytes(offload), packet, first_came.take().unwrap_or(read));
                }
                Ok(_) => self.stray += 1,
                Err(Errno::AGAIN) => {
                    self.shared.waiting.found_empty(self.clock.now());
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Offers the packets of a frame that arrived at `now` to the path.
    fn take_in(&mut self, offload: Offload, packet: &[u8], now: Time) {
        self.lateness.read();
        let Ok(header) = Header::read(packet) else {
            self.stray += 1;
            return;
        };
        let Some(found) = self.flows.find(&header, now, &mut self.recorders.flows) else {
            self.stray += 1;
            return;
        };
        let meta = PacketMeta {
            hash: header.hash(self.seed),
            flow: found.flow,
            src: found.src,
            dst: found.dst,
            ecn: header.ecn,
            dscp: header.dscp,
            ack: header.tcp.map_or(0, |tcp| tcp.ack),
            role: header.tcp.map_or(Role::Other, |tcp| tcp.role),
            spin: self.shared.rounds.on_packet(&header, now),
            ..PacketMeta::default()
        };
        let headers = packet.len() - header.payload() as usize;
        let mut offset = 0;
        let mut offer = |pump: &mut Pump<'_, D>, offload: Offload| {
            let ip_len = pump.spare.len();
            let payload = (ip_len - headers.min(ip_len)) as u32;
            let context = pump.recorders.flows.arrives(&found, &header, offset, payload, now);
            offset += payload;
            let id = pump.path.insert(meta, ip_len as u32, found.route);
            if let Some(frames) = &mut pump.recorders.frames {
                frames.arrives(id, offload, &pump.spare, now);
            }
            let frame = pump.frame(id);
            (frame.offload, frame.context) = (offload, context);
            let bytes = std::mem::take(&mut frame.bytes);
            pump.frames[id.index()].bytes = std::mem::replace(&mut pump.spare, bytes);
            pump.path.offer(id, now, &mut pump.recorders);
            pump.copy_frames();
        };
        if self.whole {
            self.spare.clear();
            self.spare.extend_from_slice(packet);
            return offer(self, offload);
        }
        let Ok(mut segments) = Segments::new(offload, packet) else {
            self.stray += 1;
            return;
        };
        while let Some(offload) = segments.next_into(&mut self.spare) {
            offer(self, offload);
        }
    }

    /// Handles everything that is due in the path.
    fn advance(&mut self, now: Time) {
        self.path.advance(now, &mut self.recorders);
        self.copy_frames();
    }

    /// Copies the frames of packets that the path has copied, in the order in which it did.
    fn copy_frames(&mut self) {
        for (original, copy) in std::mem::take(&mut self.recorders.copies) {
            let original = self.frame(original).clone();
            *self.frame(copy) = original;
        }
    }

    fn frame(&mut self, id: PacketId) -> &mut Frame {
        if id.index() >= self.frames.len() {
            self.frames.resize_with(id.index() + 1, Frame::default);
        }
        &mut self.frames[id.index()]
    }

    /// Writes the packets that have left the path.
    fn hand_over(&mut self) -> Result<(), Errno> {
        let mut next = self.next_delivery();
        if next.is_some() {
            self.handed_over = self.clock.now();
        }
        while let Some(first) = next {
            let frame = &self.frames[first.id.index()];
            let mut join = if self.join && !first.corrupt { Join::start(frame.offload, &frame.bytes) } else { None };
            let mut group = Group::of(first.id);
            let mut last = first.at;
            loop {
                next = self.next_delivery();
                let joins = |next: &Delivery| next.at.since(last) <= JOIN_WITHIN && !next.corrupt;
                let Some(delivery) = next.filter(joins) else { break };
                let frame = &self.frames[delivery.id.index()];
                let joins = join.as_mut().is_some_and(|join| join.takes(frame.offload, &frame.bytes));
                if !joins || !group.push(delivery.id) {
                    break;
                }
                last = delivery.at;
            }
            self.write(group.packets(), join)?;
        }
        Ok(())
    }

    /// The next packet that has left the path, recorded and, if need be, marked.
    fn next_delivery(&mut self) -> Option<Delivery> {
        let delivery = self.path.delivered()?;
        self.lateness.handed_over(self.clock.now().since(delivery.at));
        let frame = &mut self.frames[delivery.id.index()];
        if delivery.marked {
            mark_ce(&mut frame.bytes);
        }
        let flow = self.path.meta(delivery.id).flow;
        if let Some(frames) = &mut self.recorders.frames {
            frames.delivered(delivery.id, delivery.at);
        }
        if delivery.corrupt {
            corrupt(&mut frame.offload, &mut frame.bytes, delivery.at.as_ns());
            self.recorders.dropped(self.path.meta(delivery.id), DropReason::Corrupted);
            return Some(delivery);
        }
        self.recorders.flows.delivered(flow, frame.context, frame.bytes.len() as u32, delivery.queued, delivery.at);
        Some(delivery)
    }

    /// Writes packets that belong together, and frees them.
    fn write(&mut self, packets: &[PacketId], join: Option<Join>) -> Result<(), Errno> {
        let first = &mut self.frames[packets[0].index()];
        let payload_at = join.as_ref().map_or(0, Join::payload_at);
        let offload = join.map_or(first.offload, |join| join.finish(&mut first.bytes)).to_bytes();
        let mut pieces = [IoSlice::new(&[]); MAX_JOINED + 1];
        pieces[0] = IoSlice::new(&offload);
        pieces[1] = IoSlice::new(&self.frames[packets[0].index()].bytes);
        for (piece, id) in pieces[2..].iter_mut().zip(&packets[1..]) {
            *piece = IoSlice::new(&self.frames[id.index()].bytes[payload_at..]);
        }
        let written = loop {
            match writev(self.to, &pieces[..=packets.len()]) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        for &id in packets {
            self.path.release(id);
        }
        match written {
            Ok(_) => self.shared.waiting.look_for_answers(self.to, self.clock),
            Err(error) if is_gone(error) && !self.outlives_device => Err(error),
            Err(_) => {
                self.refused += packets.len() as u64;
                Ok(())
            }
        }
    }
}

/// The packets of one write.
struct Group {
    packets: [PacketId; MAX_JOINED],
    count: usize,
}

impl Group {
    fn of(first: PacketId) -> Group {
        Group { packets: [first; MAX_JOINED], count: 1 }
    }

    /// Adds a packet; returns whether there was room.
    fn push(&mut self, id: PacketId) -> bool {
        let Some(place) = self.packets.get_mut(self.count) else { return false };
        *place = id;
        self.count += 1;
        true
    }

    fn packets(&self) -> &[PacketId] {
        &self.packets[..self.count]
    }
}
