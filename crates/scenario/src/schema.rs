//! A JSON Schema (draft 2020-12) of scenario files, for editors. It is made from the registries and the declared keys, so that it
//! has every queue and parameter that the program has.
//!
//! It covers rules for one value at a time: keys, kinds, units, words, bounds of bare numbers. Rules between values and ranges of
//! values with units are checked by the program only; the descriptions state them.
use crate::dscp;
use crate::keys::{DELAYS, ExpectKeys, FlowKeys, HopKeys, INTERVALS, RATES, RTTS, RecordKeys, TopKeys};
use crate::traffic::Traffic;
use crate::transport::Transport;
use narrows_core::congestion::ControllerConfig;
use narrows_core::params::{ParamSpec, Params, Unit, WORDS};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::{ALIASES, Entry, Registered};
use serde_json::{Map, Value, json};

/// The schema.
pub fn json_schema() -> Value {
    let mut top = plain::<TopKeys>();
    top.insert("name".into(), described("What the scenario shows; the file's name when left out.", text()));
    top.insert("record".into(), record());
    let hops = json!({ "type": "array", "minItems": 1, "items": hop(), "description": "The links." });
    let flows = json!({ "type": "array", "minItems": 1, "items": flow(), "description": "The traffic." });
    top.insert("hop".into(), hops);
    top.insert("flow".into(), flows);
    top.insert("expect".into(), expect());
    let mut schema = object(top, &["hop", "flow"]);
    let several = json!({ "properties": { "hop": { "minItems": 2 } }, "required": ["hop"] });
    schema.insert("if".into(), several);
    schema.insert("then".into(), json!({ "properties": { "flow": { "items": { "required": ["route"] } } } }));
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!("A Narrows scenario"));
    Value::Object(schema)
}

fn record() -> Value {
    let mut keys = plain::<RecordKeys>();
    let doc = format!(
        "Spacing of the series, {} ..= {}; a thousandth of the duration, at least 1 ms, when left out.",
        INTERVALS.0, INTERVALS.1
    );
    keys.insert("interval".into(), described(&doc, unit(Unit::Span)));
    described("What is recorded besides the summary.", Value::Object(object(keys, &[])))
}

fn expect() -> Value {
    let mut keys = plain::<ExpectKeys>();
    let doc = format!("What every run has to show: {}.", crate::expect::FORM);
    keys.insert("that".into(), described(&doc, text()));
    let item = Value::Object(object(keys, &["that"]));
    json!({ "type": "array", "items": item, "description": "What `narrows check` expects of the runs." })
}

fn hop() -> Value {
    let mut keys = plain::<HopKeys>();
    if let Some(loss) = keys.get_mut("loss") {
        let percent = json!({ "type": "string", "pattern": "^\\s*([0-9]+\\.?[0-9]*|\\.[0-9]+)\\s*%\\s*$" });
        let share = json!({ "type": "number", "minimum": 0, "exclusiveMaximum": 1 });
        loss["anyOf"] = json!([share, percent]);
        loss.as_object_mut().map(|loss| loss.remove("type"));
    }
    keys.insert("name".into(), described("Unique name.", name()));
    keys.insert("queue".into(), kind::<QueueConfig>("What queues in front of the link."));
    keys.insert("rate".into(), rate());
    keys.insert("delay".into(), delay());
    Value::Object(object(keys, &["name", "rate", "queue"]))
}

fn flow() -> Value {
    let mut keys = plain::<FlowKeys>();
    keys.insert("name".into(), described("Unique name.", name()));
    keys.insert("controller".into(), kind::<ControllerConfig>("Congestion control; none for UDP. Default: cubic."));
    keys.insert("traffic".into(), kind::<Traffic>("What is sent. Default: bulk."));
    let doc = "Instead of traffic, in the live world: a program that the sending host runs. {peer} is the receiving host's \
        address, {duration} the whole seconds from start to stop, {n} the number of the flow in its group.";
    keys.insert("command".into(), described(doc, program()));
    let doc = "With command: a program that the receiving host runs, from before the start.";
    keys.insert("server".into(), described(doc, program()));
    keys.insert(
        "transport".into(),
        kind::<Transport>("How it is carried. Default: what the traffic needs, tcp first."),
    );
    let doc = format!("Base round-trip time, all delays of hops included, {} ..= {}.", RTTS.0, RTTS.1);
    keys.insert("rtt".into(), described(&doc, spread()));
    let way = |least: u64| json!({ "type": "array", "items": text(), "minItems": least, "uniqueItems": true });
    keys.insert(
        "route".into(),
        described("Hops from sender to receiver, by name. Default: the hop, if there is one only.", way(1)),
    );
    keys.insert("back".into(), described("Hops that acknowledgments cross, by name.", way(0)));
    let second = "Hops of a connection's second subflow, if it goes another way than the first.";
    keys.insert("subflow_route".into(), described(second, way(0)));
    keys.insert("start".into(), described("When it starts; for several, between which times. Default: 0s.", spread()));
    keys.insert(
        "stop".into(),
        described("When it stops, later than its start. Default: the duration.", unit(Unit::Span)),
    );
    keys.insert("from".into(), described("The sending host; flows of one name share it. Default: sender.", name()));
    keys.insert("to".into(), described("The receiving host. Default: receiver.", name()));
    // Names of code points are accepted in any letter case; the schema lists one.
    let names: Vec<&str> = dscp::NAMES.iter().map(|&(name, _)| name).collect();
    let code = json!({ "anyOf": [{ "enum": names }, { "type": "integer", "minimum": 0, "maximum": 63 }] });
    keys.insert("dscp".into(), described("Code point of the data, a number or a name. Default: 0.", code));
    Value::Object(object(keys, &["name", "rtt"]))
}

/// Steps of something that changes at given times.
fn steps(key: &str, doc: &str, of: Unit) -> Value {
    let mut step = Map::new();
    let at = format!("When this {key} begins to hold; \"0s\" in the first step.");
    step.insert("at".into(), described(&at, unit(Unit::Span)));
    step.insert(key.into(), described(doc, unit(of)));
    json!({ "type": "array", "minItems": 1, "items": object(step, &["at", key]) })
}

fn delay() -> Value {
    let doc = "For packets that leave the queue from then on. They do not overtake each other.";
    let forms = json!({ "anyOf": [unit(Unit::Span), steps("delay", doc, Unit::Span)] });
    let doc = "One-way propagation delay after the queue";
    described(&format!("{doc}, {} ..= {}: constant, or in steps. Default: 0ms.", DELAYS.0, DELAYS.1), forms)
}

fn rate() -> Value {
    let mut trace = Map::new();
    let doc =
        "A file beside the scenario (mahimahi's format or logs, or CSV), or a built-in trace: lte, 5g, wifi, starlink.";
    trace.insert("trace".into(), described(doc, text()));
    let mut aggregates = Map::new();
    let doc = "The mean rate of a link that sends aggregates of this many packets of 1500 bytes.";
    aggregates.insert("mean".into(), described(doc, unit(Unit::Rate)));
    aggregates.insert("aggregate".into(), json!({ "type": "integer", "minimum": 1, "maximum": 1024 }));
    let forms = json!({ "anyOf": [
        unit(Unit::Rate),
        described("A trace, in short.", json!({ "type": "string", "pattern": "^\\s*trace:" })),
        steps("rate", "0 in a step but the first and last: an outage.", Unit::Rate),
        object(trace, &["trace"]),
        object(aggregates, &["mean", "aggregate"]),
    ] });
    described(
        &format!(
            "How fast the link sends, {} ..= {}: constant, in steps, from a trace, or in aggregates.",
            RATES.0, RATES.1
        ),
        forms,
    )
}

/// A kind by name, or a table with its parameters.
fn kind<K: Registered>(doc: &str) -> Value {
    let entries = K::entries();
    let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
    // The schema lists one spelling of each name; the spellings of tc and kernels are accepted too.
    let mut forms = vec![json!({ "enum": names })];
    if !K::presets().is_empty() {
        forms.push(json!({ "enum": K::presets() }));
    }
    forms.push(json!({ "type": "string", "pattern": spellings::<K>(&entries) }));
    if K::WHAT == QueueConfig::WHAT {
        let line = json!({ "type": "string", "pattern": "^\\s*[^\\s:=]+\\s+[^\\s:=]" });
        forms.push(described("In tc's words: fq_codel limit 1000p noecn.", line));
    }
    forms.extend(entries.iter().map(entry::<K>));
    described(doc, json!({ "anyOf": forms }))
}

fn entry<K: Registered>(entry: &Entry) -> Value {
    let takes = |spec: &ParamSpec, word: &str| K::named(entry.name).is_some_and(|mut k| k.set(spec.name, word).is_ok());
    let words = |spec: &ParamSpec| WORDS.into_iter().filter(|word| takes(spec, word)).collect::<Vec<_>>();
    let param = |spec: &ParamSpec| (spec.name.into(), param(spec, &words(spec)));
    let mut keys: Map<String, Value> = entry.params.iter().map(param).collect();
    let spellings = spellings::<K>(std::slice::from_ref(entry));
    keys.insert(
        "kind".into(),
        json!({ "anyOf": [{ "const": entry.name }, { "type": "string", "pattern": spellings }] }),
    );
    described(entry.summary, Value::Object(object(keys, &["kind"])))
}

/// All spellings of these names, and of the presets that are one of these with parameters.
fn spellings<K: Registered>(entries: &[Entry]) -> String {
    let presets = |entry: &Entry| {
        let name = entry.name;
        K::presets().iter().copied().filter(move |preset| K::named(preset).is_some_and(|kind| kind.name() == name))
    };
    let names =
        entries.iter().flat_map(|entry| std::iter::once(entry.name).chain(entry.aliases()).chain(presets(entry)));
    format!("^({})$", names.map(|name| any_case(name).replace(['_', '-'], "[-_]")).collect::<Vec<_>>().join("|"))
}

fn plain<P: Params>() -> Map<String, Value> {
    P::specs().iter().map(|spec| (spec.name.into(), param(spec, &[]))).collect()
}

/// A parameter; some accept words too: `off`, `auto`.
fn param(spec: &ParamSpec, words: &[&str]) -> Value {
    let mut doc = spec.doc.replace("\n ", "\n");
    doc = doc.trim().replace('\n', " ");
    if !matches!(spec.unit, Unit::Switch | Unit::Choice(_)) {
        doc = format!("{doc} Allowed: {}.", spec.allowed);
    }
    let value = match unit(spec.unit) {
        value if !words.is_empty() && !matches!(spec.unit, Unit::Choice(_)) => {
            json!({ "anyOf": [{ "enum": words }, value] })
        }
        value => value,
    };
    let mut schema = described(&doc, value);
    let default = match spec.unit {
        unit if unit.is_bare() => serde_json::from_str(&spec.default).unwrap_or(json!(spec.default)),
        _ => json!(spec.default),
    };
    schema["default"] = default;
    if let (true, Some((low, high))) = (spec.unit.is_bare(), bounds(&spec.allowed)) {
        schema["minimum"] = low;
        schema["maximum"] = high;
    }
    schema
}

/// `1 ..= 10` as numbers.
fn bounds(allowed: &str) -> Option<(Value, Value)> {
    let (low, high) = allowed.split_once("..=")?;
    Some((serde_json::from_str(low.trim()).ok()?, serde_json::from_str(high.trim()).ok()?))
}

fn spread() -> Value {
    let mut uniform = Map::new();
    let pair = json!({ "type": "array", "items": unit(Unit::Span), "minItems": 2, "maxItems": 2 });
    uniform.insert("uniform".into(), described("Each flow draws its own between these two.", pair));
    json!({ "anyOf": [unit(Unit::Span), object(uniform, &["uniform"])] })
}

fn unit(unit: Unit) -> Value {
    match unit {
        Unit::Span | Unit::Rate | Unit::Bytes => json!({ "type": "string", "pattern": pattern(unit) }),
        Unit::Packets | Unit::Limit => json!({ "anyOf": [
            { "type": "string", "pattern": pattern(unit) },
            { "type": "integer", "minimum": 0 },
        ] }),
        Unit::Count => json!({ "type": "integer", "minimum": 0 }),
        Unit::Number => json!({ "type": "number" }),
        Unit::Switch => json!({ "type": "boolean" }),
        Unit::Choice(words) => json!({ "enum": words }),
        Unit::Kind(names) => {
            let aliases = ALIASES.iter().filter(|alias| names.contains(&alias.1)).map(|alias| alias.0);
            let names = names.iter().copied().chain(aliases).map(|name| any_case(name).replace('_', "[-_]"));
            json!({ "type": "string", "pattern": format!("^({})(:.*)?$", names.collect::<Vec<_>>().join("|")) })
        }
    }
}

/// A number and one of the unit's suffixes, in any letter case.
fn pattern(unit: Unit) -> String {
    let suffixes = unit.suffixes().iter().map(|suffix| any_case(suffix)).collect::<Vec<_>>().join("|");
    // Numbers of packets may omit the suffix.
    let maybe = if matches!(unit, Unit::Packets | Unit::Limit) { "?" } else { "" };
    format!("^\\s*([0-9]+\\.?[0-9]*|\\.[0-9]+)\\s*({suffixes}){maybe}\\s*$")
}

/// A word in any letter case, as a pattern.
fn any_case(word: &str) -> String {
    let letter = |c: char| match (c.to_lowercase().next(), c.to_uppercase().next()) {
        (Some(low), Some(high)) if c.is_ascii_alphabetic() => format!("[{low}{high}]"),
        _ => c.to_string(),
    };
    word.chars().map(letter).collect()
}

/// The form of a name; the reader also refuses spaces at its ends.
fn name() -> Value {
    json!({ "type": "string", "pattern": "^[\\p{L}\\p{N} _.+-]{1,64}$" })
}

/// A command line, with at least one character that is not a blank.
fn program() -> Value {
    json!({ "type": "string", "pattern": "\\S" })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn described(doc: &str, mut schema: Value) -> Value {
    schema["description"] = json!(doc);
    schema
}

fn object(properties: Map<String, Value>, required: &[&str]) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("required".into(), json!(required));
    schema.insert("additionalProperties".into(), json!(false));
    schema
}
