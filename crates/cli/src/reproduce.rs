//! `narrows reproduce`: published or measured figures beside those of Narrows for the same experiment.
use crate::failure::Failure;
use clap::Subcommand as _;
use narrows_scenario::hint;

mod drawn;
mod kernel;
mod left_out;
mod paper;

/// Rerun published or measured experiments, and compare the figures
#[derive(clap::Args)]
#[command(after_help = "\
Without a name, lists the experiments.

  narrows reproduce cocoa --figure 9
  narrows reproduce linux")]
#[command(subcommand_value_name = "kernel|PAPER", disable_help_subcommand = true)]
pub(crate) struct Reproduce {
    #[command(subcommand)]
    what: Option<What>,
}

/// The experiments.
#[derive(clap::Subcommand)]
enum What {
    /// Cells measured on a Linux kernel, fitted and never fitted, and start-up traces: the simulator beside the recorded figures
    Linux(paper::Paper),
    Kernel(kernel::Kernel),
    /// This kernel's TCP in real time beside the simulator, over the same links and queues
    Live(paper::Paper),
    /// Cocoa: buffers that fit each flow's congestion control (2019)
    Cocoa(paper::Paper),
    /// Congestion policing: a queue that makes arrivals pay for congestion (2018)
    CpAqm(paper::Paper),
    /// The parts of FQ-CoDel and thin streams, and whether it starves a bulk flow (2015)
    ThinStreams(paper::Paper),
    /// Tonopah: a congestion control that tests for fair queuing continuously (2022)
    Tonopah(paper::Paper),
    /// Detecting fair queuing when a flow starts, to choose the control that fits (2020)
    Startup(paper::Paper),
    /// LFQ: buffers per flow that are learned (after a paper of 2020), beside cocoa
    Lfq(paper::Paper),
    /// Links with mechanisms: what they carry and what they do to the delay
    Links(paper::Paper),
    /// Shapers that follow such a link, beside queues that are the link's own
    Autorate(paper::Paper),
    /// Every controller over every discipline: goodput, delay, fairness
    BothSides(paper::Paper),
    /// Every discipline in one table: utilisation, delay, fairness, change, overload
    League(paper::Paper),
    /// More cells measured on a Linux kernel: ECN, mixed RTTs, 100 flows, changing rates, congested acknowledgments, BBR beside CUBIC,
    /// DCTCP, our queues
    LinuxLab(drawn::LinuxLab),
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

/// The failure for a name that no experiment has.
fn unknown(name: &str) -> Failure {
    let command = What::augment_subcommands(clap::Command::new(""));
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let hint = hint(name, names.iter().copied());
    Failure::usage(format!("reproduce {name}: there is no such experiment; allowed: {}{hint}", names.join(", ")))
}

/// Runs the command.
pub(crate) fn main(args: &Reproduce) -> Result<(), Failure> {
    match &args.what {
        None => paper::list(),
        Some(What::Linux(args)) => paper::main("linux", args),
        Some(What::Kernel(args)) => kernel::main(args),
        Some(What::Live(args)) => paper::main("live", args),
        Some(What::Cocoa(args)) => paper::main("cocoa", args),
        Some(What::CpAqm(args)) => paper::main("cp-aqm", args),
        Some(What::ThinStreams(args)) => paper::main("thin-streams", args),
        Some(What::Tonopah(args)) => paper::main("tonopah", args),
        Some(What::Startup(args)) => paper::main("startup", args),
        Some(What::Lfq(args)) => paper::main("lfq", args),
        Some(What::Links(args)) => paper::main("links", args),
        Some(What::Autorate(args)) => paper::main("autorate", args),
        Some(What::BothSides(args)) => paper::main("both-sides", args),
        Some(What::League(args)) => paper::main("league", args),
        Some(What::LinuxLab(args)) => drawn::main(args),
        Some(What::Unknown(words)) => Err(unknown(words.first().map_or("", String::as_str))),
    }
}
