//! Digests the sources that decide a simulation's figures, so that processes can tell whether they would compute the same.
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The crates beside this one whose code decides figures.
const DECISIVE: [&str; 7] = ["core", "results", "runner", "scenario", "sim", "study", "world"];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets CARGO_MANIFEST_DIR")?);
    let crates = here.parent().ok_or("the crate lies beside the others")?;
    let mut files = vec![];
    for name in DECISIVE {
        let sources = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        collect(&sources, &mut files)?;
    }
    // Other people's code decides, too. A copy of the crates alone has no lock file.
    let lock = crates.with_file_name("Cargo.lock");
    if lock.is_file() {
        println!("cargo::rerun-if-changed={}", lock.display());
        files.push(lock);
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut absorb = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for file in &files {
        let name = file.strip_prefix(crates).unwrap_or(Path::new("Cargo.lock"));
        absorb(name.to_string_lossy().replace('\\', "/").as_bytes());
        absorb(&[0]);
        absorb(&fs::read(file)?);
        absorb(&[0]);
    }
    println!("cargo::rustc-env=NARROWS_SOURCES={hash:016x}");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}

/// Every Rust file in a folder and those below it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
