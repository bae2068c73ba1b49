//! Threads that keep times go before those that do not.
use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;

/// The highest there is; a thread that sleeps nearly all the time takes it from nobody.
const FIRST: i32 = -20;

/// The calling thread is woken as exactly as the system allows: at the nanosecond that it asks for, which is 50 µs later otherwise,
/// and before what else is to run. Both are wishes. Whoever may not have the second (an ordinary user) is as late as
/// the load makes it, and the results say so.
pub(crate) fn keep_times() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    // In Linux this is the thread's, not the process's.
    let _ = setpriority_process(None, FIRST);
}
