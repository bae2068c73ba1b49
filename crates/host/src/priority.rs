//! Threads that keep times go before those that do not.
//!
//! All of this is a wish: whoever may not have it (an ordinary user) is as late as the load makes it, and the results say how late
//! that was. Real-time priority does it and no ordinary one does: ordinary threads, whatever their priority, may have to wait
//! until the one at work has had its slice, milliseconds. The kernel leaves a share of each processor to ordinary threads.
use crate::sys::run_first;
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Nothing that has a time; or it is always busy and never sleeps.
    Ordinary,
    /// It acts for applications.
    Endpoints,
    /// It carries packets: what waits for it is not ours alone.
    Packets,
}

/// The calling thread wakes at the nanosecond that it asks for, which is 50 µs later otherwise, and has a processor at once
/// unless its work is ordinary.
pub fn keep_times(work: Work) {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = match work {
        Work::Ordinary => Ok(()),
        Work::Endpoints => run_first(1),
        Work::Packets => run_first(2),
    };
}
