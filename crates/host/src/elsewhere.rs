//! A host without Linux, or in a build without it: the types that a program needs to compile, and the error that Linux is missing.
use crate::HostError;

/// The source of the right to make namespaces. It exists on Linux only, so the type has no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {}

/// # Errors
/// Always: there are no network namespaces.
pub fn gain() -> Result<Privilege, HostError> {
    let message = if cfg!(target_os = "linux") {
        "this build only simulates; `cargo run --release --` builds the live world, too (the feature `host`)"
    } else {
        "the live world needs Linux: its network namespaces, its TUN devices and its TCP"
    };
    Err(HostError::NotAllowed(message.into()))
}
