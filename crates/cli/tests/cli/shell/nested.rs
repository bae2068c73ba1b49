//! Nested shells, and shells beside each other.
use super::{Running, echo, figure, give, is_root, meet, round_trip, summary, take};
use crate::support::Place;
use std::time::Duration;

#[test]
fn delays_add_up_in_a_shell_in_a_shell_in_a_shell() {
    if !is_root() {
        return;
    }
    let place = Place::new("shell-nested");
    let (port, trip) = meet(round_trip);
    let narrows = env!("CARGO_BIN_EXE_narrows");
    let innermost = echo("$OUTERMOST", port);
    let script = format!(
        "export OUTERMOST=$NARROWS_PEER; {narrows} shell --rtt 30ms --out second -- \
         {narrows} shell --rtt 40ms --out third -- bash -c '{innermost}'"
    );
    Running::shell(&place, "first", &["--rtt", "20ms"], &script).ends().ok();
    let trip = trip.join().expect("it was met").0;
    assert!(trip >= Duration::from_millis(20 + 30 + 40), "{trip:?}");
    // One connection with the same 5-tuple in all three results, because no addresses are translated.
    let tuples = |folder: &str| -> Vec<String> {
        let summary = summary(&place, folder);
        let flows = summary["flows"].as_array().expect("flows").iter();
        flows
            .filter_map(|flow| flow["five_tuple"].as_str())
            .filter(|tuple| tuple.starts_with("tcp"))
            .map(str::to_owned)
            .collect()
    };
    let first = tuples("first");
    assert_eq!(first.len(), 2, "one each way: {first:?}");
    assert_eq!((tuples("second"), tuples("third")), (first.clone(), first));
}

#[test]
fn shells_beside_each_other_do_not_meet() {
    if !is_root() {
        return;
    }
    let place = Place::new("shell-beside");
    let (port, taken) = meet(take(250_000));
    let quiet = Running::shell(&place, "quiet", &["--up", "1mbit"], "echo $NARROWS_PEER; exec sleep 30");
    let there = quiet.lines(1);
    let script = format!("echo $NARROWS_PEER; {}", give("{peer}", port, 250_000));
    let busy = Running::shell(&place, "busy", &["--up", "4mbit", "--rtt", "10ms"], &script).ends().ok();
    taken.join().expect("it was met");
    quiet.signal(rustix::process::Signal::INT);
    assert_eq!(quiet.ends().code, Some(130));
    assert_ne!(busy.stdout.lines().next(), there.first().map(String::as_str), "each has addresses of its own");
    let packets = |folder: &str| figure(&summary(&place, folder)["hops"][0]["packets"]);
    // 250 000 bytes in segments of at most 1460.
    assert!(packets("busy") >= 172.0);
    assert_eq!(packets("quiet"), 0.0);
}
