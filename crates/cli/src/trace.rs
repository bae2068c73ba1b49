//! `narrows trace`: traces of links, made from models and imported from files.
use crate::failure::Failure;
use crate::flags::{MAX_SEED, whole};
use crate::output::{Output, Request};
use crate::term;
use narrows_core::Span;
use narrows_core::link::OPPORTUNITY;
use narrows_results::input::TraceFiles;
use narrows_scenario::trace::{self, Model, synthetic};
use narrows_scenario::{RateSpec, Traces, shorthand};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Make, import and describe traces of links whose rate varies
#[derive(clap::Args)]
#[command(after_help = "\
A trace stands wherever a rate is taken: `rate = \"trace:lte.mahi\"` in a scenario (a file beside it), --rate trace:lte.mahi.
The built-in ones have no file: trace:lte is `narrows trace make lte`.

  narrows trace make lte --seed 7 --duration 5min --out lte-7.mahi
  narrows trace import drive.csv --out drive.mahi
  narrows trace show wifi")]
pub(crate) struct Trace {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a synthetic trace, in mahimahi's format
    Make(Make),
    /// Read a trace (mahimahi's format, a log of mahimahi or Pantheon, CSV, or a dish's history) and write it in mahimahi's format
    Import(Import),
    /// Show a trace's rates and gaps
    Show(Show),
}

#[derive(clap::Args)]
struct Make {
    /// The model: `narrows list traces` describes them
    #[arg(value_name = "MODEL", value_parser = model)]
    model: Model,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = synthetic::SEED, allow_hyphen_values = true, value_parser = whole(0..=MAX_SEED))]
    seed: u64,
    /// Length of the trace, after which it repeats: 1ms to 10 minutes
    #[arg(short = 't', long, value_name = "TIME", default_value = "60s", allow_hyphen_values = true)]
    duration: String,
    #[command(flatten)]
    place: FileArgs,
}

#[derive(clap::Args)]
struct Import {
    /// The file; its content decides the format
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The column of rates in a CSV, with the unit of its numbers if its name has none: UL_bitrate, speed:kbit [default: by its name]
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    #[command(flatten)]
    place: FileArgs,
}

#[derive(clap::Args)]
struct Show {
    /// A file, or the name of a built-in trace
    #[arg(value_name = "TRACE")]
    trace: String,
    /// Print JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
}

/// Flags of commands that write one file.
#[derive(clap::Args)]
struct FileArgs {
    /// The file to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the trace that --out holds; any other file is never touched
    #[arg(long, requires = "out")]
    force: bool,
}

fn model(text: &str) -> Result<Model, String> {
    let names = || Model::ALL.map(Model::name);
    Model::named(text)
        .ok_or_else(|| format!("allowed: {}{}", names().join(", "), narrows_scenario::hint(text, names().into_iter())))
}

/// Runs the command.
pub(crate) fn main(args: &Trace) -> Result<(), Failure> {
    match &args.command {
        Command::Make(args) => make(args),
        Command::Import(args) => {
            let name = args.file.to_string_lossy();
            let opportunities = match &args.column {
                None => read(&name)?.0.to_vec(),
                Some(column) => {
                    let unread = |problem| Failure::usage(format!("cannot read trace \"{name}\": {problem}"));
                    let text = TraceFiles(Path::new("")).text(&name).map_err(unread)?;
                    trace::parse_column(&text, &name, Some(column)).map_err(Failure::usage)?.0
                }
            };
            args.place.write(&trace::write(&opportunities))
        }
        Command::Show(args) => show(args),
    }
}

fn make(args: &Make) -> Result<(), Failure> {
    let span = shorthand::duration("--duration", &args.duration).map_err(Failure::usage)?;
    if !(Span::ms(1)..=synthetic::LONGEST).contains(&span) {
        let (text, most) = (&args.duration, synthetic::LONGEST);
        return Err(Failure::usage(format!("--duration: cannot be {text:?}; allowed: 1ms to {most}")));
    }
    let (opportunities, _) = args.model.opportunities(args.seed, span);
    args.place.write(&trace::write(&opportunities))
}

/// A trace by its name, from the current folder.
fn read(name: &str) -> Result<(Arc<[Span]>, Span), Failure> {
    let files = TraceFiles(Path::new(""));
    match shorthand::rate_or_trace("trace", &format!("trace:{name}"), &files).map_err(Failure::usage)? {
        RateSpec::Trace { opportunities, period, .. } => Ok((opportunities, period)),
        RateSpec::Schedule(_) => Err(Failure::other(format!("{name} is not a trace"))),
    }
}

impl FileArgs {
    fn write(&self, text: &str) -> Result<(), Failure> {
        let Some(out) = &self.out else { return term::print(text) };
        let request = Request { out: Some(out), force: self.force, command: "trace", keys: &[] };
        let output = Output::claim_file(request, out, is_trace)?;
        output.write(out.file_name().unwrap_or_default(), text)?;
        output.publish().map(drop)
    }
}

/// Whether these are the first bytes of a trace in mahimahi's format.
fn is_trace(first: &[u8]) -> bool {
    first.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n') && first.first() != Some(&b'\n')
}

/// A trace in figures.
#[derive(serde::Serialize)]
struct TraceStatistics {
    opportunities: usize,
    period_s: f64,
    mean_mbit: f64,
    /// Quantiles of the mean rates of windows of 100 ms.
    p5_mbit: f64,
    p50_mbit: f64,
    p95_mbit: f64,
    longest_gap_ms: f64,
}

/// Length of a window whose mean rate is a rate of the trace.
const WINDOW: Span = Span::ms(100);

impl TraceStatistics {
    fn of(opportunities: &[Span], period: Span) -> TraceStatistics {
        let mbit = |count: usize, span: Span| (OPPORTUNITY.0 * 8) as f64 * count as f64 / span.as_secs_f64() / 1e6;
        let windows = (period.as_ns() / WINDOW.as_ns()) as usize;
        // An opportunity at the end of a window is the window's.
        let window = |at: &Span| (at.as_ns().saturating_sub(1) / WINDOW.as_ns()) as usize;
        // A trace may be a year of silence, so only windows with opportunities are counted. They follow each other in time.
        let whole = opportunities.partition_point(|at| window(at) < windows);
        let mut counts: Vec<usize> =
            opportunities[..whole].chunk_by(|one, next| window(one) == window(next)).map(<[Span]>::len).collect();
        counts.sort_unstable();
        let empty = windows - counts.len();
        // Of a trace without a whole window, the mean.
        let all = mbit(opportunities.len(), period);
        let quantile = |share: f64| match windows.checked_sub(1) {
            Some(last) => {
                let place = ((share * last as f64).round() as usize).checked_sub(empty);
                mbit(place.map_or(0, |place| counts[place]), WINDOW)
            }
            None => all,
        };
        // The trace repeats, so the first gap is also the last.
        let gap = |pair: &[Span]| pair[1].saturating_sub(pair[0]);
        let longest = opportunities.windows(2).map(gap).chain(opportunities.first().copied()).max();
        TraceStatistics {
            opportunities: opportunities.len(),
            period_s: period.as_secs_f64(),
            mean_mbit: all,
            p5_mbit: quantile(0.05),
            p50_mbit: quantile(0.5),
            p95_mbit: quantile(0.95),
            longest_gap_ms: longest.unwrap_or(Span::ZERO).as_ms_f64(),
        }
    }
}

fn show(args: &Show) -> Result<(), Failure> {
    let (opportunities, period) = read(&args.trace)?;
    let figures = TraceStatistics::of(&opportunities, period);
    if args.json {
        return term::print_json(&figures);
    }
    let TraceStatistics { opportunities, period_s, mean_mbit, p5_mbit, p50_mbit, p95_mbit, longest_gap_ms } = figures;
    term::print(&format!(
        "{opportunities} opportunities of 1500 bytes in {period_s} s\n\
         rate         {mean_mbit:.2} Mbit/s on average; in windows of 100 ms {p5_mbit:.2} (p5), {p50_mbit:.2} (p50), \
         {p95_mbit:.2} (p95)\n\
         longest gap  {longest_gap_ms} ms\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_arithmetic() {
        // 12 Mbit/s for 1 s, then nothing for 1 s and one opportunity at the end.
        let mut opportunities: Vec<Span> = (1..=1000).map(Span::ms).collect();
        opportunities.push(Span::s(2));
        let figures = TraceStatistics::of(&opportunities, Span::s(2));
        assert_eq!((figures.opportunities, figures.period_s, figures.longest_gap_ms), (1001, 2.0, 1000.0));
        assert!((figures.mean_mbit - 6.006).abs() < 1e-9, "{}", figures.mean_mbit);
        assert_eq!((figures.p5_mbit, figures.p95_mbit), (0.0, 12.0));
        assert!(
            (figures.p50_mbit - 12.0).abs() < 1e-9 || (figures.p50_mbit - 0.12).abs() < 1e-9,
            "{}",
            figures.p50_mbit
        );
    }

    #[test]
    fn a_year_of_silence_takes_no_memory() {
        let year = Span::ms(31_536_000_000);
        // A window for each 100 ms would take 2.5 GB.
        let figures = TraceStatistics::of(&[Span::ms(1), year], year);
        assert_eq!((figures.opportunities, figures.longest_gap_ms), (2, 31_535_999_999.0));
        assert_eq!((figures.p5_mbit, figures.p50_mbit, figures.p95_mbit), (0.0, 0.0, 0.0));
        // As before, with one of three windows empty: 100 opportunities, none, 50.
        let spans = |from: u64, count: u64| (1..=count).map(move |n| Span::ms(from + n));
        let opportunities: Vec<Span> = spans(0, 100).chain(spans(200, 49)).chain([Span::ms(300)]).collect();
        let figures = TraceStatistics::of(&opportunities, Span::ms(300));
        assert_eq!((figures.p5_mbit, figures.p50_mbit, figures.p95_mbit), (0.0, 6.0, 12.0));
    }

    #[test]
    fn only_a_trace_is_replaced() {
        assert!(is_trace(b"1\n2\n3"));
        assert!(!is_trace(b"time,rate\n1,2") && !is_trace(b"\n1"));
    }
}
