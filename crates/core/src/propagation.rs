//! Propagation from a link to the next hop: a delay that is constant, changes in steps, or varies from packet to packet.
//!
//! A step counts for packets that are sent from its time on. No packet overtakes another, unless the jitter says so: when the delay
//! shrinks, packets that would catch up with earlier ones arrive together with the last of these. With jitter each packet draws its own
//! delay: uniformly from [delay − jitter, delay + jitter], or from a table such as netem's, of which the jitter is the unit. One that
//! would arrive before its predecessor arrives with it. Where packets follow each other more closely than the jitter, waiting for slow
//! predecessors makes their mean delay longer than `delay`.
use crate::rng::Rng;
use crate::time::{Span, Time};
use alloc::collections::VecDeque;
use alloc::sync::Arc;

mod distribution;

pub use distribution::{DelayTable, Distribution, NamedDistribution};

/// How the delay varies from packet to packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Jitter {
    /// Half of the range of a uniform distribution, the unit of the others.
    pub span: Span,
    /// How delays are distributed.
    pub distribution: Distribution,
    /// Packets may arrive in another order than they were sent in.
    pub overtakes: bool,
}

/// Computes when each packet of a link arrives.
#[derive(Clone, Debug)]
pub struct Propagation {
    delay: Span,
    /// Future steps.
    later: VecDeque<(Time, Span)>,
    /// The shortest and the longest of all steps.
    least: Span,
    most: Span,
    jitter: Span,
    /// How delays are distributed, unless uniformly.
    table: Option<Arc<[i16]>>,
    overtakes: bool,
    rng: Rng,
    /// Arrival time of the previous packet; the epoch before the first.
    last: Time,
}

impl Propagation {
    /// A one-way delay that changes at these times, in increasing order; it is zero before the first of them. A uniform jitter varies it
    /// both ways, and is at most the shortest delay.
    pub fn new(steps: &[(Time, Span)], jitter: Jitter, rng: Rng) -> Propagation {
        let delays = || steps.iter().map(|&(_, delay)| delay);
        let (least, most) = (delays().min().unwrap_or(Span::ZERO), delays().max().unwrap_or(Span::ZERO));
        let mut later: VecDeque<(Time, Span)> = steps.iter().copied().collect();
        let first = later.pop_front_if(|(at, _)| *at == Time::ZERO);
        let delay = first.map_or(Span::ZERO, |(_, delay)| delay);
        let Jitter { span, distribution, overtakes } = jitter;
        let table = if span > Span::ZERO { distribution.table() } else { None };
        let jitter = if table.is_some() { span } else { span.min(least) };
        // Without jitter there is nothing to overtake: a step that shortens the delay keeps the order.
        let overtakes = overtakes && jitter > Span::ZERO;
        Propagation { delay, later, least, most, jitter, table, overtakes, rng, last: Time::ZERO }
    }

    /// Whether packets always arrive at the time at which they are sent.
    #[inline]
    pub fn is_instant(&self) -> bool {
        self.most == Span::ZERO && self.jitter == Span::ZERO
    }

    /// Whether packets may arrive in another order than they were sent in.
    pub fn overtakes(&self) -> bool {
        self.overtakes
    }

    /// The shortest delay of any packet.
    pub fn shortest(&self) -> Span {
        match &self.table {
            None => self.least - self.jitter,
            Some(table) => table
                .iter()
                .map(|&value| distribution::varied(self.least, self.jitter, value))
                .min()
                .unwrap_or(self.least),
        }
    }

    /// When the packet that is sent at `sent` arrives. Calls are in the order of sending. Without jitter no random number is drawn.
    #[inline]
    pub fn arrives(&mut self, sent: Time) -> Time {
        if self.jitter == Span::ZERO && self.least == self.most {
            return sent + self.delay;
        }
        while let Some((_, delay)) = self.later.pop_front_if(|(at, _)| *at <= sent) {
            self.delay = delay;
        }
        let own = sent + self.own_delay();
        if self.overtakes {
            return own;
        }
        self.last = self.last.max(own);
        self.last
    }

    /// The delay of one packet.
    #[inline]
    fn own_delay(&mut self) -> Span {
        match (self.jitter, &self.table) {
            (Span::ZERO, _) => self.delay,
            (jitter, None) => (self.delay - jitter) + Span::ns(self.rng.below(2 * jitter.as_ns() + 1)),
            (jitter, Some(table)) => {
                let value = table[self.rng.below(table.len() as u64) as usize];
                distribution::varied(self.delay, jitter, value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn way(delay: Span, jitter: Span) -> Propagation {
        steps(&[(0, delay)], jitter)
    }

    /// These delays from these milliseconds on.
    fn steps(steps: &[(u64, Span)], jitter: Span) -> Propagation {
        let steps: Vec<(Time, Span)> = steps.iter().map(|&(ms, delay)| (Time::ZERO + Span::ms(ms), delay)).collect();
        Propagation::new(&steps, uniform(jitter), Rng::stream(1, "hop.link.jitter"))
    }

    fn uniform(span: Span) -> Jitter {
        Jitter { span, ..Jitter::default() }
    }

    /// Arrivals of packets sent with this spacing.
    fn arrivals(way: &mut Propagation, spacing: Span, count: u64) -> Vec<(Time, Time)> {
        (0..count).map(|n| Time::ZERO + spacing * n).map(|sent| (sent, way.arrives(sent))).collect()
    }

    #[test]
    fn without_jitter_the_delay_is_constant_and_nothing_is_drawn() {
        let mut way = way(Span::ms(5), Span::ZERO);
        let before = way.rng.clone().next_u64();
        for (sent, at) in arrivals(&mut way, Span::us(1), 100) {
            assert_eq!(at, sent + Span::ms(5));
        }
        assert_eq!(way.rng.next_u64(), before);
        assert!(!way.is_instant() && Propagation::new(&[], Jitter::default(), way.rng).is_instant());
    }

    #[test]
    fn a_step_counts_for_what_is_sent_from_then_on() {
        let mut way = steps(&[(0, Span::ms(10)), (3, Span::ms(12)), (5, Span::ms(8))], Span::ZERO);
        let took: Vec<f64> =
            arrivals(&mut way, Span::ms(1), 12).iter().map(|(sent, at)| at.since(*sent).as_ms_f64()).collect();
        // Sent at 4 ms, a packet arrives at 16 ms; the next three would be there at 13, 14 and 15 ms and come with it.
        assert_eq!(took, [10.0, 10.0, 10.0, 12.0, 12.0, 11.0, 10.0, 9.0, 8.0, 8.0, 8.0, 8.0]);
        assert_eq!((way.shortest(), way.is_instant()), (Span::ms(8), false));
    }

    #[test]
    fn steps_that_nothing_was_sent_in_are_passed_over() {
        let mut way = steps(&[(0, Span::ms(10)), (1, Span::ms(99)), (2, Span::ZERO)], Span::ZERO);
        let sent = Time::ZERO + Span::ms(2);
        assert_eq!(way.arrives(sent), sent, "the delay of 99 ms was over before anything was sent");
        assert!(!way.is_instant(), "it was not at first");
    }

    #[test]
    fn jitter_varies_whatever_the_delay_is_then() {
        let mut way = steps(&[(0, Span::ms(10)), (4000, Span::ms(30))], Span::ms(2));
        assert_eq!(way.shortest(), Span::ms(8));
        for (sent, at) in arrivals(&mut way, Span::ms(4), 2000) {
            let middle = if sent < Time::ZERO + Span::s(4) { 10.0 } else { 30.0 };
            assert!((at.since(sent).as_ms_f64() - middle).abs() <= 2.0, "{sent:?}");
        }
    }

    #[test]
    fn delays_are_uniform_where_packets_are_too_far_apart_to_meet() {
        let n = 100_000;
        let delays: Vec<f64> = arrivals(&mut way(Span::ms(10), Span::ms(2)), Span::ms(4), n)
            .iter()
            .map(|(sent, at)| at.since(*sent).as_ms_f64())
            .collect();
        assert!(delays.iter().all(|d| (8.0..=12.0).contains(d)));
        // The empirical distribution is within the 99.9 % band of Kolmogorov and Smirnov: 1.95 / √n.
        let band = 1.95 / libm::sqrt(n as f64);
        for eighth in 1..8 {
            let share = f64::from(eighth) / 8.0;
            let below = delays.iter().filter(|d| **d < 8.0 + 4.0 * share).count() as f64 / n as f64;
            assert!((below - share).abs() < band, "{below} of the delays are below {share} of the range");
        }
    }

    #[test]
    fn none_overtakes_another_however_close_they_are() {
        let all = arrivals(&mut way(Span::ms(10), Span::ms(10)), Span::us(100), 10_000);
        assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        assert!(all.iter().all(|(sent, at)| *sent <= *at && *at <= *sent + Span::ms(20)));
        assert!(all.windows(2).any(|pair| pair[0].1 == pair[1].1), "some wait for the one before");
    }

    #[test]
    fn packets_overtake_each_other_if_they_may() {
        let jitter = Jitter { span: Span::ms(10), distribution: Distribution::default(), overtakes: true };
        let rng = || Rng::stream(1, "hop.link.jitter");
        let mut way = Propagation::new(&[(Time::ZERO, Span::ms(10))], jitter.clone(), rng());
        let all = arrivals(&mut way, Span::us(100), 10_000);
        // Of two packets with independent delays the later one is first almost half of the time, if they are close.
        let overtaken = all.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
        assert!((4800..5000).contains(&overtaken), "{overtaken}");
        assert!(way.overtakes());
        let none =
            Propagation::new(&[(Time::ZERO, Span::ms(10))], Jitter { span: Span::ZERO, ..jitter.clone() }, rng());
        assert!(!none.overtakes(), "without jitter there is nothing to overtake");
        let shorter = [(Time::ZERO, Span::ms(6)), (Time::ZERO + Span::ms(2), Span::ZERO)];
        let jitter = Jitter { overtakes: true, ..Jitter::default() };
        let mut stepped = Propagation::new(&shorter, jitter, Rng::stream(1, "hop.link.jitter"));
        let ends = arrivals(&mut stepped, Span::ms(1), 8).into_iter().map(|(_, end)| end);
        assert!(ends.is_sorted(), "regression: packets behind a step arrived in the past of those before it");
        let mean = all.iter().map(|(sent, at)| at.since(*sent).as_ms_f64()).sum::<f64>() / 10_000.0;
        assert!((mean - 10.0).abs() < 0.2, "none waits for another: {mean}");
    }

    #[test]
    fn delays_have_netems_distributions() {
        let way = |named| {
            let jitter = Jitter { span: Span::ms(2), distribution: Distribution::Named(named), overtakes: true };
            Propagation::new(&[(Time::ZERO, Span::ms(20))], jitter, Rng::stream(1, "hop.link.jitter"))
        };
        let below = |distribution, ms: f64| {
            let all = arrivals(&mut way(distribution), Span::ms(1), 100_000);
            all.iter().filter(|(sent, at)| at.since(*sent).as_ms_f64() < ms).count() as f64 / 100_000.0
        };
        // Φ(1) = 0.8413; the tables reach from −4 to +4.
        assert!((below(NamedDistribution::Normal, 22.0) - 0.8413).abs() < 0.005);
        assert!((below(NamedDistribution::Normal, 20.0) - 0.5).abs() < 0.007);
        // A Pareto variable x with exponent 3, as 4/3 (x − 3/2): below its mean with 1 − (2/3)³ = 0.7037.
        assert!((below(NamedDistribution::Pareto, 20.0) - 0.7037).abs() < 0.006);
        assert_eq!(way(NamedDistribution::Normal).shortest(), Span::ms(12));
        // 4/3 (1 − 3/2) = −2/3 of the jitter.
        assert_eq!(way(NamedDistribution::Pareto).shortest().as_ns() / 1000, 18_666);
        let wide = Jitter {
            span: Span::ms(20),
            distribution: Distribution::Named(NamedDistribution::Normal),
            overtakes: false,
        };
        let rng = Rng::stream(1, "hop.link.jitter");
        assert_eq!(Propagation::new(&[(Time::ZERO, Span::ms(20))], wide, rng).shortest(), Span::ZERO);
    }

    #[test]
    fn delays_are_those_of_a_table() {
        let entries = [-8192i16, 0, 4096, 24_576].into();
        let distribution = Distribution::Table(DelayTable { name: "own.dist".into(), entries });
        let jitter = Jitter { span: Span::ms(2), distribution, overtakes: true };
        let mut way = Propagation::new(&[(Time::ZERO, Span::ms(20))], jitter, Rng::stream(1, "hop.link.jitter"));
        assert_eq!(way.shortest(), Span::ms(18));
        let all = arrivals(&mut way, Span::ms(1), 40_000);
        // Each entry for a quarter of the packets; five standard deviations of 40 000 draws are 433.
        for delay in [18, 20, 21, 26].map(Span::ms) {
            let count = all.iter().filter(|(sent, at)| at.since(*sent) == delay).count();
            assert!(count.abs_diff(10_000) < 433, "{delay}: {count}");
        }
    }
}
