//! Many flows on two threads.
use crate::harness::{V4, namespace, run, scenario};

#[test]
fn a_thousand_connections_each_deliver() {
    let Some(here) = namespace() else { return };
    let flow = r#"[[flow]]
                  name = "f"
                  count = 1000
                  start = { uniform = ["0s", "500ms"] }
                  traffic = { kind = "finite", size = "100KB" }"#;
    let reports = run(&scenario("2s", flow), &here, V4);
    assert_eq!(reports.len(), 1000);
    for report in reports {
        assert_eq!((report.payload, report.completions.len(), report.trouble), (100_000, 1, None));
    }
}
