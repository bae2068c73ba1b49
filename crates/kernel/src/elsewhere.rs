//! The lab where there is no Linux, or in a build without it: the type, so that a program that offers it compiles, and one answer.
use crate::kernels::Kernel;
use narrows_results::RunResult;
use narrows_results::packets::{Capture, FrameLog};
use narrows_scenario::Scenario;
use narrows_world::{Memory, Watch, World, WorldError};
use std::path::PathBuf;

/// The kernel's world, which needs Linux.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The guest's kernel.
    pub kernel: Kernel,
    /// The program that becomes the guest's `init`.
    pub program: PathBuf,
    /// How the guest's time passes.
    pub pace: crate::Pace,
}

/// Whether this program can have a guest.
///
/// # Errors
/// Always.
pub fn usable() -> Result<(), WorldError> {
    Err(refusal())
}

fn refusal() -> WorldError {
    let why = match cfg!(target_os = "linux") {
        true => {
            "this build only simulates; `cargo run --release --` builds the kernel's world, too (the feature `host`)"
        }
        false => "the kernel's world needs Linux: the guest runs this same program",
    };
    WorldError::Refused(why.into())
}

impl World for Lab {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn threads(&self) -> usize {
        1
    }

    fn check(&self, _: &Scenario) -> Result<(), WorldError> {
        Err(refusal())
    }

    fn memory(&self, scenario: &Scenario) -> Memory {
        Memory::estimate(scenario, 0)
    }

    fn run(&self, _: &Scenario, _: usize, _: &mut dyn Watch) -> Result<RunResult, WorldError> {
        Err(refusal())
    }
}

/// The kernel's world with a record of its packets, which needs Linux.
#[derive(Debug)]
pub struct Recording(Lab);

impl Recording {
    /// For these packets.
    pub fn new(lab: Lab, _: Capture) -> Recording {
        Recording(lab)
    }

    /// # Errors
    /// Always.
    pub fn sides(&self, _: &Scenario) -> Result<[&'static str; 2], WorldError> {
        Err(refusal())
    }

    /// None.
    pub fn take(&self) -> Option<FrameLog> {
        None
    }
}

impl World for Recording {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn threads(&self) -> usize {
        self.0.threads()
    }

    fn check(&self, scenario: &Scenario) -> Result<(), WorldError> {
        self.0.check(scenario)
    }

    fn memory(&self, scenario: &Scenario) -> Memory {
        self.0.memory(scenario)
    }

    fn run(&self, scenario: &Scenario, threads: usize, watch: &mut dyn Watch) -> Result<RunResult, WorldError> {
        self.0.run(scenario, threads, watch)
    }
}
