//! Whether runs fit into memory: what they need, what there is, and what to do about it.
use crate::failure::Failure;
use crate::term;
use narrows_core::Bytes;
use narrows_core::params::ParamValue;
use narrows_scenario::Scenario;
use narrows_sim::Memory;

/// From here on it is worth a line.
const LARGE: u64 = 1 << 30;

/// Reads `--memory`.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text).ok_or_else(|| format!("allowed: {}, such as 16GB", Bytes::allowed()))
}

/// What runs may take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// What the user allows; what the machine has when `None`.
    pub(crate) given: Option<Bytes>,
    /// Are the results of all of them shown together?
    pub(crate) together: bool,
}

/// How many of the runs may go on at the same time, at most `at_once`. An error if there is no room for one of them, or for
/// the results of all together.
pub(crate) fn at_once(
    scenarios: &[&Scenario],
    at_once: usize,
    Room { given, together }: Room,
    quiet: bool,
) -> Result<usize, Failure> {
    let needs: Vec<Memory> = scenarios.iter().map(|scenario| Memory::of(scenario)).collect();
    // A run that goes on takes all of its memory; one that is finished takes its result, if that is shown with the others.
    let kept = |memory: &Memory| if together { memory.results } else { 0 };
    let results = needs.iter().fold(0, |sum: u64, memory| sum.saturating_add(kept(memory)));
    let mut largest: Vec<u64> = needs.iter().map(|memory| memory.total() - kept(memory)).collect();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    let at_a_time = |runs: usize| largest.iter().take(runs).fold(results, |sum: u64, &bytes| sum.saturating_add(bytes));
    let room = given.map(|bytes| bytes.0).or_else(available);
    let fits = |bytes: u64| room.is_none_or(|room| bytes <= room);
    let Some(runs) = (1..=at_once).rev().find(|&runs| fits(at_a_time(runs))) else {
        let need = at_a_time(1);
        let worst = needs.iter().max_by_key(|memory| memory.total()).copied().unwrap_or_default();
        return Err(Failure::usage(refusal(need, room.unwrap_or(0), &worst, scenarios.len(), given.is_some())));
    };
    let need = at_a_time(runs);
    if need >= LARGE && !quiet {
        let fewer =
            if runs < at_once { format!(", with {runs} runs at a time instead of {at_once}") } else { String::new() };
        term::note(&format!("narrows: needs up to {} of memory{fewer}", shown(need)));
    }
    Ok(runs)
}

fn refusal(need: u64, room: u64, worst: &Memory, runs: usize, given: bool) -> String {
    let Memory { flows, hops, packets, series, .. } = *worst;
    let mut parts = [
        (series, "series", "a longer interval or fewer flows in [record]"),
        (flows, "flows", "a smaller count"),
        (packets, "packets in queues and on links", "smaller limits of queues"),
        (hops, "hops", "fewer hops"),
    ];
    parts.sort_by_key(|part| std::cmp::Reverse(part.0));
    let listed: Vec<String> =
        parts.iter().filter(|part| part.0 > 0).map(|part| format!("{} {}", part.1, shown(part.0))).collect();
    let (what, less) = match worst.total() > room {
        true => ("a run needs", parts[0].2),
        false => ("the results of all runs need", "fewer runs or a longer [record] interval"),
    };
    let where_ = if given { "--memory allows" } else { "this machine or its control group has" };
    format!(
        "{what} about {} of memory, {where_} {} ({runs} runs; the largest: {}); allowed: {less}, or --memory SIZE if you know better",
        shown(need),
        shown(room),
        listed.join(", ")
    )
}

fn shown(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Memory that can be had without swapping; `None` where that is not known.
#[cfg(target_os = "linux")]
fn available() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| linux::field(&text, "MemAvailable:")).map(|kib| kib << 10);
    let groups = read("/proc/self/cgroup").map(|text| linux::groups(&text)).unwrap_or_default();
    let group = groups.iter().filter_map(|group| group.room(read)).min();
    [machine, group].into_iter().flatten().min()
}

#[cfg(not(target_os = "linux"))]
fn available() -> Option<u64> {
    None
}

#[cfg(any(target_os = "linux", test))]
mod linux {
    /// A control group that holds us, and the files that say how much memory it may have.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(super) struct Group {
        folder: String,
        limit: &'static str,
        usage: &'static str,
        cache: &'static str,
    }

    /// A number behind a word at the start of a line.
    pub(super) fn field(text: &str, name: &str) -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
    }

    /// The groups that `/proc/self/cgroup` names, each with those above it, of version 2 and of version 1. In a container the
    /// own group is at the mount's root, whatever it is called outside.
    pub(super) fn groups(text: &str) -> Vec<Group> {
        let mut found = Vec::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
            let (root, limit, usage, cache) = match controllers {
                "" => ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "),
                names if names.split(',').any(|name| name == "memory") => {
                    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
                }
                _ => continue,
            };
            let mut path = path.trim_end_matches('/');
            loop {
                found.push(Group { folder: format!("{root}{path}"), limit, usage, cache });
                let Some((above, _)) = path.rsplit_once('/') else { break };
                path = above;
            }
        }
        found
    }

    impl Group {
        /// What is left of the limit, if there is one. Files in the cache give way.
        pub(super) fn room(&self, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
            let file = |name: &str| read(&format!("{}/{name}", self.folder));
            let number = |name: &str| file(name)?.trim().parse::<u64>().ok();
            let limit = number(self.limit)?;
            let cache = file("memory.stat").and_then(|text| field(&text, self.cache)).unwrap_or(0);
            Some(limit.saturating_sub(number(self.usage)?.saturating_sub(cache)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::linux::{field, groups};
    use super::*;
    use narrows_scenario::NoTraces;
    use std::collections::HashMap;

    fn scenario(count: u32, record: &str) -> Scenario {
        let text = format!(
            "duration = \"60s\"\n[record]\n{record}\n[[hop]]\nname = \"link\"\nrate = \"1gbit\"\nqueue = \"fifo\"\n\
             [[flow]]\nname = \"bulk\"\ncount = {count}\nrtt = \"50ms\"\nroute = [\"link\"]\n"
        );
        Scenario::parse(&text, "memory.toml", &NoTraces).expect("it is legal")
    }

    fn refused(scenarios: &[&Scenario], room: Bytes) -> String {
        match at_once(scenarios, 8, Room { given: Some(room), together: true }, true) {
            Err(Failure::Usage(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ten_million_flows_are_refused_where_they_do_not_fit() {
        let message = refused(&[&scenario(10_000_000, "")], Bytes(14_000_000_000));
        assert!(message.contains("a run needs about") && message.contains("--memory allows 14.0 GB"), "{message}");
        assert!(message.contains("the largest: flows") && message.contains("allowed: a smaller count"), "{message}");
    }

    #[test]
    fn dense_series_are_refused_where_they_do_not_fit() {
        let dense = scenario(1000, "flows = 1000\ninterval = \"10us\"");
        let message = refused(&[&dense], Bytes(64_000_000_000));
        assert!(message.contains("the largest: series") && message.contains("a longer interval"), "{message}");
    }

    #[test]
    fn fewer_runs_go_on_at_a_time_where_all_do_not_fit() {
        let run = scenario(100_000, "");
        let need = Memory::of(&run).total();
        let runs = [&run; 4];
        let room = |times: u64| Room { given: Some(Bytes(need * times + need / 2)), together: false };
        let allowed = |times: u64| at_once(&runs, 4, room(times), true).ok();
        assert_eq!([allowed(4), allowed(3), allowed(2), allowed(0)], [Some(4), Some(3), Some(2), None]);
    }

    #[test]
    fn results_of_all_runs_must_fit_together() {
        let run = scenario(1, "interval = \"100us\"");
        let room = Bytes(Memory::of(&run).total() * 3);
        assert!(refused(&[&run; 100], room).contains("the results of all runs need"));
    }

    #[test]
    fn the_narrowest_group_counts_and_its_cache_does_not() {
        let found = groups("0::/user.slice/session.scope\n");
        let files: HashMap<String, String> = [
            ("/sys/fs/cgroup/user.slice/memory.max", "1000000\n"),
            ("/sys/fs/cgroup/user.slice/memory.current", "700000\n"),
            ("/sys/fs/cgroup/user.slice/memory.stat", "anon 5\ninactive_file 200000\nfile 9\n"),
            ("/sys/fs/cgroup/user.slice/session.scope/memory.max", "max\n"),
            ("/sys/fs/cgroup/user.slice/session.scope/memory.current", "5\n"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into();
        let rooms =
            |groups: &[linux::Group]| groups.iter().filter_map(|g| g.room(|path| files.get(path).cloned())).min();
        assert_eq!(rooms(&found), Some(500_000));
        let old = groups("5:cpu,memory:/docker/abc\n3:pids:/x\n");
        let files: HashMap<&str, &str> = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "96\n"),
        ]
        .into();
        let room = old.iter().filter_map(|g| g.room(|path| files.get(path).map(|text| (*text).to_owned()))).min();
        assert_eq!(room, Some(4000), "the group of a container is at the root");
        assert_eq!(field("MemTotal: 5 kB\nMemAvailable:    123 kB\n", "MemAvailable:"), Some(123));
    }
}
