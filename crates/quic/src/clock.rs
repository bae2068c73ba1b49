//! The clock of connections, which noq reads as well.
use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "noq's clock: its events carry the same instants")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
