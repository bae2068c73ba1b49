//! An entry of a registry by its name, with parameters: `"fq_codel"`, `{ kind = "fq_codel", target = "10ms" }`.
use super::{Form, FormSpec};
use crate::error::ScenarioError;
use crate::model::Scenario;
use crate::parse::{Context, Item};
use crate::schema;
use crate::write::{quoted, value};
use narrows_core::params::Unit;
use narrows_core::registry::Registered;
use serde_json::Value;

/// An entry of a registry.
pub(crate) struct Kind;

impl<K: Registered> Form<K> for Kind {
    fn spec(&self) -> FormSpec {
        FormSpec { choices: Some(K::names()), ..FormSpec::new(Unit::Kind(&[]).word(), K::names().join(", ")) }
    }

    fn read(&self, item: &Item<'_>, _: &Context<'_>) -> Result<K, ScenarioError> {
        item.kind()
    }

    fn check(&self, key: &str, kind: &K) -> Result<(), String> {
        kind.validate().map_err(|error| {
            let got = error.got.replace('`', "\"");
            format!("{key} \"{}\": {} cannot be {got}; allowed: {}", kind.name(), error.name, error.allowed)
        })
    }

    fn toml(&self, kind: &K, _: &Scenario) -> Option<String> {
        let name = quoted(kind.name());
        let specs = kind.specs();
        if specs.is_empty() {
            return Some(name);
        }
        let values = specs.iter().filter_map(|spec| kind.get(spec.name).map(|text| (spec, text)));
        let values = values.map(|(spec, text)| format!(", {} = {}", spec.name, value(spec.unit, &text)));
        Some(format!("{{ kind = {name}{} }}", values.collect::<String>()))
    }

    fn shown(&self, kind: &K, _: &Scenario) -> String {
        kind.to_string()
    }

    fn schema(&self) -> Value {
        schema::kind::<K>()
    }
}
