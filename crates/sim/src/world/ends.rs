//! The two ends of a flow: segments at the receiver, acknowledgments at the sender.
use super::{Departure, Hosts, INITIAL_LEN, SYN_LEN, Segment, SegmentKind, Side, arm};
use crate::event::Kind;
use crate::host::{Armed, Connection, InFlight, MAX_SYNS, Returning, Tcp, Transport};
use crate::tcp::{Incoming, Outgoing, milliseconds};
use narrows_core::{Ecn, FlowId, PacketId, PacketMeta, Role};
use narrows_world::network::{Network, Transit};

impl Hosts {
    #[inline(always)]
    pub(super) fn arrive(&mut self, network: &mut Network<Segment>, id: PacketId) {
        let (meta, segment) = network.remove(id);
        let flow_index = meta.flow.0 as usize;
        let flow = &mut self.flows[flow_index];
        let Transit { ip_len, waited, .. } = segment.transit;
        let payload = ip_len - flow.header.min(ip_len);
        match (segment.kind, &mut flow.transport) {
            (SegmentKind::Data, Transport::Tcp(tcp)) => {
                let Segment { seq, tag: stamp, cwr, .. } = segment;
                let incoming = Incoming { seq, len: payload, stamp, marked: meta.ecn == Ecn::Ce, cwr };
                let arrival = tcp.receiver.on_segment(incoming, self.now);
                let new = if arrival.is_new { payload } else { 0 };
                flow.record.received(ip_len, new, waited);
                let complete = tcp.connection.receive(new);
                if arrival.acknowledge {
                    self.acknowledge(network, flow_index);
                } else {
                    let want = tcp.receiver.next_timer();
                    arm(&mut self.events, &mut tcp.connection.armed.delayed_ack, want, Kind::DelayedAck, flow_index);
                }
                if complete {
                    self.complete(flow_index);
                }
            }
            (SegmentKind::Data, Transport::Quic(_)) => {
                self.arrive_quic(network, flow_index, &segment, meta.ecn == Ecn::Ce)
            }
            (SegmentKind::Datagram, _) => {
                flow.record.received(ip_len, payload, waited);
            }
            (SegmentKind::Syn, Transport::Tcp(_) | Transport::Quic(_)) => {
                self.answer_syn(network, flow_index);
            }
            (SegmentKind::Ack | SegmentKind::SynAck, _) => self.return_from_hops(flow_index, id),
            (SegmentKind::Data | SegmentKind::Syn, Transport::Udp(_)) => {}
        }
    }

    #[inline(never)]
    fn answer_syn(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        self.send_back(network, flow_index, SegmentKind::SynAck, Returning::SynAck);
    }

    /// What came back over hops has the constant part before it.
    #[inline(never)]
    fn return_from_hops(&mut self, flow_index: usize, id: PacketId) {
        self.return_now(flow_index, self.acks[id.index()]);
    }

    #[inline(always)]
    pub(super) fn acknowledge(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        let Transport::Tcp(tcp) = &mut self.flows[flow_index].transport else { return };
        let ack = tcp.receiver.acknowledge();
        self.send_back(network, flow_index, SegmentKind::Ack, Returning::Ack(ack));
    }

    #[inline(always)]
    pub(super) fn send_back(
        &mut self,
        network: &mut Network<Segment>,
        flow_index: usize,
        kind: SegmentKind,
        what: Returning,
    ) {
        let routes = &self.routes[self.flows[flow_index].routes_of(what.subflow()) as usize];
        if routes.back.is_empty() {
            return self.return_now(flow_index, what);
        }
        self.return_over_hops(network, flow_index, kind, what);
    }

    /// To the first hop of the way back.
    #[inline(never)]
    fn return_over_hops(
        &mut self,
        network: &mut Network<Segment>,
        flow_index: usize,
        kind: SegmentKind,
        what: Returning,
    ) {
        let flow = &self.flows[flow_index];
        let subflow = what.subflow();
        let routes = &self.routes[flow.routes_of(subflow) as usize];
        let Some(&hop) = routes.back.first() else { return };
        let ip_len = match (kind, &flow.transport) {
            (SegmentKind::SynAck, Transport::Quic(_)) => INITIAL_LEN,
            (SegmentKind::SynAck, _) => SYN_LEN,
            _ => flow.header,
        };
        let (ack, role) = match what {
            Returning::Ack(ack) => (ack.ack as u32, ack.role()),
            // What QUIC acknowledges is encrypted.
            Returning::Frame(_) | Returning::SynAck => (0, Role::Other),
        };
        let meta = PacketMeta {
            hash: !flow.hash_of(subflow),
            flow: FlowId(flow_index as u32),
            src: routes.to,
            dst: routes.from,
            ack,
            role,
            ..PacketMeta::default()
        };
        let left = (routes.back.len() - 1) as u16;
        let id =
            network.insert(meta, Segment { transit: Transit::new(ip_len, left), kind, subflow, ..Segment::default() });
        if self.acks.len() <= id.index() {
            self.acks.resize(network.slots(), Returning::SynAck);
        }
        self.acks[id.index()] = what;
        network.offer(usize::from(hop), id, self.now, self);
    }

    /// Into the pipe back to the sender.
    #[inline(always)]
    pub(super) fn return_now(&mut self, flow_index: usize, what: Returning) {
        let index = self.flows[flow_index].pipe_of(what.subflow()) as usize;
        let arrives = self.now + self.pipes[index].delay;
        let underway = InFlight { arrives, flow: flow_index as u32, what };
        match self.side {
            Side::Network => self.returns.push(underway),
            Side::Both | Side::Senders => self.enter_pipe(index, underway),
        }
    }

    /// Into a return pipe; what entered it before arrives before.
    #[inline(always)]
    pub(crate) fn enter_pipe(&mut self, pipe: usize, one: InFlight) {
        let underway = &mut self.pipes[pipe].underway;
        if underway.is_empty() {
            self.events.schedule_next(one.arrives, Kind::Ack, pipe);
        }
        underway.push_back(one);
    }

    pub(super) fn on_delayed_ack(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        let transport = &mut self.flows[flow_index].transport;
        let Some(connection) = transport.connection_mut() else { return };
        if connection.armed.delayed_ack != Some(self.now) {
            return;
        }
        connection.armed.delayed_ack = None;
        let Transport::Tcp(tcp) = transport else { return self.acknowledge_overdue(network, flow_index) };
        if tcp.receiver.on_timer(self.now) {
            self.acknowledge(network, flow_index);
        } else {
            let want = tcp.receiver.next_timer();
            arm(&mut self.events, &mut tcp.connection.armed.delayed_ack, want, Kind::DelayedAck, flow_index);
        }
    }

    #[inline]
    pub(super) fn on_returning(&mut self, network: &mut Network<Segment>, pipe: usize) {
        let underway = &mut self.pipes[pipe].underway;
        let Some(InFlight { flow, what, .. }) = underway.pop_front() else { return };
        let flow_index = flow as usize;
        if let Some(next) = underway.front() {
            self.events.schedule_next(next.arrives, Kind::Ack, pipe);
        }
        self.prefetch_senders(pipe);
        let flow = &mut self.flows[flow_index];
        match (what, &mut flow.transport) {
            (Returning::Ack(ack), Transport::Tcp(tcp)) => {
                tcp.spin.on_ack(ack.ack);
                if let Some(rtt) = tcp.sender.on_ack(&ack, self.now) {
                    flow.record.rtt(rtt);
                }
                self.transmit(network, flow_index);
            }
            (Returning::Frame(frame), _) => self.on_frame(network, flow_index, &frame),
            (Returning::SynAck, _) => self.establish(network, flow_index),
            (Returning::Ack(_), _) => {}
        }
    }

    #[cold]
    pub(super) fn establish(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        let transport = &mut self.flows[flow_index].transport;
        let Some(connection) = transport.connection_mut() else { return };
        let Some(rng) = connection.rng.take() else { return };
        let rtt = connection.syn.and_then(|(first, sent)| (sent == 1).then(|| self.now.since(first)));
        match transport {
            Transport::Tcp(tcp) => tcp.sender.established(&tcp.connection.config, rtt, self.now, rng),
            Transport::Quic(quic) => quic.sender.established(&quic.connection.config, rtt, self.now, rng),
            Transport::Udp(_) => {}
        }
        self.transmit(network, flow_index);
    }

    /// Sends what may be sent, and arms the timers.
    #[inline]
    pub(super) fn transmit(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[flow_index];
            let Transport::Tcp(tcp) = &mut flow.transport else {
                return self.transmit_quic(network, flow_index);
            };
            if !self.meter.has_packets() {
                return;
            }
            let Some(Outgoing { seq, len, cwr, .. }) = tcp.sender.poll_transmit(now) else {
                self.arm_sender(flow_index);
                return;
            };
            tcp.spin.on_sent(seq);
            let routes = &self.routes[flow.routes as usize];
            let meta = PacketMeta {
                hash: flow.hash,
                flow: FlowId(flow_index as u32),
                src: routes.from,
                dst: routes.to,
                ecn: tcp.connection.ecn,
                dscp: routes.dscp,
                spin: tcp.spin.value,
                ..PacketMeta::default()
            };
            let ip_len = u32::from(len) + flow.header;
            let hop = usize::from(routes.there[0]);
            let segment = Segment {
                seq,
                transit: Transit::new(ip_len, routes.left()),
                tag: milliseconds(now),
                cwr,
                ..Segment::default()
            };
            self.launch(network, hop, meta, segment);
        }
    }

    #[inline]
    pub(super) fn arm_sender(&mut self, flow_index: usize) {
        let Transport::Tcp(tcp) = &mut self.flows[flow_index].transport else { return };
        let Tcp { sender, connection: Connection { armed: Armed { retransmit, pace, .. }, .. }, .. } = tcp;
        arm(&mut self.events, retransmit, sender.next_timer(), Kind::Retransmit, flow_index);
        arm(&mut self.events, pace, sender.next_pace(self.now), Kind::Pace, flow_index);
    }

    /// A packet has left a sender that is elsewhere.
    #[inline(never)]
    pub(super) fn take_over(&mut self, network: &mut Network<Segment>, departure: &Departure) {
        let &Departure { meta, segment, hop } = departure;
        self.now = meta.arrived;
        let id = network.insert(meta, segment);
        network.offer(usize::from(hop), id, self.now, self);
    }

    /// A packet leaves its sender, for a network that is elsewhere.
    #[inline(never)]
    fn hand_over(&mut self, hop: usize, meta: PacketMeta, segment: Segment) {
        let meta = PacketMeta { arrived: self.now, ..meta };
        self.departures.push(Departure { meta, segment, hop: hop as u16 });
    }

    /// A packet leaves its sender.
    #[inline(always)]
    pub(super) fn launch(&mut self, network: &mut Network<Segment>, hop: usize, meta: PacketMeta, segment: Segment) {
        self.meter.on_packet();
        if self.side == Side::Senders {
            return self.hand_over(hop, meta, segment);
        }
        let id = network.insert(meta, segment);
        network.offer(hop, id, self.now, self);
    }

    #[inline(never)]
    pub(super) fn on_retransmit(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        let now = self.now;
        let transport = &mut self.flows[flow_index].transport;
        let Some(connection) = transport.connection_mut() else { return };
        if connection.armed.retransmit != Some(now) {
            return;
        }
        connection.armed.retransmit = None;
        let syn = connection.syn_deadline();
        if syn.is_some_and(|at| at <= now) {
            return self.send_syn(network, flow_index);
        }
        let want = match transport {
            Transport::Tcp(tcp) => tcp.sender.next_timer(),
            Transport::Quic(quic) => quic.sender.next_timer(),
            Transport::Udp(_) => None,
        };
        if want.is_some_and(|at| at <= now) {
            match transport {
                Transport::Tcp(tcp) => tcp.sender.on_timer(now),
                Transport::Quic(quic) => quic.sender.on_timer(now),
                Transport::Udp(_) => {}
            }
            return self.transmit(network, flow_index);
        }
        if let Some(connection) = transport.connection_mut() {
            let armed = &mut connection.armed.retransmit;
            arm(&mut self.events, armed, syn.or(want), Kind::Retransmit, flow_index);
        }
    }

    #[inline(never)]
    pub(super) fn on_pace(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        let now = self.now;
        let transport = &mut self.flows[flow_index].transport;
        let Some(connection) = transport.connection_mut() else { return };
        if connection.armed.pace == Some(now) {
            connection.armed.pace = None;
            match transport {
                Transport::Tcp(tcp) => tcp.sender.on_pace(now),
                Transport::Quic(quic) => quic.sender.on_pace(now),
                Transport::Udp(_) => {}
            }
            self.transmit(network, flow_index);
        }
    }

    pub(super) fn send_syn(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        let flow = &mut self.flows[flow_index];
        let ip_len = if matches!(flow.transport, Transport::Quic(_)) { INITIAL_LEN } else { SYN_LEN };
        let Some(connection) = flow.transport.connection_mut() else { return };
        let (first, sent) = connection.syn.unwrap_or((self.now, 0));
        if sent == MAX_SYNS {
            return;
        }
        connection.syn = Some((first, sent + 1));
        let deadline = connection.syn_deadline();
        arm(&mut self.events, &mut connection.armed.retransmit, deadline, Kind::Retransmit, flow_index);
        let routes = &self.routes[flow.routes as usize];
        let meta = PacketMeta {
            hash: flow.hash,
            flow: FlowId(flow_index as u32),
            src: routes.from,
            dst: routes.to,
            dscp: routes.dscp,
            ..PacketMeta::default()
        };
        let hop = usize::from(routes.there[0]);
        let transit = Transit::new(ip_len, routes.left());
        let segment = Segment { transit, kind: SegmentKind::Syn, ..Segment::default() };
        self.launch(network, hop, meta, segment);
    }
}
