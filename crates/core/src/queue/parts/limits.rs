//! The ranges of parameters that several disciplines have.
use crate::params::Packets;
use crate::rate::Bytes;

/// Largest limit accepted; far above any real buffer.
pub(crate) const MAX_LIMIT: Packets = Packets(10_000_000);
/// Most buckets; Linux stops at 65 536.
pub(crate) const MAX_FLOWS: u32 = 1 << 24;
/// Linux raises smaller quanta to this.
pub(crate) const MIN_QUANTUM: Bytes = Bytes(256);
/// Linux refuses larger ones.
pub(crate) const MAX_QUANTUM: Bytes = Bytes(1 << 20);
