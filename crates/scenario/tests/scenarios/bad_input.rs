//! Every way to get a scenario wrong, and the one message that it gives: place, line, what is allowed.
mod cases;

use cases::CASES;
use narrows_core::congestion::ControllerConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_scenario::keys::{self, TableSpec};
use narrows_scenario::{NoTraces, Scenario, Traces};

/// A scenario with nothing wrong; each case replaces one piece of it.
const GOOD: &str = r#"name = "base"
duration = "60s"
warmup = "5s"
seed = 1

[record]
interval = "10ms"
flows = 8

[[hop]]
name = "bottleneck"
rate = "100mbit"
delay = "1ms"
queue = { kind = "fifo", limit = "100p" }
overhead = "7B"
loss = 0.01
release = "start"
burst = "3KB"

[[hop]]
name = "acks"
rate = "10mbit"
queue = "fifo"

[[flow]]
name = "bulk"
count = 2
controller = "new_reno"
traffic = "bulk"
rtt = "100ms"
route = ["bottleneck"]
back = ["acks"]
start = "0s"
stop = "50s"
transport = { kind = "tcp", initial_window = 3 }
"#;

#[test]
fn nothing_is_wrong_with_the_base() {
    Scenario::parse(GOOD, "S.toml", &NoTraces).unwrap();
}

#[test]
fn each_mistake_has_its_message() {
    let wrong: String = CASES.iter().filter_map(|(old, new, expected)| wrong(old, new, expected)).collect();
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Rates and delays that change have the same steps, and the same mistakes.
#[test]
fn each_mistake_in_a_step_has_its_message() {
    let mut all = String::new();
    // The key, its value in the base and the line where that is; a value for each step; the value in messages; another key.
    for (key, base, line, [first, second, third], example, other) in [
        ("delay", "1ms", 13, ["1ms", "2ms", "3ms"], "10ms", "rate"),
        ("rate", "10mbit", 22, ["1mbit", "2mbit", "3mbit"], "20mbit", "speed"),
    ] {
        let step = |at: &str, value: &str| format!("{{ at = \"{at}\", {key} = \"{value}\" }}");
        let (zero, five) = (step("0s", first), step("5s", second));
        for (value, at_line, message) in [
            ("[]".to_owned(), line, format!("{key} has no steps; allowed: at least {}", step("0s", example))),
            (
                format!("[{}]", step("1s", first)),
                line,
                format!("the first step of {key} is at \"1s\"; allowed: \"0s\""),
            ),
            (
                format!("[\n  {zero},\n  {five},\n  {},\n]", step("5s", third)),
                line + 3,
                "at cannot be \"5s\" after \"5s\"; allowed: times that increase".to_owned(),
            ),
            (
                format!("[\n  {zero},\n  {five},\n  {},\n]", step("4s", third)),
                line + 3,
                "at cannot be \"4s\" after \"5s\"; allowed: times that increase".to_owned(),
            ),
            (
                format!("[{{ at = \"0s\", {other} = \"{first}\" }}]"),
                line,
                format!("unknown key \"{other}\" in this step of {key}; allowed: at, {key}"),
            ),
            (
                format!("[\"{first}\"]"),
                line,
                format!("{key} in [[hop]] cannot be \"{first}\"; allowed: {}", step("0s", example)),
            ),
        ] {
            let (old, new) = (format!("{key} = \"{base}\""), format!("{key} = {value}"));
            all.extend(wrong(&old, &new, &format!("S.toml:{at_line}: {message}")));
        }
    }
    assert!(all.is_empty(), "\n{all}");
}

/// A source of traces that has none.
struct Nowhere;

impl Traces for Nowhere {
    fn text(&self, _: &str) -> Result<String, String> {
        Err("no such file".into())
    }

    fn place(&self, name: &str) -> String {
        format!("/nowhere/{name}")
    }
}

/// What is wrong if the base with `new` for `old` is not refused with this message.
fn wrong(old: &str, new: &str, expected: &str) -> Option<String> {
    assert_eq!(GOOD.matches(old).count(), 1, "{old:?} stands once in the base");
    let text = GOOD.replace(old, new);
    let expected = expected
        .replace("QUEUES", &QueueConfig::NAMES.join(", "))
        .replace("CONTROLLERS", &ControllerConfig::NAMES.join(", "));
    let names = |table: &TableSpec| table.keys.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    let expected = keys::tables()
        .iter()
        .fold(expected, |text, table| text.replace(&format!("KEYS({})", table.name), &names(table)));
    let got = match Scenario::parse(&text, "S.toml", &Nowhere) {
        Ok(_) => "it was accepted".to_owned(),
        Err(error) => error.to_string(),
    };
    (got != expected).then(|| format!("{old} -> {new}\n  expected {expected}\n  got      {got}\n"))
}

#[test]
fn mistakes_about_detectors() {
    let message = |flow: &str| {
        let text = format!(
            "duration = \"1s\"\n[[hop]]\nname = \"a\"\nrate = \"1mbit\"\nqueue = \"fq\"\n\
             [[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [\"a\"]\n{flow}"
        );
        Scenario::parse(&text, "S.toml", &NoTraces).map(|_| ()).map_err(|error| error.to_string())
    };
    let controllers = "new_reno | cubic | delay | vegas | prague | dctcp | vivace | allegro | copa | bbr | bbr3";
    let cases = [
        (r#"controller = { kind = "tonopah", detector = "sequential:error=0.01" }"#, Ok(())),
        (
            r#"controller = { kind = "tonopah", detector = "share:ct=0.5" }"#,
            Err("S.toml:10: detector in controller \"tonopah\" cannot be \"share:ct=0.5\"; allowed: parameters of share: \
                 dominant, cut, silent, intervals, shortest, longest, attribution, fresh, avoidance, waiting".to_owned()),
        ),
        (
            r#"controller = { kind = "tonopah", detector = "share:cut=2" }"#,
            Err("S.toml:10: detector in controller \"tonopah\" cannot be \"share:cut=2\"; allowed: cut of share: \
                 0.5 to 0.9".to_owned()),
        ),
        (
            r#"controller = { kind = "tonopah", on = "startup" }"#,
            Err(format!("S.toml:10: on in controller \"tonopah\" cannot be \"startup\"; allowed: {controllers}; with \
                 parameters: \"NAME:KEY=VALUE;KEY=VALUE\"")),
        ),
        (
            "controller = \"tonopah\"\ntransport = \"tcp\"",
            Err("S.toml:10: controller \"tonopah\" sends over two subflows; allowed: transport \"quic\"".to_owned()),
        ),
        (
            "subflow_route = [\"a\"]",
            Err("S.toml:10: subflow_route is for controllers that send over two subflows".to_owned()),
        ),
    ];
    for (flow, expected) in cases {
        assert_eq!(message(flow), expected, "{flow}");
    }
}
