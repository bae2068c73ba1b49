//! A thread that panics ends the run, whichever it is: no other thread waits for it. This test has its own process, for its extensions.
use narrows_core::congestion::new_reno::{NewReno, NewRenoParams};
use narrows_core::congestion::{Ack, CongestionController, Loss, SendLimits};
use narrows_core::extensions::Extensions;
use narrows_core::hint::PathHint;
use narrows_core::queue::fifo::{Fifo, FifoParams};
use narrows_core::queue::{Backlog, Ctx, LinkHint, Next, QueueDiscipline};
use narrows_core::{PacketId, Rng, Span, Time};
use narrows_scenario::{NoTraces, Scenario};
use narrows_sim::{Unwatched, Wanted, Watch};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::time::Duration;

const FAILS: Time = Time::from_ns(300_000_000);

fn fail_after(now: Time, what: &str) {
    assert!(now < FAILS, "{what} has failed");
}

struct Controller(NewReno);

impl CongestionController for Controller {
    type Params = NewRenoParams;

    fn new(params: &NewRenoParams, path: &PathHint, now: Time, rng: Rng) -> Controller {
        Controller(NewReno::new(params, path, now, rng))
    }

    fn on_ack(&mut self, ack: &Ack) {
        fail_after(ack.now, "a controller");
        self.0.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.0.on_loss(loss);
    }

    fn send_limits(&self) -> SendLimits {
        self.0.send_limits()
    }
}

struct Queue(Fifo);

impl QueueDiscipline for Queue {
    type Params = FifoParams;

    fn new(params: &FifoParams, link: &LinkHint, rng: Rng) -> Queue {
        Queue(Fifo::new(params, link, rng))
    }

    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        fail_after(cx.now, "a queue");
        self.0.enqueue(id, cx);
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        self.0.dequeue(cx)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
}

struct FaultyWatch;

impl Watch for FaultyWatch {
    fn tick(&mut self, now: Time) -> bool {
        fail_after(now, "a watch");
        true
    }
}

/// A run of many flows.
fn scenario(queue: &str, controller: &str) -> Scenario {
    let text = format!(
        "duration = \"1s\"\n[[hop]]\nname = \"link\"\nrate = \"600mbit\"\nqueue = \"{queue}\"\n[[flow]]\nname = \"bulk\"\n\
         controller = \"{controller}\"\ncount = 300\nrtt = \"20ms\"\nroute = [\"link\"]\n"
    );
    Scenario::parse(&text, "failing.toml", &NoTraces).expect("it is legal")
}

/// The message of the panic that ends a run.
fn failure(scenario: Scenario, threads: usize, mut watch: impl Watch + 'static) -> String {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let wanted = Wanted { threads, ..Wanted::RESULT };
        let ran = catch_unwind(AssertUnwindSafe(|| narrows_sim::run(&scenario, &wanted, &mut watch)));
        let message = ran.err().and_then(|panic| panic.downcast_ref::<String>().cloned());
        let _ = tell.send(message);
    });
    let patience = Duration::from_secs(120);
    told.recv_timeout(patience).expect("the run has not ended").expect("the run has not failed")
}

#[test]
fn a_panic_in_any_thread_ends_the_run() {
    let mine =
        Extensions::new().queue::<Queue>("faulty_queue", "It fails.").controller::<Controller>("faulty", "It fails.");
    mine.install(&[]).expect("they are legal");
    assert!(FAILS > Time::ZERO + Span::ms(100), "connections are open by then");
    for threads in [2, 3, 5] {
        assert!(
            failure(scenario("fifo", "faulty"), threads, Unwatched).contains("a controller has failed"),
            "{threads}"
        );
        assert!(
            failure(scenario("faulty_queue", "cubic"), threads, Unwatched).contains("a queue has failed"),
            "{threads}"
        );
        assert!(failure(scenario("fifo", "cubic"), threads, FaultyWatch).contains("a watch has failed"), "{threads}");
    }
}
