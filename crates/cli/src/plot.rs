//! `narrows plot`: one quantity of several results on one pair of axes, as a figure for a paper.
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Output, Request as Claim};
use crate::term;
use narrows_report::Comparison;
use narrows_report::draw::Form;
use narrows_report::plot::{self, Request};
use narrows_scenario::printable::printable;
use narrows_scenario::shorthand;
use std::path::{Path, PathBuf};

/// Draw one quantity of several results: SVG, PDF or PGF
#[derive(clap::Args)]
#[command(after_help = "\
More than five lines get a panel each, where the others are grey (--overlay: one panel). Of several seeds a figure shows the mean
and a band from the smallest to the largest value.

  narrows plot fifo-run cake-run --metric rtt --out rtt.pdf
  narrows plot mixed-run --metric throughput --each --every 1s")]
pub(crate) struct Plot {
    /// Results: folders of runs or of comparisons
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,
    /// The quantity, as series.parquet and cdf.parquet name it; the unit may be left out: rtt, throughput, queue, sojourn, cwnd
    #[arg(long, value_name = "NAME")]
    metric: String,
    /// Draw its distribution instead of its course over time
    #[arg(long)]
    cdf: bool,
    /// Hop, flow or kind of flows [default: the hop where the queues differ, or all flows]
    #[arg(long, value_name = "NAME")]
    at: Option<String>,
    /// A line for each kind of flows, in the dashes of its own
    #[arg(long, conflicts_with = "at")]
    each: bool,
    /// Means over intervals of this length instead of every sample
    #[arg(long, value_name = "TIME", conflicts_with = "cdf", allow_hyphen_values = true)]
    every: Option<String>,
    /// All lines in one panel, however many they are
    #[arg(long)]
    overlay: bool,
    /// The figure; its extension says in which form: .svg, .pdf, .pgf or .tex; may be given several times [default: METRIC.svg]
    #[arg(short, long, value_name = "FILE")]
    out: Vec<PathBuf>,
    /// Replace figures that narrows has written; other files are never touched
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn main(args: &Plot) -> Result<(), Failure> {
    interrupt::install()?;
    let files = args.files()?;
    let load = |dir: &PathBuf| Ok((name(dir), Comparison::load(dir).map_err(Failure::usage)?));
    let results: Vec<(String, Comparison)> = args.results.iter().map(load).collect::<Result<_, Failure>>()?;
    let request = Request {
        metric: args.metric.clone(),
        cdf: args.cdf,
        at: args.at.clone(),
        each: args.each,
        every: args
            .every
            .as_deref()
            .map(|text| shorthand::span("--every", text))
            .transpose()
            .map_err(Failure::usage)?,
        overlaid: args.overlay,
    };
    let drawing = request.drawing(&distinct(results)).map_err(Failure::usage)?;
    for (path, form) in files {
        let claim = Claim { out: Some(&path), force: args.force, command: "plot", keys: &[] };
        let output = Output::claim_file(claim, &path, plot::is_own)?;
        let bytes = plot::file(&drawing, form).map_err(Failure::other)?;
        output.write(path.file_name().unwrap_or_default(), bytes)?;
        output.publish()?;
        term::print(&format!("{}\n", printable(&path.to_string_lossy())))?;
    }
    Ok(())
}

impl Plot {
    /// The files and their forms.
    fn files(&self) -> Result<Vec<(PathBuf, Form)>, Failure> {
        if self.out.is_empty() {
            let name = narrows_results::folder::folder_name(&self.metric.to_lowercase());
            return Ok(vec![(PathBuf::from(format!("{name}.svg")), Form::Svg)]);
        }
        let form = |path: &PathBuf| match path.extension().map(|end| end.to_string_lossy().to_lowercase()).as_deref() {
            Some("svg") => Ok((path.clone(), Form::Svg)),
            Some("pdf") => Ok((path.clone(), Form::Pdf)),
            Some("pgf" | "tex") => Ok((path.clone(), Form::Pgf)),
            _ => Err(Failure::usage(format!(
                "--out {}: the extension says the form of a figure; allowed: .svg, .pdf, .pgf, .tex",
                path.display()
            ))),
        };
        self.out.iter().map(form).collect()
    }
}

/// The name of a result in a legend: that of its folder, also where the path is a link or ends with dots.
fn name(dir: &Path) -> String {
    let named = dir.file_name().map(|name| name.to_string_lossy().into_owned());
    let real = || dir.canonicalize().ok()?.file_name().map(|name| name.to_string_lossy().into_owned());
    printable(&named.or_else(real).unwrap_or_else(|| dir.display().to_string())).into_owned()
}

/// The results with distinct names: those that share one get their folder's number.
fn distinct(results: Vec<(String, Comparison)>) -> Vec<(String, Comparison)> {
    let names: Vec<String> = results.iter().map(|(name, _)| name.clone()).collect();
    let renamed = results.into_iter().enumerate().map(|(n, (name, result))| {
        let is_alone = names.iter().filter(|other| **other == name).count() == 1;
        (if is_alone { name } else { format!("{name} ({})", n + 1) }, result)
    });
    renamed.collect()
}
