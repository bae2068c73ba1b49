//! A link over satellites in low orbit, as Starlink's are: every terminal is assigned a satellite for 15 seconds.
//!
//! - In each period the rate is a share of the hop's, drawn uniformly, and the delay is longer than the hop's by a span that is drawn
//!   uniformly.
//! - For a while after each switch nothing is sent. What waits then waits longer, or is sent and lost.
//!
//! The period is that of Starlink's schedule (G. Huston, "Measuring Starlink Protocol Performance", 2024). That rate and delay are
//! independent from period to period is an assumption, and the other defaults are not measurements.
use super::{Burst, Flight, Mechanism, Opens, Room, scaled};
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};

params! {
    /// Parameters of a link over satellites.
    pub struct LeoParams {
        /// Time between reconfigurations.
        pub period: Span = Span::s(15), from Span::ms(100), to Span::s(3600);
        /// Lowest rate of a period, as a share of the hop's rate. The highest is the hop's.
        pub lowest: f64 = 0.4, from 0.01, to 1.0;
        /// Longest one-way delay that a period adds to the hop's.
        pub step: Span = Span::ms(10), from Span::ZERO, to Span::s(1);
        /// Time after each switch in which nothing arrives.
        pub stall: Span = Span::ms(50), from Span::ZERO, to Span::ms(99);
        /// Are the packets of a stall lost? Otherwise they wait.
        pub loses: bool = false;
    }
}

/// The link.
pub struct Leo {
    p: LeoParams,
    highest: Rate,
    rng: Rng,
    /// The present period: its start, its rate, and its delay beyond the hop's.
    start: Time,
    rate: Rate,
    extra: Span,
    /// When the last packet has left.
    free: Time,
    /// When the last packet arrives.
    last: Time,
}

impl Leo {
    fn draw(&mut self) {
        self.rate = scaled(self.highest, self.p.lowest + (1.0 - self.p.lowest) * self.rng.unit());
        self.extra = Span::ns(self.rng.below(self.p.step.as_ns() + 1));
    }

    fn advance(&mut self, now: Time) {
        while self.start + self.p.period <= now {
            self.start += self.p.period;
            self.draw();
        }
    }

    /// When the present period's stall is over; the first period has none.
    fn stall_ends(&self) -> Time {
        if self.start == Time::ZERO { Time::ZERO } else { self.start + self.p.stall }
    }

    /// When these bytes have left that start now, over all switches.
    fn leaves(&mut self, now: Time, bytes: u64) -> Time {
        // In units of bit·ns/s.
        let mut left = u128::from(bytes) * 8_000_000_000;
        let mut at = now;
        loop {
            let bps = u128::from(self.rate.as_bps().max(1));
            let end = self.start + self.p.period;
            let carried = bps * u128::from(end.since(at).as_ns());
            if carried >= left {
                return at + Span::ns(left.div_ceil(bps) as u64);
            }
            left -= carried;
            self.advance(end);
            at = if self.p.loses { end } else { self.stall_ends() };
        }
    }
}

impl Mechanism for Leo {
    type Params = LeoParams;
    const CUTS: bool = false;

    fn new(params: &LeoParams, rate: Rate, rng: Rng) -> Leo {
        let zero = Time::ZERO;
        let mut leo =
            Leo { p: params.clone(), highest: rate, rng, start: zero, rate, extra: Span::ZERO, free: zero, last: zero };
        leo.draw();
        leo
    }

    fn mean(params: &LeoParams, rate: Rate) -> Rate {
        let sends = 1.0 - params.stall.as_secs_f64() / params.period.as_secs_f64();
        scaled(rate, (1.0 + params.lowest) / 2.0 * sends)
    }

    fn opens(&mut self, now: Time, _: Bytes, _: &Flight) -> Opens {
        self.advance(now);
        let until = if self.p.loses { self.free } else { self.free.max(self.stall_ends()) };
        if until > now { Opens::At(until) } else { Opens::Now(Room { bytes: 1, each: 0 }) }
    }

    fn needs(&mut self, _: Time) -> Bytes {
        Bytes(1)
    }

    fn sends(&mut self, now: Time, burst: Burst, flight: &mut Flight) {
        if burst.bytes == 0 {
            return;
        }
        self.free = self.leaves(now, burst.bytes);
        self.last = self.last.max(self.free + self.extra);
        let in_stall = self.free <= self.stall_ends();
        if let Some(one) = flight.back_mut() {
            one.is_done = true;
            one.is_lost = self.p.loses && in_stall;
            one.arrives = Some(self.last);
        }
    }
}
