//! A flow between two [peers](narrows_world::peer::Peer): somebody else's transport as an endpoint of the simulator.
//!
//! The datagrams stay here while they are underway; the network carries their places. A peer that does what no network can carry is
//! silenced, with the reason, so that the run ends and its caller can name the fault.
use crate::endpoint::{Armed, Arrival, Awaited, Endpoint, HeaderBits, Outgoing, Place};
use crate::segment::{PeerDatagram, Returning, Segment};
use narrows_core::{Span, Time};
use narrows_world::meters::{Meters, SenderStats};
use narrows_world::network::Transit;
use narrows_world::peer::{Datagram, Peer, Stream};
use std::fmt;

/// Longest packet, bytes at the IP layer.
const MTU: u64 = 1500;
/// Datagrams and timeouts of one end at one instant: four times what a 2 Gbit/s path of 100 ms holds.
const MOST_AT_ONCE: u32 = 1 << 16;
/// Payload of a full-sized packet, for a peer that does not say.
const MSS: u64 = 1448;

/// What a peer did that no network can carry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerFault {
    /// Whether it was the end that sends the flow's data.
    pub sender: bool,
    /// When.
    pub at: Time,
    /// What it did.
    pub kind: PeerFaultKind,
}

/// The kind of a [`PeerFault`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerFaultKind {
    /// A datagram was longer than the path carries, bytes at the IP layer.
    TooLong(u64),
    /// It sent without end at one instant.
    Flood,
    /// Its timer was due again and again at one instant.
    Spin,
    /// It says that its connection failed, and why.
    Failed(String),
}

impl fmt::Display for PeerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.sender { "sender" } else { "receiver" };
        write!(f, "the {end} at {:.6} s: ", self.at.since(Time::ZERO).as_secs_f64())?;
        match &self.kind {
            PeerFaultKind::TooLong(bytes) => write!(f, "sent an IP packet of {bytes} B; the path carries {MTU} B"),
            PeerFaultKind::Flood => write!(f, "sent {MOST_AT_ONCE} datagrams at one instant"),
            PeerFaultKind::Spin => write!(f, "asked for {MOST_AT_ONCE} timeouts at one instant"),
            PeerFaultKind::Failed(reason) => write!(f, "the connection failed: {reason}"),
        }
    }
}

/// Both ends of a flow.
pub(crate) struct Peers {
    sender: End,
    receiver: End,
    underway: Underway,
    armed: Armed,
    awaited: Awaited,
    /// The application of the sender has had its turn since the last event.
    stepped: bool,
    /// What the receiver sends next.
    answer: Option<PeerDatagram>,
    fault: Option<PeerFault>,
    /// Losses before the warm-up.
    lost_before: u64,
}

/// One end, its application, and how much it did at this instant.
struct End {
    peer: Box<dyn Peer>,
    stream: Stream,
    now: Time,
    sent: u32,
    timeouts: u32,
}

/// The datagrams that are underway.
#[derive(Default)]
struct Underway {
    datagrams: Vec<Datagram>,
    free: Vec<u32>,
}

impl Underway {
    /// An empty datagram's place.
    fn place(&mut self) -> u32 {
        let slot = self.free.pop().unwrap_or(self.datagrams.len() as u32);
        if self.datagrams.len() == slot as usize {
            self.datagrams.push(Datagram::default());
        }
        let Datagram { mut bytes, .. } = std::mem::take(&mut self.datagrams[slot as usize]);
        bytes.clear();
        self.datagrams[slot as usize] = Datagram { bytes, ..Datagram::default() };
        slot
    }
}

impl End {
    fn new(peer: Box<dyn Peer>) -> End {
        let mut stream = Stream::default();
        stream.end();
        End { peer, stream, now: Time::ZERO, sent: 0, timeouts: 0 }
    }

    fn at(&mut self, now: Time) {
        if now != self.now {
            (self.now, self.sent, self.timeouts) = (now, 0, 0);
        }
    }

    /// Passes a datagram that arrived.
    fn receive(&mut self, underway: &mut Underway, slot: u32, marked: bool, now: Time) {
        self.at(now);
        let datagram = &mut underway.datagrams[slot as usize];
        if marked {
            datagram.ecn = narrows_core::Ecn::Ce;
        }
        self.peer.receive(datagram, now);
        underway.free.push(slot);
        self.peer.application(&mut self.stream, now);
    }

    /// The next datagram that it sends.
    fn transmit(&mut self, underway: &mut Underway, now: Time) -> Result<Option<PeerDatagram>, PeerFaultKind> {
        self.at(now);
        let slot = underway.place();
        let datagram = &mut underway.datagrams[slot as usize];
        let sends = self.peer.transmit(datagram, now);
        let (ip_len, ecn) = (datagram.ip_len(), datagram.ecn);
        self.sent += u32::from(sends);
        if sends && ip_len <= MTU && self.sent <= MOST_AT_ONCE {
            return Ok(Some(PeerDatagram { slot, ip_len: ip_len as u32, ecn }));
        }
        underway.free.push(slot);
        if !sends {
            Ok(None)
        } else if ip_len > MTU {
            Err(PeerFaultKind::TooLong(ip_len))
        } else {
            Err(PeerFaultKind::Flood)
        }
    }

    /// Its timer is due.
    fn expire(&mut self, now: Time) -> Result<(), PeerFaultKind> {
        self.at(now);
        self.timeouts += 1;
        if self.timeouts > MOST_AT_ONCE {
            return Err(PeerFaultKind::Spin);
        }
        self.peer.on_timeout(now);
        self.peer.application(&mut self.stream, now);
        Ok(())
    }
}

impl Peers {
    pub(crate) fn new([sender, receiver]: [Box<dyn Peer>; 2]) -> Peers {
        Peers {
            sender: End::new(sender),
            receiver: End::new(receiver),
            underway: Underway::default(),
            armed: Armed::default(),
            awaited: Awaited::Nothing,
            stepped: false,
            answer: None,
            fault: None,
            lost_before: 0,
        }
    }

    pub(crate) fn ends(&self) -> [&dyn Peer; 2] {
        [&*self.sender.peer, &*self.receiver.peer]
    }

    /// What went wrong first: a fault, or a connection that failed.
    pub(crate) fn fault(&self) -> Option<PeerFault> {
        let failed = |(end, sender): (&End, bool)| {
            let (at, reason) = end.peer.shown().failed?;
            Some(PeerFault { sender, at, kind: PeerFaultKind::Failed(reason) })
        };
        let failures = [(&self.sender, true), (&self.receiver, false)].into_iter().filter_map(failed);
        self.fault.iter().cloned().chain(failures).min_by_key(|fault| fault.at)
    }

    /// A datagram that is underway.
    pub(crate) fn datagram(&self, slot: u32) -> &Datagram {
        &self.underway.datagrams[slot as usize]
    }

    /// Payload of the sender's full-sized packets, bytes.
    pub(crate) fn mss(&self) -> u64 {
        self.sender.peer.shown().mss.map_or(MSS, |mss| mss.0.max(1))
    }

    /// The network has sent a datagram twice. Returns the place of the copy.
    pub(crate) fn copied(&mut self, slot: u32) -> u32 {
        let copy = self.underway.place();
        let datagrams = &mut self.underway.datagrams;
        datagrams[copy as usize] = datagrams[slot as usize].clone();
        copy
    }

    /// The network has dropped a datagram.
    pub(crate) fn dropped(&mut self, slot: u32) {
        self.underway.free.push(slot);
    }

    /// Silences both ends if one of them did what cannot be.
    fn keep<T>(&mut self, sender: bool, at: Time, done: Result<T, PeerFaultKind>) -> Option<T> {
        done.map_err(|kind| self.fault = Some(PeerFault { sender, at, kind })).ok()
    }

    /// Takes the receiver's next datagram, so that it is known whether there is one.
    fn look_for_answer(&mut self, now: Time) {
        if self.answer.is_none() && self.fault.is_none() {
            let sent = self.receiver.transmit(&mut self.underway, now);
            self.answer = self.keep(false, now, sent).flatten();
        }
    }
}

impl Endpoint for Peers {
    fn armed(&mut self) -> Option<&mut Armed> {
        Some(&mut self.armed)
    }

    fn awaited(&mut self) -> Option<&mut Awaited> {
        Some(&mut self.awaited)
    }

    fn await_transfer(&mut self, bytes: u64, now: Time) {
        let stream = &self.sender.stream;
        self.awaited = Awaited::Transfer(now, stream.written() + stream.unwritten() + bytes);
    }

    fn on_packet(&mut self, segment: &Segment, _payload: u32, marked: bool, now: Time) -> Arrival {
        let before = self.receiver.stream.read();
        self.receiver.receive(&mut self.underway, segment.tag, marked, now);
        self.look_for_answer(now);
        let read = self.receiver.stream.read();
        let complete = matches!(self.awaited, Awaited::Transfer(_, until) if read >= until);
        Arrival { new: (read - before).min(u32::MAX.into()) as u32, acknowledge: self.answer.is_some(), complete }
    }

    fn next_ack(&self) -> Option<Time> {
        let receiver = &self.receiver;
        match (&self.fault, &self.answer) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(receiver.now),
            (None, None) => receiver.peer.timeout().map(|at| at.max(receiver.now)),
        }
    }

    fn overdue(&mut self, now: Time) -> Option<u8> {
        if self.answer.is_none() && self.receiver.peer.timeout().is_some_and(|at| at <= now) && self.fault.is_none() {
            let expired = self.receiver.expire(now);
            self.keep(false, now, expired)?;
        }
        self.look_for_answer(now);
        self.answer.map(|_| 0)
    }

    fn acknowledge(&mut self, _subflow: u8, now: Time) -> Returning {
        let Some(answer) = self.answer.take() else { unreachable!("it was asked for because there is one") };
        self.look_for_answer(now);
        Returning::Datagram(answer)
    }

    fn write(&mut self, bytes: Option<u64>, _now: Time) {
        self.sender.stream.offer(bytes);
        self.stepped = false;
    }

    fn stop(&mut self) {
        self.sender.stream.end();
    }

    fn on_ack(&mut self, ack: &Returning, now: Time) -> Option<Span> {
        if let Returning::Datagram(datagram) = ack {
            self.sender.receive(&mut self.underway, datagram.slot, datagram.ecn == narrows_core::Ecn::Ce, now);
        }
        None
    }

    fn poll_transmit(&mut self, _place: &mut Place, _header: u32, now: Time) -> Option<Outgoing> {
        if self.fault.is_some() {
            return None;
        }
        if !std::mem::replace(&mut self.stepped, true) {
            self.sender.peer.application(&mut self.sender.stream, now);
        }
        let sent = self.sender.transmit(&mut self.underway, now);
        let PeerDatagram { slot, ip_len, ecn } = self.keep(true, now, sent).flatten()?;
        let segment = Segment { seq: now.as_ns(), transit: Transit::new(ip_len, 0), tag: slot, ..Segment::default() };
        Some(Outgoing { segment, bits: HeaderBits { ecn, spin: false } })
    }

    fn next_pace(&self, now: Time) -> Option<Time> {
        if self.fault.is_some() {
            return None;
        }
        self.sender.peer.timeout().map(|at| at.max(now))
    }

    fn on_pace(&mut self, now: Time) {
        if self.sender.peer.timeout().is_some_and(|at| at <= now) && self.fault.is_none() {
            let expired = self.sender.expire(now);
            self.keep(true, now, expired);
        }
    }

    fn meters(&self) -> Option<Meters> {
        let shown = self.sender.peer.shown();
        let mss = self.mss() as f64;
        let cwnd = shown.cwnd?.0 as f64 / mss;
        let inflight = shown.inflight.map(|bytes| bytes.0 as f64 / mss);
        Some(Meters { cwnd, inflight, ssthresh: None, pacing: None, srtt: shown.srtt })
    }

    fn stats(&self) -> SenderStats {
        let lost = self.sender.peer.shown().lost.unwrap_or(0);
        SenderStats { retransmits: lost.saturating_sub(self.lost_before), timeouts: 0 }
    }

    fn reset_stats(&mut self) {
        self.lost_before = self.sender.peer.shown().lost.unwrap_or(0);
    }

    fn heap_bytes(&self) -> usize {
        let datagrams: usize = self.underway.datagrams.iter().map(|datagram| datagram.bytes.capacity()).sum();
        size_of::<Peers>() + datagrams + self.underway.datagrams.capacity() * size_of::<Datagram>()
    }
}

#[cfg(test)]
mod tests;
