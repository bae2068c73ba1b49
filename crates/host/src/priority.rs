//! Real-time priority for threads that have to wake on time.
//!
//! A thread that may not have it (an ordinary user's) runs as late as the machine's load makes it, and the results say how late
//! that was. An ordinary priority is not enough: whatever its value, a thread may have to wait some milliseconds until the
//! running one has used up its slice. The kernel reserves a share of each CPU for ordinary threads.
use crate::sys::run_first;
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;

/// The work of a thread, which decides its priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// It has no deadlines, or it is always busy and never sleeps.
    Ordinary,
    /// It sends for applications at their times.
    Sending,
    /// It receives for applications. On a processor that both share it does not wait for those that send: the kernel may leave acknowledgments
    /// to the thread that reads.
    Receiving,
    /// It carries packets, also those of other processes.
    Packets,
}

/// Makes the calling thread wake exactly on time (Linux lets it sleep up to 50 µs longer by default) and, unless its work is
/// ordinary, run before all ordinary threads.
pub fn keep_times(work: Work) {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = match work {
        Work::Ordinary => Ok(()),
        Work::Sending => run_first(1),
        Work::Receiving => run_first(2),
        Work::Packets => run_first(3),
    };
}
