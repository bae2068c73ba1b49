//! The household whose link is to be shaped: what its members do, and the link with and without a queue of its own.
//!
//! The link itself is a FIFO in each direction, the provider's and the modem's. With a queue of one's own the router shapes below the
//! link's rates, as the printed commands have it do ([`Shaping`]): what is sent waits in the router and hardly in the modem; what is
//! received has passed the provider's FIFO before it waits once more in the router. So the provider's buffer still fills for a moment
//! when a sender overshoots. Where the shaper of what is sent follows the link, it is part of the modem's hop: it sees how late packets are behind it.
use super::Failure;
use super::link_layer::LinkLayer;
use super::queues::{Rates, Shaping};
use narrows_core::framing::Framing;
use narrows_core::params::{Limit, ParamValue as _};
use narrows_core::queue::QueueConfig;
use narrows_core::queue::fifo::FifoParams;
use narrows_core::registry::Registered as _;
use narrows_core::{Bytes, Rate, Span, Time};
use narrows_results::input::TraceFiles;
use narrows_scenario::preset::{self, Preset};
use narrows_scenario::shorthand;
use narrows_scenario::traffic::Web;
use narrows_scenario::{DelaySpec, Flow, Hop, RateSpec, Record, Scenario, Start, Traffic, Transport};
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
        match self.preset() {
            Some(preset) => preset.name,
            None => "web",
        }
    }

    /// The preset of the same name; the pages of `web` are larger and follow each other faster than those of the traffic `web`.
    const fn preset(self) -> Option<Preset> {
        match self {
            Use::Call => Some(preset::CALL),
            Use::VideoCall => Some(preset::VIDEO_CALL),
            Use::Game => Some(preset::GAME),
            Use::Web => None,
            Use::Video => Some(preset::VIDEO_STREAM),
            Use::Download => Some(preset::DOWNLOAD),
            Use::Upload => Some(preset::UPLOAD),
        }
    }

    /// The use of this name.
    fn named(name: &str) -> Option<Use> {
        let preset = Preset::named(name);
        Use::ALL.into_iter().find(|one| one.name() == name || (preset.is_some() && one.preset().as_ref() == preset))
    }

    /// The data that it sends in one direction.
    fn traffic(self) -> (Traffic, Transport) {
        match self.preset() {
            Some(preset) => (preset.traffic(), preset.transport()),
            None => {
                let pages = Web { size: Bytes(300_000), think: Span::ms(500), ..Web::default() };
                (Traffic::Web(pages), Transport::Tcp(Default::default()))
            }
        }
    }

    /// Whether it sends data down and up.
    fn directions(self) -> [bool; 2] {
        self.preset().map_or([true, false], |preset| preset.directions)
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
    // Commas between uses, or blanks.
    let parts = text.split(',').flat_map(|part| match shorthand::counted("--uses", part.trim()) {
        Ok((_, name)) if name.contains(char::is_whitespace) => part.split_whitespace().collect(),
        _ => vec![part.trim()],
    });
    for part in parts {
        let digits = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let (count, name) = match shorthand::counted("--uses", part) {
            Ok((count, name)) => (Some(count).filter(|count| *count <= MOST), name),
            Err(_) => (None, digits.trim_start_matches('x')),
        };
        let Some(what) = Use::named(name) else {
            return Err(Failure::usage(format!(
                "--uses: unknown use {name:?}; allowed: {}, each with a number before it, such as 2xdownload",
                names()
            )));
        };
        let Some(count) = count else {
            return Err(Failure::usage(format!("--uses: cannot be {part:?}; allowed: 1 to {MOST} of a use")));
        };
        if members.iter().any(|member| member.what == what) {
            return Err(Failure::usage(format!("--uses: \"{name}\" is given twice; allowed: once, such as 2x{name}")));
        }
        members.push(Member { what, count });
    }
    Ok(members)
}

/// What the users of an office do at some moment, in per cent of them.
pub(super) const OFFICE: &str = "60xweb,12xcall,6xvideo-call,10xvideo-stream,8xdownload,4xupload";
/// Most users of a link.
pub(super) const MOST_USERS: u64 = 1000;
/// How long a user reads a page, on average.
const READING: Span = Span::s(15);
/// Connections of a user's download or upload, as of a browser or of a program that synchronises files.
const CONNECTIONS: u32 = 4;

/// Distributes users over uses, in proportion to the members that were read as shares, at least one for each.
pub(super) fn shared(shares: &[Member], users: u64) -> Result<Vec<Member>, Failure> {
    let sum: u64 = shares.iter().map(|share| u64::from(share.count)).sum();
    if users < shares.len() as u64 {
        let least = shares.len();
        return Err(Failure::usage(format!("--users: cannot be {users}; allowed: one for each use, {least} and more")));
    }
    let count = |of: u64| u32::try_from(users * of / sum).unwrap_or(u32::MAX).max(1);
    let mut members: Vec<Member> =
        shares.iter().map(|share| Member { count: count(u64::from(share.count)), ..*share }).collect();
    // The remainder, or what the least shares have too much, is that of the largest.
    let total: u64 = members.iter().map(|member| u64::from(member.count)).sum();
    if let Some(largest) = members.iter_mut().max_by_key(|member| member.count) {
        largest.count = (u64::from(largest.count) + users).saturating_sub(total).max(1) as u32;
    }
    Ok(members)
}

/// A link and those who share it.
#[derive(Clone, Debug)]
pub(super) struct Household {
    /// Rates of the link, down and up.
    pub(super) link: [RateSpec; 2],
    /// The kind of the link.
    pub(super) layer: &'static LinkLayer,
    pub(super) rtt: Span,
    /// What the provider's and the modem's FIFO hold.
    pub(super) buffer: Bytes,
    pub(super) members: Vec<Member>,
    /// Every member has a host of their own, instead of one for each use.
    pub(super) has_many_hosts: bool,
    pub(super) duration: Span,
    pub(super) warmup: Span,
}

/// Least rate of a direction.
const SLOWEST: Rate = Rate::kbit(100);

impl Household {
    /// Reads the link's flags.
    pub(super) fn link(down: &str, up: &str) -> Result<[RateSpec; 2], Failure> {
        let rate = |flag: &str, text: &str| -> Result<RateSpec, Failure> {
            let rate = shorthand::rate_or_trace(flag, text, &TraceFiles(Path::new(""))).map_err(Failure::usage)?;
            if rate.initial() >= SLOWEST {
                Ok(rate)
            } else {
                Err(Failure::usage(format!("{flag}: cannot be {text:?}; allowed: {SLOWEST} and more")))
            }
        };
        Ok([rate("--down", down)?, rate("--up", up)?])
    }

    /// Rates of the link, down and up.
    pub(super) fn rates(&self) -> [Rates; 2] {
        let mechanisms = self.layer.mechanisms();
        [0, 1].map(|direction| {
            let (rate, is_trace) =
                (self.link[direction].initial(), matches!(self.link[direction], RateSpec::Trace { .. }));
            let mean = mechanisms[direction].as_ref().map_or(rate, |mechanism| mechanism.mean(rate));
            Rates { mean, most: rate, varies: is_trace || mean < rate }
        })
    }

    /// Whether the link's rate varies.
    pub(super) fn varies(&self) -> bool {
        self.rates().iter().any(|rates| rates.varies)
    }

    /// Whether what is sent crosses a link that changes, so that a shaper may follow it.
    pub(super) fn can_be_followed(&self) -> bool {
        self.layer.mechanisms()[1].is_some()
    }

    /// The household behind these queues, down and up, or with the link's own FIFOs only.
    pub(super) fn scenario(&self, shaping: Option<&[Shaping; 2]>, seed: u64) -> Scenario {
        let queue = QueueConfig::Fifo(FifoParams { limit: Limit::Bytes(self.buffer) });
        // The servers are half of the base RTT away.
        let delay = DelaySpec::constant(self.rtt / 2);
        let Framing { overhead, mpu, atm } = self.layer.framing;
        let (overhead, mpu) = (Bytes(u64::from(overhead)), Bytes(u64::from(mpu)));
        let fifo = |name, rate| Hop { delay: delay.clone(), overhead, mpu, atm, ..Hop::new(name, rate, queue.clone()) };
        let [down, up] = self.link.each_ref().map(RateSpec::initial);
        let ([provider, modem], [above, below]) = (self.link.clone(), self.layer.mechanisms());
        let provider = Hop { mechanism: above, ..fifo("provider", provider) };
        let mut modem = Hop { mechanism: below, ..fifo("modem", modem) };
        let mut ways = [vec![0], vec![1]];
        let hops = match shaping {
            None => vec![provider, modem],
            Some([down, up]) => {
                ways[0].push(2);
                let down = down.hop("down");
                if let Some(mut autorate) = up.autorate.clone() {
                    // The modem's own buffer is behind the shaper. Every controller has it as a parameter.
                    let is_set = autorate.set("buffer", &self.buffer.show());
                    debug_assert!(is_set.is_ok(), "{is_set:?}");
                    (modem.queue, modem.autorate) = (up.queue.clone(), Some(autorate));
                    vec![provider, modem, down]
                } else {
                    ways[1].insert(0, 3);
                    vec![provider, modem, down, up.hop("up")]
                }
            }
        };
        let flows = self.members.iter().flat_map(|member| {
            let hosts = if self.has_many_hosts { member.count } else { 0 };
            let own = (1..=hosts).map(|number| format!(" {number}"));
            own.chain((hosts == 0).then(String::new))
                .flat_map(|host| self.flows(*member, &host, &ways))
                .collect::<Vec<_>>()
        });
        let flows = flows.collect();
        Scenario {
            warmup: self.warmup,
            seed,
            record: Record { flows: 0, gauges: false, ..Record::default() },
            ..Scenario::new(format!("household {down} down, {up} up"), self.duration, hops, flows)
        }
    }

    /// The flows of a use on this host of its own, with a server of its own. Each flow starts within the first second.
    fn flows(&self, member: Member, host: &str, ways: &[Vec<usize>; 2]) -> Vec<Flow> {
        let (mut traffic, transport) = member.what.traffic();
        if let (true, Traffic::Web(pages)) = (self.has_many_hosts, &mut traffic) {
            pages.think = READING;
        }
        let count = match member.what {
            _ if !self.has_many_hosts => member.count,
            Use::Download | Use::Upload => CONNECTIONS,
            _ => 1,
        };
        let name = format!("{}{host}", member.what.name());
        let controller =
            transport.is_controlled().then(|| narrows_core::congestion::ControllerConfig::Cubic(Default::default()));
        let flow = |direction: usize| {
            let hosts = [format!("{name} server"), name.clone()];
            Flow {
                count,
                controller: controller.clone(),
                traffic: traffic.clone(),
                route: ways[direction].clone(),
                back: if transport.is_controlled() || member.what == Use::VideoCall {
                    ways[1 - direction].clone()
                } else {
                    Vec::new()
                },
                start: Start::Uniform(Time::ZERO, Time::ZERO + Span::s(1)),
                transport: transport.clone(),
                from: hosts[direction].clone(),
                to: hosts[1 - direction].clone(),
                ..Flow::new(format!("{name} {}", ["down", "up"][direction]), self.rtt, Time::ZERO + self.duration)
            }
        };
        (0..2).filter(|&direction| member.what.directions()[direction]).map(flow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::queues::Candidate;
    use super::*;

    fn household(uses: &str) -> Household {
        let link = Household::link("50mbit", "10mbit").expect("rates");
        Household {
            layer: &super::super::link_layer::ALL[0],
            link,
            rtt: Span::ms(30),
            buffer: Bytes(1_000_000),
            members: members(uses).expect("uses"),
            has_many_hosts: false,
            duration: Span::s(10),
            warmup: Span::s(2),
        }
    }

    #[test]
    fn every_use_is_a_legal_scenario() {
        let all = Use::ALL.map(Use::name).join(",2x");
        let household = household(&all);
        let shaping = |name| {
            Candidate::named(name).map(|one| one.shaping(household.rates(), household.layer).expect("commands")).ok()
        };
        for queue in [None, shaping("cake"), shaping("fq_codel")] {
            let scenario = household.scenario(queue.as_ref(), 1);
            scenario.validate().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.hops.len(), if queue.is_some() { 4 } else { 2 });
            assert_eq!(scenario.flows.len(), 10, "calls and games send both ways");
        }
    }

    /// On every kind of link, with each kind of shaper. The rates of a link with mechanisms are the highest, and shapers go by the mean.
    #[test]
    fn every_kind_of_link_is_a_legal_scenario() {
        for layer in &super::super::link_layer::ALL {
            let household = Household { layer, ..household("call,upload") };
            for name in ["cake", "fq_codel@50", "cocoa+autorate", "cake/fq_codel@80+autorate"] {
                let one = Candidate::named(name).unwrap_or_else(|name| panic!("{name}"));
                if one.follows() && !household.can_be_followed() {
                    continue;
                }
                let shaping = one.shaping(household.rates(), layer).expect("commands");
                let scenario = household.scenario(Some(&shaping), 1);
                scenario.validate().unwrap_or_else(|error| panic!("{name} on {}: {error}", layer.name));
                let modem = &scenario.hops[1];
                assert_eq!(
                    (modem.autorate.is_some(), scenario.hops.len()),
                    (one.follows(), 4 - usize::from(one.follows()))
                );
            }
        }
        let leo = Household { layer: LinkLayer::named("leo").expect("listed"), ..household("call") };
        let [down, up] = leo.rates();
        assert_eq!((down.most, up.most, down.varies), (Rate::mbit(50), Rate::mbit(10), true));
        assert_eq!(
            Candidate::named("cake@50").map(|one| one.rates([down, up])[1]),
            Ok(Rate::bit(up.mean.as_bps() / 2))
        );
        let cable = Household { layer: LinkLayer::named("docsis").expect("listed"), ..household("call") };
        assert!(!cable.varies() && cable.can_be_followed(), "it sends in bursts, at one rate in the long run");
        assert_eq!(Candidate::named("cake@50").map(|one| one.rates(cable.rates())[1]), Ok(Rate::kbit(9500)));
    }

    #[test]
    fn users_have_hosts_of_their_own() {
        let shares = members(OFFICE).expect("uses");
        for users in [6, 7, 100, 300, 999] {
            let counts: Vec<u32> = shared(&shares, users).expect("enough").iter().map(|member| member.count).collect();
            assert_eq!(counts.iter().sum::<u32>() as u64, users, "{counts:?}");
        }
        assert!(shared(&shares, 5).is_err_and(|error| error.message().contains("6 and more")));
        let many =
            Household { members: shared(&shares, 50).expect("enough"), has_many_hosts: true, ..household("call") };
        let scenario = many.scenario(None, 1);
        scenario.validate().unwrap_or_else(|error| panic!("{error}"));
        let hosts: std::collections::BTreeSet<&str> = scenario.flows.iter().map(|flow| flow.to.as_str()).collect();
        let downloads = scenario.flows.iter().filter(|flow| flow.name.starts_with("download"));
        assert_eq!(downloads.map(|flow| flow.count).collect::<Vec<_>>(), [CONNECTIONS; 4]);
        assert!(hosts.contains("web 30") && scenario.flows.iter().any(|flow| flow.name == "call 6 up"), "{hosts:?}");
    }

    #[test]
    fn uses_are_refused_by_name() {
        for (text, wanted) in [
            ("cal", "unknown use \"cal\"; allowed: call, video-call, game, web, video-stream, download, upload"),
            ("call,", "unknown use \"\""),
            ("0xcall", "cannot be \"0xcall\"; allowed: 1 to 100 of a use"),
            ("99999999999xcall", "allowed: 1 to 100"),
            ("call,2xcall", "\"call\" is given twice"),
        ] {
            let error = members(text).expect_err(text);
            assert!(error.message().contains(wanted), "{text}: {}", error.message());
        }
        assert_eq!(members(" 3xdownload , call").expect("spaces do no harm").len(), 2);
        let member = |what, count| Member { what, count };
        let wanted = vec![member(Use::Download, 2), member(Use::Call, 1), member(Use::Upload, 3)];
        assert_eq!(members("2 download,voip 3upload").expect("as --flows reads them"), wanted);
        assert!(Household::link("50mbit", "1kbit").expect_err("it is slow").message().contains("--up"));
    }
}
