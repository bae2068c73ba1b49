//! A shaper with a controlled rate, the buffer of the link behind it, and the link.
use super::mechanized::{Mechanized, Source, Step, Taken};
use super::{arrived, departs};
use crate::autorate::{AnyController, PROBE, Reply, Shaped};
use crate::drop_reason::DropReason;
use crate::pool::PacketId;
use crate::queue::{Ctx, Next, Queue};
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};
use alloc::collections::VecDeque;

/// A link's own buffer, with packets and probes.
struct Device {
    waiting: VecDeque<(Option<PacketId>, u32)>,
    bytes: Bytes,
    limit: Bytes,
}

impl Device {
    /// Whether it had room.
    fn put(&mut self, packet: Option<PacketId>, len: u32) -> bool {
        let bytes = self.bytes + Bytes(len.into());
        let fits = bytes <= self.limit;
        if fits {
            self.bytes = bytes;
            self.waiting.push_back((packet, len));
        }
        fits
    }
}

impl Source for Device {
    fn waiting(&self) -> Bytes {
        self.bytes
    }

    fn take(&mut self, _: &mut Ctx<'_>) -> Taken {
        match self.waiting.pop_front() {
            Some((packet, len)) => {
                self.bytes = self.bytes.saturating_sub(Bytes(len.into()));
                Taken::One(packet, len)
            }
            None => Taken::Empty,
        }
    }
}

/// The shaper and what is behind it.
pub(super) struct Adaptive {
    controller: AnyController,
    device: Device,
    link: Mechanized,
    /// When the last packet that passed is paid for.
    paid_until: Time,
    passed: Bytes,
    confirmed: Bytes,
    /// Time from the link's end to the reflector and back to the shaper.
    reach: Span,
    next_probe: Option<Time>,
    next_interval: Time,
    /// Probes on their way, with the bytes that had passed before each.
    probes: VecDeque<(Time, Bytes)>,
    /// Answers on their way back, with the time at which each is heard.
    answers: VecDeque<(Time, Reply)>,
}

impl Adaptive {
    pub(super) fn new(controller: AnyController, buffer: Bytes, reach: Span, link: Mechanized) -> Adaptive {
        Adaptive {
            device: Device { waiting: VecDeque::new(), bytes: Bytes::ZERO, limit: buffer },
            link,
            paid_until: Time::ZERO,
            passed: Bytes::ZERO,
            confirmed: Bytes::ZERO,
            reach,
            next_probe: controller.probes_every().map(|_| Time::ZERO),
            next_interval: Time::ZERO + controller.interval(),
            probes: VecDeque::new(),
            answers: VecDeque::new(),
            controller,
        }
    }

    /// The packets behind the shaper.
    pub(super) fn packets(&self) -> impl Iterator<Item = PacketId> {
        self.device.waiting.iter().filter_map(|&(packet, _)| packet).chain(self.link.packets())
    }

    fn shaped(&self, queue: &Queue, now: Time) -> Shaped {
        Shaped { now, passed: self.passed, backlog: queue.backlog().bytes }
    }

    /// Intervals, answers and probes that are due.
    fn control(&mut self, queue: &Queue, now: Time) {
        while self.next_interval <= now {
            self.controller.on_interval(self.shaped(queue, self.next_interval));
            self.next_interval += self.controller.interval();
        }
        while let Some((at, reply)) = self.answers.pop_front_if(|(at, _)| *at <= now) {
            self.confirmed = self.confirmed.max(reply.passed);
            self.controller.on_reply(reply, self.shaped(queue, at));
        }
        if let (Some(due), Some(every)) = (self.next_probe, self.controller.probes_every())
            && due <= now
        {
            // Probes that were due before the link was first used are not sent.
            self.next_probe = Some(now + every);
            if self.controller.probes() && self.device.put(None, PROBE) {
                self.probes.push_back((now, self.passed));
            }
        }
    }

    /// Lets packets pass. Returns when it may let the next one pass, if that is known.
    fn pass(&mut self, queue: &mut Queue, cx: &mut Ctx<'_>) -> Option<Time> {
        loop {
            if queue.backlog().packets == 0 {
                return None;
            }
            if self.paid_until > cx.now {
                return Some(self.paid_until);
            }
            let unconfirmed = self.passed.saturating_sub(self.confirmed);
            if self.controller.unconfirmed().is_some_and(|limit| unconfirmed >= limit) {
                // The next answer lets more pass.
                return None;
            }
            if self.controller.sees_link() && self.device.bytes >= self.link.needs(cx.now) {
                return None;
            }
            let id = match queue.dequeue(cx) {
                Next::Packet(id) => id,
                Next::At(at) => return Some(at),
                Next::Empty => return None,
            };
            let len = departs(id, cx);
            if !self.controller.sees_link() {
                let rate = self.controller.rate().max(Rate::bit(1));
                self.paid_until = self.paid_until.max(cx.now) + rate.tx_time(Bytes(len.into())).unwrap_or(Span::ZERO);
            }
            self.passed += Bytes(len.into());
            if !self.device.put(Some(id), len) {
                cx.drop_packet(id, DropReason::QueueFull);
            }
        }
    }

    pub(super) fn poll(&mut self, queue: &mut Queue, cx: &mut Ctx<'_>) -> super::Poll {
        loop {
            self.control(queue, cx.now);
            let next = self.pass(queue, cx);
            let waiting = self.device.bytes;
            let step = self.link.poll(&mut self.device, cx);
            let has_taken = self.device.bytes < waiting;
            if has_taken && self.controller.sees_link() && !matches!(step, Step::Arrived(_)) {
                // So that it finds more when it is free.
                continue;
            }
            let other = match step {
                Step::Arrived(one) if one.packet.is_none() => {
                    if let Some((sent, passed)) = self.probes.pop_front()
                        && !one.is_lost
                    {
                        let heard = cx.now + self.reach;
                        let reply = Reply { sent, arrived: cx.now, rtt: heard.since(sent), passed };
                        self.answers.push_back((heard, reply));
                    }
                    continue;
                }
                Step::Arrived(one) => match arrived(one, cx) {
                    Some(id) => return super::Poll::Sent(id),
                    None => continue,
                },
                Step::Wait(at) => Some(at),
                Step::Idle => None,
            };
            let answer = self.answers.front().map(|&(at, _)| at);
            let times = [next, other, answer, self.next_probe];
            return times.into_iter().flatten().min().map_or(super::Poll::Idle, super::Poll::Wait);
        }
    }
}
