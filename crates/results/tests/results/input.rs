//! Which files are read as scenarios and traces.
use narrows_results::input::{self, TraceFiles};
use narrows_scenario::{Scenario, limits};
use std::fs;
use std::path::{Path, PathBuf};

fn place(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("limits");
    fs::create_dir_all(&dir).expect("a folder for the test");
    dir.join(name)
}

#[test]
fn what_might_never_end_is_not_read() {
    let told = |path: &Path| input::load(path).expect_err("it is no scenario").message;
    let mut others = vec![place("").as_path().to_owned()];
    if cfg!(unix) {
        others.push("/dev/zero".into());
        let pipe = place("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success());
        assert!(made || pipe.exists());
        others.push(pipe);
    }
    for path in others {
        assert_eq!(told(&path), "cannot read the scenario: not a regular file", "{}", path.display());
    }
}

#[test]
fn a_file_longer_than_the_limit_is_refused_before_it_is_parsed() {
    for (name, most) in [("huge.toml", limits::SCENARIO_BYTES), ("huge.mahi", limits::TRACE_BYTES)] {
        // A hole: it takes no room on the disk.
        fs::File::create(place(name)).and_then(|file| file.set_len(most + 1)).expect("a file for the test");
    }
    let scenario = input::load(place("huge.toml")).expect_err("it is too long").message;
    assert_eq!(scenario, "cannot read the scenario: longer than 67108864 bytes, which is the limit");
    let text = "[[hop]]\nname = \"h\"\nrate = { trace = \"huge.mahi\" }\nqueue = \"fifo\"\n";
    let trace = Scenario::parse(text, "S.toml", &TraceFiles(&place(""))).expect_err("its trace is too long").message;
    assert!(trace.contains(": longer than 268435456 bytes, which is the limit"), "{trace}");
}
