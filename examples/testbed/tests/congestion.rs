//! smoltcp's congestion control over the testbed's network.
use narrows_testbed::adapter::smoltcp::ends;
use narrows_testbed::cases::{CASES, Verdict};
use narrows_testbed::{Rate, Span, Subject, Testbed};
use smoltcp::socket::tcp::CongestionControl;
use std::sync::Arc;

#[test]
fn cubic_uses_most_of_a_link() {
    let network = Testbed::dumbbell("20mbit", "40ms", "fifo:limit=1bdp");
    let report = network.peers("smoltcp", ends(CongestionControl::Cubic)).run(Span::s(60)).unwrap();
    assert!(report.goodput() > Rate::mbit(16), "{}", report.goodput());
    report.save("target/cubic").unwrap();
}

/// What it misses today; a test that knows it fails when that changes, either way.
const MISSES: &[&str] =
    &["cubic/deep-buffer", "cubic/joins", "cubic/long-fat", "cubic/random-loss", "cubic/slow-start-overshoot"];

#[test]
fn cubic_meets_the_cases_of_rfc_9438() {
    let ends = Arc::new(|_| ends(CongestionControl::Cubic));
    let subject = Subject::Peers { name: "smoltcp".into(), control: "cubic".into(), ends };
    for case in CASES.iter().filter(|case| case.group() == "cubic") {
        let verdicts = case.judge(&case.run(&subject), &case.reference());
        assert_eq!(verdicts.verdict == Verdict::Fails, MISSES.contains(&case.name.as_str()), "{verdicts:#?}");
    }
}
