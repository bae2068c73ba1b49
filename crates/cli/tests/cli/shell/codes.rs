//! Exit codes: the command's, or 2 with a message.
use super::{Running, allowed};
use crate::bad_input::refused;
use crate::support::{Place, text};

#[test]
fn the_exit_code_is_the_commands() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-codes");
    for (script, code) in [
        ("true", 0),
        ("exit 7", 7),
        ("kill -TERM $$", 128 + 15),
        ("kill -KILL $$", 128 + 9),
        ("kill -SEGV $$", 128 + 11),
    ] {
        let ended = Running::shell(&place, "out", &[], script).ends();
        assert_eq!(ended.code, Some(code), "{script}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        assert!(place.path("out/summary.json").is_file(), "{script} has a result");
    }
}

#[test]
fn a_command_that_cannot_be_started_is_named_and_leaves_nothing() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-missing");
    place.write("text", "no program");
    refused(&place, &["shell", "--", "nosuchprogram"], &["nosuchprogram"]);
    refused(&place, &["shell", "--", "./text"], &["./text"]);
    refused(&place, &["shell", "--peer", "nosuchpeer", "--", "true"], &["nosuchpeer"]);
    assert!(!place.path("narrows-out").exists());
}

#[test]
fn a_peer_that_fails_at_once_is_told() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-peer-fails");
    let output = place.run(&["shell", "--peer", "sh -c 'exit 3'", "--", "true"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--peer") && said.contains("exit 3") && said.contains("ended with 3"), "{said}");
    // A peer that ends early with code 0 is not an error.
    place.ok(&["shell", "--peer", "true", "--", "true"]);
}

#[test]
fn what_was_asked_in_vain_is_told() {
    let place = Place::new("shell-usage");
    place.write("bad.trace", "5\nx\n");
    let table: &[(&[&str], &[&str])] = &[
        (&["--queue", "fq_coddel", "--", "true"], &["--queue", "fq_coddel", "did you mean \"fq_codel\"?"]),
        (&["--queue", "fifo,codel", "--", "true"], &["--queue", "not name exactly one queue"]),
        (&["--down-queue", "fifo,codel", "--", "true"], &["--down-queue", "not name exactly one queue"]),
        (&["--queue", "fifo:depth=3p", "--", "true"], &["depth", "limit"]),
        (&["--rate", "20", "--", "true"], &["--rate", "20mbit"]),
        (&["--up", "0mbit", "--", "true"], &["rate"]),
        (&["--down", "20mbps", "--", "true"], &["--down", "20mbit"]),
        (&["--up", "trace:nosuch.trace", "--", "true"], &["--up", "nosuch.trace", "No such file"]),
        (&["--rate", "trace:bad.trace", "--", "true"], &["bad.trace:2", "not a delivery opportunity; allowed"]),
        (&["--rtt", "20", "--", "true"], &["--rtt", "5ms"]),
        (&["--rtt", "20ms", "--jitter", "11ms", "--", "true"], &["--jitter", "11ms", "10ms", "half of --rtt"]),
        (&["--loss", "1", "--", "true"], &["--loss", "at least 0 and less than 1"]),
        (&["--loss", "-0.1", "--", "true"], &["--loss", "at least 0 and less than 1"]),
        (&["--loss", "nan", "--", "true"], &["--loss", "at least 0 and less than 1"]),
        (&["--watch"], &["--watch", "interactive", "-- COMMAND"]),
        (&["--mtu", "1279", "--", "true"], &["--mtu", "1280 to 65535"]),
        (&["--mtu", "65536", "--", "true"], &["--mtu", "1280 to 65535"]),
        (&["--peer", "\"iperf3 -s", "--", "true"], &["--peer", "quotes in pairs"]),
        (&["--peer", "", "--", "true"], &["--peer", "names no program"]),
        (&["--peer", "iperf3 -s {pear}", "--", "true"], &["--peer", "{pear}", "{peer}"]),
        (&["--seed", "-1", "--", "true"], &["--seed", "0 to"]),
        (&["true"], &["true", "--"]),
    ];
    for (args, expected) in table {
        refused(&place, &[&["shell"], *args].concat(), expected);
    }
    assert!(!place.path("narrows-out").exists());
}
