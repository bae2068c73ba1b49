//! What every transport's sender needs besides a congestion controller, whatever its packets look like.
//!
//! - `delivery`: delivery-rate samples.
pub mod delivery;
