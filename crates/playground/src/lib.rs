//! The simulator behind a page: what the browser's playground and `narrows play` have in common.
//!
//! An [`Engine`] answers requests in JSON. In the browser it is WebAssembly in a worker, and `narrows play` has it behind HTTP on
//! loopback; the page, the protocol and all figures are the same.
mod budget;
mod catalogue;
mod edit;
mod engine;
mod frame;
mod outline;
pub mod page;
mod protocol;
mod scenes;
#[cfg(target_family = "wasm")]
mod wasm;

pub use budget::Limits;
pub use engine::Engine;
pub use scenes::{SCENES, Scene};
