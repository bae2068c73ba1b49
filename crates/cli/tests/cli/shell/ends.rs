//! However a shell ends, nothing stays behind, and the measurements are written unless there was no time.
use super::{Running, allowed, is_result, is_root, waits_for};
use crate::support::Place;
use rustix::process::Signal;
use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

/// It takes a second on an idle machine.
const SOON: Duration = Duration::from_secs(4);

/// Processes in a network namespace.
fn inhabitants(namespace: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let inside = processes
        .filter(|entry| fs::read_link(entry.path().join("ns/net")).is_ok_and(|link| link.as_os_str() == namespace));
    inside.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Does a device here have this address?
fn is_here(address: &str) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[test]
fn nothing_stays_after_a_kill() {
    if !is_root() {
        return;
    }
    let place = Place::new("shell-killed");
    // One child ignores all signals, and one is in its own session.
    let script =
        "(trap '' TERM INT HUP; sleep 1000) & setsid sleep 1000 & readlink /proc/self/ns/net; echo {peer}; wait";
    let mut running = Running::shell(&place, "out", &[], script);
    let said = running.lines(2);
    assert!(inhabitants(&said[0]).len() >= 4, "the init, bash and two of sleep");
    assert!(is_here(&said[1]));
    running.child.kill().expect("it is ours");
    running.child.wait().expect("it ends");
    waits_for("everything in the namespace is gone", SOON, || inhabitants(&said[0]).is_empty());
    waits_for("the device is gone", SOON, || !is_here(&said[1]));
    assert!(!place.path("out/summary.json").exists());
    // Its unfinished folder does not prevent the next run.
    Running::shell(&place, "out", &[], "true").ends().ok();
}

#[test]
fn ctrl_c_ends_the_command_and_what_was_measured_is_a_result() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-interrupted");
    let running = Running::shell(&place, "out", &[], "sleep 1000 & echo $$; exec sleep 1000");
    running.lines(1);
    running.signal_group(Signal::INT);
    let ended = running.ends();
    assert_eq!(ended.code, Some(128 + 2), "{}", ended.stderr);
    assert!(is_result(&place.path("out")), "{}", ended.stderr);
    assert!(ended.stderr.contains("report.html"), "{}", ended.stderr);
}

#[test]
fn a_command_hears_of_ctrl_c_once_and_may_take_its_time() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-heard");
    let script = "trap 'echo heard; count=$((count + 1))' INT; echo ready; \
                  for i in 1 2 3 4 5; do sleep 0.1; done; exit $((40 + count))";
    let running = Running::shell(&place, "out", &[], script);
    running.lines(1);
    running.signal_group(Signal::INT);
    let ended = running.ends();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(41), "ready\nheard\n"), "{}", ended.stderr);
}

#[test]
fn sigterm_is_a_wish_to_end_too() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-terminated");
    let running = Running::shell(&place, "out", &[], "echo ready; exec sleep 1000");
    running.lines(1);
    running.signal(Signal::TERM);
    assert_eq!(running.ends().code, Some(128 + 2));
    assert!(is_result(&place.path("out")));
}

#[test]
fn who_does_not_hear_is_killed() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-deaf");
    let running = Running::shell(&place, "out", &[], "trap '' INT; echo ready; exec sleep 1000");
    running.lines(1);
    running.signal_group(Signal::INT);
    assert_eq!(running.ends().code, Some(128 + 9));
    assert!(is_result(&place.path("out")));
}

#[test]
fn a_second_ctrl_c_waits_for_nothing() {
    if !is_root() {
        return;
    }
    let place = Place::new("shell-hurried");
    let running = Running::shell(&place, "out", &[], "trap '' INT; readlink /proc/self/ns/net; exec sleep 1000");
    let said = running.lines(1);
    running.signal_group(Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    running.signal_group(Signal::INT);
    assert_eq!(running.ends().code, Some(130));
    waits_for("everything in the namespace is gone", SOON, || inhabitants(&said[0]).is_empty());
    assert!(!place.path("out/summary.json").exists());
}
