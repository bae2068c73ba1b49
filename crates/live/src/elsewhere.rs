//! The live world where there is no Linux: its types, so that a program that offers it compiles, and one answer.

/// Getting the right to run.
pub mod sandbox {
    use crate::LiveError;

    /// Where the right comes from: nowhere.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Privilege {}

    /// # Errors
    /// Always: there are no network namespaces.
    pub fn gain() -> Result<Privilege, LiveError> {
        let message = "the live world needs Linux: its network namespaces, its TUN devices and its TCP";
        Err(LiveError::NotAllowed(message.into()))
    }
}

/// Scenarios in real time.
pub mod run {
    use crate::{LiveError, Options, sandbox};
    use narrows_results::RunResult;
    use narrows_scenario::Scenario;
    use narrows_world::Watch;

    /// # Errors
    /// Always.
    pub fn check(_: &Scenario) -> Result<(), LiveError> {
        sandbox::gain().map(|never| match never {})
    }

    /// # Errors
    /// Always.
    pub fn run(_: &Scenario, _: &Options, _: &mut dyn Watch) -> Result<RunResult, LiveError> {
        sandbox::gain().map(|never| match never {})
    }
}

/// Commands behind a bottleneck.
pub mod shell {
    use crate::LiveError;
    pub use crate::launch::{Ended, Onlooker, Shell, Wish};
    use crate::sandbox::Privilege;

    /// # Errors
    /// None: nobody can call it.
    pub fn shell(_: Shell, never: Privilege, _: &mut dyn Onlooker) -> Result<Ended, LiveError> {
        match never {}
    }
}
