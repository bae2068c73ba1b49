//! What is drawn: parameters, and operations that bring a queue into all of its states.
use narrows_core::{Ecn, Rng, Span};

/// One of these.
pub(crate) fn one_of<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.below(values.len() as u64) as usize]
}

/// A number between two bounds, which are as likely as all that lies between them; small ones are more likely than large ones.
pub(crate) fn number(rng: &mut Rng, least: u64, most: u64) -> u64 {
    match rng.below(8) {
        0 => least,
        1 => most,
        _ => {
            let bits = 64 - (most - least).leading_zeros();
            let upto = 1u64.checked_shl(rng.below(u64::from(bits) + 1) as u32).unwrap_or(u64::MAX);
            least + rng.below(upto.min(most - least + 1).max(1))
        }
    }
}

/// How a stretch of operations looks.
pub(crate) struct Phase {
    /// Operations that are left of it.
    pub(crate) left: u64,
    /// How likely an operation is an arrival.
    pub(crate) arrivals: f64,
    /// How likely time passes before an operation, and the mean of it; or exactly this time, for what is due at an instant.
    pub(crate) passes: f64,
    mean: Span,
    exact: Option<Span>,
    /// Flows that send.
    pub(crate) flows: u64,
    /// Lengths.
    lengths: &'static [u32],
    /// How likely a packet can be marked.
    capable: f64,
    /// How likely the spin bit changes with a packet.
    pub(crate) spins: f64,
    /// How likely a pause precedes an operation, long enough for flows to be forgotten.
    pub(crate) pauses: f64,
}

impl Phase {
    /// Any.
    pub(crate) fn draw(rng: &mut Rng, flows: u64) -> Phase {
        Phase {
            left: number(rng, 1, 3000),
            arrivals: one_of(rng, &[0.05, 0.3, 0.45, 0.5, 0.55, 0.7, 0.95, 1.0]),
            passes: one_of(rng, &[0.0, 0.3, 0.9, 1.0]),
            mean: one_of(rng, &[1, 1_000, 10_000, 120_000, 1_200_000, 20_000_000, 400_000_000].map(Span::ns)),
            exact: one_of(rng, &[None, None, Some(1), Some(1000), Some(1_000_000), Some(50_000_000)]).map(Span::ns),
            flows: 1 + rng.below(flows),
            lengths: one_of(rng, &[&[1500][..], &[1500], &[1500, 64, 1500, 52], &[1, 0, 9000, 65_535], &[64, 300_000]]),
            capable: one_of(rng, &[0.0, 0.5, 1.0]),
            spins: one_of(rng, &[0.0, 0.1, 0.5]),
            pauses: one_of(rng, &[0.0, 0.0, 0.002, 0.02]),
        }
    }

    /// Time that passes before the next operation.
    pub(crate) fn pass(&self, rng: &mut Rng) -> Span {
        if rng.chance(self.pauses) {
            return one_of(
                rng,
                &[Span::ms(40), Span::ms(41), Span::s(1), Span::s(3), Span::ns(3_000_000_001), Span::s(60)],
            );
        }
        let any = Span::ns((self.mean.as_ns() as f64 * rng.exponential()) as u64);
        if rng.chance(self.passes) { self.exact.unwrap_or(any) } else { Span::ZERO }
    }

    /// A packet's length.
    pub(crate) fn length(&self, rng: &mut Rng) -> u32 {
        one_of(rng, self.lengths)
    }

    /// Its ECN field.
    pub(crate) fn ecn(&self, rng: &mut Rng) -> Ecn {
        if rng.chance(self.capable) { one_of(rng, &[Ecn::Ect0, Ecn::Ect1, Ecn::Ce]) } else { Ecn::NotEct }
    }
}
