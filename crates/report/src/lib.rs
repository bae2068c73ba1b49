//! Tables, figures, one self-contained page and differences, from results in memory or in folders.
//!
//! A [`Comparison`] holds groups (a queue, a configuration) of runs (one per seed). It is made from new runs ([`Comparison::of`]) or
//! read from a folder ([`Comparison::load`]), with the same result. Everything else reads it: [`terminal`] for the command line,
//! [`svg`] for papers, [`page`] for browsers, [`mod@diff`] to compare two results.
//!
//! ```no_run
//! use narrows_report::{Comparison, terminal, write_page};
//! use std::path::Path;
//!
//! let folder = Path::new("narrows-out/latest");
//! let comparison = Comparison::load(folder)?;
//! print!("{}", terminal::comparison(&comparison, &terminal::Style::default()));
//! write_page(&comparison, folder)?;
//! # Ok::<(), narrows_results::ResultError>(())
//! ```
pub mod aggregate;
pub mod chart;
pub mod comparison;
pub mod conditions;
pub mod diff;
pub mod draw;
pub mod estimate;
pub mod events;
pub mod heat;
pub mod markup;
pub mod notes;
pub mod page;
pub mod palette;
pub mod plot;
pub mod proportion;
pub mod quantity;
pub mod scatter;
pub mod scope;
pub mod sheet;
pub mod spread;
mod store;
pub mod svg;
pub mod table;
pub mod table_plot;
pub mod terminal;
pub mod thin;
mod vector;

pub use comparison::{Comparison, Group, Run};
pub use conditions::Contrast;
pub use diff::{Diff, Significance, diff};
pub use estimate::{Estimate, Quartiles};
pub use events::Events;
pub use notes::{Note, notes};
pub use proportion::Proportion;
pub use store::{FIGURES, PAGE, is_page, write_page};
pub use table::Table;
