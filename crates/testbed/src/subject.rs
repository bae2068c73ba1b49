//! Who is under test: a stack, or a controller under the simulator's TCP or QUIC.
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered as _;
use narrows_world::peer::Peer;

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

/// Who is under test.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A controller of the registries, under the transport that the case's scenario gives the flow.
    Controller(ControllerConfig),
    /// Somebody else's stack.
    Stack(Stack),
}

impl Subject {
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Subject::Controller(control) => control.to_string(),
            Subject::Stack(stack) => stack.name.to_owned(),
        }
    }

    /// The control's family, as cases concern it.
    pub fn control(&self) -> &str {
        match self {
            Subject::Controller(control) => control.name(),
            Subject::Stack(stack) => stack.control,
        }
    }
}
