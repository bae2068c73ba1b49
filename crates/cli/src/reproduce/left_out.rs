//! Cells that a world cannot run, with the reasons.
use crate::failure::Failure;
use narrows_scenario::Scenario;
use narrows_world::{World, WorldError};

/// Reasons, each with the first cell that has it and the number of cells that have it.
#[derive(Default)]
pub(super) struct LeftOut(Vec<(String, String, usize)>);

impl LeftOut {
    /// Whether the world can run a cell's scenario. If not, the cell is left out with the world's reason.
    pub(super) fn can_run(&mut self, world: &dyn World, scenario: &Scenario, cell: &str) -> Result<bool, Failure> {
        match world.check(scenario) {
            Ok(()) => return Ok(true),
            Err(WorldError::Refused(reason)) => match self.0.iter_mut().find(|known| known.0 == reason) {
                Some(known) => known.2 += 1,
                None => self.0.push((reason, cell.to_owned(), 1)),
            },
            Err(error) => return Err(error.into()),
        }
        Ok(false)
    }

    /// A line for each reason.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |(reason, cell, count): &(String, String, usize)| match count {
            1 => format!("{cell}: {reason}"),
            _ => format!("{cell} and {} more: {reason}", count - 1),
        };
        self.0.iter().map(line).collect()
    }
}
