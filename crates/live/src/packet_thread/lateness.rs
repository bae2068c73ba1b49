//! Timing accuracy of a direction's thread, and its CPU time.
use narrows_core::{Span, Time};
use narrows_results::summary::Timing;
use narrows_world::record::histogram::Delays;
use rustix::time::{ClockId, clock_gettime};

/// The figures of one thread since the end of the warm-up.
pub struct Lateness {
    /// How late packets were handed over.
    late: Delays,
    packets: u64,
    behind: u64,
    read: u64,
    stamped_late: u64,
    wakes: u64,
    /// The thread woke up late, so the packets that it reads now may have arrived earlier.
    woke_late: bool,
    cpu_before: Span,
    cpu: Span,
    overrun: u64,
}

/// Packets later than this are counted as behind.
const BEHIND: Span = Span::ms(1);

impl Lateness {
    /// Starts measuring the calling thread.
    pub fn start() -> Lateness {
        Lateness {
            late: Delays::new(2),
            packets: 0,
            behind: 0,
            read: 0,
            stamped_late: 0,
            wakes: 0,
            woke_late: false,
            cpu_before: cpu(),
            cpu: Span::ZERO,
            overrun: 0,
        }
    }

    /// The thread woke up at `now`; it wanted to wake at `wanted` at the latest.
    pub fn woke(&mut self, wanted: Time, now: Time) {
        self.wakes += 1;
        self.woke_late = now.since(wanted) > BEHIND;
    }

    /// A packet was read.
    pub fn read(&mut self) {
        self.read += 1;
        self.stamped_late += u64::from(self.woke_late);
    }

    /// A packet was handed over this late.
    pub fn handed_over(&mut self, late: Span) {
        self.late.record(late);
        self.packets += 1;
        self.behind += u64::from(late > BEHIND);
    }

    /// The thread ends.
    pub fn stop(&mut self) {
        self.cpu = cpu() - self.cpu_before;
    }

    /// Counts packets that the thread's devices lost: not read in time, or not taken.
    pub const fn overran(&mut self, packets: u64) {
        self.overrun = packets;
    }

    /// The largest lateness so far.
    pub fn latest(&self) -> Span {
        self.late.longest()
    }

    /// How late packets were handed over.
    pub const fn late(&self) -> &Delays {
        &self.late
    }

    /// The combined figures of several threads.
    pub fn timing(threads: &[&Lateness]) -> Timing {
        let mut late = Delays::new(2);
        threads.iter().for_each(|thread| late.add(&thread.late));
        let sum = |count: fn(&Lateness) -> u64| threads.iter().map(|thread| count(thread)).sum::<u64>();
        let packets = sum(|thread| thread.packets);
        // Packets that a queue drops are read and not handed over.
        let share = |count: u64, of: u64| if of == 0 { 0.0 } else { count as f64 / of as f64 };
        Timing {
            packets,
            late_ms: late.quantiles_ms(),
            late_share: share(sum(|thread| thread.behind), packets),
            stamped_late_share: share(sum(|thread| thread.stamped_late), sum(|thread| thread.read)),
            overrun_packets: sum(|thread| thread.overrun),
            unsent_packets: 0,
            broken_connections: 0,
            wakes: sum(|thread| thread.wakes),
            cpu_s: threads.iter().map(|thread| thread.cpu.as_secs_f64()).sum(),
        }
    }
}

/// The thread's CPU time so far.
fn cpu() -> Span {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Span::s(time.tv_sec as u64) + Span::ns(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of ten packets that are read in a late wake-up a queue drops nine.
    #[test]
    fn a_share_is_of_the_packets_that_it_counts() {
        let mut lateness = Lateness::start();
        lateness.woke(Time::ZERO, Time::ZERO + Span::ms(2));
        (0..10).for_each(|_| lateness.read());
        lateness.handed_over(Span::ZERO);
        let timing = Lateness::timing(&[&lateness]);
        assert_eq!((timing.packets, timing.late_share, timing.stamped_late_share), (1, 0.0, 1.0));
    }
}
