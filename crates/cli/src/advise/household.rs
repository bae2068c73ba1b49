//! The household whose link is to be shaped: what its members do, and the link with and without a queue of its own.
//!
//! The link itself is a FIFO in each direction, the provider's and the modem's. With a queue of one's own the router shapes below the
//! link's rates: what is sent waits in the router and hardly in the modem; what is received has passed the provider's FIFO before it
//! waits once more in the router. So the provider's buffer still fills for a moment when a sender overshoots.
use super::Failure;
use narrows_core::params::Limit;
use narrows_core::queue::QueueConfig;
use narrows_core::queue::fifo::FifoParams;
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_results::input::TraceFiles;
use narrows_scenario::shorthand;
use narrows_scenario::traffic::{Bulk, Thin, Video, Web};
use narrows_scenario::{
    DelaySpec, Endpoints, Family, Flow, Hop, RateSpec, Record, Release, Rtt, Scenario, Start, Traffic, Transport,
};
use std::path::Path;

/// Something that a member of the household does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Call,
    VideoCall,
    Game,
    Web,
    Video,
    Download,
    Upload,
}

impl Use {
    pub(super) const ALL: [Use; 7] =
        [Use::Call, Use::VideoCall, Use::Game, Use::Web, Use::Video, Use::Download, Use::Upload];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Use::Call => "call",
            Use::VideoCall => "video-call",
            Use::Game => "game",
            Use::Web => "web",
            Use::Video => "video-stream",
            Use::Download => "download",
            Use::Upload => "upload",
        }
    }

    /// The data that it sends in one direction.
    fn traffic(self) -> (Traffic, Transport) {
        let thin = |bytes: u64, interval: Span| Traffic::Thin(Thin { size: Bytes(bytes), interval, jitter: 0.0 });
        let (udp, tcp) = (Transport::Udp(Default::default()), Transport::Tcp(Default::default()));
        match self {
            // G.711, 20 ms of speech and RTP's header.
            Use::Call => (thin(172, Span::ms(20)), udp),
            // Up to 2.5 Mbit/s each way, under GCC.
            Use::VideoCall => (Traffic::Video(Video::default()), udp),
            // 60 updates a second, in both directions.
            Use::Game => (thin(100, Span::us(16_667)), udp),
            Use::Web => (Traffic::Web(Web { size: Bytes(300_000), think: Span::ms(500), ..Web::default() }), tcp),
            // 5 Mbit/s, as a server sends a live stream.
            Use::Video => (thin(62_500, Span::ms(100)), tcp),
            Use::Download | Use::Upload => (Traffic::Bulk(Bulk::default()), tcp),
        }
    }

    /// Whether it sends data down and up.
    const fn directions(self) -> [bool; 2] {
        match self {
            Use::Call | Use::VideoCall | Use::Game => [true, true],
            Use::Web | Use::Video | Use::Download => [true, false],
            Use::Upload => [false, true],
        }
    }
}

/// A use, and how many do it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) what: Use,
    pub(super) count: u32,
}

/// Most members of one use.
const MOST: u32 = 100;

/// Reads `2xdownload,call`.
pub(super) fn members(text: &str) -> Result<Vec<Member>, Failure> {
    let names = || Use::ALL.map(Use::name).join(", ");
    let mut members: Vec<Member> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (count, name) = match part.split_once('x').filter(|(digits, _)| is_number(digits)) {
            Some((digits, name)) => (digits.parse().ok().filter(|count| (1..=MOST).contains(count)), name),
            None => (Some(1), part),
        };
        let Some(what) = Use::ALL.into_iter().find(|what| what.name() == name) else {
            return Err(Failure::usage(format!(
                "--uses: unknown use {name:?}; allowed: {}, each with a number before it, such as 2xdownload",
                names()
            )));
        };
        let Some(count) = count else {
            return Err(Failure::usage(format!("--uses: cannot be {part:?}; allowed: 1 ..= {MOST} of a use")));
        };
        if members.iter().any(|member| member.what == what) {
            return Err(Failure::usage(format!("--uses: \"{name}\" is given twice; allowed: once, such as 2x{name}")));
        }
        members.push(Member { what, count });
    }
    Ok(members)
}

fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A link and those who share it.
#[derive(Clone, Debug)]
pub(super) struct Household {
    /// Rates of the link, down and up.
    pub(super) link: [RateSpec; 2],
    /// Rates to which a queue of one's own is shaped.
    pub(super) shaped: [Rate; 2],
    pub(super) rtt: Span,
    /// What the provider's and the modem's FIFO hold.
    pub(super) buffer: Bytes,
    pub(super) members: Vec<Member>,
    pub(super) duration: Span,
    pub(super) warmup: Span,
}

/// Share of the link's rates to which a router shapes, per cent: what `sqm-scripts` and our book recommend for a start is 90 to 95.
pub(super) const SHAPED_PERCENT: u64 = 95;
/// Least rate of a direction.
const SLOWEST: Rate = Rate::kbit(100);

impl Household {
    /// Reads the link's flags.
    pub(super) fn link(down: &str, up: &str) -> Result<[RateSpec; 2], Failure> {
        let rate = |flag: &str, text: &str| -> Result<RateSpec, Failure> {
            let rate = shorthand::rate_or_trace(flag, text, &TraceFiles(Path::new(""))).map_err(Failure::usage)?;
            match rate.initial() >= SLOWEST {
                true => Ok(rate),
                false => Err(Failure::usage(format!("{flag}: cannot be {text:?}; allowed: {SLOWEST} and more"))),
            }
        };
        Ok([rate("--down", down)?, rate("--up", up)?])
    }

    /// Rates of the link, down and up; of a trace the mean.
    pub(super) fn rates(&self) -> [Rate; 2] {
        self.link.each_ref().map(RateSpec::initial)
    }

    /// Does the link's rate vary?
    pub(super) fn varies(&self) -> bool {
        self.link.iter().any(|rate| matches!(rate, RateSpec::Trace { .. }))
    }

    /// The household behind this queue, or with the link's own FIFOs only.
    pub(super) fn scenario(&self, queue: Option<&QueueConfig>, seed: u64) -> Scenario {
        let fifo = QueueConfig::Fifo(FifoParams { limit: Limit::Bytes(self.buffer) });
        let hop = |name: &str, rate: RateSpec, queue: &QueueConfig, release: Release| Hop {
            name: name.to_owned(),
            rate,
            delay: DelaySpec::constant(Span::ZERO),
            jitter: Span::ZERO,
            queue: queue.clone(),
            overhead: Bytes::ZERO,
            loss: 0.0,
            release,
            burst: Bytes::ZERO,
        };
        let [down, up] = self.rates();
        let [provider, modem] = self.link.clone();
        let mut hops = vec![hop("provider", provider, &fifo, Release::End), hop("modem", modem, &fifo, Release::End)];
        if let Some(queue) = queue {
            let shaped = self.shaped.map(RateSpec::constant);
            hops.extend(
                ["down", "up"].into_iter().zip(shaped).map(|(name, rate)| hop(name, rate, queue, Release::Start)),
            );
        }
        let ways = match queue {
            None => [vec![0], vec![1]],
            Some(_) => [vec![0, 2], vec![3, 1]],
        };
        Scenario {
            name: format!("household {down} down, {up} up"),
            duration: self.duration,
            warmup: self.warmup,
            seed,
            hops,
            flows: self.members.iter().flat_map(|member| self.flows(*member, &ways)).collect(),
            record: Record { flows: 0, gauges: false, ..Record::default() },
            expects: Vec::new(),
        }
    }

    /// The flows of a member, who has a device and a server of their own. Each flow starts within the first second.
    fn flows(&self, member: Member, ways: &[Vec<usize>; 2]) -> Vec<Flow> {
        let (traffic, transport) = member.what.traffic();
        let name = member.what.name();
        let controller =
            transport.is_controlled().then(|| narrows_core::congestion::ControllerConfig::Cubic(Default::default()));
        let flow = |direction: usize| {
            let hosts = [format!("{name} server"), name.to_owned()];
            Flow {
                name: format!("{name} {}", ["down", "up"][direction]),
                count: member.count,
                controller: controller.clone(),
                traffic: traffic.clone(),
                command: None,
                rtt: Rtt::Fixed(self.rtt),
                route: ways[direction].clone(),
                back: if transport.is_controlled() || member.what == Use::VideoCall {
                    ways[1 - direction].clone()
                } else {
                    Vec::new()
                },
                subflow_route: Vec::new(),
                start: Start::Uniform(Time::ZERO, Time::ZERO + Span::s(1)),
                stop: Time::ZERO + self.duration,
                transport: transport.clone(),
                family: Family::V4,
                ends: Endpoints {
                    from: hosts[direction].clone(),
                    to: hosts[1 - direction].clone(),
                    ..Endpoints::default()
                },
            }
        };
        (0..2).filter(|&direction| member.what.directions()[direction]).map(flow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::registry::Registered;

    fn household(uses: &str) -> Household {
        let link = Household::link("50mbit", "10mbit").expect("rates");
        Household {
            shaped: link.each_ref().map(|rate| Rate::bit(rate.initial().as_bps() * SHAPED_PERCENT / 100)),
            link,
            rtt: Span::ms(30),
            buffer: Bytes(1_000_000),
            members: members(uses).expect("uses"),
            duration: Span::s(10),
            warmup: Span::s(2),
        }
    }

    #[test]
    fn every_use_is_a_legal_scenario() {
        let all = Use::ALL.map(Use::name).join(",2x");
        let household = household(&all);
        for queue in [None, QueueConfig::named("cake"), QueueConfig::named("fq_codel")] {
            let scenario = household.scenario(queue.as_ref(), 1);
            scenario.validate().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.hops.len(), if queue.is_some() { 4 } else { 2 });
            assert_eq!(scenario.flows.len(), 10, "calls and games send both ways");
        }
    }

    #[test]
    fn uses_are_refused_by_name() {
        for (text, wanted) in [
            ("cal", "unknown use \"cal\"; allowed: call, video-call, game, web, video-stream, download, upload"),
            ("call,", "unknown use \"\""),
            ("0xcall", "cannot be \"0xcall\"; allowed: 1 ..= 100 of a use"),
            ("99999999999xcall", "allowed: 1 ..= 100"),
            ("call,2xcall", "\"call\" is given twice"),
        ] {
            let error = members(text).expect_err(text);
            assert!(error.message().contains(wanted), "{text}: {}", error.message());
        }
        assert_eq!(members(" 3xdownload , call").expect("spaces do no harm").len(), 2);
        assert!(Household::link("50mbit", "1kbit").expect_err("it is slow").message().contains("--up"));
    }
}
