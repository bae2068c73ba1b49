//! Values beside a file: `hop.rate=5mbit`.
use narrows_core::{Rate, Span};
use narrows_scenario::settings::settings;
use narrows_scenario::{Expectation, NoTraces, RateSpec, Rtt, Scenario, ScenarioError, Setting};
use proptest::prelude::*;

const FILE: &str = r#"
name = "two"
duration = "20s"

[[hop]]
name = "first"
rate = "100mbit"
queue = "fifo"

[[hop]]
name = "second.slow"
rate = "20mbit"
queue = { kind = "fq_codel", target = "10ms" }

[[flow]]
name = "bulk"
rtt = "40ms"
route = ["first", "second.slow"]

[[flow]]
name = "call"
traffic = { kind = "cbr", rate = "100kbit" }
rtt = "20ms"
route = ["second.slow"]
"#;

fn parsed(sets: &[&str]) -> Result<Scenario, ScenarioError> {
    let all: Result<Vec<Vec<Setting>>, ScenarioError> = sets.iter().map(|text| settings("--set", text)).collect();
    Scenario::parse_with(FILE, "two.toml", &all?.concat(), &NoTraces)
}

fn set(sets: &[&str]) -> Scenario {
    parsed(sets).unwrap_or_else(|error| panic!("{sets:?}: {error}"))
}

fn refused(sets: &[&str]) -> String {
    parsed(sets).expect_err("it is refused").to_string()
}

#[test]
fn a_path_names_every_hop_or_one() {
    let rates = |s: &Scenario| s.hops.iter().map(|hop| hop.rate.clone()).collect::<Vec<_>>();
    let [five, hundred] = [5, 100].map(|mbit| RateSpec::constant(Rate::mbit(mbit)));
    assert_eq!(rates(&set(&["hop.rate=5mbit"])), [five.clone(), five.clone()]);
    assert_eq!(rates(&set(&["hop.second.slow.rate=5mbit"])), [hundred.clone(), five.clone()]);
    assert_eq!(rates(&set(&["second.slow.rate = 5mbit"])), [hundred, five]);
    let rtts = |s: &Scenario| s.flows.iter().map(|flow| flow.rtt).collect::<Vec<_>>();
    assert_eq!(rtts(&set(&["bulk.rtt=80ms"])), [80, 20].map(|ms| Rtt::Fixed(Span::ms(ms))));
    // What a setting gives is what the file would say.
    assert_eq!(set(&["duration=30s", "flow.bulk.rtt=40ms"]), parse(&FILE.replace("20s", "30s")));
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "two.toml", &NoTraces).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn defaults_follow_a_setting() {
    let longer = set(&["duration=50s"]);
    assert_eq!(longer.flows[0].stop.since(narrows_core::Time::ZERO), Span::s(50), "a flow lasts as long as the run");
    assert_eq!(set(&["record.interval=1s"]).record.interval, Some(Span::s(1)));
}

#[test]
fn a_parameter_keeps_the_others() {
    let queues = |s: &Scenario| s.hops.iter().map(|hop| hop.queue.to_string()).collect::<Vec<_>>();
    assert_eq!(queues(&set(&["first.queue.limit=50p"])), ["fifo:limit=50p", "fq_codel:target=10ms"]);
    assert_eq!(queues(&set(&["second.slow.queue.flows=64"])), ["fifo", "fq_codel:flows=64,target=10ms"]);
    assert_eq!(queues(&set(&["hop.queue=cake"])), ["cake", "cake"]);
    // A queue and a parameter of it, in either order.
    for sets in [["hop.queue=codel", "hop.queue.target=7ms"], ["hop.queue.target=7ms", "hop.queue=codel"]] {
        assert_eq!(queues(&set(&sets)), ["codel:target=7ms", "codel:target=7ms"]);
    }
}

#[test]
fn a_list_has_a_value_at_each_comma_of_its_own() {
    let texts = |text: &str| settings("--set", text).unwrap().into_iter().map(|s| s.text).collect::<Vec<_>>();
    assert_eq!(texts("hop.rate=5mbit, 20mbit"), ["5mbit", "20mbit"]);
    assert_eq!(
        texts("hop.queue=fifo,fq_codel:target=3ms,ecn=false,sfq"),
        ["fifo", "fq_codel:target=3ms,ecn=false", "sfq"]
    );
    assert_eq!(texts("hop.queue=pfifo limit 9,fq-codel noecn"), ["pfifo limit 9", "fq-codel noecn"]);
    assert_eq!(texts(r#"flow.rtt={ uniform = ["1ms", "2ms"] },5ms"#), [r#"{ uniform = ["1ms", "2ms"] }"#, "5ms"]);
    let queue = |text: &str| set(&[&format!("hop.queue={text}")]).hops[0].queue.to_string();
    assert_eq!(queue("fq_codel:target=3ms,ecn=false"), "fq_codel:target=3ms,ecn=false");
    assert_eq!(queue("fq-codel target 3ms noecn"), "fq_codel:target=3ms,ecn=false");
    assert_eq!(queue(r#"{ kind = "fq_codel", target = "3ms" }"#), "fq_codel:target=3ms");
}

#[test]
fn no_flows_of_a_kind_are_none() {
    let names = |s: &Scenario| s.flows.iter().map(|flow| (flow.name.clone(), flow.count)).collect::<Vec<_>>();
    assert_eq!(names(&set(&["call.count=0"])), [("bulk".to_owned(), 1)]);
    assert_eq!(names(&set(&["call.count=0", "bulk.count=3"])), [("bulk".to_owned(), 3)]);
    assert!(refused(&["flow.count=0"]).contains("no [[flow]]"));
}

#[test]
fn a_fault_is_at_its_setting() {
    for (sets, expected) in [
        (&["hop.rate=5mbt"][..], "--set hop.rate=5mbt: rate in [[hop]] cannot be \"5mbt\"; allowed:"),
        (&["hop.rate=5mbt"], "(did you mean \"5mbit\"?)"),
        (&["hop.rate="], "--set hop.rate=: no value; allowed: PATH=VALUE"),
        (&["hop.rate=5mbit,,6mbit"], "no value"),
        (&["hop.rate"], "--set: \"hop.rate\" sets nothing; allowed: PATH=VALUE"),
        (&["hop.rat=5mbit"], "\"rat\" is no hop and no key of one; allowed: a key, for every hop (name, rate,"),
        (&["hop.rat=5mbit"], "(did you mean \"rate\"?)"),
        (&["hop.frist.rate=5mbit"], "(did you mean \"first\"?)"),
        (&["hop.first.rat=5mbit"], "--set hop.first.rat=5mbit: unknown key \"rat\" of hop \"first\"; allowed:"),
        (
            &["durtion=5s"],
            "unknown key \"durtion\"; allowed: name, duration, warmup, seed, record.KEY, hop.KEY, flow.KEY",
        ),
        (&["durtion=5s"], "first, second.slow, bulk, call (did you mean \"duration\"?)"),
        (&["rate=5mbit"], "(did you mean \"hop.rate\"?)"),
        (&["hop=5mbit"], "hop is no key with a value"),
        (&["record=5mbit"], "allowed: record.interval"),
        (&["record.intervall=1s"], "--set record.intervall=1s: unknown key \"intervall\" in [record]"),
        (&["hop.queue=fq_coddle"], "--set hop.queue=fq_coddle: unknown queue \"fq_coddle\""),
        (&["first.queue.target=5ms"], "unknown key \"target\" in queue \"fifo\"; allowed: kind, limit"),
        (&["hop.rate.mean=5mbit"], "rate has one value here and no \"mean\"; allowed: rate=VALUE"),
        (&["bulk.controller.hystart=false"], "allowed: controller=NAME:PARAMETER=VALUE"),
        (&["bulk.rtt=[1"], "--set bulk.rtt=[1: not a value in TOML"),
        (&["bulk.rtt={ uniform = [\"9ms\", \"1ms\"] }"], "--set bulk.rtt={ uniform = [\"9ms\", \"1ms\"] }: rtt"),
        (&["warmup=30s"], "--set warmup=30s: a warmup of 30s leaves nothing"),
        (&["hop.loss=1.5"], "--set hop.loss=1.5: loss in [[hop]] cannot be 1.5; allowed: a share of at least 0"),
        (
            &["hop.rate=5mbit", "first.rate=6mbit"],
            "--set hop.rate=5mbit sets the same key; allowed: one value for each key",
        ),
        (&["hop.queue=fifo:limit=1p,nonsense=2"], "unknown key \"nonsense\" in queue \"fifo\""),
    ] {
        let message = refused(sets);
        assert!(message.contains(expected), "{sets:?}\n{message}\n{expected}");
    }
}

#[test]
fn a_fault_of_the_file_stays_at_its_line() {
    let text = FILE.replace("\"40ms\"", "\"40mss\"");
    let error = Scenario::parse_with(&text, "two.toml", &settings("--set", "hop.rate=5mbit").unwrap(), &NoTraces);
    assert_eq!(error.expect_err("40mss").line, Some(17));
}

proptest! {
    #[test]
    fn no_setting_makes_it_panic(path in "[a-z.]{0,12}|(hop|flow|bulk|first)\\.(queue|rate|rtt|count|name|traffic|route)(\\.[a-z]{1,6})?",
                                 value in "\\PC{0,12}|[\\[\\]{}\"'a-z0-9,:=. -]{0,16}") {
        if let Ok(all) = settings("--set", &format!("{path}={value}")) {
            for setting in all {
                let _ = Scenario::parse_with(FILE, "two.toml", &[setting], &NoTraces);
            }
        }
    }

    #[test]
    fn no_expectation_makes_it_panic(text in "\\PC{0,24}|(mean\\()?[a-z. ]{0,8}\\)? ?[<>=!]{0,3} ?[0-9a-z%.]{0,6}") {
        if let Ok(expectation) = Expectation::parse(&text) {
            prop_assert_eq!(Expectation::parse(&expectation.to_string()), Ok(expectation));
        }
    }
}
