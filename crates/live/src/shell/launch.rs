//! The input and the result of a shell; the same on every system.
use crate::packet_thread::view::View;
use narrows_core::Time;
use narrows_host::{Launch, Status};
use narrows_results::RunResult;
use narrows_results::packets::{Capture, FrameLog};
use narrows_scenario::Scenario;

/// A monitor's request about a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Let it go on.
    GoOn,
    /// Interrupt the command as Ctrl-C would; the command decides how to respond.
    Interrupt,
    /// End the command: it is asked to end, and killed soon afterwards if it does not.
    End,
}

/// A command behind a bottleneck.
#[derive(Debug)]
pub struct Shell {
    /// Two hops: the command's outgoing packets cross the first, incoming ones the second. The run is as long as the command.
    pub scenario: Scenario,
    /// MTU, bytes.
    pub mtu: u32,
    /// The command; `{peer}` in it stands for the outer end's address.
    pub launch: Launch,
    /// A program that runs at the outer end meanwhile, such as `iperf3 -s`.
    pub companion: Option<Launch>,
    /// The packets to be recorded, if any.
    pub capture: Option<Capture>,
}

/// The names of the two sides in a log of a command's packets. The command is on the first one.
pub const SIDES: [&str; 2] = ["program", "outside"];

/// Observes a running command.
pub trait Monitor {
    /// Called a few times a second, with the views of both directions: outgoing packets first.
    fn look(&mut self, now: Time, views: [View; 2]) -> Wish;
}

/// The result of a shell whose command has ended.
#[derive(Debug)]
pub struct ShellRun {
    /// How it ended.
    pub status: Status,
    /// The scenario, with the length of the run.
    pub scenario: Scenario,
    /// The measured result.
    pub result: RunResult,
    /// The packets, if they were asked for; its sides are [`SIDES`].
    pub frames: Option<FrameLog>,
    /// The command has removed one of the devices: the figures have nothing of the time after that.
    pub is_device_gone: bool,
}
