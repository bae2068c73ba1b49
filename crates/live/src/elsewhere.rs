//! The live world on systems other than Linux: the functions that start a run, so that programs compile. Each returns an error.
use crate::shell::{Monitor, Shell, ShellRun};
use crate::{LiveError, Options};
use narrows_host::Privilege;
use narrows_scenario::Scenario;
use narrows_world::{Run, Wanted, Watch};

/// # Errors
/// Always.
pub fn check(_: &Scenario) -> Result<(), LiveError> {
    Ok(narrows_host::gain().map(|never| match never {})?)
}

/// # Errors
/// Always.
pub fn sides(_: &Scenario) -> Result<[&'static str; 2], LiveError> {
    Ok(narrows_host::gain().map(|never| match never {})?)
}

/// # Errors
/// Always.
pub fn run(_: &Scenario, _: &Options, _: &Wanted, _: &mut dyn Watch) -> Result<Run, LiveError> {
    Ok(narrows_host::gain().map(|never| match never {})?)
}

/// # Errors
/// None: `Privilege` has no values, so nobody can call it.
pub fn shell(_: Shell, never: Privilege, _: &mut dyn Monitor) -> Result<ShellRun, LiveError> {
    match never {}
}
