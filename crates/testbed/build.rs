//! Lists the case files, so that a case is one file.
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let folder = Path::new("cases");
    println!("cargo::rerun-if-changed=cases");
    let mut names: Vec<String> = Vec::new();
    for group in entries(folder) {
        names.extend(
            entries(&folder.join(&group))
                .iter()
                .filter_map(|file| Some(format!("{group}/{}", file.strip_suffix(".toml")?))),
        );
    }
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let mut text = String::from("const FILES: &[(&str, &str)] = &[\n");
    for name in names {
        let file = Path::new(&root).join(folder).join(format!("{name}.toml"));
        writeln!(text, "    ({name:?}, include_str!({file:?})),").expect("writing into a string");
    }
    text.push_str("];\n");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("cases.rs"), text).expect("the build's folder can be written");
}

/// The names in a folder, sorted.
fn entries(folder: &Path) -> Vec<String> {
    let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = read.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
