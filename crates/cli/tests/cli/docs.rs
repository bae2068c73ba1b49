//! README and book: every command is run, and its output is compared with the page.
//!
//! A page is a session in one empty folder, from top to bottom. Its fenced blocks say what to do with them:
//!
//! - `console`: lines that begin with `$ ` are commands; the lines up to the next one are their output. A line `…` stands for any
//!   number of lines, a `…` within a line for any text. Runs of spaces count as one.
//! - `figures=20%`: numbers may differ by a fifth; `figures=any`: by any amount. Otherwise they must be equal. If a live run
//!   reports that it fell behind, only its words are compared.
//! - `exit=2`: the exit code of its commands. Standard error is then compared as their output.
//! - `stderr`: standard error is compared as well, after standard output.
//! - `sh`: commands that must succeed; their output is not on the page.
//! - `toml file=NAME`: a file for the commands below it. `toml hop`, `toml flow`: keys for such a table, each line being one way
//!   to write a key, or a whole table; they are parsed. `toml study`: parsed as a study, with `file=NAME` written, too.
//! - `python` and `sql`: run with pandas and DuckDB. A `text` block below one is its output.
//! - `pycon`: sessions of Python with the package `narrows`, which its own tests run.
//! - `text from=PATH`: lines of that file of the repository.
//!
//! `needs=jq,root` names programs and rights that a fresh machine may lack (`lab`: what `--on kernel` needs; `default-build`: a build without
//! further features). Without them the page's test stops there and says so.
//! A comment above a block, `<!-- not run: WHY -->`, marks a block that no test can run. `<!-- slowly: TIME -->` marks commands
//! that take minutes: they run with `NARROWS_DOCS=slow` in the environment. `NARROWS_RECORD=1` writes the output into the pages.
mod block;
mod links;
mod outcome;
mod session;
mod tables;

use block::blocks;
use outcome::Mismatch;
use session::{Session, Step};
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs one page. Its output must equal the page, or is written into it.
fn page(path: &str) {
    let file = repository().join(path);
    let text = fs::read_to_string(&file).expect("the page");
    let mut session = Session::new(path);
    let (mut recorded, mut written) = (String::new(), 0);
    let (mut failures, mut failed) = (Vec::new(), None);
    for block in blocks(&text) {
        match session.block(&block) {
            Ok(Step::Done) => {}
            Ok(Step::Lacks(what)) => {
                eprintln!("skipped from {path}:{} on: this machine has no {what}", block.line);
                break;
            }
            Err(Mismatch::Printed { body, told }) => {
                recorded += &text[written..block.body.start];
                recorded += &body;
                written = block.body.end;
                failures.push(format!("{path}:{}:\n{told}", block.line));
            }
            Err(Mismatch::Failed(told)) => {
                // Later blocks may need the results of this one.
                failed = Some(format!("{path}:{}: {told}", block.line));
                break;
            }
        }
    }
    if std::env::var_os("NARROWS_RECORD").is_some() {
        recorded += &text[written..];
        fs::write(&file, recorded).expect("the page is written");
    } else if !failures.is_empty() {
        failures.push("If the program is right: NARROWS_RECORD=1 cargo test -p narrows --test cli docs".into());
        failed = Some(failures.into_iter().chain(failed).collect::<Vec<_>>().join("\n"));
    }
    if let Some(told) = failed {
        panic!("{told}");
    }
}

macro_rules! pages {
    ($($name:ident $path:literal;)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(#[test] fn $name() { page($path); })*
    };
}

pages! {
    readme "README.md";
    advise "docs/book/src/advise.md";
    applications "docs/book/src/applications.md";
    autorate "docs/book/src/autorate.md";
    checks "docs/book/src/checks.md";
    cluster "docs/book/src/cluster.md";
    cocoa "docs/book/src/cocoa.md";
    commands "docs/book/src/commands.md";
    congestion_policing "docs/book/src/congestion-policing.md";
    controllers "docs/book/src/controllers.md";
    examples "docs/book/src/examples.md";
    fair_queuing_detection "docs/book/src/fair-queuing-detection.md";
    install "docs/book/src/install.md";
    introduction "docs/book/src/introduction.md";
    kernel "docs/book/src/kernel.md";
    league "docs/book/src/league.md";
    lesson "docs/book/src/lesson.md";
    lfq "docs/book/src/lfq.md";
    live "docs/book/src/live.md";
    live_performance "docs/book/src/live-performance.md";
    mechanisms "docs/book/src/mechanisms.md";
    packets "docs/book/src/packets.md";
    performance "docs/book/src/performance.md";
    playground "docs/book/src/playground.md";
    probe "docs/book/src/probe.md";
    python "docs/book/src/python.md";
    qdisc "docs/book/src/qdisc.md";
    queues "docs/book/src/queues.md";
    quic "docs/book/src/quic.md";
    quick_start "docs/book/src/quick-start.md";
    repeated_runs "docs/book/src/repeated-runs.md";
    reproducing "docs/book/src/reproducing.md";
    results "docs/book/src/results.md";
    scenarios "docs/book/src/scenarios.md";
    startup_detection "docs/book/src/startup-detection.md";
    summary "docs/book/src/SUMMARY.md";
    sweeps "docs/book/src/sweeps.md";
    tasks "docs/book/src/tasks.md";
    tcp "docs/book/src/tcp.md";
    testbed "docs/book/src/testbed.md";
    testbed_matrix "docs/book/src/testbed-matrix.md";
    thin_streams "docs/book/src/thin-streams.md";
    traffic "docs/book/src/traffic.md";
    validation "docs/book/src/validation.md";
    your_own "docs/book/src/your-own.md";
}

#[test]
fn every_page_of_the_book_is_run() {
    let book = repository().join("docs/book/src");
    for entry in fs::read_dir(book).expect("the book") {
        let name = entry.expect("a page").file_name().into_string().expect("UTF-8");
        let path = format!("docs/book/src/{name}");
        assert!(!name.ends_with(".md") || PAGES.contains(&path.as_str()), "{path} is not in the list of pages");
    }
}

/// A fact is said once, or in the same words everywhere. Each row has words that contradict the page that says it.
#[test]
fn pages_do_not_contradict_each_other() {
    const CONTRADICTIONS: [(&str, &str); 6] = [
        ("in two worlds", "a scenario runs in three worlds"),
        ("has two [worlds]", "a scenario runs in three worlds"),
        ("under four minutes", "the first command is built in a minute on two cores"),
        ("in two minutes on", "the first command is built in a minute on two cores"),
        ("the Linux kernel's world, so far", "crates/qdisc has queue disciplines; the kernel's world is crates/kernel"),
        ("`crates/scenario/src/keys.rs` and `model.rs`;", "a new key is in three files"),
    ];
    let mut found = Vec::new();
    for path in PAGES.iter().copied().chain(["CONTRIBUTING.md", "ARCHITECTURE.md", "crates/qdisc/src/lib.rs"]) {
        let text = fs::read_to_string(repository().join(path)).expect("the page");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (wrong, right) in CONTRADICTIONS.iter().filter(|(wrong, _)| words.contains(wrong)) {
            found.push(format!("{path}: \"{wrong}\", but {right}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
