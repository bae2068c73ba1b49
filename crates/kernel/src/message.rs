//! What guest and host say to each other: a job in the guest's file system, and lines of JSON over a serial port.
use crate::sightings::Sighting;
use narrows_results::RunResult;
use narrows_scenario::Traces;
use serde::{Deserialize, Serialize};

/// The guest's work, in [`JOB`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The scenario as TOML.
    pub(crate) scenario: String,
    /// The files that it names: names and texts.
    pub(crate) files: Vec<(String, String)>,
    /// Kernel modules, each after those it depends on: file names in [`MODULES`].
    pub(crate) modules: Vec<String>,
    /// Where the user's programs run; `None` if the scenario has none.
    pub(crate) surroundings: Option<Surroundings>,
    /// The packets that are recorded; `None` for none.
    pub(crate) capture: Option<Recorded>,
}

impl Traces for Job {
    fn text(&self, name: &str) -> Result<String, String> {
        let found = self.files.iter().find(|file| file.0 == name);
        found.map(|file| file.1.clone()).ok_or_else(|| "the guest has no such file".to_owned())
    }
}

/// Which packets are recorded: those sent from a time on and before another, ns, and how many at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) from: u64,
    pub(crate) until: Option<u64>,
    pub(crate) limit: u32,
}

/// What a program finds around it, as on the host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// The environment: names and values.
    pub(crate) environment: Vec<(String, String)>,
    /// The working directory.
    pub(crate) folder: String,
}

/// A line from the guest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The run has come this far, ns.
    At(u64),
    /// The user's programs have written this.
    Said(String),
    /// By how much the end of the run was late, ns.
    Late(u64),
    /// Packets that came by.
    Seen(Vec<Sighting>),
    /// The number of packets that [`Recorded::limit`] left out.
    Missed(u64),
    /// The result.
    Done(Box<RunResult>),
    /// The user can put it right.
    Refused(String),
    /// Anything else.
    Failed(String),
}

/// Where the guest finds its job.
pub(crate) const JOB: &str = "/lab/job.json";
/// Where it finds kernel modules.
pub(crate) const MODULES: &str = "/lab/modules";
/// Where `tc` finds its plug-ins.
pub(crate) const PLUGINS: &str = "/lab/tc";
/// The variable by which the program knows that it is the guest's first process.
pub(crate) const MARK: &str = "NARROWS_LAB";
/// Its value once the first process has started itself again in the [`Surroundings`] of the user's programs.
pub(crate) const SURROUNDED: &str = "2";
