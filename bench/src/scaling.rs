//! A grid of runs on one thread and on several: the gain of additional cores, and a check that the results are the same.
//!
//! Cores share caches, memory and clock. The machine's own efficiency is measured with the bare loop on as many threads and shown
//! beside the simulator's. With two hardware threads per core nothing reaches 90 %.
use crate::bare::{self, Link, Pipe};
use crate::clock::timed;
use crate::throughput::{bottleneck, cubic, digest, queue, run, scenario};
use crate::{Options, median};
use narrows_core::{Rate, Span, Time};
use narrows_scenario::{Rtt, Scenario, Start};
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The figures.
#[derive(Debug, Serialize)]
pub(crate) struct Scaling {
    /// Threads that were used.
    pub(crate) threads: usize,
    /// Runs in the grid.
    pub(crate) runs: usize,
    /// Time on one thread, s; median.
    pub(crate) one_thread_s: f64,
    /// Time on all threads, s; median.
    pub(crate) all_threads_s: f64,
    /// Speed-up ÷ threads; median over the rounds.
    pub(crate) efficiency: f64,
    /// The same for the bare loop, which shows what the machine allows.
    pub(crate) bare_efficiency: f64,
    /// The aim for the efficiency.
    pub(crate) aim: f64,
    /// Were all results the same bytes with any number of threads?
    pub(crate) equal: bool,
}

/// Runs the grid on one thread and on all, in turns.
pub(crate) fn measure(threads: usize, options: &Options) -> Result<Scaling, String> {
    let grid = grid(threads, options.divisor)?;
    let link = Link { rate: Rate::mbit(100), rtt: Span::ms(50), standing: 200 };
    let packets = 2_000_000 / options.divisor;
    let bare =
        |threads| timed(|| in_parallel(grid.len(), threads, |_| bare::run(&link, Pipe::Heap, packets).packets)).1;
    let (mut one, mut all, mut efficiency, mut bare_efficiency) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut results: Vec<Vec<Result<u64, String>>> = Vec::new();
    for _ in 0..options.rounds.min(3) {
        let mut on = |threads| {
            let (digests, wall) =
                timed(|| in_parallel(grid.len(), threads, |n| run(&grid[n], 1).map(|result| digest(&result))));
            results.push(digests);
            wall
        };
        let (serial, parallel) = (on(1), on(threads));
        one.push(serial.as_secs_f64());
        all.push(parallel.as_secs_f64());
        efficiency.push(per_thread(serial, parallel, threads));
        bare_efficiency.push(per_thread(bare(1), bare(threads), threads));
    }
    let first: Vec<u64> = results.first().cloned().unwrap_or_default().into_iter().collect::<Result<_, _>>()?;
    let equal = results.iter().all(|digests| digests.iter().zip(&first).all(|(got, first)| got.as_ref() == Ok(first)));
    Ok(Scaling {
        threads,
        runs: grid.len(),
        one_thread_s: median(one),
        all_threads_s: median(all),
        efficiency: median(efficiency),
        bare_efficiency: median(bare_efficiency),
        aim: 0.9,
        equal,
    })
}

fn per_thread(serial: Duration, parallel: Duration, threads: usize) -> f64 {
    serial.as_secs_f64() / parallel.as_secs_f64() / threads as f64
}

/// Eight runs per thread with the same number of packets: queues × numbers of flows × seeds. The longest ones come first, as in
/// the program.
fn grid(threads: usize, divisor: u64) -> Result<Vec<Scenario>, String> {
    let mut grid = Vec::new();
    for seed in 1..=2 * threads as u64 {
        for kind in ["fifo", "fq_codel"] {
            for count in [1, 10] {
                let hop = bottleneck(Rate::mbit(100), queue(kind, &[])?);
                let start = Start::Uniform(Time::ZERO, Time::from_ns(100_000_000));
                let flows = cubic(count, Rtt::Fixed(Span::ms(50)), start)?;
                grid.push(Scenario { seed, ..scenario("scaling", hop, flows, Span::s(120) / divisor) });
            }
        }
    }
    grid.sort_by_key(|scenario| Reverse(narrows_world::effort(scenario)));
    Ok(grid)
}

/// Does `count` pieces of work on `threads` threads; returns the results in order.
fn in_parallel<T: Send>(count: usize, threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return done;
            }
            done.push((n, work(n)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_from_any_number_of_threads() {
        for threads in [1, 3, 8] {
            assert_eq!(in_parallel(20, threads, |n| n * n), (0..20).map(|n| n * n).collect::<Vec<_>>());
        }
    }
}
