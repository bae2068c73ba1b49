//! One self-contained page: tables in plain HTML, charts by plotly.js, everything in one file.
//!
//! The chart library and the series are deflated and in base64; the page inflates them before it counts as loaded. A content
//! security policy forbids all connections, so that the browser enforces "self-contained".
mod data;
mod facts;
mod rows;

use crate::comparison::{Comparison, distinct};
use crate::notes::{Note, notes};
use crate::palette::{self, Paint};
use crate::quantity::Quantity;
use crate::table::Table;
use askama::Template;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use facts::Fact;
use rows::{DropTable, HtmlTable};

/// The page for a comparison, with the packets of the first run that recorded them; the error says why it could not be written.
pub fn render(comparison: &Comparison) -> Result<String, String> {
    let events = comparison.runs().find_map(|run| run.events.as_ref());
    let events = events.map(serde_json::to_vec).transpose().map_err(|error| error.to_string())?;
    let data = serde_json::to_vec(&data::Data::of(comparison)).map_err(|error| error.to_string())?;
    let page = Page {
        title: facts::title(comparison),
        subtitle: facts::subtitle(comparison),
        facts: facts::facts(comparison),
        queues: HtmlTable::new(&Table::of_queues(comparison)),
        flow_groups: Table::of_flow_groups(comparison)
            .map(|table| HtmlTable::new(&table))
            .filter(HtmlTable::has_figures),
        applications: Table::of_applications(comparison)
            .map(|table| (HtmlTable::new(&table), table.explanation()))
            .filter(|(table, _)| table.has_figures()),
        flows: HtmlTable::new(&Table::of_flows(comparison, MAX_FLOWS)),
        flow_count: comparison.flows().len(),
        max_flows: MAX_FLOWS,
        drops: DropTable::of(comparison),
        focus: comparison.focus().filter(|_| comparison.hops().len() > 1),
        runs: comparison.max_runs(),
        several: comparison.groups.len() > 1,
        has_intervals: comparison.groups.iter().any(|group| group.draws().len() > 1),
        notes: notes(comparison),
        quantities: quantities(comparison),
        paints: (0..comparison.groups.len()).map(palette::paint).collect(),
        scenarios: scenarios(comparison),
        style: include_str!("../templates/report.css"),
        script: concat!(
            include_str!("../templates/inflate.js"),
            include_str!("../templates/page.js"),
            include_str!("../templates/multiples.js"),
            include_str!("../templates/events.js"),
            include_str!("../templates/report.js")
        ),
        data: packed(&data),
        events: events.map(|events| packed(&events)),
        library: LIBRARY,
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render().map_err(|error| error.to_string())
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: String,
    subtitle: String,
    facts: Vec<Fact>,
    queues: HtmlTable,
    flow_groups: Option<HtmlTable>,
    /// With an explanation of its columns.
    applications: Option<(HtmlTable, String)>,
    flows: HtmlTable,
    flow_count: usize,
    max_flows: usize,
    drops: Option<DropTable>,
    /// The hop of the delays and utilisations, if there are several hops.
    focus: Option<&'a str>,
    runs: usize,
    /// Whether there are several groups to choose from.
    several: bool,
    /// Whether there are independent runs from which an interval can be estimated.
    has_intervals: bool,
    notes: Vec<Note>,
    /// What the charts show.
    quantities: Vec<Quantity>,
    paints: Vec<Paint>,
    scenarios: Vec<ScenarioText<'a>>,
    style: &'static str,
    script: &'static str,
    data: String,
    events: Option<String>,
    library: &'static str,
    version: &'static str,
}

/// The quantities of the charts over time, in their order.
fn quantities(comparison: &Comparison) -> Vec<Quantity> {
    let metrics = distinct(comparison.runs().flat_map(|run| &run.result.series).map(|series| series.metric.as_str()));
    let mut quantities: Vec<Quantity> = metrics.into_iter().map(Quantity::of).collect();
    quantities.sort_by_key(|quantity| quantity.rank);
    quantities
}

/// A scenario file as run.
struct ScenarioText<'a> {
    label: &'a str,
    text: &'a str,
}

/// The scenario files of the first run of every group.
fn scenarios(comparison: &Comparison) -> Vec<ScenarioText<'_>> {
    let groups = comparison.groups.iter();
    groups
        .filter_map(|group| Some(ScenarioText { label: &group.label, text: group.first()?.scenario_text.as_deref()? }))
        .collect()
}

/// Deflated (zlib's format) and in base64.
pub(crate) fn packed(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(miniz_oxide::deflate::compress_to_vec_zlib(bytes, FAIR))
}

/// plotly.js from its crate, deflated and in base64 by the build script.
pub(crate) const LIBRARY: &str = include_str!(concat!(env!("OUT_DIR"), "/plotly.js.zlib.base64"));

/// Most flows with rows of their own.
const MAX_FLOWS: usize = 100;

/// zlib's usual compromise between size and time.
const FAIR: u8 = 6;
