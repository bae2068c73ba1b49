//! A command to start, behind what, and how it ended: the same on every system.
use crate::packet_thread::view::View;
use narrows_core::Time;
use narrows_host::{Launch, Status};
use narrows_results::RunResult;
use narrows_scenario::Scenario;

/// A monitor's request about a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// That it goes on.
    GoOn,
    /// Interrupt the command as Ctrl-C would; the command decides how to respond.
    Interrupt,
    /// End the command: it is asked to end, and killed soon afterwards if it does not.
    End,
}

/// What to run, and behind what.
#[derive(Debug)]
pub struct Shell {
    /// Two hops: what the command sends crosses the first, what it receives the second. Its length is given by the command.
    pub scenario: Scenario,
    /// Longest packet, bytes.
    pub mtu: u32,
    /// The command; `{peer}` in it stands for the outer end's address.
    pub launch: Launch,
    /// A program that runs at the outer end meanwhile: `iperf3 -s`.
    pub companion: Option<Launch>,
}

/// Sees what happens while a command runs.
pub trait Monitor {
    /// Called a few times a second, with what the command sends and what it receives.
    fn look(&mut self, now: Time, views: [View; 2]) -> Wish;
}

/// The result of a command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: Status,
    /// What ran, with its length.
    pub scenario: Scenario,
    /// What was measured.
    pub result: RunResult,
}
