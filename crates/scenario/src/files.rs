//! The files that a scenario names, beside its own: a link's trace, its losses, the distribution of its delays.
use crate::dist;
use crate::model::{Hop, RateSpec, TraceSource};
use crate::trace::{self, losses};
use narrows_core::Span;
use narrows_core::netem::{Loss, RecordedLosses};
use narrows_core::propagation::Distribution;

/// What a file contains.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FileContent<'a> {
    /// Delivery opportunities.
    Opportunities(&'a [Span]),
    /// Losses.
    Losses(&'a RecordedLosses),
    /// A table of delays.
    Delays(&'a [i16]),
}

impl FileContent<'_> {
    /// How the names of files with such a content end, where this project names them.
    pub const EXTENSIONS: [&'static str; 3] = [".mahi", ".loss", ".dist"];

    /// How the name of a file with this content ends.
    pub const fn extension(&self) -> &'static str {
        match self {
            FileContent::Opportunities(_) => Self::EXTENSIONS[0],
            FileContent::Losses(_) => Self::EXTENSIONS[1],
            FileContent::Delays(_) => Self::EXTENSIONS[2],
        }
    }

    /// The text that is read as the same content.
    pub fn text(&self) -> String {
        match self {
            FileContent::Opportunities(opportunities) => trace::write(opportunities),
            FileContent::Losses(losses) => losses::write(losses),
            FileContent::Delays(entries) => dist::write(entries),
        }
    }
}

impl Hop {
    /// Calls `visit` with the name of each file that the hop names, which it may change, and the file's content.
    pub fn each_file(&mut self, mut visit: impl FnMut(&mut String, FileContent<'_>)) {
        if let RateSpec::Trace { source: TraceSource::File(name), opportunities, .. } = &mut self.rate {
            visit(name, FileContent::Opportunities(opportunities));
        }
        if let Loss::Trace(trace) = &mut self.loss {
            visit(&mut trace.name, FileContent::Losses(&trace.losses));
        }
        if let Distribution::Table(table) = &mut self.distribution {
            visit(&mut table.name, FileContent::Delays(&table.entries));
        }
    }
}
