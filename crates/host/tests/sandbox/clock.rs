//! The only file of these tests that reads a clock.
use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "how soon something is gone is what is tested")]
pub(super) fn now() -> Instant {
    Instant::now()
}
