//! Checks whether runs fit into memory: the need of each, the memory available, and the number of runs at a time.
use narrows_core::Bytes;
use narrows_world::Memory;

/// The memory that runs may take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    /// The limit that the user gave; `None` uses the machine's available memory.
    pub given: Option<Bytes>,
    /// Whether the results of all runs stay in memory, to be shown together.
    pub together: bool,
}

/// The number of runs at a time, and their memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fit {
    /// Runs at a time.
    pub runs: usize,
    /// Runs at a time without a memory limit: one per thread.
    pub wanted: usize,
    /// Memory that these runs take with the results that are kept, bytes.
    pub need: u64,
}

/// The error for runs that do not fit into memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooLarge {
    /// Bytes that the runs need one after the other.
    pub need: u64,
    /// Bytes available.
    pub room: u64,
    /// Whether the user gave this limit.
    pub given: bool,
    /// Number of runs.
    pub runs: usize,
    /// The need of the largest run.
    pub worst: Memory,
}

impl TooLarge {
    /// What needs how much, and what would help; `flag` is the name of the setting that limits memory.
    pub fn explain(&self, flag: &str) -> String {
        let TooLarge { need, room, given, runs, worst } = *self;
        let Memory { flows, hops, packets, series, .. } = worst;
        let mut parts = [
            (series, "series", "a longer interval or fewer flows in [record]"),
            (flows, "flows", "a smaller count"),
            (packets, "packets in queues and on links", "smaller limits of queues"),
            (hops, "hops", "fewer hops"),
        ];
        parts.sort_by_key(|part| std::cmp::Reverse(part.0));
        let listed: Vec<String> =
            parts.iter().filter(|part| part.0 > 0).map(|part| format!("{} {}", part.1, shown(part.0))).collect();
        let (what, less) = if worst.total() > room {
            ("a run needs", parts[0].2)
        } else {
            ("the results of all runs need", "fewer runs or a longer [record] interval")
        };
        let where_ = if given { format!("{flag} allows") } else { "this machine or its control group has".to_owned() };
        format!(
            "{what} about {} of memory, {where_} {} ({runs} runs; the largest: {}); allowed: {less}, or {flag} SIZE if you know better",
            shown(need),
            shown(room),
            listed.join(", ")
        )
    }
}

/// Bytes for people.
pub fn shown(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// The number of runs that may go on at the same time, at most `wanted`; an error if one of them does not fit beside the results
/// that stay.
pub(crate) fn fit(needs: &[Memory], wanted: usize, Room { given, together }: Room) -> Result<Fit, TooLarge> {
    // A run in progress takes all of its memory; a finished one takes its result, if that stays.
    let kept = |memory: &Memory| if together { memory.results } else { 0 };
    let results = needs.iter().fold(0, |sum: u64, memory| sum.saturating_add(kept(memory)));
    let mut largest: Vec<u64> = needs.iter().map(|memory| memory.total() - kept(memory)).collect();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    let at_a_time = |runs: usize| largest.iter().take(runs).fold(results, |sum: u64, &bytes| sum.saturating_add(bytes));
    let room = given.map(|bytes| bytes.0).or_else(available);
    let fits = |bytes: u64| room.is_none_or(|room| bytes <= room);
    if let Some(runs) = (1..=wanted).rev().find(|&runs| fits(at_a_time(runs))) {
        return Ok(Fit { runs, wanted, need: at_a_time(runs) });
    }
    let worst = needs.iter().max_by_key(|memory| memory.total()).copied().unwrap_or_default();
    let (given, runs) = (given.is_some(), needs.len());
    Err(TooLarge { need: at_a_time(1), room: room.unwrap_or(0), given, runs, worst })
}

/// Memory available without swapping, bytes; `None` if unknown.
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
    /// A control group that contains this process, and the files with its memory limit and use.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(super) struct Group {
        folder: String,
        limit: &'static str,
        usage: &'static str,
        cache: &'static str,
    }

    /// The number after a word at the start of a line.
    pub(super) fn field(text: &str, name: &str) -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
    }

    /// The groups in `/proc/self/cgroup`, each with its ancestors, of versions 1 and 2. In a container the process's own group is at
    /// the mount's root, whatever its name is outside.
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
        /// Bytes left of the limit, if there is one. Cached files count as free.
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
    use std::collections::HashMap;

    #[test]
    fn fewer_runs_go_on_at_a_time_where_all_do_not_fit() {
        let runs = [Memory { flows: 100, results: 30, ..Memory::default() }; 4];
        let allowed = |bytes: u64, together| {
            let room = Room { given: Some(Bytes(bytes)), together };
            fit(&runs, 4, room).map(|fit| (fit.runs, fit.need)).ok()
        };
        assert_eq!(
            [400, 399, 250, 100, 99].map(|bytes| allowed(bytes, false)),
            [Some((4, 400)), Some((3, 300)), Some((2, 200)), Some((1, 100)), None]
        );
        // The finished runs' results take memory in addition to the runs in progress.
        assert_eq!(
            [400, 399, 190, 189].map(|bytes| allowed(bytes, true)),
            [Some((4, 400)), Some((3, 330)), Some((1, 190)), None]
        );
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
