//! Parts that several detectors share.
pub mod alternation;
pub mod bottleneck;
pub mod line;
pub mod ramp;
pub mod response;
pub mod stretch;
