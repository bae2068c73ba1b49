//! A run in steps is the run at once.
use narrows_core::{Span, Time};
use narrows_scenario::{NoTraces, Scenario};
use narrows_sim::Session;

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
