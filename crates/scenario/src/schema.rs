//! A JSON Schema (draft 2020-12) of scenario files, for editors. It is made from the registries and the declared keys, so that it
//! has every queue and parameter that the program has.
//!
//! It covers rules for one value at a time: keys, kinds, units, words, bounds of bare numbers. Rules between values and ranges of
//! values with units are checked by the program only; the descriptions state them.
use crate::keys;
use crate::model::Scenario;
use narrows_core::params::{ParamSpec, Unit, WORDS};
use narrows_core::queue::QueueConfig;
use narrows_core::registry::{ALIASES, Entry, Registered};
use serde_json::{Map, Value, json};

/// The schema.
pub fn json_schema() -> Value {
    let mut schema = keys::object::<Scenario>();
    let several = json!({ "properties": { "hop": { "minItems": 2 } }, "required": ["hop"] });
    schema.insert("if".into(), several);
    schema.insert("then".into(), json!({ "properties": { "flow": { "items": { "required": ["route"] } } } }));
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!("A Narrows scenario"));
    Value::Object(schema)
}

/// A kind by name, or a table with its parameters.
pub(crate) fn kind<K: Registered>() -> Value {
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
    json!({ "anyOf": forms })
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

/// A sentence in Markdown as plain text in one line: links are their texts.
pub(crate) fn plain_text(doc: &str) -> String {
    let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut pieces = doc.split("](");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.rfind('[').map(|at| text.remove(at));
        text += piece.split_once(')').map_or(piece, |(_, after)| after);
    }
    text
}

/// A parameter; some accept words too: `off`, `auto`.
fn param(spec: &ParamSpec, words: &[&str]) -> Value {
    let mut doc = spec.doc.split_whitespace().collect::<Vec<_>>().join(" ");
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
    bound(&mut schema, spec.unit, &spec.allowed);
    schema
}

/// Bounds a bare number by its range, `1 to 10`.
pub(crate) fn bound(schema: &mut Value, unit: Unit, allowed: &str) {
    if let (true, Some((low, high))) = (unit.is_bare(), bounds(allowed)) {
        schema["minimum"] = low;
        schema["maximum"] = high;
    }
}

/// `1 to 10` as numbers.
fn bounds(allowed: &str) -> Option<(Value, Value)> {
    let (low, high) = allowed.split_once(" to ")?;
    Some((serde_json::from_str(low.trim()).ok()?, serde_json::from_str(high.trim()).ok()?))
}

pub(crate) fn unit(unit: Unit) -> Value {
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
pub(crate) fn any_case(word: &str) -> String {
    let letter = |c: char| match (c.to_lowercase().next(), c.to_uppercase().next()) {
        (Some(low), Some(high)) if c.is_ascii_alphabetic() => format!("[{low}{high}]"),
        _ => c.to_string(),
    };
    word.chars().map(letter).collect()
}

pub(crate) fn described(doc: &str, mut schema: Value) -> Value {
    schema["description"] = json!(doc);
    schema
}

pub(crate) fn object(properties: Map<String, Value>, required: &[&str]) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("required".into(), json!(required));
    schema.insert("additionalProperties".into(), json!(false));
    schema
}
