//! The schema accepts what the parser accepts, and refuses what is wrong within one value.
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use narrows_scenario::{NoTraces, Scenario, Traffic, schema};
use serde_json::{Value, json};

fn base() -> Value {
    json!({
        "name": "base", "duration": "60s", "warmup": "1.5 S", "seed": 1,
        "record": { "interval": "10ms", "flows": 8 },
        "hop": [{
            "name": "a", "rate": "100mbit", "delay": "1ms", "queue": { "kind": "fifo", "limit": "100p" },
            "overhead": "7B", "loss": 0.01, "release": "start", "burst": "3KiB"
        }, {
            "name": "b", "rate": [{ "at": "0s", "rate": "1Gbit" }, { "at": ".5s", "rate": "10kbit" }], "queue": "fifo"
        }],
        "flow": [{
            "name": "bulk", "count": 2, "controller": "new_reno", "traffic": "bulk", "rtt": "100ms",
            "route": ["a"], "back": ["b"], "start": "0s", "stop": "50s",
            "transport": { "kind": "tcp", "initial_window": 3, "ecn": true }
        }, {
            "name": "u", "traffic": { "kind": "onoff", "on": "1ms" }, "transport": "udp",
            "rtt": { "uniform": ["10ms", "20ms"] }, "start": { "uniform": ["1s", "2s"] }, "route": ["a", "b"]
        }]
    })
}

/// The same document as a scenario file: JSON's values are TOML's but for the colons.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key} = {}", toml(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn parses(document: &Value) -> Result<Scenario, String> {
    let lines = document.as_object().unwrap().iter().map(|(key, value)| format!("{key} = {}\n", toml(value)));
    Scenario::parse(&lines.collect::<String>(), "S.toml", &NoTraces).map_err(|error| error.to_string())
}

#[test]
fn both_accept_and_both_refuse() {
    let schema = schema::json_schema();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let says = |document: &Value| validator.iter_errors(document).map(|e| e.to_string()).collect::<Vec<_>>();

    assert_eq!(says(&base()), Vec::<String>::new());
    parses(&base()).unwrap();

    let change = |pointer: &str, value: Value| {
        let mut document = base();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap()[key] = value;
        document
    };
    let programs = |command: Value, server: Value| {
        let mut document = base();
        let flow = document["flow"][0].as_object_mut().unwrap();
        flow.remove("traffic");
        flow.insert("command".into(), command);
        flow.insert("server".into(), server);
        document
    };
    let one_hop = |route: Option<Value>| {
        let mut document = base();
        document["hop"].as_array_mut().unwrap().truncate(1);
        document["flow"].as_array_mut().unwrap().truncate(1);
        let flow = document["flow"][0].as_object_mut().unwrap();
        flow.remove("back");
        flow.remove("route");
        flow.extend(route.map(|route| ("route".to_owned(), route)));
        document
    };
    let mut no_way = base();
    no_way["flow"][1].as_object_mut().unwrap().remove("route");
    let good = [
        one_hop(None),
        change("/flow/1/traffic", json!("thin")),
        change("/flow/1/traffic", json!("call")),
        change("/flow/1/traffic", json!("VoIP")),
        change("/flow/1/traffic", json!({ "kind": "game", "size": "200B" })),
        change("/hop/1/queue", json!("fq_codel limit 1000p noecn")),
        change("/hop/1/queue", json!("tc qdisc add dev eth0 root handle 10: cake bandwidth 18mbit docsis")),
        change("/hop/1/queue", json!({ "kind": "fifo", "limit": "1.5bdp" })),
        change("/hop/1/queue", json!({ "kind": "fifo", "limit": 7 })),
        change("/hop/0/loss", json!(0)),
        change("/hop/0/loss", json!("1%")),
        change("/hop/0/loss", json!("0.5 %")),
        change("/hop/0/loss", json!("random 1% 25%")),
        change("/hop/0/loss", json!("GEmodel 1% 10% 0.7 0")),
        change("/hop/0/corrupt", json!(1)),
        change("/hop/0/duplicate", json!(0.01)),
        change("/hop/0/corrupt", json!("1 50%")),
        change("/hop/0/reorder", json!("25 % 50% gap 5")),
        change("/hop/0/police", json!("rate 10mbit burst 100kb conform-exceed mark")),
        change("/hop/0/police", json!("BURST 100kb rate 10mbit")),
        change("/hop/0/rate", json!([{ "at": "0s", "rate": "20 MBIT" }])),
        change("/hop/0/delay", json!([{ "at": "0s", "delay": "10ms" }, { "at": "30s", "delay": "5 MS" }])),
        change("/hop/0/name", json!("a")),
        change("/hop/0/jitter", json!("0.5ms")),
        programs(json!("iperf3 -c {peer}"), json!("iperf3 -s -1")),
    ];
    for document in good {
        assert_eq!((says(&document), parses(&document).err()), (Vec::new(), None), "{document}");
    }
    assert_eq!(parses(&one_hop(None)), parses(&one_hop(Some(json!(["a"])))));
    let bad = [
        no_way,
        change("/sede", json!(1)),
        change("/hop/0/qeue", json!("fifo")),
        change("/record/flow", json!(1)),
        change("/flow/0/transport/windw", json!(1)),
        change("/hop/0/queue/limt", json!("1p")),
        change("/hop/0/queue", json!("fq_codle")),
        change("/flow/1/traffic", json!("cal")),
        change("/hop/0/rate", json!("100")),
        change("/hop/0/rate", json!(100)),
        change("/hop/0/rate", json!("-1mbit")),
        change("/hop/0/rate", json!([])),
        change("/hop/0/delay", json!("1p")),
        change("/hop/0/delay", json!([])),
        change("/hop/0/delay", json!([{ "at": "0s", "rate": "1mbit" }])),
        change("/hop/0/queue/limit", json!("1ms")),
        change("/hop/0/loss", json!("1")),
        change("/hop/0/loss", json!(1)),
        change("/hop/0/loss", json!("one %")),
        change("/hop/0/loss", json!("gemodel")),
        change("/hop/0/corrupt", json!(2)),
        change("/hop/0/duplicate", json!("1% 2% 3%")),
        change("/hop/0/reorder", json!("25% gap 0")),
        change("/hop/0/reorder", json!("25% gap")),
        change("/hop/0/police", json!(0.5)),
        change("/hop/0/police", json!("rate 10mbit")),
        change("/hop/0/release", json!("middle")),
        change("/hop/0/name", json!("a/b")),
        change("/hop", json!([])),
        change("/flow/0/count", json!(0)),
        change("/flow/0/count", json!("2")),
        change("/flow/0/route", json!([])),
        change("/flow/0/route", json!(["a", "a"])),
        change("/flow/0/rtt", json!(100)),
        change("/flow/1/rtt/uniform", json!(["10ms"])),
        change("/seed", json!(-1)),
        change("/hop/0/jitter", json!(1)),
        programs(json!(["iperf3", "-c"]), json!("iperf3 -s")),
        programs(json!(" "), json!("iperf3 -s")),
        programs(json!("iperf3 -c {peer}"), json!("")),
    ];
    for document in bad {
        assert!(!says(&document).is_empty(), "the schema accepts {document}");
        assert!(parses(&document).is_err(), "the parser accepts {document}");
    }
}

#[test]
fn every_kind_and_every_default_is_legal() {
    let schema = schema::json_schema();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let written = |params: &[narrows_core::params::ParamSpec], name: &str| {
        let mut table = json!({ "kind": name });
        for spec in params {
            let bare = spec.unit.is_bare();
            let plain = || serde_json::from_str(&spec.default).ok();
            table[spec.name] = bare.then(plain).flatten().unwrap_or(json!(spec.default));
        }
        table
    };
    let mut documents = Vec::new();
    for entry in QueueConfig::entries() {
        let mut document = base();
        document["hop"][1]["queue"] = written(&entry.params, entry.name);
        documents.push(document);
    }
    for entry in Traffic::entries() {
        let mut document = base();
        let carrier = Traffic::named(entry.name).unwrap().carriers()[0];
        document["flow"][1]["traffic"] = written(&entry.params, entry.name);
        document["flow"][1]["transport"] = json!(carrier);
        documents.push(document);
    }
    for document in documents {
        assert!(validator.is_valid(&document), "{document}");
        assert_eq!(parses(&document).err(), None);
    }
}
