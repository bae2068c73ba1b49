//! Values for keys of a scenario, given beside its file: `hop.rate=5mbit,20mbit`.
//!
//! A path is a key at the top (`duration`), of the record (`record.interval`), of every hop or flow (`hop.rate`, `flow.rtt`), or of
//! one by its name (`hop.bottleneck.rate`, or `bottleneck.rate`). Parameters follow after a dot: `hop.queue.target`. A value is
//! written as in the file, without the quotes, or as on the command line: `fq_codel:target=10ms`.
//!
//! Settings change the tree of the file before it is read, so that defaults follow them and a fault in one is reported at its place.
use crate::error::ScenarioError;
use crate::keys;
use crate::model::{Flow, Hop, Record, Scenario};
use crate::shorthand;
use crate::suggest::hint;
use narrows_core::params::Unit;
use narrows_core::queue::QueueConfig;
use narrows_core::registry::Registered;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value for a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The path of the key.
    pub path: String,
    /// The value as the user wrote it.
    pub text: String,
    /// The place that messages name: `--set hop.rate=5mbit`.
    pub place: String,
    /// The value in TOML.
    toml: String,
}

impl Setting {
    /// A single value; `place` precedes the path in messages.
    pub fn new(place: &str, path: &str, text: &str) -> Result<Setting, ScenarioError> {
        let (path, text) = (path.trim(), text.trim());
        let place = format!("{place} {path}={text}").trim_start().to_owned();
        if text.is_empty() {
            return Err(ScenarioError::new(place, format!("no value; allowed: {FORM}")));
        }
        let toml = in_toml(&place, path, text)?;
        Ok(Setting { path: path.to_owned(), text: text.to_owned(), place, toml })
    }

    /// The value as TOML: `"5mbit"`, `{ kind = "fq_codel", target = "10ms" }`.
    pub fn toml(&self) -> &str {
        &self.toml
    }
}

/// `hop.rate=5mbit,20mbit` → a setting for each value; at least one.
pub fn settings(flag: &str, text: &str) -> Result<Vec<Setting>, ScenarioError> {
    let parts = text.split_once('=').filter(|(path, _)| !path.trim().is_empty());
    let (path, values) =
        parts.ok_or_else(|| ScenarioError::new(flag, format!("{text:?} sets nothing; allowed: {FORM}")))?;
    values_of(values).into_iter().map(|value| Setting::new(flag, path, value)).collect()
}

/// The form of a setting.
const FORM: &str = "PATH=VALUE, such as hop.rate=20mbit, flow.bulk.rtt=40ms or hop.queue=fq_codel:target=10ms";

/// Splits a list at its commas: not at those in brackets and quotes, nor where a parameter follows, `fifo:limit=1p,flows=2`.
fn values_of(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start, mut values) = (0_usize, None, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 && !is_parameter(&text[at + 1..]) => {
                values.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    values.push(&text[start..]);
    values
}

/// `limit=100p`, and not `fifo:limit=100p`.
fn is_parameter(text: &str) -> bool {
    let text = text.trim_start();
    let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    word > 0 && text[word..].starts_with('=')
}

/// A value in TOML.
fn in_toml(place: &str, path: &str, text: &str) -> Result<String, ScenarioError> {
    if text.starts_with(['{', '[', '"', '\'']) || is_bare(text) {
        return Ok(text.to_owned());
    }
    let key = path.rsplit('.').next().unwrap_or_default();
    let Some(names) = kinds(key) else { return Ok(quoted(text)) };
    if key == QueueConfig::WHAT && crate::tc::is_line(text) {
        return Ok(quoted(text));
    }
    let (name, params) = shorthand::named(place, text, names)?;
    if params.is_empty() {
        return Ok(quoted(name));
    }
    let value = |text: &str| if is_bare(text) { text.to_owned() } else { quoted(text) };
    let params: Vec<String> = params.iter().map(|(key, text)| format!("{} = {}", quoted(key), value(text))).collect();
    Ok(format!("{{ kind = {}, {} }}", quoted(name), params.join(", ")))
}

/// The names that a key of hops or flows chooses from, if its values are kinds with parameters.
fn kinds(key: &str) -> Option<&'static [&'static str]> {
    let spec = keys::tables().into_iter().flat_map(|table| table.keys).find(|spec| spec.name == key)?;
    spec.choices.filter(|_| spec.unit == Unit::Kind(&[]).word())
}

/// A number or a truth value, which TOML writes without quotes.
fn is_bare(text: &str) -> bool {
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || b"+-._eE".contains(&b)) && text.parse::<f64>().is_ok();
    ["true", "false"].contains(&text) || (is_number && DeValue::parse(text).is_ok())
}

fn quoted(text: &str) -> String {
    crate::write::quoted(text)
}

/// The text of a file with the values of settings after it, so that every value of the tree has a place in one text.
pub(crate) struct Joined {
    pub(crate) text: String,
    /// The bytes of the file.
    pub(crate) file: usize,
    /// The bytes of each setting's value.
    pub(crate) values: Vec<Range<usize>>,
}

impl Joined {
    pub(crate) fn of(text: &str, settings: &[Setting]) -> Joined {
        let mut joined = Joined { text: text.to_owned(), file: text.len(), values: Vec::new() };
        for setting in settings {
            joined.text.push('\n');
            let start = joined.text.len();
            joined.text.push_str(&setting.toml);
            joined.values.push(start..joined.text.len());
        }
        joined
    }
}

/// Where a setting belongs: a table of the scenario, and the keys that lead from there.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    table: Where,
    keys: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Where {
    Top,
    Record,
    /// A table of an array: `hop`, `flow`.
    Item(&'static str, usize),
}

/// Puts every setting's value in the tree.
pub(crate) fn apply<'a>(tree: &mut DeTable<'a>, joined: &'a Joined, settings: &[Setting]) -> Result<(), ScenarioError> {
    let mut done: Vec<(Place, &Setting)> = Vec::new();
    let mut ordered: Vec<(&Setting, &Range<usize>)> = settings.iter().zip(&joined.values).collect();
    // A queue before its parameters.
    ordered.sort_by_key(|(setting, _)| setting.path.matches('.').count());
    for (setting, range) in ordered {
        let fail = |message: String| ScenarioError::new(&setting.place, message);
        let value = DeValue::parse(&joined.text[range.clone()])
            .map_err(|error| fail(format!("not a value in TOML: {}", error.message())))?;
        let value = moved(value, range.start);
        for place in places(tree, &setting.path).map_err(fail)? {
            if let Some((_, other)) = done.iter().find(|(known, _)| *known == place) {
                return Err(fail(format!("{} sets the same key; allowed: one value for each key", other.place)));
            }
            let table = table(tree, place.table).ok_or_else(|| fail("there is no such table".to_owned()))?;
            put(table, &place.keys, value.clone(), range).map_err(fail)?;
            done.push((place, setting));
        }
    }
    // Flows of which a setting asks for none are left out.
    let none: Vec<usize> = done.iter().filter_map(|(place, setting)| place.is_none_of_a_flow(setting)).collect();
    if let Some(DeValue::Array(flows)) = tree.get_mut("flow").map(Spanned::get_mut) {
        let all = std::mem::replace(flows, std::iter::empty().collect());
        let left = all.into_iter().enumerate().filter(|(n, _)| !none.contains(n));
        *flows = left.map(|(_, flow)| flow).collect();
    }
    Ok(())
}

impl Place {
    /// The number of the flow whose count is set to zero.
    fn is_none_of_a_flow(&self, setting: &Setting) -> Option<usize> {
        match self.table {
            Where::Item("flow", n) if self.keys == ["count"] && setting.toml == "0" => Some(n),
            _ => None,
        }
    }
}

/// The places that a path names; the error says what is allowed.
fn places(tree: &DeTable<'_>, path: &str) -> Result<Vec<Place>, String> {
    let keys = |rest: &str| rest.split('.').map(|key| key.trim().to_owned()).collect::<Vec<_>>();
    let (top, record) = (keys::plain_names::<Scenario>(), keys::names::<Record>());
    let (hop, flow) = (keys::names::<Hop>(), keys::names::<Flow>());
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match (first, rest) {
        ("hop", Some(rest)) => return items(tree, "hop", &hop, rest),
        ("flow", Some(rest)) => return items(tree, "flow", &flow, rest),
        ("hop" | "flow", None) => return Err(format!("{first} is no key with a value; allowed: {first}.KEY")),
        ("record", Some(rest)) => return Ok(vec![Place { table: Where::Record, keys: keys(rest) }]),
        ("record", None) => {
            return Err(format!("record is no key with a value; allowed: {}", listed("record.", &record)));
        }
        (key, None) if top.contains(&key) => {
            return Ok(vec![Place { table: Where::Top, keys: keys(key) }]);
        }
        _ => {}
    }
    let named = [("hop", &hop), ("flow", &flow)];
    let found = named.into_iter().find_map(|(kind, allowed)| by_name(tree, kind, allowed, path));
    found.map(|place| vec![place]).ok_or_else(|| {
        let mut known: Vec<String> = top.iter().map(|&key| key.to_owned()).collect();
        for (table, keys) in [("record", &record), ("hop", &hop), ("flow", &flow)] {
            known.extend(keys.iter().map(|key| format!("{table}.{key}")));
        }
        let hint = hint(path, known.iter().map(String::as_str));
        let names = [names(tree, "hop"), names(tree, "flow")].concat();
        format!(
            "unknown key {path:?}; allowed: {}, record.KEY, hop.KEY, flow.KEY, and NAME.KEY of {}{hint}",
            top.join(", "),
            shown(&names)
        )
    })
}

/// The places in the tables of `[[hop]]` or `[[flow]]`: of one by its name, or of all.
fn items(tree: &DeTable<'_>, kind: &'static str, allowed: &[&str], rest: &str) -> Result<Vec<Place>, String> {
    if let Some(place) = by_name(tree, kind, allowed, rest) {
        return Ok(vec![place]);
    }
    let names = names(tree, kind);
    let keys: Vec<String> = rest.split('.').map(|key| key.trim().to_owned()).collect();
    if keys.first().is_some_and(|key| allowed.contains(&key.as_str())) {
        let place = |n| Place { table: Where::Item(kind, n), keys: keys.clone() };
        return if names.is_empty() {
            Err(format!("the scenario has no {kind}"))
        } else {
            Ok((0..names.len()).map(place).collect())
        };
    }
    // A name may be right and its key wrong.
    let of_name =
        names.iter().filter(|name| rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.')));
    if let Some(name) = of_name.max_by_key(|name| name.len()) {
        let key = rest[name.len() + 1..].split('.').next().unwrap_or_default();
        let hint = hint(key, allowed.iter().copied());
        return Err(format!("unknown key {key:?} of {kind} {name:?}; allowed: {}{hint}", allowed.join(", ")));
    }
    let word = keys.first().cloned().unwrap_or_default();
    let hint = hint(&word, allowed.iter().copied().chain(names.iter().map(String::as_str)));
    Err(format!(
        "{word:?} is no {kind} and no key of one; allowed: a key, for every {kind} ({}), or a name and a key ({}){hint}",
        allowed.join(", "),
        shown(&names)
    ))
}

/// The place that begins with the longest name of a hop or flow that a key follows.
fn by_name(tree: &DeTable<'_>, kind: &'static str, allowed: &[&str], path: &str) -> Option<Place> {
    let names = names(tree, kind);
    let after = |name: &str| path.strip_prefix(name)?.strip_prefix('.');
    let is_key = |rest: &str| allowed.contains(&rest.split('.').next().unwrap_or_default());
    let named = names.iter().enumerate().filter(|(_, name)| after(name).is_some_and(is_key));
    let (n, name) = named.max_by_key(|(_, name)| name.len())?;
    let keys = after(name)?.split('.').map(|key| key.trim().to_owned()).collect();
    Some(Place { table: Where::Item(kind, n), keys })
}

/// The names of the hops or flows; empty for one without a name.
fn names(tree: &DeTable<'_>, kind: &str) -> Vec<String> {
    let Some(DeValue::Array(items)) = tree.get(kind).map(Spanned::get_ref) else { return Vec::new() };
    let name = |item: &Spanned<DeValue<'_>>| {
        item.get_ref().get("name").and_then(|name| name.get_ref().as_str().map(str::to_owned))
    };
    items.iter().map(|item| name(item).unwrap_or_default()).collect()
}

fn table<'t, 'a>(tree: &'t mut DeTable<'a>, at: Where) -> Option<&'t mut DeTable<'a>> {
    match at {
        Where::Top => Some(tree),
        Where::Record => {
            let key = Spanned::new(0..0, Cow::Borrowed("record"));
            let empty = || Spanned::new(0..0, DeValue::Table(DeTable::new()));
            as_table(tree.entry(key).or_insert_with(empty))
        }
        Where::Item(kind, n) => match tree.get_mut(kind)?.get_mut() {
            DeValue::Array(items) => as_table(items.get_mut(n)?),
            _ => None,
        },
    }
}

fn as_table<'t, 'a>(value: &'t mut Spanned<DeValue<'a>>) -> Option<&'t mut DeTable<'a>> {
    match value.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// Puts a value at the end of these keys. A choice such as `queue = "fq_codel"` becomes a table when a parameter of it is set.
fn put<'a>(
    table: &mut DeTable<'a>,
    keys: &[String],
    value: Spanned<DeValue<'a>>,
    range: &Range<usize>,
) -> Result<(), String> {
    let Some((key, rest)) = keys.split_first() else { return Ok(()) };
    let spanned = |key: &str| Spanned::new(range.clone(), Cow::Owned(key.to_owned()));
    if rest.is_empty() {
        // The key, too, has its place in the setting.
        table.remove(key.as_str());
        table.insert(spanned(key), value);
        return Ok(());
    }
    let is_choice = kinds(key).is_some();
    let Some(part) = table.get_mut(key.as_str()) else {
        return Err(if is_choice {
            format!(
                "the scenario has no {key} here whose {} could be set; allowed: {key}=NAME:PARAMETER=VALUE",
                rest.join(".")
            )
        } else {
            format!("the scenario has no {key:?} here, so it has no {:?}", rest.join("."))
        });
    };
    if is_choice && part.get_ref().is_str() {
        let name = part.clone();
        *part = Spanned::new(name.span(), DeValue::Table([(spanned("kind"), name)].into_iter().collect()));
    }
    match part.get_mut() {
        DeValue::Table(inner) => put(inner, rest, value, range),
        _ => Err(format!("{key} has one value here and no {:?}; allowed: {key}=VALUE", rest.join("."))),
    }
}

/// The value with all its places moved.
fn moved(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let at = |span: Range<usize>| span.start + by..span.end + by;
    let span = at(value.span());
    let inner = match value.into_inner() {
        DeValue::Array(items) => DeValue::Array(items.into_iter().map(|item| moved(item, by)).collect()),
        DeValue::Table(table) => {
            let entries = table.into_iter();
            let entries = entries.map(|(key, item)| (Spanned::new(at(key.span()), key.into_inner()), moved(item, by)));
            DeValue::Table(entries.collect())
        }
        plain => plain,
    };
    Spanned::new(span, inner)
}

fn listed(prefix: &str, keys: &[&str]) -> String {
    keys.iter().map(|key| format!("{prefix}{key}")).collect::<Vec<_>>().join(", ")
}

/// The first names of a list; a scenario may have thousands.
fn shown(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    match names.len().saturating_sub(LISTED) {
        0 if names.is_empty() => "none".to_owned(),
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Most names that a message lists.
const LISTED: usize = 20;
