//! How large a scenario may be: what exceeds a limit is refused by name, what reaches it is read.
use narrows_core::{Rate, Span, Time};
use narrows_scenario::{RateSpec, Scenario, limits};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A scenario with this number of hops, and a flow over all of them.
fn long(hops: usize) -> String {
    let (mut text, mut route) = (String::new(), String::new());
    for n in 0..hops {
        let _ = writeln!(text, "[[hop]]\nname = \"h{n}\"\nrate = \"1gbit\"\nqueue = \"fifo\"");
        let _ = write!(route, "\"h{n}\", ");
    }
    text + &format!("[[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [{route}]\n")
}

fn small() -> Scenario {
    parse(&long(1)).expect("it is legal")
}

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, "S.toml", Path::new("")).map_err(|error| error.to_string())
}

fn refused(scenario: &Scenario) -> String {
    scenario.validate().expect_err("it is too large").to_string()
}

fn place(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("limits");
    fs::create_dir_all(&dir).expect("a folder for the test");
    dir.join(name)
}

#[test]
fn as_many_hops_as_a_packet_can_name_are_read_and_one_more_is_refused() {
    let most = parse(&long(limits::HOPS)).expect("as many as are allowed");
    assert_eq!(most.flows[0].route.last(), Some(&(limits::HOPS - 1)));
    // Four lines each: the line of the first that is too many.
    let line = 4 * limits::HOPS + 2;
    let message = format!("S.toml:{line}: 65537 hops; allowed: at most 65536");
    assert_eq!(parse(&long(limits::HOPS + 1)).err(), Some(message));
}

#[test]
fn a_message_lists_some_of_many_hops() {
    let text = long(1000).replace("route = [\"h0\", ", "route = [\"h1000\", ");
    let message = parse(&text).expect_err("there is no such hop");
    assert!(message.contains("\"h19\" and 980 more (did you mean \"h100\"?)"), "{message}");
}

#[test]
fn too_many_flows_hosts_paths_back_and_steps_are_refused_by_name() {
    let mut flows = small();
    flows.flows = (0..2)
        .map(|n| {
            let mut flow = flows.flows[0].clone();
            (flow.name, flow.count) = (format!("f{n}"), 5_000_001);
            flow
        })
        .collect();
    assert_eq!(refused(&flows), "flow \"f1\": 10000002 flows in all; allowed: at most 10000000");

    let two_ways = "controller = \"tonopah\"\nsubflow_route = [\"h0\"]\ncount = 9_000_000\nroute = [\"h0\"";
    let message = parse(&long(1).replace("route = [\"h0\"", two_ways)).expect_err("they are too many");
    let expected = "18000000 paths back to senders, two for each flow with a subflow_route; allowed: at most 16777216";
    assert!(message.ends_with(expected), "{message}");

    let mut hosts = small();
    let flow = hosts.flows[0].clone();
    hosts.flows = (0..limits::HOSTS)
        .map(|n| {
            let mut flow = flow.clone();
            flow.name = format!("f{n}");
            flow.ends.from = format!("host{n}");
            flow
        })
        .collect();
    assert_eq!(refused(&hosts), "flow \"f65535\": more than 65536 hosts; allowed: at most 65536");

    let mut steps = small();
    let step = |n: usize| (Time::ZERO + Span::us(n as u64), Rate::mbit(1 + n as u64 % 2));
    steps.hops[0].rate = RateSpec::Schedule((0..=limits::STEPS).map(step).collect());
    assert_eq!(refused(&steps), "hop \"h0\": 1000001 steps of rate; allowed: at most 1000000");
}

#[test]
fn what_might_never_end_is_not_read() {
    let told = |path: &Path| Scenario::load(path).expect_err("it is no scenario").message;
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
    let scenario = Scenario::load(place("huge.toml")).expect_err("it is too long").message;
    assert_eq!(scenario, "cannot read the scenario: longer than 67108864 bytes, which is the limit");
    let text = long(1).replace("\"1gbit\"", "{ trace = \"huge.mahi\" }");
    let trace = Scenario::parse(&text, "S.toml", &place("")).expect_err("its trace is too long").message;
    assert!(trace.ends_with("longer than 268435456 bytes, which is the limit"), "{trace}");
}
