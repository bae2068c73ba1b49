//! Applications: when they act, and what becomes of it.
use super::{Hosts, Segment, SegmentKind};
use crate::event::Kind;
use crate::host::{Transport, Udp};
use narrows_core::queue::parts::flow_table::mix;
use narrows_core::{FlowId, PacketMeta, Time};
use narrows_world::application::Act;
use narrows_world::network::{Network, Transit};

impl Hosts {
    #[inline(never)]
    pub(super) fn on_application(&mut self, network: &mut Network<Segment>, flow_index: usize) {
        let now = self.now;
        let flow = &mut self.flows[flow_index];
        if flow.acts != Some(now) || flow.stopped {
            return;
        }
        flow.acts = None;
        if now >= flow.stop {
            flow.stopped = true;
            match &mut flow.transport {
                Transport::Tcp(tcp) => tcp.sender.stop(),
                Transport::Quic(quic) => quic.sender.stop(),
                Transport::Udp(_) => {}
            }
            return;
        }
        let (act, next) = flow.application.act(now);
        self.schedule_act(flow_index, next);
        self.perform(network, flow_index, act);
    }

    /// The application acts again at `next`, or at least stops.
    pub(super) fn schedule_act(&mut self, flow_index: usize, next: Option<Time>) {
        let flow = &mut self.flows[flow_index];
        let at = next.map_or(flow.stop, |at| at.min(flow.stop)).max(self.now);
        flow.acts = Some(at);
        if at <= self.end {
            self.events.schedule(at, Kind::App, flow_index);
        }
    }

    pub(super) fn perform(&mut self, network: &mut Network<Segment>, flow_index: usize, act: Act) {
        let flow = &mut self.flows[flow_index];
        let Some(connection) = flow.transport.connection_mut() else {
            return match act {
                Act::Message(payload) => self.send_datagram(network, flow_index, payload),
                Act::Packet(ip_len) => {
                    let header = flow.header;
                    self.send_datagram(network, flow_index, ip_len.saturating_sub(header));
                }
                Act::Endless | Act::Transfer(_) | Act::Pause => {}
            };
        };
        let bytes = match act {
            Act::Endless => None,
            Act::Transfer(bytes) => Some(bytes),
            Act::Message(payload) => Some(u64::from(payload)),
            Act::Packet(ip_len) => Some(u64::from(ip_len.saturating_sub(flow.header).max(1))),
            Act::Pause => return,
        };
        connection.written += bytes.unwrap_or(0);
        if matches!(act, Act::Transfer(_)) {
            connection.transfer = Some((self.now, connection.written));
        }
        let is_closed = connection.syn.is_none();
        match &mut flow.transport {
            Transport::Tcp(tcp) => tcp.sender.write(bytes, self.now),
            Transport::Quic(quic) => quic.sender.write(bytes),
            Transport::Udp(_) => {}
        }
        if is_closed {
            self.send_syn(network, flow_index);
        } else {
            self.transmit(network, flow_index);
        }
    }

    pub(super) fn send_datagram(&mut self, network: &mut Network<Segment>, flow_index: usize, payload: u32) {
        let flow = &mut self.flows[flow_index];
        let Transport::Udp(Udp { ever_new_ports, ecn }) = flow.transport else { return };
        if ever_new_ports {
            flow.hash = mix(flow.hash.wrapping_add(1), flow_index as u32);
        }
        let routes = &self.routes[flow.routes as usize];
        let meta = PacketMeta {
            hash: flow.hash,
            flow: FlowId(flow_index as u32),
            src: routes.from,
            dst: routes.to,
            dscp: routes.dscp,
            ecn,
            ..PacketMeta::default()
        };
        let ip_len = payload + flow.header;
        let hop = usize::from(routes.there[0]);
        let transit = Transit::new(ip_len, routes.left());
        let segment = Segment { transit, kind: SegmentKind::Datagram, ..Segment::default() };
        self.launch(network, hop, meta, segment);
    }

    #[inline(never)]
    pub(super) fn complete(&mut self, flow_index: usize) {
        let flow = &mut self.flows[flow_index];
        let transfer = flow.transport.connection_mut().and_then(|connection| connection.transfer.take());
        let Some((began, _)) = transfer else { return };
        if self.now >= self.warmup {
            flow.record.completed(self.now.since(began));
        }
        if let Some(next) = flow.application.on_complete(self.now) {
            self.schedule_act(flow_index, Some(next));
        }
    }
}
