//! What every transport's sender needs besides a congestion controller, whatever its packets look like.
//!
//! - `delivery`: delivery-rate samples.
//! - `pacer`: when the next packet may leave.
pub mod delivery;
pub mod pacer;
