//! The command's packets go through the hops in both directions.
use super::{Running, allowed, echo, figure, give, is_root, meet, round_trip, summary, take};
use crate::support::Place;
use serde_json::Value;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

/// Bytes of packets that left a hop, from its utilisation.
fn carried(summary: &Value, hop: usize, bits_per_s: f64) -> f64 {
    figure(&summary["hops"][hop]["utilisation"]) * bits_per_s / 8.0 * figure(&summary["duration_s"])
}

#[test]
fn both_directions_have_the_rate_that_was_asked_for() {
    if !is_root() {
        return;
    }
    let place = Place::new("shell-rates");
    // 1 MB takes 1 s at 8 Mbit/s and half a second at 16 Mbit/s. Headers come in addition.
    let (port, met) = meet(|stream| {
        stream.read_exact(&mut vec![0; 1_000_000]).expect("what was sent");
        stream.write_all(&[b'x'; 1_000_000]).expect("the client is there");
    });
    let script =
        format!("exec 3<>/dev/tcp/{{peer}}/{port} && head -c 1000000 /dev/zero >&3 && head -c 1000000 <&3 | wc -c");
    let args = ["--up", "8mbit", "--down", "16mbit", "--rtt", "10ms"];
    let ended = Running::shell(&place, "out", &args, &script).ends().ok();
    met.join().expect("it was met");
    assert_eq!(ended.stdout.trim(), "1000000");
    let summary = summary(&place, "out");
    assert!(figure(&summary["duration_s"]) >= 1.5, "{summary}");
    for (hop, (name, rate)) in [("up", 8e6), ("down", 16e6)].into_iter().enumerate() {
        assert_eq!(summary["hops"][hop]["name"], name);
        assert!(figure(&summary["hops"][hop]["utilisation"]) <= 1.0, "{summary}");
        let carried = carried(&summary, hop, rate);
        // In addition there are headers, acknowledgments of the other direction, and retransmissions: 52 of 1500 bytes, at most
        // 52 for every segment of the other direction, and the packets that a queue of 1000 drops.
        assert!((1e6..1.4e6).contains(&carried), "{name} carried {carried} bytes: {summary}");
    }
}

#[test]
fn a_round_trip_takes_the_base_rtt_over_either_ip() {
    if !is_root() {
        return;
    }
    let place = Place::new("shell-rtt");
    for (name, peer) in [("four", "{peer}"), ("six", "$NARROWS_PEER6")] {
        if name == "six" && !std::path::Path::new("/proc/net/if_inet6").exists() {
            super::skip("there is no IPv6 here");
            continue;
        }
        let (port, trip) = meet(round_trip);
        Running::shell(&place, name, &["--rtt", "60ms"], &echo(peer, port)).ends().ok();
        let trip = trip.join().expect("it was met").0;
        assert!(trip >= Duration::from_millis(60), "{name}: {trip:?}");
        // A generous bound, for machines with several times more work than CPUs.
        assert!(trip < Duration::from_millis(260), "{name}: {trip:?}");
    }
}

#[test]
fn a_trace_is_the_rate() {
    if !is_root() {
        return;
    }
    let place = Place::new("shell-trace");
    // 1500 bytes every 10 ms: 100 kB take 67 opportunities.
    place.write("slow.trace", "10\n");
    let (port, taken) = meet(take(100_000));
    let args = ["--up", "trace:slow.trace", "--down", "100mbit", "--rtt", "2ms"];
    Running::shell(&place, "out", &args, &give("{peer}", port, 100_000)).ends().ok();
    taken.join().expect("it was met");
    assert!(figure(&summary(&place, "out")["duration_s"]) >= 0.66);
}

#[test]
fn nothing_gets_through_when_all_but_everything_is_lost() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-loss");
    // A refused connection would end it at once.
    let connect = "timeout 1 bash -c 'exec 3<>/dev/tcp/{peer}/9'";
    let with = |name: &'static str, args: &[&str]| Running::shell(&place, name, args, connect).ends();
    let (all, none) = (with("all", &["--loss", "0.999999"]), with("none", &["--loss", "0"]));
    assert_eq!((all.code, none.code), (Some(124), Some(1)), "{}{}", all.stderr, none.stderr);
    let (all, none) = (summary(&place, "all"), summary(&place, "none"));
    let packets = |summary: &Value, hop: usize| figure(&summary["hops"][hop]["packets"]);
    assert!(packets(&all, 0) >= 1.0, "{all}");
    assert_eq!(packets(&all, 0), figure(&all["hops"][0]["drops"]["by_reason"]["link_loss"]), "{all}");
    assert!(packets(&none, 0) >= 1.0 && packets(&none, 1) >= 1.0, "{none}");
}

#[test]
fn the_command_has_our_input_folder_and_variables_and_its_peer() {
    if !allowed() {
        return;
    }
    let place = Place::new("shell-surroundings");
    let script = "cat; pwd; echo $GREETING; echo {peer} $NARROWS_PEER; cat /proc/sys/net/ipv6/conf/narrows*/mtu";
    let args = ["shell", "--mtu", "9000", "--", "bash", "-c", script];
    let mut command = place.command(&args);
    command.env("GREETING", "hello there").stdin(Stdio::piped());
    let mut running = Running::start(&place, "out", command);
    running.child.stdin.take().expect("a pipe").write_all(b"typed\n").expect("it reads");
    let ended = running.ends();
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let folder = std::fs::canonicalize(place.path("")).expect("a folder");
    assert_eq!(lines[..3], ["typed", folder.to_str().expect("UTF-8"), "hello there"]);
    let (peer, variable) = lines[3].split_once(' ').expect("two addresses");
    assert_eq!(peer, variable);
    assert!(peer.parse::<std::net::Ipv4Addr>().is_ok(), "{peer}");
    assert!(lines.get(4).is_none_or(|mtu| *mtu == "9000"), "{lines:?}");
}
