//! The upstream of a cable modem (DOCSIS 3.1): the modem requests, the headend grants.
//!
//! - Time is divided into MAP intervals. At the start of one the modem requests what waits and is not yet requested.
//!   The grant comes `cycle` intervals later, and the modem sends only what was granted.
//! - A modem without grants to come requests in a contention slot, where it may collide and try again 1 to 4 intervals later. With
//!   grants to come it adds the request to what it sends (piggybacking).
//! - The headend grants no more than a token bucket at the hop's rate has, and no more in one interval than the channel carries.
//!
//! Sources: DOCSIS 3.1 MULPI (requests, grants, maximum sustained traffic rate and burst); `draft-white-tsvwg-lld-00` for the typical
//! access delay of about 10 ms. Collisions are a model.
use super::{Burst, Flight, Mechanism, Opens, Room, scaled, takes};
use crate::rate::{Bytes, Rate};
use crate::rng::Rng;
use crate::time::{Span, Time};
use alloc::collections::VecDeque;

params! {
    /// Parameters of a cable modem's upstream.
    pub struct DocsisParams {
        /// Length of a MAP interval.
        pub map: Span = Span::ms(2), from Span::us(100), to Span::ms(100);
        /// MAP intervals from a request to its grant.
        pub cycle: u32 = 2, from 1, to 100;
        /// Burst of the token bucket, in addition to what its rate gives in an interval (maximum traffic burst).
        pub burst: Bytes = Bytes(3044), from Bytes(0), to Bytes(1_000_000_000);
        /// The channel's rate, as a multiple of the hop's.
        pub channel: f64 = 2.0, from 1.0, to 1000.0;
        /// Probability that a request in a contention slot collides.
        pub collision: f64 = 0.1, from 0.0, to 0.9;
    }
}

/// The upstream.
pub struct Docsis {
    p: DocsisParams,
    rate: Rate,
    channel: Rate,
    rng: Rng,
    /// Number of the next interval whose start has not been handled.
    next: u64,
    /// Requests: the interval of the grant, and the bytes.
    requests: VecDeque<(u64, u64)>,
    requested: u64,
    /// The interval from which a request may be made.
    may_request: u64,
    /// Bytes that the token bucket has given since the epoch, unused ones included.
    spent: u64,
}

impl Docsis {
    fn time_of(&self, interval: u64) -> Time {
        Time::ZERO + self.p.map * interval
    }

    /// Requests what waits beyond the requests so far.
    fn request(&mut self, interval: u64, backlog: u64) {
        let wanted = backlog.saturating_sub(self.requested);
        if wanted == 0 || interval < self.may_request {
            return;
        }
        if self.requests.is_empty() && self.rng.chance(self.p.collision) {
            self.may_request = interval + 1 + self.rng.below(4);
            return;
        }
        self.requests.push_back((interval + u64::from(self.p.cycle), wanted));
        self.requested += wanted;
    }

    /// The bytes that are granted in this interval.
    fn granted(&mut self, interval: u64) -> u64 {
        let earned = self.rate.bytes_in(self.time_of(interval + 1).since(Time::ZERO)).0;
        let most = self.rate.bytes_in(self.p.map).0 + 1 + self.p.burst.0;
        self.spent = self.spent.max(earned.saturating_sub(most));
        let mut room = (earned - self.spent).min(self.channel.bytes_in(self.p.map).0.max(1));
        let mut granted = 0;
        while let Some((_, bytes)) = self.requests.front_mut().filter(|(due, _)| *due <= interval) {
            let now = room.min(*bytes);
            (granted, room, *bytes) = (granted + now, room - now, *bytes - now);
            if *bytes > 0 {
                break;
            }
            self.requests.pop_front();
        }
        self.spent += granted;
        self.requested -= granted;
        granted
    }
}

impl Mechanism for Docsis {
    type Params = DocsisParams;
    const CUTS: bool = true;

    fn new(params: &DocsisParams, rate: Rate, rng: Rng) -> Docsis {
        let channel = scaled(rate, params.channel);
        let requests = VecDeque::with_capacity(params.cycle as usize + 2);
        Docsis { p: params.clone(), rate, channel, rng, next: 0, requests, requested: 0, may_request: 0, spent: 0 }
    }

    fn mean(_: &DocsisParams, rate: Rate) -> Rate {
        rate
    }

    fn opens(&mut self, now: Time, backlog: Bytes, _: &Flight) -> Opens {
        let interval = now.as_ns().div_ceil(self.p.map.as_ns()).max(self.next);
        let start = self.time_of(interval);
        if start > now {
            return Opens::At(start);
        }
        self.next = interval + 1;
        self.request(interval, backlog.0);
        match self.granted(interval) {
            0 => Opens::At(self.time_of(interval + 1)),
            bytes => Opens::Now(Room { bytes, each: 0 }),
        }
    }

    fn needs(&mut self, _: Time) -> Bytes {
        // What waits from a request to its grant, and what the grant may have saved.
        self.rate.bytes_in(self.p.map * u64::from(self.p.cycle + 1)) + self.p.burst
    }

    fn sends(&mut self, now: Time, _: Burst, flight: &mut Flight) {
        for one in flight.iter_mut().rev().take_while(|one| one.arrives.is_none()) {
            one.is_done = true;
            one.arrives = Some(now + takes(self.channel, one.end));
        }
    }
}
