//! Losses that were recorded elsewhere: the outcome of each packet, or the share of lost packets over time. Both repeat for ever.
//!
//! Outcomes count packets: the n-th packet that leaves the link has the n-th outcome, whenever it leaves. Nothing is drawn. Shares
//! count time: a packet is lost with the share that holds when it leaves the link, independently of the others.
use crate::rng::Rng;
use crate::time::{Span, Time};
use alloc::string::String;
use alloc::sync::Arc;

/// A recording of losses.
#[derive(Clone, PartialEq, Debug)]
pub struct LossTrace {
    /// Its name, by which people know it; no packet depends on it.
    pub name: String,
    /// What was recorded.
    pub losses: RecordedLosses,
}

/// What was recorded.
#[derive(Clone, PartialEq, Debug)]
pub enum RecordedLosses {
    /// Of each packet whether it is lost.
    Packets(Arc<[bool]>),
    /// Shares of lost packets, from 0 to 1, and the times from which they hold. The first is at 0, times increase, and the last share
    /// holds for as long as the one before it.
    Shares(Arc<[(Span, f64)]>),
}

impl RecordedLosses {
    /// Checks what the types do not say; the error says what is allowed.
    pub fn validate(&self) -> Result<(), &'static str> {
        let is_legal = match self {
            RecordedLosses::Packets(outcomes) => !outcomes.is_empty(),
            RecordedLosses::Shares(shares) => {
                let starts = shares.len() >= 2 && shares[0].0 == Span::ZERO;
                let increase = shares.windows(2).all(|pair| pair[0].0 < pair[1].0);
                starts && increase && shares.iter().all(|(_, share)| (0.0..=1.0).contains(share))
            }
        };
        match (is_legal, self.mean() < 1.0) {
            (true, true) => Ok(()),
            (true, false) => Err("a trace in which not every packet is lost"),
            (false, _) => {
                Err("one outcome or more; or two shares or more from 0 to 1, the first at 0 s, at times that increase")
            }
        }
    }

    /// After this time shares repeat; zero for outcomes.
    pub fn period(&self) -> Span {
        match self {
            RecordedLosses::Shares(shares) => match **shares {
                [.., (before, _), (last, _)] => last + last.saturating_sub(before),
                _ => Span::ZERO,
            },
            RecordedLosses::Packets(_) => Span::ZERO,
        }
    }

    /// The share of packets that is lost: of all outcomes, or the mean over time.
    pub fn mean(&self) -> f64 {
        match self {
            RecordedLosses::Packets(outcomes) => {
                let lost = outcomes.iter().filter(|&&lost| lost).count();
                lost as f64 / outcomes.len().max(1) as f64
            }
            RecordedLosses::Shares(shares) => {
                let ends = shares.iter().skip(1).map(|&(at, _)| at).chain([self.period()]);
                let lost =
                    shares.iter().zip(ends).map(|(&(from, share), end)| share * end.saturating_sub(from).as_secs_f64());
                lost.sum::<f64>() / self.period().max(Span::ns(1)).as_secs_f64()
            }
        }
    }
}

/// Plays a recording.
#[derive(Clone, Debug)]
pub(super) enum Playback {
    Packets { outcomes: Arc<[bool]>, next: usize },
    Shares { shares: Arc<[(Span, f64)]>, period: Span, began: Time, place: usize, rng: Rng },
}

impl Playback {
    pub(super) fn new(losses: &RecordedLosses, rng: Rng) -> Playback {
        match losses {
            RecordedLosses::Packets(outcomes) => Playback::Packets { outcomes: Arc::clone(outcomes), next: 0 },
            RecordedLosses::Shares(shares) => {
                let (shares, period) = (Arc::clone(shares), losses.period());
                Playback::Shares { shares, period, began: Time::ZERO, place: 0, rng }
            }
        }
    }

    /// Whether the packet that leaves the link now is lost. Calls are in the order of time.
    pub(super) fn loses(&mut self, now: Time) -> bool {
        match self {
            Playback::Packets { outcomes, next } => {
                let lost = outcomes.get(*next).is_some_and(|&lost| lost);
                *next = if *next + 1 < outcomes.len() { *next + 1 } else { 0 };
                lost
            }
            Playback::Shares { shares, period, began, place, rng } => {
                let mut since = now.since(*began);
                if since >= *period {
                    let periods = since.as_ns() / period.as_ns().max(1);
                    *began += *period * periods;
                    (since, *place) = (now.since(*began), 0);
                }
                while shares.get(*place + 1).is_some_and(|&(from, _)| from <= since) {
                    *place += 1;
                }
                shares.get(*place).is_some_and(|&(_, share)| rng.chance(share))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn shares(steps: &[(u64, f64)]) -> RecordedLosses {
        RecordedLosses::Shares(steps.iter().map(|&(ms, share)| (Span::ms(ms), share)).collect())
    }

    fn packets(outcomes: &str) -> RecordedLosses {
        RecordedLosses::Packets(outcomes.chars().map(|outcome| outcome == '1').collect())
    }

    fn playback(losses: &RecordedLosses) -> Playback {
        Playback::new(losses, Rng::stream(1, "loss"))
    }

    #[test]
    fn each_packet_has_its_outcome_whenever_it_comes() {
        let losses = packets("0110");
        let mut playback = playback(&losses);
        let at = |n: u64| Time::ZERO + Span::ms(n * n);
        let played: Vec<bool> = (0..10).map(|n| playback.loses(at(n))).collect();
        let expected = [false, true, true, false, false, true, true, false, false, true];
        assert_eq!(played, expected, "after the last one the first");
        assert_eq!((losses.mean(), losses.period()), (0.5, Span::ZERO));
    }

    #[test]
    fn shares_hold_from_their_time_on_and_repeat() {
        // The last one holds for 30 ms, as the one before it: a period is 80 ms.
        let losses = shares(&[(0, 0.0), (20, 1.0), (50, 0.0)]);
        assert_eq!((losses.period(), losses.mean()), (Span::ms(80), 0.375));
        let mut playback = playback(&losses);
        let lost: Vec<u64> = (0..200).filter(|&ms| playback.loses(Time::ZERO + Span::ms(ms))).collect();
        let expected: Vec<u64> = (20..50).chain(100..130).chain(180..200).collect();
        assert_eq!(lost, expected);
        // Nothing was sent for a million periods.
        let later = Time::ZERO + Span::ms(80_000_000);
        assert_eq!([19, 20, 49, 50].map(|ms| playback.loses(later + Span::ms(ms))), [false, true, true, false]);
    }

    #[test]
    fn a_share_loses_that_share_independently() {
        let losses = shares(&[(0, 0.2), (500, 0.6)]);
        let mut playback = playback(&losses);
        let all: Vec<bool> = (0..100_000).map(|n| playback.loses(Time::ZERO + Span::ms(n))).collect();
        let of = |half: usize| {
            let its = all.iter().enumerate().filter(|(n, _)| n / 500 % 2 == half);
            its.filter(|(_, lost)| **lost).count() as f64 / 50_000.0
        };
        // Five standard deviations of 50 000 draws are at most 0.011.
        assert!((of(0) - 0.2).abs() < 0.011 && (of(1) - 0.6).abs() < 0.011, "{} {}", of(0), of(1));
        assert!((losses.mean() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn what_no_trace_can_be_is_refused() {
        let legal = [packets("0"), packets("01"), shares(&[(0, 1.0), (1, 0.0)])];
        assert!(legal.iter().all(|losses| losses.validate().is_ok()));
        for losses in [packets(""), shares(&[]), shares(&[(0, 0.1)]), shares(&[(1, 0.1), (2, 0.1)])] {
            assert!(losses.validate().is_err_and(|allowed| allowed.starts_with("one outcome")), "{losses:?}");
        }
        for losses in [shares(&[(0, 0.1), (0, 0.2)]), shares(&[(0, 0.1), (1, 1.5)]), shares(&[(0, f64::NAN), (1, 0.1)])]
        {
            assert!(losses.validate().is_err_and(|allowed| allowed.starts_with("one outcome")), "{losses:?}");
        }
        for losses in [packets("11"), shares(&[(0, 1.0), (1, 1.0)])] {
            assert!(losses.validate().is_err_and(|allowed| allowed.contains("not every packet")), "{losses:?}");
        }
    }
}
