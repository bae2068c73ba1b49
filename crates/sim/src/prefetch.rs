//! Asking for memory: the processor for what will be needed soon, the system for large pages.
//!
//! With thousands of flows every event begins with cache misses. A plain early read would not do: the processor waits for
//! it before it retires anything later. This is the one place with `unsafe` in the crate, because neither hint has a safe
//! form; neither reads or changes a byte.

use core::mem::MaybeUninit;
use core::ops::Range;
use narrows_core::pool::Load;

/// Starts to load a value, all of its cache lines.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_part(value, 0..size_of::<T>());
}

/// Starts to load some bytes of a value. Where they lie must be known without looking into it: which variant an enum is
/// could be the first cache miss.
#[inline]
pub(crate) fn prefetch_part<T>(value: &T, bytes: Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = core::ptr::from_ref(value).cast::<i8>();
        let load = |at: usize| {
            #[expect(unsafe_code, reason = "a hint: nothing is read, whatever the address")]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at));
            }
        };
        // Where the lines begin is known for what is aligned to them; else the last byte may be in one more.
        let aligned = align_of::<T>() >= LINE;
        let mut at = if aligned { bytes.start / LINE * LINE } else { bytes.start };
        while at < bytes.end {
            load(at);
            at += LINE;
        }
        if !aligned && bytes.len() > SMALL {
            load(bytes.end - 1);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, bytes);
}

/// The same for what a queue asks for.
pub(crate) struct Prefetch;

impl Load for Prefetch {
    #[inline]
    fn load<T>(&self, value: &T) {
        prefetch(value);
    }
}

/// Has memory that is about to be filled lie in large pages, where the system does that for those who ask: where hundreds
/// of megabytes are used at random, finding a page costs as much as reading from it.
#[cfg(target_os = "linux")]
pub(crate) fn in_large_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let bytes = memory.as_mut_ptr_range();
    let (start, end) = (bytes.start.cast::<u8>(), bytes.end.cast::<u8>());
    let skip = start.align_offset(LARGE_PAGE);
    let len = (end.addr() - start.addr()).saturating_sub(skip) / LARGE_PAGE * LARGE_PAGE;
    if len > 0 {
        // A refusal leaves everything as it was.
        #[expect(unsafe_code, reason = "a hint about whole pages inside the slice: no byte changes")]
        let _ = unsafe { libc::madvise(start.wrapping_add(skip).cast(), len, libc::MADV_HUGEPAGE) };
    }
}

/// Elsewhere the system knows best.
#[cfg(not(target_os = "linux"))]
pub(crate) fn in_large_pages<T>(_memory: &mut [MaybeUninit<T>]) {}

/// Bytes in a large page, on most machines; where it is more, less memory lies in them.
#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;
/// Bytes in a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;
/// Bytes that lie in one line, from an allocator that aligns to as many.
#[cfg(target_arch = "x86_64")]
const SMALL: usize = 16;
