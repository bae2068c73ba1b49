//! Lists the studies in `experiments/`, so that the program carries them: a new file is found by itself.
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("cargo sets CARGO_MANIFEST_DIR")?);
    let experiments = root.join("../../experiments");
    println!("cargo::rerun-if-changed={}", experiments.display());
    let mut list = String::from("&[\n");
    for paper in entries(&experiments)?.iter().filter(|path| path.is_dir()) {
        println!("cargo::rerun-if-changed={}", paper.display());
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let files = entries(paper)?;
        let is_study = |path: &&PathBuf| path.extension().is_some_and(|ext| ext == "toml");
        let texts: String = files.iter().filter(is_study).map(std::fs::read_to_string).collect::<Result<_, _>>()?;
        // A study names its recorded traces.
        let is_ours = |path: &&PathBuf| {
            let is_trace = path.is_file() && texts.contains(&format!("\"{}\"", name(path)));
            is_study(path) || is_trace || path.ends_with("recorded.csv") || path.ends_with("authors.csv")
        };
        for study in files.iter().filter(is_ours) {
            let file = study.canonicalize()?;
            writeln!(list, "({:?}, {:?}, include_str!({file:?})),", name(paper), name(study))?;
        }
    }
    list.push(']');
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("studies.rs"), list)?;
    Ok(())
}

/// What is in a folder, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    found.sort();
    Ok(found)
}
