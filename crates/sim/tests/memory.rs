//! The estimate of a run's memory, compared with an allocator's peak during the run.
use narrows_scenario::{NoTraces, Scenario};
use narrows_sim::{Simulator, Unwatched, Wanted};
use narrows_world::World as _;

// The benchmark counts allocations with the same file.
#[path = "../../../bench/src/allocator.rs"]
mod allocator;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

/// (what, duration, rate, queue, [record], flow)
type Case = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

const CASES: [Case; 8] = [
    ("one flow", "5s", "100mbit", "\"fifo\"", "", "count = 1"),
    ("1000 flows", "2s", "1gbit", "\"fq_codel\"", "", "count = 1000"),
    ("10 000 flows", "1s", "1gbit", "\"fifo\"", "", "count = 10000"),
    ("100 000 flows", "500ms", "1gbit", "\"fq_codel\"", "", "count = 100000"),
    ("10 000 flows with BBR", "1s", "1gbit", "\"fifo\"", "", "count = 10000\ncontroller = \"bbr\""),
    ("dense series", "1s", "10mbit", "\"fifo\"", "interval = \"2us\"", "count = 1"),
    ("many series", "500ms", "100mbit", "\"fq_codel\"", "interval = \"200us\"\nflows = 200", "count = 200"),
    (
        "a long queue",
        "5s",
        "1gbit",
        "{ kind = \"fifo\", limit = \"100000p\" }",
        "",
        "traffic = { kind = \"cbr\", rate = \"2gbit\" }",
    ),
];

#[test]
fn the_estimate_is_near_what_a_run_takes_and_mostly_above() {
    for (what, duration, rate, queue, record, flow) in CASES {
        let text = format!(
            "duration = \"{duration}\"\n[record]\n{record}\n[[hop]]\nname = \"link\"\nrate = \"{rate}\"\n\
             queue = {queue}\n[[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\n{flow}\n"
        );
        let scenario = Scenario::parse(&text, "memory.toml", &NoTraces).expect("it is legal");
        let (result, usage) = allocator::measure(|| narrows_sim::run(&scenario, &Wanted::RESULT, &mut Unwatched));
        result.expect("nobody ends it early");
        let estimate = Simulator.memory(&scenario, &Wanted::RESULT);
        let factor = estimate.total() as f64 / usage.peak_bytes as f64;
        println!("{what}: {} kB, estimated {} kB: {factor:.2}", usage.peak_bytes / 1000, estimate.total() / 1000);
        // Small estimates need not be accurate.
        let is_small = usage.peak_bytes < 50_000_000 && estimate.total() < 50_000_000;
        assert!(is_small || (0.85..3.0).contains(&factor), "{what}: {usage:?}, {estimate:?}, {factor}");
    }
}
