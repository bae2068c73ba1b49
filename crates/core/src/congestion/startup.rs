//! Fair-queuing detection when a flow starts, and a control chosen by the result (Bachl, Fabini, Zseby 2020).
//!
//! Two subflows send at doubling rates until both lose; then one goes on at the rate that they received together. With
//! fair queuing it uses the delay-based control, which gets its share there at a low delay. Otherwise it uses PCC with the utility of
//! the authors' code, which gets a share beside loss-based flows.
use super::parts::detecting::{Detecting, Reaction, Settings, detecting};
use super::vivace::VivaceParams;
use super::{
    Ack, CongestionController, ControllerConfig, Loss, PacketFeedback, PathHint, Reduction, SendLimits, Sent, Subflows,
    Underuse,
};
use crate::detector::DetectorConfig;
use crate::params::nested::Nested;
use crate::{Rate, Rng, Time};

params! {
    /// Parameters of the control that is chosen at start-up.
    pub struct StartupParams {
        /// The controller of a shared queue, and of an undecided measurement.
        pub shared: Nested<ControllerConfig> = Nested::new(fallback());
        /// The controller of a fair queue.
        pub fair: Nested<ControllerConfig> = Nested::new(ControllerConfig::Delay(Default::default()));
        /// The detector of fair queuing; `"startup:every=10s"` repeats the measurement.
        pub detector: Nested<DetectorConfig> = Nested::new(DetectorConfig::Startup(Default::default()));
    }
}

/// The choice at start-up.
pub struct Startup(Detecting);

impl StartupParams {
    fn settings(&self) -> Settings {
        let StartupParams { shared, fair, detector } = self.clone();
        Settings { on: shared, detector, fair: Reaction::Switch, gentle: fair, growth: None, ignores_repeats: false }
    }
}

/// PCC with the authors' utility: Mbit/s^0.9 − 11.35 · loss · Mbit/s, where loss up to 3 % counts once; steps of 5 %, 2 Mbit/s
/// at least.
fn fallback() -> ControllerConfig {
    ControllerConfig::Vivace(VivaceParams {
        latency: 0.0,
        mild_up_to: 0.03,
        bound_step: 0.0,
        floor: Rate::mbit(2),
        ..VivaceParams::default()
    })
}

detecting!(Startup, StartupParams);
