use super::*;
use crate::figures::{SUMS, flat};
use crate::lookup::Lookup;
use crate::summary::{
    Application, Completion, Cost, Drops, Fairness, FlowSummary, HopSummary, MadeIn, Messages, Passing, Quantiles,
    Timing, Verdicts, Video, Voice,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A summary that has every figure, each with a value of its own. A new field does not compile until it is here.
fn everything() -> Summary {
    let application = Application {
        one_way_ms: Some(Quantiles::default()),
        jitter_ms: Some(0.0),
        loss: Some(0.0),
        messages: Some(Messages::default()),
        voice: Some(Voice::default()),
        video: Some(Video {
            frame_delay_ms: Some(Quantiles::default()),
            picture_mos: Some(0.0),
            mos: Some(0.0),
            ..Video::default()
        }),
        rpm: Some(0.0),
        qoo: Some(0.0),
    };
    let verdicts = Verdicts {
        accuracy: Some(0.0),
        found_s: Some(0.0),
        found_rtts: Some(0),
        event_accuracy: Some(0.0),
        queued_s: Some(0.0),
        queued_right: Some(0.0),
        ..Verdicts::default()
    };
    let flow = FlowSummary {
        name: "bulk".to_owned(),
        controller: "cubic".to_owned(),
        goodput_mbit: 0.0,
        throughput_mbit: 0.0,
        rtt_ms: Some(Default::default()),
        sojourn_ms: Some(Quantiles::default()),
        retransmits: Some(0),
        timeouts: Some(0),
        lost_packets: Some(0),
        completion_s: Some(Completion::default()),
        verdicts: Some(verdicts),
        route: Some(vec!["link".to_owned()]),
        five_tuple: Some("tcp 192.0.2.1:5000 > 192.0.2.2:80".to_owned()),
        active: Some(0.0),
        application: Some(application),
    };
    let hop = HopSummary {
        name: "link".to_owned(),
        queue: "fifo".to_owned(),
        utilisation: 0.0,
        packets: 0,
        queue_packets: Some(Quantiles::default()),
        sojourn_ms: Some(Quantiles::default()),
        offered_packets: 0,
        drops: Drops { total: 0, by_reason: [("aqm".to_owned(), 0)].into() },
        loss_rate: 0.0,
        marks: 0,
    };
    let summary = Summary {
        name: "everything".to_owned(),
        seed: 1,
        duration_s: 0.0,
        warmup_s: 0.0,
        hops: vec![hop],
        flows: vec![flow],
        fairness: Fairness::default(),
        world: Some(MadeIn { name: "live".to_owned(), linux: "7".to_owned(), time: Passing::Real }),
        timing: Some(Timing::default()),
        setup: None,
        cost: Cost::default(),
    };
    let mut value = serde_json::to_value(summary).expect("it is JSON");
    number(&mut value, &mut 0);
    serde_json::from_value(value).expect("the same summary")
}

/// Gives each number a value of its own.
fn number(value: &mut Value, last: &mut u64) {
    match value {
        Value::Number(number) => {
            *last += 1;
            *number = (*last).into();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| self::number(item, last)),
        Value::Object(map) => map.values_mut().for_each(|item| self::number(item, last)),
        Value::Null => panic!("everything() lacks a figure"),
        _ => {}
    }
}

#[test]
fn no_figure_of_a_summary_is_missing_from_the_table() {
    let summary = serde_json::to_value(everything()).expect("it is JSON");
    let conditions = ["seed", "duration_s", "warmup_s"];
    let numbers = |value: &Value| -> Vec<String> {
        flat(value).into_iter().filter(|(_, value)| value.number().is_some()).map(|(key, _)| key).collect()
    };
    let mut looked_at = 0;
    for (of, value) in [(Owner::Hop, &summary["hops"][0]), (Owner::Flow, &summary["flows"][0]), (Owner::Run, &summary)]
    {
        for key in numbers(value).into_iter().filter(|key| !conditions.contains(&key.as_str())) {
            assert!(Statistic::find(of, &key).is_some(), "{key} of a {of:?} has no row in FIGURES");
            looked_at += 1;
        }
    }
    assert!(looked_at > 90, "{looked_at} figures");
}

#[test]
fn every_path_leads_to_the_value_that_the_row_reads() {
    let summary = everything();
    let lookup = Lookup::of(&summary);
    let mut values = BTreeSet::new();
    let in_summary = FIGURES.iter().filter(|figure| figure.is_in_summary() && figure.has_path());
    for statistic in in_summary.flat_map(Figure::parts) {
        let (figure, which) = (statistic.figure, statistic.which.replace(read::ANY, "aqm"));
        let (owner, read) = match figure.of {
            Owner::Hop => ("hop.link.", figure.of_hop(&summary.hops[0], &which)),
            Owner::Flow => ("flow.bulk.", figure.of_flow(&summary.flows[0], &which)),
            Owner::Run => ("", figure.of_run(&summary, &which)),
        };
        let path = format!("{owner}{}", statistic.key().replace(read::ANY, "aqm"));
        let found = lookup.find(&path).unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<f64> = found.values.into_iter().map(|(_, value)| value).collect();
        assert_eq!(found, [read.unwrap_or_else(|| panic!("{path} reads nothing"))], "{path}");
        // A delay is also that of datagrams.
        assert!(values.insert(found[0].to_bits()) || figure.path.contains("one_way"), "{path} reads another row's");
    }
    for (name, _) in listed().iter().filter(|(name, _)| !name.contains("base_rtt") && !name.contains("hop.rate")) {
        let path = name.replace(read::ANY, "aqm").replace("hop.", "hop.link.").replace("flow.", "flow.bulk.");
        assert!(lookup.find(&path).is_ok_and(|found| found.values.len() == 1), "{name}");
    }
}

#[test]
fn titles_are_unique_within_a_place() {
    let is_distinct = |names: Vec<String>, place: &str| {
        let mut seen = BTreeSet::new();
        names.into_iter().for_each(|name| assert!(seen.insert(name.clone()), "{place}: {name} twice"));
    };
    use Section::*;
    let sections = [Link, Losses, Goodput, Throughput, Rtt, Lost, Retransmits, Timeouts, Fairness, Completions];
    let all = [&sections[..], &[Applications, Verdicts]].concat();
    is_distinct(columns_of_flows(&all).iter().map(Statistic::name).collect(), "tables and differences");
    is_distinct(listed().iter().map(|(name, _)| name.clone()).collect(), "the list");
    let charts = || FIGURES.iter().filter_map(|figure| figure.chart);
    is_distinct(charts().map(|(_, title)| title.to_owned()).collect(), "charts");
    is_distinct(charts().map(|(place, _)| place.to_string()).collect(), "places of charts");
    let spare = FIGURES.iter().flat_map(|figure| figure.columns).filter_map(|column| column.spare);
    is_distinct(spare.map(|rank| rank.to_string()).collect(), "spare columns");
    let in_tables = FIGURES.iter().filter(|figure| figure.section.is_some());
    assert!(in_tables.clone().all(|figure| all.contains(&figure.section.expect("it is in tables"))));
    for statistic in columns_of_flows(&all) {
        let figure = statistic.figure;
        assert!(figure.parts().any(|part| part.which == statistic.which), "{} has no {}", figure.path, statistic.which);
    }
}

#[test]
fn class_and_path_agree() {
    for figure in FIGURES {
        let unit = unit_of(figure.path);
        let agrees = match figure.class {
            Class::Rate => unit == "Mbit/s",
            Class::Delay => ["ms", "s"].contains(&unit),
            Class::Amount => ["packets", "bytes"].contains(&unit),
            Class::Count => !["Mbit/s", "ms"].contains(&unit),
            Class::Share | Class::Score | Class::Points | Class::Index => unit.is_empty(),
        };
        assert!(agrees, "{} is a {:?} in {unit:?}", figure.path, figure.class);
        assert!(!figure.sentence.ends_with('.') && !figure.title.is_empty(), "{}", figure.path);
        if figure.together == Together::Worst {
            assert!(figure.better != Better::Neither, "{} has a worst, but no direction", figure.path);
        }
    }
}

#[test]
fn sums_are_rates_and_counts() {
    let known = ["goodput_mbit", "throughput_mbit", "retransmits", "timeouts", "lost_packets", "completion_s.count"];
    assert_eq!(*SUMS, known);
    let names: BTreeMap<&str, &str> = listed().iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert!(names["flow.goodput_per_flow_mbit"].contains("min(NAME.goodput)"));
    assert!(names["flow.completion_s.mean"].ends_with("also p50, p95, p99, max"));
}

#[test]
fn a_key_has_its_figure() {
    let title = |of: Owner, key: &str| Statistic::find(of, key).map(|statistic| statistic.name());
    assert_eq!(title(Owner::Hop, "sojourn_ms.p99").as_deref(), Some("sojourn p99 (ms)"));
    assert_eq!(title(Owner::Hop, "utilisation").as_deref(), Some("utilisation (%)"));
    assert_eq!(title(Owner::Flow, "application.voice.mos").as_deref(), Some("voice MOS"));
    assert_eq!(title(Owner::Flow, "completion_s.p50").as_deref(), Some("completion p50 (s)"));
    assert_eq!(title(Owner::Hop, "drops.by_reason.aqm").as_deref(), Some("drops by reason REASON"));
    assert_eq!((title(Owner::Hop, "sojourn_ms"), title(Owner::Flow, "cwnd_packets")), (None, None));
}

#[test]
fn a_path_has_its_figure_whatever_the_owner_is_called() {
    let title = |path: &str| Statistic::at(path).map(|statistic| statistic.title());
    for path in ["flow.bulk.rtt_ms.p99", "bulk.rtt.p99", "flow.cubic.0.rtt_ms.p99"] {
        assert_eq!(title(path).as_deref(), Some("RTT p99"), "{path}");
    }
    assert_eq!(title("hop.a.b.utilisation").as_deref(), Some("utilisation"));
    assert_eq!(title("call.application.voice.mos").as_deref(), Some("voice MOS"));
    assert_eq!((title("call.voice.mos"), title("fairness.jain")), (Some("voice MOS".into()), Some("Jain".into())));
    assert_eq!((title("bulk.nothing"), title("")), (None, None));
}
