//! Each result gets its own folder, complete or not at all, whatever exists there and whatever ends the program.
use crate::support::{Place, json, same_files, text};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A run that takes no time.
const SCENARIO: &str = "name = \"x\"\nduration = \"1s\"\nwarmup = \"0s\"\n[[hop]]\nname = \"a\"\nrate = \"1mbit\"\n\
    queue = \"fifo\"\n[[flow]]\nname = \"f\"\nrtt = \"20ms\"\nroute = [\"a\"]\n";

/// Six runs, each long enough to be killed during it.
const LONG: &[&str] = &[
    "compare",
    "--rate",
    "50mbit",
    "--rtt",
    "20ms",
    "--flows",
    "2xcubic",
    "--duration",
    "150s",
    "--queues",
    "fifo,codel",
    "--runs",
    "3",
    "--jobs",
    "1",
];

fn place(test: &str) -> Place {
    let place = Place::new(&format!("publish-{test}"));
    place.write("x.toml", SCENARIO);
    place
}

/// Runs `x.toml`; returns its exit code and its messages.
fn run(place: &Place, more: &[&str]) -> (Option<i32>, String) {
    let output = place.run(&[&["run", "x.toml"], more].concat());
    (output.status.code(), text(&output.stderr))
}

fn seed(place: &Place, folder: &str) -> String {
    let summary = fs::read_to_string(place.path(folder).join("summary.json")).expect("a summary");
    json(&summary)["seed"].to_string()
}

fn names(place: &Place, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(folder)).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn shell(place: &Place, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(place.path("")).stdin(Stdio::null());
    command.env("NARROWS", env!("CARGO_BIN_EXE_narrows")).output().expect("a shell")
}

#[test]
fn every_command_gets_a_folder_of_its_own_and_latest_is_the_newest() {
    let place = place("numbers");
    let shown = place.ok(&["run", "x.toml", "--seed", "1"]);
    assert!(shown.contains("narrows-out/0001-run/report.html"), "{shown}");
    place.ok(&["compare", "--duration", "1s", "--rate", "1mbit", "--queues", "fifo", "--seed", "2"]);
    place.ok(&["run", "x.toml", "--seed", "3", "--runs", "2"]);
    assert_eq!(names(&place, "narrows-out"), ["0001-run", "0002-compare", "0003-run", "latest"]);
    assert_eq!(fs::read_link(place.path("narrows-out/latest")).expect("a link"), PathBuf::from("0003-run"));
    assert_eq!(seed(&place, "narrows-out/0001-run"), "1");
    assert_eq!(seed(&place, "narrows-out/0002-compare/fifo/seed-2"), "2");
    let diff = place.ok(&["diff", "narrows-out/0001-run", "narrows-out/latest"]);
    assert!(diff.contains("utilisation"), "{diff}");
    // A number is not reused while a later one exists, and a folder with the user's own name does not count.
    fs::remove_dir_all(place.path("narrows-out/0001-run")).expect("a folder");
    fs::create_dir(place.path("narrows-out/9x")).expect("a folder");
    place.ok(&["run", "x.toml"]);
    assert!(names(&place, "narrows-out").contains(&"0004-run".to_owned()));
}

#[test]
fn commands_at_the_same_time_do_not_collide() {
    let place = place("at-once");
    let start = |seed: &str| {
        let mut command = place.command(&["run", "x.toml", "--seed", seed]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let seeds: Vec<String> = (1..=6).map(|seed| seed.to_string()).collect();
    let children: Vec<Child> = seeds.iter().map(|seed| start(seed)).collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let mut found: Vec<String> = names(&place, "narrows-out");
    assert_eq!(found.pop().as_deref(), Some("latest"));
    assert_eq!(found.len(), 6, "{found:?}");
    let mut published: Vec<String> = found.iter().map(|name| seed(&place, &format!("narrows-out/{name}"))).collect();
    published.sort();
    assert_eq!(published, seeds);
    seed(&place, "narrows-out/latest");
}

#[test]
fn a_folder_that_holds_results_is_replaced_with_force_alone() {
    let place = place("force");
    let commands: [&[&str]; 4] = [
        &["run", "x.toml", "--seed", "2"],
        &["compare", "--duration", "1s", "--rate", "1mbit", "--queues", "fifo"],
        &["reproduce", "linux", "--quick", "--cells", "T6"],
        &["reproduce", "cocoa", "--figure", "text: 1 ms", "--quick"],
    ];
    for command in commands {
        let _ = fs::remove_dir_all(place.path("out"));
        place.ok(&["run", "x.toml", "--seed", "1", "--runs", "2", "--out", "out"]);
        let before = place.files("out");
        let output = place.run(&[command, &["--out", "out"]].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(text(&output.stderr).contains("`out` holds results; "), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("--force"), "{}", text(&output.stderr));
        assert_eq!(place.files("out"), before, "{command:?}");
        place.ok(&[command, &["--out", "out", "--force"]].concat());
        assert!(!place.path("out/seed-1").exists(), "{command:?}: nothing of the earlier result is left");
        assert_eq!(names(&place, ""), ["out", "x.toml"], "{command:?}");
    }
    assert_eq!(run(&place, &["--force"]).0, Some(2), "there is nothing to replace without --out");
}

#[test]
fn what_narrows_did_not_write_is_never_replaced() {
    let place = place("strangers");
    let refused = |why: &str| {
        for force in [&["--out", "out"][..], &["--out", "out", "--force"]] {
            let before = place.files("out");
            let (code, said) = run(&place, force);
            assert!(code == Some(2) && said.contains(why), "{why}: {said}");
            assert_eq!(place.files("out"), before);
            assert_eq!(names(&place, ""), ["out", "x.toml"]);
        }
    };
    fs::create_dir(place.path("out")).expect("a folder");
    place.write("out/thesis.txt", "mine");
    refused("such as `thesis.txt`");
    fs::remove_file(place.path("out/thesis.txt")).expect("a file");
    fs::create_dir(place.path("out/empty")).expect("a folder");
    refused("such as `empty`");
    fs::remove_dir(place.path("out/empty")).expect("a folder");
    // An empty folder may be used.
    assert_eq!(run(&place, &["--out", "out"]).0, Some(0));
    place.write("out/svg/notes.txt", "mine");
    refused("`out/svg/notes.txt` was not written by narrows");
    fs::remove_file(place.path("out/svg/notes.txt")).expect("a file");
    fs::create_dir(place.path("out/mine")).expect("a folder");
    refused("`out/mine` was not written by narrows");
    fs::remove_dir(place.path("out/mine")).expect("a folder");
    fs::remove_file(place.path("out/summary.json")).expect("a file");
    symlink("../x.toml", place.path("out/summary.json")).expect("a link");
    refused("`out/summary.json` was not written by narrows: it is a symbolic link");
}

#[test]
fn a_damaged_list_can_be_recovered_from() {
    let place = place("damaged");
    let list = place.path("out/.narrows");
    let damage: [(&str, &dyn Fn()); 7] = [
        ("not a whole list", &|| fs::write(&list, "").expect("a file")),
        ("not a whole list", &|| fs::write(&list, b"\xff\xfe\x00").expect("a file")),
        ("not a whole list", &|| {
            let text = fs::read_to_string(&list).expect("the list");
            fs::write(&list, &text[..text.len() / 2]).expect("a file");
        }),
        ("a symbolic link", &|| {
            fs::remove_file(&list).expect("the list");
            symlink(place.path("x.toml"), &list).expect("a link");
        }),
        ("a symbolic link", &|| {
            fs::remove_file(&list).expect("the list");
            symlink("nowhere", &list).expect("a link");
        }),
        ("a FIFO", &|| {
            fs::remove_file(&list).expect("the list");
            assert!(shell(&place, "mkfifo out/.narrows").status.success());
        }),
        ("a folder", &|| {
            fs::remove_file(&list).expect("the list");
            fs::create_dir(&list).expect("a folder");
        }),
    ];
    for (why, damage) in damage {
        let _ = fs::remove_dir_all(place.path("out"));
        assert_eq!(run(&place, &["--seed", "1", "--out", "out"]).0, Some(0));
        damage();
        let (code, said) = run(&place, &["--out", "out"]);
        assert!(code == Some(2) && said.contains("`out/.narrows` is damaged") && said.contains(why), "{why}: {said}");
        // In a folder with other files it is not known what may be removed.
        place.write("out/notes.txt", "mine");
        let (code, said) = run(&place, &["--out", "out", "--force"]);
        assert!(code == Some(2) && said.contains("out/notes.txt"), "{why}: {said}");
        fs::remove_file(place.path("out/notes.txt")).expect("a file");
        let (code, said) = run(&place, &["--seed", "2", "--out", "out", "--force"]);
        assert_eq!((code, seed(&place, "out").as_str()), (Some(0), "2"), "{why}: {said}");
        assert_eq!(fs::read_to_string(place.path("x.toml")).expect("the scenario"), SCENARIO);
        assert_eq!(names(&place, ""), ["out", "x.toml"]);
    }
}

#[test]
fn what_lies_where_results_are_prepared_is_neither_followed_nor_waited_for() {
    let place = place("in-the-way");
    fs::create_dir(place.path("victim")).expect("a folder");
    place.write("victim/file", "mine");
    // The folder in which results are prepared.
    for (make, why) in [
        ("ln -s victim out.unfinished", "a symbolic link"),
        ("ln -s nowhere out.unfinished", "a symbolic link"),
        ("mkfifo out.unfinished", "a FIFO"),
        ("echo mine > out.unfinished", "a file"),
        ("mkdir out.unfinished; echo mine > out.unfinished/results", "holds files that narrows leaves alone"),
    ] {
        assert!(shell(&place, make).status.success());
        let (code, said) = run(&place, &["--out", "out"]);
        assert!(code == Some(2) && said.contains("`") && said.contains(why), "{make}: {said}");
        assert!(!place.path("out").exists(), "{make}");
        assert!(shell(&place, "rm -r out.unfinished").status.success(), "{make}: it is still there");
    }
    // Its lock file.
    for (make, why) in [
        ("ln -s ../victim/file out.unfinished/.narrows-lock", "a symbolic link"),
        ("mkfifo out.unfinished/.narrows-lock", "a FIFO"),
        ("mkdir out.unfinished/.narrows-lock", "a folder"),
    ] {
        assert!(shell(&place, &format!("mkdir out.unfinished; {make}")).status.success());
        let (code, said) = run(&place, &["--out", "out"]);
        assert!(code == Some(2) && said.contains(".narrows-lock") && said.contains(why), "{make}: {said}");
        assert_eq!(run(&place, &["--out", "out", "--force"]).0, Some(0), "{make}");
        fs::remove_dir_all(place.path("out")).expect("the result");
    }
    // The link to the newest results, and the folder it is in.
    fs::create_dir_all(place.path("narrows-out/latest")).expect("a folder");
    let (code, said) = run(&place, &[]);
    assert!(code == Some(0) && said.contains("`narrows-out/latest` is a folder and is left alone"), "{said}");
    assert!(shell(&place, "rmdir narrows-out/latest; ln -s ../victim/file narrows-out/latest").status.success());
    assert_eq!(run(&place, &[]).0, Some(0));
    assert_eq!(fs::read_link(place.path("narrows-out/latest")).expect("a link"), PathBuf::from("0002-run"));
    assert_eq!(fs::read_to_string(place.path("victim/file")).expect("the file"), "mine\n".trim());
    assert_eq!(names(&place, "victim"), ["file"]);
}

#[test]
fn a_folder_that_cannot_be_renamed_is_refused_before_the_run() {
    let place = place("fixed");
    fs::create_dir(place.path("dir")).expect("a folder");
    for (dir, why) in [(".", "the current folder or above it"), ("..", "above it"), ("/", "no folder above it")] {
        let (code, said) = run(&place, &["--out", dir]);
        assert!(code == Some(2) && said.contains(why) && said.contains("--out "), "{dir}: {said}");
    }
    // The link stays, and its target has the new results.
    symlink("dir", place.path("link")).expect("a link");
    assert_eq!(run(&place, &["--out", "link"]).0, Some(0));
    assert_eq!(seed(&place, "dir"), "1");
    assert_eq!(run(&place, &["--out", "link", "--seed", "2", "--force"]).0, Some(0));
    assert_eq!(seed(&place, "dir"), "2");
    assert!(place.path("link").is_symlink());
    symlink("nowhere", place.path("dangling")).expect("a link");
    let (code, said) = run(&place, &["--out", "dangling"]);
    assert!(code == Some(2) && said.contains("a symbolic link to nowhere"), "{said}");
}

/// Without the right to mount these tests are skipped, with a message.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_and_one_that_is_read_only_leave_the_old_results() {
    let place = place("full");
    fs::create_dir(place.path("disk")).expect("a folder");
    let probe = shell(&place, "unshare -m mount -t tmpfs none disk");
    if !probe.status.success() {
        return println!("skipped: {}", text(&probe.stderr));
    }
    let script = r#"
        unshare -m sh -ec '
            mount -t tmpfs -o size=8m none disk
            $NARROWS run x.toml --out disk/out >/dev/null 2>&1
            cp -r disk/out before
            head -c 5m /dev/zero > disk/ballast
            say() { echo "== $1"; shift; "$@" 2>&1 >/dev/null || echo "code $?"; }
            say full $NARROWS run x.toml --seed 2 --out disk/out --force
            diff -r disk/out before && echo unchanged
            ls -A disk
            rm disk/ballast
            mount -o remount,ro disk
            say read-only $NARROWS run x.toml --seed 2 --out disk/out --force
            mount -o remount,rw disk
            diff -r disk/out before && echo unchanged
            say mount $NARROWS run x.toml --out disk --force
            mkdir disk/bound && mount --bind disk/bound disk/bound
            say bound $NARROWS run x.toml --out disk/bound
            umount disk/bound && rmdir disk/bound
            say again $NARROWS run x.toml --seed 2 --out disk/out --force
            grep "\"seed\": 2" disk/out/summary.json
            ls -A disk
        ' "#;
    let output = shell(&place, script);
    let said = text(&output.stdout);
    let part = |name: &str| said.split("== ").find(|part| part.starts_with(name)).unwrap_or_default().to_owned();
    let context = format!("{said}{}", text(&output.stderr));
    assert!(part("full").contains("No space left"), "{context}");
    assert!(
        part("full").contains("1 of 1 runs is finished and kept in `disk/out.unfinished`; to continue: "),
        "{context}"
    );
    assert!(part("full").contains("code 2\nunchanged\nballast\nout\nout.unfinished\n"), "{context}");
    assert!(
        part("read-only").contains("Read-only file system") && part("read-only").contains("unchanged"),
        "{context}"
    );
    assert!(part("mount").contains("is a mount point") && part("mount").contains("code 2"), "{context}");
    assert!(part("bound").contains("is a mount point") && part("bound").contains("code 2"), "{context}");
    assert!(part("again").contains("\"seed\": 2,\nout\n"), "{context}");
}

/// Starts a command and waits until its unfinished folder has `runs` finished runs.
fn started(place: &Place, args: &[&str], work: &str, runs: usize) -> Child {
    let mut command = place.command(args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let index = place.path(work).join("runs.jsonl");
    while fs::read_to_string(&index).map_or(0, |text| text.lines().count()) < runs {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it could be stopped");
        sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn a_stopped_comparison_goes_on_to_the_same_bytes() {
    let place = place("stopped");
    place.ok(&[LONG, &["--out", "whole"]].concat());
    // Ctrl-C: the message says how many runs are kept, where, and how to continue.
    let child = started(&place, &[LONG, &["--out", "out"]].concat(), "out.unfinished", 2);
    assert!(shell(&place, &format!("kill -INT {}", child.id())).status.success());
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(!place.path("out").exists());
    let (kept, command) = said.trim_end().rsplit_once("; to continue: ").expect("how to go on");
    assert!(kept.contains("of 6 runs are finished and kept in `") && kept.ends_with("`out.unfinished`"), "{said}");
    // SIGKILL while it continues: there is no message, and nothing is lost.
    let mut child = started(&place, &[LONG, &["--out", "out"]].concat(), "out.unfinished", 4);
    child.kill().expect("a child");
    let said = text(&child.wait_with_output().expect("it ends").stderr);
    assert!(said.contains("narrows: continuing with "), "{said}");
    let half = place.path("out.unfinished/results/codel/seed-3");
    fs::create_dir_all(&half).expect("a folder");
    fs::write(half.join("summary.json"), "{").expect("a run that is half written");
    let output = shell(&place, command);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let going_on = said.lines().find(|line| line.contains("continuing with")).expect("a note");
    let count: usize = going_on.split(' ').nth(3).and_then(|word| word.parse().ok()).expect("a number");
    assert!((4..6).contains(&count), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains(" seed ")).count(), 6 - count, "{said}");
    assert!(same_files(&place, "whole", "out") > 24);
    assert_eq!(names(&place, ""), ["out", "whole", "x.toml"]);
}

#[test]
fn a_stopped_run_goes_on_in_its_number_and_no_other_command_takes_it() {
    let place = place("stopped-number");
    place.write("long.toml", &SCENARIO.replace("1s", "250s").replace("1mbit", "50mbit"));
    let args = ["run", "long.toml", "--runs", "4", "--jobs", "1"];
    place.ok(&[&args[..], &["--out", "whole"]].concat());
    let index = place.path("narrows-out/0001-unfinished/runs.jsonl");
    let mut child = started(&place, &args, "narrows-out/0001-unfinished", 2);
    child.kill().expect("a child");
    child.wait().expect("it ends");
    let kept = fs::read_to_string(&index).expect("the index");
    // Other arguments are another command.
    assert_eq!(run(&place, &["--runs", "4"]).0, Some(0));
    assert_eq!(fs::read_to_string(&index).expect("the index"), kept);
    assert_eq!(names(&place, "narrows-out"), ["0001-unfinished", "0002-run", "latest"]);
    let output = place.run(&args);
    assert!(text(&output.stderr).contains("narrows: continuing with "), "{}", text(&output.stderr));
    assert_eq!(names(&place, "narrows-out"), ["0001-run", "0002-run", "latest"]);
    assert!(same_files(&place, "whole", "narrows-out/0001-run") > 16);
}

#[test]
fn a_reproduction_that_is_killed_goes_on() {
    let place = place("stopped-paper");
    let args =
        ["reproduce", "cocoa", "--figure", "text: 1 ms", "--runs", "20", "--jobs", "1", "--json", "--out", "out"];
    let index = place.path("out.unfinished/runs.jsonl");
    let mut child = started(&place, &args, "out.unfinished", 2);
    child.kill().expect("a child");
    child.wait().expect("it ends");
    let kept: Vec<String> = fs::read_to_string(&index).expect("the index").lines().map(str::to_owned).collect();
    let printed = place.ok(&args);
    let published = fs::read_to_string(place.path("out/runs.jsonl")).expect("the runs");
    assert!(kept.iter().filter(|line| line.ends_with('}')).all(|line| published.contains(line.as_str())));
    assert_eq!(printed, fs::read_to_string(place.path("out/figures.json")).expect("the figures"));
}
