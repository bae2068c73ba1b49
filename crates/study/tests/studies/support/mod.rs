//! What the studies of these tests have in common: one hop, `link`, and the flow `bulk` over it. Axes and figures are each test's own.
use narrows_results::RunResult;
use narrows_results::summary::{HopSummary, Summary};

/// What differs between them before their axes.
pub(crate) struct Base {
    /// The figure's name.
    pub(crate) figure: &'static str,
    /// Its quick effort.
    pub(crate) quick: &'static str,
    /// Runs by default, and in full.
    pub(crate) runs: [u32; 2],
    /// The link's rate.
    pub(crate) rate: &'static str,
    /// Keys of the flow, the base RTT among them.
    pub(crate) flow: &'static str,
}

impl Default for Base {
    fn default() -> Base {
        Base { figure: "figure 1", quick: "runs = 1", runs: [2, 9], rate: "$rate", flow: "rtt = \"20ms\"" }
    }
}

impl Base {
    /// The text of a study with these axes, draws and figures.
    pub(crate) fn study(&self, rest: &str) -> String {
        let Base { figure, quick, runs: [default, full], rate, flow } = self;
        format!(
            r#"
figure = "{figure}"
title = "a test"
source = "nowhere"
quick = {{ {quick} }}
default = {{ runs = {default} }}
full = {{ runs = {full} }}

{rest}
[scenario]
duration = "10s"
[[scenario.hop]]
name = "link"
rate = "{rate}"
queue = "$queue"
[[scenario.flow]]
name = "bulk"
{flow}
route = ["link"]

"#
        )
    }
}

/// A run in which the link was used to this extent, and nothing else is known.
pub(crate) fn result(utilisation: f64) -> RunResult {
    let hop = HopSummary { name: "link".into(), utilisation, ..Default::default() };
    RunResult { summary: Summary { hops: vec![hop], ..Default::default() }, series: vec![], cdfs: vec![] }
}
