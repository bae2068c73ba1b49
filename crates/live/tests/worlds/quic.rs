//! Real QUIC through the queues: verdicts, transfers, marks.
use super::Test;
use super::harness::{flow, hop, run, run_in_time};

pub(super) const TESTS: &[Test] = &[
    ("two_subflows_find_a_shared_queue_and_a_fair_one", two_subflows_find_a_shared_queue_and_a_fair_one),
    ("one_subflow_under_a_controller_that_linux_lacks", one_subflow_under_a_controller_that_linux_lacks),
    ("quic_carries_transfers_and_messages_over_ipv6", quic_carries_transfers_and_messages_over_ipv6),
    ("quic_is_marked_only_if_it_asks_for_ecn", quic_is_marked_only_if_it_asks_for_ecn),
];

fn two_subflows_find_a_shared_queue_and_a_fair_one() {
    for (queue, finding) in [("{ kind = \"fifo\", limit = \"1bdp\" }", -1.0), ("\"fq_codel\"", 1.0)] {
        let text = format!(
            "[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = {queue}\n\
             [[flow]]\nname = \"two\"\nrtt = \"40ms\"\nroute = [\"link\"]\ntransport = \"quic\"\n\
             controller = {{ kind = \"tonopah\", on = \"cubic\", detector = \"sequential\" }}\n"
        );
        let Some(result) = run_in_time("10s", &text) else { return };
        let two = flow(&result, "two");
        let verdicts = two.verdicts.as_ref().expect("it has a detector");
        // A shared queue is found after a few seconds, a fair one after less than one.
        assert!(verdicts.right > 0.2 && verdicts.wrong == 0.0, "{queue}: {verdicts:?}");
        assert!(hop(&result, "link").utilisation > 0.7, "{queue}: {:?}", result.summary);
        let values = |source: &str, metric: &str| -> Vec<f64> {
            let series = result.series.iter().find(|series| series.source == source && series.metric == metric);
            let series = series.unwrap_or_else(|| panic!("no {metric} of {source}"));
            series.points.iter().map(|&(_, value)| value).collect()
        };
        assert_eq!(values("flow:two", "verdict").last(), Some(&finding), "{queue}");
        for subflow in ["flow:two/1", "flow:two/2"] {
            let mean = |metric| {
                let values = values(subflow, metric);
                values.iter().sum::<f64>() / values.len() as f64
            };
            let (rtt, sent) = (mean("rtt_ms"), mean("sent_mbit"));
            assert!(rtt >= 40.0 && sent > 3.0, "{queue}, {subflow}: {rtt} ms, {sent} Mbit/s");
        }
    }
}

fn one_subflow_under_a_controller_that_linux_lacks() {
    let text = "[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n\
                [[flow]]\nname = \"bulk\"\nrtt = \"50ms\"\nroute = [\"link\"]\ntransport = \"quic\"\ncontroller = { kind = \"copa\", delta = 0.5 }\n";
    let result = run("4s", text);
    let bulk = flow(&result, "bulk");
    assert!(bulk.goodput_mbit > 6.0 && bulk.verdicts.is_none(), "{bulk:?}");
    // What the application has read is less than what the network has carried, by the headers and what is sent again.
    let share = bulk.goodput_mbit / bulk.throughput_mbit;
    assert!((0.9..0.97).contains(&share), "{bulk:?}");
}

fn quic_carries_transfers_and_messages_over_ipv6() {
    let text = "[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = \"fq_codel\"\n\
                [[flow]]\nname = \"file\"\nrtt = \"20ms\"\nroute = [\"link\"]\ntransport = \"quic\"\n\
                traffic = { kind = \"finite\", size = \"1MB\" }\n\
                [[flow]]\nname = \"page\"\nrtt = \"20ms\"\nroute = [\"link\"]\ntransport = \"quic\"\n\
                traffic = { kind = \"web\", size = \"50KB\", think = \"100ms\" }\n\
                [[flow]]\nname = \"thin\"\nrtt = \"20ms\"\nroute = [\"link\"]\ntransport = \"quic\"\n\
                traffic = { kind = \"thin\", size = \"120B\", interval = \"50ms\" }\n";
    let result = run("4s", &text.replace("rtt =", "family = \"ipv6\"\nrtt ="));
    let [file, page, thin] = ["file", "page", "thin"].map(|name| flow(&result, name));
    assert!((file.goodput_mbit * 4.0 / 8.0 - 1.0).abs() < 1e-6, "1 MB, once: {file:?}");
    assert!(file.completion_s.is_some() && page.completion_s.as_ref().is_some_and(|done| done.count > 3), "{page:?}");
    // 120 B each 50 ms are 19 kbit/s; of the last messages some are on their way.
    assert!((0.015..=0.0195).contains(&thin.goodput_mbit), "{thin:?}");
}

fn quic_is_marked_only_if_it_asks_for_ecn() {
    for ecn in [true, false] {
        let text = format!(
            "[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fq_codel\"\n\
             [[flow]]\nname = \"bulk\"\nrtt = \"100ms\"\nroute = [\"link\"]\ncontroller = \"cubic\"\n\
             transport = {{ kind = \"quic\", ecn = {ecn} }}\n"
        );
        let result = run("4s", &text);
        let link = hop(&result, "link");
        assert_eq!((link.marks > 0, link.drops.total > 0), (ecn, !ecn), "{link:?}");
    }
}
