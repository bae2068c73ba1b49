//! Checks that dependencies point one way: core ← scenario ← results ← world ← worlds {sim, live, kernel}, ← report, ←
//! programs.
//!
//! `ALLOWED` is the whole rule. It applies to every dependency that a manifest declares, including optional, platform-specific,
//! build- and dev-dependencies. A test that needs two worlds belongs to a crate above both. There are no exceptions. A crate
//! without a row is refused, so that each new one gets a place.
use crate::root;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::process::Command;

/// Each crate, and the crates of this workspace on which it may depend.
const ALLOWED: &[(&str, &[&str])] = &[
    ("narrows-core", &[]),
    // Where outputs may be written; also for what others use alone.
    ("narrows-files", &[]),
    ("narrows-scenario", &["narrows-core"]),
    // A run's result as a value, from any world.
    ("narrows-results", &["narrows-core", "narrows-files", "narrows-scenario"]),
    ("narrows-world", &["narrows-core", "narrows-scenario", "narrows-results"]),
    // The worlds do not depend on each other; they share the scenario, the records and the result.
    ("narrows-sim", &["narrows-core", "narrows-scenario", "narrows-results", "narrows-world"]),
    // Real QUIC connections, for programs of others as well.
    ("narrows-quic", &["narrows-core", "narrows-files"]),
    // Measures a path with such connections.
    ("narrows-probe", &["narrows-core", "narrows-files", "narrows-quic"]),
    // A real Linux host, for all worlds of real traffic.
    ("narrows-host", &["narrows-core", "narrows-scenario", "narrows-world", "narrows-quic"]),
    ("narrows-live", &["narrows-core", "narrows-scenario", "narrows-results", "narrows-world", "narrows-host"]),
    ("narrows-qdisc", &["narrows-core", "narrows-scenario", "narrows-results", "narrows-world", "narrows-host"]),
    ("narrows-kernel", &["narrows-core", "narrows-scenario", "narrows-results", "narrows-world", "narrows-host"]),
    // Packets as other tools read them.
    ("narrows-capture", &["narrows-core", "narrows-files", "narrows-scenario", "narrows-results"]),
    // Shows results of any world.
    ("narrows-report", &["narrows-core", "narrows-files", "narrows-scenario", "narrows-results"]),
    // Many runs of any world, through the trait `World`.
    ("narrows-runner", &["narrows-core", "narrows-files", "narrows-scenario", "narrows-results", "narrows-world"]),
    // Experiments as data, measured in results and shown as reports.
    ("narrows-study", &["narrows-core", "narrows-scenario", "narrows-results", "narrows-report"]),
    // Runs in a browser, so it uses no world but the simulator.
    ("narrows-playground", &["narrows-core", "narrows-scenario", "narrows-results", "narrows-world", "narrows-sim"]),
    // Other people's transports in the simulator; saves results as pages, captures and qlogs.
    (
        "narrows-testbed",
        &[
            "narrows-core",
            "narrows-files",
            "narrows-scenario",
            "narrows-results",
            "narrows-world",
            "narrows-sim",
            "narrows-capture",
            "narrows-report",
        ],
    ),
    // Its interface in C.
    ("narrows-testbed-c", &["narrows-testbed"]),
    ("narrows", EVERYTHING),
    ("narrows-bindings", EVERYTHING),
    // A shell around the bindings: a library that others use cannot be a module that Python loads.
    ("narrows-python", &["narrows-bindings"]),
    // Examples of a program and of such a module with a queue of a user's own.
    ("my-queue", &["narrows", "narrows-core"]),
    ("my-queue-python", &["narrows-bindings", "narrows-core"]),
    ("narrows-bench", EVERYTHING),
    // Must compile even if no other crate does.
    ("xtask", &[]),
];

/// For crates above all worlds. The program, the bindings and the benchmark do not depend on each other.
const EVERYTHING: &[&str] = &[
    "narrows-core",
    "narrows-files",
    "narrows-scenario",
    "narrows-results",
    "narrows-world",
    "narrows-sim",
    "narrows-host",
    "narrows-live",
    "narrows-qdisc",
    "narrows-kernel",
    "narrows-quic",
    "narrows-probe",
    "narrows-capture",
    "narrows-report",
    "narrows-runner",
    "narrows-study",
    "narrows-playground",
    "narrows-testbed",
];

/// A dependency of one crate of the workspace on another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Edge {
    from: String,
    to: String,
    /// `normal`, `dev` or `build`.
    kind: String,
}

/// A violation of the rule.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Complaint {
    /// The edge is not in the table.
    Forbidden(Edge),
    /// The crate has no row.
    Unplaced(String),
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Complaint::Forbidden(Edge { from, to, kind }) => {
                let allowed = row(from).unwrap_or_default();
                let allowed = if allowed.is_empty() { "none of them".into() } else { allowed.join(", ") };
                write!(f, "{from} → {to} ({kind}) points the wrong way; {from} may use: {allowed}")
            }
            Complaint::Unplaced(name) => write!(f, "{name} has no row in xtask/src/arrows.rs: say what it may use"),
        }
    }
}

/// Reads `cargo metadata` and compares it with the table.
pub(crate) fn check() -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo metadata cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    let metadata = serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let (crates, edges) = read(&metadata).ok_or("cargo metadata: not in the expected form")?;
    let complaints = judge(&crates, &edges);
    if complaints.is_empty() {
        return Ok(format!("arrows: {} crates, {} edges, all in the table", crates.len(), edges.len()));
    }
    Err(complaints.iter().map(|complaint| format!("arrows: {complaint}")).collect::<Vec<_>>().join("\n"))
}

/// The workspace's crates and the edges between them; `None` if the metadata have an unexpected form.
fn read(metadata: &Value) -> Option<(BTreeSet<String>, BTreeSet<Edge>)> {
    let packages = metadata.get("packages")?.as_array()?;
    let name = |value: &Value| Some(value.get("name")?.as_str()?.to_owned());
    let crates: BTreeSet<String> = packages.iter().map(name).collect::<Option<_>>()?;
    let mut edges = BTreeSet::new();
    for package in packages {
        for dependency in package.get("dependencies")?.as_array()? {
            // `name` is the package's own name, even if the manifest renames it.
            let (from, to) = (name(package)?, name(dependency)?);
            // A crate that depends on itself switches on features for its own tests.
            if from != to && crates.contains(&to) {
                let kind = dependency.get("kind").and_then(Value::as_str).unwrap_or("normal").to_owned();
                edges.insert(Edge { from, to, kind });
            }
        }
    }
    Some((crates, edges))
}

fn judge(crates: &BTreeSet<String>, edges: &BTreeSet<Edge>) -> Vec<Complaint> {
    let unplaced = crates.iter().filter(|name| row(name).is_none()).cloned().map(Complaint::Unplaced);
    let forbidden = |edge: &&Edge| row(&edge.from).is_some_and(|allowed| !allowed.contains(&edge.to.as_str()));
    unplaced.chain(edges.iter().filter(forbidden).cloned().map(Complaint::Forbidden)).collect()
}

fn row(name: &str) -> Option<&'static [&'static str]> {
    ALLOWED.iter().find(|(from, _)| *from == name).map(|(_, allowed)| *allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A crate's name and its dependencies with their kinds.
    type Package<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

    /// A workspace in the form of `cargo metadata`.
    fn workspace(crates: &[Package<'_>]) -> Value {
        let package = |(name, dependencies): &Package<'_>| {
            let dependencies = dependencies.iter().map(|(name, kind)| json!({ "name": name, "kind": kind }));
            json!({ "name": name, "dependencies": dependencies.collect::<Vec<_>>() })
        };
        json!({ "packages": crates.iter().map(package).collect::<Vec<_>>() })
    }

    fn verdict(crates: &[Package<'_>]) -> Vec<String> {
        let (crates, edges) = read(&workspace(crates)).unwrap();
        judge(&crates, &edges).iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn an_arrow_that_points_down_is_fine() {
        let sim = ("narrows-sim", &[("narrows-core", None), ("serde", None)][..]);
        assert_eq!(verdict(&[("narrows-core", &[]), sim, ("narrows", &[("narrows-sim", None)])]), [""; 0]);
    }

    #[test]
    fn an_arrow_that_points_up_is_refused() {
        let refused = verdict(&[("narrows-core", &[("narrows-scenario", None)]), ("narrows-scenario", &[])]);
        assert_eq!(
            refused,
            ["narrows-core → narrows-scenario (normal) points the wrong way; narrows-core may use: none of them"]
        );
    }

    #[test]
    fn worlds_do_not_know_each_other_and_a_report_knows_none_in_tests_either() {
        let refused = verdict(&[
            ("narrows-sim", &[]),
            ("narrows-live", &[("narrows-sim", Some("dev"))]),
            ("narrows-report", &[("narrows-sim", Some("build"))]),
        ]);
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert!(refused[0].starts_with("narrows-live → narrows-sim (dev)"), "{refused:?}");
        assert!(refused[1].starts_with("narrows-report → narrows-sim (build)"), "{refused:?}");
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        assert_eq!(verdict(&[("narrows-cloud", &[])]).len(), 1);
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        // Each row names only crates with rows above its own; otherwise there could be a cycle.
        for (at, (name, allowed)) in ALLOWED.iter().enumerate() {
            for to in *allowed {
                let below = ALLOWED[..at].iter().any(|(row, _)| row == to);
                assert!(below, "{name} → {to}: the row of {to} is not above that of {name}");
            }
        }
    }

    #[test]
    fn the_tree_as_it_is_keeps_the_table() {
        check().unwrap();
    }
}
