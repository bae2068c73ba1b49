//! The queues that can be deployed on a router, and the commands that do it.
use super::link_layer::LinkLayer;
use narrows_core::autorate::AutorateConfig;
use narrows_core::autorate::drain::DrainParams;
use narrows_core::framing::{Atm, Framing};
use narrows_core::params::ParamValue as _;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate};
use narrows_scenario::{Hop, RateSpec, Release};

/// A queue, and what it takes to have it.
pub(super) struct Deployable {
    /// Its name in the registry.
    pub(super) name: &'static str,
    kind: Deployment,
    /// What it needs, in words.
    needs: &'static str,
}

enum Deployment {
    /// In stock Linux, below a shaper; its name for `tc`, and whether `sqm-scripts` knows it.
    Leaf { tc: &'static str, sqm: bool },
    /// In stock Linux, with a shaper of its own.
    Cake,
    /// Ours, by `narrows qdisc attach`.
    Attached,
    /// Ours, as a kernel module below a shaper.
    Module,
}

const fn leaf(name: &'static str, tc: &'static str, sqm: bool, needs: &'static str) -> Deployable {
    Deployable { name, kind: Deployment::Leaf { tc, sqm }, needs }
}

/// The candidates; of equals the first is preferred. Left out are `red` (its thresholds depend on the link), `fq` (for hosts that send),
/// `cobalt` (Linux has it only within `cake`) and `gsp` (Linux does not have it).
pub(super) const ALL: [Deployable; 12] = [
    Deployable { name: "cake", kind: Deployment::Cake, needs: "Linux 4.19" },
    leaf("fq_codel", "fq_codel", true, "Linux 3.5"),
    leaf("fq_pie", "fq_pie", false, "Linux 5.6"),
    leaf("sfq", "sfq", true, "Linux"),
    leaf("codel", "codel", true, "Linux 3.5"),
    leaf("pie", "pie", true, "Linux 3.14"),
    leaf("dualpi2", "dualpi2", false, "Linux 6.17"),
    leaf("fifo", "pfifo limit 1000", false, "Linux"),
    Deployable { name: "cocoa", kind: Deployment::Attached, needs: "Linux 6.16 with CONFIG_NET_SCH_BPF" },
    Deployable { name: "cp", kind: Deployment::Attached, needs: "Linux 6.16 with CONFIG_NET_SCH_BPF" },
    Deployable { name: "fq_cp", kind: Deployment::Module, needs: "our kernel module, in crates/qdisc/c" },
    Deployable { name: "fq_codel_fair", kind: Deployment::Module, needs: "our kernel module, in crates/qdisc/c" },
];

/// Commands under a heading.
#[derive(serde::Serialize)]
pub(super) struct Recipe {
    pub(super) title: String,
    pub(super) lines: Vec<String>,
}

/// A direction of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Down,
    Up,
}

impl Deployable {
    const fn is_stock(&self) -> bool {
        matches!(self.kind, Deployment::Leaf { .. } | Deployment::Cake)
    }

    const fn is_attached(&self) -> bool {
        matches!(self.kind, Deployment::Attached)
    }

    /// The commands that shape a direction to this rate and put the queue there. They are printed and, read back by [`Shaping::of`],
    /// simulated.
    fn commands(&self, interface: &str, direction: Direction, rate: Rate, link: &LinkLayer) -> Vec<String> {
        let kbit = |rate: Rate| rate.as_bps() / 1000;
        let device = match direction {
            Direction::Down => ifb(interface),
            Direction::Up => interface.to_owned(),
        };
        match self.kind {
            Deployment::Cake => {
                let bandwidth = format!("bandwidth {}kbit{}", kbit(rate), link.cake());
                vec![format!("tc qdisc replace dev {device} root cake {bandwidth} nat")]
            }
            Deployment::Leaf { tc, .. } => below_htb(&device, link.htb(rate), tc),
            Deployment::Module => below_htb(&device, link.htb(rate), self.name),
            Deployment::Attached => {
                let ifb = if direction == Direction::Down { " --ifb" } else { "" };
                let (overhead, rate) = link.attach(rate);
                let rate = format!("--rate {}kbit{overhead}", kbit(rate));
                vec![format!("narrows qdisc attach {interface} {} {rate}{ifb}", self.name)]
            }
        }
    }
}

/// A queue for each direction, and the rates of their shapers.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    down: &'static Deployable,
    up: &'static Deployable,
    /// Share of the mean rate to which a direction whose rate varies is shaped, per cent.
    percent: u64,
    /// Whether the shaper of what is sent follows the link.
    follows: bool,
}

/// Another share, for links that are often slower than their mean rate, per cent.
const CAREFUL_PERCENT: u64 = 50;
/// A shaper that follows its link goes down to this share of the mean rate, per cent.
const LEAST_PERCENT: u64 = 10;

/// A direction's rates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// In the long run.
    pub(super) mean: Rate,
    /// The highest.
    pub(super) most: Rate,
    /// Whether it varies.
    pub(super) varies: bool,
}

impl Rates {
    fn part(&self, percent: u64) -> Rate {
        Rate::bit(self.mean.as_bps() * percent / 100)
    }
}

impl Candidate {
    /// Share of a link's rate to which a router shapes, per cent: what `sqm-scripts` and our book recommend for a start is 90 to 95.
    pub(super) const USUAL_PERCENT: u64 = 95;

    /// Reads `cake`, or `fq_codel/cake` for one queue down and another up; behind it perhaps `@50`, the share of the mean rate, and `+autorate`.
    /// The error is the name or the number that is not known.
    pub(super) fn named(text: &str) -> Result<Candidate, String> {
        let one = |name: &str| {
            let name = narrows_core::registry::spelled(name.trim());
            ALL.iter().find(|one| one.name == name).ok_or(name)
        };
        let (queues, follows) = text.trim().strip_suffix(AUTORATE).map_or((text, false), |queues| (queues, true));
        let (queues, percent) = match queues.split_once('@') {
            Some((queues, percent)) => {
                let number = percent.trim().parse().ok().filter(|percent| (1..=100).contains(percent));
                (queues, number.ok_or_else(|| format!("@{}", percent.trim()))?)
            }
            None => (queues, if follows { CAREFUL_PERCENT } else { Candidate::USUAL_PERCENT }),
        };
        let (down, up) = queues.split_once('/').unwrap_or((queues, queues));
        Ok(Candidate { down: one(down)?, up: one(up)?, percent, follows })
    }

    /// Every queue that can be deployed, the same in both directions.
    pub(super) fn all() -> Vec<Candidate> {
        ALL.iter()
            .map(|one| Candidate { down: one, up: one, percent: Candidate::USUAL_PERCENT, follows: false })
            .collect()
    }

    /// The same for a link with mechanisms: also with a shaper that follows the link and, if its rate varies, at a lower rate.
    pub(super) fn all_of_mechanisms(varies: bool) -> Vec<Candidate> {
        let usual = Candidate::all();
        let careful = usual.iter().map(|one| Candidate { percent: CAREFUL_PERCENT, ..*one });
        let following = careful.clone().map(|one| Candidate { follows: true, ..one }).filter(Candidate::can_follow);
        usual.iter().copied().chain(careful.filter(|_| varies)).chain(following).collect()
    }

    /// Whether a shaper above its queue may follow the link: a probe must not wait for other packets there.
    pub(super) fn can_follow(&self) -> bool {
        QueueConfig::named(self.up.name).is_some_and(|queue| queue.traits().isolates)
    }

    /// Whether the shaper of what is sent follows the link.
    pub(super) const fn follows(&self) -> bool {
        self.follows
    }

    /// Share of the mean rate to which a direction whose rate varies is shaped, per cent.
    pub(super) const fn percent(&self) -> u64 {
        self.percent
    }

    /// The rates of the shapers for what is received and what is sent.
    pub(super) fn rates(&self, link: [Rates; 2]) -> [Rate; 2] {
        link.map(|one| one.part(if one.varies { self.percent } else { Candidate::USUAL_PERCENT }))
    }

    fn is_same(&self) -> bool {
        self.down.name == self.up.name
    }

    /// `cake`, `fq_codel/cake`, `cake@50` or `cake+autorate`, as it is read.
    pub(super) fn label(&self) -> String {
        let queues =
            if self.is_same() { self.down.name.to_owned() } else { format!("{}/{}", self.down.name, self.up.name) };
        let usual = if self.follows { CAREFUL_PERCENT } else { Candidate::USUAL_PERCENT };
        let share = if self.percent == usual { String::new() } else { format!("@{}", self.percent) };
        format!("{queues}{share}{}", if self.follows { AUTORATE } else { "" })
    }

    /// What it needs, in words.
    pub(super) fn needs(&self) -> String {
        let queues = if self.down.needs == self.up.needs {
            self.down.needs.to_owned()
        } else {
            format!("{} down, {} up", self.down.needs, self.up.needs)
        };
        if self.follows { format!("{queues}, and narrows") } else { queues }
    }

    /// Whether it is part of Linux.
    pub(super) fn is_stock(&self) -> bool {
        self.down.is_stock() && self.up.is_stock() && !self.follows
    }

    /// What its commands deploy, down and up.
    ///
    /// # Errors
    /// A command that is not understood.
    pub(super) fn shaping(&self, rates: [Rates; 2], link: &LinkLayer) -> Result<[Shaping; 2], String> {
        let down = self.down.commands("wan", Direction::Down, self.rates(rates)[0], link);
        Ok([Shaping::of(&down)?, Shaping::of(&self.sending("wan", rates, link))?])
    }

    /// The commands for what is sent.
    fn sending(&self, interface: &str, rates: [Rates; 2], link: &LinkLayer) -> Vec<String> {
        if !self.follows {
            return self.up.commands(interface, Direction::Up, self.rates(rates)[1], link);
        }
        let kbit = |rate: Rate| rate.as_bps() / 1000;
        let (least, most) = (kbit(rates[1].part(LEAST_PERCENT)), kbit(rates[1].most));
        vec![format!("narrows qdisc attach {interface} {} --autorate --min {least}kbit --max {most}kbit", self.up.name)]
    }

    /// The commands that put it on an interface, for these rates down and up.
    pub(super) fn recipes(&self, interface: &str, rates: [Rates; 2], link: &LinkLayer) -> Vec<Recipe> {
        // A shaper that follows its link is a command that does not return, so it is the last one.
        let sending = self.sending(interface, rates, link);
        let (mut lines, last) = if self.follows { (Vec::new(), sending) } else { (sending, Vec::new()) };
        let rates = self.rates(rates);
        if !self.down.is_attached() {
            lines.extend(received_through_ifb(interface));
        }
        lines.extend(self.down.commands(interface, Direction::Down, rates[0], link));
        lines.extend(last);
        let title = match [self.down.is_attached(), self.up.is_attached() || self.follows] {
            [false, false] => "tc",
            [true, true] => "narrows",
            _ => "tc and narrows",
        };
        let mut all = vec![Recipe { title: title.to_owned(), lines }];
        let script = match self.down.kind {
            Deployment::Cake => Some(("cake", "piece_of_cake.qos")),
            Deployment::Leaf { tc, sqm: true } => Some((tc, "simplest.qos")),
            _ => None,
        };
        if let (Some((qdisc, script)), true) = (script, self.is_same() && !self.follows) {
            all.push(Recipe { title: "OpenWrt".to_owned(), lines: sqm(interface, rates, link, qdisc, script) });
        }
        all
    }
}

/// What commands deploy in one direction: a queue, and the shaper above it unless it shapes itself.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Shaping {
    pub(super) queue: QueueConfig,
    /// The shaper above the queue.
    pub(super) shaper: Option<Shaper>,
    /// The controller of a shaper that follows the link.
    pub(super) autorate: Option<AutorateConfig>,
}

/// What follows the names of queues whose shaper follows the link.
const AUTORATE: &str = "+autorate";

/// A token bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shaper {
    rate: Rate,
    /// Bytes that it lets pass back to back after a pause.
    burst: Bytes,
    /// How it counts a packet.
    framing: Framing,
}

/// Bytes that `htb` lets pass back to back after a pause, where nothing else is said: `tc` takes a packet of its default `mtu`.
const HTB_BURST: Bytes = Bytes(1600);
/// The header of an Ethernet frame, which every shaper of Linux counts.
pub(super) const ETHERNET: Bytes = Bytes(14);
/// The least rate of a router's own port; a queue that shapes itself never waits for it.
const PORT: Rate = Rate::gbit(10);

const fn twice(rate: Rate) -> Rate {
    Rate::bit(rate.as_bps().saturating_mul(2))
}

impl Shaping {
    /// Reads the commands for one direction.
    fn of(lines: &[String]) -> Result<Shaping, String> {
        let after = |line: &str, word: &str| {
            let mut words = line.split_whitespace().skip_while(|known| *known != word).skip(1);
            words.next().map(str::to_owned)
        };
        let number = |line: &str, word: &str| after(line, word).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let framed = |line: &str| Framing {
            overhead: (ETHERNET.0 as i64 + number(line, "overhead") + number(line, "--overhead")) as u32,
            mpu: number(line, "mpu") as u32,
            atm: if after(line, "linklayer").as_deref() == Some("atm") { Atm::Atm } else { Atm::Noatm },
        };
        let rate_after = |line: &str, word: &str| after(line, word).as_deref().and_then(Rate::parse);
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
            return Err("there is no command".to_owned());
        };
        let shaper = |rate: Option<Rate>, burst| rate.map(|rate| Shaper { rate, burst, framing: framed(first) });
        match last.strip_prefix("narrows qdisc attach ") {
            Some(attached) => {
                let name = attached.split_whitespace().nth(1).unwrap_or_default();
                let queue = QueueConfig::named(name).ok_or_else(|| format!("`{last}` names no queue"))?;
                if attached.split_whitespace().any(|word| word == "--autorate") {
                    let rate = |flag| rate_after(last, flag).ok_or_else(|| format!("`{last}` has no {flag}"));
                    let (min, max) = (rate("--min")?, rate("--max")?);
                    let drain = DrainParams { min, max, base: min, ..DrainParams::default() };
                    return Ok(Shaping { queue, shaper: None, autorate: Some(AutorateConfig::Drain(drain)) });
                }
                // It saves nothing while the queue is empty.
                Ok(Shaping { queue, shaper: shaper(rate_after(last, "--rate"), Bytes::ZERO), autorate: None })
            }
            None => {
                let class = lines.iter().find(|line| line.starts_with("tc class "));
                let rate = class.and_then(|class| rate_after(class, "rate"));
                Ok(Shaping {
                    queue: narrows_scenario::tc::read(last)?,
                    shaper: shaper(rate, HTB_BURST),
                    autorate: None,
                })
            }
        }
    }

    /// The hop that simulates it.
    pub(super) fn hop(&self, name: &str) -> Hop {
        let own = self.queue.traits().shapes_to;
        let (rate, release, burst, framing) = match self.shaper {
            Some(Shaper { rate, burst, framing }) => (rate, Release::Start, burst, framing),
            None => (PORT.max(own.map_or(PORT, twice)), Release::End, Bytes::ZERO, self.own_framing()),
        };
        let Framing { overhead, mpu, atm } = framing;
        let (overhead, mpu) = (Bytes(u64::from(overhead)), Bytes(u64::from(mpu)));
        Hop { overhead, mpu, atm, release, burst, ..Hop::new(name, RateSpec::constant(rate), self.queue.clone()) }
    }

    /// How a queue that shapes counts a packet beside its own words. `cake` counts from the IP packet as soon as one of its words says so.
    fn own_framing(&self) -> Framing {
        let says = |parameter: &str| self.queue.get(parameter).is_some_and(|value| value != "0B" && value != "noatm");
        let is_framed = ["overhead", "mpu", "atm"].into_iter().any(says);
        Framing { overhead: if is_framed { 0 } else { ETHERNET.0 as u32 }, ..Framing::default() }
    }
}

/// The commands that have received packets pass a device of their own, where they can wait.
fn received_through_ifb(interface: &str) -> Vec<String> {
    let ifb = ifb(interface);
    vec![
        format!("ip link add name {ifb} type ifb"),
        format!("ip link set dev {ifb} up"),
        format!("tc qdisc replace dev {interface} handle ffff: ingress"),
        format!(
            "tc filter replace dev {interface} parent ffff: protocol all prio 10 matchall action mirred egress redirect dev {ifb}"
        ),
    ]
}

/// The name that `sqm-scripts` gives the device for what an interface receives; names have at most 15 bytes.
fn ifb(interface: &str) -> String {
    let name = format!("ifb4{interface}");
    name.chars().take(15).collect()
}

/// The commands that put a queue below a shaper.
pub(crate) fn below_htb(device: &str, (stab, rate): (String, Rate), leaf: &str) -> Vec<String> {
    vec![
        format!("tc qdisc replace dev {device} root handle 1: {stab}htb default 1"),
        format!("tc class replace dev {device} parent 1: classid 1:1 htb rate {}kbit", rate.as_bps() / 1000),
        format!("tc qdisc replace dev {device} parent 1:1 {leaf}"),
    ]
}

fn sqm(interface: &str, rates: [Rate; 2], link: &LinkLayer, qdisc: &str, script: &str) -> Vec<String> {
    let packages = if matches!(qdisc, "cake" | "fq_codel") { "sqm-scripts" } else { "sqm-scripts and kmod-sched" };
    let mut lines = vec![format!("# packages: {packages}"), "uci set sqm.advised=queue".to_owned()];
    let [down, up] = rates.map(|rate| (link.sqm(rate).1.as_bps() / 1000).to_string());
    let options = [
        ("interface", interface.to_owned()),
        ("download", down),
        ("upload", up),
        ("qdisc", qdisc.to_owned()),
        ("script", script.to_owned()),
    ];
    let options = options.into_iter().chain(link.sqm(rates[0]).0).chain([("enabled", "1".to_owned())]);
    lines.extend(options.map(|(key, value)| format!("uci set sqm.advised.{key}='{value}'")));
    lines.push("uci commit sqm && /etc/init.d/sqm restart".to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::super::link_layer;
    use super::*;

    /// What is shaped to these very rates.
    fn exactly(one: Candidate, rates: [Rate; 2]) -> (Candidate, [Rates; 2]) {
        (Candidate { percent: 100, ..one }, rates.map(|rate| Rates { mean: rate, most: rate, varies: true }))
    }

    fn recipes(one: Candidate, interface: &str, rates: [Rate; 2], link: &LinkLayer) -> Vec<Recipe> {
        let (one, rates) = exactly(one, rates);
        one.recipes(interface, rates, link)
    }

    fn shaping(one: Candidate, rates: [Rate; 2], link: &LinkLayer) -> [Shaping; 2] {
        let (one, rates) = exactly(one, rates);
        one.shaping(rates, link).expect("commands that are understood")
    }

    #[test]
    fn every_candidate_is_in_the_registry_and_has_commands() {
        for one in Candidate::all() {
            assert!(QueueConfig::named(one.down.name).is_some(), "{}", one.label());
            let recipes = recipes(one, "wan", [Rate::mbit(50), Rate::mbit(10)], &link_layer::ALL[0]);
            let lines: Vec<&String> = recipes.iter().flat_map(|recipe| &recipe.lines).collect();
            let both = ["50000", "10000"].map(|rate| lines.iter().any(|line| line.contains(rate)));
            assert_eq!(both, [true, true], "{}: {lines:?}", one.label());
        }
    }

    /// Every queue, at six rates: the hops that are simulated are those that the printed commands make.
    #[test]
    fn the_simulated_queue_is_what_the_printed_commands_say() {
        for kbit in [100, 475, 950, 5_700, 47_500, 950_000] {
            let (down, up) = (Rate::kbit(10 * kbit), Rate::kbit(kbit));
            for one in Candidate::all() {
                let printed = recipes(one, "wan", [down, up], &link_layer::ALL[0]).swap_remove(0).lines.join("\n");
                let shaping = shaping(one, [down, up], &link_layer::ALL[0]);
                let name = one.label();
                for (shaping, device, rate) in [(&shaping[0], "ifb4wan", down), (&shaping[1], "wan", up)] {
                    let hop = shaping.hop("hop");
                    let written = format!("{}kbit", rate.as_bps() / 1000);
                    assert_eq!(hop.overhead, Bytes(14), "a frame's header");
                    match name.as_str() {
                        "cake" => {
                            let line = format!("tc qdisc replace dev {device} root cake bandwidth {written} nat");
                            assert!(printed.contains(&line), "{printed}");
                            // Its target and quantum follow this rate, and the port behind it is never the bottleneck.
                            assert_eq!(hop.queue.get("bandwidth"), Some(rate.show()));
                            assert!(hop.rate.initial() >= twice(rate) && hop.release == Release::End);
                        }
                        "cocoa" | "cp" => {
                            let line = format!("narrows qdisc attach wan {name} --rate {written}");
                            assert!(printed.contains(&line), "{printed}");
                            assert_eq!(
                                (hop.rate.initial(), hop.release, hop.burst),
                                (rate, Release::Start, Bytes::ZERO)
                            );
                        }
                        _ => {
                            let class = format!("dev {device} parent 1: classid 1:1 htb rate {written}");
                            assert!(printed.contains(&class), "{printed}");
                            assert_eq!(
                                (hop.rate.initial(), hop.release, hop.burst),
                                (rate, Release::Start, Bytes(1600))
                            );
                        }
                    }
                    let alone = |limit: &str| QueueConfig::named(limit).expect("registered");
                    match name.as_str() {
                        "cake" => assert_eq!(hop.queue.to_string(), format!("cake:bandwidth={}", rate.show())),
                        "fifo" => assert_eq!(hop.queue.get("limit").as_deref(), Some("1000p")),
                        other => assert_eq!(hop.queue, alone(other), "as tc and we have it by default"),
                    }
                }
            }
        }
    }

    #[test]
    fn a_share_and_a_shaper_that_follows_are_read_as_they_are_shown() {
        for (text, shown) in [
            ("cake@50", "cake@50"),
            ("cake@95", "cake"),
            ("FQ-CoDel/cake @ 80", "fq_codel/cake@80"),
            ("cocoa+autorate", "cocoa+autorate"),
            ("cocoa@50+autorate", "cocoa+autorate"),
            ("fq_codel/cocoa@95+autorate", "fq_codel/cocoa@95+autorate"),
        ] {
            assert_eq!(Candidate::named(text).map(|one| one.label()), Ok(shown.to_owned()), "{text}");
        }
        for (text, wrong) in
            [("cake@0", "@0"), ("cake@101", "@101"), ("cake@", "@"), ("cake@x", "@x"), ("+autorate", "")]
        {
            assert_eq!(Candidate::named(text).err().as_deref(), Some(wrong), "{text}");
        }
        let all = Candidate::all_of_mechanisms(true);
        let labels: std::collections::BTreeSet<String> = all.iter().map(Candidate::label).collect();
        assert_eq!((labels.len(), all.iter().filter(|one| one.follows).count()), (all.len(), 7), "{labels:?}");
        assert!(!labels.contains("pie+autorate") && labels.contains("pie@50"), "{labels:?}");
    }

    #[test]
    fn what_is_sent_follows_the_link_by_the_command_of_the_program() {
        let one = Candidate::named("fq_codel/cocoa+autorate").unwrap_or_else(|name| panic!("{name}"));
        let rates = [(40, 80), (8, 20)].map(|(mean, most)| Rates {
            mean: Rate::mbit(mean),
            most: Rate::mbit(most),
            varies: true,
        });
        let recipes = one.recipes("wan", rates, &link_layer::ALL[0]);
        assert_eq!((recipes.len(), recipes[0].title.as_str()), (1, "tc and narrows"));
        let last = recipes[0].lines.last().map(String::as_str);
        assert_eq!(last, Some("narrows qdisc attach wan cocoa --autorate --min 800kbit --max 20000kbit"));
        assert!(
            recipes[0]
                .lines
                .contains(&"tc class replace dev ifb4wan parent 1: classid 1:1 htb rate 20000kbit".to_owned())
        );
        let [down, up] = one.shaping(rates, &link_layer::ALL[0]).expect("commands");
        assert_eq!(down.shaper.map(|shaper| shaper.rate), Some(Rate::mbit(20)), "half of the mean");
        let drain =
            DrainParams { min: Rate::kbit(800), max: Rate::mbit(20), base: Rate::kbit(800), ..DrainParams::default() };
        assert_eq!((up.shaper, up.autorate), (None, Some(AutorateConfig::Drain(drain))));
    }

    #[test]
    fn each_direction_may_have_a_queue_of_its_own() {
        let both = Candidate::named("FQ-CoDel/cake").unwrap_or_else(|name| panic!("{name}"));
        assert_eq!(both.label(), "fq_codel/cake");
        let recipes = recipes(both, "wan", [Rate::mbit(50), Rate::mbit(10)], &link_layer::ALL[0]);
        assert_eq!(recipes.len(), 1, "sqm-scripts have one queue for both directions");
        let lines = recipes[0].lines.join("\n");
        assert!(lines.contains("dev wan root cake bandwidth 10000kbit"), "{lines}");
        assert!(lines.contains("dev ifb4wan parent 1:1 fq_codel"), "{lines}");
        let [down, up] = shaping(both, [Rate::mbit(50), Rate::mbit(10)], &link_layer::ALL[0]);
        assert_eq!((down.queue.name(), up.queue.name()), ("fq_codel", "cake"));
        assert_eq!((down.shaper.map(|shaper| shaper.rate), up.shaper), (Some(Rate::mbit(50)), None));
        assert_eq!(Candidate::named("cake/gsp").err().as_deref(), Some("gsp"));
        assert_eq!(Candidate::named("cocoa/cake").map(|one| one.is_stock()).ok(), Some(false));
    }

    #[test]
    fn the_commands_for_fq_codel_are_those_of_the_manuals() {
        let one = Candidate::named("fq_codel").unwrap_or_else(|name| panic!("{name}"));
        let all = recipes(one, "eth0", [Rate::mbit(9), Rate::kbit(950)], &link_layer::ALL[0]);
        let wanted = "\
tc qdisc replace dev eth0 root handle 1: htb default 1
tc class replace dev eth0 parent 1: classid 1:1 htb rate 950kbit
tc qdisc replace dev eth0 parent 1:1 fq_codel
ip link add name ifb4eth0 type ifb
ip link set dev ifb4eth0 up
tc qdisc replace dev eth0 handle ffff: ingress
tc filter replace dev eth0 parent ffff: protocol all prio 10 matchall action mirred egress redirect dev ifb4eth0
tc qdisc replace dev ifb4eth0 root handle 1: htb default 1
tc class replace dev ifb4eth0 parent 1: classid 1:1 htb rate 9000kbit
tc qdisc replace dev ifb4eth0 parent 1:1 fq_codel";
        assert_eq!(all[0].lines.join("\n"), wanted);
        assert!(all[1].lines.contains(&"uci set sqm.advised.script='simplest.qos'".to_owned()));
        assert_eq!(ifb("enp0s31f6u1u2"), "ifb4enp0s31f6u1");
    }

    /// Whatever shapes below a link of a kind, a packet takes at least as long in the simulated shaper as on that link, and the rate of full-sized
    /// packets is within 4 % of the link's.
    #[test]
    fn every_shaper_counts_what_the_link_adds() {
        for link in &link_layer::ALL {
            let wire = Hop {
                overhead: Bytes(u64::from(link.framing.overhead)),
                ..Hop::new("wire", RateSpec::constant(Rate::mbit(10)), QueueConfig::named("fifo").expect("registered"))
            };
            let wire = Hop { mpu: Bytes(u64::from(link.framing.mpu)), atm: link.framing.atm, ..wire };
            for one in Candidate::all() {
                let [_, up] = shaping(one, [Rate::mbit(50), Rate::mbit(10)], link);
                let hop = up.hop("hop");
                // Our own programs know no minimum length: they count the shortest packets short.
                let least = if one.up.is_attached() { link.framing.mpu } else { 0 };
                for len in [40, 52, 64, 100, 576, 1460, 1500].into_iter().filter(|len| *len >= u64::from(least)) {
                    let bits = |bytes: Bytes, rate: Rate| bytes.0 as f64 * 8.0 / rate.as_bps() as f64;
                    let on_link = bits(wire.on_the_wire(Bytes(len)), Rate::mbit(10));
                    let shaped = match up.shaper {
                        Some(shaper) => bits(hop.on_the_wire(Bytes(len)), shaper.rate),
                        None => cake_time(&up.queue, hop.on_the_wire(Bytes(len))),
                    };
                    // A link of PTM counts 64 bytes that have begun as whole ones, and our programs have rates in kbit/s.
                    let (byte, name, link) = (bits(Bytes(1), Rate::mbit(10)), one.label(), link.name);
                    assert!(
                        shaped >= on_link - byte,
                        "{name} below {link}: {len} bytes take {shaped}, on the link {on_link}"
                    );
                    assert!(len < 1400 || shaped <= 1.04 * on_link, "{name} below {link}: {shaped} for {on_link}");
                }
            }
        }
    }

    fn cake_time(queue: &QueueConfig, len: Bytes) -> f64 {
        let number = |name: &str| queue.get(name).and_then(|text| Bytes::parse(&text)).expect("bytes").0 as u32;
        let atm = queue.get("atm").and_then(|text| Atm::parse(&text)).expect("a link layer");
        let framing = Framing { overhead: number("overhead"), mpu: number("mpu"), atm };
        let rate = queue.get("bandwidth").and_then(|text| Rate::parse(&text)).expect("a rate");
        f64::from(framing.length(len.0 as u32)) * 8.0 / rate.as_bps() as f64
    }

    #[test]
    fn each_link_layer_has_its_words() {
        let lines = |name: &str, queue: &str| {
            let one = Candidate::named(queue).unwrap_or_else(|name| panic!("{name}"));
            let link = LinkLayer::named(name).expect("it is listed");
            let recipes = recipes(one, "wan", [Rate::kbit(9500), Rate::kbit(950)], link);
            recipes.into_iter().flat_map(|recipe| recipe.lines).collect::<Vec<_>>().join("\n")
        };
        for (link, queue, expected) in [
            ("docsis", "cake", "dev wan root cake bandwidth 950kbit docsis nat"),
            ("docsis", "fq_codel", "dev wan root handle 1: stab overhead 4 mpu 64 linklayer ethernet htb default 1"),
            ("docsis", "cocoa", "cocoa --rate 950kbit --overhead 4\n"),
            ("adsl", "cake", "cake bandwidth 950kbit pppoe-llcsnap nat"),
            ("adsl", "pie", "stab overhead 26 linklayer atm htb"),
            ("adsl", "cp", "cp --rate 860kbit --overhead 73\n"),
            ("vdsl", "cake", "cake bandwidth 950kbit pppoe-ptm nat"),
            ("vdsl", "codel", "stab overhead 16 linklayer ethernet htb"),
            ("vdsl", "codel", "htb rate 935kbit\n"),
            ("vdsl", "fq_codel", "uci set sqm.advised.overhead='30'"),
            ("ethernet", "fq_codel", "uci set sqm.advised.tcMPU='84'"),
            ("lte", "cake", "cake bandwidth 950kbit nat"),
        ] {
            let lines = lines(link, queue);
            assert!(lines.contains(expected), "{link}, {queue}: no {expected:?} in\n{lines}");
        }
    }
}
