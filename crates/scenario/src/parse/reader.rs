//! Tables and values with their place in the file, and the messages that every section shares.
use crate::error::ScenarioError;
use crate::settings::{Joined, Setting};
use crate::shorthand;
use crate::suggest::{hint, short, unit_hint, unknown};
use narrows_core::params::{ParamError, ParamValue, Unit, WORDS};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file's text, with settings beside it.
pub(crate) struct Source<'a> {
    /// Its name in messages.
    pub(crate) file: &'a str,
    pub(crate) joined: &'a Joined,
    pub(crate) settings: &'a [Setting],
}

impl Source<'_> {
    fn error(&self, offset: usize, message: impl Into<String>) -> ScenarioError {
        let setting = self.joined.values.iter().position(|value| value.contains(&offset));
        if let Some(setting) = setting.and_then(|n| self.settings.get(n)) {
            return ScenarioError::new(&setting.place, message);
        }
        let before = &self.joined.text.as_bytes()[..offset.min(self.joined.file)];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        ScenarioError { place: self.file.into(), line: Some(line), message: message.into() }
    }

    /// An error in the TOML itself. The message shows nothing of the text: a file that is not TOML may be anything, and may not be
    /// the user's own.
    pub(crate) fn syntax(&self, error: &toml::de::Error) -> ScenarioError {
        let start = error.span().map_or(0, |span| span.start);
        let before = self.joined.text.get(..start).unwrap_or_default();
        let column = 1 + before.chars().rev().take_while(|&c| c != '\n').count();
        self.error(start, format!("not TOML: {} (column {column})", error.message()))
    }

    /// A value as it is written, for messages; a long one is shortened.
    fn written(&self, span: Range<usize>) -> String {
        let text = self.joined.text.get(span).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        if line.chars().count() > 40 || line.len() < text.len() {
            return line.chars().take(37).collect::<String>() + "...";
        }
        line.to_owned()
    }
}

/// A table, with its name in messages.
pub(crate) struct Section<'a> {
    source: &'a Source<'a>,
    table: &'a DeTable<'a>,
    /// The place of its header, or of the table itself.
    offset: usize,
    title: String,
}

/// The value of a key, or an element of it.
pub(crate) struct Item<'a> {
    source: &'a Source<'a>,
    value: &'a Spanned<DeValue<'a>>,
    /// The key.
    pub(crate) key: &'a str,
    title: String,
}

impl<'a> Section<'a> {
    pub(crate) fn new(
        source: &'a Source<'a>,
        table: &'a DeTable<'a>,
        offset: usize,
        title: impl Into<String>,
    ) -> Section<'a> {
        Section { source, table, offset, title: title.into() }
    }

    pub(crate) fn source(&self) -> &'a Source<'a> {
        self.source
    }

    /// An error about the section as a whole.
    pub(crate) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.source.error(self.offset, message)
    }

    /// An error about a key, or about the section if it lacks the key.
    pub(crate) fn fault(&self, key: &str, message: String) -> ScenarioError {
        self.item(key).map_or_else(|| self.error(message.clone()), |item| item.error(message.clone()))
    }

    /// Refuses keys that are not in the list; the error names the first one in the file.
    pub(crate) fn only(&self, allowed: &[&str]) -> Result<(), ScenarioError> {
        let unknown = self.table.iter().map(|(key, _)| key).filter(|key| !allowed.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        let (name, title) = (key.get_ref(), &self.title);
        let hint = hint(name, allowed.iter().copied());
        let message = format!("unknown key \"{name}\" in {title}; allowed: {}{hint}", allowed.join(", "));
        Err(self.source.error(key.span().start, message))
    }

    /// A key's value, if the key is present.
    pub(crate) fn item(&self, key: &str) -> Option<Item<'a>> {
        let (key, value) = self.table.get_key_value(key)?;
        Some(Item { source: self.source, value, key: key.get_ref(), title: self.title.clone() })
    }

    /// The value of a required key.
    pub(crate) fn need(&self, key: &str, allowed: &str) -> Result<Item<'a>, ScenarioError> {
        self.item(key).ok_or_else(|| self.lacks(key, allowed))
    }

    /// The error for a required key that is missing.
    pub(crate) fn lacks(&self, key: &str, allowed: &str) -> ScenarioError {
        self.error(format!("no {key} in {}; allowed: {allowed}", self.title))
    }

    /// The tables of `[[key]]`; empty if the key is missing.
    pub(crate) fn sections(&self, key: &str, title: &str) -> Result<Vec<Section<'a>>, ScenarioError> {
        let Some(item) = self.item(key) else { return Ok(Vec::new()) };
        let allowed = format!("one {title} for each");
        item.list(&allowed)?.iter().map(|element| element.section(title)).collect()
    }
}

impl<'a> Item<'a> {
    /// An error at the value's line.
    pub(crate) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.source.error(self.value.span().start, message)
    }

    /// The error for a value that is not allowed.
    pub(crate) fn refuse(&self, allowed: &str, hint: &str) -> ScenarioError {
        let got = match self.value.get_ref() {
            DeValue::String(text) => format!("{:?}", short(text)),
            _ => self.source.written(self.value.span()),
        };
        self.error(format!("{} in {} cannot be {got}; allowed: {allowed}{hint}", self.key, self.title))
    }

    pub(crate) fn string(&self, allowed: &str) -> Result<&'a str, ScenarioError> {
        self.as_str().ok_or_else(|| self.refuse(allowed, ""))
    }

    pub(crate) fn as_str(&self) -> Option<&'a str> {
        self.value.get_ref().as_str()
    }

    pub(crate) fn is_string(&self) -> bool {
        self.value.get_ref().is_str()
    }

    pub(crate) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(crate) fn list(&self, allowed: &str) -> Result<Vec<Item<'a>>, ScenarioError> {
        self.as_list().ok_or_else(|| self.refuse(allowed, ""))
    }

    pub(crate) fn as_list(&self) -> Option<Vec<Item<'a>>> {
        let item = |value| Item { source: self.source, value, key: self.key, title: self.title.clone() };
        Some(self.value.get_ref().as_array()?.iter().map(item).collect())
    }

    /// The value as a table; errors in its keys name `title`.
    pub(crate) fn section(&self, title: &str) -> Result<Section<'a>, ScenarioError> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Section::new(self.source, table, self.value.span().start, title)),
            _ => Err(self.refuse("a table", "")),
        }
    }

    /// The value as a number or a text with a unit.
    pub(crate) fn value<T: ParamValue>(&self) -> Result<T, ScenarioError> {
        let allowed = || T::allowed();
        let text = self.text(T::unit()).ok_or_else(|| self.refuse(&allowed(), ""))?;
        T::parse(&text).ok_or_else(|| self.refuse(&allowed(), &unit_hint(&text, T::unit())))
    }

    /// Reads or sets a parameter of this unit and range from the value, as text.
    pub(crate) fn set<V>(
        &self,
        unit: Unit,
        range: &str,
        set: impl FnOnce(&str) -> Result<V, ParamError>,
    ) -> Result<V, ScenarioError> {
        let Some(text) = self.text(unit) else {
            let is_range = range.contains(" to ");
            let allowed = if is_range { format!("{}, {range}", words(unit)) } else { range.to_owned() };
            return Err(self.refuse(&allowed, ""));
        };
        set(&text).map_err(|error| {
            let hint = match unit.choices() {
                Some(words) => hint(&text, words.iter().copied()),
                None => unit_hint(&text, unit),
            };
            self.refuse(&error.allowed, &hint)
        })
    }

    /// The name of a kind, as it is written.
    pub(crate) fn kind_name(&self) -> Option<&'a str> {
        match self.value.get_ref() {
            DeValue::Table(table) => table.get("kind")?.get_ref().as_str(),
            value => value.as_str(),
        }
    }

    /// Reads `"name"`, a queue in `tc`'s words, or `{ kind = "name", parameter = value, … }`.
    pub(crate) fn kind<K: Registered>(&self) -> Result<K, ScenarioError> {
        let names = K::names();
        let allowed = || format!("{}, or {{ kind = \"...\" }} with parameters", names.join(", "));
        let named = |item: &Item<'_>, name: &str| K::named(name).ok_or_else(|| item.error(unknown::<K>(name)));
        if let Some(name) = self.value.get_ref().as_str() {
            return match shorthand::line_of_tc::<K>(name) {
                Some(queue) => queue.map_err(|problem| self.error(problem)),
                None => named(self, name),
            };
        }
        if !self.is_table() {
            return Err(self.refuse(&allowed(), ""));
        }
        let section = self.section(&format!("this {}", K::WHAT))?;
        let item = section.need("kind", &names.join(", "))?;
        let mut kind = named(&item, item.string(&names.join(", "))?)?;
        let section = self.section(&format!("{} \"{}\"", K::WHAT, kind.name()))?;
        let specs = kind.specs();
        section.only(&std::iter::once("kind").chain(specs.iter().map(|spec| spec.name)).collect::<Vec<_>>())?;
        for spec in &specs {
            if let Some(item) = section.item(spec.name) {
                item.set(spec.unit, &spec.allowed, |text| kind.set(spec.name, text))?;
            }
        }
        match kind.validate() {
            Ok(()) => Ok(kind),
            // A rule between parameters is broken: the error is at the line of the parameter that it names, or of the whole table.
            Err(error) => Err(match section.item(&error.name) {
                Some(item) => item.refuse(&error.allowed, ""),
                None => section.error(format!("{error} in {}", section.title)),
            }),
        }
    }

    /// The value as the text that a parameter of this unit accepts; `None` if it has the wrong type.
    fn text(&self, unit: Unit) -> Option<String> {
        match (self.value.get_ref(), unit) {
            // Some numbers may be words.
            (DeValue::String(text), unit) if !unit.is_bare() || (WORDS.contains(&&**text) && unit != Unit::Switch) => {
                Some(text.clone().into_owned())
            }
            (DeValue::String(text), Unit::Number) if text.trim_end().ends_with('%') => Some(text.clone().into_owned()),
            (DeValue::Integer(n), Unit::Packets | Unit::Limit | Unit::Count | Unit::Number) => {
                // Wider than any parameter, so that a number out of range is refused with its range.
                i128::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string())
            }
            (DeValue::Float(x), Unit::Number) => Some(x.as_str().to_owned()),
            (DeValue::Boolean(on), Unit::Switch) => Some(on.to_string()),
            _ => None,
        }
    }
}

/// The kind of value that a unit needs, in words.
pub(crate) fn words(unit: Unit) -> String {
    match unit {
        Unit::Span => Span::allowed(),
        Unit::Rate => Rate::allowed(),
        Unit::Bytes => Bytes::allowed(),
        Unit::Packets => narrows_core::params::Packets::allowed(),
        Unit::Limit => narrows_core::params::Limit::allowed(),
        Unit::Count => u32::allowed(),
        Unit::Number => f64::allowed(),
        Unit::Switch => bool::allowed(),
        Unit::Choice(words) | Unit::Kind(words) => words.join(" | "),
    }
}
