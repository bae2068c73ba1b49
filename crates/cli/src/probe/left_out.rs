//! `narrows probe` in a build that only simulates: its name, and one answer.
use crate::failure::Failure;
use std::ffi::OsString;

/// Measure the path to a host, and whether it queues fairly (not here)
#[derive(clap::Args)]
#[command(after_help = "  narrows probe HOST --token TOKEN        # in a build with the feature `host`")]
pub(crate) struct Probe {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

pub(crate) fn main(_: &Probe) -> Result<(), Failure> {
    Err(Failure::usage("this build only simulates; `cargo run --release --` builds `probe`, too (the feature `host`)"))
}
