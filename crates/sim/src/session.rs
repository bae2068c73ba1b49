//! A run that its caller advances step by step, and reads nothing of at its end: for environments in which a learner acts between two
//! steps. What happens does not depend on the lengths of the steps, and is what happens in [`run`](crate::run).
use crate::budget::Budget;
use crate::parallel::Partition;
use crate::world::World;
use crate::{Ended, build, ended, side};
use narrows_core::Time;
use narrows_scenario::Scenario;
use narrows_world::Unwatched;

/// A run in progress, on the caller's thread.
pub struct Session {
    world: World<side::Unread>,
    scenario: Scenario,
}

impl Session {
    /// A run at its start. The scenario must be valid and not need the live world.
    pub fn new(scenario: Scenario) -> Session {
        let mut world = build::world(&scenario, Budget::of(&scenario), Partition::default());
        world.begin();
        Session { world, scenario }
    }

    /// The time that the run has been advanced to.
    pub fn now(&self) -> Time {
        self.world.hosts.now
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.world.handled
    }

    /// Handles everything up to this time, inclusive, and not beyond the scenario's end.
    ///
    /// # Errors
    /// [`Ended::Runaway`] if the run has exceeded its budget of work per second.
    pub fn advance(&mut self, to: Time) -> Result<(), Ended> {
        let to = to.min(self.world.hosts.end);
        self.world.run_through(to, &mut Unwatched).map_err(|stopped| ended(stopped, &self.scenario))?;
        self.world.hosts.now = self.world.hosts.now.max(to);
        Ok(())
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("scenario", &self.scenario.name).field("now", &self.now()).finish()
    }
}
