//! Who is under test: a stack, or a controller under the simulator's TCP or QUIC.
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered as _;
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
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Subject::Controller(control) => control.to_string(),
            Subject::Peers { name, .. } => name.clone(),
        }
    }

    /// The control's family, as cases concern it.
    pub fn control(&self) -> &str {
        match self {
            Subject::Controller(control) => control.name(),
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
