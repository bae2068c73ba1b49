//! The data that a flow's application sends. Each kind has its own parameters; sizes are in bytes of payload.
use crate::preset;
use narrows_core::media::MediaControlConfig;
use narrows_core::media::gcc::GccParams;
use narrows_core::params;
use narrows_core::params::nested::Nested;
use narrows_core::params::{ParamError, ParamValue};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span};

params! {
    /// As much as the transport takes.
    pub struct Bulk {}
}

params! {
    /// One transfer of a given size.
    pub struct Finite {
        /// Payload of the transfer.
        pub size: Bytes = Bytes(1_000_000), from Bytes(1), to Bytes(1_000_000_000_000);
    }
}

params! {
    /// Packets at a constant rate.
    pub struct Cbr {
        /// Rate at the IP layer.
        pub rate: Rate = Rate::mbit(1), from Rate::bit(1), to Rate::gbit(1000);
        /// Length of a packet at the IP layer.
        pub packet: Bytes = Bytes(1500), from Bytes(29), to Bytes(65_535);
    }
}

params! {
    /// Packets as a Poisson process.
    pub struct Poisson {
        /// Mean rate at the IP layer.
        pub rate: Rate = Rate::mbit(1), from Rate::bit(1), to Rate::gbit(1000);
        /// Length of a packet at the IP layer.
        pub packet: Bytes = Bytes(1500), from Bytes(29), to Bytes(65_535);
    }
}

params! {
    /// Small messages at fixed intervals: games, voice, remote terminals.
    pub struct Thin {
        /// Payload of a message.
        pub size: Bytes = Bytes(100), from Bytes(1), to Bytes(65_000);
        /// Time between messages.
        pub interval: Span = Span::ms(20), from Span::us(1), to Span::s(3600);
        /// Each interval is drawn from interval × (1 ± jitter).
        pub jitter: f64 = 0.0, from 0.0, to 1.0;
    }
}

params! {
    /// Bursts and pauses of exponentially distributed length.
    pub struct OnOff {
        /// Rate during a burst, at the IP layer; over TCP the rate that the application offers.
        pub rate: Rate = Rate::mbit(1), from Rate::bit(1), to Rate::gbit(1000);
        /// Length of a packet at the IP layer.
        pub packet: Bytes = Bytes(1500), from Bytes(29), to Bytes(65_535);
        /// Mean length of a burst.
        pub on: Span = Span::ms(500), from Span::us(1), to Span::s(3600);
        /// Mean length of a pause.
        pub off: Span = Span::ms(500), from Span::us(1), to Span::s(3600);
    }
}

params! {
    /// Short transfers over one connection with pauses between them. Sizes are Pareto-distributed, pauses exponentially.
    pub struct Web {
        /// Mean size of a transfer.
        pub size: Bytes = Bytes(60_000), from Bytes(1), to Bytes(1_000_000_000);
        /// Shape of the Pareto distribution; a smaller one has a heavier tail.
        pub shape: f64 = 1.2, from 1.05, to 10.0;
        /// Mean pause after a transfer.
        pub think: Span = Span::s(1), from Span::ZERO, to Span::s(3600);
    }
}

params! {
    /// Frames of a video call: an encoder whose rate follows the path, and a receiver that reports what arrives.
    pub struct Video {
        /// Rate control of the sender.
        pub control: Nested<MediaControlConfig> = Nested::new(MediaControlConfig::Gcc(GccParams::default()));
        /// Frames per second.
        pub fps: f64 = 30.0, from 1.0, to 120.0;
        /// Rate of the encoder at the start.
        pub start_rate: Rate = Rate::kbit(300), from Rate::kbit(10), to Rate::gbit(1);
        /// Its lowest rate.
        pub min_rate: Rate = Rate::kbit(150), from Rate::kbit(10), to Rate::gbit(1);
        /// Its highest rate.
        pub max_rate: Rate = Rate::kbit(2500), from Rate::kbit(10), to Rate::gbit(1);
        /// Longest packet at the IP layer.
        pub packet: Bytes = Bytes(1200), from Bytes(100), to Bytes(65_535);
        /// Time between key frames. The receiver can ask for others.
        pub key_interval: Span = Span::s(10), from Span::ms(100), to Span::s(3600);
        /// Size of a key frame ÷ mean size of a frame.
        pub key_size: f64 = 4.0, from 1.0, to 50.0;
        /// Scale of the Laplace distribution of the frames' sizes, as a share of their mean (RFC 8593).
        pub variation: f64 = 0.15, from 0.0, to 1.0;
        /// Time between the receiver's reports.
        pub report_interval: Span = Span::ms(100), from Span::ms(10), to Span::s(1);
    }
    check Video::check;
}

impl Video {
    /// RTP's header with an extension for the transport-wide number of the packet, in addition to those of IP and UDP.
    pub const RTP_HEADER: Bytes = Bytes(12 + 8);

    fn check(&self) -> Result<(), ParamError> {
        let refuse = |name: &str, rate: Rate, allowed: String| {
            Err(ParamError { name: name.into(), got: format!("`{}`", rate.show()), allowed, unknown: false })
        };
        if self.max_rate < self.min_rate {
            return refuse("max_rate", self.max_rate, format!("at least min_rate, {}", self.min_rate.show()));
        }
        if self.start_rate < self.min_rate || self.start_rate > self.max_rate {
            let allowed = format!("min_rate to max_rate, {} to {}", self.min_rate.show(), self.max_rate.show());
            return refuse("start_rate", self.start_rate, allowed);
        }
        self.control.0.validate()
    }
}

narrows_core::registry! {
    /// The data that a flow's application sends.
    pub enum Traffic for "traffic" {
        "bulk", Bulk(Bulk), "As much as the transport takes, from start to stop (TCP, QUIC).";
        "finite", Finite(Finite), "One transfer of a given size; its completion time is recorded (TCP, QUIC).";
        "cbr", Cbr(Cbr), "Packets of equal length at a constant rate (UDP).";
        "poisson", Poisson(Poisson), "Packets of equal length as a Poisson process (UDP).";
        "thin", Thin(Thin), "Small messages at fixed intervals: games, voice (TCP, UDP or QUIC).";
        "onoff", OnOff(OnOff), "Bursts at a given rate and pauses, both of exponentially distributed length (TCP, UDP or QUIC).";
        "web", Web(Web), "Transfers of Pareto-distributed size with pauses between them; completion times are recorded (TCP, QUIC).";
        "video", Video(Video), "A video call: frames at a rate that follows the path; freezes and frame delays are recorded (UDP).";
    }
    with {
        fn presets() -> &'static [&'static str] {
            &preset::NAMES
        }

        fn preset(name: &str) -> Option<Traffic> {
            preset::Preset::named(name).map(preset::Preset::traffic)
        }
    }
}

impl Traffic {
    /// The transports that can carry it, by name; the first is the default.
    pub const fn carriers(&self) -> &'static [&'static str] {
        match self {
            Traffic::Bulk(_) | Traffic::Finite(_) | Traffic::Web(_) => &["tcp", "quic"],
            Traffic::Cbr(_) | Traffic::Poisson(_) | Traffic::Video(_) => &["udp"],
            Traffic::Thin(_) | Traffic::OnOff(_) => &["tcp", "udp", "quic"],
        }
    }
}
