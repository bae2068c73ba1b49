//! The two ends of a QUIC flow: packets at the receiver, acknowledgments at the sender.
use super::{Hosts, Segment, SegmentKind, arm};
use crate::event::Kind;
use crate::host::{Returning, Transport};
use crate::quic::{AckFrame, Incoming, Outgoing};
use narrows_core::{FlowId, PacketMeta};
use narrows_world::network::{Network, Transit};

impl Hosts {
    pub(super) fn arrive_quic(
        &mut self,
        network: &mut Network<Segment>,
        flow_index: usize,
        segment: &Segment,
        marked: bool,
    ) {
        let now = self.now;
        let flow = &mut self.flows[flow_index];
        let Transport::Quic(quic) = &mut flow.transport else { return };
        let &Segment { seq: number, tag: chunk, subflow, transit: Transit { ip_len, waited, .. }, .. } = segment;
        let payload = ip_len - flow.header.min(ip_len);
        let arrival = quic.receiver.on_packet(Incoming { subflow, number, chunk, marked }, now);
        let new = if arrival.is_new { payload } else { 0 };
        flow.record.received(ip_len, new, waited);
        if let Some(verdicts) = &mut quic.verdicts {
            verdicts.received(subflow, ip_len, waited);
        }
        let complete = quic.connection.receive(new);
        if arrival.acknowledge {
            self.send_frame(network, flow_index, subflow);
        } else {
            let want = quic.receiver.next_timer();
            arm(&mut self.events, &mut quic.connection.armed.delayed_ack, want, Kind::DelayedAck, flow_index);
        }
        if complete {
            self.complete(flow_index);
        }
    }

    fn send_frame(&mut self, network: &mut Network<Segment>, flow_index: usize, subflow: u8) {
        let now = self.now;
        let Transport::Quic(quic) = &mut self.flows[flow_index].transport else { return };
        let frame = quic.receiver.acknowledge(subflow, now);
        self.send_back(network, flow_index, SegmentKind::Ack, Returning::Frame(frame));
    }

    /// The acknowledgment timer has come.
    pub(super) fn acknowledge_overdue(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        let now = self.now;
        loop {
            let Transport::Quic(quic) = &mut self.flows[flow_index].transport else { return };
            let Some(subflow) = quic.receiver.overdue(now) else {
                let want = quic.receiver.next_timer();
                let armed = &mut quic.connection.armed.delayed_ack;
                return arm(&mut self.events, armed, want, Kind::DelayedAck, flow_index);
            };
            self.send_frame(network, flow_index, subflow);
        }
    }

    #[inline(never)]
    pub(super) fn on_frame(&mut self, network: &mut Network<Segment>, flow_index: usize, frame: &AckFrame) {
        let now = self.now;
        let flow = &mut self.flows[flow_index];
        let Transport::Quic(quic) = &mut flow.transport else { return };
        if let Some(rtt) = quic.sender.on_frame(frame, now) {
            flow.record.rtt(rtt);
            if let Some(verdicts) = &mut quic.verdicts {
                verdicts.rtt(frame.subflow, rtt, now);
            }
        }
        self.transmit_quic(network, flow_index);
    }

    /// Sends what may be sent, arms the timers, and notes what the controller holds of the bottleneck.
    pub(super) fn transmit_quic(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[flow_index];
            let Transport::Quic(quic) = &mut flow.transport else { return };
            if !self.meter.has_packets() {
                return;
            }
            let Some(Outgoing { subflow, number, chunk, len }) = quic.sender.poll_transmit(now) else {
                return self.arm_quic(flow_index);
            };
            let ecn = quic.connection.ecn;
            let ip_len = u32::from(len) + flow.header;
            if let Some(verdicts) = &mut quic.verdicts {
                verdicts.sent(subflow, ip_len);
            }
            let routes = &self.routes[flow.routes_of(subflow) as usize];
            let meta = PacketMeta {
                hash: flow.hash_of(subflow),
                flow: FlowId(flow_index as u32),
                src: routes.from,
                dst: routes.to,
                ecn,
                dscp: routes.dscp,
                ..PacketMeta::default()
            };
            let hop = usize::from(routes.there[0]);
            let transit = Transit::new(ip_len, routes.left());
            let segment = Segment { seq: number, tag: chunk, transit, subflow, ..Segment::default() };
            self.launch(network, hop, meta, segment);
        }
    }

    fn arm_quic(&mut self, flow_index: usize) {
        let now = self.now;
        let flow = &mut self.flows[flow_index];
        let Transport::Quic(quic) = &mut flow.transport else { return };
        let armed = &mut quic.connection.armed;
        // What is acknowledged on one subflow shortens the other's timeout, perhaps to a time that is over.
        let timer = quic.sender.next_timer().map(|at| at.max(now));
        arm(&mut self.events, &mut armed.retransmit, timer, Kind::Retransmit, flow_index);
        arm(&mut self.events, &mut armed.pace, quic.sender.next_pace(now), Kind::Pace, flow_index);
        if let Some(verdicts) = &mut quic.verdicts {
            let fair = &self.routes[flow.routes as usize].fair;
            verdicts.count(quic.sender.events(), fair, now);
            verdicts.hold(quic.sender.verdict(), fair, flow.stopped, now);
        }
    }
}
