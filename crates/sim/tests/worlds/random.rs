//! For any valid scenario the run reaches its end, its accounts balance, and a second run gives the same result.
use crate::harness::{parse, run};
use narrows_core::autorate::AutorateConfig;
use narrows_core::congestion::ControllerConfig;
use narrows_core::mechanism::MechanismConfig;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_results::RunResult;
use proptest::prelude::*;
use std::fmt::Write;

/// What a few hops do to packets besides, as text.
fn effects() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        Just("overtake = true\n".to_owned()),
        prop::sample::select(vec!["normal", "pareto", "paretonormal"])
            .prop_map(|distribution| format!("distribution = \"{distribution}\"\n")),
        (0.0..0.5f64, 0.0..1.0f64).prop_map(|(share, rho)| format!("duplicate = \"{share} {rho}\"\n")),
        (0.0..0.1f64).prop_map(|share| format!("corrupt = {share:?}\n")),
        (0.0..1.0f64, 1u32..10).prop_map(|(share, gap)| format!("reorder = \"{share} gap {gap}\"\n")),
        (1u32..50).prop_map(|limit| format!("delay_limit = {limit}\n")),
        (100u32..20_000, 1500u32..100_000, any::<bool>()).prop_map(|(rate, burst, marks)| {
            let exceed = if marks { " conform-exceed mark" } else { "" };
            format!("police = \"rate {rate}kbit burst {burst}b{exceed}\"\n")
        }),
    ];
    prop_oneof![3 => Just(String::new()), 1 => one]
}

/// A few hops, as the text of their sections.
fn hop(index: usize) -> impl Strategy<Value = String> {
    let rate = prop_oneof![
        4 => (200u64..30_000).prop_map(|kbit| format!("\"{kbit}kbit\"")),
        1 => (500u64..20_000, 1u64..1500, 1u64..700, 100u64..20_000).prop_map(|(before, at, length, after)| format!(
            "[{{ at = \"0s\", rate = \"{before}kbit\" }}, {{ at = \"{at}ms\", rate = \"0bit\" }}, \
             {{ at = \"{}ms\", rate = \"{after}kbit\" }}]",
            at + length
        )),
    ];
    let queue = prop_oneof![
        2 => prop::sample::select(QueueConfig::NAMES).prop_map(|name| format!("\"{name}\"")),
        1 => (1u32..40).prop_map(|limit| format!("{{ kind = \"fifo\", limit = \"{limit}p\" }}")),
    ];
    let release = prop_oneof![
        3 => Just(String::new()),
        1 => (0u32..20_000).prop_map(|burst| format!("release = \"start\"\nburst = \"{burst}B\"\n")),
        1 => prop::sample::select(MechanismConfig::NAMES).prop_map(|name| format!("mechanism = \"{name}\"\n")),
        1 => prop::sample::select(MechanismConfig::NAMES).prop_flat_map(|name| {
            let rate = prop::sample::select(AutorateConfig::NAMES);
            rate.prop_map(move |rate| format!("mechanism = \"{name}\"\nautorate = \"{rate}\"\n"))
        }),
    ];
    let loss = prop_oneof![3 => Just(0.0), 1 => 0.0..0.3f64];
    let later = prop_oneof![3 => Just(None), 1 => (1u64..2000, 0u64..20_000).prop_map(Some)];
    let delay = (0u64..10_000, later, prop_oneof![2 => Just(0), 1 => 0u64..=100]);
    (rate, queue, release, loss, delay, (0u32..50, effects())).prop_map(
        move |(rate, queue, release, loss, (delay, later, percent), (overhead, effects))| {
            // A mechanism changes a constant rate.
            let release =
                if rate.starts_with('[') && release.starts_with("mechanism") { String::new() } else { release };
            let jitter = later.map_or(delay, |(_, later)| later.min(delay)) * percent / 100;
            let delay = match later {
                None => format!("\"{delay}us\""),
                Some((at, later)) => {
                    format!("[{{ at = \"0s\", delay = \"{delay}us\" }}, {{ at = \"{at}ms\", delay = \"{later}us\" }}]")
                }
            };
            format!(
                "[[hop]]\nname = \"h{index}\"\nrate = {rate}\nqueue = {queue}\nloss = {loss:?}\ndelay = {delay}\n\
             jitter = \"{jitter}us\"\noverhead = \"{overhead}B\"\n{release}{effects}"
            )
        },
    )
}

/// Combinations of traffic and transport that are allowed.
fn traffic() -> impl Strategy<Value = (String, bool)> {
    let tcp = prop_oneof![
        3 => Just("\"bulk\"".to_owned()),
        1 => (1u64..3_000_000).prop_map(|size| format!("{{ kind = \"finite\", size = \"{size}B\" }}")),
        1 => (1u64..100_000, 0u64..500)
            .prop_map(|(size, think)| format!("{{ kind = \"web\", size = \"{size}B\", think = \"{think}ms\" }}")),
        1 => (1u64..4000, 1u64..100)
            .prop_map(|(size, gap)| format!("{{ kind = \"thin\", size = \"{size}B\", interval = \"{gap}ms\" }}")),
        1 => (100u64..20_000).prop_map(|rate| format!("{{ kind = \"onoff\", rate = \"{rate}kbit\" }}")),
    ];
    let udp = prop_oneof![
        (10u64..20_000, 100u32..2000)
            .prop_map(|(rate, size)| format!("{{ kind = \"cbr\", rate = \"{rate}kbit\", packet = \"{size}B\" }}")),
        (10u64..20_000).prop_map(|rate| format!("{{ kind = \"poisson\", rate = \"{rate}kbit\" }}")),
        (0.0..1.0f64).prop_map(|jitter| format!("{{ kind = \"thin\", jitter = {jitter:?} }}")),
        (100u64..20_000).prop_map(|rate| format!("{{ kind = \"onoff\", rate = \"{rate}kbit\" }}")),
    ];
    prop_oneof![2 => tcp.prop_map(|t| (t, true)), 1 => udp.prop_map(|t| (t, false))]
}

fn transport() -> impl Strategy<Value = String> {
    let controller = prop::sample::select(ControllerConfig::NAMES);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let segments = prop_oneof![2 => Just(1), 1 => 2u32..=45];
    let receiving = (any::<bool>(), any::<bool>(), 2304u32..300_000);
    (controller, flags, 1u32..40, 0u32..20, (1u32..5, segments), 200u32..9000, receiving).prop_map(
        |(controller, (ecn, pacing, quic, sack), window, quick, (every, segments), packet, (limit, ticks, buffer))| {
            if quic || ControllerConfig::named(controller).is_some_and(|controller| controller.splits()) {
                return format!(
                    "controller = \"{controller}\"\ntransport = {{ kind = \"quic\", ecn = {ecn}, \
                     initial_window = \"{window}p\", ack_every = \"{every}p\", packet = \"{packet}B\" }}\n"
                );
            }
            format!(
                "controller = \"{controller}\"\ntransport = {{ kind = \"tcp\", ecn = {ecn}, pacing = {pacing}, \
                 initial_window = \"{window}p\", quick_acks = \"{quick}p\", ack_every = \"{every}p\", \
                 packet = \"{packet}B\", sack = {sack}, gso_max_segs = {segments}, ticks = {ticks}, \
                 receive_limit = {limit}, receive_buffer = \"{buffer}B\" }}\n"
            )
        },
    )
}

/// A flow over some of `hops` hops: the first ones on the way there, the others perhaps on the way back.
fn flow(index: usize, hops: usize) -> impl Strategy<Value = String> {
    let times = (1u64..200, 0u64..1000, 1u64..2000);
    (traffic(), transport(), 1u32..4, times, 1..=hops, any::<bool>()).prop_map(
        move |((traffic, is_tcp), transport, count, (rtt, start, life), there, back)| {
            let names =
                |range: std::ops::Range<usize>| range.map(|n| format!("\"h{n}\"")).collect::<Vec<_>>().join(", ");
            let mut text = format!("[[flow]]\nname = \"f{index}\"\ncount = {count}\ntraffic = {traffic}\n");
            text += if is_tcp { &transport } else { "transport = \"udp\"\n" };
            // The hops delay by less than 10 ms each at first.
            let rtt = rtt + 10 * hops as u64;
            let _ = writeln!(text, "rtt = {{ uniform = [\"{rtt}ms\", \"{}ms\"] }}", rtt + 20);
            let _ = writeln!(text, "start = \"{start}ms\"\nstop = \"{}ms\"", start + life);
            let _ = writeln!(text, "route = [{}]", names(0..there));
            if back && is_tcp {
                let _ = writeln!(text, "back = [{}]", names(there..hops));
            }
            text
        },
    )
}

/// A small scenario without its seed.
pub(crate) fn scenario() -> impl Strategy<Value = String> {
    (1usize..4, 1usize..4).prop_flat_map(|(hops, flows)| {
        let hops_text = (0..hops).map(|n| hop(n).boxed()).collect::<Vec<_>>();
        let flows_text = (0..flows).map(|n| flow(n, hops).boxed()).collect::<Vec<_>>();
        (hops_text, flows_text, prop_oneof![Just(0u64), 1u64..1500]).prop_map(|(hops, flows, warmup)| {
            format!("duration = \"2500ms\"\nwarmup = \"{warmup}ms\"\n{}{}", hops.concat(), flows.concat())
        })
    })
}

fn seeded(text: &str, seed: u64) -> RunResult {
    run(&parse(&format!("seed = {seed}\n{text}")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_world_runs_and_runs_again_the_same(text in scenario(), seed in 0u64..1000) {
        let first = seeded(&text, seed);
        prop_assert!(first == seeded(&text, seed), "two runs of the same seed differ");
    }
}

#[test]
fn another_seed_is_another_run_where_there_is_chance() {
    let text = |chance: &str| {
        format!(
            "duration = \"3s\"\n[[hop]]\nname = \"h\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n{chance}\n\
             rtt = \"20ms\"\nroute = [\"h\"]"
        )
    };
    let flow = "[[flow]]\nname = \"f\"";
    let by_chance = [
        format!("loss = 0.01\n{flow}"),
        format!("{flow}\nstart = {{ uniform = [\"0s\", \"1s\"] }}"),
        format!("{flow}\ntraffic = \"poisson\""),
        format!("{flow}\ntraffic = \"onoff\"\ntransport = \"udp\""),
        format!("{flow}\ntraffic = {{ kind = \"thin\", jitter = 0.5 }}\ntransport = \"udp\""),
        format!("{flow}\ntraffic = \"web\""),
    ];
    let figures = |text: &str, seed| RunResult { summary: seeded(text, 1).summary, ..seeded(text, seed) };
    for chance in &by_chance {
        let text = text(chance);
        assert!(figures(&text, 1) != figures(&text, 2), "seeds 1 and 2 give the same series:\n{text}");
    }
    let text = text(flow);
    assert!(figures(&text, 1) == figures(&text, 2), "nothing is left to chance here:\n{text}");
}
