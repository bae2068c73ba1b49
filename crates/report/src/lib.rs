//! Tables, figures, one self-contained page and differences, from result folders alone.
//!
//! A [`Comparison`] holds groups (a queue, a configuration) of runs (one per seed). Everything else reads it: [`terminal`]
//! for the terminal, [`svg`] for papers, [`page`] for browsers, [`diff`] for two results against each other.
pub mod aggregate;
pub mod comparison;
pub mod estimate;
pub mod figure;
pub mod page;
pub mod palette;
pub mod svg;
pub mod table;
pub mod terminal;
pub mod thin;

pub use comparison::{Comparison, Group, Run};
pub use estimate::Estimate;
pub use table::Table;
