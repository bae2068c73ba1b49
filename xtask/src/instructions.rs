//! Counts the simulator's instructions per packet, and compares them with `bench/instructions/budget.txt`.
//!
//! Each scenario of that folder runs twice under callgrind. The difference of a long and a short run is the cost of the packets between
//! them: starting, reading and writing results cancel out. Other load does not disturb the counts, so one percent is seen.
use crate::{root, run};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Scenarios, and how many seconds the two runs simulate. The short one is over its start.
const SCENARIOS: [(&str, u64, u64); 4] = [("one-fifo", 5, 15), MANY[0], MANY[1], ("one-cocoa", 5, 15)];
/// Those with enough flows for several threads.
const MANY: [(&str, u64, u64); 2] = [("many-rtts", 1, 2), ("many-fq_codel", 1, 2)];
/// Beyond this a budget is exceeded, or out of date.
const TOLERANCE_PERCENT: u64 = 1;

/// What is done with the counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Fails if they differ from the budget.
    Check,
    /// Writes them as the new budget.
    Record,
}

/// A run under callgrind.
struct Counted {
    packets: u64,
    instructions: u64,
}

/// Builds what is counted as it is handed out, and counts.
pub(crate) fn count(mode: Mode) -> Result<String, String> {
    let (program, kept) = build()?;
    let folder = root().join("bench/instructions");
    let mut counts = Vec::new();
    for (name, short, long) in SCENARIOS {
        let file = folder.join(name).with_extension("toml");
        let [short, long] = [(short, "short"), (long, "long")]
            .map(|(seconds, which)| callgrind(&program, &file, 1, seconds, &kept.join(format!("{name}-{which}.out"))));
        let (short, long) = (short?, long?);
        let per_packet = (long.instructions - short.instructions) as f64 / (long.packets - short.packets) as f64;
        counts.push((name, per_packet.round() as u64));
    }
    judge(mode, &counts, &kept)
}

/// Counts what each thread of runs on several threads does, for a person to judge. The first one has the network. Waiting for each other
/// takes some instructions, too, so that these counts are not exact.
pub(crate) fn count_threads(threads: &str) -> Result<String, String> {
    let threads: usize = threads.parse().ok().filter(|&n| n > 1).ok_or("the number of threads is from 2 up")?;
    let (program, kept) = build()?;
    let mut text = format!("{:15}  instructions per packet of each thread, the network's first\n", "scenario");
    for (name, short, long) in MANY {
        let file = root().join("bench/instructions").join(name).with_extension("toml");
        let out = |which| kept.join(format!("{name}-{which}-on-{threads}.out"));
        let (short_out, long_out) = (out("short"), out("long"));
        let few = callgrind(&program, &file, threads, short, &short_out)?.packets;
        let many = callgrind(&program, &file, threads, long, &long_out)?.packets;
        let _ = write!(text, "{name:15}");
        for thread in 1..=threads {
            let instructions = total(&long_out, thread)? - total(&short_out, thread)?;
            let _ = write!(text, "{:>6}", instructions / (many - few));
        }
        text.push('\n');
    }
    Ok(text)
}

/// The instructions of a thread in the file that callgrind wrote for it.
fn total(out: &Path, thread: usize) -> Result<u64, String> {
    let path = format!("{}-{thread:02}", out.display());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    total.ok_or_else(|| format!("{path}: no totals"))
}

/// Builds the program, and makes the folder for what callgrind writes.
fn build() -> Result<(PathBuf, PathBuf), String> {
    let target = root().join("target");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--profile", "lto", "-p", "narrows-sim", "--example", "packets", "--target-dir"]);
    run(build.arg(&target).current_dir(root()))?;
    let program = target.join("lto/examples/packets");
    let kept = target.join("instructions");
    std::fs::create_dir_all(&kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    Ok((program, kept))
}

/// Compares the counts with the budget, or writes them.
fn judge(mode: Mode, counts: &[(&str, u64)], kept: &Path) -> Result<String, String> {
    let (path, compiler) = (root().join("bench/instructions/budget.txt"), compiler()?);
    let budget = std::fs::read_to_string(&path).unwrap_or_default();
    let (table, fits) = table(counts, &budget);
    if mode == Mode::Record {
        let text = written(counts, &compiler);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(format!("{table}recorded in {}", path.display()));
    }
    if value(&budget, "compiler") != Some(&compiler) {
        return Ok(format!("{table}not judged: the budget is another compiler's, and this is {compiler}"));
    }
    if fits {
        return Ok(format!("{table}callgrind_annotate {}/NAME-long.out shows where they go", kept.display()));
    }
    Err(format!(
        "{table}more than {TOLERANCE_PERCENT} % off: find out why, or record the new budget (`cargo xtask instructions --record`) in the \
         commit that changes it"
    ))
}

fn callgrind(program: &Path, scenario: &Path, threads: usize, seconds: u64, out: &Path) -> Result<Counted, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", &format!("--callgrind-out-file={}", out.display())]);
    if threads > 1 {
        command.arg("--separate-threads=yes");
    }
    command.arg(program).arg(threads.to_string()).arg(scenario).arg(format!("duration={seconds}s"));
    let output = command.output();
    let output =
        output.map_err(|error| format!("valgrind does not start: {error}; `apt install valgrind` brings it"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    let packets = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
    let collected = report.lines().find_map(|line| line.split_once("Collected : "));
    let instructions = collected.and_then(|(_, count)| count.trim().parse().ok());
    match (packets, instructions) {
        (Some(packets), Some(instructions)) => Ok(Counted { packets, instructions }),
        _ => Err(format!("{} ended with {}: {report}", scenario.display(), output.status)),
    }
}

/// The counts beside the budget, and whether they are within the tolerance.
fn table(counts: &[(&str, u64)], budget: &str) -> (String, bool) {
    let (mut text, mut fits) = (format!("{:15}{:>12}{:>8}\n", "scenario", "per packet", "budget"), true);
    for (name, count) in counts {
        let budget = value(budget, name).and_then(|budget| budget.parse::<u64>().ok());
        fits &= budget.is_some_and(|budget| count.abs_diff(budget) * 100 <= budget * TOLERANCE_PERCENT);
        let shown = budget.map_or_else(|| "none".to_owned(), |budget| budget.to_string());
        let change = budget
            .map_or_else(String::new, |budget| format!("{:+.1} %", *count as f64 / budget as f64 * 100.0 - 100.0));
        let _ = writeln!(text, "{name:15}{count:>12}{shown:>8}  {change}");
    }
    (text, fits)
}

/// The budget file's text.
fn written(counts: &[(&str, u64)], compiler: &str) -> String {
    let mut text =
        format!("# Instructions per packet, written by `cargo xtask instructions --record`.\ncompiler = {compiler}\n");
    for (name, count) in counts {
        let _ = writeln!(text, "{name} = {count}");
    }
    text
}

/// The value of a line `key = value`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.split_once(" = ").filter(|(found, _)| *found == key)).map(|(_, value)| value)
}

/// The compiler and the processor's architecture: others make other instructions.
fn compiler() -> Result<String, String> {
    let output = Command::new("rustc").arg("--version").current_dir(root()).output();
    let output = output.map_err(|error| format!("rustc does not start: {error}"))?;
    Ok(format!("{} on {}", String::from_utf8_lossy(&output.stdout).trim(), std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_kept_within_a_percent_both_ways() {
        let budget = written(&[("one", 1000), ("many", 2000)], "rustc 1 on x86_64");
        assert_eq!(value(&budget, "compiler"), Some("rustc 1 on x86_64"));
        for (one, many, expected) in [(1000, 2000, true), (1010, 1980, true), (1011, 2000, false), (1000, 1979, false)]
        {
            assert_eq!(table(&[("one", one), ("many", many)], &budget).1, expected, "{one} {many}");
        }
        assert!(!table(&[("new", 1)], &budget).1, "it has no budget");
    }
}
