//! Whether the base RTT changes in steps, as pings without load show it. A terminal of satellites in low orbit is assigned another one every 15 s,
//! and its way is longer or shorter from then on.
//!
//! The lowest RTT of each half a second is a floor, which single late pings do not touch. A step is a moment at which the median of the floors of
//! the next seconds differs from that of the last ones by more than floors differ from their neighbours. No clock, no network.
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Steps of the base RTT.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Steps {
    /// Time over which pings were sent, s.
    pub watched_s: f64,
    /// The steps.
    pub steps: Vec<Step>,
    /// Time between them, s, if three or more are whole multiples of one time apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_s: Option<f64>,
}

/// A step.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Step {
    /// When, after the first ping, s.
    pub at_s: f64,
    /// Base RTT before, ms.
    pub from_ms: f64,
    /// Base RTT after, ms.
    pub to_ms: f64,
}

/// A ping: when it was sent, after the first one, and the time to its answer.
pub(crate) type Ping = (Duration, Duration);

/// Shortest time that shows whether steps return: three periods of 15 s.
pub const SHORTEST_WATCH: Duration = Duration::from_secs(45);
/// Length of a window with one floor, s.
const WINDOW: f64 = 0.5;
/// Windows before and after a step.
const SIDE: usize = 8;
/// Smallest step, ms, and as a multiple of the median difference of neighbouring floors.
const LEAST_MS: f64 = 1.0;
const OF_NOISE: f64 = 6.0;
/// Shortest period, s, and how far a step may be from its multiples, as each is known to half a second. Near a multiple of a shorter one is any
/// moment.
const SHORTEST_PERIOD: f64 = 10.0;
const BESIDE: f64 = 1.0;
/// Share of the steps that have to be at multiples of a period: a busy host adds one now and then.
const NEARLY_ALL: f64 = 0.75;

impl Steps {
    /// The steps that pings show; `None` if they were not watched for [`SHORTEST_WATCH`].
    pub(crate) fn of(pings: &[Ping]) -> Option<Steps> {
        let watched = pings.last()?.0;
        if watched + Duration::from_secs(1) < SHORTEST_WATCH {
            return None;
        }
        let floors = floors(pings);
        let differences = floors.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        let threshold = (OF_NOISE * median(differences)).max(LEAST_MS);
        let sides = |at: usize| (median(floors[at - SIDE..at].to_vec()), median(floors[at..at + SIDE].to_vec()));
        let is_step = |at: &usize| {
            let (before, after) = sides(*at);
            (after - before).abs() > threshold
        };
        let moments: Vec<usize> = (SIDE..floors.len().saturating_sub(SIDE - 1)).filter(is_step).collect();
        let step = |run: &[usize]| {
            // Around a step the medians differ for as long as it is nearer than half of a side: the step is in the middle.
            let at = run[run.len() / 2];
            let (from_ms, _) = sides(run[0]);
            let (_, to_ms) = sides(run[run.len() - 1]);
            Step { at_s: at as f64 * WINDOW, from_ms, to_ms }
        };
        let steps: Vec<Step> = moments.chunk_by(|one, next| next - one == 1).map(step).collect();
        let every_s = period(&steps.iter().map(|step| step.at_s).collect::<Vec<_>>());
        Some(Steps { watched_s: watched.as_secs_f64(), steps, every_s })
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.watched_s.round();
        let sizes = self.steps.iter().map(|step| (step.to_ms - step.from_ms).abs());
        let (least, most) =
            sizes.fold((f64::INFINITY, 0.0f64), |(least, most), size| (least.min(size), most.max(size)));
        match (self.steps.len(), self.every_s) {
            (0, _) => write!(f, "none of the base RTT in {watched} s"),
            (1, _) => write!(f, "one of the base RTT in {watched} s, of {most:.1} ms: the path has changed"),
            (n, None) => {
                write!(f, "{n} of the base RTT in {watched} s, of {least:.1} to {most:.1} ms, at no regular times")
            }
            (n, Some(every)) => {
                let as_of = if (every - 15.0).abs() < 0.5 { ", as over satellites in low orbit" } else { "" };
                write!(
                    f,
                    "{n} of the base RTT in {watched} s, of {least:.1} to {most:.1} ms, every {every:.1} s{as_of}"
                )
            }
        }
    }
}

/// The lowest RTT of each window, ms; a window without a ping has the RTT of the one before.
fn floors(pings: &[Ping]) -> Vec<f64> {
    let mut floors: Vec<f64> = Vec::new();
    let mut lowest = f64::INFINITY;
    let mut last = f64::INFINITY;
    for &(at, rtt) in pings {
        let window = (at.as_secs_f64() / WINDOW) as usize;
        while floors.len() < window {
            last = if lowest.is_finite() { lowest } else { last };
            floors.push(last);
            lowest = f64::INFINITY;
        }
        lowest = lowest.min(rtt.as_secs_f64() * 1e3);
    }
    floors
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The period of three or more moments: their distances are multiples of it, for nearly all of the moments.
fn period(at: &[f64]) -> Option<f64> {
    let gaps = at.windows(2).map(|pair| pair[1] - pair[0]).filter(|&gap| gap >= SHORTEST_PERIOD);
    let times = |one: f64, from: f64, gap: f64| ((one - from) / gap).round();
    let best = gaps
        .flat_map(|gap| at.iter().map(move |&from| (gap, from)))
        .map(|(gap, from)| {
            let is_on = |one: &f64| (one - from - times(*one, from, gap) * gap).abs() <= BESIDE;
            let on: Vec<f64> = at.iter().copied().filter(is_on).collect();
            (on, gap)
        })
        .max_by(|(on, gap), (other, longer)| on.len().cmp(&other.len()).then(gap.total_cmp(longer)))?;
    let (on, gap) = best;
    let (first, last) = (on.first()?, on.last()?);
    let is_telling = on.len() >= 3 && on.len() as f64 >= NEARLY_ALL * at.len() as f64;
    is_telling.then(|| (last - first) / times(*last, *first, gap))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pings each 50 ms for 90 s over a path whose RTT in ms these functions give, by the time in s: the base, and what a ping takes longer.
    fn watched(base: impl Fn(f64) -> f64, more: impl Fn(usize) -> f64) -> Steps {
        let ping = |n: usize| {
            let at = n as f64 * 0.05;
            (Duration::from_secs_f64(at), Duration::from_secs_f64((base(at) + more(n)) / 1e3))
        };
        Steps::of(&(0..1800).map(ping).collect::<Vec<_>>()).expect("long enough")
    }

    /// What a host adds to a ping, ms: 0 to 0.4, and each 37th time 8.
    fn host(n: usize) -> f64 {
        if n % 37 == 5 { 8.0 } else { (n * 7919 % 41) as f64 / 100.0 }
    }

    #[test]
    fn a_satellite_is_changed_every_15_seconds() {
        let bases = [31.0, 34.5, 28.0, 36.0, 33.0, 41.0];
        let of = |at: f64| bases[(at / 15.0) as usize];
        let found = watched(of, host);
        assert_eq!(found.steps.len(), 5, "{found:?}");
        assert!(found.every_s.is_some_and(|every| (every - 15.0).abs() < 0.2), "{found:?}");
        for (step, n) in found.steps.iter().zip(1..) {
            assert!((step.at_s - 15.0 * f64::from(n)).abs() <= 0.5, "{step:?}");
            let (from, to) = (bases[n as usize - 1], bases[n as usize]);
            assert!((step.from_ms - from).abs() < 0.3 && (step.to_ms - to).abs() < 0.3, "{step:?}");
        }
        assert!(found.to_string().ends_with("every 15.0 s, as over satellites in low orbit"), "{}", found.to_string());
        // A change that is too small to be seen leaves a gap of 30 s.
        let gap = watched(|at| if (30.0..60.0).contains(&at) { 28.2 } else { of(at) }, host);
        assert!(gap.every_s.is_some_and(|every| (every - 15.0).abs() < 0.3), "{gap:?}");
    }

    #[test]
    fn a_path_that_does_not_change_has_no_steps() {
        let none = watched(|_| 20.0, host);
        assert_eq!((none.steps.as_slice(), none.every_s), (&[][..], None));
        assert_eq!(none.to_string(), "none of the base RTT in 90 s");
        // Each ping takes up to 12 ms longer by itself, as on a busy Wi-Fi; and it waits for a queue that comes and goes.
        assert!(watched(|_| 20.0, |n| (n * 7919 % 1201) as f64 / 100.0).steps.is_empty());
        let queue = watched(|at| if (at as u64).is_multiple_of(2) { 20.0 } else { 24.0 }, host);
        assert!(queue.steps.is_empty(), "{queue:?}");
    }

    #[test]
    fn other_changes_are_not_called_a_satellites() {
        let once = watched(|at| if at < 40.0 { 20.0 } else { 26.0 }, host);
        assert_eq!((once.steps.len(), once.every_s), (1, None));
        assert!(once.to_string().ends_with("the path has changed"), "{}", once.to_string());
        let irregular =
            watched(|at| [20.0, 25.0, 21.0, 30.0][[11.0, 30.0, 57.0].iter().filter(|&&step| at >= step).count()], host);
        assert_eq!((irregular.steps.len(), irregular.every_s), (3, None), "{irregular:?}");
        assert!(irregular.to_string().ends_with("at no regular times"), "{}", irregular.to_string());
    }

    /// On satellites, on a busy host: four changes, one of which was too small to be seen, and one step more that was the host's. Its distance to
    /// the last one was taken for the period.
    #[test]
    fn regression_a_step_of_the_host_is_not_the_period() {
        let every = period(&[15.0, 30.0, 45.0, 75.0, 80.5]);
        assert!(every.is_some_and(|every| (every - 15.0).abs() < 0.1), "{every:?}");
        assert_eq!(period(&[11.0, 30.0, 57.0]), None);
        assert_eq!(period(&[10.0, 20.0]), None, "two say nothing");
        assert_eq!(period(&[5.0, 20.0, 31.0, 50.0, 52.0, 57.0]), None);
        let shaken = period(&[14.5, 30.0, 45.0, 60.5, 75.0]);
        assert!(shaken.is_some_and(|every| (every - 15.1).abs() < 0.1), "{shaken:?}");
    }

    #[test]
    fn a_short_watch_says_nothing() {
        let pings: Vec<Ping> = (0..800).map(|n| (Duration::from_millis(50 * n), Duration::from_millis(20))).collect();
        assert_eq!((Steps::of(&pings), Steps::of(&[])), (None, None));
    }
}
