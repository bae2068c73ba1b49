//! `narrows plot`: one quantity of several results, or of a sweep's table, on one pair of axes, as a figure for a paper.
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Output, Request as Claim};
use crate::term;
use narrows_report::Comparison;
use narrows_report::draw::{Drawing, Form, Limits, View};
use narrows_report::plot::{self, Request};
use narrows_report::table_plot;
use narrows_results::{Format, Rows};
use narrows_scenario::printable::printable;
use narrows_scenario::shorthand;
use std::path::{Path, PathBuf};

/// Draw results, or a figure of a sweep, as SVG, PDF or PGF
#[derive(clap::Args)]
#[command(after_help = "\
More than five lines get a panel each, where the others are grey (--overlay: one panel). Of several seeds a figure shows the mean
and a band from the smallest to the largest value; of a sweep's table the mean of the seeds and its 95 % confidence interval.

  narrows plot sweep.csv --x hop.rate --y bulk.rtt.p99 --by hop.queue --log x
  narrows plot fifo-run cake-run --metric rtt --out rtt.pdf
  narrows plot mixed-run --metric throughput --each --every 1s")]
pub(crate) struct Plot {
    /// Results: folders of runs or of comparisons; or with --x and --y the table of a sweep (.csv, .parquet, or its folder)
    #[arg(value_name = "RESULT", required = true)]
    results: Vec<PathBuf>,
    /// The quantity, as series.parquet and cdf.parquet name it; the unit may be left out: rtt, throughput, queue, sojourn, cwnd
    #[arg(long, value_name = "NAME", required_unless_present = "x", conflicts_with = "x")]
    metric: Option<String>,
    /// Of a table: the column of the x axis, such as hop.rate
    #[arg(long, value_name = "COLUMN", requires = "y")]
    x: Option<String>,
    /// Of a table: the figure, such as bulk.rtt.p99 or link.utilisation
    #[arg(long, value_name = "FIGURE", requires = "x")]
    y: Option<String>,
    /// Of a table: a line for each value of these columns, such as hop.queue; flow for the groups of flows
    #[arg(long, value_name = "COLUMN,…", requires = "x", value_delimiter = ',')]
    by: Vec<String>,
    /// Of a table: only the rows that meet this, such as 'hop.rate >= 10mbit' or 'hop.queue != fifo'; may be given several times
    #[arg(long = "where", value_name = "CONDITION", requires = "x")]
    conditions: Vec<String>,
    /// Draw its distribution instead of its course over time
    #[arg(long, conflicts_with = "x")]
    cdf: bool,
    /// Hop, flow or kind of flows [default: the hop where the queues differ, or all flows]
    #[arg(long, value_name = "NAME", conflicts_with = "x")]
    at: Option<String>,
    /// A line for each kind of flows, in the dashes of its own
    #[arg(long, conflicts_with_all = ["at", "x"])]
    each: bool,
    /// Means over intervals of this length instead of every sample
    #[arg(long, value_name = "TIME", conflicts_with_all = ["cdf", "x"], allow_hyphen_values = true)]
    every: Option<String>,
    /// All lines in one panel, however many they are
    #[arg(long)]
    overlay: bool,
    /// Logarithmic axes
    #[arg(long, value_name = "AXES")]
    log: Option<LogAxes>,
    /// Ends of the x axis, in its unit; one may be left out: 5..50, 5.., ..50
    #[arg(long, value_name = "A..B", allow_hyphen_values = true, value_parser = limits)]
    xrange: Option<Limits>,
    /// Ends of the y axis, in its unit
    #[arg(long, value_name = "A..B", allow_hyphen_values = true, value_parser = limits)]
    yrange: Option<Limits>,
    /// Width and height in pixels; 640 pixels are 12 cm in PDF and PGF; panels may need more height [default: 640x360]
    #[arg(long, value_name = "WxH", value_parser = size)]
    size: Option<(i32, i32)>,
    /// The title of the x axis [default: the quantity and its unit]
    #[arg(long, value_name = "TEXT")]
    xlabel: Option<String>,
    /// The title of the y axis [default: the quantity and its unit]
    #[arg(long, value_name = "TEXT")]
    ylabel: Option<String>,
    /// A title above the figure
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    title: String,
    /// The figure; its extension says in which form: .svg, .pdf, .pgf or .tex; may be given several times [default: METRIC.svg, FIGURE.svg]
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
    let drawing = args.drawing()?;
    let (x, y) = (args.xlabel.clone(), args.ylabel.clone());
    let drawing = Drawing { x: x.unwrap_or(drawing.x), y: y.unwrap_or(drawing.y), ..drawing };
    for (path, form) in files {
        let bytes = plot::file(&drawing, form).map_err(Failure::usage)?;
        let claim = Claim { out: Some(&path), force: args.force, command: "plot", keys: &[] };
        let output = Output::claim_file(claim, &path, plot::is_own)?;
        output.write(path.file_name().unwrap_or_default(), bytes)?;
        output.publish()?;
        term::print(&format!("{}\n", printable(&path.to_string_lossy())))?;
    }
    Ok(())
}

/// The axes that are logarithmic.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogAxes {
    X,
    Y,
    Xy,
}

/// The smallest and the largest width or height of a figure, px.
const SIZES: std::ops::RangeInclusive<i32> = 200..=4000;

/// The ends of an axis: `5..50`, `5..`, `..50`.
fn limits(text: &str) -> Result<Limits, String> {
    let end = |text: &str| match text.trim() {
        "" => Some(None),
        text => text.parse().ok().filter(|end: &f64| end.is_finite()).map(Some),
    };
    let limits = text.split_once("..").and_then(|(low, high)| Some((end(low)?, end(high)?)));
    let is_range = |&(low, high): &Limits| match (low, high) {
        (None, None) => false,
        (Some(low), Some(high)) => low < high,
        _ => true,
    };
    let allowed = "allowed: two numbers in the axis's unit, the smaller one first, such as 5..50; one may be left out";
    limits.filter(is_range).ok_or_else(|| allowed.to_owned())
}

/// Width and height: `640x360`.
fn size(text: &str) -> Result<(i32, i32), String> {
    let side = |text: &str| text.parse().ok().filter(|side| SIZES.contains(side));
    let size = text.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?)));
    size.ok_or_else(|| {
        format!("allowed: WIDTHxHEIGHT, each from {} to {}, such as 640x360", SIZES.start(), SIZES.end())
    })
}

/// The table of a sweep: this file, or the one in this folder.
fn table(path: &Path) -> Result<Rows, Failure> {
    let names = [Format::Csv, Format::Parquet].map(|format| format!("table.{}", format.extension()));
    let file = if path.is_dir() {
        names.iter().map(|name| path.join(name)).find(|file| file.is_file())
    } else {
        Some(path.to_owned())
    };
    let lacks = || format!("there is no {} in it; allowed: the table of a sweep, or its folder", names.join(" or "));
    let rows = file.ok_or_else(lacks).and_then(|file| Rows::read(&file));
    rows.map_err(|error| Failure::usage(format!("{}: {error}", printable(&path.to_string_lossy()))))
}

/// The result in a folder, and its name.
fn result(path: &Path) -> Result<(String, Comparison), Failure> {
    let loaded = Comparison::load(path).map_err(|error| {
        let hint = if path.is_file() { "; to draw the table of a sweep, give --x and --y" } else { "" };
        Failure::usage(format!("{error}{hint}"))
    });
    Ok((name(path), loaded?))
}

impl Plot {
    /// The figure.
    fn drawing(&self) -> Result<Drawing, Failure> {
        let view = View {
            log_x: matches!(self.log, Some(LogAxes::X | LogAxes::Xy)),
            log_y: matches!(self.log, Some(LogAxes::Y | LogAxes::Xy)),
            x: self.xrange.unwrap_or_default(),
            y: self.yrange.unwrap_or_default(),
            size: self.size,
            title: self.title.clone(),
        };
        if let (Some(x), Some(y)) = (&self.x, &self.y) {
            let [path] = self.results.as_slice() else {
                return Err(Failure::usage("--x and --y draw one table of a sweep; allowed: one RESULT"));
            };
            let request = table_plot::Request {
                x: x.clone(),
                y: y.clone(),
                by: self.by.clone(),
                conditions: self.conditions.clone(),
                overlaid: self.overlay,
                view,
            };
            return request.drawing(&table(path)?).map_err(Failure::usage);
        }
        let results: Vec<(String, Comparison)> =
            self.results.iter().map(|path| result(path)).collect::<Result<_, Failure>>()?;
        let every = self.every.as_deref().map(|text| shorthand::span("--every", text));
        let request = Request {
            metric: self.metric.clone().unwrap_or_default(),
            cdf: self.cdf,
            at: self.at.clone(),
            each: self.each,
            every: every.transpose().map_err(Failure::usage)?,
            overlaid: self.overlay,
            view,
        };
        request.drawing(&distinct(results)).map_err(Failure::usage)
    }

    /// The files and their forms.
    fn files(&self) -> Result<Vec<(PathBuf, Form)>, Failure> {
        if self.out.is_empty() {
            let metric = self.metric.as_ref().or(self.y.as_ref()).map_or("", String::as_str);
            let name = narrows_results::folder::folder_name(&metric.to_lowercase());
            return Ok(vec![(PathBuf::from(format!("{name}.svg")), Form::Svg)]);
        }
        let form = |path: &PathBuf| match path.extension().map(|end| end.to_string_lossy().to_lowercase()).as_deref() {
            Some("svg") => Ok((path.clone(), Form::Svg)),
            Some("pdf") => Ok((path.clone(), Form::Pdf)),
            Some("pgf" | "tex") => Ok((path.clone(), Form::Pgf)),
            end => {
                let hint = if end == Some("png") {
                    "; for PNG: pdftoppm -r 300 -png -singlefile FIGURE.pdf FIGURE"
                } else {
                    ""
                };
                Err(Failure::usage(format!(
                    "--out {}: the extension says the form of a figure; allowed: .svg, .pdf, .pgf, .tex{hint}",
                    path.display()
                )))
            }
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
