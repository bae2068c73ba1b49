//! No text makes the parser panic; what it accepts, it writes back as an equal scenario; what it refuses, it refuses on
//! one line.
#![no_main]
use libfuzzer_sys::fuzz_target;
use narrows_scenario::{NoTraces, Scenario, shorthand};

fuzz_target!(|text: &str| {
    // None are found, so the fuzzer cannot read the machine's files.
    let traces = &NoTraces;
    if !text.contains("trace") {
        match Scenario::parse(text, "fuzz.toml", traces) {
            Ok(scenario) => {
                let written = scenario.to_toml();
                assert_eq!(Scenario::parse(&written, "fuzz.toml", traces).as_ref(), Ok(&scenario), "{written}");
                assert!(scenario.validate().is_ok());
            }
            Err(error) => {
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
                assert!(error.line.is_some(), "{error}");
            }
        }
    }
    let _ = shorthand::queues("--queues", text);
    let _ = shorthand::flows("--flows", text);
    let _ = shorthand::rate("--rate", text);
    let _ = shorthand::span("--rtt", text);
});
