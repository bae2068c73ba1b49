//! Takes the chart library out of the `plotly` crate and compresses it, so that a page carries a third of its size and
//! the program none of the parts that a page does not need (MathJax).
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let tags = plotly::Plot::offline_js_sources();
    let script = tags
        .split("</script>")
        .filter_map(|tag| tag.split_once('>').map(|(_, script)| script))
        .find(|script| script.contains("* plotly.js v"))
        .ok_or("the plotly crate no longer carries plotly.js as a script tag of its own")?;
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(script.as_bytes(), BEST);
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("plotly.js.zlib.base64"), BASE64_STANDARD.encode(packed))?;
    Ok(())
}

/// miniz_oxide's strongest level.
const BEST: u8 = 10;
