//! Repeated runs: which draws they make, and that a run's file says exactly what was run.
use narrows_core::{Span, Time};
use narrows_scenario::{NoTraces, Rtt, Scenario, Start};

fn parse(hop: &str, flow: &str) -> Scenario {
    let text = format!(
        "duration = \"20s\"\n[[hop]]\nname = \"a\"\nrate = \"12mbit\"\nqueue = \"fifo\"\n{hop}\n[[flow]]\nname = \"f\"\n\
         route = [\"a\"]\n{flow}\n"
    );
    Scenario::parse(&text, "example.toml", &NoTraces).expect("it is legal")
}

fn at(span: Span) -> Time {
    Time::ZERO + span
}

#[test]
fn fixed_starts_and_round_trips_are_drawn() {
    // A full-sized packet takes 1 ms at 12 Mbit/s.
    let flow = parse("", "rtt = \"200ms\"\nstart = \"3s\"").repeated().flows.remove(0);
    assert_eq!(flow.start, Start::Uniform(at(Span::s(3)), at(Span::ms(3200))));
    assert_eq!(flow.rtt, Rtt::Uniform(Span::ms(200), Span::ms(201)));
    // A hundredth of the RTT at most, and the slowest hop of the way counts.
    let flow = parse("", "rtt = \"20ms\"").repeated().flows.remove(0);
    assert_eq!(flow.rtt, Rtt::Uniform(Span::ms(20), Span::us(20_200)));
    let slow = "[[hop]]\nname = \"b\"\nrate = \"1mbit\"\nqueue = \"fifo\"";
    let mut scenario = parse(slow, "rtt = \"5s\"");
    assert_eq!(scenario.repeated().flows[0].rtt, Rtt::Uniform(Span::s(5), Span::ms(5001)));
    scenario.flows[0].route = vec![0, 1];
    assert_eq!(scenario.repeated().flows[0].rtt, Rtt::Uniform(Span::s(5), Span::ms(5012)));
}

#[test]
fn what_the_file_draws_is_left_alone() {
    let written = parse("", "rtt = { uniform = [\"10ms\", \"80ms\"] }\nstart = { uniform = [\"1s\", \"9s\"] }");
    assert_eq!(written.repeated(), written);
    let once = parse("", "rtt = \"50ms\"").repeated();
    assert_eq!(once.repeated(), once);
}

#[test]
fn repeating_keeps_a_scenario_legal_at_the_bounds() {
    for flow in [
        "rtt = \"1h\"\nstart = \"0s\"",
        "rtt = \"1h\"\nstart = \"19999999us\"",
        "rtt = \"1us\"\nstart = \"5s\"\nstop = \"5000000001ns\"",
        "rtt = \"10s\"\nstart = \"5s\"\nstop = \"90s\"",
    ] {
        let repeated = parse("", flow).repeated();
        repeated.validate().unwrap_or_else(|error| panic!("{flow}: {error}"));
        let read = Scenario::parse(&repeated.to_toml(), "example.toml", &NoTraces).expect(flow);
        assert_eq!(read, repeated, "{flow}");
    }
}

#[test]
fn what_was_asked_for_can_be_read_off_a_repeated_scenario() {
    for flow in
        ["rtt = \"50ms\"", "rtt = \"9s\"\nstart = \"1s\"\nstop = \"2s\"", "rtt = { uniform = [\"1ms\", \"9ms\"] }"]
    {
        let written = parse("", flow);
        assert_eq!(written.repeated().undrawn(), written, "{flow}");
        assert_eq!(written.undrawn(), written, "{flow}");
    }
}

#[test]
fn programs_start_when_the_file_says() {
    let flow = parse("", "rtt = \"50ms\"\ncommand = \"iperf3 -c {peer}\"").repeated().flows.remove(0);
    assert_eq!(flow.start, Start::At(Time::ZERO));
}
