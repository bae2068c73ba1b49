//! A connection's events as its sender sees them, in qlog's JSON text sequences (RFC 7464), which qvis opens.
//!
//! The format is qlog 0.3 (draft-ietf-quic-qlog-main-schema-02, draft-ietf-quic-qlog-quic-events-01), the version that qvis reads in full.
//! The events are `transport:packet_sent`, `transport:packet_received`, `recovery:packet_lost` and `recovery:metrics_updated`.
//!
//! A QUIC connection over two paths has a number space for each, and qlog 0.3 has no paths; so each [`Connection`] of a log is one path.
//! TCP has no packet numbers. Here each transmission of a segment gets one, and an acknowledgment names the latest transmission of
//! every segment that it covers for the first time. Of somebody else's transport there are `transport:datagrams_sent` and
//! `transport:datagrams_received`, and the metrics that it shows.
use narrows_core::{Span, Time};
use narrows_results::packets::{Flow, Known, Metrics, Packet, PacketKind, PacketLog, Transport, What};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// A connection, or one of its paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    flow: u32,
    subflow: u8,
    /// The flow's name; for a connection over several paths with the path's number behind it: `bulk.path-1`.
    pub name: String,
}

impl Connection {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        file_name(&self.name)
    }
}

/// The name of the file of a connection of this name.
pub fn file_name(connection: &str) -> String {
    format!("{connection}.sqlog")
}

/// The connections of a log: all flows but those of datagrams.
pub fn connections(log: &PacketLog) -> Vec<Connection> {
    let paths = |flow: usize| {
        let numbers = log.packets.iter().filter(|packet| packet.flow as usize == flow).map(|packet| packet.subflow);
        numbers.max().unwrap_or(0)
    };
    let mut connections = Vec::new();
    for (index, flow) in log.flows.iter().enumerate().filter(|(_, flow)| flow.transport != Transport::Udp) {
        let last = if flow.transport == Transport::Quic { paths(index) } else { 0 };
        connections.extend((0..=last).map(|subflow| Connection {
            flow: index as u32,
            subflow,
            name: if last > 0 { format!("{}.path-{subflow}", flow.name) } else { flow.name.clone() },
        }));
    }
    connections
}

/// Writes the events of a connection. Returns their number.
///
/// # Errors
/// The writer's.
pub fn write(log: &PacketLog, connection: &Connection, to: &mut impl Write) -> io::Result<u64> {
    let flow = &log.flows[connection.flow as usize];
    let mut trace = Trace { to, written: 0 };
    trace.record(&head(log, flow, connection))?;
    let mut transmissions = Transmissions::default();
    let mut recovery = log.recovery.iter().filter(|one| one.flow == connection.flow).peekable();
    for event in &log.events {
        while let Some(one) = recovery.next_if(|one| one.at < event.at) {
            known(&mut trace, connection, &transmissions, flow, one.at, &one.what)?;
        }
        let packet = &log.packets[event.packet as usize];
        if packet.flow != connection.flow || packet.subflow != connection.subflow {
            continue;
        }
        match (event.what, packet.kind.is_forward()) {
            (What::Sent, true) if flow.transport == Transport::Foreign => {
                trace.event(event.at, "transport:datagrams_sent", datagram(packet))?;
            }
            (What::Arrived, false) if flow.transport == Transport::Foreign => {
                trace.event(event.at, "transport:datagrams_received", datagram(packet))?;
            }
            (What::Sent, true) => {
                let number = if flow.transport == Transport::Tcp { transmissions.sent(packet) } else { packet.number };
                transmissions.keep_length(number, packet.ip_len);
                trace.event(event.at, "transport:packet_sent", sent(log, packet, number))?;
            }
            (What::Arrived, false) => {
                let ranges = match flow.transport {
                    Transport::Tcp => transmissions.acknowledged(log, packet),
                    Transport::Quic | Transport::Udp | Transport::Foreign => inclusive(log.ranges(packet)),
                };
                trace.event(event.at, "transport:packet_received", received(packet, &ranges))?;
            }
            _ => {}
        }
    }
    for one in recovery {
        known(&mut trace, connection, &transmissions, flow, one.at, &one.what)?;
    }
    Ok(trace.written)
}

/// Begins every record (RFC 7464 §2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// A trace that is being written.
struct Trace<'a, W> {
    to: &'a mut W,
    written: u64,
}

impl<W: Write> Trace<'_, W> {
    fn record(&mut self, value: &Value) -> io::Result<()> {
        self.to.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut *self.to, value)?;
        self.to.write_all(b"\n")
    }

    fn event(&mut self, at: Time, name: &str, data: Value) -> io::Result<()> {
        self.written += 1;
        self.record(&json!({ "time": milliseconds(at.since(Time::ZERO)), "name": name, "data": data }))
    }
}

/// The first record of a file.
fn head(log: &PacketLog, flow: &Flow, connection: &Connection) -> Value {
    let (transport, description) = match flow.transport {
        Transport::Tcp => ("TCP", format!("TCP under {}, simulated", flow.controller)),
        Transport::Quic => ("QUIC", format!("QUIC under {}, simulated", flow.controller)),
        Transport::Udp | Transport::Foreign => ("UDP", format!("{} over a simulated network", flow.controller)),
    };
    json!({
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": format!("narrows {}: {}, seed {}", env!("CARGO_PKG_VERSION"), log.name, log.seed),
        "description": description,
        "trace": {
            "title": connection.name,
            "vantage_point": { "name": connection.name, "type": "client" },
            "common_fields": {
                "ODCID": format!("{:08x}{:02x}", connection.flow, connection.subflow),
                "protocol_type": [transport],
                "time_format": "relative",
                "reference_time": 0,
            },
        },
    })
}

/// A datagram of a foreign transport leaves the sender or arrives there. What it carries is the transport's own affair.
fn datagram(packet: &Packet) -> Value {
    json!({ "count": 1, "raw": [{ "length": packet.payload }] })
}

/// A packet leaves the sender.
fn sent(log: &PacketLog, packet: &Packet, number: u64) -> Value {
    let frames = match packet.kind {
        PacketKind::Syn => json!([{ "frame_type": "crypto", "offset": 0, "length": packet.payload }]),
        _ => json!([{
            "frame_type": "stream",
            "stream_id": 0,
            "offset": log.stream_offset(packet).unwrap_or_default(),
            "length": packet.payload,
        }]),
    };
    json!({ "header": header(packet, number), "raw": { "length": packet.ip_len }, "frames": frames })
}

/// A packet arrives at the sender.
fn received(packet: &Packet, ranges: &[[u64; 2]]) -> Value {
    let mut frames = Vec::new();
    if !ranges.is_empty() {
        let delay = f64::from(packet.ack_delay_us) / 1000.0;
        frames.push(json!({ "frame_type": "ack", "ack_delay": delay, "acked_ranges": ranges }));
    }
    json!({ "header": header(packet, packet.number), "raw": { "length": packet.ip_len }, "frames": frames })
}

fn header(packet: &Packet, number: u64) -> Value {
    let kind = if matches!(packet.kind, PacketKind::Syn | PacketKind::SynAck) { "initial" } else { "1RTT" };
    json!({ "packet_type": kind, "packet_number": number })
}

/// What the sender knows after an event. The figures of a connection are in the trace of its first path.
fn known<W: Write>(
    trace: &mut Trace<'_, W>,
    connection: &Connection,
    transmissions: &Transmissions,
    flow: &Flow,
    at: Time,
    what: &Known,
) -> io::Result<()> {
    match what {
        Known::Metrics(metrics) if connection.subflow == 0 => {
            trace.event(at, "recovery:metrics_updated", figures(metrics))
        }
        Known::Lost(subflow, number) if *subflow == connection.subflow => {
            let number = match flow.transport {
                Transport::Tcp => transmissions.latest(*number),
                Transport::Quic | Transport::Udp | Transport::Foreign => Some(*number),
            };
            let Some(number) = number else { return Ok(()) };
            let header = json!({ "packet_type": "1RTT", "packet_number": number });
            let raw = json!({ "length": transmissions.length(number) });
            trace.event(at, "recovery:packet_lost", json!({ "header": header, "raw": raw }))
        }
        Known::Metrics(_) | Known::Lost(..) => Ok(()),
    }
}

fn figures(metrics: &Metrics) -> Value {
    let mut data = Map::new();
    data.insert("congestion_window".to_owned(), metrics.cwnd.into());
    data.extend(metrics.in_flight.map(|bytes| ("bytes_in_flight".to_owned(), bytes.into())));
    let rtts = [("min_rtt", metrics.min), ("smoothed_rtt", metrics.smoothed), ("latest_rtt", metrics.latest)];
    data.extend(rtts.into_iter().filter_map(|(name, rtt)| Some((name.to_owned(), milliseconds(rtt?).into()))));
    data.extend(metrics.ssthresh.map(|bytes| ("ssthresh".to_owned(), bytes.into())));
    data.extend(metrics.pacing.map(|rate| ("pacing_rate".to_owned(), rate.as_bps().into())));
    Value::Object(data)
}

fn milliseconds(span: Span) -> f64 {
    span.as_ms_f64()
}

/// Ranges from first to last, of ranges from first to last plus one; the highest first.
fn inclusive(ranges: &[(u64, u64)]) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> =
        ranges.iter().filter(|(first, end)| end > first).map(|&(a, b)| [a, b - 1]).collect();
    ranges.sort_unstable_by(|a, b| b.cmp(a));
    ranges
}

/// What was sent: its length, and of TCP's segments the numbers of their transmissions.
#[derive(Default)]
struct Transmissions {
    /// Bytes at the IP layer of each number.
    lengths: Vec<u32>,
    next: u64,
    /// The latest transmission of each segment.
    latest: Vec<Option<u64>>,
    /// Whether the segment has been acknowledged.
    done: Vec<bool>,
    /// All segments before this one are acknowledged.
    until: u64,
}

impl Transmissions {
    /// A packet is sent; returns its number.
    fn sent(&mut self, packet: &Packet) -> u64 {
        let number = self.next;
        self.next += 1;
        if packet.kind == PacketKind::Data {
            let segment = packet.data as usize;
            if self.latest.len() <= segment {
                self.latest.resize(segment + 1, None);
                self.done.resize(segment + 1, false);
            }
            self.latest[segment] = Some(number);
        }
        number
    }

    fn keep_length(&mut self, number: u64, bytes: u32) {
        let number = number as usize;
        if self.lengths.len() <= number {
            self.lengths.resize(number + 1, 0);
        }
        self.lengths[number] = bytes;
    }

    /// The length of a packet that was sent. qvis asks for that of lost ones too.
    fn length(&self, number: u64) -> u32 {
        self.lengths.get(number as usize).copied().unwrap_or_default()
    }

    /// The latest transmission of a segment.
    fn latest(&self, segment: u64) -> Option<u64> {
        self.latest.get(usize::try_from(segment).ok()?).copied().flatten()
    }

    /// The transmissions that an acknowledgment covers and no earlier one did, as ranges from first to last.
    fn acknowledged(&mut self, log: &PacketLog, packet: &Packet) -> Vec<[u64; 2]> {
        if packet.kind == PacketKind::SynAck {
            return vec![[0, 0]];
        }
        let below = (self.until, packet.number);
        self.until = self.until.max(packet.number);
        let mut numbers = Vec::new();
        for (first, end) in std::iter::once(below).chain(log.ranges(packet).iter().copied()) {
            for segment in first..end.min(self.done.len() as u64) {
                if !std::mem::replace(&mut self.done[segment as usize], true) {
                    numbers.extend(self.latest(segment));
                }
            }
        }
        numbers.sort_unstable();
        let ranges = numbers.chunk_by(|a, b| a + 1 == *b).rev().map(|run| [run[0], run[run.len() - 1]]);
        ranges.collect()
    }
}
