//! A constant rate.
use super::RateController;
use crate::rate::{Bytes, Rate};
use crate::time::Span;

params! {
    /// Parameters of a constant rate.
    pub struct FixedParams {
        /// The shaper's rate.
        pub rate: Rate = Rate::mbit(20), from Rate::kbit(8), to Rate::gbit(1000);
        /// Size of the link's own buffer.
        pub buffer: Bytes = Bytes(1_500_000), from Bytes(1514), to Bytes(1_000_000_000);
    }
}

/// The rate.
pub struct Fixed(Rate);

impl RateController for Fixed {
    type Params = FixedParams;

    fn buffer(params: &FixedParams) -> Bytes {
        params.buffer
    }

    fn new(params: &FixedParams) -> Fixed {
        Fixed(params.rate)
    }

    fn rate(&self) -> Rate {
        self.0
    }

    fn probes_every(&self) -> Option<Span> {
        None
    }
}
