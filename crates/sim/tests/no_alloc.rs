//! No allocation per packet: a run of twice the length carries twice the packets and allocates no more often.
//!
//! The series of both runs have the same number of points, so only the work per packet could make the longer run allocate more.
//! Tables grow to their peak, which a longer run may raise slightly.
use narrows_core::congestion::ControllerConfig;
use narrows_core::netem::{Loss, LossTrace, RecordedLosses};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_core::{Rate, Span, Time};
use narrows_scenario::transport::{QuicParams, TcpParams};
use narrows_scenario::{Flow, Hop, RateSpec, Record, Scenario, Transport};
use narrows_sim::{Unwatched, Wanted};

// The benchmark counts allocations with the same file.
#[path = "../../../bench/src/allocator.rs"]
mod allocator;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

/// A few tables may double once more. One allocation per thousand packets would be forty.
const GROWTH: u64 = 16;

#[test]
fn the_counter_counts() {
    let (list, usage) = allocator::measure(|| {
        let mut list = vec![Box::new(0u64); 100];
        list.shrink_to(0);
        drop(vec![0u8; 10_000]);
        list
    });
    assert!(usage.allocations >= 102, "{usage:?}");
    assert!(usage.peak_bytes >= 10_000 + 100 * 16, "{usage:?}");
    drop(list);
}

#[test]
fn no_queue_makes_a_run_allocate_per_packet() {
    for name in QueueConfig::NAMES {
        let queue = QueueConfig::named(name).expect("a registered name");
        let cubic = ControllerConfig::named("cubic").expect("cubic is registered");
        assert_steady(&format!("cubic × 4 through {name}"), &scenario(queue, cubic, 4));
    }
}

#[test]
fn no_controller_makes_a_run_allocate_per_packet() {
    for name in ControllerConfig::NAMES {
        let queue = QueueConfig::named("fifo").expect("fifo is registered");
        let controller = ControllerConfig::named(name).expect("a registered name");
        assert_steady(&format!("{name} × 1 through fifo"), &scenario(queue, controller, 1));
    }
}

#[test]
fn no_loss_recovery_makes_a_run_allocate_per_packet() {
    let queue = QueueConfig::named("fq_codel").expect("fq_codel is registered");
    let cubic = ControllerConfig::named("cubic").expect("cubic is registered");
    let mut lossy = scenario(queue, cubic, 50);
    lossy.hops[0].loss = Loss::random(0.01);
    assert_steady("cubic × 50 through fq_codel, 1 % lost", &lossy);
    let outcomes = RecordedLosses::Packets((0..100).map(|n| n == 50).collect());
    let shares = RecordedLosses::Shares([(Span::ZERO, 0.0), (Span::ms(40), 0.02)].into());
    for losses in [outcomes, shares] {
        lossy.hops[0].loss = Loss::Trace(LossTrace { name: "lost".into(), losses });
        assert_steady("cubic × 50 through fq_codel, 1 % lost by a trace", &lossy);
    }
}

/// Compares a run with one of twice its length.
fn assert_steady(what: &str, scenario: &Scenario) {
    let (packets, once) = run(scenario);
    let (more_packets, twice) = run(&stretched(scenario));
    let extra = more_packets - packets;
    assert!(packets > 20_000 && extra > 20_000, "{what}: {packets} and {more_packets} packets show nothing");
    let grown = twice.allocations.saturating_sub(once.allocations);
    assert!(grown <= GROWTH, "{what}: {grown} more allocations for {extra} more packets; {once:?}, {twice:?}");
    assert!(
        twice.peak_bytes <= once.peak_bytes + once.peak_bytes / 4,
        "{what}: memory grows with the length of the run: {once:?}, {twice:?}"
    );
}

fn run(scenario: &Scenario) -> (u64, allocator::Usage) {
    let (result, usage) = allocator::measure(|| narrows_sim::run(scenario, &Wanted::RESULT, &mut Unwatched));
    let result = result.expect("nobody ends it early").result;
    (result.summary.cost.packets, usage)
}

/// The same scenario for twice the time, with the same number of points.
fn stretched(scenario: &Scenario) -> Scenario {
    let mut twice = scenario.clone();
    twice.duration = twice.duration + twice.duration;
    twice.record.interval = twice.record.interval.map(|interval| interval + interval);
    for flow in &mut twice.flows {
        flow.stop = Time::ZERO + twice.duration;
    }
    twice
}

fn scenario(queue: QueueConfig, controller: ControllerConfig, count: u32) -> Scenario {
    let duration = Span::s(10);
    let transport =
        if controller.splits() { Transport::Quic(QuicParams::default()) } else { Transport::Tcp(TcpParams::default()) };
    let hop = Hop::new("bottleneck", RateSpec::constant(Rate::mbit(50)), queue);
    let flow = Flow {
        count,
        controller: Some(controller),
        transport,
        ..Flow::new("bulk", Span::ms(20), Time::ZERO + duration)
    };
    let scenario = Scenario {
        warmup: Span::s(1),
        record: Record { interval: Some(Span::ms(20)), ..Record::default() },
        ..Scenario::new("steady", duration, vec![hop], vec![flow])
    };
    scenario.validate().expect("a legal scenario");
    scenario
}
