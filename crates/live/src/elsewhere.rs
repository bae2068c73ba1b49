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
    use narrows_scenario::{RunResult, Scenario};
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
    use crate::launch::{Launch, Status, Wish};
    use crate::sandbox::Privilege;
    use crate::view::View;
    use narrows_core::Time;
    use narrows_scenario::{RunResult, Scenario};

    /// What to run, and behind what.
    #[derive(Debug)]
    pub struct Shell {
        /// Two hops.
        pub scenario: Scenario,
        /// Longest packet, bytes.
        pub mtu: u32,
        /// The command.
        pub launch: Launch,
        /// A program at the outer end.
        pub companion: Option<Launch>,
    }

    /// Sees what happens while a command runs.
    pub trait Onlooker {
        /// What is wanted of the command.
        fn look(&mut self, now: Time, views: [View; 2]) -> Wish;
    }

    /// What remains of a command.
    #[derive(Debug)]
    pub struct Ended {
        /// How it ended.
        pub status: Status,
        /// What ran.
        pub scenario: Scenario,
        /// What was measured.
        pub result: RunResult,
    }

    /// # Errors
    /// None: nobody can call it.
    pub fn shell(_: Shell, never: Privilege, _: &mut dyn Onlooker) -> Result<Ended, LiveError> {
        match never {}
    }
}
