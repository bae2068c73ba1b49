//! A run in steps is the run at once.
use crate::harness::parse;
use crate::random;
use narrows_core::{Span, Time};
use narrows_scenario::{NoTraces, Scenario};
use narrows_sim::{Session, Unwatched};
use proptest::prelude::*;

fn scenario(duration: &str) -> Scenario {
    let text = format!(
        "duration = \"{duration}\"\n[[hop]]\nname = \"h\"\nrate = \"10mbit\"\nqueue = \"codel\"\nloss = 0.01\n\
         [[flow]]\nname = \"f\"\ncount = 3\nrtt = \"40ms\"\nroute = [\"h\"]\n"
    );
    Scenario::parse(&text, "session.toml", &NoTraces).expect("it is legal")
}

#[test]
fn steps_do_not_change_what_happens() {
    let mut at_once = Session::new(scenario("5s"));
    at_once.advance(Time::ZERO + Span::s(5)).unwrap();
    let mut in_steps = Session::new(scenario("5s"));
    let mut step = Span::us(1);
    while in_steps.now() < Time::ZERO + Span::s(5) {
        in_steps.advance(in_steps.now() + step).unwrap();
        step = (step * 3 / 2 + Span::us(1)).min(Span::ms(7));
    }
    assert!(at_once.events() > 3000, "{}", at_once.events());
    assert_eq!(at_once.events(), in_steps.events());
    assert_eq!(at_once.now(), in_steps.now());
}

#[test]
fn the_end_of_the_scenario_is_the_end() {
    let mut session = Session::new(scenario("1s"));
    session.advance(Time::ZERO + Span::s(9)).unwrap();
    assert_eq!(session.now(), Time::ZERO + Span::s(1));
}

/// What happens in a run at once and in a session of random steps, as the number of events: each retransmission, timer and
/// acknowledgment is one, so another order of simultaneous events shows in it.
fn events(scenario: &Scenario, steps: &[u64]) -> (u64, u64) {
    let at_once = narrows_sim::run(scenario, 1, &mut Unwatched).expect("nobody ends it early");
    let mut session = Session::new(scenario.clone());
    for step in steps.iter().cycle() {
        session.advance(session.now() + Span::us(*step)).expect("it keeps to its budget");
        if session.now() == Time::ZERO + scenario.duration {
            break;
        }
    }
    (session.events(), at_once.summary.cost.events)
}

/// Hundreds of flows with many simultaneous events: a run that may use two threads.
fn many_flows() -> impl Strategy<Value = String> {
    let hop = (prop::sample::select(vec![240u32, 600, 1200]), prop::sample::select(vec!["fifo", "fq_codel", "codel"]));
    let groups = prop::collection::vec((130u32..200, 5u64..20, any::<bool>(), 0u64..3), 2..=3);
    (hop, groups).prop_map(|((mbit, queue), groups)| {
        let mut text = format!(
            "duration = \"200ms\"\nwarmup = \"50ms\"\n[[hop]]\nname = \"h\"\nrate = \"{mbit}mbit\"\nqueue = \"{queue}\"\n\
             delay = \"1ms\"\n"
        );
        for (n, (count, rtt, udp, start)) in groups.into_iter().enumerate() {
            let traffic =
                if udp { "traffic = { kind = \"cbr\", rate = \"1200kbit\", packet = \"1500B\" }\ntransport = \"udp\"" } else { "" };
            text += &format!(
                "[[flow]]\nname = \"g{n}\"\ncount = {count}\nrtt = \"{rtt}ms\"\nstart = \"{start}ms\"\nroute = [\"h\"]\n{traffic}\n"
            );
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_is_the_run_at_once(
        text in prop_oneof![1 => random::scenario(), 1 => many_flows()],
        seed in 0u64..1000,
        steps in prop::collection::vec(1u64..100_000, 1..20),
    ) {
        let (session, at_once) = events(&parse(&format!("seed = {seed}\n{text}")), &steps);
        prop_assert_eq!(session, at_once);
    }
}
