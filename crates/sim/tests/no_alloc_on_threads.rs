//! No allocation per packet in a parallel run either, counted on all threads. This test has its own process.
use narrows_scenario::{NoTraces, Scenario};
use narrows_sim::{Unwatched, Wanted};

#[path = "../../../bench/src/allocator.rs"]
#[expect(dead_code, reason = "the other counts are per thread")]
mod allocator;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

/// A few tables, rings and batches of each thread may grow once more. One allocation per thousand packets would be a hundred and fifty.
const GROWTH: u64 = 40;

#[test]
fn threads_do_not_allocate_per_packet() {
    // With two threads the receivers are beside the network, with three beside their senders.
    [2, 3].into_iter().for_each(allocates_no_more_in_a_longer_run);
}

fn allocates_no_more_in_a_longer_run(threads: usize) {
    let run = |seconds: u64| {
        let text = format!(
            "duration = \"{seconds}s\"\n[[hop]]\nname = \"link\"\nrate = \"600mbit\"\nqueue = \"fq_codel\"\n[[flow]]\n\
             name = \"bulk\"\ncount = 300\nrtt = \"20ms\"\nroute = [\"link\"]\n\
             [record]\ninterval = \"{}ms\"\n",
            50 * seconds
        );
        let scenario = Scenario::parse(&text, "parallel.toml", &NoTraces).expect("it is legal");
        let before = allocator::of_all_threads();
        let result = narrows_sim::run(&scenario, &Wanted { threads, ..Wanted::RESULT }, &mut Unwatched)
            .expect("nobody ends it early")
            .result;
        (result.summary.cost.packets, allocator::of_all_threads() - before)
    };
    let ((packets, once), (more_packets, twice)) = (run(3), run(6));
    let extra = more_packets - packets;
    assert!(extra > 100_000, "{extra} packets show nothing");
    let grown = twice.saturating_sub(once);
    assert!(grown <= GROWTH, "{threads} threads: {grown} more allocations for {extra} more packets; {once}, {twice}");
}
