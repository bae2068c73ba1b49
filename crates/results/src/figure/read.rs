//! Reading a figure from a summary by the same path that names it.
use super::{Among, Better, Class, Figure, Owner, Placement, Read, Section, Together, When};
use crate::summary::{
    Application, Completion, Cost, Drops, Fairness, Messages, Quantiles, RttQuantiles, Timing, Verdicts, Video, Voice,
};
use std::collections::BTreeMap;

/// The statistic of a distribution whose statistics have names of their own.
pub(super) const ANY: &str = "REASON";

/// A step of a path, through an `Option` or not.
pub(super) trait Field {
    type Inner;
    fn known(&self) -> Option<&Self::Inner>;
}

impl<T> Field for Option<T> {
    type Inner = T;
    fn known(&self) -> Option<&T> {
        self.as_ref()
    }
}

macro_rules! fields {
    ($($of:ty),* $(,)?) => {
        $(impl Field for $of {
            type Inner = $of;
            fn known(&self) -> Option<&$of> {
                Some(self)
            }
        })*
    };
}

fields!(f64, u64, Quantiles, RttQuantiles, Completion, Drops, Application, Messages, Voice, Video, Verdicts);
fields!(Fairness, Timing, Cost, BTreeMap<String, u64>);

/// The end of a path: a number, or a distribution.
pub(super) trait FieldValue {
    const STATISTICS: &'static [&'static str] = &[];
    fn statistic(&self, which: &str) -> Option<f64>;
}

impl FieldValue for f64 {
    fn statistic(&self, which: &str) -> Option<f64> {
        which.is_empty().then_some(*self)
    }
}

impl FieldValue for u64 {
    fn statistic(&self, which: &str) -> Option<f64> {
        which.is_empty().then_some(*self as f64)
    }
}

impl FieldValue for BTreeMap<String, u64> {
    const STATISTICS: &'static [&'static str] = &[ANY];
    fn statistic(&self, which: &str) -> Option<f64> {
        self.get(which).map(|count| *count as f64)
    }
}

macro_rules! distributions {
    ($($of:ty: $($which:ident),*;)*) => {
        $(impl FieldValue for $of {
            const STATISTICS: &'static [&'static str] = &[$(stringify!($which)),*];
            fn statistic(&self, which: &str) -> Option<f64> {
                match which {
                    $(stringify!($which) => FieldValue::statistic(&self.$which, ""),)*
                    _ => None,
                }
            }
        })*
    };
}

distributions! {
    Quantiles: mean, p50, p95, p99, max;
    RttQuantiles: min, mean, p50, p95, p99;
    Completion: mean, p50, p95, p99, max;
}

/// The statistics of the field that a function reads.
pub(super) const fn statistics<I, T: FieldValue>(_: fn(&I) -> Option<&T>) -> &'static [&'static str] {
    T::STATISTICS
}

/// A figure at a path of its owner: `figure!(Flow, FlowSummary: application.voice.mos, "voice MOS", Score, More, "…")`.
macro_rules! figure {
    ($of:ident, $item:ty: $first:ident $(. $rest:ident)*, $title:literal, $class:ident, $better:ident, $sentence:literal) => {
        $crate::figure::Figure::new(
            ($crate::figure::Owner::$of, concat!(stringify!($first) $(, ".", stringify!($rest))*)),
            $crate::figure::read::statistics(|item: &$item| {
                let field = $crate::figure::read::Field::known(&item.$first);
                $(let field = field.and_then(|field| $crate::figure::read::Field::known(&field.$rest));)*
                field
            }),
            ($title, $crate::figure::Class::$class, $crate::figure::Better::$better, $sentence),
            $crate::figure::Read::$of(|item: &$item, which: &str| {
                let field = $crate::figure::read::Field::known(&item.$first);
                $(let field = field.and_then(|field| $crate::figure::read::Field::known(&field.$rest));)*
                $crate::figure::read::FieldValue::statistic(field?, which)
            }),
        )
    };
}
pub(super) use figure;

impl Figure {
    pub(super) const fn new(
        (of, path): (Owner, &'static str),
        statistics: &'static [&'static str],
        (title, class, better, sentence): (&'static str, Class, Better, &'static str),
        read: Read,
    ) -> Figure {
        Figure {
            of,
            path,
            statistics,
            title,
            class,
            better,
            sentence,
            together: Together::Mean,
            among: Among::All,
            section: None,
            columns: &[],
            chart: None,
            read,
        }
    }

    /// A group's is the sum over its flows.
    pub(super) const fn sum(self) -> Figure {
        Figure { together: Together::Sum, ..self }
    }

    /// A table shows the worst flow's value.
    pub(super) const fn worst(self) -> Figure {
        Figure { together: Together::Worst, ..self }
    }

    /// Tables take it of these flows.
    pub(super) const fn among(self, among: Among) -> Figure {
        Figure { among, ..self }
    }

    /// Tables show it.
    pub(super) const fn table(self, section: Section, columns: &'static [Placement]) -> Figure {
        Figure { section: Some(section), columns, ..self }
    }

    /// Charts show it.
    pub(super) const fn chart(self, place: usize, title: &'static str) -> Figure {
        Figure { chart: Some((place, title)), ..self }
    }
}

/// The column of a figure that is one number.
pub(super) const fn one(when: When) -> Placement {
    stat("", when)
}

/// The column of a statistic.
pub(super) const fn stat(which: &'static str, when: When) -> Placement {
    Placement { which, when, spare: None, beside: false }
}

impl Placement {
    /// A narrow table does without it.
    pub(super) const fn spare(self, rank: u8) -> Placement {
        Placement { spare: Some(rank), ..self }
    }

    /// The table of flow groups side by side has it.
    pub(super) const fn beside(self) -> Placement {
        Placement { beside: true, ..self }
    }
}
