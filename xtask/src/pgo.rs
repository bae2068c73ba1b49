//! Builds `narrows` and its benchmark with profile-guided optimisation: with counters first, then again after a run, with the
//! counts (rustc's `-C profile-use`). Results stay the same bytes.
use crate::{root, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The run that is counted: the cases whose speed matters, shortened to a tenth.
const TRAINING: [&str; 5] = ["--quick", "--rounds", "1", "single", "many"];

/// Builds them into `target/pgo/lto`.
pub(crate) fn build() -> Result<String, String> {
    let profdata = profdata()?;
    let target = root().join("target/pgo");
    let (raw, merged) = (target.join("raw"), target.join("merged.profdata"));
    let counting = target.join("counting");
    cargo(&counting, &format!("-Cprofile-generate={}", raw.display()))?;
    // Counts of older builds and of build scripts that have just run must not be used.
    match std::fs::remove_dir_all(&raw) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{} cannot be removed: {error}", raw.display()));
        }
        _ => {}
    }
    run(Command::new(counting.join("lto/narrows-bench")).args(TRAINING))?;
    run(Command::new(&profdata).arg("merge").arg("-o").arg(&merged).arg(&raw))?;
    cargo(&target, &format!("-Cprofile-use={}", merged.display()))?;
    Ok(format!("{} and narrows-bench beside it", target.join("lto/narrows").display()))
}

/// A build to hand out, with an additional flag, encoded because its path may contain spaces.
fn cargo(target: &Path, flag: &str) -> Result<(), String> {
    let mut build = crate::cargo();
    build.args(["build", "--profile", "lto", "-p", "narrows", "-p", "narrows-bench", "--target-dir"]).arg(target);
    run(build.env("CARGO_ENCODED_RUSTFLAGS", flag))
}

/// The toolchain's own `llvm-profdata`: another version may not read this compiler's counts.
fn profdata() -> Result<PathBuf, String> {
    let rustc = Command::new("rustc").args(["--print", "target-libdir"]).current_dir(root()).output();
    let rustc = rustc.map_err(|error| format!("rustc does not start: {error}"))?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&rustc.stdout).trim());
    let tool = libraries.with_file_name("bin").join(format!("llvm-profdata{}", std::env::consts::EXE_SUFFIX));
    if tool.is_file() {
        Ok(tool)
    } else {
        Err("llvm-profdata is missing: `rustup component add llvm-tools` brings it".to_owned())
    }
}
