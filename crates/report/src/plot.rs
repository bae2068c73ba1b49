//! A plot of one quantity from several results, on one pair of axes: colours for groups, dashes for their flows, bands over seeds.
use crate::comparison::{Comparison, Group, Source, distinct, flow_group, flow_of};
use crate::draw::{Drawing, Form, Line, View};
use crate::palette::{self, Paint};
use crate::quantity::Quantity;
use crate::svg::{curve, flow_count, titles};
use crate::vector::{PDF_MARKER, PGF_MARKER};
use narrows_core::Span;
use narrows_results::FIGURES;
use narrows_results::lookup::without_unit;
use narrows_scenario::hint;

/// The content of a plot.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Request {
    /// The quantity, with or without its unit: `rtt`, `rtt_ms`.
    pub metric: String,
    /// Its distribution instead of its course over time.
    pub cdf: bool,
    /// The hop, flow or kind of flows to show; by default the hop in focus, or all flows.
    pub at: Option<String>,
    /// A line for each kind of flows, in the dashes of its own.
    pub each: bool,
    /// Means over intervals of this length instead of every sample; not of a distribution.
    pub every: Option<Span>,
    /// All lines in one panel, however many they are.
    pub overlaid: bool,
    /// How it is shown.
    pub view: View,
}

impl Request {
    /// Draws the results under their names. An error lists the allowed values.
    pub fn drawing(&self, results: &[(String, Comparison)]) -> Result<Drawing, String> {
        let quantity = self.quantity(results)?;
        let runs = || results.iter().flat_map(|(_, result)| result.runs());
        let end = runs().map(|run| run.result.summary.duration_s).fold(0.0, f64::max);
        let every = self.every.map(|every| intervals(every, end)).transpose()?;
        let mut lines: Vec<Line> = Vec::new();
        let groups =
            results.iter().flat_map(|(name, result)| result.groups.iter().map(move |group| (name, result, group)));
        let (mut of_hop, mut most) = (false, 0);
        for (n, (name, result, group)) in groups.enumerate() {
            let panel = label(name, group, results.len(), result.groups.len());
            for (member, (source, flow)) in self.sources(result, &quantity)?.into_iter().enumerate() {
                let Some((points, band)) = curve(group, &source, &quantity.metric, self.cdf, every) else {
                    continue;
                };
                of_hop |= matches!(source, Source::Hop(_));
                most = most.max(flow_count(group.runs.iter(), &source, &quantity.metric));
                let label = if flow.is_empty() { panel.clone() } else { format!("{panel}: {flow}") };
                let paint = if flow.is_empty() {
                    palette::paint(n)
                } else {
                    Paint { dash: palette::member_dash(member), ..palette::paint(n) }
                };
                lines.push(Line { label, panel: panel.clone(), paint, points, band, bars: Vec::new() });
            }
        }
        if lines.is_empty() {
            let at = self.at.as_deref().unwrap_or_default();
            return Err(format!("{at:?} has no {}; allowed: a hop or flow that has it", quantity.metric));
        }
        let axis = match most {
            n if n < 2 || self.cdf => quantity.axis(),
            _ if self.each => quantity.axis_of("each kind"),
            n => quantity.axis_of(&format!("{n} flows")),
        };
        let axis = match &self.at {
            Some(at) => axis.replacen(&quantity.title, &format!("{} of {at}", quantity.title), 1),
            None => axis,
        };
        let (x, y) = titles(axis, self.cdf, of_hop);
        Ok(Drawing {
            lines,
            x,
            y,
            cdf: self.cdf,
            from_zero: quantity.from_zero(),
            end,
            overlaid: self.overlaid,
            view: self.view.clone(),
        })
    }

    /// The quantity with this name in the results.
    fn quantity(&self, results: &[(String, Comparison)]) -> Result<Quantity, String> {
        let runs = || results.iter().flat_map(|(_, result)| result.runs());
        let names: Vec<&str> = if self.cdf {
            distinct(runs().flat_map(|run| &run.result.cdfs).map(|curve| curve.metric.as_str()))
        } else {
            distinct(runs().flat_map(|run| &run.result.series).map(|curve| curve.metric.as_str()))
        };
        let wanted = self.metric.to_lowercase();
        let found = names.iter().find(|name| **name == wanted);
        let found = found.or_else(|| names.iter().find(|name| without_unit(name) == wanted));
        found.map(|name| Quantity::of(name)).ok_or_else(|| {
            let what = if self.cdf { "distribution" } else { "series" };
            let mut known: Vec<&str> = names.iter().map(|name| without_unit(name)).collect();
            known.sort_unstable();
            let hint = if is_of_a_run(&wanted) {
                format!("; {wanted} is one number for a whole run: see the tables, or `narrows sweep`")
            } else {
                hint(&wanted, known.iter().copied())
            };
            format!("--metric {}: the results have no such {what}; allowed: {}{hint}", self.metric, known.join(", "))
        })
    }

    /// The sources of a result's lines, with the flow's name if there is a line for each kind of flows.
    fn sources(&self, result: &Comparison, quantity: &Quantity) -> Result<Vec<(Source, String)>, String> {
        // A discipline's gauge of a flow belongs to the flow.
        let is_hops = |source: &str| source.starts_with("hop:") && flow_of(source).is_none();
        let is_of_hops = result.runs().any(|run| {
            if self.cdf {
                run.result.cdfs.iter().any(|c| c.metric == quantity.metric && is_hops(&c.source))
            } else {
                run.result.series.iter().any(|s| s.metric == quantity.metric && is_hops(&s.source))
            }
        });
        let (hops, flows, kinds) = (result.hops(), result.flows(), result.flow_groups());
        if let Some(at) = &self.at {
            let source = match at.as_str() {
                at if hops.contains(&at) && (is_of_hops || !flows.contains(&at)) => {
                    if is_of_hops {
                        Source::Hop(at.to_owned())
                    } else {
                        Source::Through(at.to_owned())
                    }
                }
                at if flows.contains(&at) => Source::Flow(at.to_owned()),
                at if kinds.contains(&at) => Source::FlowGroup(at.to_owned()),
                at => {
                    let known: Vec<&str> = distinct(hops.into_iter().chain(kinds).chain(flows));
                    let hint = hint(at, known.iter().copied());
                    let shown = known.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
                    let more = if known.len() > LISTED { ", …" } else { "" };
                    return Err(format!("--at {at}: no hop or flow of this name; allowed: {shown}{more}{hint}"));
                }
            };
            return Ok(vec![(source, String::new())]);
        }
        if self.each {
            let kinds = distinct(flows.into_iter().map(flow_group)).into_iter();
            return Ok(kinds.map(|kind| (Source::FlowGroup(kind.to_owned()), kind.to_owned())).collect());
        }
        let source = match (is_of_hops, result.focus()) {
            (true, Some(hop)) => Source::Hop(hop.to_owned()),
            (_, Some(hop)) if hops.len() > 1 => Source::Through(hop.to_owned()),
            _ => Source::AllFlows,
        };
        Ok(vec![(source, String::new())])
    }
}

/// Checks that at least two intervals of this length fit into the results; returns it in seconds.
fn intervals(every: Span, end: f64) -> Result<f64, String> {
    let length = every.as_secs_f64();
    if length > 0.0 && 2.0 * length <= end {
        return Ok(length);
    }
    Err(format!("--every {every}: the results last {end} s; allowed: above 0s, at most half of that"))
}

/// Whether summaries have a figure of this name.
fn is_of_a_run(name: &str) -> bool {
    let mut keys = FIGURES.iter().filter(|figure| figure.has_path()).flat_map(|figure| figure.path.split('.'));
    keys.any(|key| key == name || without_unit(key) == name)
}

/// A group's name beside those of other results: the result's, the group's, or both.
fn label(result: &str, group: &Group, results: usize, groups: usize) -> String {
    match (results, groups) {
        (1, _) if !group.label.is_empty() => group.label.clone(),
        (1, _) | (_, 1) => result.to_owned(),
        _ => format!("{result}: {}", group.label),
    }
}

/// Whether a file that begins with these bytes was made by [`file()`].
pub fn is_own(first: &[u8]) -> bool {
    let pdf = first.starts_with(b"%PDF-") && first.windows(PDF_MARKER.len()).any(|bytes| bytes == PDF_MARKER);
    pdf || first.starts_with(SVG_MARKER.as_bytes()) || first.starts_with(PGF_MARKER.as_bytes())
}

/// The bytes of a plot's file, which [`is_own`] recognises.
pub fn file(drawing: &Drawing, form: Form) -> Result<Vec<u8>, String> {
    let drawn = drawing.render(form)?;
    Ok(if form == Form::Svg { [SVG_MARKER.as_bytes(), &drawn].concat() } else { drawn })
}

/// The first line of an SVG.
const SVG_MARKER: &str = "<!-- A figure by Narrows -->\n";
/// Maximum number of names in a message.
const LISTED: usize = 20;
