//! PI2's law (RFC 9332 appendix A.1): a base probability from a proportional-integral controller on a delay.
//!
//! Its gains need no scaling by the probability's size, as PIE's do: a classic control sees the square of the probability, which makes the
//! loop linear. Probabilities are 32 bits, gains 256ths of 1/s, as in Linux's `sch_dualpi2.c`.
use crate::{Rng, Span};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Pi2Law {
    target: Span,
    /// Gains: probability per 64 ns.
    alpha: i64,
    beta: i64,
    /// The marking probability of the coupled queue as a multiple of the base probability.
    pub coupling: u32,
    /// Without drops on overload the coupled probability stops at one.
    drop_overload: bool,
}

/// The base probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pi2State {
    prob: u32,
    last: Span,
}

impl Pi2Law {
    /// Gains in 1/s.
    pub fn new(target: Span, alpha: f64, beta: f64, coupling: u32, drop_overload: bool) -> Pi2Law {
        Pi2Law { target, alpha: gain(alpha), beta: gain(beta), coupling, drop_overload }
    }
}

impl Pi2State {
    /// The update every `tupdate`, with the present delay.
    pub fn update(&mut self, law: &Pi2Law, delay: Span) {
        let apart = |a: Span, b: Span| i128::from(a.as_ns()) - i128::from(b.as_ns());
        let delta = apart(delay, law.target) * i128::from(law.alpha) + apart(delay, self.last) * i128::from(law.beta);
        self.last = delay;
        // Towards zero, as a division of each sign's magnitude.
        let moved = i128::from(self.prob) + delta / i128::from(GRANULE);
        let most = if law.drop_overload { ONE } else { ONE / u64::from(law.coupling) };
        self.prob = moved.clamp(0, i128::from(most)) as u32;
    }

    /// True with `times` times the probability.
    #[inline]
    pub fn throws(&self, times: u32, rng: &mut Rng) -> bool {
        u64::from(rng.next_u32()) < (u64::from(self.prob) * u64::from(times)).min(ONE)
    }

    /// Whether the coupled probability is above one.
    #[inline]
    pub fn is_overload(&self, law: &Pi2Law) -> bool {
        u64::from(self.prob) * u64::from(law.coupling) > ONE
    }

    /// The base probability.
    pub fn probability(&self) -> f64 {
        f64::from(self.prob) / ONE as f64
    }

    #[cfg(test)]
    pub(crate) fn with_probability(probability: f64) -> Pi2State {
        Pi2State { prob: (probability * ONE as f64) as u32, last: Span::ZERO }
    }
}

/// A gain in 1/s as probability per granule.
fn gain(per_s: f64) -> i64 {
    let in_256ths = libm::round(per_s * 256.0) as u64;
    (((in_256ths * ONE) >> 2) / 1_000_000_000) as i64
}

/// Probability one.
const ONE: u64 = u32::MAX as u64;
/// Gains are per 64 ns (Linux: `ALPHA_BETA_GRANULARITY`).
const GRANULE: i64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9332 appendix A.1: p += alpha · (delay − target) + beta · (delay − last), in seconds and 1/s.
    #[test]
    fn the_probability_moves_as_in_the_rfc() {
        let law = Pi2Law::new(Span::ms(15), 0.16, 3.2, 2, true);
        let mut state = Pi2State::default();
        let (mut p, mut last) = (0.0f64, 0.0f64);
        let delays = [0u64, 5, 20, 40, 60, 55, 50, 30, 15, 15, 10, 2, 0, 0, 80, 200, 400, 100, 20];
        for ms in delays {
            let delay = ms as f64 / 1e3;
            p = (p + 41.0 / 256.0 * (delay - 0.015) + 819.0 / 256.0 * (delay - last)).clamp(0.0, 1.0);
            last = delay;
            state.update(&law, Span::ms(ms));
            // The gains are rounded to 2⁻³² per 64 ns: by half a thousandth.
            assert!((state.probability() - p).abs() < 2e-3, "{ms} ms: {}, not {p}", state.probability());
        }
    }

    #[test]
    fn without_drops_on_overload_it_stops_where_all_is_marked() {
        let law = Pi2Law::new(Span::ms(15), 0.16, 3.2, 2, false);
        let mut state = Pi2State::default();
        (1..50).for_each(|n| state.update(&law, Span::ms(100 * n)));
        assert!((state.probability() - 0.5).abs() < 1e-6 && !state.is_overload(&law));
    }
}
