//! What Linux's netem does to packets besides delaying them: loss, duplication, corruption, reordering, and a limit of the delay line
//! (`net/sched/sch_netem.c`).
//!
//! Chances are netem's, with its arithmetic: a chance with a correlation mixes each draw with the one before (`get_crandom`). That
//! makes draws less spread, so that a loss of 1 % with a correlation of 50 % loses fewer than 1 %. Loss in bursts is netem's
//! Gilbert–Elliott model (`loss_gilb_ell`): the state at a packet's arrival decides about its loss, after the next state was drawn.
//!
//! Losses may also be [recorded ones](RecordedLosses), which netem does not have.
//!
//! Each effect draws from a stream of its own, so that one effect does not change another's draws.
use crate::rng::Rng;
use crate::time::Time;
use trace::Playback;

mod trace;

pub use trace::{LossTrace, RecordedLosses};

/// A probability, and the correlation of each draw with the one before.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Chance {
    /// From 0 to 1.
    pub share: f64,
    /// From 0 to 1; draws are independent at 0.
    pub correlation: f64,
}

impl Chance {
    /// Independent draws.
    pub const fn of(share: f64) -> Chance {
        Chance { share, correlation: 0.0 }
    }
}

/// How packets are lost behind a link.
#[derive(Clone, PartialEq, Debug)]
pub enum Loss {
    /// Each with this probability (`loss random`).
    Random(Chance),
    /// By a chain of two states, good and bad (`loss gemodel`).
    Gemodel {
        /// Probability of a change from good to bad, per packet.
        p: f64,
        /// Probability of a change from bad to good.
        r: f64,
        /// Probability of a loss in the bad state; `1-h` in `tc`'s words.
        bad: f64,
        /// Probability of a loss in the good state; `1-k` in `tc`'s words.
        good: f64,
    },
    /// As it was recorded.
    Trace(LossTrace),
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::random(0.0)
    }
}

impl Loss {
    /// Each packet with this probability, independently.
    pub const fn random(share: f64) -> Loss {
        Loss::Random(Chance::of(share))
    }

    /// Its probability, if each packet is lost independently of the others.
    pub fn independent(&self) -> Option<f64> {
        match self {
            Loss::Random(Chance { share, correlation: 0.0 }) => Some(*share),
            _ => None,
        }
    }

    /// The share of packets that is lost in the long run; that of independent draws for a chance with a correlation.
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Random(chance) => chance.share,
            Loss::Gemodel { p: 0.0, good, .. } => *good,
            Loss::Gemodel { p, r, bad, good } => (p * bad + r * good) / (p + r),
            Loss::Trace(trace) => trace.losses.mean(),
        }
    }

    /// Whether no packet is lost.
    pub fn is_none(&self) -> bool {
        match self {
            Loss::Random(chance) => chance.share == 0.0,
            Loss::Gemodel { p, bad, good, .. } => *good == 0.0 && (*p == 0.0 || *bad == 0.0),
            Loss::Trace(trace) => trace.losses.mean() == 0.0,
        }
    }
}

/// Packets that do not wait in the delay line, and so overtake the others (`reorder`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reorder {
    /// The chance of a packet that may do so.
    pub chance: Chance,
    /// Which may: every packet at 1, at most every fifth at 5.
    pub gap: u32,
}

/// All effects.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Effects {
    /// Packets that are lost.
    pub loss: Loss,
    /// Packets that arrive twice.
    pub duplicate: Option<Chance>,
    /// Packets with a changed bit.
    pub corrupt: Option<Chance>,
    /// Packets that overtake others.
    pub reorder: Option<Reorder>,
    /// Maximum number of packets in the delay line.
    pub limit: Option<u32>,
}

/// Draws the effects on each packet.
#[derive(Clone, Debug)]
pub struct Netem {
    loss: Losing,
    duplicate: Option<Draws>,
    corrupt: Option<Draws>,
    reorder: Option<Reordering>,
    limit: Option<u32>,
}

#[derive(Clone, Debug)]
enum Losing {
    Random(Draws),
    Gemodel { to_bad: f64, to_good: f64, bad: f64, good: f64, is_bad: bool, rng: Rng },
    Recorded(Playback),
}

#[derive(Clone, Debug)]
struct Reordering {
    draws: Draws,
    gap: u32,
    /// Packets since the last one that overtook others.
    counter: u32,
}

impl Netem {
    /// Draws these effects; `None` if there are none. `stream` gives each effect its random numbers, by its name.
    pub fn new(effects: &Effects, stream: impl Fn(&str) -> Rng) -> Option<Netem> {
        if effects.loss.is_none() && effects.are_losses_only() {
            return None;
        }
        let draws = |chance: Option<Chance>, name| chance.map(|chance| Draws::new(chance, stream(name)));
        let loss = match &effects.loss {
            Loss::Random(chance) => Losing::Random(Draws::new(*chance, stream("loss"))),
            &Loss::Gemodel { p, r, bad, good } => {
                Losing::Gemodel { to_bad: p, to_good: r, bad, good, is_bad: false, rng: stream("loss") }
            }
            Loss::Trace(trace) => Losing::Recorded(Playback::new(&trace.losses, stream("loss"))),
        };
        let reordering = |Reorder { chance, gap }| Reordering {
            draws: Draws::new(chance, stream("reorder")),
            gap: gap.max(1),
            counter: 0,
        };
        Some(Netem {
            loss,
            duplicate: draws(effects.duplicate, "duplicate"),
            corrupt: draws(effects.corrupt, "corrupt"),
            reorder: effects.reorder.map(reordering),
            limit: effects.limit,
        })
    }

    /// Whether this packet is sent twice.
    #[inline]
    pub fn duplicates(&mut self) -> bool {
        self.duplicate.as_mut().is_some_and(Draws::hits)
    }

    /// Whether the packet that leaves the link now is lost. Calls are in the order of time.
    #[inline]
    pub fn loses(&mut self, now: Time) -> bool {
        match &mut self.loss {
            Losing::Random(draws) => draws.hits(),
            Losing::Gemodel { to_bad, to_good, bad, good, is_bad, rng } => {
                let (change, loss) = if *is_bad { (*to_good, *bad) } else { (*to_bad, *good) };
                *is_bad ^= rng.chance(change);
                rng.chance(loss)
            }
            Losing::Recorded(playback) => playback.loses(now),
        }
    }

    /// Whether a bit of this packet changes.
    #[inline]
    pub fn corrupts(&mut self) -> bool {
        self.corrupt.as_mut().is_some_and(Draws::hits)
    }

    /// Whether this packet does not wait in the delay line.
    #[inline]
    pub fn skips_delay(&mut self) -> bool {
        let Some(Reordering { draws, gap, counter }) = &mut self.reorder else { return false };
        let skips = *counter >= *gap - 1 && draws.hits();
        *counter = if skips { 0 } else { counter.saturating_add(1) };
        skips
    }

    /// Whether packets may skip the delay line.
    pub const fn reorders(&self) -> bool {
        self.reorder.is_some()
    }

    /// Whether a delay line with this many packets has room for another.
    #[inline]
    pub fn has_room(&self, packets: usize) -> bool {
        self.limit.is_none_or(|limit| packets < limit as usize)
    }
}

impl Effects {
    /// Whether nothing but losses can happen.
    const fn are_losses_only(&self) -> bool {
        self.duplicate.is_none() && self.corrupt.is_none() && self.reorder.is_none() && self.limit.is_none()
    }
}

/// netem's draws (`get_crandom`).
#[derive(Clone, Debug)]
struct Draws {
    share: f64,
    /// The chance and the correlation in 32 bits. The previous draw counts only with a correlation.
    threshold: u64,
    rho: u64,
    last: u64,
    rng: Rng,
}

impl Draws {
    fn new(chance: Chance, mut rng: Rng) -> Draws {
        let of_32_bits = |share: f64| (share * f64::from(u32::MAX) + 0.5) as u64;
        let rho = of_32_bits(chance.correlation);
        let last = if rho > 0 { rng.next_u32().into() } else { 0 };
        Draws { share: chance.share, threshold: of_32_bits(chance.share), rho, last, rng }
    }

    #[inline]
    fn hits(&mut self) -> bool {
        if self.rho == 0 {
            return self.rng.chance(self.share);
        }
        let (value, rho) = (u64::from(self.rng.next_u32()), self.rho + 1);
        self.last = (value * ((1 << 32) - rho) + self.last * rho) >> 32;
        self.threshold >= self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn netem(effects: Effects) -> Netem {
        Netem::new(&effects, |name| Rng::stream(1, name)).expect("it has an effect")
    }

    fn share(hits: usize, of: usize) -> f64 {
        hits as f64 / of as f64
    }

    const PACKETS: usize = 1_000_000;

    #[test]
    fn without_effects_there_is_nothing_to_draw() {
        let none = |effects: Effects| Netem::new(&effects, |name| Rng::stream(1, name)).is_none();
        assert!(none(Effects::default()));
        let never = Loss::Gemodel { p: 0.5, r: 0.5, bad: 0.0, good: 0.0 };
        assert!(none(Effects { loss: never, ..Effects::default() }));
        assert!(!none(Effects { limit: Some(1000), ..Effects::default() }));
    }

    /// The stationary share of the bad state is p ÷ (p + r); a burst of the bad state lasts 1 ÷ r packets on average.
    #[test]
    fn losses_come_in_the_bursts_of_gilbert_and_elliott() {
        let loss = Loss::Gemodel { p: 0.01, r: 0.25, bad: 1.0, good: 0.0 };
        let mut netem = netem(Effects { loss: loss.clone(), ..Effects::default() });
        let lost: Vec<bool> = (0..PACKETS).map(|_| netem.loses(Time::ZERO)).collect();
        let total = lost.iter().filter(|&&lost| lost).count();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        // 0.01 ÷ 0.26 = 3.846 %; some 9600 bursts of 4 with a standard deviation of √12 each.
        assert!((share(total, PACKETS) - 0.03846).abs() < 0.001 && (loss.mean() - 0.03846).abs() < 1e-5, "{total}");
        assert!((share(total, bursts) - 4.0).abs() < 0.15, "{total} in {bursts}");
    }

    #[test]
    fn each_state_loses_its_share() {
        // Half of the packets see the bad state: 0.5 · 0.4 + 0.5 · 0.02 = 21 %.
        let loss = Loss::Gemodel { p: 0.1, r: 0.1, bad: 0.4, good: 0.02 };
        let mut netem = netem(Effects { loss, ..Effects::default() });
        let total = (0..PACKETS).filter(|_| netem.loses(Time::ZERO)).count();
        assert!((share(total, PACKETS) - 0.21).abs() < 0.003, "{total}");
    }

    /// With a correlation ρ a draw is v(1 − ρ) + lρ, v uniform and l the draw before: draws below a tenth are rarer than a tenth, and come
    /// together.
    #[test]
    fn correlated_draws_are_netems() {
        let chance = Chance { share: 0.1, correlation: 0.5 };
        let mut draws = Draws::new(chance, Rng::stream(1, "x"));
        assert_eq!((draws.threshold, draws.rho), (429_496_730, 2_147_483_648));
        (draws.last, draws.rng) = (1000, Rng::stream(7, "x"));
        let first = u64::from(Rng::stream(7, "x").next_u32());
        let hits = draws.hits();
        // rho + 1 = 2³¹ + 1: the draw is a little less than half of the two.
        assert_eq!(draws.last, (first * 0x7fff_ffff + 1000 * 0x8000_0001) >> 32);
        assert_eq!(hits, draws.last <= 429_496_730);
        let all: Vec<bool> = (0..PACKETS).map(|_| draws.hits()).collect();
        let (total, after) =
            (all.iter().filter(|&&hit| hit).count(), all.windows(2).filter(|pair| pair[0] && pair[1]).count());
        // Below ½ the distribution is F(x) = ∫ F(u) du from 0 to 2x: a chance of 10 % is one of 0.11 %.
        assert!((share(total, PACKETS) - 0.0011).abs() < 0.0003, "{total}");
        assert!(share(after, total) > 20.0 * share(total, PACKETS), "{after} of {total} follow another");
    }

    #[test]
    fn a_gap_leaves_packets_in_the_line() {
        let always = |gap| Some(Reorder { chance: Chance::of(1.0), gap });
        let mut every = netem(Effects { reorder: always(1), ..Effects::default() });
        assert!((0..5).all(|_| every.skips_delay()));
        let mut fifth = netem(Effects { reorder: always(5), ..Effects::default() });
        let skipping: Vec<usize> = (1..=15).filter(|_| fifth.skips_delay()).collect();
        assert_eq!(skipping, [5, 10, 15]);
        let half = Some(Reorder { chance: Chance::of(0.5), gap: 1 });
        let mut half = netem(Effects { reorder: half, ..Effects::default() });
        assert!((share((0..PACKETS).filter(|_| half.skips_delay()).count(), PACKETS) - 0.5).abs() < 0.002);
    }

    #[test]
    fn a_line_holds_its_limit() {
        let limited = netem(Effects { limit: Some(2), ..Effects::default() });
        assert_eq!([0, 1, 2, 3].map(|packets| limited.has_room(packets)), [true, true, false, false]);
        let unlimited = netem(Effects { loss: Loss::random(0.1), ..Effects::default() });
        assert!(unlimited.has_room(usize::MAX));
    }

    #[test]
    fn effects_do_not_change_each_others_draws() {
        let loss = Loss::random(0.3);
        let (mut alone, mut all) = (
            netem(Effects { loss: loss.clone(), ..Effects::default() }),
            netem(Effects {
                loss,
                duplicate: Some(Chance::of(0.2)),
                corrupt: Some(Chance::of(0.1)),
                reorder: Some(Reorder { chance: Chance::of(0.5), gap: 1 }),
                limit: Some(10),
            }),
        );
        for _ in 0..1000 {
            all.duplicates();
            all.corrupts();
            all.skips_delay();
            assert_eq!(alone.loses(Time::ZERO), all.loses(Time::ZERO));
        }
    }
}
