//! The page's files, which programs embed as they are.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its path below the page's address.
    pub path: &'static str,
    /// Its type, for HTTP.
    pub mime: &'static str,
    /// What is in it.
    pub text: &'static str,
}

macro_rules! files {
    ($($mime:literal: $($path:literal)*;)*) => {
        /// Every file; the first one is the page.
        pub const FILES: &[File] = &[$($(
            File { path: $path, mime: $mime, text: include_str!(concat!("../page/", $path)) },
        )*)*];
    };
}

files! {
    "text/html; charset=utf-8": "index.html";
    "text/css; charset=utf-8": "style.css";
    "text/javascript; charset=utf-8":
        "main.js" "engine.js" "worker.js" "player.js" "stage.js" "lanes.js" "strips.js" "controls.js" "words.js" "link.js" "paint.js" "dom.js" "units.js";
}

/// What stands in the page's first line where `narrows play` writes that the engine is native.
pub const WASM: &str = "data-engine=\"wasm\"";
/// What it writes there.
pub const NATIVE: &str = "data-engine=\"native\"";
