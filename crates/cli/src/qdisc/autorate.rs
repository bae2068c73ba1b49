//! `--autorate`: the rate of a shaper on an interface follows its link.
use super::Attach;
use super::follower::Follower;
use crate::failure::Failure;
use crate::interrupt;
use crate::term;
use narrows_core::autorate::{AutorateConfig, Shaped};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::{Registered as _, spelled};
use narrows_core::{Bytes, Rate, Span};
use narrows_host::{Clock, Namespace, Qdisc, Reflector, ReflectorKind};
use narrows_scenario::{hint, shorthand};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};

/// How often Ctrl-C is looked for.
const TICK: Span = Span::ms(50);
/// Time without an answer after which it is said.
const SILENCE: Span = Span::s(5);
/// A change of the rate that is worth a call of the kernel, as a share.
const STEP: f64 = 0.005;
/// Controllers that follow a link. The first is the default.
const CONTROLLERS: [&str; 2] = ["drain", "cake_autorate"];

/// What was asked for.
pub(super) struct Autorate {
    config: AutorateConfig,
    lowest: Rate,
    /// Rate at the start.
    pub(super) start: Rate,
    reflector: Option<IpAddr>,
}

impl Autorate {
    /// Reads the flags; `None` without `--autorate`.
    pub(super) fn read(args: &Attach, queue: &QueueConfig) -> Result<Option<Autorate>, Failure> {
        let Some(text) = &args.autorate else { return Ok(None) };
        let mut config = controller(text)?;
        if !queue.traits().isolates {
            return Err(Failure::usage(format!(
                "--autorate: probes would wait with all other packets in {:?}, and its own delay would pass for the link's; \
                 allowed: queues that serve flows in turn, such as cocoa, lfq, cake, fq_codel",
                queue.name()
            )));
        }
        let (Some(min), Some(max)) = (&args.min, &args.max) else {
            return Err(Failure::usage("--autorate: between which rates? Write --min 5mbit --max 100mbit"));
        };
        let rate = |flag: &str, text: &str| shorthand::rate(flag, text).map_err(Failure::usage);
        let (lowest, highest) = (rate("--min", min)?, rate("--max", max)?);
        if lowest > highest {
            return Err(Failure::usage(format!(
                "--min: cannot be {lowest}; allowed: at most --max, which is {highest}"
            )));
        }
        let start = args.rate.as_deref().map_or(Ok(lowest), |text| rate("--rate", text))?;
        if !(lowest..=highest).contains(&start) {
            return Err(Failure::usage(format!(
                "--rate: cannot be {start}; allowed: from --min to --max, {lowest} to {highest}"
            )));
        }
        for (name, value) in [("min", lowest), ("max", highest), ("base", start)] {
            let set = config.set(name, &value.to_string());
            set.map_err(|error| Failure::usage(format!("--autorate: {error}")))?;
        }
        config.validate().map_err(|error| Failure::usage(format!("--autorate: {error}")))?;
        let address = |text: &String| {
            let wrong = || format!("--reflector: cannot be {text:?}; allowed: an IP address, such as 192.0.2.1");
            text.parse().map_err(|_| Failure::usage(wrong()))
        };
        let reflector = args.reflector.as_ref().map(address).transpose()?;
        Ok(Some(Autorate { config, lowest, start, reflector }))
    }

    /// Finds the reflector, before anything is changed.
    pub(super) fn find(&self, interface: &str) -> Result<Found, Failure> {
        let address = match self.reflector.or_else(|| gateway(interface).map(IpAddr::V4)) {
            Some(address) => address,
            None => {
                return Err(Failure::usage(format!(
                    "--reflector: {interface} has no default route, whose gateway would be taken; allowed: an address behind the link that answers ICMP"
                )));
            }
        };
        let clock = Clock::start();
        let found = Reflector::find(interface, address, clock);
        let found = found
            .map_err(|error| Failure::usage(format!("--reflector: cannot send probes through {interface}: {error}")))?;
        let Some(reflector) = found else {
            return Err(Failure::usage(format!(
                "--reflector: {address} answers neither ICMP timestamps nor echo requests through {interface}; allowed: an address behind the link that does"
            )));
        };
        let measures = match reflector.kind() {
            ReflectorKind::Timestamp => "one-way delays (ICMP timestamps)",
            ReflectorKind::Echo => "round trips (ICMP echo)",
        };
        term::note(&format!("narrows: {interface}: {address} is the reflector, for {measures}"));
        Ok(Found { address, reflector, clock })
    }
}

/// A reflector that has answered.
pub(super) struct Found {
    address: IpAddr,
    reflector: Reflector,
    clock: Clock,
}

fn controller(text: &str) -> Result<AutorateConfig, Failure> {
    let name = text.split(':').next().unwrap_or_default().trim();
    if !CONTROLLERS.contains(&spelled(name).as_str()) {
        let allowed = CONTROLLERS.join(", ");
        let what = if spelled(name) == "fixed" {
            "fixed follows nothing".into()
        } else {
            format!("unknown autorate {name:?}")
        };
        return Err(Failure::usage(format!("--autorate: {what}; allowed: {allowed}{}", hint(name, CONTROLLERS))));
    }
    narrows_core::registry::read(text).map_err(|error| Failure::usage(format!("--autorate: {error}")))
}

/// The gateway of an interface's default route.
fn gateway(interface: &str) -> Option<Ipv4Addr> {
    let routes = fs::read_to_string("/proc/thread-self/net/route").ok()?;
    let gateways = routes.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let metric: u32 = words.get(6)?.parse().ok()?;
        let is_default = words[0] == interface && hex(1)? == 0 && hex(7)? == 0;
        let gateway = hex(2).filter(|gateway| is_default && *gateway != 0)?;
        Some((metric, Ipv4Addr::from(gateway.to_ne_bytes())))
    });
    gateways.min().map(|(_, gateway)| gateway)
}

/// Sets a shaper's rate.
pub(super) type SetRate = Box<dyn FnMut(Rate) -> Result<(), Failure>>;

/// A shaper on an interface whose rate follows the link.
pub(super) struct Following {
    interface: String,
    found: Found,
    follower: Follower,
    counters: Qdisc,
    is_behind: bool,
    set_rate: SetRate,
    rate: Rate,
    is_silent: bool,
}

impl Following {
    /// Begins. `device` has the shaper at its root; `is_behind` says that it is for what the interface receives.
    pub(super) fn start(
        autorate: &Autorate,
        found: Found,
        (interface, device, is_behind): (&str, &str, bool),
        set_rate: SetRate,
    ) -> Result<Following, Failure> {
        let counters = Namespace::current().and_then(|here| Qdisc::open(&here, device, Qdisc::ROOT));
        let mut counters = counters.map_err(Failure::other)?;
        let shaped = look(&mut counters, found.clock, is_behind)?;
        let follower = Follower::new(&autorate.config, is_behind, autorate.lowest, shaped);
        let interface = interface.to_owned();
        Ok(Following {
            interface,
            found,
            follower,
            counters,
            is_behind,
            set_rate,
            rate: autorate.start,
            is_silent: false,
        })
    }

    /// Follows the link for a time, or until Ctrl-C: then it returns true.
    pub(super) fn follow_for(&mut self, span: Span) -> Result<bool, Failure> {
        let until = self.found.clock.now() + span;
        loop {
            if interrupt::requested() {
                interrupt::answered();
                return Ok(true);
            }
            let shaped = look(&mut self.counters, self.found.clock, self.is_behind)?;
            if shaped.now >= until {
                return Ok(false);
            }
            if let Some(number) = self.follower.due(shaped) {
                self.found.reflector.send(number);
            }
            self.set(self.follower.rate(shaped.passed))?;
            self.say_silence(shaped);
            let wait = self.follower.next().min(until).min(shaped.now + TICK);
            let answer = self.found.reflector.wait(wait).map_err(Failure::other)?;
            if let Some(answer) = answer {
                let shaped = look(&mut self.counters, self.found.clock, self.is_behind)?;
                self.follower.on_answer(answer, shaped);
                self.set(self.follower.rate(shaped.passed))?;
            }
        }
    }

    fn set(&mut self, rate: Rate) -> Result<(), Failure> {
        let [now, next] = [self.rate, rate].map(|rate| rate.as_bps() as f64);
        if (next - now).abs() > STEP * now {
            (self.set_rate)(rate)?;
            self.rate = rate;
        }
        Ok(())
    }

    fn say_silence(&mut self, shaped: Shaped) {
        let is_silent = self.follower.silence(shaped.now) >= SILENCE;
        if is_silent != self.is_silent {
            let (interface, address) = (&self.interface, self.found.address);
            let said = if is_silent { format!("has not answered for {SILENCE}") } else { "answers again".to_owned() };
            term::note(&format!("narrows: {interface}: {address} {said}; the rate is {}", self.rate));
            self.is_silent = is_silent;
        }
    }
}

/// The bytes that a shaper has let pass. A shaper behind the link also counts what waits at it, because the link has carried that.
fn look(counters: &mut Qdisc, clock: Clock, is_behind: bool) -> Result<Shaped, Failure> {
    let stats = counters.stats().map_err(Failure::other)?;
    let backlog = Bytes(stats.backlog_bytes.into());
    let passed = Bytes(stats.bytes) + if is_behind { backlog } else { Bytes::ZERO };
    Ok(Shaped { now: clock.now(), passed, backlog })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_controllers_are_refused_by_name() {
        let said = |text: &str| match controller(text) {
            Err(Failure::Usage(message)) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(said("fixed"), "--autorate: fixed follows nothing; allowed: drain, cake_autorate");
        assert!(
            said("drian")
                .contains("unknown autorate \"drian\"; allowed: drain, cake_autorate (did you mean \"drain\"?)")
        );
        assert!(said("drain:colour=1").starts_with("--autorate: parameters of drain: "));
        assert!(controller("cake-autorate:delay_thr=20ms").is_ok());
    }
}
