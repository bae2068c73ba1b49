//! `narrows reproduce`: published or measured figures next to what Narrows gives for the same experiment. One file each.
use crate::failure::Failure;

mod linux;

/// Run a published or measured experiment and compare the figures.
#[derive(clap::Args)]
#[command(subcommand_value_name = "linux", disable_help_subcommand = true)]
pub(crate) struct Reproduce {
    #[command(subcommand)]
    what: What,
}

/// What can be reproduced.
#[derive(clap::Subcommand)]
enum What {
    Linux(linux::Linux),
}

/// Runs the command.
pub(crate) fn main(args: &Reproduce) -> Result<(), Failure> {
    match &args.what {
        What::Linux(args) => linux::main(args),
    }
}
