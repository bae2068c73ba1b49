//! What every transport's sender needs besides a congestion controller, whatever its packets look like.
//!
//! - `delivery`: delivery-rate samples.
//! - `pacer`: when the next packet may leave.
//! - `prr`: how the window falls during recovery.
pub mod delivery;
pub mod pacer;
pub mod prr;
