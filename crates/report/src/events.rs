//! Sequence numbers over time, as tcptrace draws them: what a flow's sender sent, sent again and lost, and what was acknowledged.
use narrows_results::packets::{PacketKind, PacketLog, Transport, What};
use narrows_scenario::printable::printable;
use serde::Serialize;

/// The packets of some flows, for the page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Events {
    flows: Vec<FlowEvents>,
    /// A sentence on the packets that are not shown.
    left_out: Option<String>,
}

/// The packets of a flow. Times are seconds; sequence numbers bytes, or datagrams.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct FlowEvents {
    name: String,
    /// Whether sequence numbers count bytes of a stream, not datagrams.
    is_stream: bool,
    sent: Segments,
    resent: Segments,
    dropped: Drops,
    acknowledged: Acknowledged,
}

/// When each segment left the sender, its first byte, and its length.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct Segments {
    at: Vec<f64>,
    from: Vec<u64>,
    length: Vec<u32>,
}

/// Segments that were dropped: when they were sent, their first byte, and where, when and why they were dropped.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct Drops {
    at: Vec<f64>,
    from: Vec<u64>,
    why: Vec<String>,
}

/// When acknowledgments came to the sender, and the next byte that they expect.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct Acknowledged {
    at: Vec<f64>,
    next: Vec<u64>,
}

impl Events {
    /// The packets of a recorded run; `None` if no data were sent.
    pub fn of(log: &PacketLog) -> Option<Events> {
        let mut shown: Vec<usize> = Vec::new();
        for packet in log.packets.iter().filter(|packet| packet.kind == PacketKind::Data) {
            let flow = packet.flow as usize;
            if shown.len() < MAX_FLOWS && !shown.contains(&flow) {
                shown.push(flow);
            }
        }
        shown.sort_unstable();
        let room = MAX_PACKETS / shown.len().max(1);
        let mut flows: Vec<FlowEvents> = shown.iter().map(|&flow| FlowEvents::named(log, flow)).collect();
        let (mut taken, mut missing) = (vec![0; shown.len()], 0_u64);
        let events = log.by_packet();
        for (index, packet) in log.packets.iter().enumerate() {
            let Ok(place) = shown.binary_search(&(packet.flow as usize)) else {
                missing += 1;
                continue;
            };
            if taken[place] == room {
                missing += 1;
                continue;
            }
            taken[place] += 1;
            let flow = &mut flows[place];
            let from = if flow.is_stream { log.stream_offset(packet) } else { Some(packet.number) };
            let sent = packet.sent.as_secs_f64();
            match (packet.kind, from) {
                (PacketKind::Data, Some(from)) => {
                    let segments = if packet.retransmission { &mut flow.resent } else { &mut flow.sent };
                    segments.at.push(sent);
                    segments.from.push(from);
                    segments.length.push(if flow.is_stream { packet.payload } else { 1 });
                    for event in events.events(index) {
                        let What::Dropped(hop, reason) = event.what else { continue };
                        let hop = printable(&log.hops[usize::from(hop)].name).into_owned();
                        flow.dropped.at.push(sent);
                        flow.dropped.from.push(from);
                        flow.dropped.why.push(format!("{} at {hop}, {:.6} s", reason.name(), event.at.as_secs_f64()));
                    }
                }
                (PacketKind::Ack, Some(next)) => {
                    let arrived = events.events(index).find(|event| event.what == What::Arrived);
                    if let Some(arrived) = arrived {
                        flow.acknowledged.at.push(arrived.at.as_secs_f64());
                        flow.acknowledged.next.push(next);
                    }
                }
                _ => {}
            }
        }
        let words =
            || format!("{missing} more packets are not shown; --packets-from and --packets-until choose others");
        let left_out = (missing > 0).then(words).or_else(|| log.cut());
        (!flows.is_empty()).then_some(Events { flows, left_out })
    }
}

impl FlowEvents {
    fn named(log: &PacketLog, index: usize) -> FlowEvents {
        let flow = &log.flows[index];
        FlowEvents {
            name: printable(&flow.name).into_owned(),
            is_stream: matches!(flow.transport, Transport::Tcp | Transport::Quic),
            ..FlowEvents::default()
        }
    }
}

/// Maximum number of flows on a page, and of packets of all flows together.
const MAX_FLOWS: usize = 16;
const MAX_PACKETS: usize = 40_000;
