//! Parts of a sender that every transport needs beside a congestion controller.
//!
//! - `delivery`: delivery-rate samples.
//! - `pacer`: when the next packet may leave.
//! - `prr`: the window during recovery.
pub mod delivery;
pub mod pacer;
pub mod prr;
