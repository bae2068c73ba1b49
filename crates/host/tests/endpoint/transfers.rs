//! Transfers are delivered whole, and their completion times are counted.
use crate::harness::{V4, V6, namespace, run, scenario};
use narrows_core::{Span, Time};
use narrows_world::application::{Act, Application};
use narrows_world::build;

#[test]
fn a_transfer_is_delivered_whole_and_counted_once() {
    let Some(here) = namespace() else { return };
    let flow = r#"[[flow]]
                  name = "f"
                  count = 3
                  start = { uniform = ["0s", "100ms"] }
                  traffic = { kind = "finite", size = "3333333B" }"#;
    let scenario = scenario("500ms", flow);
    for address in [V4, V6] {
        for report in run(&scenario, &here, address) {
            assert_eq!((report.payload, report.completions.len()), (3_333_333, 1));
            assert!(report.completions[0] < Span::ms(500), "{:?}", report.completions);
            assert!(report.trouble.is_none() && report.meters.is_some());
        }
    }
}

#[test]
fn web_transfers_come_one_after_the_other_in_the_sizes_of_the_model() {
    let Some(here) = namespace() else { return };
    let flow = r#"[[flow]]
                  name = "f"
                  traffic = { kind = "web", size = "20KB", think = "5ms" }"#;
    let scenario = scenario("1s", flow);
    let report = run(&scenario, &here, V4).remove(0);
    let group = &scenario.flows[0];
    let mut application = Application::new(&group.traffic, build::member_stream(&scenario, group, 0, "application"));
    let mut next = || match application.act(Time::ZERO) {
        (Act::Transfer(bytes), None) => {
            application.on_complete(Time::ZERO);
            bytes
        }
        other => panic!("{other:?}"),
    };
    let completed = report.completions.len();
    let whole: u64 = (0..completed).map(|_| next()).sum();
    // The last transfer may have been in progress when the flow stopped.
    assert!((whole..whole + next()).contains(&report.payload), "{} of {whole} bytes", report.payload);
    // A second has 200 pauses of five milliseconds, fewer with the transfers between them, and many fewer on a busy machine.
    assert!((40..300).contains(&completed), "{completed} transfers");
}

#[test]
fn messages_over_tcp_are_all_delivered() {
    let Some(here) = namespace() else { return };
    let flow = r#"[[flow]]
                  name = "f"
                  transport = "tcp"
                  traffic = { kind = "thin", size = "100B", interval = "2ms" }"#;
    // One each 2 ms, from 0 ms to 398 ms.
    assert_eq!(run(&scenario("400ms", flow), &here, V4)[0].payload, 200 * 100);
}
