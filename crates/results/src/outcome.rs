//! Quality of outcome (draft-ietf-ippm-qoo-10): an application's requirement, and the score of what it got.
use std::fmt;

/// The network requirement of an application (§3.2). Latency and loss have a value for optimal performance and one at which the application
/// becomes unacceptable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Requirement {
    /// Share of packets, and the latencies within which they must arrive, ms.
    pub latency: [(f64, Bounds); 2],
    /// Packet loss ratio, 0 to 1.
    pub loss: Bounds,
}

/// Optimal below the first value, unacceptable above the second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Requirement for optimal performance.
    pub optimal: f64,
    /// Condition at the point of unacceptable performance.
    pub unacceptable: f64,
}

/// The example of Figure 1, without its throughput of 4 Mbit/s: a flow of messages sends less, and what does not get through is
/// late or lost.
pub const EXAMPLE: Requirement = Requirement {
    latency: [
        (0.99, Bounds { optimal: 100.0, unacceptable: 200.0 }),
        (0.999, Bounds { optimal: 200.0, unacceptable: 300.0 }),
    ],
    loss: Bounds { optimal: 0.001, unacceptable: 0.02 },
};

/// The score, 0 to 100 (§3.3), for the latencies at the requirement's shares, ms, and the loss ratio.
pub fn score(requirement: &Requirement, latency_ms: [f64; 2], loss: f64) -> f64 {
    let latencies = requirement.latency.iter().zip(latency_ms).map(|((_, bounds), ms)| bounds.met_by(ms));
    100.0 * latencies.fold(requirement.loss.met_by(loss), f64::min)
}

impl Bounds {
    /// 1 for optimal, 0 for unacceptable, linear between (§3.3.2, §3.3.3).
    fn met_by(self, measured: f64) -> f64 {
        (1.0 - (measured - self.optimal) / (self.unacceptable - self.optimal)).clamp(0.0, 1.0)
    }
}

impl fmt::Display for Requirement {
    /// `100: 99 % in 100 ms, 99.9 % in 200 ms, 0.1 % lost; 0: 200 ms, 300 ms, 2 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Shares are written with a digit that they do not need for arithmetic.
        let percent = |share: f64| (1000.0 * share).round() / 10.0;
        f.write_str("100:")?;
        for (share, bounds) in &self.latency {
            write!(f, " {} % in {} ms,", percent(*share), bounds.optimal)?;
        }
        write!(f, " {} % lost; 0:", percent(self.loss.optimal))?;
        for (_, bounds) in &self.latency {
            write!(f, " {} ms,", bounds.unacceptable)?;
        }
        write!(f, " {} %", percent(self.loss.unacceptable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_reads_as_its_thresholds() {
        let text = "100: 99 % in 100 ms, 99.9 % in 200 ms, 0.1 % lost; 0: 200 ms, 300 ms, 2 %";
        assert_eq!(EXAMPLE.to_string(), text);
    }
}
