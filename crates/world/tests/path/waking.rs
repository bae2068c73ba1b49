//! Waking late changes nothing.
use crate::harness::{Arrival, Driven, Log, arrivals, hop, scenario, way};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Rng, Span, Time};
use narrows_results::summary::HopSummary;
use narrows_scenario::{RateSpec, Scenario, TraceSource};
use narrows_world::path::Route;
use proptest::prelude::*;

/// When the thread looks.
#[derive(Clone, Copy, Debug)]
enum Wakes {
    /// Whenever there is something to hand over, exactly then.
    InTime,
    /// So far apart on average, at random.
    Random(u64, Span),
    /// At the very end.
    Never,
}

fn drive(scenario: &Scenario, routes: &[Route], packets: &[Arrival], wakes: Wakes) -> (Log, Vec<HopSummary>) {
    let mut driven = Driven::new(scenario, routes);
    let end = Time::ZERO + scenario.duration;
    let mut rng = match wakes {
        Wakes::Random(seed, _) => Rng::stream(seed, "wakes"),
        Wakes::InTime | Wakes::Never => Rng::stream(0, "wakes"),
    };
    let mut now = Time::ZERO;
    let mut until = |driven: &mut Driven, limit: Time| {
        loop {
            let next = match wakes {
                Wakes::InTime => driven.path.sleeps_until(),
                Wakes::Random(_, apart) => {
                    Some(now + Span::from_secs_f64(apart.as_secs_f64() * rng.exponential()).max(Span::ns(1)))
                }
                Wakes::Never => None,
            };
            let Some(next) = next.filter(|&next| next < limit) else { break };
            now = next.max(now);
            driven.advance(now);
        }
        now = now.max(limit);
    };
    for packet in packets.iter().take_while(|packet| packet.at < end) {
        until(&mut driven, packet.at);
        driven.offer(packet);
    }
    until(&mut driven, end);
    driven.finish(scenario, end)
}

fn service() -> impl Strategy<Value = String> {
    prop_oneof![
        (50..20_000u32).prop_map(|kbit| format!("rate = \"{kbit}kbit\"")),
        (50..20_000u32).prop_map(|kbit| format!("rate = \"{kbit}kbit\"\nrelease = \"start\"\nburst = \"3000B\"")),
        // With an outage.
        (50..20_000u32, 1..400u32).prop_map(|(kbit, at)| format!(
            "rate = [{{ at = \"0s\", rate = \"{kbit}kbit\" }}, {{ at = \"{at}ms\", rate = \"0kbit\" }}, {{ at = \"{}ms\", rate = \"1mbit\" }}]",
            at + 70
        )),
        (1..2000u64, 1..20usize).prop_map(|(seed, count)| format!("rate = \"1mbit\" # trace {seed} {count}")),
    ]
}

/// Queue, what serves it, delay and what becomes of it at a time (ms), jitter, loss, overhead.
type OneHop = (usize, String, (u64, Option<(u64, u64)>), u64, f64, u32);

fn hops() -> impl Strategy<Value = String> {
    let loss = prop_oneof![Just(0.0), 0.0..0.3];
    let delay = (0..30u64, prop_oneof![2 => Just(None), 1 => (1..400u64, 0..30u64).prop_map(Some)]);
    let one = (0..QueueConfig::NAMES.len(), service(), delay, 0..30u64, loss, 0..60u32);
    prop::collection::vec(one, 1..4).prop_map(|all| {
        let text = |(n, (queue, service, (delay, later), jitter, loss, overhead)): (usize, OneHop)| {
            let least = later.map_or(delay, |(_, later)| later.min(delay));
            let later = later.map(|(at, later)| format!(", {{ at = \"{at}ms\", delay = \"{later}ms\" }}"));
            let rest = format!(
                "{service}\nqueue = \"{}\"\ndelay = [{{ at = \"0s\", delay = \"{delay}ms\" }}{}]\njitter = \"{}ms\"\n\
                 loss = {loss}\noverhead = \"{overhead}B\"",
                QueueConfig::NAMES[queue],
                later.unwrap_or_default(),
                jitter.min(least),
            );
            hop(&format!("h{n}"), &rest)
        };
        all.into_iter().enumerate().map(text).collect()
    })
}

/// A rate that stands for a trace is made one: opportunities at random moments of 50 ms.
fn with_traces(text: &str) -> Scenario {
    let mut scenario = scenario(text);
    let marks = text.lines().filter(|line| line.starts_with("rate")).map(|line| line.split_once("# trace "));
    for (hop, mark) in scenario.hops.iter_mut().zip(marks) {
        let Some((_, mark)) = mark else { continue };
        let numbers: Vec<u64> = mark.split(' ').map(|word| word.parse().unwrap()).collect();
        let mut rng = Rng::stream(numbers[0], "trace");
        let mut opportunities: Vec<Span> = (0..numbers[1]).map(|_| Span::ms(1 + rng.below(50))).collect();
        opportunities.sort_unstable();
        hop.rate = RateSpec::Trace {
            source: TraceSource::File("trace".into()),
            opportunities: opportunities.into(),
            period: Span::ms(50),
        };
    }
    scenario
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn when_one_looks_does_not_matter(
        hops in hops(), seed: u64, apart_us in 20..3000u64, wake_us in 1..50_000u64, tails in [0..40u64, 0..40u64], warmup in 0..500u64,
    ) {
        let scenario = Scenario { warmup: Span::ms(warmup.saturating_sub(250)), ..with_traces(&hops) };
        let all: Vec<u16> = (0..scenario.hops.len() as u16).collect();
        // Over all hops, over the last one only, and past all of them.
        let routes = [way(&all, Span::ms(tails[0])), way(&all[all.len() - 1..], Span::ms(tails[1])), way(&[], Span::ms(tails[0]))];
        let packets = arrivals(&mut Rng::stream(seed, "arrivals"), 400, Span::us(apart_us), 3);
        let in_time = drive(&scenario, &routes, &packets, Wakes::InTime);
        prop_assert_eq!(&drive(&scenario, &routes, &packets, Wakes::Never), &in_time);
        for n in 0..3 {
            let late = Wakes::Random(seed ^ n, Span::us(wake_us * (n + 1)));
            prop_assert_eq!(&drive(&scenario, &routes, &packets, late), &in_time, "{:?}", late);
        }
    }
}
