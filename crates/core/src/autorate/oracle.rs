//! A shaper that sees the link: a bound.
//!
//! It hands over just what the link needs to send as much as it can, at the moment at which the link takes it. Before that a packet waits in the
//! link's buffer, so that the link tries to send, and on a cable what has been requested. No shaper in front of a foreign buffer can do this.
use super::RateController;
use crate::rate::{Bytes, Rate};
use crate::time::Span;

params! {
    /// Parameters of the bound.
    pub struct OracleParams {
        /// Size of the link's own buffer.
        pub buffer: Bytes = Bytes(1_500_000), from Bytes(1514), to Bytes(1_000_000_000);
    }
}

/// The controller.
pub struct Oracle;

impl RateController for Oracle {
    type Params = OracleParams;

    fn buffer(params: &OracleParams) -> Bytes {
        params.buffer
    }

    fn new(_: &OracleParams) -> Oracle {
        Oracle
    }

    fn rate(&self) -> Rate {
        Rate::gbit(1000)
    }

    fn sees_link(&self) -> bool {
        true
    }

    fn probes_every(&self) -> Option<Span> {
        None
    }
}
