//! Packets in flight on one path, by packet number.
use narrows_core::sender::packetwise::InFlight;
use std::collections::VecDeque;

/// The packets of one path that were sent and whose fate is not known yet.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    /// Packets from number `base` on; `None`: it is not in flight, or its number was never used for a packet that counts.
    packets: VecDeque<Option<InFlight>>,
    base: u64,
}

/// Numbers between two packets beyond which the older packets are given up: no transport leaves such a gap.
const GAP: u64 = 1 << 16;

impl Flights {
    /// Records a packet; returns those that are given up, because numbers start again or leap.
    pub(crate) fn push(&mut self, number: u64, packet: InFlight) -> Vec<InFlight> {
        let next = self.base + self.packets.len() as u64;
        let mut given_up = Vec::new();
        if self.packets.is_empty() {
            self.base = number;
        } else if number < next || number - next > GAP {
            given_up = self.clear();
            self.base = number;
        } else {
            self.packets.extend((next..number).map(|_| None));
        }
        self.packets.push_back(Some(packet));
        given_up
    }

    /// Takes a packet out; `None` if it is unknown.
    pub(crate) fn take(&mut self, number: u64) -> Option<InFlight> {
        let place = usize::try_from(number.checked_sub(self.base)?).ok()?;
        let packet = self.packets.get_mut(place)?.take();
        while let Some(None) = self.packets.front() {
            self.packets.pop_front();
            self.base += 1;
        }
        packet
    }

    /// Gives up all packets.
    pub(crate) fn clear(&mut self) -> Vec<InFlight> {
        self.packets.drain(..).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(len: u32) -> InFlight {
        InFlight { len, ..InFlight::default() }
    }

    #[test]
    fn packets_are_taken_once_and_gaps_hold_nothing() {
        let mut flights = Flights::default();
        for number in [7, 8, 10] {
            assert!(flights.push(number, packet(number as u32)).is_empty());
        }
        assert_eq!(flights.take(8).map(|packet| packet.len), Some(8));
        assert!(flights.take(8).is_none() && flights.take(9).is_none() && flights.take(6).is_none());
        assert_eq!(flights.take(7).map(|packet| packet.len), Some(7));
        assert_eq!((flights.base, flights.packets.len()), (10, 1), "the front is trimmed past the gap");
        assert_eq!(flights.take(10).map(|packet| packet.len), Some(10));
        assert!(flights.packets.is_empty());
    }

    #[test]
    fn numbers_that_start_again_or_leap_give_up_what_was_before() {
        let mut flights = Flights::default();
        flights.push(5, packet(5));
        assert_eq!(flights.push(0, packet(1)).len(), 1);
        assert_eq!(flights.take(5).map(|packet| packet.len), None);
        assert_eq!(flights.push(GAP + 2, packet(2)).len(), 1, "no memory for a peer's leap");
        assert_eq!(flights.packets.len(), 1);
    }
}
