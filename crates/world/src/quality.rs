//! Scores of a network as its users feel it: the E-model for calls, responsiveness, quality of outcome.
//!
//! The functions take measured figures and return scores; [`record`](crate::record) measures.

/// ITU-T G.107 (06/2015), the E-model for narrowband telephony.
///
/// All parameters but delay, codec and packet loss have their defaults (Table 3): both loudness ratings, side tone, room and circuit
/// noise, an echo loss of 65 dB. So the basic signal-to-noise ratio and the simultaneous impairments are constants.
pub mod emodel {
    /// Power of all noise sources at the 0 dBr point with the defaults, dBm0p (equation 7-3).
    const NOISE: f64 = -61.179_214_386_241_69;
    /// Basic signal-to-noise ratio with the defaults, Ro (equation 7-2, send loudness rating 8 dB).
    const SIGNAL_TO_NOISE: f64 = 15.0 - 1.5 * (8.0 + NOISE);
    /// Simultaneous impairment factor with the defaults, Is (equation 7-8).
    const SIMULTANEOUS: f64 = 1.413_568_081_343_861_6;
    /// Receive loudness rating, talker echo loudness rating, weighted echo path loss: defaults, dB.
    const RLR: f64 = 2.0;
    const TELR: f64 = 65.0;
    const WEPL: f64 = 110.0;
    /// Minimum perceivable delay, ms (Table 1, default class).
    const PERCEIVABLE: f64 = 100.0;

    /// What a codec does to speech (ITU-T G.113 Appendix I).
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct Codec {
        /// Equipment impairment factor without packet loss, Ie.
        pub impairment: f64,
        /// Packet-loss robustness factor, Bpl.
        pub robustness: f64,
    }

    /// G.711 with packet loss concealment (G.711 Appendix I).
    pub const G711: Codec = Codec { impairment: 0.0, robustness: 25.1 };

    /// The transmission rating factor R, 0 to 100, of a call in which both directions have this mouth-to-ear delay, ms, and this
    /// packet loss, per cent, which is random (BurstR = 1).
    pub fn rating(delay_ms: f64, loss_percent: f64, codec: Codec) -> f64 {
        let equipment = codec.impairment + (95.0 - codec.impairment) * loss_percent / (loss_percent + codec.robustness);
        (SIGNAL_TO_NOISE - SIMULTANEOUS - delay_impairment(delay_ms) - equipment).clamp(0.0, 100.0)
    }

    /// The mean opinion score for conversations that belongs to R, 1 to 4.5 (Annex B).
    pub fn mos(r: f64) -> f64 {
        match r {
            r if r <= 0.0 => 1.0,
            r if r >= 100.0 => 4.5,
            r => 1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6,
        }
    }

    /// Delay impairment factor Id (equations 7-18 to 7-28): talker echo, listener echo and the delay itself.
    fn delay_impairment(ms: f64) -> f64 {
        talker_echo(ms) + listener_echo(2.0 * ms) + pure_delay(ms)
    }

    /// Idte; 0 below 1 ms.
    fn talker_echo(ms: f64) -> f64 {
        if ms < 1.0 {
            return 0.0;
        }
        let loss = TELR - 40.0 * libm::log10((1.0 + ms / 10.0) / (1.0 + ms / 150.0)) + 6.0 * libm::exp(-0.3 * ms * ms);
        let apart = -1.5 * (NOISE - RLR) - (80.0 + 2.5 * (loss - 14.0));
        (apart / 2.0 + libm::sqrt(apart * apart / 4.0 + 100.0) - 1.0) * (1.0 - libm::exp(-ms))
    }

    /// Idle.
    fn listener_echo(round_trip_ms: f64) -> f64 {
        let apart = SIGNAL_TO_NOISE - 10.5 * (WEPL + 7.0) * libm::pow(round_trip_ms + 1.0, -0.25);
        apart / 2.0 + libm::sqrt(apart * apart / 4.0 + 169.0)
    }

    /// Idd, the impairment of a conversation by a delay that is free of echo, on the scale of R (equations 7-27 and 7-28).
    pub fn pure_delay(ms: f64) -> f64 {
        if ms <= PERCEIVABLE {
            return 0.0;
        }
        let x = libm::log2(ms / PERCEIVABLE);
        let root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
        25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
    }
}

pub use narrows_results::outcome;

/// ITU-T P.1203.1 (10/2019), mode 0: the quality of coded video from its rate alone.
///
/// Of its three degradations the one by quantisation is here: the picture is shown in the resolution in which it was coded, and at 24
/// frames per second or more the others are zero.
pub mod video {
    /// Pixels of the picture: 1280 × 720.
    pub const PIXELS: f64 = 1280.0 * 720.0;
    /// Frame rate from which on there is no temporal degradation (§8.1.3).
    pub const SMOOTH_FPS: f64 = 24.0;

    /// The score of H.264 video of this rate, kbit/s, and this frame rate, 1 to 5 (§8.1.1 equation 2, Annex A).
    pub fn coding_score(kbit: f64, fps: f64) -> f64 {
        if kbit <= 0.0 {
            return 1.0;
        }
        let per_pixel = kbit / (PIXELS * fps);
        let inner = 41.247_51 + libm::log(kbit) + libm::log(kbit * per_pixel + 0.131_83);
        let quantisation = 11.998_35 - 2.999_92 * libm::log(inner.max(1.0));
        (4.66 - 0.07 * libm::exp(4.06 * quantisation)).clamp(1.0, 5.0)
    }

    /// The score of a picture that is frozen for this share of the time, 0 to 1. Frozen time counts as the worst score.
    pub fn picture(kbit: f64, fps: f64, frozen: f64) -> f64 {
        1.0 + (coding_score(kbit, fps) - 1.0) * (1.0 - frozen)
    }

    /// The score of a conversation with a picture of this score, 1 to 5, whose frames are shown this long after their capture, ms.
    ///
    /// P.1203.1 adds degradations on the scale of R, to which it converts its scores. Here the degradation is [Idd](super::emodel) of
    /// G.107: below 100 ms there is none, and a picture of any quality is worth little after a second.
    pub fn conversation(picture: f64, delay_ms: f64) -> f64 {
        match super::emodel::pure_delay(delay_ms) {
            impairment if impairment > 0.0 => picture.min(mos_from_r((r_from_mos(picture) - impairment).max(0.0))),
            _ => picture,
        }
    }

    /// Ends of the scale on which P.1203.1 converts scores (its function MOSfromR).
    const LEAST: f64 = 1.05;
    const MOST: f64 = 4.9;
    /// From here on the score rises with R.
    const RISES: f64 = 6.5;

    /// P.1203.1, MOSfromR: G.107's Annex B, stretched to scores of 1.05 to 4.9.
    fn mos_from_r(r: f64) -> f64 {
        LEAST + (MOST - LEAST) * r / 100.0 + r * (r - 60.0) * (100.0 - r) * 7e-6
    }

    /// P.1203.1, RfromMOS: the inverse, by bisection.
    fn r_from_mos(mos: f64) -> f64 {
        let (mut low, mut high) = (RISES, 100.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if mos_from_r(middle) < mos {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Round trips per minute on a load-generating connection whose RTTs have this mean, ms, after the longest 5 % were left out
/// (draft-ietf-ippm-responsiveness-09 §5.3.1, `Loaded_Responsiveness`).
pub fn round_trips_per_minute(trimmed_mean_ms: f64) -> f64 {
    60_000.0 / trimmed_mean_ms
}

/// Share of the samples that the draft's single-sided trimmed mean keeps (its parameter TMP).
pub const TRIMMED: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::emodel::{Codec, G711, mos, rating};
    use super::outcome::{Bounds, EXAMPLE, Requirement, score};

    fn close(got: f64, wanted: f64, within: f64) {
        assert!((got - wanted).abs() <= within, "{got} is not within {within} of {wanted}");
    }

    /// G.107 §7.7: with all parameters at their defaults R is 93.2. Annex B, Table B.1: MOS at the limits of G.109's categories.
    #[test]
    fn the_defaults_and_the_table_of_annex_b_are_as_published() {
        close(rating(0.0, 0.0, G711), 93.2, 0.05);
        for (r, published) in [(93.2, 4.41), (90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            close(mos(r), published, 0.007);
        }
        assert_eq!((mos(0.0), mos(-5.0), mos(100.0)), (1.0, 1.0, 4.5));
    }

    /// Cole and Rosenbluth, "Voice over IP performance monitoring" (CCR 31(2), 2001), fit the model's delay impairment by
    /// 0.024·d + 0.11·(d − 177.3)·H(d − 177.3), with H the unit step. The fit is coarse at its knee.
    #[test]
    fn delay_costs_what_the_published_fit_says() {
        for (ms, within) in
            [(50.0, 0.3), (100.0, 0.3), (150.0, 0.3), (177.0, 1.0), (200.0, 0.3), (250.0, 0.3), (300.0, 0.3)]
        {
            close(rating(ms, 0.0, G711), 93.2 - 0.024 * ms - 0.11 * (ms - 177.3).max(0.0), within);
        }
    }

    /// The effective equipment impairment (equation 7-29) with the codecs of G.113 Appendix I. At 2 % loss G.729A with voice activity
    /// detection (Ie = 11, Bpl = 19) loses 11 + 84 · 2 ÷ 21 = 19, G.711 without concealment (Bpl = 4.3) 95 · 2 ÷ 6.3.
    #[test]
    fn packet_loss_costs_what_the_codec_says() {
        let best = rating(0.0, 0.0, G711);
        close(best - rating(0.0, 2.0, Codec { impairment: 11.0, robustness: 19.0 }), 19.0, 1e-9);
        close(best - rating(0.0, 2.0, Codec { impairment: 0.0, robustness: 4.3 }), 95.0 * 2.0 / 6.3, 1e-9);
        close(best - rating(0.0, 5.0, G711), 95.0 * 5.0 / 30.1, 1e-9);
        assert_eq!(rating(2000.0, 90.0, G711), 0.0);
    }

    /// Worked out by hand from the equations: 2500 kbit/s at 30 fps give a quantisation of 0.3824, 300 kbit/s one of 0.5819.
    #[test]
    fn the_coding_score_follows_the_equations() {
        close(super::video::coding_score(2500.0, 30.0), 4.66 - 0.07 * libm::exp(4.06 * 0.3824), 2e-3);
        close(super::video::coding_score(300.0, 30.0), 4.66 - 0.07 * libm::exp(4.06 * 0.5819), 2e-3);
        close(super::video::picture(2500.0, 30.0, 0.5), (super::video::coding_score(2500.0, 30.0) + 1.0) / 2.0, 1e-12);
        assert_eq!((super::video::picture(0.0, 30.0, 0.0), super::video::picture(900.0, 30.0, 1.0)), (1.0, 1.0));
    }

    /// By hand: R = 62.6 is a score of 1.05 + 2.410 + 0.043 = 3.50. Idd of 400 ms (X = 2) is 25 · (2.0052 − 3 · 1.0141 + 2) = 24.07, so that
    /// R = 38.5, which is a score of 1.05 + 1.482 − 0.356 = 2.18.
    #[test]
    fn a_conversation_falls_with_its_delay() {
        use super::video::conversation;
        assert_eq!(conversation(3.5, 100.0), 3.5, "nobody notices a tenth of a second");
        close(conversation(3.5, 400.0), 2.18, 0.01);
        // The picture was scored with 3.22 after 1.1 s.
        assert!(conversation(3.22, 1100.0) < 1.2, "{}", conversation(3.22, 1100.0));
        let scores = [0.0, 100.0, 150.0, 250.0, 400.0, 700.0, 1500.0, 9000.0].map(|ms| conversation(4.2, ms));
        assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]), "{scores:?}");
        for picture in [1.0, 1.3, 2.0, 3.0, 4.0, 4.9] {
            close(conversation(picture, 100.1), picture, 0.01);
        }
    }

    /// §3.4 of the draft works out 50 % from latency, 75 % from loss.
    #[test]
    fn quality_of_outcome_is_as_in_the_drafts_example() {
        let bounds = |optimal: f64, unacceptable: f64| Bounds { optimal, unacceptable };
        let requirement = Requirement {
            latency: [(0.99, bounds(200.0, 500.0)), (0.999, bounds(300.0, 600.0))],
            loss: bounds(0.01, 0.05),
        };
        close(score(&requirement, [350.0, 375.0], 0.02), 50.0, 1e-9);
        close(score(&requirement, [0.0, 0.0], 0.02), 75.0, 1e-9);
        assert_eq!(score(&EXAMPLE, [100.0, 200.0], 0.001), 100.0);
        assert_eq!(score(&EXAMPLE, [90.0, 150.0], 0.3), 0.0);
    }
}
