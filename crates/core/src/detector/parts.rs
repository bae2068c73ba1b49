//! Parts that several detectors share.
pub mod alternation;
pub mod line;
pub mod ramp;
pub mod response;
pub mod stretch;
