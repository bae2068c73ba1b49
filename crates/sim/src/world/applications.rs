//! Applications: their events, and the data that they hand to transports.
use super::Hosts;
use crate::endpoint::Awaited;
use crate::event::EventKind;
use crate::host::Flow;
use crate::side::Side;
use narrows_core::Time;
use narrows_world::application::Act;

impl<S: Side> Hosts<S> {
    #[inline(never)]
    pub(super) fn on_application(&mut self, network: &mut S::Uplink, flow_index: usize) {
        let now = self.now;
        let flow = &mut self.flows[flow_index];
        if flow.acts != Some(now) || flow.stopped {
            return;
        }
        flow.acts = None;
        if now >= flow.stop {
            flow.stopped = true;
            flow.transport.stop();
            return;
        }
        let (act, next) = flow.application.act(now);
        self.schedule_act(flow_index, next);
        self.perform(network, flow_index, act);
    }

    /// Schedules the application's next action, or the flow's stop if that comes first.
    fn schedule_act(&mut self, flow_index: usize, next: Option<Time>) {
        let flow = &mut self.flows[flow_index];
        let at = next.map_or(flow.stop, |at| at.min(flow.stop)).max(self.now);
        flow.acts = Some(at);
        if at <= self.end {
            self.events.schedule(at, EventKind::App, flow_index);
        }
    }

    fn perform(&mut self, network: &mut S::Uplink, flow_index: usize, act: Act) {
        let Flow { transport, header, .. } = &mut self.flows[flow_index];
        if let Act::Transfer(bytes) = act {
            transport.await_transfer(bytes, self.now);
        }
        let connection = transport.connection();
        let bytes = match act {
            Act::Endless | Act::Frame => None,
            Act::Transfer(bytes) => Some(bytes),
            Act::Message(payload) => Some(u64::from(payload)),
            // A datagram may be empty, but data in a stream may not.
            Act::Packet(ip_len) => Some(u64::from(ip_len.saturating_sub(*header).max(u32::from(connection.is_some())))),
            Act::Pause => return,
        };
        let mut opens = false;
        if let Some(connection) = connection {
            connection.written += bytes.unwrap_or(0);
            let written = connection.written;
            if let (Act::Message(_), Some(messages)) = (act, connection.messages()) {
                messages.written(written, self.now);
            }
            opens = connection.syn.is_none();
        }
        transport.write(bytes, self.now);
        if opens {
            self.send_syn(network, flow_index);
        } else {
            self.transmit(network, flow_index);
        }
    }

    #[inline(never)]
    pub(super) fn complete(&mut self, flow_index: usize) {
        let flow = &mut self.flows[flow_index];
        let Some(awaited) = flow.transport.awaited() else { return };
        let Awaited::Transfer(began, _) = *awaited else { return };
        *awaited = Awaited::Nothing;
        if self.now >= self.warmup {
            flow.record.completed(self.now.since(began));
        }
        if let Some(next) = flow.application.on_complete(self.now) {
            self.schedule_act(flow_index, Some(next));
        }
    }
}
