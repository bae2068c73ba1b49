//! `narrows diff`: two results next to each other.
use crate::failure::Failure;
use crate::term;
use std::path::PathBuf;

/// Compare two results, figure by figure
#[derive(clap::Args)]
pub(crate) struct Diff {
    /// A result: the folder of a run or of a comparison
    #[arg(value_name = "RESULT")]
    before: PathBuf,
    /// The other one
    #[arg(value_name = "RESULT")]
    after: PathBuf,
}

/// Runs the command.
pub(crate) fn main(args: &Diff) -> Result<(), Failure> {
    let text = narrows_report::diff(&args.before, &args.after, &term::style()).map_err(Failure::usage)?;
    term::print(&text)
}
