//! `narrows diff`: compares two results.
use crate::failure::Failure;
use crate::term;
use narrows_report::Diff;
use narrows_report::diff::Change;
use std::path::PathBuf;

/// Compare two results, figure by figure
#[derive(clap::Args)]
#[command(after_help = "\
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

/// The changes beyond the limits, one line each.
fn exceeded(diff: &Diff, limits: &[Limit]) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for limit in limits {
        let changes =
            || diff.sections.iter().flat_map(|section| section.figures.iter().map(move |change| (section, change)));
        if !changes().any(|(_, change)| limit.is_about(change)) {
            let mut known: Vec<&str> = Vec::new();
            for (_, change) in changes() {
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
        for (section, change) in changes().filter(|(_, change)| limit.is_about(change) && limit.is_exceeded(change)) {
            let by = change.percent().map_or("from nothing".to_owned(), |percent| format!("{percent:+.1} %"));
            let (name, figure, limit) = (&section.name, short(&change.figure), limit.percent);
            lines.push(format!("{name}: {figure} changed by {by}; allowed: {limit:+} %"));
        }
    }
    Ok(lines)
}

/// Runs the command.
pub(crate) fn main(args: &Args) -> Result<(), Failure> {
    let diff: Diff = narrows_report::diff(&args.before, &args.after).map_err(Failure::usage)?;
    let mismatch = diff.mismatch();
    if !mismatch.is_empty() && !args.anyway {
        return Err(Failure::Incomparable(format!(
            "not made under the same conditions:\n{mismatch}--anyway compares them all the same"
        )));
    }
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    let exceeded = exceeded(&diff, &args.fail_on)?;
    term::print(&diff.text([&names[0], &names[1]], &term::style()))?;
    if exceeded.is_empty() { Ok(()) } else { Err(Failure::NotMet(exceeded.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_report::{Estimate, Verdict};

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
        let chance = Change { verdict: Some(Verdict { p: 0.4, paired: true }), ..change(10.0, 20.0) };
        assert!(!Limit::parse("sojourn p99 +10%").expect("it is legal").is_exceeded(&chance));
    }
}
