//! Who is under test: a stack, a controller under the simulator's TCP or QUIC, or a rate control of calls.
use narrows_core::congestion::ControllerConfig;
use narrows_core::media::MediaControlConfig;
use narrows_core::registry::Registered as _;
use narrows_scenario::traffic::Traffic;
use narrows_scenario::{ScenarioError, shorthand};
use narrows_world::peer::Peer;
use std::sync::Arc;

/// A stack with one of its controls.
#[derive(Clone, Copy)]
pub struct Stack {
    /// Whether it does the same each time; not if it draws random numbers from the system.
    pub repeats: bool,
    /// `smoltcp:cubic`.
    pub name: &'static str,
    /// The control's family, as [cases](crate::cases) concern it: `cubic`, `new_reno`, `bbr`, `bbr3`.
    pub control: &'static str,
    /// Makes both ends, the sender first.
    pub ends: fn() -> [Box<dyn Peer>; 2],
}

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stack").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Makes both ends of a connection, the sender first, from the run's seed.
pub type MakeEnds = Arc<dyn Fn(u64) -> [Box<dyn Peer>; 2] + Send + Sync>;

/// Who is under test.
#[derive(Clone)]
pub enum Subject {
    /// A controller of the registries, under the transport that the case's scenario gives the flow.
    Controller(ControllerConfig),
    /// A rate control of calls, in all calls of the case's scenario.
    Media(MediaControlConfig),
    /// Somebody else's transport.
    Peers {
        /// Its name.
        name: String,
        /// The control's family; see [`Stack::control`].
        control: String,
        /// Makes both ends, for each run anew.
        ends: MakeEnds,
    },
}

impl Subject {
    /// A control of the registries as on the command line: `bbr3`, `cubic:hystart=false`, `nada`. The flag is for errors.
    ///
    /// # Errors
    /// What is allowed instead.
    pub fn read(flag: &str, text: &str) -> Result<Subject, ScenarioError> {
        let name = text.split(':').next().unwrap_or_default().trim();
        if MediaControlConfig::NAMES.contains(&name) {
            let call = format!("video:control={}", text.replace(',', ";"));
            if let [group] = &shorthand::flows(flag, &call)?[..]
                && let Traffic::Video(video) = &group.traffic
            {
                return Ok(Subject::Media((*video.control.0).clone()));
            }
        } else if let [group] = &shorthand::flows(flag, text)?[..]
            && let Some(control) = &group.controller
        {
            return Ok(Subject::Controller(control.clone()));
        }
        Err(ScenarioError::new(flag, format!("\"{text}\" is not one congestion control")))
    }

    /// Whether it is a rate control of calls.
    pub fn is_media(&self) -> bool {
        matches!(self, Subject::Media(_))
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Subject::Controller(control) => control.to_string(),
            Subject::Media(control) => control.to_string(),
            Subject::Peers { name, .. } => name.clone(),
        }
    }

    /// The control's family, as cases concern it.
    pub fn control(&self) -> &str {
        match self {
            Subject::Controller(control) => control.name(),
            Subject::Media(control) => control.name(),
            Subject::Peers { control, .. } => control,
        }
    }
}

impl From<Stack> for Subject {
    fn from(stack: Stack) -> Subject {
        let Stack { name, control, ends, .. } = stack;
        Subject::Peers { name: name.to_owned(), control: control.to_owned(), ends: Arc::new(move |_| ends()) }
    }
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Subject").field(&self.name()).finish()
    }
}
