//! CAKE's purposes: equal shares for hosts, classes that hold under overload, and acknowledgments that fit into a slow uplink.
use crate::harness::{flow, hop, run_text};

/// Goodput of a host with one flow that competes with a host with eight, and of both together, Mbit/s.
fn one_against_eight(mode: &str) -> (f64, f64) {
    let result = run_text(&format!(
        r#"
        duration = "20s"
        warmup = "5s"
        [[hop]]
        name = "uplink"
        rate = "20mbit"
        queue = {{ kind = "cake", flow_mode = "{mode}" }}
        [[flow]]
        name = "many"
        count = 8
        rtt = "20ms"
        route = ["uplink"]
        from = "laptop"
        to = "cloud"
        [[flow]]
        name = "one"
        rtt = "20ms"
        route = ["uplink"]
        from = "phone"
        to = "relay""#
    ));
    let many: f64 = (0..8).map(|n| flow(&result, &format!("many.{n}")).goodput_mbit).sum();
    let one = flow(&result, "one").goodput_mbit;
    (one, one + many)
}

#[test]
fn a_host_with_one_flow_has_half() {
    let (one, all) = one_against_eight("flows");
    assert!(all > 18.5 && (one / all - 1.0 / 9.0).abs() < 0.01, "flows: {one} of {all} Mbit/s");
    for mode in ["dual-srchost", "dual-dsthost", "triple-isolate"] {
        // A single CUBIC flow does not quite fill its half under CoDel; the other flows use the rest.
        let (one, all) = one_against_eight(mode);
        assert!(all > 18.5 && (0.4..=0.51).contains(&(one / all)), "{mode}: {one} of {all} Mbit/s");
    }
}

#[test]
fn a_class_above_its_threshold_loses_its_priority_and_below_it_loses_nothing() {
    // At 10 Mbit/s calls have priority up to 2.5 Mbit/s. Ten calls of 150 kbit/s fit, but 40 do not beside bulk data.
    let lost = |calls: u32| {
        let result = run_text(&format!(
            r#"
            duration = "20s"
            warmup = "5s"
            [[hop]]
            name = "uplink"
            rate = "100mbit"
            queue = {{ kind = "cake", bandwidth = "10mbit" }}
            [[flow]]
            name = "bulk"
            count = 4
            rtt = "20ms"
            route = ["uplink"]
            [[flow]]
            name = "call"
            count = {calls}
            traffic = {{ kind = "cbr", rate = "150kbit", packet = "375B" }}
            rtt = "20ms"
            route = ["uplink"]
            dscp = "ef"
            start = {{ uniform = ["0s", "20ms"] }}"#
        ));
        let calls = (0..calls).map(|n| flow(&result, &format!("call.{n}")));
        let bulk: f64 = (0..4).map(|n| flow(&result, &format!("bulk.{n}")).goodput_mbit).sum();
        (calls.map(|call| call.lost_packets.expect("it is counted")).sum::<u64>(), bulk)
    };
    let ((few, beside_few), (many, beside_many)) = (lost(10), lost(40));
    assert!(few == 0 && beside_few > 7.5, "{few} packets of 10 calls are lost beside {beside_few} Mbit/s");
    assert!(many > 1000 && beside_many > 6.5, "{many} packets of 40 calls are lost beside {beside_many} Mbit/s");
}

#[test]
fn the_filter_makes_acknowledgments_fit_a_thin_uplink() {
    // 50 Mbit/s need 2083 delayed acknowledgments a second, 867 kbit/s of 52 bytes each; the uplink has 400 kbit/s.
    let goodput = |filter: &str| {
        let result = run_text(&format!(
            r#"
            duration = "20s"
            warmup = "5s"
            [[hop]]
            name = "downlink"
            rate = "50mbit"
            queue = "fq_codel"
            [[hop]]
            name = "uplink"
            rate = "400kbit"
            queue = {{ kind = "cake", ack_filter = "{filter}" }}
            [[flow]]
            name = "download"
            rtt = "40ms"
            route = ["downlink"]
            back = ["uplink"]"#
        ));
        let superseded = hop(&result, "uplink").drops.by_reason.get("superseded").copied().unwrap_or(0);
        (flow(&result, "download").goodput_mbit, superseded)
    };
    let [off, on, aggressive] = ["off", "on", "aggressive"].map(goodput);
    assert_eq!(off.1, 0);
    assert!(on.1 > 10_000 && aggressive.1 > 10_000, "{on:?} {aggressive:?}");
    assert!(on.0 > 40.0 && aggressive.0 > 40.0, "{off:?} {on:?} {aggressive:?}");
    assert!(off.0 < on.0, "{off:?} {on:?}");
}

#[test]
fn the_shaper_carries_what_is_asked_for_overhead_included() {
    // 1462 B of IP and 38 of overhead are 1500 B on the wire, at 10 of 100 Mbit/s.
    let result = run_text(
        r#"
        duration = "20s"
        warmup = "5s"
        [[hop]]
        name = "link"
        rate = "100mbit"
        queue = { kind = "cake", bandwidth = "10mbit", overhead = "38B", mpu = "84B" }
        [[flow]]
        name = "cbr"
        traffic = { kind = "cbr", rate = "20mbit", packet = "1462B" }
        rtt = "20ms"
        route = ["link"]"#,
    );
    let got = flow(&result, "cbr").throughput_mbit;
    assert!((got - 10.0 * 1462.0 / 1500.0).abs() < 0.002, "{got} Mbit/s");
}
