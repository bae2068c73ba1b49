//! Compiles the queue disciplines' headers for `tests/decisions`, and for nothing else: only tests are linked with them.
//!
//! Without a C compiler the crate builds all the same, and the test fails and says why.
use std::path::Path;

fn main() {
    let folder = Path::new("qdisc");
    println!("cargo::rerun-if-changed=qdisc/include");
    println!("cargo::rerun-if-changed=qdisc/test");
    println!("cargo::rustc-check-cfg=cfg(qdisc_headers)");
    let sources = DISCIPLINES.map(|name| folder.join("test").join(name).with_extension("c"));
    let mut build = cc::Build::new();
    build.cargo_metadata(false).std("gnu11").include(folder.join("include")).files(sources);
    // A signed overflow ends the test.
    build.flag_if_supported("-ftrapv").warnings(true).extra_warnings(true);
    match build.warnings_into_errors(true).try_compile("narrows_qdisc_test") {
        Ok(()) => {
            let out = std::env::var("OUT_DIR").expect("cargo sets it");
            println!("cargo::rustc-cfg=qdisc_headers");
            println!("cargo::rustc-link-arg-tests={out}/libnarrows_qdisc_test.a");
        }
        Err(error) => println!("cargo::warning=tests/decisions cannot run: {error}"),
    }
}

/// Each has a header in `qdisc/include/narrows` and a shell for it in `qdisc/test`.
const DISCIPLINES: [&str; 4] = ["cocoa", "cp", "fq_codel_fair", "fq_cp"];
