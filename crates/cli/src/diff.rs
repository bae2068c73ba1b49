//! `narrows diff`: compares two results.
use crate::failure::Failure;
use crate::term;
use std::path::PathBuf;

/// Compare two results, figure by figure
#[derive(clap::Args)]
#[command(after_help = "\
Queues, controllers, transports, seeds and worlds may differ: that is the comparison. If anything else differs (rate, RTT,
flows, duration, ...), `diff` says what and ends with exit code 3, unless --anyway is given.")]
pub(crate) struct Diff {
    /// A result: the folder of a run or of a comparison
    #[arg(value_name = "RESULT")]
    before: PathBuf,
    /// The other one
    #[arg(value_name = "RESULT")]
    after: PathBuf,
    /// Compare them even if they were not made under the same conditions
    #[arg(long)]
    anyway: bool,
}

/// Runs the command.
pub(crate) fn main(args: &Diff) -> Result<(), Failure> {
    let diff = narrows_report::diff(&args.before, &args.after).map_err(Failure::usage)?;
    let mismatch = diff.mismatch();
    if !mismatch.is_empty() && !args.anyway {
        return Err(Failure::Incomparable(format!(
            "not made under the same conditions:\n{mismatch}--anyway compares them all the same"
        )));
    }
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    term::print(&diff.text([&names[0], &names[1]], &term::style()))
}
