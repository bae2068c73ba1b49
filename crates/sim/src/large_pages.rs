//! Large pages for the simulator's large arrays.
//!
//! When hundreds of megabytes are accessed at random, a page walk costs as much as the access itself. The request is `unsafe`
//! because no safe interface takes memory from an allocator; it changes no byte.
use core::mem::MaybeUninit;

/// Asks the system for large pages for memory that is not yet in use.
#[cfg(target_os = "linux")]
pub(crate) fn request<T>(memory: &mut [MaybeUninit<T>]) {
    let bytes = memory.as_mut_ptr_range();
    let (start, end) = (bytes.start.cast::<u8>(), bytes.end.cast::<u8>());
    let skip = start.align_offset(LARGE_PAGE);
    let len = (end.addr() - start.addr()).saturating_sub(skip) / LARGE_PAGE * LARGE_PAGE;
    if len > 0 {
        // If the system refuses, nothing changes.
        #[expect(unsafe_code, reason = "a hint about whole pages inside the slice: no byte changes")]
        let _ = unsafe { libc::madvise(start.wrapping_add(skip).cast(), len, libc::MADV_HUGEPAGE) };
    }
}

/// Other systems have no such request.
#[cfg(not(target_os = "linux"))]
pub(crate) fn request<T>(_memory: &mut [MaybeUninit<T>]) {}

/// Size of a large page on most machines, bytes. If it is larger, less of the memory is in large pages.
#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;
