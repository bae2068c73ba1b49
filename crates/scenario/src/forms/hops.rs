//! A list of hops by their names: a route.
use super::{Form, FormSpec};
use crate::error::ScenarioError;
use crate::model::{Hop, Scenario};
use crate::parse::{Context, Item};
use crate::suggest::hint;
use crate::write::quoted;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A list of hops, with the least number of them.
pub(crate) struct Hops(pub(crate) usize);

/// The hops' names, for look-ups and for lists in messages.
#[derive(Default)]
pub(crate) struct HopNames {
    index: HashMap<String, usize>,
    pub(crate) names: Vec<String>,
}

/// Most names that a message lists; a scenario may have thousands.
const LISTED: usize = 20;

impl HopNames {
    pub(crate) fn new(hops: &[Hop]) -> HopNames {
        let names: Vec<String> = hops.iter().map(|hop| hop.name.clone()).collect();
        HopNames { index: names.iter().enumerate().map(|(index, name)| (name.clone(), index)).collect(), names }
    }

    pub(crate) fn allowed(&self) -> String {
        let listed = self.names.iter().take(LISTED).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        match self.names.len().saturating_sub(LISTED) {
            0 => listed,
            more => format!("{listed} and {more} more"),
        }
    }
}

impl Form<Vec<usize>> for Hops {
    fn spec(&self) -> FormSpec {
        FormSpec::new("hops", "names of hops")
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<Vec<usize>, ScenarioError> {
        let hops = cx.hops();
        let index = |item: &Item<'_>| {
            let Some(name) = item.as_str() else { return Err(item.refuse(&hops.allowed(), "")) };
            let hint = || hint(name, hops.names.iter().map(String::as_str));
            hops.index.get(name).copied().ok_or_else(|| item.refuse(&format!("a hop: {}", hops.allowed()), &hint()))
        };
        let items = item.as_list().ok_or_else(|| item.refuse(&format!("a list of hops: [{}]", hops.allowed()), ""))?;
        items.iter().map(index).collect()
    }

    fn toml(&self, value: &Vec<usize>, of: &Scenario) -> Option<String> {
        Some(format!("[{}]", names(value, of).map(quoted).collect::<Vec<_>>().join(", ")))
    }

    fn shown(&self, value: &Vec<usize>, of: &Scenario) -> String {
        let names: Vec<&str> = names(value, of).collect();
        if names.is_empty() { "no hop".to_owned() } else { names.join(", ") }
    }

    fn schema(&self) -> Value {
        json!({ "type": "array", "items": { "type": "string" }, "minItems": self.0, "uniqueItems": true })
    }
}

fn names<'a>(hops: &'a [usize], of: &'a Scenario) -> impl Iterator<Item = &'a str> {
    hops.iter().filter_map(|&hop| Some(of.hops.get(hop)?.name.as_str()))
}
