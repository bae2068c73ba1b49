//! Publishing results while every system call fails in turn, or while the program is killed before each of them.
use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The fault to inject, and the call at which it occurs.
#[derive(Default)]
pub(super) struct Faults {
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    calls: usize,
    at: Option<(usize, Fault)>,
    killed: bool,
    without_exchange: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// The call fails with this error number.
    Error(i32),
    /// The process is killed before the call: neither this nor any later call happens.
    Kill,
}

impl Faults {
    /// Called before each system call.
    pub(super) fn before(&self) -> io::Result<()> {
        let mut plan = self.plan.lock().expect("no test panics in here");
        plan.calls += 1;
        match plan.at {
            _ if plan.killed => Err(io::Error::other("killed")),
            Some((at, Fault::Error(number))) if at == plan.calls => Err(io::Error::from_raw_os_error(number)),
            Some((at, Fault::Kill)) if at == plan.calls => {
                plan.killed = true;
                Err(io::Error::other("killed"))
            }
            _ => Ok(()),
        }
    }

    /// Whether this file system lacks the exchange of two names.
    pub(super) fn without_exchange(&self) -> bool {
        self.plan.lock().expect("no test panics in here").without_exchange
    }
}

/// A folder for one test.
struct Ground(PathBuf);

impl Ground {
    fn new(test: &str) -> Ground {
        // In memory if possible, because there are thousands of syncs.
        let memory = Some(PathBuf::from("/dev/shm")).filter(|dir| dir.is_dir());
        let dir = memory.unwrap_or_else(std::env::temp_dir);
        let dir = dir.join(format!("narrows-output-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a folder for the test");
        Ground(fs::canonicalize(dir).expect("it is there"))
    }

    fn names(&self) -> Vec<String> {
        names(&self.0)
    }
}

fn names(dir: &Path) -> Vec<String> {
    let names = Disk::default().list(dir).expect("it is there");
    names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const NOTHING: Request<'_> = Request { out: None, force: false, command: "run", keys: &[] };

/// The files of the result called `label`. No two results have the same files.
fn files(label: &str) -> BTreeMap<PathBuf, String> {
    let names = ["summary.json".to_owned(), "a/seed-1/series.parquet".to_owned(), format!("{label}/cdf.parquet")];
    names.into_iter().map(|name| (PathBuf::from(name), label.to_owned())).collect()
}

/// Publishes a result at `out`, or at a number below `numbered`.
fn publish(disk: &Disk, request: Request<'_>, numbered: &Path, label: &str) -> Result<PathBuf, Failure> {
    let output = Output::claim_on(disk.clone(), request, numbered)?;
    for (name, text) in files(label) {
        output.write(name, text)?;
    }
    output.publish().map(|published| published.folder)
}

fn force(out: &Path) -> Request<'_> {
    Request { out: Some(out), force: true, ..NOTHING }
}

/// The label of the complete result in a folder; `None` if there is none.
fn whole(dir: &Path) -> Option<String> {
    let tree = Tree::of(&Disk::default(), dir).ok()?;
    let found: BTreeMap<PathBuf, String> = tree
        .files
        .into_iter()
        .filter(|(file, _)| file != Path::new(MANIFEST))
        .map(|(file, _)| (file.clone(), fs::read_to_string(dir.join(file)).expect("a text")))
        .collect();
    let label = found.values().next()?.clone();
    assert_eq!(found, files(&label), "a mixed result in {}", dir.display());
    assert!(dir.join(MANIFEST).is_file(), "{} is not known to be a result", dir.display());
    Some(label)
}

/// The faults to inject at a call.
const FAULTS: [Fault; 6] = [
    Fault::Kill,
    Fault::Error(5),  // EIO
    Fault::Error(28), // ENOSPC
    Fault::Error(13), // EACCES
    Fault::Error(30), // EROFS
    Fault::Error(4),  // EINTR
];

/// Publishes with every fault at every call; returns the number of calls.
fn every_point(test: &str, prepare: impl Fn(&Path), without_exchange: bool) -> usize {
    let mut points = 0;
    for fault in FAULTS {
        for at in 1.. {
            let ground = Ground::new(test);
            let out = ground.0.join("deep/out");
            prepare(&out);
            let before = whole(&out);
            let disk = Disk::default();
            *disk.faults.plan.lock().expect("a plan") =
                Plan { at: Some((at, fault)), without_exchange, ..Plan::default() };
            let published = publish(&disk, force(&out), &ground.0, "new");
            let calls = disk.faults.plan.lock().expect("a plan").calls;
            if calls < at {
                // There was no such call.
                published.expect("nothing went wrong");
                break;
            }
            points += 1;
            let context = format!("{test}: {fault:?} at call {at}");
            let after = whole(&out);
            // Without exchange the old result may be in its other place; the next command puts it back.
            let between = without_exchange && fault == Fault::Kill && !out.exists();
            assert!(after == before || after.as_deref() == Some("new") || between, "{context}: {after:?}");
            if published.is_ok() {
                assert_eq!(after.as_deref(), Some("new"), "{context}");
            }
            if fault == Fault::Error(4) {
                assert!(published.is_ok(), "{context}: a call that a signal interrupts is repeated");
            }
            if between {
                let refused = publish(&Disk::default(), Request { out: Some(&out), ..NOTHING }, &ground.0, "next");
                assert!(refused.is_err() && whole(&out) == before, "{context}: the old result is not back");
            }
            publish(&Disk::default(), force(&out), &ground.0, "next").unwrap_or_else(|f| panic!("{context}: {f:?}"));
            assert_eq!(whole(&out).as_deref(), Some("next"), "{context}");
            for name in names(&ground.0.join("deep")) {
                let left = ground.0.join("deep").join(&name).join("results");
                let known = name == "out" || name == "out.unpublished" && whole_or_part(&left);
                assert!(known, "{context}: {name} is left");
            }
        }
    }
    points
}

/// A handed-over folder has all of its files; their list may be missing.
fn whole_or_part(left: &Path) -> bool {
    files("new").keys().all(|file| left.join(file).is_file())
}

#[test]
fn no_failing_call_leaves_a_mixed_folder() {
    let nothing = |_: &Path| {};
    let empty = |out: &Path| fs::create_dir_all(out).expect("a folder");
    let old = |out: &Path| drop(publish(&Disk::default(), force(out), out, "old").expect("an old result"));
    let points = [
        every_point("fresh", nothing, false),
        every_point("empty", empty, false),
        every_point("old", old, false),
        every_point("old-without-exchange", old, true),
    ];
    println!("calls that failed: {points:?}");
    assert!(points.iter().sum::<usize>() >= 500, "{points:?}");
}

#[test]
fn no_failing_call_leaves_a_mixed_number() {
    let mut points = 0;
    for fault in FAULTS {
        for at in 1.. {
            let ground = Ground::new("numbered");
            let parent = ground.0.join("narrows-out");
            publish(&Disk::default(), NOTHING, &parent, "old").expect("an old result");
            let disk = Disk::default();
            disk.faults.plan.lock().expect("a plan").at = Some((at, fault));
            let published = publish(&disk, NOTHING, &parent, "new");
            if disk.faults.plan.lock().expect("a plan").calls < at {
                break;
            }
            points += 1;
            let context = format!("{fault:?} at call {at}");
            assert_eq!(whole(&parent.join("0001-run")).as_deref(), Some("old"), "{context}");
            let new = whole(&parent.join("0002-run"));
            assert!(new.as_deref().is_none_or(|label| label == "new"), "{context}");
            assert!(published.is_err() || new.is_some(), "{context}");
            let latest = whole(&parent.join("latest"));
            assert!(latest.as_deref() == Some("old") || latest == new, "{context}: {latest:?}");
            let next =
                publish(&Disk::default(), NOTHING, &parent, "next").unwrap_or_else(|f| panic!("{context}: {f:?}"));
            assert_eq!(whole(&parent.join("latest")).as_deref(), Some("next"), "{context}");
            assert_eq!(whole(&next).as_deref(), Some("next"), "{context}");
            let left = names(&parent);
            assert!(!left.iter().any(|name| name.ends_with("-unfinished")), "{context}: {left:?}");
        }
    }
    assert!(points >= 100, "{points}");
}

/// Runs called `a`, `b`: their keys and their files.
fn runs() -> (Vec<String>, BTreeSet<PathBuf>) {
    (["a", "b"].map(str::to_owned).into(), ["a/summary.json"].map(PathBuf::from).into())
}

#[test]
fn finished_runs_outlive_every_kill() {
    let (keys, files) = runs();
    let mut resumed = 0;
    for at in 1.. {
        let ground = Ground::new("kept");
        let out = ground.0.join("out");
        let request = Request { out: Some(&out), keys: &keys, ..NOTHING };
        let stopped = Output::claim_on(Disk::default(), request, &ground.0).expect("a place");
        stopped.write("a/summary.json", "a").expect("a file");
        stopped.write("b/half", "written").expect("a file");
        stopped.keep("a", &"a").expect("an index");
        drop(stopped);
        // The command that continues is killed, too.
        let disk = Disk::default();
        disk.faults.plan.lock().expect("a plan").at = Some((at, Fault::Kill));
        let again = |disk: Disk| {
            let mut output = Output::claim_on(disk, request, &ground.0)?;
            let found = output.found().clone();
            if !found.is_empty() {
                output.take_up(found, &files)?;
            }
            let taken_up = output.known::<String>("a");
            if taken_up.is_none() {
                output.write("a/summary.json", "a")?;
            }
            output.write("b/summary.json", "b")?;
            output.publish()?;
            Ok::<_, Failure>(taken_up.is_some())
        };
        let killed = again(disk.clone());
        if disk.faults.plan.lock().expect("a plan").calls < at {
            assert!(killed.expect("nothing went wrong"));
            break;
        }
        if !out.exists() {
            resumed += 1;
            assert!(again(Disk::default()).expect("it goes on"), "a finished run was lost by a kill at call {at}");
        }
        let files = Tree::of(&Disk::default(), &out).expect("the result").files;
        let names: BTreeSet<PathBuf> = files.into_iter().map(|(file, _)| file).collect();
        assert_eq!(names, [MANIFEST, "a/summary.json", "b/summary.json"].map(PathBuf::from).into(), "call {at}");
    }
    assert!(resumed > 30, "{resumed}");
}

#[test]
fn kept_runs_are_thrown_away_only_when_asked() {
    let (keys, _) = runs();
    let ground = Ground::new("unasked");
    let out = ground.0.join("out");
    let stopped = Output::claim_on(Disk::default(), Request { out: Some(&out), keys: &keys, ..NOTHING }, &ground.0);
    stopped.expect("a place").keep("a", &"a").expect("an index");
    let other = Request { out: Some(&out), ..NOTHING };
    let refused = publish(&Disk::default(), other, &ground.0, "new").expect_err("runs would be lost").message();
    assert!(refused.contains("holds 1 finished runs") && refused.contains("--force"), "{refused}");
    publish(&Disk::default(), force(&out), &ground.0, "new").expect("they are thrown away");
    assert_eq!((whole(&out).as_deref(), ground.names()), (Some("new"), vec!["out".to_owned()]));
}

#[test]
fn a_number_whose_runs_are_others_is_left_alone() {
    let (keys, _) = runs();
    let ground = Ground::new("other-number");
    let stopped = Output::claim_on(Disk::default(), Request { keys: &keys, ..NOTHING }, &ground.0).expect("a place");
    stopped.keep("a", &"a").expect("an index");
    drop(stopped);
    // A killed command without finished runs.
    fs::create_dir(ground.0.join("0002-unfinished")).expect("a folder");
    let shown = publish(&Disk::default(), NOTHING, &ground.0, "new").expect("a place");
    assert_eq!(shown, ground.0.join("0003-run"));
    assert_eq!(ground.names(), ["0001-unfinished", "0003-run", "latest"]);
    let again = Output::claim_on(Disk::default(), Request { keys: &keys, ..NOTHING }, &ground.0).expect("a place");
    assert_eq!(again.stage(), ground.0.join("0001-unfinished/results"));
}

#[test]
fn results_that_cannot_be_published_are_left_to_the_user() {
    let ground = Ground::new("unpublished");
    let out = ground.0.join("out");
    let output = Output::claim_on(Disk::default(), Request { out: Some(&out), ..NOTHING }, &ground.0).expect("a place");
    for (name, text) in files("new") {
        output.write(name, text).expect("a file");
    }
    fs::create_dir(&out).expect("a folder");
    fs::write(out.join("thesis.txt"), "mine").expect("a file");
    let said = output.publish().map(|_| ()).expect_err("somebody was faster").message();
    assert!(said.contains("thesis.txt") && said.contains("out.unpublished/results"), "{said}");
    assert_eq!(whole(&ground.0.join("out.unpublished/results")).as_deref(), Some("new"));
    assert_eq!(ground.names(), ["out", "out.unpublished"]);
}

#[test]
fn a_reader_sees_one_result_or_the_other() {
    let ground = Ground::new("reader");
    let out = ground.0.join("out");
    let scenario = |seed: u64| {
        let text = format!(
            "seed = {seed}\nduration = \"{seed}s\"\nwarmup = \"0s\"\n[[hop]]\nname = \"a\"\nrate = \"1mbit\"\nqueue = \"fifo\"\n\
             [[flow]]\nname = \"f\"\nrtt = \"20ms\"\nroute = [\"a\"]\n"
        );
        narrows_scenario::Scenario::parse(&text, "t.toml", &narrows_scenario::NoTraces).expect("a scenario")
    };
    let results = [1, 2].map(|seed| {
        let scenario = scenario(seed);
        let result = narrows_sim::run(&scenario, &narrows_sim::Wanted::RESULT, &mut narrows_sim::Unwatched)
            .expect("a run")
            .result;
        (scenario, result)
    });
    let swap = |n: usize| {
        let output = Output::claim_on(Disk::default(), force(&out), &ground.0).expect("a place");
        let (scenario, result) = &results[n % 2];
        narrows_results::folder::write(&output.stage(), scenario, result).expect("a result");
        output.publish().expect("a place");
    };
    swap(0);
    let (done, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                swap(swaps.fetch_add(1, Ordering::Relaxed));
            }
        });
        let mut reads = 0;
        let mut check = || {
            let comparison = narrows_report::Comparison::load(&out).map_err(|error| error.to_string())?;
            let run = comparison.groups[0].first().ok_or("no run")?;
            let last =
                run.result.series.iter().flat_map(|series| &series.points).map(|point| point.0).fold(0.0, f64::max);
            let text = run.scenario_text.clone().unwrap_or_default();
            let seed = run.result.summary.seed;
            let agrees = last > seed as f64 - 0.5 && last <= seed as f64 && text.contains(&format!("seed = {seed}\n"));
            reads += 1;
            if agrees { Ok(()) } else { Err(format!("seed {seed}, series until {last}, {text}")) }
        };
        let mut verdict = Ok(());
        while verdict.is_ok() && swaps.load(Ordering::Relaxed) < 100 {
            verdict = check();
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(verdict, Ok(()));
        assert!(reads > 10, "{reads}");
    });
}
