//! The keys of scenario files, each declared once: its name, a sentence, its default, its role in a comparison, and the form of its values.
//!
//! `keys!` declares a table of the file, such as `[[hop]]`, together with its struct: a key is a field of it. The parser, the writer,
//! the checks of single values, the JSON schema, `--set`, `narrows list`, `narrows diff` and the book's tables go through
//! [`Table::KEYS`]. Nothing else lists keys. Rules between keys are in [`Rules`] and in `check`.
use crate::check::Fault;
use crate::classes::Class;
use crate::error::ScenarioError;
use crate::expect::Expectation;
use crate::forms::Form;
use crate::model::{Flow, Hop, Record, Scenario};
use crate::parse::{Context, Section};
use crate::schema;
use serde_json::{Map, Value, json};

/// What it means for a comparison of two runs that they differ in a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Nothing: names, seeds, what is recorded.
    Label,
    /// The runs were made under different conditions.
    Condition,
    /// As `Condition`, but for a shell, whose command decides how long it lasts.
    Length,
    /// That is what is compared: queue, controller, transport.
    Algorithm,
}

/// What holds when a file leaves a key out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absent {
    /// Its default.
    Default,
    /// An error.
    Needed,
    /// A default that depends on other keys, in words.
    Words(&'static str),
}

/// A key, described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySpec {
    /// Its name in the file.
    pub name: &'static str,
    /// What it means, in Markdown, with links to pages of the book.
    pub doc: &'static str,
    /// The kind of its value in a word: `time`.
    pub unit: &'static str,
    /// What holds without it.
    pub absent: Absent,
    /// Its default in TOML; empty if it has none.
    pub default: String,
    /// What is allowed.
    pub allowed: String,
    /// The words that it chooses from, or the names of kinds with parameters.
    pub choices: Option<&'static [&'static str]>,
    /// Whether it is a table, or an array of tables.
    pub is_table: bool,
    /// What it means for a comparison.
    pub role: Role,
}

impl KeySpec {
    /// What it means, in one line without markup, and its default if that depends on other keys.
    pub fn sentence(&self) -> String {
        let doc = schema::plain_text(self.doc);
        if let Absent::Words(words) = self.absent { format!("{doc} Default: {words}.") } else { doc }
    }

    /// Its default in a few words.
    pub fn when_absent(&self) -> &str {
        match self.absent {
            Absent::Default if self.default.is_empty() => "none",
            Absent::Default => &self.default,
            Absent::Needed => "needed",
            Absent::Words(_) => "depends",
        }
    }
}

/// A table of scenario files, described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSpec {
    /// Its name: `hop`.
    pub name: &'static str,
    /// What it stands for.
    pub doc: &'static str,
    /// Its keys, in the order in which they are written.
    pub keys: Vec<KeySpec>,
}

/// Every table of scenario files; the top of the file is the first.
pub fn tables() -> Vec<TableSpec> {
    vec![spec::<Scenario>(), spec::<Record>(), spec::<Hop>(), spec::<Class>(), spec::<Flow>(), spec::<Expectation>()]
}

fn spec<T: Table>() -> TableSpec {
    TableSpec { name: T::NAME, doc: T::DOC.trim(), keys: T::KEYS.iter().map(|key| key.spec()).collect() }
}

/// The names of a table's keys.
pub(crate) fn names<T: Table>() -> Vec<&'static str> {
    T::KEYS.iter().map(|key| key.about().name).collect()
}

/// The names of a table's keys that are no tables themselves.
pub(crate) fn plain_names<T: Table>() -> Vec<&'static str> {
    T::KEYS.iter().map(|key| key.spec()).filter(|spec| !spec.is_table).map(|spec| spec.name).collect()
}

/// A key whose values in two runs differ, with both in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The key.
    pub key: &'static str,
    /// What it means that they differ.
    pub role: Role,
    /// The two values.
    pub values: [String; 2],
}

pub(crate) fn differences<T: Table>(tables: [&T; 2], of: [&Scenario; 2]) -> Vec<Difference> {
    let differs = |key: &&&'static dyn Key<T>| !key.is_same(tables, of);
    let said = |key: &&'static dyn Key<T>| Difference {
        key: key.about().name,
        role: key.about().role,
        values: [0, 1].map(|side| key.shown(tables[side], of[side])),
    };
    T::KEYS.iter().filter(differs).map(said).collect()
}

/// A table of the file. Implemented by `keys!`.
pub(crate) trait Table: Rules + 'static {
    /// Its name: `hop`.
    const NAME: &'static str;
    /// Its name in messages: `[[hop]]`.
    const TITLE: &'static str;
    /// What it stands for.
    const DOC: &'static str;
    /// Its keys, in the order in which they are written.
    const KEYS: &'static [&'static dyn Key<Self>];
    /// One with the defaults, and with placeholders for what is needed.
    fn blank() -> Self;
}

/// What the keys of a table have to do with each other.
pub(crate) trait Rules: Sized {
    /// Sets the defaults that depend on other keys, and refuses keys that exclude each other.
    fn settle(&mut self, _section: &Section<'_>, _cx: &Context<'_>) -> Result<(), ScenarioError> {
        Ok(())
    }

    /// Whether this key is left out of a file, because others imply its value.
    fn omits(&self, _key: &str) -> bool {
        false
    }

    /// Notes what tables that follow need of these, and checks that.
    fn note(_all: &[Self], _cx: &Context<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// What is declared about every key.
#[derive(Clone, Copy)]
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) absent: Absent,
    pub(crate) role: Role,
}

/// A key of a table `T` whose value has the type `V` and the form `F`.
pub(crate) struct Field<T: 'static, V: 'static, F> {
    pub(crate) about: About,
    pub(crate) get: fn(&T) -> &V,
    pub(crate) set: fn(&mut T, V),
    pub(crate) form: F,
}

/// A key of a table `T`, whatever its value's type.
pub(crate) trait Key<T> {
    fn about(&self) -> &About;
    fn spec(&self) -> KeySpec;
    fn read(&self, table: &mut T, section: &Section<'_>, cx: &Context<'_>) -> Result<(), ScenarioError>;
    fn check(&self, table: &T) -> Result<(), String>;
    fn write(&self, out: &mut String, table: &T, of: &Scenario);
    fn shown(&self, table: &T, of: &Scenario) -> String;
    fn is_same(&self, tables: [&T; 2], of: [&Scenario; 2]) -> bool;
    fn schema(&self) -> Value;
}

impl<T: Table, V, F: Form<V>> Key<T> for Field<T, V, F> {
    fn about(&self) -> &About {
        &self.about
    }

    fn spec(&self) -> KeySpec {
        let (About { name, doc, absent, role }, form) = (self.about, self.form.spec());
        KeySpec {
            name,
            doc: doc.trim(),
            unit: form.unit,
            absent,
            default: match absent {
                Absent::Default => self.form.toml((self.get)(&T::blank()), &Scenario::blank()).unwrap_or_default(),
                Absent::Needed | Absent::Words(_) => String::new(),
            },
            allowed: form.range.unwrap_or(form.allowed),
            choices: form.choices,
            is_table: form.is_table,
            role,
        }
    }

    fn read(&self, table: &mut T, section: &Section<'_>, cx: &Context<'_>) -> Result<(), ScenarioError> {
        match section.item(self.about.name) {
            Some(item) => (self.set)(table, self.form.read(&item, cx)?),
            None if self.about.absent == Absent::Needed => {
                return Err(self.form.missing(section, self.about.name));
            }
            None => {}
        }
        Ok(())
    }

    fn check(&self, table: &T) -> Result<(), String> {
        self.form.check(self.about.name, (self.get)(table))
    }

    fn write(&self, out: &mut String, table: &T, of: &Scenario) {
        self.form.write(out, self.about.name, (self.get)(table), of);
    }

    fn shown(&self, table: &T, of: &Scenario) -> String {
        self.form.shown((self.get)(table), of)
    }

    fn is_same(&self, tables: [&T; 2], of: [&Scenario; 2]) -> bool {
        self.form.is_same(tables.map(self.get), of)
    }

    fn schema(&self) -> Value {
        let spec = self.spec();
        let range = self.form.spec().range.map_or_else(String::new, |range| format!(" Allowed: {range}."));
        let doc = spec.sentence() + &range;
        let mut schema = schema::described(&doc, self.form.schema());
        if !spec.default.is_empty() {
            // Texts, numbers and empty lists are the same in TOML and JSON.
            schema["default"] = serde_json::from_str(&spec.default).unwrap_or(json!(spec.default));
        }
        schema
    }
}

/// A table in the JSON schema.
pub(crate) fn object<T: Table>() -> Map<String, Value> {
    let properties = T::KEYS.iter().map(|key| (key.about().name.to_owned(), key.schema())).collect();
    let needed: Vec<&str> =
        T::KEYS.iter().map(|key| key.about()).filter(|about| about.absent == Absent::Needed).map(|a| a.name).collect();
    schema::object(properties, &needed)
}

/// Declares a table and its struct.
///
/// ```ignore
/// keys! {
///     /// What the table stands for.
///     pub struct Hop, "hop", "[[hop]]" {
///         /// What the key means.
///         pub name: Type = default, Role, form;
///         /// A key that a file must have; its default is a placeholder.
///         pub name: Type [needed] = placeholder, Role, form;
///         /// A key whose default depends on others, which `Rules::settle` sets.
///         pub name: Type ["the default, in words"] = placeholder, Role, form;
///     }
/// }
/// ```
///
/// `field as "key"` names a key unlike its field.
macro_rules! keys {
    (
        $(#[doc = $about:literal])+
        pub struct $Name:ident, $table:literal, $title:literal {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident $(as $key:literal)? : $Type:ty $([$absent:tt])? = $default:expr, $role:ident, $form:expr;
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, PartialEq, Debug)]
        pub struct $Name {
            $( $(#[doc = $doc])+ pub $field: $Type, )*
        }

        impl $crate::keys::Table for $Name {
            const NAME: &'static str = $table;
            const TITLE: &'static str = $title;
            const DOC: &'static str = concat!($($about),+);
            const KEYS: &'static [&'static dyn $crate::keys::Key<$Name>] = &[
                $( &$crate::keys::Field::<$Name, $Type, _> {
                    about: $crate::keys::About {
                        name: $crate::keys::keys!(@name $field $($key)?),
                        doc: concat!($($doc, "\n"),+),
                        absent: $crate::keys::keys!(@absent $($absent)?),
                        role: $crate::keys::Role::$role,
                    },
                    get: |table| &table.$field,
                    set: |table, value| table.$field = value,
                    form: $form,
                }, )*
            ];

            fn blank() -> $Name {
                $Name { $( $field: $default, )* }
            }
        }

        impl $Name {
            /// The keys in which two tables differ; each belongs to a scenario of its own.
            pub fn differences(tables: [&$Name; 2], of: [&$crate::Scenario; 2]) -> Vec<$crate::keys::Difference> {
                $crate::keys::differences(tables, of)
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:literal) => { $key };
    (@absent) => { $crate::keys::Absent::Default };
    (@absent needed) => { $crate::keys::Absent::Needed };
    (@absent $words:literal) => { $crate::keys::Absent::Words($words) };
}
pub(crate) use keys;
