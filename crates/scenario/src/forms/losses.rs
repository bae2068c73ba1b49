//! How a hop loses packets: in `tc`'s words, or as a trace says.
use super::effects::Worded;
use super::{Form, FormSpec, TcWords};
use crate::error::ScenarioError;
use crate::model::Scenario;
use crate::parse::{Context, Item};
use crate::schema;
use crate::shorthand;
use crate::trace;
use crate::write::quoted;
use narrows_core::netem::{Loss, RecordedLosses};
use serde_json::{Map, Value, json};

/// A hop's losses.
pub(crate) struct Losses;

/// What names a trace.
const TRACE: &str = "the name of a file";

impl Form<Loss> for Losses {
    fn spec(&self) -> FormSpec {
        Form::<Loss>::spec(&TcWords)
    }

    fn read(&self, item: &Item<'_>, cx: &Context<'_>) -> Result<Loss, ScenarioError> {
        let of_file = |name: &str, item: &Item<'_>| trace::losses(name, cx.traces, |problem| item.error(problem));
        if let Some(name) = item.as_str().and_then(shorthand::trace_name) {
            return of_file(name, item);
        }
        if item.is_table() {
            let section = item.section("this loss")?;
            section.only(&["trace"])?;
            let item = section.need("trace", TRACE)?;
            return of_file(item.string(TRACE)?, &item);
        }
        Form::<Loss>::read(&TcWords, item, cx)
    }

    fn check(&self, key: &str, loss: &Loss) -> Result<(), String> {
        match loss {
            Loss::Trace(trace) => trace
                .losses
                .validate()
                .map_err(|allowed| format!("{key} cannot be the trace \"{}\"; allowed: {allowed}", trace.name)),
            loss => TcWords.check(key, loss),
        }
    }

    fn toml(&self, loss: &Loss, of: &Scenario) -> Option<String> {
        match loss {
            Loss::Trace(trace) => Some(format!("{{ trace = {} }}", quoted(&trace.name))),
            loss => TcWords.toml(loss, of),
        }
    }

    fn shown(&self, loss: &Loss, _: &Scenario) -> String {
        loss.words()
    }

    /// Two traces are equal if their contents are, even if the names of their files differ.
    fn is_same(&self, values: [&Loss; 2], of: [&Scenario; 2]) -> bool {
        match values {
            [Loss::Trace(a), Loss::Trace(b)] => a.losses == b.losses,
            values => self.shown(values[0], of[0]) == self.shown(values[1], of[1]),
        }
    }

    fn schema(&self) -> Value {
        let doc = "A file beside the scenario: 0 or 1 for each packet, or CSV with times and losses.";
        let trace = Map::from_iter([("trace".to_owned(), schema::described(doc, json!({ "type": "string" })))]);
        let mut schema = Form::<Loss>::schema(&TcWords);
        if let Some(forms) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
            let short = json!({ "type": "string", "pattern": "^\\s*trace:" });
            forms.extend([
                schema::described("A trace, in short.", short),
                Value::Object(schema::object(trace, &["trace"])),
            ]);
        }
        schema
    }
}

/// A trace in words, without its name: a result's file has another name than the user's.
pub(super) fn shown(losses: &RecordedLosses) -> String {
    let mean = 100.0 * losses.mean();
    match losses {
        RecordedLosses::Packets(outcomes) => format!("a trace of {} packets, mean {mean:.3} %", outcomes.len()),
        RecordedLosses::Shares(_) => format!("a trace of {}, mean {mean:.3} %", losses.period()),
    }
}
