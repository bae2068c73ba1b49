//! The lab where there is no Linux, or in a build without it: the type, so that a program that offers it compiles, and one answer.
use crate::kernels::Kernel;
use narrows_scenario::Scenario;
use narrows_world::{Memory, Run, Wanted, Watch, World, WorldError};
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
    let why = if cfg!(target_os = "linux") {
        "this build only simulates; `cargo run --release --` builds the kernel's world, too (the feature `host`)"
    } else {
        "the kernel's world needs Linux: the guest runs this same program"
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

    fn sides(&self, _: &Scenario) -> Result<[&'static str; 2], WorldError> {
        Err(refusal())
    }

    fn memory(&self, scenario: &Scenario, _: &Wanted) -> Memory {
        Memory::estimate(scenario, 0)
    }

    fn run(&self, _: &Scenario, _: &Wanted, _: &mut dyn Watch) -> Result<Run, WorldError> {
        Err(refusal())
    }
}
