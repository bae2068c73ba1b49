//! Claims of a paper against figures made up by hand: an order, a likeness, a bound, and what counts in the score.
use crate::support::{Base, result};
use narrows_study::{Gaps, Report, Rule, Study};

const REST: &str = r#"[[axis]]
name = "rate"
values = ["1mbit", "2mbit"]
[[axis]]
name = "queue"
values = ["fifo", "fq", "codel"]

[[metric]]
name = "use"
unit = "%"
decimals = 1
summary = "hop.link.utilisation"
[[metric]]
name = "twice"
unit = "%"
decimals = 1
scale = 2.0
summary = "hop.link.utilisation"
[[metric]]
name = "delay"
unit = "ms"
series = { source = "flow:bulk", metric = "rtt_ms", take = "mean" }

"#;

/// The study's file.
fn file() -> String {
    Base { figure: "figure 2", runs: [1, 1], ..Base::default() }.study(REST)
}

/// What a study with this claim alone comes to, for the utilisation of `1mbit`'s three queues and `2mbit`'s.
fn verdict(claim: &str, utilisations: [f64; 6]) -> (bool, String) {
    let study = Study::parse(&format!("{}[[claim]]\nsays = \"so it is\"\n{claim}", file()), "test.toml");
    let study = study.unwrap_or_else(|error| panic!("{error}"));
    with_report(&study, utilisations, |report, rule| {
        let score = report.score(rule, &Gaps::default());
        let verdict = report.claims(rule).remove(0);
        assert_eq!((score.published, score.met), (1, usize::from(verdict.met)), "one point for one claim");
        let missed = format!("figure 2: so it is; {}", verdict.measured);
        let said: Vec<String> = score.missed.into_iter().map(|missed| missed.what).collect();
        assert_eq!(said, if verdict.met { vec![] } else { vec![missed] });
        assert_eq!(report.sheet(1, Some(rule)).claims, [(format!("so it is; {}", verdict.measured), verdict.met)]);
        (verdict.met, verdict.measured)
    })
}

fn with_report<T>(study: &Study, utilisations: [f64; 6], then: impl FnOnce(&Report<'_>, &Rule) -> T) -> T {
    let cells = study.cells(narrows_study::Level::Quick).expect("cells");
    let values: Vec<_> = utilisations.iter().map(|&u| vec![study.measure(&result(u))]).collect();
    let drawn = vec![Vec::new(); cells.len()];
    // Within 5 %, at least a point.
    let rule = narrows_study::rule("cocoa").expect("it parses").expect("there is one");
    then(&study.report(&cells, &values, &drawn), &rule)
}

#[test]
fn an_order_holds_in_every_row_that_it_speaks_of() {
    let below = "at = { queue = \"fq\" }\nmetric = \"use\"\nbelow = { queue = [\"fifo\", \"codel\"] }";
    let (met, words) = verdict(below, [50.0, 40.0, 45.0, 90.0, 80.0, 85.0]);
    assert!(met, "{words}");
    assert_eq!(
        words,
        "use below that of: 1mbit fq 40.0, 1mbit fifo 50.0; 1mbit fq 40.0, 1mbit codel 45.0; \
         2mbit fq 80.0, 2mbit fifo 90.0; 2mbit fq 80.0, 2mbit codel 85.0"
    );
    let (met, words) = verdict(below, [50.0, 40.0, 45.0, 90.0, 80.0, 80.0]);
    assert!(!met, "as much is not less");
    assert_eq!(words, "use below that of: 1 of 4 are not: 2mbit fq 80.0, 2mbit codel 80.0");
    let above = below.replace("below", "above");
    assert!(verdict(&above, [39.0, 40.0, 39.0, 79.0, 80.0, 79.0]).0);
    assert!(!verdict(&above, [39.0, 40.0, 39.0, 79.0, 80.0, 81.0]).0);
}

#[test]
fn near_is_what_the_rule_calls_near() {
    let near = "at = { queue = \"codel\", rate = \"1mbit\" }\nmetric = \"use\"\nnear = { queue = \"fq\" }";
    assert!(verdict(near, [0.0, 40.0, 42.0, 0.0, 0.0, 0.0]).0);
    assert!(!verdict(near, [0.0, 40.0, 42.1, 0.0, 0.0, 0.0]).0);
    assert!(verdict(near, [0.0, 10.0, 9.0, 0.0, 0.0, 0.0]).0, "a point is near");
}

#[test]
fn a_bound_holds_in_every_row_of_its_place() {
    let bound = "at = { queue = \"fq\" }\nmetric = \"use\"\nis = \"> 40\"";
    assert!(verdict(bound, [0.0, 41.0, 0.0, 0.0, 41.0, 0.0]).0);
    assert_eq!(verdict(bound, [0.0, 41.0, 0.0, 0.0, 40.0, 0.0]).1, "use > 40: 1 of 2 are not: 2mbit fq 40.0");
    assert!(
        verdict("metric = \"use\"\nis = 40.0", [42.0, 38.0, 40.0, 41.0, 41.0, 39.0]).0,
        "everywhere, as the rule says"
    );
    assert!(!verdict("metric = \"use\"\nis = 40.0", [42.1, 38.0, 40.0, 41.0, 41.0, 39.0]).0);
}

#[test]
fn another_metric_may_be_on_the_other_side() {
    let claim = "metric = \"use\"\nbelow = {}\nthan = \"twice\"";
    assert!(verdict(claim, [1.0; 6]).0, "1 is below 2 in every row");
    let (met, words) = verdict(claim, [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!((met, &*words), (false, "use below twice: 1 of 6 are not: 2mbit codel 0.0, 0.0"));
}

#[test]
fn what_was_not_measured_is_not_met() {
    let claim =
        "at = { queue = \"fq\", rate = \"1mbit\" }\nmetric = \"use\"\nbelow = { queue = \"fifo\" }\nthan = \"delay\"";
    let (met, words) = verdict(claim, [1.0; 6]);
    assert_eq!((met, &*words), (false, "use below delay: 1mbit fq 1.0, 1mbit fifo not measured"));
    let itself = "at = { queue = \"fq\", rate = \"1mbit\" }\nmetric = \"use\"\nnear = { queue = \"fq\" }";
    assert!(!verdict(itself, [1.0; 6]).0, "a row is not near itself");
}

#[test]
fn what_is_wrong_with_a_claim_is_said() {
    let error = |claim: &str| Study::parse(&format!("{}{claim}", file()), "test.toml").expect_err(claim).to_string();
    let metric = "[[claim]]\nsays = \"s\"\nmetric = \"use\"\n";
    for (claim, says) in [
        (format!("{metric}is = \"> 1\"\nbelow = {{ queue = \"fq\" }}"), "give one of `is`, `below`, `above`, `near`"),
        (metric.to_owned(), "give one of `is`, `below`, `above`, `near`"),
        (format!("{metric}is = \"rarely\""), "\"rarely\" is no figure and no bound"),
        (format!("{metric}below = {{}}"), "a row is not compared with itself"),
        (format!("{metric}below = {{ queue = \"red\" }}"), "has no value \"red\""),
        (format!("{metric}at = {{ cue = \"fq\" }}\nis = 1"), "there is no axis \"cue\""),
        (format!("{metric}is = 1\nthan = \"twice\""), "`than` goes with"),
        (format!("{metric}near = {{}}\nthan = \"thrice\""), "there is no metric \"thrice\""),
    ] {
        assert!(error(&claim).contains(says), "{claim}: {}", error(&claim));
    }
    let unscored = file().replacen("source", "scored = false\nsource", 1) + &format!("{metric}is = 1");
    let error = Study::parse(&unscored, "test.toml").expect_err("it does not count").to_string();
    assert!(error.contains("`scored = false`"), "{error}");
}
