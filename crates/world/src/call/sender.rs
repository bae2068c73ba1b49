//! The sender of a call: encoder, rate control, pacer, and the packets that are sent again.
use super::{Packet, Part, Report, Sent};
use crate::encoder::Encoder;
use crate::record::video::VideoRecord;
use narrows_core::media::{MediaControl, MediaHint, MediaRates, ReportEnd, Reported};
use narrows_core::{Bytes, Rate, Rng, Span, Time};
use narrows_scenario::traffic::Video;
use std::collections::VecDeque;

/// The sender of a call.
pub(super) struct Sender {
    encoder: Encoder,
    control: MediaControl,
    /// Payload of a full packet, bytes.
    payload: u32,
    /// Number of the next frame.
    frame: u64,
    /// Parts that wait, those to be sent again first.
    waiting: VecDeque<Part>,
    /// Number of the former, and payload of all, bytes.
    urgent: usize,
    waiting_bytes: u64,
    /// When the next packet may leave.
    opens: Time,
    /// When the receiver's last wish for a key frame was granted.
    key_sent: Option<Time>,
    rtt: Span,
    resent: u64,
}

/// The encoder leaves a frame out while a part has waited for longer.
const LONGEST_WAIT: Span = Span::ms(500);
/// Data that are older are not sent again.
const STALE: Span = Span::s(1);
/// Less than a second's worth of key frames is sent for the receiver's wishes.
const BETWEEN_KEYS: Span = Span::ms(300);

impl Sender {
    /// The sender of such a call; `header` is that of its packets.
    pub(super) fn new(traffic: &Video, header: Bytes, rng: Rng) -> Sender {
        let hint =
            MediaHint { min: traffic.min_rate, max: traffic.max_rate, start: traffic.start_rate, fps: traffic.fps };
        Sender {
            encoder: Encoder::new(traffic, header, rng),
            control: traffic.control.0.build(&hint),
            payload: traffic.packet.saturating_sub(header).0.max(1) as u32,
            frame: 0,
            waiting: VecDeque::new(),
            urgent: 0,
            waiting_bytes: 0,
            opens: Time::ZERO,
            key_sent: None,
            rtt: Span::ms(100),
            resent: 0,
        }
    }

    /// The rates at present.
    pub(super) fn rates(&self) -> MediaRates {
        self.control.rates(Bytes(self.waiting_bytes))
    }

    /// Codes the picture of this time, unless too much waits.
    pub(super) fn capture(&mut self, now: Time, record: &mut VideoRecord) {
        record.captured(now);
        if self.waiting.back().is_some_and(|_| self.oldest().is_some_and(|at| now.since(at) > LONGEST_WAIT)) {
            return record.skipped();
        }
        let frame = self.encoder.encode(self.rates().encoder, now);
        let of = frame.bytes.div_ceil(self.payload).max(1);
        let part = Part {
            frame: self.frame,
            of,
            is_key: frame.is_key,
            captured: now,
            bytes: self.payload,
            frame_bytes: frame.bytes,
        };
        self.frame += 1;
        let last = frame.bytes - (of - 1) * self.payload;
        let sizes = std::iter::repeat_n(self.payload, of as usize - 1).chain([last]);
        self.waiting.extend(sizes.map(|bytes| Part { bytes, ..part }));
        self.waiting_bytes += u64::from(frame.bytes);
    }

    /// The capture of the oldest part that waits for the first time.
    fn oldest(&self) -> Option<Time> {
        self.waiting.get(self.urgent).map(|part| part.captured)
    }

    /// The call ends: what waits is discarded.
    pub(super) fn stop(&mut self) {
        self.waiting.clear();
        (self.urgent, self.waiting_bytes) = (0, 0);
    }

    /// A packet from the receiver. Returns the RTT, if it shows one.
    pub(super) fn on_report(
        &mut self,
        report: &Report,
        packets: &mut Sent,
        record: &mut VideoRecord,
        now: Time,
    ) -> Option<Span> {
        match *report {
            Report::Missing { first, end } => {
                for number in first..end {
                    if let Some(packet) = packets.get_mut(number).filter(|packet| !packet.resent) {
                        packet.resent = true;
                        let part = packet.part;
                        self.send_again(part, record, now);
                    }
                }
                None
            }
            Report::Arrivals { first, end, at, wants_key } => {
                // Packets of a report that was lost: nothing is known of them.
                while packets.pop_before(first).is_some() {}
                let mut last = None;
                while let Some((_, packet)) = packets.pop_before(end) {
                    let Packet { sent, arrived, marked, ip_len, .. } = packet;
                    self.control.on_packet(&Reported { sent, arrived, size: Bytes(ip_len.into()), marked });
                    match arrived {
                        Some(arrived) => last = Some((sent, arrived)),
                        None if !packet.resent => self.send_again(packet.part, record, now),
                        None => {}
                    }
                }
                let rtt = last.map(|(sent, arrived)| now.since(sent).saturating_sub(at.since(arrived)));
                self.rtt = rtt.unwrap_or(self.rtt);
                self.control.on_report(&ReportEnd { now, rtt });
                if wants_key && self.key_sent.is_none_or(|last| now.since(last) >= BETWEEN_KEYS + self.rtt) {
                    self.key_sent = Some(now);
                    self.encoder.want_key();
                }
                rtt
            }
        }
    }

    fn send_again(&mut self, part: Part, record: &mut VideoRecord, now: Time) {
        if now.since(part.captured) > STALE {
            return;
        }
        self.waiting.insert(self.urgent, part);
        self.urgent += 1;
        self.waiting_bytes += u64::from(part.bytes);
        self.resent += 1;
        record.resent();
    }

    /// The packet that leaves now, if one may.
    pub(super) fn next_packet(&mut self, header: u32, now: Time) -> Option<Packet> {
        if now < self.opens {
            return None;
        }
        let rate = self.rates().sending;
        let part = self.waiting.pop_front()?;
        self.urgent = self.urgent.saturating_sub(1);
        self.waiting_bytes -= u64::from(part.bytes);
        let ip_len = part.bytes + header;
        let takes = rate.max(Rate::bit(1)).tx_time(Bytes(ip_len.into())).unwrap_or(Span::ZERO);
        self.opens = now + takes;
        Some(Packet { part, ip_len, sent: now, arrived: None, marked: false, resent: false })
    }

    /// When the next packet may leave, if one waits.
    pub(super) fn next_departure(&self, now: Time) -> Option<Time> {
        (!self.waiting.is_empty()).then(|| self.opens.max(now))
    }

    /// Packets sent again since the last reset.
    pub(super) fn resent(&self) -> u64 {
        self.resent
    }

    pub(super) fn reset_stats(&mut self) {
        self.resent = 0;
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Part>() + self.control.bytes()
    }
}
