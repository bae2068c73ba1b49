//! Handlers for the two ends of a flow: packets at the receiver, acknowledgments and timers at the sender, and the packets that
//! both send.
use super::{Hosts, arm};
use crate::endpoint::{Armed, Endpoint, HeaderBits, Outgoing, Syn};
use crate::event::{EventKind, Events, Order};
use crate::host::{InFlight, ReturnPipe};
use crate::segment::{Returning, Segment, SegmentKind};
use crate::side::{Answer, Delivery, Departure, Receivers, Side, Uplink as _};
use crate::transport::{Carried, Transport, dispatch};
use narrows_core::{DropReason, Dscp, Ecn, PacketId, PacketMeta, Time};
use narrows_world::network::{Edge as _, Network, Transit};

impl<S: Side<Uplink = Network<Segment>>> Hosts<S> {
    #[inline(always)]
    pub(super) fn arrive(&mut self, network: &mut Network<Segment>, id: PacketId) {
        let segment = *network.packet(id);
        let meta = network.remove(id);
        if S::RECORDS {
            self.record_arrival(id, &segment);
        }
        let flow_index = meta.flow.0 as usize;
        match segment.kind {
            SegmentKind::Data | SegmentKind::Syn if !S::HAS_RECEIVERS => S::deliver(self, &meta, &segment),
            SegmentKind::Data => self.receive_data(network, flow_index, &segment, meta.ecn == Ecn::Ce),
            SegmentKind::Syn => self.answer_syn(network, flow_index),
            SegmentKind::Ack | SegmentKind::SynAck => self.return_from_hops(flow_index, id, meta.ecn == Ecn::Ce),
            // The checksum fails.
            SegmentKind::Corrupt | SegmentKind::CorruptAnswer => self.dropped(&meta, &segment, DropReason::Corrupted),
        }
    }

    /// An acknowledgment that crossed hops now enters the constant part of its way.
    #[inline(never)]
    fn return_from_hops(&mut self, flow_index: usize, id: PacketId, marked: bool) {
        let mut what = self.acks[id.index()];
        what.mark(marked);
        self.return_now(flow_index, what);
    }

    /// A packet from a sender in another part enters the network.
    #[inline(never)]
    pub(super) fn take_over(&mut self, network: &mut Network<Segment>, departure: &Departure) {
        let &Departure { meta, segment, hop, reached, .. } = departure;
        let hop = usize::from(hop);
        if S::KEEPS_ORDER {
            let before = if meta.arrived > self.now { Order::default() } else { self.present.reached };
            self.present.reached = before.max(reached);
        }
        self.now = meta.arrived;
        self.meter.on_packet();
        let id = network.insert_at(hop, &meta, segment, self.now, |_| {});
        network.enqueue(hop, id, self.now, self);
    }
}

impl Hosts<Receivers> {
    /// A packet from the network in another part arrives at its receiver.
    #[inline(always)]
    pub(super) fn take_delivery(&mut self, uplink: &mut Vec<Departure>, delivery: &Delivery) {
        let Delivery { segment, at, flow, marked, .. } = delivery;
        self.now = *at;
        match segment.kind {
            SegmentKind::Syn => self.answer_syn(uplink, *flow as usize),
            _ => self.receive_data(uplink, *flow as usize, segment, *marked),
        }
    }
}

impl<S: Side> Hosts<S> {
    #[inline(always)]
    fn receive_data(&mut self, network: &mut S::Uplink, flow_index: usize, segment: &Segment, marked: bool) {
        let transport = &self.flows[flow_index].transport;
        dispatch!(transport, End => self.receive::<End>(network, flow_index, segment, marked));
    }

    /// The receiver gets a packet with data.
    #[inline(always)]
    fn receive<End: Carried>(&mut self, network: &mut S::Uplink, flow_index: usize, segment: &Segment, marked: bool) {
        let flow = &mut self.flows[flow_index];
        let Some(ends) = End::of(&mut flow.transport) else { return };
        if ends.must_report(segment) {
            return self.receive_after_report::<End>(network, flow_index, segment, marked);
        }
        let Transit { ip_len, queued, extra_segments, .. } = segment.transit;
        let headers = flow.header * (1 + u32::from(extra_segments));
        let payload = ip_len - headers.min(ip_len);
        let arrival = ends.on_packet(segment, payload, marked, self.now);
        if S::FIGURES {
            if let Some(sent) = ends.datagram_sent(segment) {
                flow.record.datagram(self.now.since(sent));
            }
            flow.record.received(ip_len, arrival.new, queued);
        }
        if arrival.acknowledge {
            let ack = ends.acknowledge(segment.subflow, self.now);
            // A call's request for a missing packet leaves its next report due.
            arm_receiver(&mut self.events, ends, flow_index);
            self.send_back(network, flow_index, ack);
        } else {
            arm_receiver(&mut self.events, ends, flow_index);
        }
        if arrival.complete {
            self.complete(flow_index);
        }
    }

    /// The same after the acknowledgment that the receiver must send first.
    #[cold]
    #[inline(never)]
    fn receive_after_report<End: Carried>(
        &mut self,
        network: &mut S::Uplink,
        flow_index: usize,
        segment: &Segment,
        marked: bool,
    ) {
        let Some(ends) = End::of(&mut self.flows[flow_index].transport) else { return };
        let ack = ends.acknowledge(segment.subflow, self.now);
        self.send_back(network, flow_index, ack);
        self.receive::<End>(network, flow_index, segment, marked);
    }

    #[inline(never)]
    fn answer_syn(&mut self, network: &mut S::Uplink, flow_index: usize) {
        self.send_back(network, flow_index, Returning::SynAck);
    }

    #[inline(always)]
    fn send_back(&mut self, network: &mut S::Uplink, flow_index: usize, what: Returning) {
        if S::RECORDS {
            self.record_answer(flow_index, &what);
        }
        if self.flows[flow_index].place_of(what.subflow()).returns_over_hops {
            self.return_over_hops(network, flow_index, what);
        } else {
            self.return_now(flow_index, what);
        }
    }

    /// Sends a packet to the first hop of the way back.
    #[inline(never)]
    fn return_over_hops(&mut self, network: &mut S::Uplink, flow_index: usize, what: Returning) {
        let flow = &self.flows[flow_index];
        let (kind, subflow) = (what.kind(), what.subflow());
        let place = flow.place_of(subflow);
        let routes = &self.routes[place.routes as usize];
        let Some(&hop) = routes.back.first() else { return };
        let ip_len = flow.answer_len(&what);
        let hops_left = (routes.back.len() - 1) as u16;
        let (ecn, tag) = what.carried();
        let segment = Segment { transit: Transit::new(ip_len, hops_left), tag, kind, subflow, ..Segment::default() };
        let there = place.meta;
        let (ack, role) = what.visible();
        // The same 5-tuple in reverse, without the sender's code point.
        let (src, dst) = (there.dst, there.src);
        let meta = PacketMeta { hash: !there.hash, src, dst, dscp: Dscp::default(), ecn, ack, role, ..there };
        network.answer(self, usize::from(hop), meta, Answer { segment, what });
    }

    /// Puts a packet into the pipe back to its sender.
    #[inline(always)]
    fn return_now(&mut self, flow_index: usize, what: Returning) {
        let index = self.flows[flow_index].place_of(what.subflow()).pipe as usize;
        let arrives = self.now + self.pipes[index].delay;
        let underway = InFlight { arrives, flow: flow_index as u32, what };
        if S::RECORDS {
            self.record(|recorder, _| recorder.enters_pipe(index));
        }
        S::send_back(self, index, underway);
    }

    /// Puts a packet into a return pipe; packets leave it in order.
    #[inline(always)]
    pub(crate) fn enter_pipe(&mut self, pipe: usize, one: InFlight) {
        let ReturnPipe { underway, latest, .. } = &mut self.pipes[pipe];
        if underway.is_empty() {
            self.events.schedule_next(one.arrives, EventKind::Ack, pipe);
        }
        underway.push(one);
        if std::mem::replace(latest, one.arrives) == one.arrives && self.events.breaks_ties_by_side() {
            self.sort_in_pipe(pipe);
        }
    }

    /// Sorts the newest packet of a return pipe, by its flow, among those that arrive at the same time. So their order does not depend on
    /// when their receivers sent them, which may run on different threads.
    #[cold]
    #[inline(never)]
    fn sort_in_pipe(&mut self, pipe: usize) {
        let underway = &mut self.pipes[pipe].underway;
        for place in (1..underway.len()).rev() {
            let [before, one] = [place - 1, place].map(|n| underway.get(n).map(|one| (one.arrives, one.flow)));
            // Earlier arrivals stay in front, and so do earlier packets of the same flow.
            if before <= one {
                return;
            }
            underway.swap(place - 1, place);
            if S::RECORDS {
                self.recorder.iter_mut().for_each(|recorder| recorder.swap_in_pipe(pipe, place - 1, place));
            }
        }
    }

    pub(super) fn on_delayed_ack(&mut self, network: &mut S::Uplink, flow_index: usize) {
        let transport = &self.flows[flow_index].transport;
        dispatch!(transport, End => self.acknowledge_overdue::<End>(network, flow_index));
    }

    fn acknowledge_overdue<End: Carried>(&mut self, network: &mut S::Uplink, flow_index: usize) {
        let now = self.now;
        let Some(armed) = self.flows[flow_index].transport.armed() else { return };
        if armed.delayed_ack != Some(now) {
            return;
        }
        armed.delayed_ack = None;
        while let Some(ends) = End::of(&mut self.flows[flow_index].transport) {
            let Some(subflow) = ends.overdue(now) else {
                return arm_receiver(&mut self.events, ends, flow_index);
            };
            let ack = ends.acknowledge(subflow, now);
            self.send_back(network, flow_index, ack);
        }
    }

    #[inline(always)]
    pub(super) fn on_returning(&mut self, network: &mut S::Uplink, pipe: usize) {
        let Some(&InFlight { flow, ref what, .. }) = self.pipes[pipe].underway.get(0) else { return };
        let flow_index = flow as usize;
        let opens = matches!(what, Returning::SynAck);
        if S::RECORDS {
            self.record_return(pipe);
        }
        if opens {
            self.leave_pipe(pipe);
            return self.establish(network, flow_index);
        }
        dispatch!(&self.flows[flow_index].transport, End => self.take_ack::<End>(network, flow_index, pipe));
    }

    /// The first packet has left a return pipe.
    #[inline(always)]
    fn leave_pipe(&mut self, pipe: usize) {
        let underway = &mut self.pipes[pipe].underway;
        underway.drop_first();
        if let Some(next) = underway.get(0) {
            self.events.schedule_next(next.arrives, EventKind::Ack, pipe);
        }
        self.prefetch_senders(pipe);
    }

    /// The sender gets the first acknowledgment of a return pipe, which is read where it lies.
    #[inline(always)]
    fn take_ack<End: Carried>(&mut self, network: &mut S::Uplink, flow_index: usize, pipe: usize) {
        let flow = &mut self.flows[flow_index];
        let (Some(ends), Some(ack)) = (End::of(&mut flow.transport), self.pipes[pipe].underway.get(0)) else { return };
        let rtt = ends.on_ack(&ack.what, self.now);
        self.leave_pipe(pipe);
        if let Some(rtt) = rtt {
            if S::FIGURES {
                self.flows[flow_index].record.rtt(rtt);
            }
            if S::RECORDS {
                self.record(|recorder, _| recorder.rtt(flow_index, rtt));
            }
        }
        self.transmit_as::<End>(network, flow_index);
        if S::RECORDS {
            self.record_recovery(flow_index);
        }
    }

    #[cold]
    fn establish(&mut self, network: &mut S::Uplink, flow_index: usize) {
        let transport = &mut self.flows[flow_index].transport;
        let Some(connection) = transport.connection() else { return };
        let Some(rng) = connection.rng.take() else { return };
        let rtt = connection.syn.and_then(|syn| (syn.sent == 1).then(|| self.now.since(syn.first)));
        transport.established(rtt, self.now, rng);
        if S::RECORDS {
            self.record_establishment(flow_index, rtt);
        }
        self.transmit(network, flow_index);
    }

    /// Sends what may be sent, and arms the timers.
    #[inline]
    pub(super) fn transmit(&mut self, network: &mut S::Uplink, flow_index: usize) {
        dispatch!(&self.flows[flow_index].transport, End => self.transmit_as::<End>(network, flow_index));
    }

    #[inline(never)]
    fn transmit_as<End: Carried>(&mut self, network: &mut S::Uplink, flow_index: usize) {
        while self.meter.has_packets() {
            let flow = &mut self.flows[flow_index];
            let Some(ends) = End::of(&mut flow.transport) else { return };
            let Some(out) = ends.poll_transmit(&mut flow.place, flow.header, self.now) else {
                return arm_sender(&mut self.events, ends, flow_index, self.now);
            };
            self.launch(network, flow_index, out);
        }
    }

    /// A packet leaves its sender.
    #[inline(always)]
    fn launch(&mut self, network: &mut S::Uplink, flow_index: usize, out: Outgoing) {
        // Taken apart and made of single fields, so that each is written to its place and nowhere else.
        let Outgoing { segment: Segment { seq, transit, tag, kind, cwr, subflow }, bits } = out;
        let Transit { ip_len, extra_segments, .. } = transit;
        let place = self.flows[flow_index].place_of(subflow);
        let transit = Transit::new(ip_len, place.hops_left).with_extra_segments(extra_segments);
        if extra_segments > 0 && self.routes[place.routes as usize].splits {
            let segment = Segment { seq, transit, tag, kind, cwr, subflow };
            return self.launch_segments(network, flow_index, Outgoing { segment, bits });
        }
        let segment = Segment { seq, transit, tag, kind, cwr, subflow };
        self.meter.on_packet();
        if S::RECORDS {
            self.record_departure(flow_index, &segment, bits.ecn);
        }
        network.send(self, flow_index, segment, bits);
    }

    /// The first queue takes a packet of several segments apart: each enters by itself, and the first keeps the CWR flag (Linux
    /// `tcp_gso_segment`).
    #[cold]
    #[inline(never)]
    fn launch_segments(&mut self, network: &mut S::Uplink, flow_index: usize, out: Outgoing) {
        let Transit { ip_len: mut left, extra_segments, .. } = out.segment.transit;
        let flow = &self.flows[flow_index];
        let Transport::Tcp(tcp) = &flow.transport else { return };
        let full = flow.header + tcp.sender.mss();
        for number in 0..=extra_segments {
            let ip_len = left.min(full);
            left -= ip_len;
            let seq = out.segment.seq + u64::from(number);
            let segment =
                Segment { seq, transit: Transit::new(ip_len, 0), cwr: out.segment.cwr && number == 0, ..out.segment };
            self.launch(network, flow_index, Outgoing { segment, ..out });
        }
    }

    pub(super) fn on_retransmit(&mut self, network: &mut S::Uplink, flow_index: usize) {
        dispatch!(&self.flows[flow_index].transport, End => self.retransmit::<End>(network, flow_index));
    }

    #[inline(never)]
    fn retransmit<End: Carried>(&mut self, network: &mut S::Uplink, flow_index: usize) {
        let now = self.now;
        let Some(ends) = End::of(&mut self.flows[flow_index].transport) else { return };
        let Some(connection) = ends.connection() else { return };
        if connection.armed.retransmit != Some(now) {
            return;
        }
        connection.armed.retransmit = None;
        let syn = connection.syn_deadline();
        if syn.is_some_and(|at| at <= now) {
            return self.send_syn(network, flow_index);
        }
        let want = ends.next_timer(now);
        if want.is_some_and(|at| at <= now) {
            ends.on_timer(now);
            self.transmit_as::<End>(network, flow_index);
            if S::RECORDS {
                self.record_recovery(flow_index);
            }
            return;
        }
        if let Some(connection) = ends.connection() {
            let armed = &mut connection.armed.retransmit;
            arm(&mut self.events, armed, syn.or(want), EventKind::Retransmit, flow_index);
        }
    }

    pub(super) fn on_pace(&mut self, network: &mut S::Uplink, flow_index: usize) {
        dispatch!(&self.flows[flow_index].transport, End => self.pace::<End>(network, flow_index));
    }

    #[inline(never)]
    fn pace<End: Carried>(&mut self, network: &mut S::Uplink, flow_index: usize) {
        let Some(ends) = End::of(&mut self.flows[flow_index].transport) else { return };
        let Some(armed) = ends.armed() else { return };
        if armed.pace == Some(self.now) {
            armed.pace = None;
            ends.on_pace(self.now);
            self.transmit_as::<End>(network, flow_index);
        }
    }

    pub(super) fn send_syn(&mut self, network: &mut S::Uplink, flow_index: usize) {
        let flow = &mut self.flows[flow_index];
        let (transit, steady) = (Transit::new(flow.handshake_len(), 0), flow.transport.steady_syns());
        let Some(connection) = flow.transport.connection() else { return };
        let syn = connection.syn.unwrap_or(Syn { first: self.now, sent: 0, steady });
        if syn.is_last() {
            return;
        }
        connection.syn = Some(Syn { sent: syn.sent + 1, ..syn });
        let deadline = connection.syn_deadline();
        arm(&mut self.events, &mut connection.armed.retransmit, deadline, EventKind::Retransmit, flow_index);
        let segment = Segment { transit, kind: SegmentKind::Syn, ..Segment::default() };
        let bits = HeaderBits { ecn: Ecn::NotEct, spin: false };
        self.launch(network, flow_index, Outgoing { segment, bits });
    }
}

/// Arms the receiver's timer.
#[inline(always)]
fn arm_receiver<End: Endpoint>(events: &mut Events, ends: &mut End, flow_index: usize) {
    let want = ends.next_ack();
    if let Some(armed) = ends.armed() {
        arm(events, &mut armed.delayed_ack, want, EventKind::DelayedAck, flow_index);
    }
}

/// Arms the sender's timers.
#[inline(always)]
fn arm_sender<End: Endpoint>(events: &mut Events, ends: &mut End, flow_index: usize, now: Time) {
    let Some(&mut Armed { retransmit, .. }) = ends.armed() else { return };
    // The pending event is early enough for most timers. When it comes, the timer's time is computed.
    let timer = match retransmit {
        Some(pending) if ends.needs_no_timer_before(pending) => None,
        _ => ends.next_timer(now),
    };
    let pace = ends.next_pace(now);
    if let Some(armed) = ends.armed() {
        arm(events, &mut armed.retransmit, timer, EventKind::Retransmit, flow_index);
        arm(events, &mut armed.pace, pace, EventKind::Pace, flow_index);
    }
}
