//! What detectors share.
pub mod alternation;
pub mod ramp;
