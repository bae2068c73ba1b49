//! Tonopah: any controller, over two subflows that show whether the bottleneck queues fairly (Bachl 2022).
//!
//! The paper's runs on New Reno and takes an eighth off the window each time fair queuing is found: found it is only when
//! there is congestion, so it serves as a signal of congestion that comes before the loss.
use super::parts::detecting::{Detecting, Reaction, Settings, detecting};
use super::{
    Ack, CongestionController, ControllerConfig, Fate, Loss, PathHint, Plan, Reduction, Sent, Split, Underuse,
};
use crate::detector::{DetectorConfig, Events, Verdict};
use crate::params::nested::Nested;
use crate::{Rng, Time};

params! {
    /// Tonopah's parameters.
    pub struct TonopahParams {
        /// The controller below.
        pub on: Nested<ControllerConfig> = Nested::new(ControllerConfig::NewReno(Default::default()));
        /// Who looks for fair queuing.
        pub detector: Nested<DetectorConfig> = Nested::new(DetectorConfig::Share(Default::default()));
        /// What follows when it is found: the window shrinks by an eighth, another controller takes over, or nothing.
        pub fair: Reaction = Reaction::Cut;
        /// Who takes over with `fair = "switch"`.
        pub gentle: Nested<ControllerConfig> = Nested::new(ControllerConfig::Delay(Default::default()));
    }
}

/// Tonopah.
pub struct Tonopah(Detecting);

impl TonopahParams {
    fn settings(&self) -> Settings {
        let TonopahParams { on, detector, fair, gentle } = self.clone();
        Settings { on, detector, fair, gentle }
    }
}

detecting!(Tonopah, TonopahParams);
