//! The live world where there is no Linux: its types, so that a program that offers it compiles, and one answer.

/// Scenarios in real time.
pub mod run {
    use crate::{LiveError, Options};
    use narrows_results::RunResult;
    use narrows_scenario::Scenario;
    use narrows_world::Watch;

    /// # Errors
    /// Always.
    pub fn check(_: &Scenario) -> Result<(), LiveError> {
        Ok(narrows_host::gain().map(|never| match never {})?)
    }

    /// # Errors
    /// Always.
    pub fn run(_: &Scenario, _: &Options, _: &mut dyn Watch) -> Result<RunResult, LiveError> {
        Ok(narrows_host::gain().map(|never| match never {})?)
    }
}

/// Commands behind a bottleneck.
pub mod shell {
    use crate::LiveError;
    pub use crate::launch::{Ended, Monitor, Shell, Wish};
    use narrows_host::Privilege;

    /// # Errors
    /// None: nobody can call it.
    pub fn shell(_: Shell, never: Privilege, _: &mut dyn Monitor) -> Result<Ended, LiveError> {
        match never {}
    }
}
