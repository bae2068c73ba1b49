//! Entries that a program adds to a registry: trait objects with parameters of their own.
//!
//! A program adds them by [`Extensions`](crate::extensions::Extensions), most often once, before it does anything else. The tables are
//! static, so that names in scenario files mean the same in every thread, and an entry that has been found stays what it is. A call through an object costs more than a call of a built-in
//! entry; the bench rows `open_fifo` and `open_fq_codel` measure it.
use super::{DynParams, Entry, Registered};
use crate::hint::LinkHint;
use alloc::boxed::Box;
use alloc::vec::Vec;
use once_cell::race::OnceBox;

/// The types around a registry's entries.
pub trait Open: Sized + 'static {
    /// The constructor's argument.
    type Args;
    /// The result of the constructor.
    type Built;
    /// The constants of the entry's type, and properties that follow from its parameters alone.
    type Traits;
    /// The entries that the program has added.
    fn table() -> &'static Table<Self>;
}

/// An added type with its parameters, from which an instance can be built.
pub trait Blueprint<F: Open>: Send + Sync {
    /// The parameters.
    fn params(&self) -> &dyn DynParams;
    /// The parameters, to change.
    fn params_mut(&mut self) -> &mut dyn DynParams;
    /// Its constants.
    fn traits(&self) -> F::Traits;
    /// Makes one.
    fn build(&self, args: F::Args) -> F::Built;
    /// A copy with its parameters as numbers for a link.
    fn resolved(&self, _link: &LinkHint) -> Box<dyn Blueprint<F>> {
        self.copy()
    }
    /// A copy with the same parameters.
    fn copy(&self) -> Box<dyn Blueprint<F>>;
}

/// The parameters of an added type `T`.
pub(crate) struct Of<T, P> {
    pub(crate) params: P,
    pub(crate) of: core::marker::PhantomData<fn() -> T>,
}

impl<T, P: Default> Default for Of<T, P> {
    fn default() -> Of<T, P> {
        Of { params: P::default(), of: core::marker::PhantomData }
    }
}

/// A choice of an added entry, with its parameters.
pub struct Custom<F: Open> {
    name: &'static str,
    summary: &'static str,
    blueprint: Box<dyn Blueprint<F>>,
}

impl<F: Open> Custom<F> {
    /// An entry with a blueprint of its own. For a Rust type that implements the registry's trait,
    /// [`Extensions`](crate::extensions::Extensions) makes it.
    pub fn new(name: &'static str, summary: &'static str, blueprint: impl Blueprint<F> + 'static) -> Custom<F> {
        Custom { name, summary, blueprint: Box::new(blueprint) }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its parameters.
    pub fn params(&self) -> &dyn DynParams {
        self.blueprint.params()
    }

    /// Its parameters, to change.
    pub fn params_mut(&mut self) -> &mut dyn DynParams {
        self.blueprint.params_mut()
    }

    /// The constants of its type.
    pub fn traits(&self) -> F::Traits {
        self.blueprint.traits()
    }

    /// Makes one.
    pub fn build(&self, args: F::Args) -> F::Built {
        self.blueprint.build(args)
    }
}

impl<F: Open> Custom<F> {
    /// A copy with its parameters as numbers for a link.
    pub(crate) fn resolved(&self, link: &LinkHint) -> Custom<F> {
        Custom { blueprint: self.blueprint.resolved(link), ..*self }
    }
}

impl<F: Open> Clone for Custom<F> {
    fn clone(&self) -> Custom<F> {
        Custom { blueprint: self.blueprint.copy(), ..*self }
    }
}

/// The same name, and the same text for every parameter.
impl<F: Open> PartialEq for Custom<F> {
    fn eq(&self, other: &Custom<F>) -> bool {
        let (one, two) = (self.params(), other.params());
        self.name == other.name && one.specs().iter().all(|spec| one.get(spec.name) == two.get(spec.name))
    }
}

impl<F: Open> core::fmt::Debug for Custom<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut shown = f.debug_struct(self.name);
        for spec in self.params().specs() {
            shown.field(spec.name, &self.params().get(spec.name));
        }
        shown.finish()
    }
}

/// Opens a registry: its trait as an object, and entries of any type that implements the trait.
///
/// Lists the trait's methods, with the type of `self`; then how the constants of a type follow from its parameters, how one is built, and
/// what its parameters become for a link.
macro_rules! open_registry {
    (
        $Registry:ident, $Config:ident, $Object:ident for $Trait:ident as $T:ident {
            $( fn $method:ident($self:ident: $Self:ty $(, $arg:ident: $Arg:ty)*) $(-> $Ret:ty)?; )*
        }
        traits |$t_params:ident| -> $Traits:ty { $traits:expr }
        build |$b_params:ident, $( $given:ident: $Given:ty ),*| -> $Built:ty { $build:expr }
        resolved |$r_params:ident, $link:ident| { $resolved:expr }
    ) => {
        #[doc = concat!("[`", stringify!($Trait), "`] as an object; every type that implements it is one.")]
        pub trait $Object: Send {
            $(
                #[doc = concat!("See [`", stringify!($Trait), "::", stringify!($method), "`].")]
                fn $method($self: $Self $(, $arg: $Arg)*) $(-> $Ret)?;
            )*
        }

        impl<$T: $Trait + Send> $Object for $T {
            $(
                fn $method($self: $Self $(, $arg: $Arg)*) $(-> $Ret)? {
                    <$T as $Trait>::$method($self $(, $arg)*)
                }
            )*
        }

        /// The registry, open.
        #[derive(Debug)]
        pub struct $Registry;

        static TABLE: $crate::registry::open::Table<$Registry> = $crate::registry::open::Table::new();

        impl $crate::registry::open::Open for $Registry {
            type Args = ($($Given),*);
            type Built = $Built;
            type Traits = $Traits;
            fn table() -> &'static $crate::registry::open::Table<$Registry> {
                &TABLE
            }
        }

        impl<$T> $crate::registry::open::Blueprint<$Registry> for $crate::registry::open::Of<$T, $T::Params>
        where
            $T: $Trait<Params: Send + Sync> + Send + 'static,
        {
            fn params(&self) -> &dyn $crate::registry::DynParams {
                &self.params
            }
            fn params_mut(&mut self) -> &mut dyn $crate::registry::DynParams {
                &mut self.params
            }
            fn traits(&self) -> $Traits {
                let $t_params = &self.params;
                $traits
            }
            fn build(&self, ($($given),*): ($($Given),*)) -> $Built {
                let $b_params = &self.params;
                $build
            }
            fn resolved(&self, $link: &$crate::hint::LinkHint) -> Box<dyn $crate::registry::open::Blueprint<$Registry>> {
                let $r_params = &self.params;
                Box::new($crate::registry::open::Of { params: $resolved, of: self.of })
            }
            fn copy(&self) -> Box<dyn $crate::registry::open::Blueprint<$Registry>> {
                Box::new($crate::registry::open::Of { params: self.params.clone(), of: self.of })
            }
        }

        impl $Config {
            /// An entry from outside, with its default parameters, registered or not.
            pub fn custom<$T>(name: &'static str, summary: &'static str) -> $Config
            where
                $T: $Trait<Params: Send + Sync> + Send + 'static,
            {
                let blueprint = $crate::registry::open::Of::<$T, $T::Params>::default();
                $Config::Custom($crate::registry::open::Custom::new(name, summary, blueprint))
            }
        }
    };
}
pub(crate) use open_registry;

/// The entries that a program has added to a registry.
pub struct Table<F: Open>(OnceBox<Added<F>>);

/// All entries added so far. A later addition is a new list behind this one, because readers may still hold this one's names.
struct Added<F: Open> {
    entries: Vec<Custom<F>>,
    /// The built-in names, followed by these.
    names: Vec<&'static str>,
    later: OnceBox<Added<F>>,
}

impl<F: Open> Added<F> {
    fn new<R: Registered>(entries: Vec<Custom<F>>) -> Box<Added<F>> {
        let names = R::NAMES.iter().copied().chain(entries.iter().map(|entry| entry.name)).collect();
        Box::new(Added { entries, names, later: OnceBox::new() })
    }
}

impl<F: Open> Table<F> {
    pub(crate) const fn new() -> Table<F> {
        Table(OnceBox::new())
    }

    /// Adds entries to the registry `R`; `false` if that has been done before.
    pub(crate) fn install<R: Registered>(&self, entries: Vec<Custom<F>>) -> bool {
        self.0.set(Added::new::<R>(entries)).is_ok()
    }

    /// Adds entries to the registry `R`, whatever has been added before. One of the same name is replaced.
    pub(crate) fn add<R: Registered>(&self, entries: &[Custom<F>]) {
        loop {
            let kept = self.entries().filter(|known| entries.iter().all(|entry| entry.name != known.name));
            let all = kept.chain(entries).cloned().collect();
            let end = self.last().map_or(&self.0, |last| &last.later);
            // Fails if another thread was quicker; then once more, with its entries.
            if end.set(Added::new::<R>(all)).is_ok() {
                return;
            }
        }
    }

    fn last(&self) -> Option<&Added<F>> {
        let first = self.0.get()?;
        core::iter::successors(Some(first), |added| added.later.get()).last()
    }

    fn entries(&self) -> impl Iterator<Item = &Custom<F>> {
        self.last().into_iter().flat_map(|added| &added.entries)
    }

    #[doc(hidden)]
    pub fn names(&'static self) -> Option<&'static [&'static str]> {
        self.last().map(|added| &*added.names)
    }

    #[doc(hidden)]
    pub fn described(&self) -> impl Iterator<Item = Entry> {
        let describe = |c: &Custom<F>| Entry { name: c.name, summary: c.summary, params: c.params().specs() };
        self.entries().map(describe)
    }

    #[doc(hidden)]
    pub fn named(&self, name: &str) -> Option<Custom<F>> {
        self.entries().find(|entry| entry.name == name).cloned()
    }
}
