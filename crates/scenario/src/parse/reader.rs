//! Tables and values with their place in the file, and the messages that every section shares.
use crate::error::ScenarioError;
use crate::settings::{Joined, Setting};
use crate::shorthand;
use crate::suggest::{hint, short, unit_hint, unknown};
use narrows_core::params::{ParamError, ParamSpec, ParamValue, Params, Unit, WORDS};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Rate, Span};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file's text, with settings beside it.
pub(super) struct Source<'a> {
    /// Its name in messages.
    pub(super) file: &'a str,
    pub(super) joined: &'a Joined,
    pub(super) settings: &'a [Setting],
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
    pub(super) fn syntax(&self, error: &toml::de::Error) -> ScenarioError {
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
pub(super) struct Section<'a> {
    source: &'a Source<'a>,
    table: &'a DeTable<'a>,
    /// The place of its header, or of the table itself.
    offset: usize,
    title: String,
}

/// The value of a key, or an element of it.
pub(super) struct Item<'a> {
    source: &'a Source<'a>,
    value: &'a Spanned<DeValue<'a>>,
    key: &'a str,
    title: String,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        source: &'a Source<'a>,
        table: &'a DeTable<'a>,
        offset: usize,
        title: impl Into<String>,
    ) -> Section<'a> {
        Section { source, table, offset, title: title.into() }
    }

    pub(super) fn source(&self) -> &'a Source<'a> {
        self.source
    }

    /// An error about the section as a whole.
    pub(super) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.source.error(self.offset, message)
    }

    /// Refuses keys that are not in the list; the error names the first one in the file.
    pub(super) fn only(&self, allowed: &[&str]) -> Result<(), ScenarioError> {
        let unknown = self.table.iter().map(|(key, _)| key).filter(|key| !allowed.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(()) };
        let (name, title) = (key.get_ref(), &self.title);
        let hint = hint(name, allowed.iter().copied());
        let message = format!("unknown key \"{name}\" in {title}; allowed: {}{hint}", allowed.join(", "));
        Err(self.source.error(key.span().start, message))
    }

    /// A key's value, if the key is present.
    pub(super) fn item(&self, key: &str) -> Option<Item<'a>> {
        let (key, value) = self.table.get_key_value(key)?;
        Some(Item { source: self.source, value, key: key.get_ref(), title: self.title.clone() })
    }

    /// The value of a required key.
    pub(super) fn need(&self, key: &str, allowed: &str) -> Result<Item<'a>, ScenarioError> {
        self.item(key).ok_or_else(|| self.lacks(key, allowed))
    }

    /// The error for a required key that is missing.
    pub(super) fn lacks(&self, key: &str, allowed: &str) -> ScenarioError {
        self.error(format!("no {key} in {}; allowed: {allowed}", self.title))
    }

    /// Sets the parameters that are present.
    pub(super) fn fill<P: Params>(&self, params: &mut P) -> Result<(), ScenarioError> {
        for spec in P::specs() {
            if let Some(item) = self.item(spec.name) {
                item.set(&spec, |text| params.set(spec.name, text))?;
            }
        }
        Ok(())
    }

    /// The tables of `[[key]]`; empty if the key is missing.
    pub(super) fn sections(&self, key: &str, title: &str) -> Result<Vec<Section<'a>>, ScenarioError> {
        let Some(item) = self.item(key) else { return Ok(Vec::new()) };
        let allowed = format!("one {title} for each");
        item.list(&allowed)?.iter().map(|element| element.section(title)).collect()
    }
}

impl<'a> Item<'a> {
    /// An error at the value's line.
    pub(super) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.source.error(self.value.span().start, message)
    }

    /// The error for a value that is not allowed.
    pub(super) fn refuse(&self, allowed: &str, hint: &str) -> ScenarioError {
        let got = match self.value.get_ref() {
            DeValue::String(text) => format!("{:?}", short(text)),
            _ => self.source.written(self.value.span()),
        };
        self.error(format!("{} in {} cannot be {got}; allowed: {allowed}{hint}", self.key, self.title))
    }

    pub(super) fn string(&self, allowed: &str) -> Result<&'a str, ScenarioError> {
        self.as_str().ok_or_else(|| self.refuse(allowed, ""))
    }

    pub(super) fn as_str(&self) -> Option<&'a str> {
        self.value.get_ref().as_str()
    }

    pub(super) fn is_string(&self) -> bool {
        self.value.get_ref().is_str()
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(super) fn list(&self, allowed: &str) -> Result<Vec<Item<'a>>, ScenarioError> {
        self.as_list().ok_or_else(|| self.refuse(allowed, ""))
    }

    pub(super) fn as_list(&self) -> Option<Vec<Item<'a>>> {
        let item = |value| Item { source: self.source, value, key: self.key, title: self.title.clone() };
        Some(self.value.get_ref().as_array()?.iter().map(item).collect())
    }

    /// The value as a table; errors in its keys name `title`.
    pub(super) fn section(&self, title: &str) -> Result<Section<'a>, ScenarioError> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Section::new(self.source, table, self.value.span().start, title)),
            _ => Err(self.refuse("a table", "")),
        }
    }

    /// The value as a number or a text with a unit.
    pub(super) fn value<T: ParamValue>(&self) -> Result<T, ScenarioError> {
        let allowed = || T::allowed();
        let text = self.text(T::unit()).ok_or_else(|| self.refuse(&allowed(), ""))?;
        T::parse(&text).ok_or_else(|| self.refuse(&allowed(), &unit_hint(&text, T::unit())))
    }

    /// Sets a parameter to the value, as text.
    pub(super) fn set(
        &self,
        spec: &ParamSpec,
        set: impl FnOnce(&str) -> Result<(), ParamError>,
    ) -> Result<(), ScenarioError> {
        let Some(text) = self.text(spec.unit) else {
            let (words, range) = (words(spec.unit), &spec.allowed);
            let allowed = if range.contains("..=") { format!("{words}, {range}") } else { range.clone() };
            return Err(self.refuse(&allowed, ""));
        };
        set(&text).map_err(|error| {
            let hint = match spec.unit {
                Unit::Choice(words) | Unit::Kind(words) => hint(&text, words.iter().copied()),
                unit => unit_hint(&text, unit),
            };
            self.refuse(&error.allowed, &hint)
        })
    }

    /// The name of a kind, as it is written.
    pub(super) fn kind_name(&self) -> Option<&'a str> {
        match self.value.get_ref() {
            DeValue::Table(table) => table.get("kind")?.get_ref().as_str(),
            value => value.as_str(),
        }
    }

    /// Reads `"name"`, a queue in `tc`'s words, or `{ kind = "name", parameter = value, … }`.
    pub(super) fn kind<K: Registered>(&self) -> Result<K, ScenarioError> {
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
                item.set(spec, |text| kind.set(spec.name, text))?;
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
