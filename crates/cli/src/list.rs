//! `narrows list`: every queue, controller, detector, kind of traffic and transport, with every parameter; keys of scenario files; and
//! figures of runs.
use crate::failure::Failure;
use crate::term::{self, Paint};
use narrows_core::autorate::AutorateConfig;
use narrows_core::congestion::ControllerConfig;
use narrows_core::detector::DetectorConfig;
use narrows_core::mechanism::MechanismConfig;
use narrows_core::params::ParamSpec;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Entry;
use narrows_core::registry::{Registered, elsewhere, spelled};
use narrows_report::quantity::Quantity;
use narrows_results::figure;
use narrows_scenario::keys::{self, KeySpec, TableSpec};
use narrows_scenario::preset::{self, Preset};
use narrows_scenario::trace::Model;
use narrows_scenario::{Traffic, Transport, hint};
use std::collections::BTreeMap;
use std::fmt::Write;

/// List queues, controllers, traffic, traces and figures
#[derive(clap::Args)]
#[command(after_help = "  narrows list queues         # each with its parameters, units, defaults and ranges
  narrows list keys           # the keys of scenario files, which --set takes
  narrows list metrics        # the figures that `check` and `sweep` take")]
pub(crate) struct List {
    /// Only this kind (queues, mechanisms, autorates, controllers, detectors, traffic, presets, transports, traces, keys, metrics, quantities), or the
    /// entry of this name (cubic)
    what: Option<String>,
    /// Print JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
}

/// The kinds of items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// Queue disciplines in front of a link
    Queues,
    /// Links that decide when and how much they send
    Mechanisms,
    /// What controls the rate of a shaper before such a link
    Autorates,
    /// Congestion control of a flow
    Controllers,
    /// Detectors of fair queuing, for controllers that send over two subflows
    Detectors,
    /// The data that a flow's application sends
    Traffic,
    /// Traffic by what people do
    Presets,
    /// The transport of a flow's data
    Transports,
    /// Built-in traces of links
    Traces,
    /// Keys of scenario files
    Keys,
    /// Figures of a run, for --expect and --metric
    Metrics,
    /// Quantities of series and distributions, for `narrows plot`
    Quantities,
}

impl Listing {
    const ALL: [Listing; 12] = [
        Listing::Queues,
        Listing::Mechanisms,
        Listing::Autorates,
        Listing::Controllers,
        Listing::Detectors,
        Listing::Traffic,
        Listing::Presets,
        Listing::Transports,
        Listing::Traces,
        Listing::Keys,
        Listing::Metrics,
        Listing::Quantities,
    ];

    const fn name(self) -> &'static str {
        match self {
            Listing::Queues => "queues",
            Listing::Mechanisms => "mechanisms",
            Listing::Autorates => "autorates",
            Listing::Controllers => "controllers",
            Listing::Detectors => "detectors",
            Listing::Traffic => "traffic",
            Listing::Presets => "presets",
            Listing::Transports => "transports",
            Listing::Traces => "traces",
            Listing::Keys => "keys",
            Listing::Metrics => "metrics",
            Listing::Quantities => "quantities",
        }
    }

    /// A description, and how the items are written in a scenario and on the command line.
    const fn about(self) -> &'static str {
        match self {
            Listing::Queues => {
                "queue disciplines in front of a link (`queue = …` of a hop; --queues fq_codel:target=10ms,fifo)"
            }
            Listing::Mechanisms => {
                "links that decide when and how much they send (`mechanism = …` of a hop; --set hop.mechanism=wifi:others=0.5)"
            }
            Listing::Autorates => "what controls the rate of a shaper before such a link (`autorate = …` of a hop)",
            Listing::Controllers => "congestion control of a flow (`controller = …`; --flows 2xcubic,1xnew_reno)",
            Listing::Detectors => {
                "detectors of fair queuing (`detector = \"share:cut=0.56;intervals=8\"` of tonopah and startup)"
            }
            Listing::Traffic => "the data that a flow's application sends (`traffic = …`)",
            Listing::Presets => {
                "traffic and transport by what people do (`traffic = \"call\"`; --flows call,2xdownload; advise --uses call,game)"
            }
            Listing::Transports => "the transport of a flow's data (`transport = …`)",
            Listing::Traces => {
                "built-in traces of links (`rate = \"trace:lte\"` of a hop; --rate trace:lte): models, not measurements"
            }
            Listing::Keys => "keys of scenario files, by table (--set hop.rate=20mbit, bulk.rtt=40ms, duration=30s)",
            Listing::Metrics => {
                "figures of a run (--expect 'NAME.goodput >= 90mbit'); hop. and flow. stand for the name of a hop or flow, and the unit \
                 may be left out: NAME.rtt.p99"
            }
            Listing::Quantities => {
                "quantities of series and distributions (`narrows plot RESULT --metric rtt`); the unit may be left out"
            }
        }
    }

    fn entries(self) -> Vec<Listed> {
        let registered = |entries: Vec<Entry>| entries.into_iter().map(Listed::from).collect();
        match self {
            Listing::Queues => registered(QueueConfig::entries()),
            Listing::Mechanisms => registered(MechanismConfig::entries()),
            Listing::Autorates => registered(AutorateConfig::entries()),
            Listing::Controllers => registered(ControllerConfig::entries()),
            Listing::Detectors => registered(DetectorConfig::entries()),
            Listing::Traffic => registered(Traffic::entries()),
            Listing::Presets => {
                let entry = |preset: &Preset| Listed::plain(preset.name, preset.summary);
                preset::ALL.iter().map(entry).collect()
            }
            Listing::Transports => registered(Transport::entries()),
            Listing::Traces => {
                let entry = |model: Model| Listed::plain(model.name(), model.summary());
                Model::ALL.map(entry).into()
            }
            Listing::Keys => keys::tables().into_iter().map(Listed::from).collect(),
            Listing::Metrics => figure::listed().iter().map(|(name, summary)| Listed::plain(name, summary)).collect(),
            Listing::Quantities => {
                Quantity::known().map(|(.., figure)| Listed::plain(figure.path, figure.sentence)).collect()
            }
        }
    }
}

/// Runs the command.
pub(crate) fn main(args: &List) -> Result<(), Failure> {
    let lists = lists(args.what.as_deref())?;
    if args.json {
        let lists = lists.into_iter().map(|(kind, entries)| (kind.name(), entries));
        return term::print_json(&lists.collect::<BTreeMap<_, _>>());
    }
    let paint = Paint::stdout();
    let width = term::width().unwrap_or(usize::MAX);
    let texts: Vec<String> = lists.into_iter().map(|(kind, entries)| text(kind, entries, paint, width)).collect();
    term::print(&texts.join("\n"))
}

/// The entries of every kind, of one kind, or the entry of one name.
fn lists(what: Option<&str>) -> Result<Vec<(Listing, Vec<Listed>)>, Failure> {
    let all = || Listing::ALL.into_iter().map(|kind| (kind, kind.entries()));
    let Some(what) = what else { return Ok(all().collect()) };
    if let Some(kind) = Listing::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(what)) {
        return Ok(vec![(kind, kind.entries())]);
    }
    let name = spelled(what);
    let is_it = |entry: &Listed| {
        let alias = Preset::named(what).is_some_and(|preset| preset.name == entry.name);
        alias || spelled(entry.name) == name || entry.name == what
    };
    let found: Vec<(Listing, Vec<Listed>)> = all()
        .map(|(kind, entries)| (kind, entries.into_iter().filter(is_it).collect::<Vec<_>>()))
        .filter(|(_, entries)| !entries.is_empty())
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let kinds = Listing::ALL.map(Listing::name);
    let names: Vec<&str> =
        kinds.into_iter().chain(all().flat_map(|(_, entries)| entries).map(|entry| entry.name)).collect();
    let hint = match elsewhere(what) {
        Some(text) => format!(" ({text})"),
        None => hint(what, names),
    };
    Err(Failure::usage(format!(
        "no kind and no entry {what:?}; allowed: {}, or the name of an entry{hint}",
        kinds.join(", ")
    )))
}

/// An entry of a list: something that is registered, or a table of scenario files.
#[derive(serde::Serialize)]
struct Listed {
    name: &'static str,
    /// Other names that are accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<&'static str>,
    summary: &'static str,
    params: Vec<Param>,
}

/// A parameter of an entry, or a key of a table.
#[derive(serde::Serialize)]
struct Param {
    name: &'static str,
    unit: &'static str,
    default: String,
    allowed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<&'static [&'static str]>,
    doc: String,
}

impl Listed {
    fn plain(name: &'static str, summary: &'static str) -> Listed {
        Listed { name, aliases: Vec::new(), summary, params: Vec::new() }
    }
}

impl From<Entry> for Listed {
    fn from(entry: Entry) -> Listed {
        let param = |spec: ParamSpec| Param {
            name: spec.name,
            unit: spec.unit.word(),
            default: spec.default,
            allowed: spec.allowed,
            choices: spec.unit.choices(),
            doc: one_line(spec.doc),
        };
        let aliases = entry.aliases().collect();
        let params = entry.params.into_iter().map(param).collect();
        Listed { name: entry.name, aliases, summary: entry.summary, params }
    }
}

impl From<TableSpec> for Listed {
    fn from(table: TableSpec) -> Listed {
        let key = |spec: KeySpec| Param {
            name: spec.name,
            unit: spec.unit,
            default: spec.when_absent().to_owned(),
            doc: spec.sentence(),
            allowed: spec.allowed,
            choices: spec.choices,
        };
        let params = table.keys.into_iter().map(key).collect();
        Listed { name: table.name, aliases: Vec::new(), summary: table.doc, params }
    }
}

fn text(kind: Listing, entries: Vec<Listed>, paint: Paint, width: usize) -> String {
    let name = kind.name().to_uppercase();
    let about = indented(&format!("{name} — {}", kind.about()), 0, width);
    let mut out = about.replacen(&name, &paint.bold(&name), 1);
    for Listed { name, aliases, summary, params } in entries {
        let also = if aliases.is_empty() { String::new() } else { format!(" Also: {}.", aliases.join(", ")) };
        let about = indented(&format!("  {name}  {summary}{also}"), 4, width);
        let _ = write!(out, "\n{}", about.replacen(name, &paint.bold(name), 1));
        let longest = |column: fn(&Param) -> usize| params.iter().map(column).max().unwrap_or(0);
        let (names, defaults) = (longest(|param| param.name.len()), longest(|param| param.default.len()));
        for param in &params {
            let left = format!("{:names$} = {:defaults$}", param.name, param.default);
            let values = match param.unit {
                "switch" => "true | false".to_owned(),
                "choice" | "kind" => format!("one of ({})", param.allowed),
                unit => format!("{unit} ({})", param.allowed),
            };
            out += &indented(&format!("    {left}  {values}"), 8, width);
            for line in indented(&format!("        {}", param.doc), 8, width).lines() {
                let _ = writeln!(out, "{}", paint.dim(line));
            }
        }
    }
    out
}

/// Joins a doc comment's lines.
fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lines of at most `width` columns, broken at spaces; all but the first begin with `indent` spaces. A longer word has its own line.
fn indented(text: &str, indent: usize, width: usize) -> String {
    let start = text.len() - text.trim_start().len();
    let (mut out, mut column) = (text[..start].to_owned(), start);
    let mut begins = true;
    for word in text[start..].split(' ') {
        let length = word.chars().count();
        if !begins && column + 1 + length > width {
            out = out.trim_end().to_owned();
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if !begins {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        begins = false;
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        assert_eq!(indented("  name  one two three", 4, 12), "  name  one\n    two\n    three\n");
        assert_eq!(indented("a longer-than-a-line b", 2, 8), "a\n  longer-than-a-line\n  b\n");
        for kind in Listing::ALL {
            let text = text(kind, kind.entries(), Paint::plain(), 80);
            // A word that is longer than a line, such as a path, stays whole.
            let fits = |line: &&str| line.chars().count() <= 80 || !line.trim().contains(' ');
            assert_eq!(text.lines().find(|line| !fits(line)), None, "{}", kind.name());
        }
    }
}
