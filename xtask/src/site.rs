//! The site: the book, the playground and the schema of scenario files, for any server of static files.
//!
//! Everything is addressed relatively, so the site works in any folder of a server and asks for nothing elsewhere. The playground's files
//! are those of its crate as they are; beside them is its engine as WebAssembly.
use crate::disk::{copy, copy_into, files, files_below, folder, fresh, write};
use crate::{cargo, needs_target, root, run, target_folder};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    All,
    /// The playground alone.
    Play,
}

const TARGET: &str = "wasm32-unknown-unknown";
/// What a first load of the playground may have, compressed, bytes.
const MOST: u64 = 700_000;
/// What rustc lets WebAssembly use; a stripped module does not say it.
const FEATURES: [&str; 5] =
    ["bulk-memory", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];

/// Makes it in `target/site`; returns what the playground weighs.
pub(crate) fn make(parts: Parts) -> Result<String, String> {
    needs_target(TARGET)?;
    let site = root().join("target/site");
    match parts {
        Parts::All => drop(fresh(&site)?),
        Parts::Play => folder(&site)?,
    }
    if parts == Parts::All {
        run(cargo().args(["run", "--quiet", "--package", "xtask", "--features", "book", "--", "book"]))?;
        let book = root().join("target/book");
        for file in files_below(&book)? {
            copy_into(&file, &site.join(file.strip_prefix(&book).unwrap_or(&file)))?;
        }
        write(&site.join("schema.json"), &schema()?)?;
    }
    let play = fresh(&site.join("play"))?;
    for file in files(&root().join("crates/playground/page"))? {
        // Beside these are declarations for the checker of types.
        if file.extension().is_some_and(|kind| ["html", "css", "js"].iter().any(|of_page| kind == *of_page)) {
            copy(&file, &play.join(file.file_name().unwrap_or_default()))?;
        }
    }
    engine(&play.join("engine.wasm"))?;
    let said = weighed(&play)?;
    Ok(format!("{said}\n{}", site.display()))
}

/// The schema, as the program prints it.
fn schema() -> Result<Vec<u8>, String> {
    let mut narrows = cargo();
    narrows.args([
        "run",
        "--quiet",
        "--profile",
        "quick",
        "--package",
        "narrows",
        "--no-default-features",
        "--",
        "schema",
    ]);
    let output = narrows.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo does not start: {error}"))?;
    if output.status.success() { Ok(output.stdout) } else { Err("narrows schema failed".to_owned()) }
}

fn engine(to: &Path) -> Result<(), String> {
    let mut rustc = cargo();
    rustc.args(["rustc", "--package", "narrows-playground", "--lib", "--crate-type", "cdylib"]);
    run(rustc.args(["--target", TARGET, "--profile", "web", "--locked"]))?;
    let built = target_folder().join(TARGET).join("web/narrows_playground.wasm");
    if Command::new("wasm-opt").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("engine.wasm is as rustc made it: wasm-opt, of the package binaryen, would make it smaller");
        return copy(&built, to);
    }
    let features = FEATURES.map(|feature| format!("--enable-{feature}"));
    run(Command::new("wasm-opt").arg("-O3").args(features).arg(&built).arg("-o").arg(to))
}

/// Each file's size, raw and compressed as servers do it. Fails if they have more together than a first load may.
fn weighed(play: &Path) -> Result<String, String> {
    let (mut lines, mut total) = (String::new(), 0);
    for file in files(play)? {
        let raw = fs::metadata(&file).map_or(0, |data| data.len());
        let packed = Command::new("gzip").arg("-9c").arg(&file).output();
        let packed = packed.map_err(|error| format!("gzip does not start: {error}"))?.stdout.len() as u64;
        total += packed;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        lines += &format!("{name:<14} {raw:>9} {packed:>9}\n");
    }
    if total > MOST {
        return Err(format!("{lines}the playground has {total} bytes, compressed; allowed: {MOST}"));
    }
    Ok(format!("play           raw bytes   gzip -9\n{lines}together {:>25}", total))
}
