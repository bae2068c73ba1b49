//! `narrows qdisc`: our queues as BPF programs on an interface of this machine.
//!
//! The arguments are the same in every build. What they ask for needs the feature `bpf` and Linux.
use crate::failure::Failure;

#[cfg(all(any(feature = "bpf", feature = "host"), target_os = "linux"))]
mod autorate;
#[cfg(all(any(feature = "bpf", feature = "host"), target_os = "linux"))]
mod follower;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod interface;
mod stock;

/// Attach one of our queues to a network interface, as a BPF program
#[derive(clap::Args)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Linux 6.16 or later with CONFIG_NET_SCH_BPF, as root. What is attached stays until it is detached or the machine restarts.

  narrows qdisc attach eth0 cocoa --rate 50mbit
  narrows qdisc attach eth0 cocoa --autorate --min 5mbit --max 100mbit
  narrows qdisc show eth0 --watch
  narrows qdisc detach eth0")]
pub(crate) struct Qdisc {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Attach(Attach),
    Detach(Detach),
    Show(Show),
    Status(Status),
}

/// Attach a queue to an interface
#[derive(clap::Args)]
struct Attach {
    /// Interface whose packets wait in the queue
    interface: String,
    /// cocoa, cp or lfq, with parameters: cocoa:limit=5000p,multiplier=1.5. For a queue of Linux the answer is the `tc` line
    queue: String,
    /// Shape to this rate: somewhat less than the link's, so that packets wait here
    #[arg(long, allow_hyphen_values = true)]
    rate: Option<String>,
    /// Bytes that the shaper adds to each packet's length, for headers that the link adds
    #[arg(long, value_name = "BYTES", default_value = "0", allow_hyphen_values = true)]
    overhead: i32,
    /// Queue what the interface receives instead of what it sends, at an ifb device that is made for it
    #[arg(long)]
    ifb: bool,
    /// A parameter of the queue: limit=5000p (may be repeated)
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Replace a queueing discipline that somebody has put on the interface, until `detach`
    #[arg(long)]
    replace: bool,
    /// Do not return: detach when packets wait and none leaves for this long, or on Ctrl-C [default with no value: 10s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "10s", require_equals = true)]
    watchdog: Option<String>,
    /// Do not return: change the shaper's rate as the link does, and detach on Ctrl-C; drain or cake_autorate, with parameters; also for queues of Linux
    /// that serve flows in turn. --rate is the rate at the start [default with no value: drain]
    #[arg(long, value_name = "CONTROLLER", num_args = 0..=1, default_missing_value = "drain")]
    autorate: Option<String>,
    /// Lowest rate of --autorate, and the one at its start without --rate
    #[arg(long, value_name = "RATE", requires = "autorate", allow_hyphen_values = true)]
    min: Option<String>,
    /// Highest rate of --autorate
    #[arg(long, value_name = "RATE", requires = "autorate", allow_hyphen_values = true)]
    max: Option<String>,
    /// Address behind the link whose ICMP answers show the link's delay [default: the gateway of the interface's default route]
    #[arg(long, value_name = "ADDRESS", requires = "autorate")]
    reflector: Option<String>,
}

/// Detach, and leave the interface as it was found
#[derive(clap::Args)]
struct Detach {
    /// The interface
    interface: String,
    /// Only what was attached with --ifb [default: both directions]
    #[arg(long)]
    ifb: bool,
}

/// Show what is attached: packets, drops, and each flow's limit
#[derive(clap::Args)]
struct Show {
    /// The interface [default: all]
    interface: Option<String>,
    /// Every second, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Every flow instead of the 20 with the largest backlog
    #[arg(long)]
    all: bool,
    /// Print JSON: an array; with --watch one array per line
    #[arg(short = 'J', long)]
    json: bool,
}

/// Show what this machine can do, and what is attached
#[derive(clap::Args)]
struct Status {
    /// Print JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Runs the command.
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub(crate) fn main(args: &Qdisc) -> Result<(), Failure> {
    match &args.command {
        Command::Attach(args) => match stock::queue(args) {
            Some(queue) => stock::attach(args, queue),
            None => interface::attach(args),
        },
        Command::Detach(args) => interface::detach(args),
        Command::Show(args) => interface::show(args),
        Command::Status(args) => interface::status(args),
    }
}

/// Says what is missing.
#[cfg(not(all(feature = "bpf", target_os = "linux")))]
pub(crate) fn main(args: &Qdisc) -> Result<(), Failure> {
    match &args.command {
        Command::Attach(args) => {
            if let Some(queue) = stock::queue(args) {
                return stock::attach(args, queue);
            }
        }
        Command::Detach(_) | Command::Show(_) | Command::Status(_) => {}
    }
    if cfg!(not(target_os = "linux")) {
        return Err(Failure::usage(
            "queues on interfaces are BPF programs of the Linux kernel; this is another system",
        ));
    }
    Err(Failure::usage(
        "this build has no BPF programs; build with --features bpf (needs clang 19, libelf-dev, zlib1g-dev)",
    ))
}
