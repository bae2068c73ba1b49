//! `narrows diff`: compares two results.
use crate::failure::Failure;
use crate::junit::{self, Case};
use crate::term;
use narrows_report::Diff;
use narrows_report::diff::{Change, Section};
use std::path::PathBuf;

mod json;

/// Compare two results, figure by figure
#[derive(clap::Args)]
#[command(after_help = "  narrows diff simulated measured

Queues, controllers, transports, seeds and worlds may differ: that is the comparison. If anything else differs (rate, RTT,
flows, duration, ...), `diff` says what and ends with exit code 3, unless --anyway is given.")]
pub(crate) struct Args {
    /// A result: the folder of a run or of a comparison
    #[arg(value_name = "RESULT")]
    before: PathBuf,
    /// The other one
    #[arg(value_name = "RESULT")]
    after: PathBuf,
    /// Compare them even if they were not made under the same conditions
    #[arg(long)]
    anyway: bool,
    /// End with exit code 3 if a figure of the table falls or rises by more than this in any row: 'goodput -2%', 'sojourn p99 +10%'. A
    /// difference that chance explains does not count, where the runs show what chance does
    #[arg(long, value_name = "FIGURE ±N%", value_parser = Limit::parse)]
    fail_on: Vec<Limit>,
    /// Write what --fail-on finds to this file in the form of JUnit, which CI systems show
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    junit: Option<PathBuf>,
    /// Replace the file of --junit; one that narrows did not write is never touched
    #[arg(long, requires = "junit")]
    force: bool,
    /// Print the comparison as JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
}

/// A change that is too much: `goodput -2%`.
#[derive(Clone, Debug)]
struct Limit {
    figure: String,
    /// Percent; below zero for a fall.
    percent: f64,
}

impl Limit {
    fn parse(text: &str) -> Result<Limit, String> {
        let allowed = "allowed: a figure of the table and a change, such as 'goodput -2%' or 'sojourn p99 +10%'";
        let parts = text.trim().rsplit_once(char::is_whitespace);
        let (figure, change) = parts.ok_or_else(|| allowed.to_owned())?;
        let percent = change.strip_suffix('%').filter(|number| number.starts_with(['+', '-']));
        let percent = percent.and_then(|number| number.parse::<f64>().ok()).filter(|percent| percent.is_finite());
        let percent = percent.ok_or_else(|| allowed.to_owned())?;
        Ok(Limit { figure: figure.trim().to_lowercase(), percent })
    }

    fn is_fall(&self) -> bool {
        self.percent.is_sign_negative()
    }

    fn is_about(&self, change: &Change) -> bool {
        short(&change.figure).to_lowercase() == self.figure
    }

    /// Whether a figure changes by more.
    fn is_exceeded(&self, change: &Change) -> bool {
        let beyond = |amount: f64| if self.is_fall() { amount < self.percent } else { amount > self.percent };
        // A change from nothing is more than any share of it.
        let rises = || change.difference().is_some_and(|difference| !self.is_fall() && difference > 0.0);
        change.is_significant() != Some(false) && change.percent().map_or_else(rises, beyond)
    }
}

/// `sojourn p99` for `sojourn p99 (ms)`.
fn short(figure: &str) -> &str {
    figure.split(" (").next().unwrap_or(figure)
}

/// A figure that `--fail-on` is about.
struct Watched<'a> {
    section: &'a Section,
    change: &'a Change,
    limit: &'a Limit,
}

impl Watched<'_> {
    /// What is wrong, if the figure changes by more than is allowed.
    fn complaint(&self) -> Option<String> {
        let by = || self.change.percent().map_or("from nothing".to_owned(), |percent| format!("{percent:+.1} %"));
        let told = || format!("changed by {}; allowed: {:+} %", by(), self.limit.percent);
        self.limit.is_exceeded(self.change).then(told)
    }

    fn case(&self) -> Case {
        let (name, figure) = (&self.section.name, short(&self.change.figure));
        Case { title: format!("{name}: {figure} {:+} %", self.limit.percent), failure: self.complaint() }
    }
}

/// The figures that the limits are about. A limit of a figure that is not there is an error.
fn watched<'a>(diff: &'a Diff, limits: &'a [Limit]) -> Result<Vec<Watched<'a>>, Failure> {
    let figures =
        || diff.sections.iter().flat_map(|section| section.figures.iter().map(move |change| (section, change)));
    let mut all = Vec::new();
    for limit in limits {
        let before = all.len();
        let about = figures().filter(|(_, change)| limit.is_about(change));
        all.extend(about.map(|(section, change)| Watched { section, change, limit }));
        if all.len() == before {
            let mut known: Vec<&str> = Vec::new();
            for (_, change) in figures() {
                if !known.contains(&short(&change.figure)) {
                    known.push(short(&change.figure));
                }
            }
            let hint = narrows_scenario::hint(&limit.figure, known.iter().copied());
            let known = known.join(", ");
            return Err(Failure::usage(format!(
                "--fail-on: no figure {:?} here; allowed: {known}{hint}",
                limit.figure
            )));
        }
    }
    Ok(all)
}

/// Runs the command.
pub(crate) fn main(args: &Args) -> Result<(), Failure> {
    let file = junit::check(args.junit.as_deref(), args.force)?;
    let diff: Diff = narrows_report::diff(&args.before, &args.after).map_err(Failure::usage)?;
    let mismatch = diff.mismatch();
    if !mismatch.is_empty() && !args.anyway {
        return Err(Failure::Incomparable(format!(
            "not made under the same conditions:\n{mismatch}--anyway compares them all the same"
        )));
    }
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    let watched = watched(&diff, &args.fail_on)?;
    if let Some(file) = &file {
        let cases: Vec<Case> = watched.iter().map(Watched::case).collect();
        junit::write(file, "diff", &format!("{} and {}", names[0], names[1]), &cases)?;
    }
    if args.json {
        term::print_json(&json::answer(&diff, [&names[0], &names[1]], &watched))?
    } else {
        term::print(&diff.text([&names[0], &names[1]], &term::style()))?
    }
    let name = |figure: &Watched| format!("{}: {}", figure.section.name, short(&figure.change.figure));
    let failed = watched.iter().filter_map(|figure| Some(format!("{} {}", name(figure), figure.complaint()?)));
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::NotMet(failed.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_report::{Estimate, Significance};

    #[test]
    fn a_limit_is_a_figure_and_a_change() {
        let change = |first: f64, second: f64| Change {
            figure: "sojourn p99 (ms)".to_owned(),
            decimals: 1,
            first: Estimate::of([first]),
            second: Estimate::of([second]),
            verdict: None,
        };
        let exceeded =
            |text: &str, first, second| Limit::parse(text).expect("it is legal").is_exceeded(&change(first, second));
        assert!(Limit::parse(" Sojourn p99  +10%").expect("it is legal").is_about(&change(1.0, 1.0)));
        assert!(exceeded("sojourn p99 +10%", 10.0, 11.5) && !exceeded("sojourn p99 +10%", 10.0, 10.5));
        assert!(!exceeded("sojourn p99 +10%", 10.0, 5.0), "a fall is no rise");
        assert!(exceeded("sojourn p99 -2%", 10.0, 9.7) && !exceeded("sojourn p99 -2%", 10.0, 9.9));
        assert!(exceeded("sojourn p99 +10%", 0.0, 0.1), "from nothing");
        for bad in ["goodput", "goodput 2%", "goodput -2", "goodput -x%", "-2%", ""] {
            assert!(Limit::parse(bad).is_err(), "{bad}");
        }
        let chance = Change { verdict: Some(Significance { p: 0.4, paired: true }), ..change(10.0, 20.0) };
        assert!(!Limit::parse("sojourn p99 +10%").expect("it is legal").is_exceeded(&chance));
    }
}
