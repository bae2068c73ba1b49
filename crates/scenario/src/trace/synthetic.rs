//! Synthetic traces of links whose rate varies: four models, each a few lines of arithmetic and a seed.
//!
//! They are no measurements. Their form is taken from the literature that each model names. Their parameters are round numbers that
//! were chosen by hand and fitted to nothing, except in `lte`, which has those of the paper. Use them to see how a queue
//! or a controller copes with a link of this kind, not to predict a given network. A model and a seed give the same trace on
//! every machine.
use super::{Carried, NS_PER_MS};
use narrows_core::{Rate, Rng, Span};

/// The seed of a built-in trace, as a scenario names it.
pub const SEED: u64 = 1;
/// The length of a built-in trace.
pub const DURATION: Span = Span::s(60);
/// The longest trace that is made.
pub const LONGEST: Span = Span::s(600);

/// A model of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// A cellular downlink, after Sprout.
    Lte,
    /// A cell of millimetre waves or a high band, which bodies and vehicles block.
    FiveG,
    /// A station that contends for a Wi-Fi channel.
    Wifi,
    /// A satellite link that is scheduled anew every 15 s.
    Starlink,
}

impl Model {
    /// All of them.
    pub const ALL: [Model; 4] = [Model::Lte, Model::FiveG, Model::Wifi, Model::Starlink];

    /// The name in scenarios and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Model::Lte => "lte",
            Model::FiveG => "5g",
            Model::Wifi => "wifi",
            Model::Starlink => "starlink",
        }
    }

    /// The model of this name, in any letter case.
    pub fn named(name: &str) -> Option<Model> {
        Model::ALL.into_iter().find(|model| model.name().eq_ignore_ascii_case(name))
    }

    /// What it models, and how.
    pub const fn summary(self) -> &'static str {
        match self {
            Model::Lte => {
                "a cellular downlink after Sprout (Winstein et al., NSDI 2013): packets leave as a Poisson process whose rate is a \
                 Brownian motion of 200 packets/s per √s below 1000 packets/s; at 0 an outage begins, which lasts 1 s on average and ends in \
                 another cell, at any of these rates"
            }
            Model::FiveG => {
                "a high-band cell: 80 Mbit/s in the median while in sight (6 s on average), 12 Mbit/s while blocked (1 s); \
                 log-normal shadowing of 0.35, correlated over 0.5 s; at most 200 Mbit/s"
            }
            Model::Wifi => {
                "a station among three busy ones on an 802.11ac channel (40 MHz, two streams): aggregates of at most 64 packets and \
                 4 ms at a rate from 27 to 360 Mbit/s that may change every 100 ms; the others send 1.5 ms each in between, \
                 on average"
            }
            Model::Starlink => {
                "a satellite link that is scheduled anew every 15 s, at 12, 27, 42 and 57 s of each minute: a log-normal rate of 80 \
                 Mbit/s in the median (0.4), which varies by 0.1 within a slot; half of the changes begin with an outage of 20 to \
                 200 ms"
            }
        }
    }

    /// The opportunities of a trace of this length, and its period: whole milliseconds, at least one.
    pub fn opportunities(self, seed: u64, duration: Span) -> (Vec<Span>, Span) {
        let rng = Rng::stream(seed, self.name());
        let ms = (duration.min(LONGEST).as_ns() / NS_PER_MS).max(1);
        match self {
            Model::Lte => lte(rng, ms),
            Model::FiveG => five_g(rng, ms),
            Model::Wifi => wifi(rng, ms),
            Model::Starlink => starlink(rng, ms),
        }
    }
}

/// Sprout's model of a cellular link, in its ticks of 20 ms. Deviates: Sprout infers the rate of a link, and after an outage the
/// motion goes on from zero, where it soon ends again; here it goes on at a rate that is drawn uniformly, as after a handover.
fn lte(mut rng: Rng, ms: u64) -> (Vec<Span>, Span) {
    /// Packets per second per √s.
    const SIGMA: f64 = 200.0;
    /// Packets per second.
    const MOST: f64 = 1000.0;
    /// How often an outage ends, per second.
    const ESCAPE: f64 = 1.0;
    const TICK_S: f64 = 0.02;
    const TICK_MS: u64 = 20;
    let mut carried = Carried::default();
    let mut rate = MOST / 2.0;
    for tick in 0..ms.div_ceil(TICK_MS) {
        rate = match rate > 0.0 {
            true => (rate + SIGMA * libm::sqrt(TICK_S) * normal(&mut rng)).max(0.0),
            false if rng.chance(1.0 - libm::exp(-ESCAPE * TICK_S)) => MOST * rng.unit(),
            false => 0.0,
        };
        // The motion is reflected at its upper end.
        rate = if rate > MOST { 2.0 * MOST - rate } else { rate };
        let (mut at, end) = (tick as f64 * TICK_S, ((tick + 1) * TICK_MS).min(ms));
        if rate <= 0.0 {
            continue;
        }
        loop {
            at += rng.exponential() / rate;
            let at_ns = Span::from_secs_f64(at).as_ns();
            if at_ns > end * NS_PER_MS {
                break;
            }
            carried.push(at_ns);
        }
    }
    carried.now = ms * NS_PER_MS;
    carried.finish()
}

/// Two states, in sight and blocked, each with its median; shadowing that fades with time, after Gudmundson (1991).
fn five_g(mut rng: Rng, ms: u64) -> (Vec<Span>, Span) {
    const MOST: f64 = 200e6;
    let mut shadow = Correlated::new(0.35, 0.5, &mut rng);
    let (mut blocked, mut left_s) = (false, 6.0 * rng.exponential());
    rates(ms, |_| {
        left_s -= STEP_S;
        if left_s < 0.0 {
            blocked = !blocked;
            left_s = if blocked { 1.0 } else { 6.0 } * rng.exponential();
        }
        let median = if blocked { 12e6 } else { 80e6 };
        (median * libm::exp(shadow.next(&mut rng))).min(MOST)
    })
}

/// Transmission opportunities of one station, as bursts at the end of its aggregates.
fn wifi(mut rng: Rng, ms: u64) -> (Vec<Span>, Span) {
    /// IEEE 802.11ac, 40 MHz, two streams, long guard interval: MCS 0 to 9, Mbit/s.
    const MCS: [u64; 10] = [27, 54, 81, 108, 162, 216, 243, 270, 324, 360];
    const MOST_PACKETS: u64 = 64;
    const LONGEST_NS: u64 = 4_000_000;
    /// Preamble, block acknowledgment and spaces between frames.
    const OVERHEAD_NS: u64 = 100_000;
    const OTHERS: u32 = 3;
    const EACH_NS: f64 = 1.5e6;
    const STEP_NS: u64 = 100 * NS_PER_MS;
    let mut carried = Carried::default();
    let (mut mcs, mut now, mut changes) = (MCS.len() / 2, 0, STEP_NS);
    loop {
        while now >= changes {
            mcs = match rng.below(4) {
                0 => mcs.saturating_sub(1),
                1 => (mcs + 1).min(MCS.len() - 1),
                _ => mcs,
            };
            changes += STEP_NS;
        }
        let packet_ns = 12_000_000 / MCS[mcs];
        let packets = (LONGEST_NS / packet_ns).clamp(1, MOST_PACKETS);
        let others: f64 = (0..OTHERS).map(|_| EACH_NS * rng.exponential()).sum();
        now += others as u64 + OVERHEAD_NS + packets * packet_ns;
        if now > ms * NS_PER_MS {
            break;
        }
        (0..packets).for_each(|_| carried.push(now));
    }
    carried.now = ms * NS_PER_MS;
    carried.finish()
}

/// Slots of 15 s with a rate each (Mohan et al., "A Multifaceted Look at Starlink Performance", WWW 2024, describe the slots).
fn starlink(mut rng: Rng, ms: u64) -> (Vec<Span>, Span) {
    const SLOT_MS: u64 = 15_000;
    const FIRST_MS: u64 = 12_000;
    const MOST: f64 = 300e6;
    let mut within = Correlated::new(0.1, 1.0, &mut rng);
    let slot = |rng: &mut Rng| 80e6 * libm::exp(0.4 * normal(rng));
    let (mut rate, mut outage_until) = (slot(&mut rng), 0);
    rates(ms, |at| {
        if at >= FIRST_MS && (at - FIRST_MS).is_multiple_of(SLOT_MS) {
            rate = slot(&mut rng);
            outage_until = if rng.chance(0.5) { at + 20 + rng.below(181) } else { at };
        }
        let varied = rate * libm::exp(within.next(&mut rng));
        if at < outage_until { 0.0 } else { varied.min(MOST) }
    })
}

/// Length of a step of [`rates`].
const STEP_MS: u64 = 10;
const STEP_S: f64 = 0.01;

/// Opportunities from a function that gives the rate in bit/s of each step of 10 ms by its start in ms.
fn rates(ms: u64, mut next: impl FnMut(u64) -> f64) -> (Vec<Span>, Span) {
    let mut carried = Carried::default();
    for at in (0..ms).step_by(STEP_MS as usize) {
        let rate = Rate::bit(next(at) as u64);
        let held = carried.hold(rate, Span::ms(STEP_MS.min(ms - at)));
        debug_assert!(held.is_some(), "ten minutes at 300 Mbit/s are 15 million opportunities");
    }
    carried.finish()
}

/// A stationary Gaussian process whose correlation falls exponentially with time (an autoregressive process of order one), in
/// steps of 10 ms.
struct Correlated {
    deviation: f64,
    kept: f64,
    value: f64,
}

impl Correlated {
    fn new(deviation: f64, time_s: f64, rng: &mut Rng) -> Correlated {
        Correlated { deviation, kept: libm::exp(-STEP_S / time_s), value: deviation * normal(rng) }
    }

    fn next(&mut self, rng: &mut Rng) -> f64 {
        let fresh = self.deviation * libm::sqrt(1.0 - self.kept * self.kept);
        self.value = self.kept * self.value + fresh * normal(rng);
        self.value
    }
}

/// A standard normal number (Box and Muller 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(2.0 * rng.exponential());
    radius * libm::cos(core::f64::consts::TAU * rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_mbit((opportunities, period): &(Vec<Span>, Span)) -> f64 {
        opportunities.len() as f64 * 0.012 / period.as_secs_f64()
    }

    #[test]
    fn a_seed_gives_one_trace_and_another_seed_another() {
        for model in Model::ALL {
            let made = |seed| model.opportunities(seed, Span::s(20));
            assert_eq!(made(7), made(7), "{model:?}");
            assert_ne!(made(7), made(8), "{model:?}");
            let (opportunities, period) = made(7);
            assert_eq!(period, Span::s(20), "{model:?}");
            assert!(opportunities.is_sorted() && opportunities.last() == Some(&period), "{model:?}");
        }
    }

    #[test]
    fn long_traces_have_the_means_of_their_models() {
        // Each from its parameters: 80 and 12 Mbit/s for six sevenths and one, times e^(0.35² ÷ 2), less what the limit cuts off;
        // 80 Mbit/s times e^((0.4² + 0.1²) ÷ 2), with a spread that forty slots leave.
        let mean = |model: Model| rate_mbit(&model.opportunities(3, LONGEST));
        let (five_g, starlink) = (mean(Model::FiveG), mean(Model::Starlink));
        assert!((68.0..82.0).contains(&five_g), "{five_g}");
        assert!((70.0..105.0).contains(&starlink), "{starlink}");
        // The Brownian motion is between its ends, and some of the time in an outage.
        let lte = mean(Model::Lte);
        assert!((2.0..8.0).contains(&lte), "{lte}");
        // One aggregate every 4.6 ms of the others and 0.1 to 4 ms of its own.
        let wifi = mean(Model::Wifi);
        assert!((12.0..130.0).contains(&wifi), "{wifi}");
    }

    #[test]
    fn wifi_sends_aggregates_and_lte_has_outages() {
        let (wifi, _) = Model::Wifi.opportunities(1, Span::s(10));
        let bursts = wifi.chunk_by(|a, b| a == b).count();
        assert!(wifi.len() / bursts >= 8, "{} in {bursts}", wifi.len());
        let (lte, _) = Model::Lte.opportunities(1, LONGEST);
        let longest = lte.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max();
        assert!(longest > Some(Span::ms(500)), "{longest:?}");
    }
}
