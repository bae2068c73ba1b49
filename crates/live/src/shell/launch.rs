//! A command to start, behind what, and how it ended: the same on every system.
use crate::packet_thread::view::View;
use narrows_core::Time;
use narrows_host::{Launch, Status};
use narrows_results::RunResult;
use narrows_scenario::Scenario;

/// What a monitor wants of a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// That it goes on.
    GoOn,
    /// That it hears of a Ctrl-C, and does with it what it will.
    Interrupt,
    /// That it ends: by itself when it hears of it, or soon after all the same.
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

/// What remains of a command.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: Status,
    /// What ran, with its length.
    pub scenario: Scenario,
    /// What was measured.
    pub result: RunResult,
}
