//! How a hop's delays are distributed: by a name, or as a file's table says.
use super::{Form, FormSpec};
use crate::dist;
use crate::error::ScenarioError;
use crate::model::Scenario;
use crate::parse::{Context, Item};
use crate::schema;
use crate::suggest::hint;
use crate::write::quoted;
use narrows_core::params::ParamValue;
use narrows_core::propagation::{DelayTable, Distribution, NamedDistribution};
use serde_json::{Map, Value, json};

/// A hop's distribution of delays.
pub(crate) struct Delays;

/// What names a table.
const FILE: &str = "the name of a file";

fn names() -> &'static [&'static str] {
    NamedDistribution::unit().choices().unwrap_or_default()
}

fn allowed() -> String {
    format!("{}, or {{ file = \"FILE.dist\" }}", NamedDistribution::allowed())
}

impl Form<Distribution> for Delays {
    fn spec(&self) -> FormSpec {
        FormSpec {
            choices: Some(names()),
            range: Some(allowed()),
            ..FormSpec::new(NamedDistribution::unit().word(), allowed())
        }
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<Distribution, ScenarioError> {
        if item.is_table() {
            let section = item.section("this distribution")?;
            section.only(&["file"])?;
            let item = section.need("file", FILE)?;
            return dist::distribution(item.string(FILE)?, cx.traces, |problem| item.error(problem));
        }
        let text = item.as_str().unwrap_or_default();
        let named = NamedDistribution::parse(text).map(Distribution::Named);
        named.ok_or_else(|| item.refuse(&allowed(), &hint(text, names().iter().copied())))
    }

    fn check(&self, key: &str, distribution: &Distribution) -> Result<(), String> {
        match distribution {
            Distribution::Table(table) if !(1..=DelayTable::MOST).contains(&table.entries.len()) => {
                let (count, most) = (table.entries.len(), DelayTable::MOST);
                Err(format!("{key} cannot have {count} entries; allowed: 1 to {most}"))
            }
            _ => Ok(()),
        }
    }

    fn toml(&self, distribution: &Distribution, _: &Scenario) -> Option<String> {
        Some(match distribution {
            Distribution::Named(named) => quoted(&named.show()),
            Distribution::Table(table) => format!("{{ file = {} }}", quoted(&table.name)),
        })
    }

    fn shown(&self, distribution: &Distribution, _: &Scenario) -> String {
        match distribution {
            Distribution::Named(named) => named.show(),
            Distribution::Table(table) => format!("a table of {} entries", table.entries.len()),
        }
    }

    /// Two tables are equal if their entries are, even if the names of their files differ.
    fn is_same(&self, values: [&Distribution; 2], _: [&Scenario; 2]) -> bool {
        match values {
            [Distribution::Table(a), Distribution::Table(b)] => a.entries == b.entries,
            [a, b] => a == b,
        }
    }

    fn schema(&self) -> Value {
        let doc = "A file beside the scenario, in the format of iproute2's tables.";
        let file = Map::from_iter([("file".to_owned(), schema::described(doc, json!({ "type": "string" })))]);
        json!({ "anyOf": [schema::unit(NamedDistribution::unit()), schema::object(file, &["file"])] })
    }
}
