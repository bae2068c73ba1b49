//! Tables within the file: `[record]`, and arrays of tables such as `[[hop]]`.
use super::{Form, FormSpec};
use crate::check::Fault;
use crate::error::ScenarioError;
use crate::keys::{self, Table};
use crate::model::Scenario;
use crate::parse::{self, Context, Item, Section};
use serde_json::{Value, json};

/// A table.
pub(crate) struct One;

/// An array of tables, with the least number of them.
pub(crate) struct Many(pub(crate) usize);

impl<T: Table> Form<T> for One {
    fn spec(&self) -> FormSpec {
        FormSpec { is_table: true, ..FormSpec::new("table", format!("a table {}", T::TITLE)) }
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<T, ScenarioError> {
        parse::table(&item.section(T::TITLE)?, cx)
    }

    fn toml(&self, _: &T, _: &Scenario) -> Option<String> {
        None
    }

    fn write(&self, out: &mut String, _: &str, value: &T, of: &Scenario) {
        *out += &format!("\n{}\n", T::TITLE);
        write(out, value, of);
    }

    fn shown(&self, _: &T, _: &Scenario) -> String {
        T::TITLE.to_owned()
    }

    fn schema(&self) -> Value {
        Value::Object(keys::object::<T>())
    }
}

impl<T: Table> Form<Vec<T>> for Many {
    fn spec(&self) -> FormSpec {
        FormSpec { is_table: true, ..FormSpec::new("tables", format!("one {} for each", T::TITLE)) }
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<Vec<T>, ScenarioError> {
        let items = item.list(&Form::<Vec<T>>::spec(self).allowed)?;
        let sections = items.iter().map(|item| item.section(T::TITLE)).collect::<Result<Vec<_>, _>>()?;
        let tables = sections.iter().map(|section| parse::table(section, cx)).collect::<Result<Vec<_>, _>>()?;
        let place = |fault: Fault| match sections.get(fault.part.index()) {
            Some(section) => section.fault(&fault.key, fault.message),
            None => item.error(fault.message),
        };
        T::note(&tables, cx).map_err(place)?;
        Ok(tables)
    }

    fn check(&self, _: &str, tables: &Vec<T>) -> Result<(), String> {
        let enough = tables.len() >= self.0;
        if enough { Ok(()) } else { Err(none::<T>()) }
    }

    fn toml(&self, _: &Vec<T>, _: &Scenario) -> Option<String> {
        None
    }

    fn write(&self, out: &mut String, _: &str, tables: &Vec<T>, of: &Scenario) {
        for table in tables {
            *out += &format!("\n{}\n", T::TITLE);
            write(out, table, of);
        }
    }

    fn shown(&self, tables: &Vec<T>, _: &Scenario) -> String {
        format!("{} × {}", tables.len(), T::TITLE)
    }

    /// They have the same keys.
    fn is_same(&self, values: [&Vec<T>; 2], of: [&Scenario; 2]) -> bool {
        let [one, other] = values;
        let are_same = |(a, b): (&T, &T)| T::KEYS.iter().all(|key| key.is_same([a, b], of));
        one.len() == other.len() && one.iter().zip(other).all(are_same)
    }

    fn schema(&self) -> Value {
        let mut schema = json!({ "type": "array", "items": keys::object::<T>() });
        if self.0 > 0 {
            schema["minItems"] = json!(self.0);
        }
        schema
    }

    fn missing(&self, section: &Section<'_>, _: &str) -> ScenarioError {
        section.error(none::<T>())
    }
}

fn none<T: Table>() -> String {
    format!("no {}; a scenario has at least one", T::TITLE)
}

/// Writes a table's keys.
pub(crate) fn write<T: Table>(out: &mut String, table: &T, of: &Scenario) {
    for key in T::KEYS {
        if !table.omits(key.about().name) {
            key.write(out, table, of);
        }
    }
}
