//! Scenes: scenarios that show one thing each. A scene is a file whose first comment says, in a few sentences, what there is to see.
use serde::Serialize;

/// A scene.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug)]
pub struct Scene {
    /// Its name in addresses.
    pub name: &'static str,
    /// The scenario.
    pub text: &'static str,
}

macro_rules! scenes {
    ($($name:literal)*) => {
        /// Every scene, in the order in which a page shows them.
        pub const SCENES: &[Scene] =
            &[$(Scene { name: $name, text: include_str!(concat!("../scenes/", $name, ".toml")) }),*];
    };
}

scenes! {
    "bufferbloat"
    "bufferbloat-cured"
    "call-beside-download"
    "cocoa"
    "policing"
    "starvation"
    "own-queue-or-not"
    "start-up"
    "gentle-beside-greedy"
    "l4s"
    "incast"
    "lte"
    "wifi"
    "classes"
    "one-fat-twenty-thin"
}
