//! Straight lines through round-trip times over the time of sending, by least squares, and how likely it is to see what was seen.

/// Samples that count as independent of each other: queues wander.
const INDEPENDENT: f64 = 4.0;
/// Least samples of a line.
pub const SAMPLES: f64 = 4.0;

/// Sums for the line through one subflow's RTTs over the time of sending, s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    n: f64,
    t: f64,
    x: f64,
    tt: f64,
    tx: f64,
    xx: f64,
}

/// A line that was fitted.
#[derive(Clone, Copy)]
pub struct Fit {
    /// Mean of the samples.
    pub mean: f64,
    /// Value in the middle of the interval.
    pub level: f64,
    /// Slope, s/s.
    pub slope: f64,
    /// Variance of the samples around the line.
    pub residual: f64,
    /// Variance of the level.
    pub level_variance: f64,
    /// Variance of the slope.
    pub slope_variance: f64,
}

impl Line {
    /// Samples.
    pub const fn samples(&self) -> f64 {
        self.n
    }

    /// Mean time and mean of the samples; `None` without one.
    pub fn mean(&self) -> Option<(f64, f64)> {
        (self.n > 0.0).then(|| (self.t / self.n, self.x / self.n))
    }

    /// Counts a sample in.
    pub fn add(&mut self, t: f64, x: f64) {
        self.n += 1.0;
        self.t += t;
        self.x += x;
        self.tt += t * t;
        self.tx += t * x;
        self.xx += x * x;
    }

    /// The line, with its value in the middle of the interval; `None` for too few samples.
    pub fn fit(&self, middle: f64) -> Option<Fit> {
        if self.n < SAMPLES {
            return None;
        }
        let (mean_t, mean) = (self.t / self.n, self.x / self.n);
        let spread = self.tt - self.n * mean_t * mean_t;
        if spread <= 0.0 {
            return None;
        }
        let slope = (self.tx - self.n * mean_t * mean) / spread;
        let residual = (self.xx - self.n * mean * mean - slope * slope * spread).max(0.0);
        let variance = residual / (self.n - 2.0);
        let dependence = (self.n / INDEPENDENT).max(1.0);
        Some(Fit {
            mean,
            level: mean + slope * (middle - mean_t),
            slope,
            residual: variance,
            level_variance: variance / self.n * dependence,
            slope_variance: variance / spread * dependence,
        })
    }
}

/// Logarithm of the normal density, apart from a constant, at a distance from the mean.
pub fn log_normal(x: f64, variance: f64) -> f64 {
    -0.5 * (x * x / variance + libm::log(variance))
}
