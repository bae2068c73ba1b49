//! cake-autorate 3.2, after its documentation, defaults and script (the decisions are those of the loop of `cake-autorate.sh`); one
//! direction.
//!
//! - Several reflectors are probed in turn. A delay is half of the round trip (`fping`, the default), or what ICMP's timestamps show of the
//!   way (`tsping`). Each reflector has a baseline of its delay, which follows longer delays slowly and shorter ones at once. A delay that
//!   exceeds the baseline by a threshold is late. Bufferbloat is `bufferbloat_detection_thr` late ones among the last
//!   `bufferbloat_detection_window`.
//! - Load is high above a share of the shaper's rate, else low, or idle below an absolute rate. It is measured every 200 ms, and each answer
//!   relates it to the present rate, in whole percent; the class is chosen by that at the next measurement.
//! - With bufferbloat the rate goes down by a factor that grows with the mean delay above the baselines. With high load it goes up, the less
//!   the longer that mean is, once for each measurement of the load. Otherwise it returns to its base. Refractory periods follow
//!   decreases and steps towards the base.
//! - After a long time without load, no probes are sent until there is load again.
//!
//! Left out: changes of reflectors, and the detection of stalls, which with the defaults changes no rate. Processing takes no time here.
use super::{RateController, Reply, Shaped, scaled};
use crate::rate::{Bytes, Rate};
use crate::time::{Span, Time};

choice! {
    /// How a delay is measured.
    #[derive(Default)]
    pub enum Pinger {
        /// Half of the round trip of an ICMP echo.
        #[default]
        Fping = "fping",
        /// One way, by ICMP's timestamps.
        Tsping = "tsping",
    }
}

params! {
    /// Parameters of cake-autorate, by its names without the direction.
    pub struct CakeAutorateParams {
        /// `min_xl_shaper_rate_kbps`
        pub min: Rate = Rate::kbit(5000), from Rate::kbit(8), to Rate::gbit(1000);
        /// `base_xl_shaper_rate_kbps`
        pub base: Rate = Rate::kbit(20_000), from Rate::kbit(8), to Rate::gbit(1000);
        /// `max_xl_shaper_rate_kbps`
        pub max: Rate = Rate::kbit(80_000), from Rate::kbit(8), to Rate::gbit(1000);
        /// `xl_owd_delta_delay_thr_ms`
        pub delay_thr: Span = Span::ms(30), from Span::ms(1), to Span::s(10);
        /// `xl_avg_owd_delta_max_adjust_up_thr_ms`
        pub max_adjust_up_thr: Span = Span::ms(10), from Span::ZERO, to Span::s(10);
        /// `xl_avg_owd_delta_max_adjust_down_thr_ms`
        pub max_adjust_down_thr: Span = Span::ms(60), from Span::ZERO, to Span::s(10);
        /// `pinger_method`
        pub pinger: Pinger = Pinger::Fping;
        /// `reflector_ping_interval_s`, of each of six reflectors.
        pub ping_interval: Span = Span::ms(300), from Span::ms(6), to Span::s(60);
        /// `bufferbloat_detection_thr`, of the last six delays.
        pub detection_thr: u32 = 3, from 1, to 6;
        /// `high_load_thr`
        pub high_load_thr: f64 = 0.75, from 0.01, to 1.0;
        /// `shaper_rate_max_adjust_down_bufferbloat`
        pub max_adjust_down: f64 = 0.75, from 0.01, to 1.0;
        /// `shaper_rate_max_adjust_up_load_high`
        pub max_adjust_up: f64 = 1.04, from 1.0, to 10.0;
        /// Size of the link's own buffer.
        pub buffer: Bytes = Bytes(1_500_000), from Bytes(1514), to Bytes(1_000_000_000);
    }
}

/// `no_pingers`
const PINGERS: usize = 6;
/// `bufferbloat_detection_window`
const WINDOW: usize = 6;
/// `shaper_rate_min_adjust_down_bufferbloat`
const MIN_ADJUST_DOWN: f64 = 0.99;
/// `shaper_rate_min_adjust_up_load_high`
const MIN_ADJUST_UP: f64 = 1.0;
/// `shaper_rate_adjust_down_load_low` and `…_up_load_low`
const TO_BASE: [f64; 2] = [0.99, 1.01];
/// A baseline before the first answer, seconds.
const FIRST_BASELINE: f64 = 0.1;
/// `alpha_baseline_increase` and `…_decrease`
const ALPHA_BASELINE: [f64; 2] = [0.001, 0.9];
/// `bufferbloat_refractory_period_ms`
const BUFFERBLOAT_REFRACTORY: Span = Span::ms(300);
/// `decay_refractory_period_ms`
const DECAY_REFRACTORY: Span = Span::ms(1000);
/// `connection_active_thr_kbps`
const ACTIVE: Rate = Rate::kbit(2000);
/// `sustained_idle_sleep_thr_s`
const SLEEP_AFTER: Span = Span::s(60);
/// `monitor_achieved_rates_interval_ms`
const MONITOR: Span = Span::ms(200);
/// Largest packet on the wire, by whose time thresholds are longer.
const MAX_WIRE_PACKET: Bytes = Bytes(1514);

/// The controller. Delays are in seconds.
pub struct CakeAutorate {
    p: CakeAutorateParams,
    rate: Rate,
    baselines: [f64; PINGERS],
    turn: usize,
    deltas: [f64; WINDOW],
    /// Which of these were late when they came.
    late: [bool; WINDOW],
    place: usize,
    last_bufferbloat: Time,
    last_decay: Time,
    passed: Bytes,
    achieved: Rate,
    /// Of the shaper's rate, whole percent, at the last answer.
    load_percent: f64,
    /// The class of the load.
    is_high: bool,
    /// The load was measured since the rate last went up.
    is_new: bool,
    active: Time,
    asleep: bool,
}

impl CakeAutorate {
    /// How far a value is from one bound to another, from 0 to 1.
    fn between(value: f64, from: f64, to: f64) -> f64 {
        if to > from {
            ((value - from) / (to - from)).clamp(0.0, 1.0)
        } else if value > from {
            1.0
        } else {
            0.0
        }
    }

    /// A threshold is longer by the time of the largest packet, seconds.
    fn compensated(&self, threshold: Span) -> f64 {
        (threshold + self.rate.tx_time(MAX_WIRE_PACKET).unwrap_or(Span::ZERO)).as_secs_f64()
    }

    fn adjust(&mut self, now: Time) {
        let late = self.compensated(self.p.delay_thr);
        let up_to = self.compensated(self.p.max_adjust_up_thr);
        let down_to = self.compensated(self.p.max_adjust_down_thr);
        let delays = self.late.iter().filter(|is_late| **is_late).count();
        let mean = self.deltas.iter().sum::<f64>() / WINDOW as f64;
        let has_bufferbloat = delays >= self.p.detection_thr as usize;
        let calm = now.since(self.last_bufferbloat) > BUFFERBLOAT_REFRACTORY || self.last_bufferbloat == Time::ZERO;
        if has_bufferbloat {
            if calm {
                let share = Self::between(mean, late, down_to);
                let factor = MIN_ADJUST_DOWN - share * (MIN_ADJUST_DOWN - self.p.max_adjust_down);
                self.rate = scaled(self.rate, factor);
                (self.last_bufferbloat, self.last_decay) = (now, now);
            }
        } else if self.is_high {
            if calm && self.is_new {
                let share = 1.0 - Self::between(mean, up_to, late);
                let factor = MIN_ADJUST_UP + share * (self.p.max_adjust_up - MIN_ADJUST_UP);
                self.rate = scaled(self.rate, factor);
                (self.is_new, self.last_decay) = (false, now);
            }
        } else if now.since(self.last_decay) > DECAY_REFRACTORY {
            let base = self.p.base;
            self.rate = if self.rate > base {
                scaled(self.rate, TO_BASE[0]).max(base)
            } else {
                scaled(self.rate, TO_BASE[1]).min(base)
            };
            self.last_decay = now;
        }
        self.rate = self.rate.min(self.p.max).max(self.p.min);
    }
}

impl RateController for CakeAutorate {
    type Params = CakeAutorateParams;

    fn buffer(params: &CakeAutorateParams) -> Bytes {
        params.buffer
    }

    fn new(params: &CakeAutorateParams) -> CakeAutorate {
        let zero = Time::ZERO;
        CakeAutorate {
            p: params.clone(),
            rate: params.base,
            baselines: [FIRST_BASELINE; PINGERS],
            turn: 0,
            deltas: [0.0; WINDOW],
            late: [false; WINDOW],
            place: 0,
            last_bufferbloat: zero,
            last_decay: zero,
            passed: Bytes::ZERO,
            achieved: Rate::ZERO,
            load_percent: 0.0,
            is_high: false,
            is_new: false,
            active: zero,
            asleep: false,
        }
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn probes_every(&self) -> Option<Span> {
        Some(self.p.ping_interval / PINGERS as u64)
    }

    fn probes(&self) -> bool {
        !self.asleep
    }

    fn interval(&self) -> Span {
        MONITOR
    }

    fn on_interval(&mut self, shaped: Shaped) {
        let bytes = shaped.passed.saturating_sub(self.passed);
        (self.passed, self.is_new) = (shaped.passed, true);
        self.achieved = Rate::over(bytes, MONITOR).unwrap_or(Rate::ZERO);
        self.is_high = self.load_percent > libm::rint(100.0 * self.p.high_load_thr);
        if self.achieved >= ACTIVE {
            self.active = shaped.now;
        }
        self.asleep = shaped.now.since(self.active) >= SLEEP_AFTER;
    }

    fn on_reply(&mut self, reply: Reply, shaped: Shaped) {
        let delay = match self.p.pinger {
            Pinger::Fping => reply.rtt / 2,
            Pinger::Tsping => reply.delay(),
        };
        let (delay, late) = (delay.as_secs_f64(), self.compensated(self.p.delay_thr));
        let baseline = &mut self.baselines[self.turn];
        let alpha = if delay >= *baseline { ALPHA_BASELINE[0] } else { ALPHA_BASELINE[1] };
        *baseline += alpha * (delay - *baseline);
        self.deltas[self.place] = delay - *baseline;
        self.late[self.place] = self.deltas[self.place] > late;
        self.load_percent = libm::floor(100.0 * self.achieved.as_bps() as f64 / self.rate.as_bps() as f64);
        (self.turn, self.place) = ((self.turn + 1) % PINGERS, (self.place + 1) % WINDOW);
        self.adjust(shaped.now);
    }
}
