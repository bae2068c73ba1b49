//! Tonopah: any controller over two subflows, which show whether the bottleneck has fair queuing (Bachl 2022).
//!
//! In the paper the controller is New Reno, and its window is reduced by an eighth each time fair queuing is found. That happens
//! only under congestion, so it is a congestion signal that comes before a loss.
use super::parts::detecting::{Detecting, Reaction, Settings, detecting};
use super::{
    Ack, CongestionController, ControllerConfig, Loss, PacketFeedback, PathHint, Reduction, SendLimits, Sent, Subflows,
    Underuse,
};
use crate::detector::DetectorConfig;
use crate::params::nested::Nested;
use crate::{Rng, Span, Time};

params! {
    /// Tonopah's parameters.
    pub struct TonopahParams {
        /// The controller that runs over the two subflows.
        pub on: Nested<ControllerConfig> = Nested::new(ControllerConfig::NewReno(Default::default()));
        /// The detector of fair queuing.
        pub detector: Nested<DetectorConfig> = Nested::new(DetectorConfig::Share(Default::default()));
        /// The response to fair queuing: reduce the window by an eighth, switch to another controller, or nothing.
        pub fair: Reaction = Reaction::Cut;
        /// The controller that takes over with `fair = "switch"`.
        pub gentle: Nested<ControllerConfig> = Nested::new(ControllerConfig::Delay(Default::default()));
        /// If the smoothed RTT is shorter than this, the window grows more slowly in congestion avoidance, in proportion; for
        /// window-based controllers. The authors' code: 50 ms.
        pub growth: Option<Span> = None;
        /// Ignore a loss or mark that follows a recovery before the detector's next interval has begun, against RFC 9002, as the authors'
        /// code does.
        pub ignore_repeats: bool = false;
    }
}

/// Tonopah.
pub struct Tonopah(Detecting);

impl TonopahParams {
    fn settings(&self) -> Settings {
        let TonopahParams { on, detector, fair, gentle, growth, ignore_repeats: ignores_repeats } = self.clone();
        Settings { on, detector, fair, gentle, growth, ignores_repeats }
    }
}

detecting!(Tonopah, TonopahParams);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use crate::congestion::parts::testing::{MSS, ack, path};
    use crate::congestion::{ControllerConfig, LossKind};
    use crate::registry::Registered;

    /// The window after 4000 packets acknowledged in congestion avoidance, from 50 on, with this smoothed RTT.
    fn grown(on: &str, growth: Option<Span>, srtt: Span) -> u64 {
        let on = Nested::new(ControllerConfig::named(on).unwrap());
        let params = TonopahParams { on, growth, ..TonopahParams::default() };
        let mut c = Tonopah::new(&params, &path(100, true), Time::ZERO, Rng::stream(1, "tonopah"));
        let bytes = MSS * 100;
        let kind = LossKind::Loss;
        let (lost, total_lost, now) = (MSS, MSS, Time::ZERO);
        c.on_loss(&Loss { now, kind, lost, total_lost, inflight: bytes, nxt: bytes, first: true });
        assert_eq!(c.send_limits().cwnd, c.send_limits().ssthresh.unwrap());
        for n in 1..=2000 {
            c.on_ack(&Ack { srtt, ..ack(Time::ZERO + Span::us(500) * n, 2) });
        }
        c.send_limits().cwnd.0 / MSS.0
    }

    #[test]
    fn windows_grow_slower_on_short_paths_where_that_is_asked_for() {
        // A packet per window: the 4000 pay for 50 + 51 + … + 101 = 3926, which ends at 102; a fifth of them, 800, for
        // 50 + … + 63 = 791, which ends at 64.
        let full = Some(Span::ms(50));
        assert_eq!(grown("new_reno", None, Span::ms(10)), 102);
        assert_eq!(grown("new_reno", full, Span::ms(50)), 102);
        assert_eq!(grown("new_reno", full, Span::ms(10)), 64);
        assert!(grown("cubic", full, Span::ms(10)) < grown("cubic", None, Span::ms(10)));
    }

    /// Two CE marks at the same time; the recoveries counted, and the window after them, from 100 packets on.
    fn marked_twice(ignore_repeats: bool) -> (u32, u64) {
        let params = TonopahParams { ignore_repeats, ..TonopahParams::default() };
        let mut c = Tonopah::new(&params, &path(100, true), Time::ZERO, Rng::stream(1, "tonopah"));
        let bytes = MSS * 100;
        for _ in 0..2 {
            let (now, lost, total_lost) = (Time::ZERO, Bytes::ZERO, Bytes::ZERO);
            c.on_loss(&Loss { now, kind: LossKind::Ecn, lost, total_lost, inflight: bytes, nxt: bytes, first: true });
        }
        (c.subflows().expect("it has two").events().recoveries, c.send_limits().cwnd.0 / MSS.0)
    }

    #[test]
    fn a_mark_begins_a_recovery_and_one_that_follows_at_once_is_part_of_it() {
        assert_eq!(marked_twice(false), (1, 25), "RFC 9002: each one halves");
        assert_eq!(marked_twice(true), (1, 50), "the authors' code");
    }
}
