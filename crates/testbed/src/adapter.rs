//! Published stacks as peers, each behind a feature of its name and in one file.
#[cfg(feature = "noq")]
pub mod noq;
#[cfg(any(feature = "quinn", feature = "noq"))]
mod quic;
#[cfg(feature = "quinn")]
pub mod quinn;
#[cfg(feature = "smoltcp")]
pub mod smoltcp;
#[cfg(any(feature = "quinn", feature = "noq"))]
mod tls;

use crate::Stack;

/// The stacks of the features that this crate was built with.
pub fn stacks() -> Vec<Stack> {
    #[allow(unused_mut, reason = "without a feature there is none")]
    let mut all = Vec::new();
    #[cfg(feature = "smoltcp")]
    all.extend(smoltcp::STACKS);
    #[cfg(feature = "quinn")]
    all.extend(quinn::STACKS);
    #[cfg(feature = "noq")]
    all.extend(noq::STACKS);
    all
}
