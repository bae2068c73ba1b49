//! The system's allocator with counters: how often a thread allocates, and its peak memory.
//!
//! Counts are per thread, so that other threads do not affect a measurement. Bytes are as requested, without the allocator's
//! overhead and without the copy that a reallocation may hold for a moment.
#![expect(unsafe_code, reason = "GlobalAlloc can be implemented no other way; every call is handed on as it came")]
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The allocations of some work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Usage {
    /// Calls that allocated memory or enlarged an allocation.
    pub(crate) allocations: u64,
    /// Peak of the bytes held, in addition to those held before.
    pub(crate) peak_bytes: u64,
}

/// Does some work; returns its result and this thread's allocations.
pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    let (before, held) = COUNTS.with(|counts| {
        counts.peak.set(counts.held.get());
        (counts.allocations.get(), counts.held.get())
    });
    let done = work();
    let usage = COUNTS.with(|counts| Usage {
        allocations: counts.allocations.get() - before,
        peak_bytes: u64::try_from(counts.peak.get() - held).unwrap_or(0),
    });
    (done, usage)
}

/// Number of allocations of all threads so far.
#[allow(dead_code, reason = "of use to those who measure several threads")]
pub(crate) fn of_all_threads() -> u64 {
    ALL.load(Ordering::Relaxed)
}

/// The allocator, for `#[global_allocator]`.
pub(crate) struct Counting;

struct Counts {
    allocations: Cell<u64>,
    /// Signed, because a thread may free memory that another one allocated.
    held: Cell<i64>,
    peak: Cell<i64>,
}

static ALL: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // A constant without a destructor: its use allocates nothing, and it works until the thread has ended.
    static COUNTS: Counts = const { Counts { allocations: Cell::new(0), held: Cell::new(0), peak: Cell::new(0) } };
}

impl Counts {
    fn grow(&self, by: i64) {
        ALL.fetch_add(1, Ordering::Relaxed);
        self.allocations.set(self.allocations.get() + 1);
        let held = self.held.get() + by;
        self.held.set(held);
        self.peak.set(self.peak.get().max(held));
    }
}

/// A layout never exceeds `isize::MAX`.
fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

// SAFETY: each method passes its arguments to `System` unchanged and returns its result; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNTS.with(|counts| counts.grow(signed(layout.size())));
        // SAFETY: the caller fulfils the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        COUNTS.with(|counts| counts.grow(signed(layout.size())));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNTS.with(|counts| counts.grow(signed(size) - signed(layout.size())));
        // SAFETY: as above; `at` came from `System`.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        COUNTS.with(|counts| counts.held.set(counts.held.get() - signed(layout.size())));
        // SAFETY: as above; `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }
}
