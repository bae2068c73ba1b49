//! A Wi-Fi link (IEEE 802.11n and later): packets are sent in aggregates, each with a cost.
//!
//! - To send, the station waits for the others and for a random number of slots. Then it takes what waits, up to a limit of bytes
//!   and of airtime (A-MPDU), and sends it behind a preamble; a block acknowledgment ends the exchange. The cost of an exchange
//!   does not depend on the aggregate: the fewer packets wait, the less the link carries.
//! - The PHY rate is one of eight (MCS 0 to 7), as shares of the hop's rate. It walks from one to the next.
//! - Each packet of an aggregate fails with a probability. Failed ones are sent again first in the next aggregate. The receiver
//!   delivers in order, so that packets behind a failed one wait for it.
//! - Other stations take a share of the airtime: before each exchange they send for a time that is drawn, in proportion to our last one.
//!
//! Sources: IEEE 802.11-2016, clauses 10.22 (EDCA, best effort: AIFSN 3, CWmin 15), 19 (HT: 9 µs slots, 16 µs SIFS, rates and preamble).
//! Unlike the standard, a block acknowledgment has no window, and failures are independent of the rate.
use super::walk::Walk;
use super::{Burst, FULL, Flight, Mechanism, Opens, Room, land, takes};
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};

params! {
    /// Parameters of a Wi-Fi link.
    pub struct WifiParams {
        /// Longest aggregate.
        pub aggregate: Bytes = Bytes(65_535), from Bytes(1), to Bytes(6_500_631);
        /// Longest airtime of an aggregate's packets.
        pub airtime: Span = Span::ms(4), from Span::us(50), to Span::ms(20);
        /// Lowest MCS.
        pub lowest: u32 = 3, from 0, to 7;
        /// Time between steps of the MCS, a third of which are up and a third down.
        pub change: Span = Span::ms(500), from Span::ms(1), to Span::s(3600);
        /// Probability that a packet of an aggregate fails.
        pub failure: f64 = 0.1, from 0.0, to 0.9;
        /// Times that a packet is sent again before it is lost.
        pub retries: u32 = 7, from 0, to 100;
        /// Share of the airtime that other stations use.
        pub others: f64 = 0.3, from 0.0, to 0.95;
    }
}

/// Arbitration space of best effort: SIFS and three slots.
const AIFS: Span = Span::us(16 + 3 * 9);
const SLOT: Span = Span::us(9);
/// Slots are drawn from 0 to this (CWmin).
const CONTENTION_WINDOW: u64 = 15;
/// Preamble of a mixed-format HT frame with one stream.
const PREAMBLE: Span = Span::us(36);
/// SIFS and a block acknowledgment of 32 bytes at 24 Mbit/s.
const ACKNOWLEDGMENT: Span = Span::us(16 + 32);
/// Delimiter, MAC header with QoS, check sequence and padding of a packet in an aggregate.
const EACH: u32 = 40;
/// Rates of MCS 0 to 7 as shares of that of MCS 7, in hundredths.
const RATES: [u64; 8] = [10, 20, 30, 40, 60, 80, 90, 100];

/// The link.
pub struct Wifi {
    p: WifiParams,
    rate: Rate,
    mcs: Walk,
    rng: Rng,
    /// When the last exchange ends.
    free: Time,
    /// How long it took.
    took: Span,
    /// When the station has won the next exchange, if it tries to.
    wins: Option<Time>,
}

fn phy(rate: Rate, mcs: u32) -> Rate {
    Rate::bit((u128::from(rate.as_bps()) * u128::from(RATES[mcs as usize]) / 100) as u64)
}

fn room(p: &WifiParams, phy: Rate) -> u64 {
    phy.bytes_in(p.airtime).0.min(p.aggregate.0)
}

impl Wifi {
    /// When an exchange is won that is begun at this time.
    fn contend(&mut self, from: Time) -> Time {
        let others = self.took.as_secs_f64() * self.p.others / (1.0 - self.p.others) * self.rng.exponential();
        let slots = SLOT * self.rng.below(CONTENTION_WINDOW + 1);
        from + Span::from_secs_f64(others) + AIFS + slots
    }
}

fn resent(flight: &Flight) -> u64 {
    flight.iter().filter(|one| !one.is_done).map(|one| u64::from(one.len + EACH)).sum()
}

impl Mechanism for Wifi {
    type Params = WifiParams;
    const CUTS: bool = false;

    fn new(params: &WifiParams, rate: Rate, mut rng: Rng) -> Wifi {
        let channel = Rng::stream(rng.next_u64(), "mcs");
        let mcs = Walk::new(params.lowest, RATES.len() as u32 - 1, params.change, channel);
        let free = Time::ZERO;
        Wifi { p: params.clone(), rate, mcs, rng, free, took: Span::ZERO, wins: None }
    }

    fn mean(params: &WifiParams, rate: Rate) -> Rate {
        let each = FULL + u64::from(EACH);
        let of = |mcs: u32| {
            let phy = phy(rate, mcs);
            let packets = (room(params, phy) / each).max(1);
            let slots = SLOT.as_secs_f64() * CONTENTION_WINDOW as f64 / 2.0;
            let fixed = (AIFS + PREAMBLE + ACKNOWLEDGMENT).as_secs_f64() + slots;
            let own = fixed + takes(phy, packets * each).as_secs_f64();
            let delivered = (packets * FULL * 8) as f64 * (1.0 - params.failure);
            delivered / own * (1.0 - params.others)
        };
        let levels = params.lowest..RATES.len() as u32;
        let sum: f64 = levels.clone().map(of).sum();
        Rate::bit((sum / levels.len() as f64) as u64)
    }

    fn opens(&mut self, now: Time, _: Bytes, flight: &Flight) -> Opens {
        if self.free > now {
            return Opens::At(self.free);
        }
        let wins = match self.wins {
            Some(wins) => wins,
            None => self.contend(now),
        };
        self.wins = Some(wins);
        if wins > now {
            return Opens::At(wins);
        }
        let phy = phy(self.rate, self.mcs.at(now));
        Opens::Now(Room { bytes: room(&self.p, phy).saturating_sub(resent(flight)), each: EACH })
    }

    fn needs(&mut self, now: Time) -> Bytes {
        let has_won = self.free <= now && self.wins.is_some_and(|wins| wins <= now);
        if has_won { Bytes(room(&self.p, phy(self.rate, self.mcs.at(now)))) } else { Bytes(1) }
    }

    fn sends(&mut self, now: Time, _: Burst, flight: &mut Flight) {
        let bytes = resent(flight);
        if bytes == 0 {
            return;
        }
        let phy = phy(self.rate, self.mcs.at(now));
        self.free = now + PREAMBLE + takes(phy, bytes) + ACKNOWLEDGMENT;
        // The others' time is no part of ours.
        self.took = self.free.since(now) + AIFS + SLOT * CONTENTION_WINDOW / 2;
        self.wins = None;
        for one in flight.iter_mut().filter(|one| !one.is_done) {
            one.tries += 1;
            let fails = self.rng.chance(self.p.failure);
            one.is_lost = fails && one.tries > self.p.retries;
            one.is_done = !fails || one.is_lost;
        }
        land(flight, self.free);
    }
}
