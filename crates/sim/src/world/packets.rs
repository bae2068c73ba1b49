//! The record of every packet, filled by the hosts. Only a side that records calls these functions.
use super::{Hosts, World};
use crate::segment::{Returning, Segment, SegmentKind};
use crate::side::Side;
use crate::transport::Transport;
use narrows_core::{Ecn, PacketId, Span, Time};
use narrows_results::packets::{Capture, PacketLog};
use narrows_scenario::Scenario;
use narrows_world::record::packets::{Answer, Departing, PacketRecorder};

impl<S: Side> World<S> {
    /// Records packets from now on.
    pub(crate) fn record_packets(&mut self, scenario: &Scenario, capture: Capture) {
        let pipes = self.hosts.pipes.len();
        if capture.recovery {
            for losses in self.hosts.flows.iter_mut().filter_map(|flow| flow.transport.records().losses) {
                losses.get_or_insert_default();
            }
        }
        self.hosts.recorder = Some(Box::new(PacketRecorder::new(scenario, pipes, capture)));
    }

    /// The record, at the end of the run.
    pub(crate) fn recorded(&mut self) -> Option<PacketLog> {
        self.hosts.recorder.take().map(|recorder| recorder.finish())
    }
}

impl<S: Side> Hosts<S> {
    /// Calls the recorder, if there is one.
    #[inline]
    pub(crate) fn record(&mut self, tell: impl FnOnce(&mut PacketRecorder, Time)) {
        if let Some(recorder) = &mut self.recorder {
            tell(recorder, self.now);
        }
    }

    #[inline(never)]
    pub(super) fn record_departure(&mut self, flow: usize, segment: &Segment, ecn: Ecn) {
        let &Segment { seq, transit, tag, kind, cwr, subflow } = segment;
        if self.record_datagram(flow, true, tag) {
            return;
        }
        // TCP's segments have a number in the stream, QUIC's packets carry a chunk's.
        let is_quic = matches!(self.flows[flow].transport, Transport::Quic(_));
        let data = if is_quic { tag } else { seq as u32 };
        let is_syn = kind == SegmentKind::Syn;
        let packet = Departing { flow, is_syn, number: seq, data, ip_len: transit.ip_len, subflow, ecn, cwr };
        self.record(|recorder, now| recorder.departs(&packet, now));
    }

    #[inline(never)]
    pub(super) fn record_answer(&mut self, flow: usize, what: &Returning) {
        if let Returning::Datagram(datagram) = what
            && self.record_datagram(flow, false, datagram.slot)
        {
            return;
        }
        let ends = &self.flows[flow];
        let answer = match what {
            Returning::SynAck => Answer { is_syn_ack: true, ..Answer::default() },
            Returning::Ack(ack) => ack.recorded(),
            Returning::Frame(frame) => frame.recorded(),
            Returning::Report(_) | Returning::Datagram(_) => Answer::default(),
        };
        let answer = Answer { ip_len: ends.answer_len(what), ..answer };
        self.record(|recorder, now| recorder.answers(flow, &answer, now));
    }

    /// A datagram leaves a peer; returns whether the flow has peers.
    fn record_datagram(&mut self, flow: usize, is_forward: bool, slot: u32) -> bool {
        let Some(datagram) = self.flows[flow].transport.datagram(slot) else { return false };
        if let Some(recorder) = &mut self.recorder {
            recorder.datagram(flow, is_forward, datagram, self.now);
        }
        true
    }

    /// A packet has crossed its last hop.
    #[inline(never)]
    pub(super) fn record_arrival(&mut self, id: PacketId, segment: &Segment) {
        self.record(|recorder, now| {
            recorder.leaves(id);
            if matches!(segment.kind, SegmentKind::Data | SegmentKind::Syn) {
                recorder.arrives(now);
            }
        });
    }

    /// A packet is back at its flow's sender.
    #[inline(never)]
    pub(super) fn record_return(&mut self, pipe: usize) {
        self.record(|recorder, now| {
            recorder.leaves_pipe(pipe);
            recorder.arrives(now);
        });
    }

    #[inline(never)]
    pub(super) fn record_establishment(&mut self, flow: usize, rtt: Option<Span>) {
        if let Some(rtt) = rtt {
            self.record(|recorder, _| recorder.rtt(flow, rtt));
        }
        self.record_recovery(flow);
    }

    /// Records the losses that a sender has detected, its window and its RTT.
    #[inline(never)]
    pub(super) fn record_recovery(&mut self, flow: usize) {
        let (Some(recorder), now) = (&mut self.recorder, self.now) else { return };
        if recorder.wants_recovery() {
            let transport = &mut self.flows[flow].transport;
            if let Some(Some(losses)) = transport.records().losses {
                losses.drain(..).for_each(|(subflow, number)| recorder.lost(flow, subflow, number, now));
            }
            if let Some(mss) = transport.peer_mss() {
                recorder.fills(flow, mss as u32);
            }
            if let Some(meters) = transport.meters() {
                recorder.metrics(flow, &meters, now);
            }
        }
    }
}
