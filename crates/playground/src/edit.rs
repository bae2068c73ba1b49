//! Changes of a scenario's text that leave the rest of it as its author wrote it.
use crate::protocol::Complaint;
use narrows_scenario::Setting;
use serde::Deserialize;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// A change.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// Which table: at the top of the file, or the nth of a list.
    #[serde(default)]
    table: Where,
    /// The key, and a parameter's name after it.
    #[serde(default)]
    key: Vec<String>,
    /// The value as on the command line; without one the key, or the table, goes.
    value: Option<String>,
    /// The value holds from this time on, in seconds: a step of a schedule.
    at: Option<f64>,
}

/// The place of a table.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Debug, Default)]
#[serde(rename_all = "snake_case")]
enum Where {
    #[default]
    Top,
    Hop(usize),
    Flow(usize),
    /// A new flow: `value` is its traffic.
    NewFlow,
}

/// The text with these changes.
pub(crate) fn apply(text: &str, edits: &[Edit]) -> Result<String, Complaint> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| Complaint {
        line: error.span().map(|span| 1 + text[..span.start].matches('\n').count()),
        message: error.message().to_owned(),
    })?;
    for edit in edits {
        match edit.table {
            Where::Top => change(document.as_table_mut(), edit)?,
            Where::Hop(nth) => change_nth(&mut document, "hop", nth, edit)?,
            Where::Flow(nth) => change_nth(&mut document, "flow", nth, edit)?,
            Where::NewFlow => add_flow(&mut document, edit)?,
        }
    }
    Ok(document.to_string())
}

fn tables<'a>(document: &'a mut DocumentMut, list: &str) -> Result<&'a mut ArrayOfTables, Complaint> {
    let item = document.get_mut(list).and_then(Item::as_array_of_tables_mut);
    item.ok_or_else(|| Complaint::new(format!("the scenario writes no [[{list}]] tables, which the controls change")))
}

fn change_nth(document: &mut DocumentMut, list: &str, nth: usize, edit: &Edit) -> Result<(), Complaint> {
    let tables = tables(document, list)?;
    if edit.key.is_empty() && edit.value.is_none() {
        if nth < tables.len() {
            tables.remove(nth);
        }
        return Ok(());
    }
    let table =
        tables.get_mut(nth).ok_or_else(|| Complaint::new(format!("there is no [[{list}]] number {}", nth + 1)))?;
    change(table, edit)
}

fn change(table: &mut dyn TableLike, edit: &Edit) -> Result<(), Complaint> {
    let [key, params @ ..] = edit.key.as_slice() else { return Err(Complaint::new("a change names no key")) };
    let value = match &edit.value {
        Some(text) => Some(value(&edit.key, text)?),
        None => None,
    };
    match (params, value, edit.at) {
        ([], None, _) => {
            table.remove(key);
        }
        ([], Some(value), None) => put(table, key, value),
        ([], Some(value), Some(at)) => {
            let before = table.get(key).and_then(Item::as_value);
            let steps = with_step(key, before, value, at)?;
            put(table, key, Value::Array(steps));
        }
        ([param], value, _) => {
            let mut entry = match table.get(key).and_then(Item::as_value) {
                Some(Value::InlineTable(entry)) => entry.clone(),
                Some(kind @ Value::String(_)) => of_kind(kind.clone()),
                // A transport that is not written is TCP.
                None if key == "transport" => of_kind("tcp".into()),
                _ => return Err(Complaint::new(format!("{key} has no parameters here"))),
            };
            match value {
                Some(value) => drop(entry.insert(param, value)),
                None => drop(entry.remove(param)),
            }
            let kind = entry.get("kind").filter(|_| entry.len() == 1).cloned();
            put(table, key, kind.unwrap_or(Value::InlineTable(entry)));
        }
        _ => return Err(Complaint::new("a change names a key and at most one parameter")),
    }
    Ok(())
}

/// Replaces a key's value, and keeps the comment behind it.
fn put(table: &mut dyn TableLike, key: &str, mut value: Value) {
    if let Some(before) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = before.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

fn of_kind(kind: Value) -> InlineTable {
    let mut entry = InlineTable::from_iter([("kind", kind)]);
    entry.fmt();
    entry
}

/// A value as the command line's `--set` reads it.
fn value(key: &[String], text: &str) -> Result<Value, Complaint> {
    let setting = Setting::new("", &key.join("."), text)?;
    setting.toml().parse().map_err(|_| Complaint::new(format!("{}: cannot be {text:?}", key.join("."))))
}

/// A schedule whose last step is this value at this time.
fn with_step(key: &str, before: Option<&Value>, value: Value, at: f64) -> Result<Array, Complaint> {
    let step = |at: &str, value: Value| {
        let mut step = InlineTable::from_iter([("at", Value::from(at)), (key, value)]);
        step.fmt();
        Value::InlineTable(step)
    };
    let starts = |step: &Value| {
        let at = step.as_inline_table()?.get("at")?.as_str()?;
        narrows_scenario::shorthand::span("at", at).ok().map(|at| at.as_secs_f64())
    };
    let mut steps = match before {
        Some(Value::Array(steps)) => {
            let earlier = steps.iter().filter(|step| starts(step).is_some_and(|start| start < at));
            Array::from_iter(earlier.cloned())
        }
        Some(first @ Value::String(text)) if !text.value().starts_with("trace") => {
            Array::from_iter([step("0s", first.clone())])
        }
        // A delay that is not written is none.
        None if key == "delay" => Array::from_iter([step("0s", "0ms".into())]),
        _ => return Err(Complaint::new(format!("this {key} follows a trace, and cannot change on the way"))),
    };
    steps.push(step(&format!("{at}s"), value));
    Ok(steps)
}

/// Adds a flow with this traffic over the way of the first one.
fn add_flow(document: &mut DocumentMut, edit: &Edit) -> Result<(), Complaint> {
    let traffic = edit.value.as_deref().unwrap_or("download");
    let flows = tables(document, "flow")?;
    let name = traffic.split(':').next().unwrap_or(traffic);
    let taken = |name: &str| flows.iter().any(|flow| flow.get("name").and_then(Item::as_str) == Some(name));
    let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
    let name = names.into_iter().find(|name| !taken(name)).unwrap_or_default();
    let mut flow = Table::new();
    flow.insert("name", Item::Value(name.into()));
    flow.insert("traffic", Item::Value(value(&["traffic".to_owned()], traffic)?));
    let first = flows.get(0);
    for key in ["rtt", "route", "back"] {
        if let Some(same) = first.and_then(|first| first.get(key)) {
            flow.insert(key, same.clone());
        }
    }
    flows.push(flow);
    Ok(())
}
