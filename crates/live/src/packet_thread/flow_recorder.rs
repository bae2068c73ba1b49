//! The flow records of one direction.
use crate::packet_thread::found::{Found, OTHERS};
use crate::packet_thread::frame::{Header, TcpHeader};
use crate::packet_thread::quic_record::{QuicRecord, Truth};
use narrows_core::{DropReason, FlowId, PacketId, PacketMeta, Rate, Span, Time};
use narrows_host::EndpointStats;
use narrows_host::{FlowKey, protocol};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::path::PathObserver;
use narrows_world::record::application::Messages;
use narrows_world::record::flow::FlowRecord;
use narrows_world::record::video::VideoRecord;
use narrows_world::record::{self, Bound};
use std::collections::HashMap;
use std::sync::Arc;

/// Records the arrivals, losses and deliveries of a direction's flows.
pub struct FlowRecorder {
    flows: Vec<Entry>,
    /// The number of flows with series, which are the first ones, and the points of a series.
    tracked: usize,
    points: usize,
    /// The endpoints' reports about flows whose data go in this direction.
    endpoint_stats: Arc<EndpointStats>,
    /// For each flow, whether its data go in this direction; empty means all.
    own: Vec<bool>,
    counts: bool,
    /// The run is over. Packets may still pass, but nothing is recorded.
    is_over: bool,
    /// The flow without series whose report was taken last, round-robin.
    turn: usize,
    /// Found flows that have no slot, or lost theirs.
    others: Others,
    bound: Option<Bound>,
    /// Recording has ended.
    is_closed: bool,
}

/// The sum of flows that have no slot.
struct Others {
    entry: Entry,
    /// The slot that was examined last as one to be reused.
    hand: usize,
}

/// A flow's record, and the state of its streams.
pub struct Entry {
    /// The record.
    pub record: FlowRecord,
    /// The 5-tuple of a found flow. Only reports about this flow count.
    key: Option<FlowKey>,
    /// Some of its datagrams have another 5-tuple than its first packet.
    has_several_sockets: bool,
    /// Packets between arrival and delivery or loss.
    in_flight: u32,
    /// The flow was first seen after its SYN. What its sender counted before is not known yet, and must not count.
    joined_late: bool,
    /// Segments that arrived again. Used for senders that report nothing.
    retransmits: u64,
    /// The sender's counters since its start, and their values at the end of the warm-up.
    stats: SenderStats,
    stats_before: SenderStats,
    /// The streams of its connections: a program's flow may have several.
    streams: Vec<Stream>,
    /// Index of a connection's stream by its ports, and the last one found.
    by_ports: HashMap<u32, u32>,
    latest: Option<(u32, u32)>,
    /// Datagrams that the sender's system did not take.
    pub unsent: u64,
    /// An error ended its connection early.
    pub is_broken: bool,
    /// Number of quarter seconds in which payload arrived, and the last of them.
    active: u32,
    latest_active: Option<u64>,
    /// Of a QUIC flow whose data go in this direction.
    pub quic: Option<Box<QuicRecord>>,
    /// Of a video call whose data go in this direction, once it has ended.
    pub video: Option<Box<VideoRecord>>,
    /// Of a connection with messages whose data go in this direction, once it has ended.
    pub messages: Option<Box<Messages>>,
    /// The rate at which its encoder aims.
    target: Option<Rate>,
    /// Payload that the receiving application of a call has read, if it says so. It knows RTP's headers.
    told: Option<u64>,
    /// When its first packet arrived.
    pub first: Option<Time>,
    /// When its last packet arrived.
    pub last: Time,
}

/// The stream of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Highest sequence number that arrived, and highest that was delivered, each plus one.
    came: Option<u32>,
    through: Option<u32>,
}

impl Stream {
    /// The sequence number after the SYN's is the first byte's. Without a SYN the beginning of the stream is unknown.
    fn begun(tcp: &TcpHeader) -> Stream {
        Stream { came: None, through: tcp.syn.then(|| tcp.seq.wrapping_add(1)) }
    }
}

/// State of a packet between its arrival and its delivery.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketContext {
    /// Sequence number after its last byte.
    end: u32,
    payload: u32,
    /// Index of its connection's stream; `None` for datagrams.
    stream: Option<u32>,
    forward: bool,
    /// The subflow of a QUIC connection.
    subflow: u8,
    /// When a datagram arrived; `None` for other packets, and for flows without a slot.
    datagram: Option<Time>,
}

impl FlowRecorder {
    /// For `flows` flows; more are added as they appear. `points` is the capacity of a series. With a warm-up, what happens
    /// before its end is not counted.
    pub fn new(
        flows: usize,
        tracked: usize,
        points: usize,
        endpoint_stats: Arc<EndpointStats>,
        has_warmup: bool,
    ) -> FlowRecorder {
        let mut flow_recorder = FlowRecorder {
            flows: Vec::new(),
            tracked,
            points,
            endpoint_stats,
            own: Vec::new(),
            counts: !has_warmup,
            is_over: false,
            turn: 0,
            others: Others { entry: Entry::new(None, 1), hand: 0 },
            bound: None,
            is_closed: false,
        };
        flow_recorder.grow(flows);
        flow_recorder
    }

    /// Bounds the number of points of each series, for a run of unknown length.
    #[must_use]
    pub fn bounded(mut self, bound: Bound) -> FlowRecorder {
        self.bound = Some(bound);
        self.flows.iter_mut().for_each(|entry| entry.record.bound(bound));
        self
    }

    /// Sets the flows whose data go in this direction. Reports about other flows are for the other direction's flow recorder.
    #[must_use]
    pub fn of(mut self, own: Vec<bool>) -> FlowRecorder {
        self.own = own;
        self
    }

    /// Sets which flows are QUIC's, with the truth for those that have a detector.
    #[must_use]
    pub fn with_quic(mut self, flows: &[Option<Option<Truth>>]) -> FlowRecorder {
        for (number, truth) in flows.iter().enumerate() {
            let is_own = self.own.get(number).is_none_or(|&own| own);
            if let (Some(truth), Some(entry), true) = (truth, self.flows.get_mut(number), is_own) {
                entry.quic = Some(Box::new(QuicRecord::new(truth.as_ref(), entry.record.samples())));
            }
        }
        self
    }

    /// Sets which flows are video calls.
    #[must_use]
    pub fn with_video(mut self, flows: &[bool]) -> FlowRecorder {
        for (number, _) in flows.iter().enumerate().filter(|&(_, &is_video)| is_video) {
            let is_own = self.own.get(number).is_none_or(|&own| own);
            self.flows.get_mut(number).filter(|_| is_own).into_iter().for_each(|entry| entry.told = Some(0));
        }
        self
    }

    fn grow(&mut self, flows: usize) {
        // With many flows the distributions are coarser, as in the simulator.
        while self.flows.len() < flows {
            let tracked = self.flows.len() < self.tracked;
            let digits = if self.flows.len() < record::MANY_FLOWS { 3 } else { 1 };
            let mut entry = Entry::new(tracked.then_some(self.points), digits);
            self.bound.iter().for_each(|&bound| entry.record.bound(bound));
            self.flows.push(entry);
        }
    }

    /// The entry of a packet's flow.
    fn entry(&mut self, flow: FlowId) -> Option<&mut Entry> {
        if flow == OTHERS {
            return Some(&mut self.others.entry);
        }
        self.flows.get_mut(flow.0 as usize)
    }

    /// Frees a slot for a new flow. Of a few candidates, it takes the one with the least payload among those that have been
    /// silent for a while and have nothing in flight. Its figures are added to those of the others. Returns `None` if there is no
    /// such flow. Flows with series keep their slots.
    pub fn retire(&mut self, now: Time) -> Option<usize> {
        let mut least: Option<(u64, usize)> = None;
        for _ in self.tracked..self.flows.len().min(self.tracked + CANDIDATES) {
            let hand = &mut self.others.hand;
            *hand = if *hand + 1 < self.flows.len() { (*hand + 1).max(self.tracked) } else { self.tracked };
            let entry = &self.flows[*hand];
            if entry.in_flight > 0 || now.since(entry.last) < SILENT {
                continue;
            }
            let payload = entry.record.payload();
            if least.is_none_or(|(least, _)| payload < least) {
                least = Some((payload, *hand));
            }
        }
        let (_, place) = least?;
        self.add_to_others(place);
        Some(place)
    }

    /// Ends the recording of found flows: only the flows in these slots stay separate. All other flows become one entry behind
    /// the slots; returns its number if they carried any payload.
    pub fn keep(&mut self, places: &[usize]) -> Option<usize> {
        self.take_reports();
        self.is_closed = true;
        for place in 0..self.flows.len() {
            if !places.contains(&place) {
                self.add_to_others(place);
            }
        }
        let others = std::mem::replace(&mut self.others.entry, Entry::new(None, 1));
        (others.record.payload() > 0).then(|| {
            self.flows.push(others);
            self.flows.len() - 1
        })
    }

    fn add_to_others(&mut self, place: usize) {
        if !self.is_closed {
            self.take_report(place);
        }
        let old = std::mem::replace(&mut self.flows[place], Entry::new(None, 1));
        self.others.entry.absorb(old);
    }

    /// Ends the recording; packets may still pass.
    pub fn close(&mut self) {
        self.is_over = true;
    }

    /// Records an arrival. `payload` is the packet's own, which starts `offset` bytes into the payload that the header describes.
    pub fn arrives(&mut self, found: &Found, header: &Header, offset: u32, payload: u32, now: Time) -> PacketContext {
        let forward = found.forward;
        let mut context = PacketContext { payload, forward, ..PacketContext::default() };
        if self.is_over {
            return context;
        }
        if found.flow != OTHERS {
            self.grow(found.flow.0 as usize + 1);
        }
        let counts = self.counts;
        // Always present, because the flows have just grown to this number.
        let Some(entry) = self.entry(found.flow) else { return context };
        if entry.first.is_none() {
            entry.first = Some(now);
            entry.key = Some(header.key);
            entry.joined_late = header.tcp.as_ref().is_some_and(|tcp| !tcp.syn);
        }
        entry.last = now;
        let quarter = now.as_ns() / QUARTER.as_ns();
        if payload > 0 && forward && entry.latest_active != Some(quarter) {
            entry.latest_active = Some(quarter);
            entry.active += 1;
        }
        let alone = entry.in_flight == 0;
        entry.in_flight += 1;
        if let Some(quic) = entry.quic.as_mut().filter(|_| forward) {
            context.subflow = quic.sent(header.key.source_port, header.datagram(payload));
            return context;
        }
        if header.key.protocol == protocol::UDP && forward && found.flow != OTHERS {
            entry.has_several_sockets |= entry.key != Some(header.key);
            context.datagram = Some(now);
            return context;
        }
        // Streams are not followed for flows without a slot.
        let Some(tcp) = header.tcp.as_ref().filter(|_| forward && found.flow != OTHERS) else { return context };
        let index = entry.stream(&header.key, tcp, alone);
        let stream = &mut entry.streams[index as usize];
        let end = tcp.seq.wrapping_add(offset).wrapping_add(payload);
        if payload > 0 {
            match stream.came {
                // Modulo 2³², as sequence numbers are compared (RFC 9293 §3.4).
                Some(came) if (end.wrapping_sub(came) as i32) <= 0 => entry.retransmits += u64::from(counts),
                _ => stream.came = Some(end),
            }
        }
        PacketContext { end, stream: Some(index), ..context }
    }

    /// Records a delivery, at its time.
    pub fn delivered(&mut self, flow: FlowId, context: PacketContext, ip_len: u32, queued: Span, now: Time) {
        let is_over = self.is_over;
        let Some(entry) = self.entry(flow).filter(|_| !is_over) else { return };
        entry.in_flight = entry.in_flight.saturating_sub(1);
        if let Some(quic) = entry.quic.as_mut().filter(|_| context.forward) {
            quic.delivered(context.subflow, ip_len, queued);
            entry.record.received(ip_len, 0, queued);
        } else if context.forward {
            let new = if entry.told.is_some() { 0 } else { entry.first_time(context) };
            entry.record.received(ip_len, new, queued);
            if let Some(arrived) = context.datagram {
                entry.record.datagram(now.since(arrived));
            }
        }
    }

    /// The flows seen so far, by number.
    pub fn entries(&self) -> &[Entry] {
        &self.flows
    }

    /// Ends the recording and returns the flows, by number.
    pub fn into_entries(mut self) -> Vec<Entry> {
        if !self.is_closed {
            self.take_reports();
        }
        self.flows.iter_mut().for_each(|entry| entry.record.settle());
        self.flows
    }

    /// Takes all new reports of the endpoints.
    fn take_reports(&mut self) {
        for number in 0..self.flows.len() {
            self.take_report(number);
        }
    }

    fn take_report(&mut self, number: usize) -> Option<Meters> {
        if self.own.get(number) == Some(&false) {
            return None;
        }
        let entry = self.flows.get_mut(number)?;
        let report = self.endpoint_stats.take(number);
        if report.whose.is_some() && report.whose != entry.key {
            return None;
        }
        if report.whose.is_some() && std::mem::take(&mut entry.joined_late) {
            entry.stats_before = report.stats;
        }
        if let Some(quic) = &mut entry.quic {
            entry.record.arrived(0, quic.take(&report));
        }
        if let Some(told) = &mut entry.told {
            entry.record.arrived(0, report.payload - std::mem::replace(told, report.payload));
        }
        entry.video = report.video.or(entry.video.take());
        entry.messages = report.messages.or(entry.messages.take());
        entry.target = report.target;
        if self.counts {
            report.rtts.iter().for_each(|&rtt| entry.record.rtt(rtt));
            report.completions.iter().for_each(|&took| entry.record.completed(took));
        }
        entry.stats = report.stats;
        entry.unsent = report.refused;
        entry.is_broken |= report.trouble.is_some();
        report.meters
    }
}

/// Length of the intervals in which a flow is active or not.
const QUARTER: Span = Span::ms(250);
/// Maximum number of reports about flows without series that are taken per sample.
const AT_A_TIME: usize = 256;
/// A found flow may lose its slot after this much silence, which is longer than most retransmission timeouts.
const SILENT: Span = Span::s(1);
/// Number of flows examined when a slot is needed.
const CANDIDATES: usize = 8;
/// Maximum number of connections of one flow whose streams are followed. When there are more, all earlier ones are forgotten.
const MAX_STREAMS: usize = 1 << 16;

impl Entry {
    /// `points` is the capacity of its series, if it has any; `digits` are the decimal digits of its distributions.
    fn new(points: Option<usize>, digits: u8) -> Entry {
        Entry {
            record: FlowRecord::new(points, digits),
            key: None,
            has_several_sockets: false,
            in_flight: 0,
            joined_late: false,
            retransmits: 0,
            stats: SenderStats::default(),
            stats_before: SenderStats::default(),
            streams: Vec::new(),
            by_ports: HashMap::new(),
            latest: None,
            unsent: 0,
            is_broken: false,
            active: 0,
            latest_active: None,
            quic: None,
            video: None,
            messages: None,
            target: None,
            told: None,
            first: None,
            last: Time::ZERO,
        }
    }

    /// Adds another flow's figures to this entry, which sums several flows.
    fn absorb(&mut self, other: Entry) {
        let stats = other.stats();
        self.stats.retransmits += stats.retransmits;
        self.stats.timeouts += stats.timeouts;
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
        self.record.absorb(other.record);
    }

    /// Whether its packets are datagrams between two sockets. Jitter and loss of others would mix several sequences.
    pub fn is_one_sequence(&self) -> bool {
        !self.has_several_sockets && self.streams.is_empty()
    }

    /// The sender's counters since the end of the warm-up. If the sender reports nothing, the retransmissions that were seen
    /// here.
    pub fn stats(&self) -> SenderStats {
        SenderStats {
            retransmits: (self.stats.retransmits - self.stats_before.retransmits).max(self.retransmits),
            timeouts: self.stats.timeouts - self.stats_before.timeouts,
        }
    }

    /// Share of the time since the end of the warm-up in which payload arrived.
    pub fn active(&self, measured: Span) -> f64 {
        let steps = measured.as_ns().div_ceil(QUARTER.as_ns()).max(1);
        (f64::from(self.active) / steps as f64).min(1.0)
    }

    /// The stream of a packet's connection. Each SYN starts one. It replaces the previous stream with the same ports if nothing
    /// of the flow is in flight.
    fn stream(&mut self, key: &FlowKey, tcp: &TcpHeader, alone: bool) -> u32 {
        let ports = u32::from(key.source_port) << 16 | u32::from(key.destination_port);
        if let Some((_, index)) = self.latest.filter(|&(latest, _)| latest == ports && !tcp.syn) {
            return index;
        }
        let index = match self.by_ports.get(&ports) {
            Some(&index) if !tcp.syn => index,
            Some(&index) if alone => {
                self.streams[index as usize] = Stream::begun(tcp);
                index
            }
            _ => self.add(ports, tcp),
        };
        self.latest = Some((ports, index));
        index
    }

    #[cold]
    fn add(&mut self, ports: u32, tcp: &TcpHeader) -> u32 {
        if self.streams.len() >= MAX_STREAMS {
            (self.streams, self.by_ports) = (Vec::new(), HashMap::new());
        }
        let index = self.streams.len() as u32;
        self.streams.push(Stream::begun(tcp));
        self.by_ports.insert(ports, index);
        index
    }

    /// Bytes of a packet that were delivered for the first time: by how much it advances the stream. A hole is counted as
    /// delivered when a packet beyond it is, so holes need not be remembered.
    fn first_time(&mut self, context: PacketContext) -> u32 {
        let stream = context.stream.and_then(|index| self.streams.get_mut(index as usize));
        let Some(stream) = stream.filter(|_| context.payload > 0) else { return context.payload };
        let before = stream.through.unwrap_or(context.end.wrapping_sub(context.payload));
        let extra_segments = context.end.wrapping_sub(before) as i32;
        if extra_segments <= 0 {
            return 0;
        }
        stream.through = Some(context.end);
        extra_segments as u32
    }
}

impl PathObserver for FlowRecorder {
    fn dropped(&mut self, meta: &PacketMeta, _: DropReason) {
        let is_over = self.is_over;
        if let Some(entry) = self.entry(meta.flow).filter(|_| !is_over) {
            entry.in_flight = entry.in_flight.saturating_sub(1);
            entry.record.lost += 1;
        }
    }

    fn copied(&mut self, _: PacketId, _: PacketId) {}

    fn sampled(&mut self, now: Time, spacing: Span) {
        if self.is_over {
            return;
        }
        for number in 0..self.tracked.min(self.flows.len()) {
            let meters = self.take_report(number);
            let entry = &mut self.flows[number];
            entry.record.sample(now, spacing, meters);
            entry.target.iter().for_each(|&rate| entry.record.sample_target(now, rate));
            entry.quic.iter_mut().for_each(|quic| quic.sample(now, spacing));
        }
        // Flows without series take turns, a few per sample, so that thousands of them do not delay packets.
        for _ in self.tracked..self.flows.len().min(self.tracked + AT_A_TIME) {
            self.turn = if self.turn + 1 < self.flows.len() { self.turn + 1 } else { self.tracked };
            self.take_report(self.turn);
        }
    }

    fn warmed_up(&mut self, now: Time) {
        self.take_reports();
        self.counts = true;
        for entry in &mut self.flows {
            entry.record.restart();
            entry.quic.iter_mut().for_each(|quic| quic.restart(now));
            (entry.retransmits, entry.stats_before) = (0, entry.stats);
            (entry.active, entry.latest_active) = (0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_thread::frame::Header;
    use narrows_core::HostId;

    /// A program's flow has several connections, also one after the other at the same ports. Each has its own sequence numbers.
    #[test]
    fn regression_connections_of_one_flow_have_streams_of_their_own() {
        let found = Found { flow: FlowId(0), route: 0, forward: true, src: HostId(0), dst: HostId(1) };
        let mut flow_recorder = FlowRecorder::new(1, 1, 1, Arc::new(EndpointStats::new(1)), false);
        let mut pass = |port: u16, seq: u32, syn: bool, payload: u8| {
            let mut packet = vec![0x45, 0, 0, 40 + payload, 0, 0, 0, 0, 64, 6, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
            packet.extend([&port.to_be_bytes()[..], &[0, 80], &seq.to_be_bytes(), &[0; 4]].concat());
            packet.extend([0x50, if syn { 0x02 } else { 0x10 }, 0, 0, 0, 0, 0, 0]);
            packet.resize(40 + usize::from(payload), 0);
            let header = Header::read(&packet).unwrap();
            let context = flow_recorder.arrives(&found, &header, 0, payload.into(), Time::ZERO);
            flow_recorder.delivered(FlowId(0), context, packet.len() as u32, Span::ZERO, Time::ZERO);
        };
        for (port, seq) in [(1000, 7), (2000, 4_000_000_000), (1000, 3_000_000_000)] {
            pass(port, seq, true, 0);
            // The first packet comes after the second, whose delivery counted the bytes of both.
            pass(port, seq.wrapping_add(101), false, 100);
            pass(port, seq.wrapping_add(1), false, 100);
        }
        pass(2000, 4_000_000_201, false, 50);
        let entry = flow_recorder.into_entries().remove(0);
        assert_eq!(entry.record.payload(), 3 * 200 + 50);
        // Of each pair the second came behind the first.
        assert_eq!(entry.stats().retransmits, 3);
    }

    #[test]
    fn regression_each_report_reaches_the_recorder_of_its_flows_direction() {
        let endpoint_stats = Arc::new(EndpointStats::new(2));
        let mut flow_recorders = [[true, false], [false, true]]
            .map(|own| FlowRecorder::new(2, 2, 10, Arc::clone(&endpoint_stats), false).of(own.to_vec()));
        for flow in 0..2 {
            endpoint_stats.post(flow, |report| report.completions.push(Span::ms(1)));
        }
        for flow_recorder in flow_recorders.iter_mut().rev() {
            flow_recorder.sampled(Time::ZERO + Span::ms(1), Span::ms(1));
        }
        let counted = flow_recorders.map(|flow_recorder| {
            let entries = flow_recorder.into_entries();
            let summary = |entry: &Entry| entry.record.summary(String::new(), "", Span::s(1), entry.stats());
            entries.iter().map(|entry| summary(entry).completion_s.is_some()).collect::<Vec<_>>()
        });
        assert_eq!(counted, [[true, false], [false, true]]);
    }
}
