//! How often two results are found different that differ only in their seeds.
use narrows_report::{Comparison, Diff, Group, Run};
use narrows_scenario::{NoTraces, Scenario};
use narrows_sim::{Unwatched, Wanted};

/// The number of pairs of results, and of runs in a result.
const PAIRS: u64 = 60;
const RUNS: u64 = 4;

/// Figures that do not repeat each other.
const FIGURES: [&str; 4] = ["utilisation (%)", "queue mean (packets)", "sojourn p99 (ms)", "RTT mean (ms)"];

fn scenario(queue: &str, controller: &str) -> Scenario {
    let text = format!(
        "duration = \"10s\"\nwarmup = \"2s\"\n[record]\ninterval = \"1s\"\ngauges = false\n[[hop]]\nname = \"link\"\n\
         rate = \"10mbit\"\nqueue = \"{queue}\"\n[[flow]]\nname = \"f\"\ncontroller = \"{controller}\"\nrtt = \"40ms\"\n\
         route = [\"link\"]\n"
    );
    Scenario::parse(&text, "s.toml", &NoTraces).expect("it is legal").repeated()
}

/// A result whose seeds no other result has.
fn result(scenario: &Scenario, number: u64) -> Comparison {
    let run = |seed: u64| {
        let scenario = Scenario { seed, ..scenario.clone() };
        let result = narrows_sim::run(&scenario, &Wanted::RESULT, &mut Unwatched).expect("nobody ends it").result;
        Run { result, scenario: Some(scenario), scenario_text: None, events: None }
    };
    let runs = (0..RUNS).map(|n| run(1 + number * RUNS + n)).collect();
    Comparison { title: String::new(), groups: vec![Group { label: "same".into(), runs }] }
}

/// The threshold is one in twenty. Dependent runs within a result would exceed it by far: with fixed starts and RTTs, all runs of
/// a result are the same run.
#[test]
fn one_difference_in_twenty_is_more_than_chance_where_nothing_differs() {
    let (mut judged, mut told_apart) = (0, 0);
    for (queue, controller) in [("fq_codel", "cubic"), ("pie", "new_reno"), ("fifo", "bbr")] {
        let scenario = scenario(queue, controller);
        for pair in 0..PAIRS {
            let diff = Diff::between(&result(&scenario, 2 * pair), &result(&scenario, 2 * pair + 1));
            assert!(diff.contrast.conditions.is_empty() && diff.contrast.algorithms.is_empty());
            let figures = diff.sections.iter().flat_map(|section| &section.figures);
            for change in figures.filter(|change| FIGURES.contains(&change.figure.as_str())) {
                judged += u32::from(change.verdict.is_some_and(|verdict| !verdict.paired));
                told_apart += u32::from(change.is_significant() == Some(true));
            }
        }
    }
    let share = f64::from(told_apart) / f64::from(judged);
    println!("{told_apart} of {judged}: {:.1} %", 100.0 * share);
    assert!(judged >= 600, "{judged} figures were judged");
    assert!((0.01..=0.08).contains(&share), "{told_apart} of {judged} differ by more than chance");
}
