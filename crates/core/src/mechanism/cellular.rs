//! The downlink of a mobile network (LTE): the base station schedules in intervals of a millisecond.
//!
//! - In each interval (TTI) the link carries a block whose size follows the channel: its quality (CQI) walks over levels, each with
//!   the spectral efficiency of the standard. Some intervals belong to others.
//! - A block fails with a probability. It is sent again 8 ms later (HARQ), up to four times, in an interval that carries nothing else.
//!   The receiver delivers in order (RLC): what follows a failed block arrives with it.
//! - A handover interrupts the link.
//!
//! The buffer is the hop's queue; base stations have deep ones. Sources: 3GPP TS 36.213, table 7.2.3-1 (efficiencies), 10 % failures
//! as the target of link adaptation, 8 ms from a block to its retransmission (FDD). The walk, the others' share and handovers are a model.
use super::walk::Walk;
use super::{Burst, Flight, Mechanism, Opens, Room, scaled};
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};

params! {
    /// Parameters of a mobile network's downlink.
    pub struct CellularParams {
        /// Lowest quality of the channel (CQI). The highest is 15, with which the hop's rate is reached.
        pub lowest: u32 = 4, from 1, to 15;
        /// Time between steps of the quality, a third of which are up and a third down.
        pub change: Span = Span::ms(100), from Span::ms(1), to Span::s(3600);
        /// Share of the intervals that other users get.
        pub others: f64 = 0.3, from 0.0, to 0.99;
        /// Probability that a block fails.
        pub failure: f64 = 0.1, from 0.0, to 0.9;
        /// Time from a block to its retransmission.
        pub harq: Span = Span::ms(8), from Span::ms(1), to Span::ms(100);
        /// Mean time between handovers; none with 0s.
        pub handover: Span = Span::s(30), from Span::ZERO, to Span::s(86_400);
        /// Interruption by a handover.
        pub gap: Span = Span::ms(50), from Span::ZERO, to Span::s(10);
    }
}

/// Length of an interval.
const TTI: Span = Span::ms(1);
/// Retransmissions of a block.
const MOST: u32 = 4;
/// Spectral efficiencies of CQI 1 to 15, in units of 10⁻⁴ bit/s/Hz.
const EFFICIENCY: [u64; 15] =
    [1523, 2344, 3770, 6016, 8770, 11_758, 14_766, 19_141, 24_063, 27_305, 33_223, 39_023, 45_234, 51_152, 55_547];

/// The downlink.
pub struct Cellular {
    p: CellularParams,
    rate: Rate,
    quality: Walk,
    handovers: Rng,
    rng: Rng,
    /// Number of the next interval that has not been handled.
    next: u64,
    /// Millionths of a byte that are carried over to the next block.
    fraction: u64,
    /// Intervals that retransmissions take.
    owed: u32,
    /// When the next handover begins.
    handover: Time,
    /// When the last block arrives.
    last: Time,
}

impl Cellular {
    /// The bytes of a block.
    fn block(&mut self, now: Time) -> u64 {
        let efficiency = u128::from(EFFICIENCY[self.quality.at(now) as usize - 1]);
        let bits_ns = u128::from(self.rate.as_bps()) * u128::from(TTI.as_ns());
        let millionths = bits_ns * efficiency / (8_000 * u128::from(EFFICIENCY[14])) + u128::from(self.fraction);
        self.fraction = (millionths % 1_000_000) as u64;
        (millionths / 1_000_000) as u64
    }

    fn draw_handover(&mut self, from: Time) {
        let wait = self.p.handover.as_secs_f64() * self.handovers.exponential();
        self.handover = from + Span::from_secs_f64(wait).max(Span::ns(1));
    }

    /// When the handover of this time is over, if there is one.
    fn interrupted(&mut self, now: Time) -> Option<Time> {
        if self.p.handover == Span::ZERO {
            return None;
        }
        loop {
            let end = self.handover + self.p.gap;
            if end > now {
                return (self.handover <= now).then_some(end);
            }
            self.draw_handover(end);
        }
    }
}

impl Mechanism for Cellular {
    type Params = CellularParams;
    const CUTS: bool = true;

    fn new(params: &CellularParams, rate: Rate, mut rng: Rng) -> Cellular {
        let quality = Rng::stream(rng.next_u64(), "quality");
        let handovers = Rng::stream(rng.next_u64(), "handovers");
        let quality = Walk::new(params.lowest, EFFICIENCY.len() as u32, params.change, quality);
        let zero = Time::ZERO;
        let mut all = Cellular {
            p: params.clone(),
            rate,
            quality,
            handovers,
            rng,
            next: 0,
            fraction: 0,
            owed: 0,
            handover: zero,
            last: zero,
        };
        all.draw_handover(zero);
        all
    }

    fn mean(params: &CellularParams, rate: Rate) -> Rate {
        let levels = &EFFICIENCY[params.lowest as usize - 1..];
        let efficiency = levels.iter().sum::<u64>() as f64 / (levels.len() as f64 * EFFICIENCY[14] as f64);
        let p = params.failure;
        let sent = 1.0 + p + p * p + p * p * p + p * p * p * p;
        let (between, gap) = (params.handover.as_secs_f64(), params.gap.as_secs_f64());
        let connected = if between > 0.0 { between / (between + gap) } else { 1.0 };
        scaled(rate, efficiency * (1.0 - params.others) / sent * connected)
    }

    fn opens(&mut self, now: Time, _: Bytes, _: &Flight) -> Opens {
        let interval = now.as_ns().div_ceil(TTI.as_ns()).max(self.next);
        let start = Time::ZERO + TTI * interval;
        if start > now {
            return Opens::At(start);
        }
        if let Some(end) = self.interrupted(now) {
            return Opens::At(end.rounded_up(TTI));
        }
        self.next = interval + 1;
        let is_ours = !self.rng.chance(self.p.others);
        if is_ours && self.owed > 0 {
            self.owed -= 1;
        } else if is_ours {
            let bytes = self.block(now);
            if bytes > 0 {
                return Opens::Now(Room { bytes, each: 0 });
            }
        }
        Opens::At(start + TTI)
    }

    fn needs(&mut self, now: Time) -> Bytes {
        let (interval, rest) = (now.as_ns() / TTI.as_ns(), now.as_ns() % TTI.as_ns());
        if rest > 0 || interval < self.next {
            return Bytes(1);
        }
        let share = EFFICIENCY[self.quality.at(now) as usize - 1] as f64 / EFFICIENCY[14] as f64;
        scaled(self.rate, share).bytes_in(TTI) + Bytes(1)
    }

    fn sends(&mut self, now: Time, burst: Burst, flight: &mut Flight) {
        if burst.bytes == 0 {
            return;
        }
        let mut failures = 0;
        while failures < MOST && self.rng.chance(self.p.failure) {
            failures += 1;
        }
        self.owed += failures;
        self.last = self.last.max(now + TTI + self.p.harq * u64::from(failures));
        for one in flight.iter_mut().rev().take_while(|one| one.arrives.is_none()) {
            one.is_done = true;
            one.arrives = Some(self.last);
        }
    }
}
