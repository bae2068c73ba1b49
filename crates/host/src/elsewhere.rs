//! A host on a system other than Linux: the types that a program needs to compile, and one answer.
use crate::HostError;

/// Where the right to make namespaces comes from: nowhere, so there is no value of this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {}

/// # Errors
/// Always: there are no network namespaces.
pub fn gain() -> Result<Privilege, HostError> {
    let message = "the live world needs Linux: its network namespaces, its TUN devices and its TCP";
    Err(HostError::NotAllowed(message.into()))
}
