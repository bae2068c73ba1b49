//! Asking the processor for memory that will be needed soon.
//!
//! With thousands of flows every event begins with cache misses. A plain early read would not do: the processor waits for
//! it before it retires anything later. This is the one place with `unsafe` in the crate, because the instruction has no
//! safe form; it reads nothing and cannot fault.

/// Starts to load a value, all of its cache lines.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = core::ptr::from_ref(value).cast::<i8>();
        for line in 0..size_of::<T>().div_ceil(LINE) {
            #[expect(unsafe_code, reason = "a hint: the address is within `value`, and nothing is read")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Bytes in a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
