//! Figures of part of a run, from its series.
use crate::testbed::HOP;
use narrows_core::{Span, Time};
use narrows_results::RunResult;
use narrows_scenario::{Scenario, hint};
use narrows_world::record::hop::capacity;

/// Part of a run.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The scenario that ran.
    pub scenario: &'a Scenario,
    /// Index of the flow under test.
    pub flow: usize,
    /// The result.
    pub result: &'a RunResult,
    /// Its start, from the epoch.
    pub from: Span,
    /// Its end.
    pub to: Span,
}

macro_rules! figures {
    ($($name:literal $Variant:ident [$unit:literal] $what:literal;)*) => {
        /// A figure of part of a run.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Figure {
            $( #[doc = $what] $Variant, )*
        }

        impl Figure {
            /// All of them.
            pub const ALL: &'static [Figure] = &[$( Figure::$Variant, )*];

            /// Its name in case files.
            pub const fn name(self) -> &'static str {
                match self { $( Figure::$Variant => $name, )* }
            }

            /// Its unit.
            pub const fn unit(self) -> &'static str {
                match self { $( Figure::$Variant => $unit, )* }
            }

            /// What it is, in a sentence.
            pub const fn what(self) -> &'static str {
                match self { $( Figure::$Variant => $what, )* }
            }
        }
    };
}

figures! {
    "throughput" Throughput ["Mbit/s"] "Mean rate of the flow under test at its receiver, IP layer, repeats included.";
    "others" Others ["Mbit/s"] "The same of all other flows together.";
    "share" Share [""] "Part of the bytes delivered that is the flow's.";
    "peak" Peak ["Mbit/s"] "Highest rate of the flow in one sample.";
    "low" Low ["Mbit/s"] "Lowest rate of the flow in one sample.";
    "swing" Swing [""] "Standard deviation of the flow's rate over the samples, as a part of its mean.";
    "stall" Stall ["s"] "Longest time in which nothing of the flow arrived.";
    "rise" Rise ["s"] "Time until the flow had nine tenths of the link for five samples; the whole window if it never had.";
    "delay" Delay ["ms"] "Mean time in the bottleneck's queue.";
    "delay_max" DelayMax ["ms"] "The same in the worst sample.";
    "delay_min" DelayMin ["ms"] "The same in the best sample in which a packet left.";
    "drops" Drops ["packets"] "Packets dropped at the bottleneck, lost on its link included.";
    "loss" Loss ["%"] "Dropped packets as a part of those that arrived at the bottleneck, taken as full-sized.";
    "cwnd" Cwnd ["packets"] "Mean congestion window, for a sender that shows it.";
    "cwnd_max" CwndMax ["packets"] "Largest window in a sample.";
    "cwnd_min" CwndMin ["packets"] "Smallest window in a sample.";
}

/// Bits of a full-sized packet.
const FULL: f64 = 12_000.0;
/// The share of the link that counts as all of it, and the number of samples over which the flow must have it.
const RISEN: (f64, usize) = (0.9, 5);

impl Figure {
    /// The figure of this name.
    ///
    /// # Errors
    /// What is allowed instead.
    pub fn read(name: &str) -> Result<Figure, String> {
        let names: Vec<&str> = Figure::ALL.iter().map(|figure| figure.name()).collect();
        let hinted = || hint(name, names.iter().copied());
        let found = Figure::ALL.iter().copied().find(|figure| figure.name() == name);
        found.ok_or_else(|| format!("no figure is called \"{name}\"{}; allowed: {}", hinted(), names.join(", ")))
    }
}

impl Window<'_> {
    /// A figure; `None` if there is no series of it.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        let rates = || self.of_flow(self.flow, "throughput_mbit");
        let delays = || self.of_hop("sojourn_ms");
        let windows = || self.of_flow(self.flow, "cwnd_packets");
        match figure {
            Figure::Throughput => mean(&rates()?),
            Figure::Others => Some(self.others()),
            Figure::Share => {
                let own = mean(&rates()?)?;
                Some(if own > 0.0 { own / (own + self.others()) } else { 0.0 })
            }
            Figure::Peak => max(&rates()?),
            Figure::Low => min(&rates()?),
            Figure::Swing => {
                let rates = rates()?;
                let mean = mean(&rates)?;
                let variance = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / rates.len() as f64;
                Some(if mean > 0.0 { variance.sqrt() / mean } else { 0.0 })
            }
            Figure::Stall => {
                let rates = rates()?;
                let longest = rates.split(|&rate| rate > 0.0).map(<[f64]>::len).max().unwrap_or(0);
                Some(longest as f64 * self.spacing().as_secs_f64())
            }
            Figure::Rise => self.rise(&rates()?),
            Figure::Delay => mean(&delays()?),
            Figure::DelayMax => max(&delays()?),
            Figure::DelayMin => min(&delays()?),
            Figure::Drops => self.drops(),
            Figure::Loss => {
                let sent = mean(&self.of_hop("throughput_mbit")?)? * 1e6 * self.length() / FULL;
                let drops = self.drops()?;
                Some(if drops > 0.0 { 100.0 * drops / (drops + sent) } else { 0.0 })
            }
            Figure::Cwnd => mean(&windows()?),
            Figure::CwndMax => max(&windows()?),
            Figure::CwndMin => min(&windows()?),
        }
    }

    /// What the bottleneck could have carried, Mbit/s.
    pub fn link(&self) -> f64 {
        self.link_between(self.from, self.to)
    }

    fn link_between(&self, from: Span, to: Span) -> f64 {
        let hop = self.scenario.hops.iter().find(|hop| hop.name == HOP);
        let bytes = hop.map_or(0, |hop| capacity(hop, Time::ZERO + from, Time::ZERO + to).0);
        bytes as f64 * 8e-6 / to.saturating_sub(from).as_secs_f64()
    }

    fn others(&self) -> f64 {
        let others = (0..self.result.summary.flows.len()).filter(|&flow| flow != self.flow);
        others.filter_map(|flow| mean(&self.of_flow(flow, "throughput_mbit")?)).sum()
    }

    fn drops(&self) -> Option<f64> {
        Some(mean(&self.of_hop("drops_per_s")?)? * self.length())
    }

    fn rise(&self, rates: &[f64]) -> Option<f64> {
        let (part, samples) = RISEN;
        let spacing = self.spacing();
        let has_link = |(n, rates): (usize, &[f64])| {
            let from = self.from + spacing * n as u64;
            let link = self.link_between(from, from + spacing * samples as u64);
            rates.iter().sum::<f64>() >= part * link * samples as f64
        };
        let risen = rates.windows(samples).enumerate().position(has_link);
        Some(risen.map_or(self.length(), |n| n as f64 * spacing.as_secs_f64()))
    }

    fn length(&self) -> f64 {
        self.to.saturating_sub(self.from).as_secs_f64()
    }

    fn spacing(&self) -> Span {
        self.scenario.record.spacing(self.scenario.duration)
    }

    fn of_flow(&self, flow: usize, metric: &str) -> Option<Vec<f64>> {
        self.samples(&format!("flow:{}", self.result.summary.flows[flow].name), metric)
    }

    fn of_hop(&self, metric: &str) -> Option<Vec<f64>> {
        self.samples(&format!("hop:{HOP}"), metric)
    }

    /// The samples of a series whose intervals lie in the window; `None` if it has none there.
    fn samples(&self, source: &str, metric: &str) -> Option<Vec<f64>> {
        let (from, to) = (self.from.as_secs_f64(), self.to.as_secs_f64());
        // Half a spacing, so that rounding does not decide which sample is the first.
        let slack = self.spacing().as_secs_f64() / 2.0;
        let series = self.result.series.iter().find(|series| series.source == source && series.metric == metric)?;
        let within = |&&(at, _): &&(f64, f64)| at > from + slack && at < to + slack;
        let samples: Vec<f64> = series.points.iter().filter(within).map(|&(_, value)| value).collect();
        (!samples.is_empty()).then_some(samples)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn max(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

fn min(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}
