//! The packets that arrived within the last while, by the receiver's clock: their rate, and the share of lost and marked ones.
use super::Reported;
use crate::time::{Span, Time};
use alloc::collections::VecDeque;

/// A window over the latest packets.
#[derive(Clone, Debug)]
pub struct Received {
    length: Span,
    packets: VecDeque<One>,
    /// The time of the latest arrival.
    latest: Option<Time>,
    /// The first arrival of all.
    first: Option<Time>,
    bytes: u64,
    lost: u32,
    marked: u32,
}

#[derive(Clone, Copy, Debug)]
struct One {
    /// When it arrived. A lost packet gets the time of the latest one before it.
    at: Time,
    bytes: u32,
    lost: bool,
    marked: bool,
}

impl Received {
    /// A window of this length.
    pub fn new(length: Span) -> Received {
        let packets = VecDeque::new();
        Received { length, packets, latest: None, first: None, bytes: 0, lost: 0, marked: 0 }
    }

    /// Adds a packet.
    pub fn push(&mut self, packet: &Reported) {
        if let Some(arrived) = packet.arrived {
            self.latest = self.latest.max(Some(arrived));
            self.first = self.first.or(Some(arrived));
        }
        let at = self.latest.unwrap_or(packet.sent);
        let bytes = packet.arrived.map_or(0, |_| packet.size.0.min(u64::from(u32::MAX)) as u32);
        let one = One { at, bytes, lost: packet.arrived.is_none(), marked: packet.marked };
        self.count(&one, true);
        self.packets.push_back(one);
        while let Some(old) = self.packets.pop_front_if(|old| at.since(old.at) >= self.length) {
            self.count(&old, false);
        }
    }

    fn count(&mut self, one: &One, comes: bool) {
        let (bytes, lost, marked) = (u64::from(one.bytes), u32::from(one.lost), u32::from(one.marked));
        if comes {
            (self.bytes, self.lost, self.marked) = (self.bytes + bytes, self.lost + lost, self.marked + marked);
        } else {
            (self.bytes, self.lost, self.marked) = (self.bytes - bytes, self.lost - lost, self.marked - marked);
        }
    }

    /// Bits per second that arrived; `None` until the window has been filled once.
    pub fn bps(&self) -> Option<f64> {
        let filled = self.latest?.since(self.first?) >= self.length;
        filled.then(|| self.bytes as f64 * 8.0 / self.length.as_secs_f64())
    }

    /// The share of lost packets, 0 to 1.
    pub fn loss(&self) -> f64 {
        share(self.lost, self.packets.len())
    }

    /// The share of marked packets, 0 to 1.
    pub fn marks(&self) -> f64 {
        share(self.marked, self.packets.len())
    }

    /// Memory outside its own size, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<One>()
    }
}

fn share(part: u32, of: usize) -> f64 {
    if of == 0 { 0.0 } else { f64::from(part) / of as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Bytes;

    fn packet(ms: u64, arrives: bool) -> Reported {
        let sent = Time::ZERO + Span::ms(ms);
        let arrived = arrives.then_some(sent + Span::ms(20));
        Reported { sent, arrived, size: Bytes(1250), marked: ms.is_multiple_of(40) }
    }

    /// A packet of 10 000 bit each 10 ms is 1 Mbit/s; each fifth is lost, so 0.8 Mbit/s arrive.
    #[test]
    fn the_window_holds_the_latest_packets() {
        let mut received = Received::new(Span::ms(500));
        for n in 0..50 {
            received.push(&packet(10 * n, true));
        }
        assert_eq!(received.bps(), None, "490 ms");
        for n in 50..200 {
            received.push(&packet(10 * n, n % 5 != 4));
        }
        let bps = received.bps().expect("the window is full");
        assert!((bps - 0.8e6).abs() <= 20_000.0, "{bps}");
        assert!((received.loss() - 0.2).abs() < 0.02, "{}", received.loss());
        assert!((received.marks() - 0.25).abs() < 0.02, "{}", received.marks());
    }
}
