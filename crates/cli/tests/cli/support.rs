//! Runs the built program in a test's own folder.
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A test's folder, initially empty.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(test: &str) -> Place {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a folder for the test");
        Place(dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        path.parent().map(fs::create_dir_all).transpose().expect("a folder for the test");
        fs::write(path, text).expect("a file for the test");
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program starts")
    }

    /// Runs a command that must succeed; returns its stdout.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}\n{}", output.status, text(&output.stderr));
        text(&output.stdout)
    }

    /// All files below `dir`, relative to it, sorted.
    pub(crate) fn files(&self, dir: &str) -> Vec<PathBuf> {
        let root = self.path(dir);
        let (mut files, mut folders) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        files.iter().map(|file| file.strip_prefix(&root).expect("below the root").to_path_buf()).collect()
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// A summary without the only key that differs between equal runs.
pub(crate) fn without_cost(mut summary: Value) -> Value {
    let removed = summary.as_object_mut().and_then(|object| object.remove("cost"));
    assert!(removed.is_some(), "a summary has a cost");
    summary
}

/// Checks that two folders have the same files, which are equal except for the cost; returns their number.
pub(crate) fn same_files(place: &Place, one: &str, other: &str) -> usize {
    let names = place.files(one);
    assert_eq!(names, place.files(other));
    let compared: Vec<&PathBuf> = names.iter().filter(|name| !is_of_one_command(name)).collect();
    for name in &compared {
        let [a, b] = [one, other].map(|out| fs::read(place.path(out).join(name)).expect("a result file"));
        if name.ends_with("summary.json") {
            assert_eq!(stripped(&a), stripped(&b), "{}", name.display())
        } else {
            assert!(a == b, "{} differs between {one} and {other}", name.display())
        }
    }
    compared.len()
}

/// The page may show a run's cost, and the list of files has the command's id.
fn is_of_one_command(name: &Path) -> bool {
    name.extension().is_some_and(|ext| ext == "html") || name.ends_with(".narrows")
}

fn stripped(bytes: &[u8]) -> Vec<Value> {
    match json(&text(bytes)) {
        Value::Array(summaries) => summaries.into_iter().map(without_cost).collect(),
        summary => vec![without_cost(summary)],
    }
}
