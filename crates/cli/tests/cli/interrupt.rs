//! Ctrl-C at any moment of large work: the first one ends the program, and nothing is left behind.
use crate::support::{Place, text};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A million flows: building them takes seconds, and so does freeing them.
const CROWD: &str = "duration = \"10h\"\n[[hop]]\nname = \"link\"\nrate = \"1gbit\"\nqueue = \"fifo\"\n\
    [[flow]]\nname = \"bulk\"\ncount = 300000\nrtt = \"50ms\"\nroute = [\"link\"]\n";
/// A short run whose series take long to write and to draw.
const DENSE: &str = "duration = \"10s\"\n[record]\ninterval = \"2us\"\n[[hop]]\nname = \"link\"\nrate = \"1mbit\"\nqueue = \"fifo\"\n\
    [[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n";

/// Sends SIGINT `ms` milliseconds after the output folder was claimed, and waits for the end.
fn interrupted(place: &Place, args: &[&str], ms: u64) -> (Option<i32>, String) {
    let mut child = place.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    // Before that, a signal ends the program in the default way.
    while place.files("").len() <= 2 {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it began");
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(ms));
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("sh").success());
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), text(&output.stderr))
}

#[test]
fn the_first_ctrl_c_ends_large_work_wherever_it_is() {
    let place = Place::new("interrupt-anywhere");
    place.write("crowd.toml", CROWD);
    place.write("dense.toml", DENSE);
    for (file, moments) in [("crowd.toml", [0, 150, 900]), ("dense.toml", [50, 3000, 9000])] {
        for ms in moments {
            let (code, said) = interrupted(&place, &["run", file, "--memory", "100GB", "--out", "out"], ms);
            // An ignored signal would let the run end after ten hours, or with a result and code 0.
            assert_eq!(code, Some(130), "{file} after {ms} ms: {said}");
            assert!(said.contains("interrupted"), "{file} after {ms} ms: {said}");
            assert!(!place.path("out").exists(), "{file} after {ms} ms: {:?}", place.files(""));
            // A finished run is kept, and the program says so. Otherwise nothing is left.
            assert_eq!(place.path("out.unfinished").exists(), said.contains("kept in"), "{file} after {ms} ms: {said}");
            let _ = std::fs::remove_dir_all(place.path("out.unfinished"));
        }
    }
}
