//! Parts of a sender that every transport needs beside a congestion controller.
//!
//! - `delivery`: delivery-rate samples.
//! - `pacer`: when the next packet may leave.
//! - `prr`: the window during recovery; `rate_halving`: how it was before that.
//! - `rtt`, `packetwise`: for transports whose acknowledgments name single packets, as QUIC's do.
pub mod delivery;
pub mod pacer;
pub mod packetwise;
pub mod prr;
pub mod rate_halving;
pub mod rtt;
