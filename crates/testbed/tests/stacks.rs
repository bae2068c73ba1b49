//! Published stacks in the testbed.
use narrows_testbed::adapter::stacks;
use narrows_testbed::{Datagram, FLOW, HOP, Peer, Rate, Silent, Span, Stream, Testbed, Time};

fn report(name: &str, ends: [Box<dyn Peer>; 2]) -> narrows_testbed::Report {
    Testbed::dumbbell("20mbit", "40ms", "fifo:limit=1bdp").peers(name, ends).run(Span::s(10)).expect("it runs")
}

#[test]
fn every_stack_delivers_the_same_each_time() {
    assert_eq!(stacks().len(), 8, "the adapters' features are on");
    for stack in stacks() {
        let run = || report(stack.name, (stack.ends)());
        let first = run();
        // smoltcp's CUBIC needs twenty seconds to fill the link; the others fill it soon.
        let goodput = first.goodput();
        assert!(goodput > Rate::mbit(8) && goodput < Rate::mbit(20), "{}: {goodput}", stack.name);
        assert_eq!(first.fault(), None, "{}", stack.name);
        assert!(first.result() == run().result() || !stack.repeats, "{} does something else", stack.name);
    }
}

/// quinn-proto's and noq-proto's receivers end a connection with more than 1024 separate pieces (`MAX_CHUNKS` in
/// `connection/assembler.rs`), so that slow start on a long fat path ends it. The day they do not, this fails, and the page of the
/// matrix is out of date.
#[test]
fn a_connection_that_fails_says_why() {
    for stack in stacks().into_iter().filter(|stack| ["quinn:cubic", "noq:cubic"].contains(&stack.name)) {
        let network = Testbed::dumbbell("100mbit", "200ms", "fifo:limit=1bdp");
        let report = network.peers(stack.name, (stack.ends)()).run(Span::s(4)).expect("it runs");
        let fault = report.fault().expect("it fails").to_string();
        assert!(fault.starts_with("the receiver at 2."), "{fault}");
        assert!(fault.ends_with("too many gaps in stream buffer"), "{fault}");
    }
}

#[test]
fn an_idle_application_is_no_fault() {
    let text = format!(
        "name = \"idle\"\nduration = \"5s\"\n[[hop]]\nname = \"{HOP}\"\nrate = \"20mbit\"\nqueue = \"fifo\"\n[[flow]]\nname = \"{FLOW}\"\n\
         rtt = \"40ms\"\ntraffic = {{ kind = \"thin\", size = \"1000B\", interval = \"100ms\" }}\n"
    );
    for stack in stacks() {
        let report = Testbed::scenario(&text).peers(stack.name, (stack.ends)()).run_whole().expect("it runs");
        // 80 kbit/s are offered, from the start or from the end of the handshake on.
        let goodput = report.goodput();
        assert!(goodput > Rate::kbit(70) && goodput < Rate::kbit(85), "{}: {goodput}", stack.name);
    }
}

#[test]
fn what_a_stack_does_not_show_is_absent() {
    let shown = |name: &str| {
        let stack = stacks().into_iter().find(|stack| stack.name == name).expect("it is a stack");
        let report = report(name, (stack.ends)());
        let has = |metric: &str| report.result().series.iter().any(|series| series.metric == metric);
        (report.figures().retransmits, report.figures().timeouts, has("cwnd_packets"), has("inflight_packets"))
    };
    let (lost, timeouts, has_cwnd, has_inflight) = shown("quinn:cubic");
    assert!(lost > Some(0) && timeouts.is_none() && has_cwnd && !has_inflight, "quinn counts lost packets");
    assert_eq!(shown("smoltcp:cubic"), (None, None, false, false));
}

/// What a peer does wrong.
#[derive(Clone, Copy)]
enum Wrong {
    SendsWithoutEnd,
    SendsTooMuchAtOnce,
    AsksForThePast,
}

struct Broken(Wrong);

impl Peer for Broken {
    fn receive(&mut self, _datagram: &mut Datagram, _now: Time) {}

    fn transmit(&mut self, datagram: &mut Datagram, _now: Time) -> bool {
        let len = match self.0 {
            Wrong::SendsWithoutEnd => 1200,
            Wrong::SendsTooMuchAtOnce => 1 << 16,
            Wrong::AsksForThePast => return false,
        };
        datagram.bytes.resize(len, 0);
        true
    }

    fn timeout(&self) -> Option<Time> {
        matches!(self.0, Wrong::AsksForThePast).then_some(Time::ZERO)
    }

    fn on_timeout(&mut self, _now: Time) {}

    fn application(&mut self, _stream: &mut Stream, _now: Time) {}
}

#[test]
fn a_peer_that_does_what_no_network_carries_is_named() {
    let fault = |ends: [Box<dyn Peer>; 2]| report("broken", ends).fault().map(ToString::to_string);
    let sender = |wrong| fault([Box::new(Broken(wrong)), Box::new(Silent)]);
    let expected = "the sender at 0.000000 s: sent an IP packet of 65564 B; the path carries 1500 B";
    assert_eq!(sender(Wrong::SendsTooMuchAtOnce).as_deref(), Some(expected));
    assert_eq!(
        sender(Wrong::SendsWithoutEnd).as_deref(),
        Some("the sender at 0.000000 s: sent 65536 datagrams at one instant")
    );
    assert_eq!(
        sender(Wrong::AsksForThePast).as_deref(),
        Some("the sender at 0.000000 s: asked for 65536 timeouts at one instant")
    );
    assert_eq!(fault([Box::new(Silent), Box::new(Silent)]), None, "silence is no fault");
}
