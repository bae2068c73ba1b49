//! Finished runs of a command that takes long: an index that says which runs need not be made again.
//!
//! A run is known by a digest of the program's version and of everything that decides its result. A line is added as soon as
//! a run is finished, so that a command that was stopped, however it was stopped, can go on.
use crate::failure::Failure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A line of the index.
#[derive(Serialize, Deserialize)]
struct Line<V> {
    key: String,
    values: V,
}

/// The index.
pub(crate) struct Kept {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    known: HashMap<String, serde_json::Value>,
    file: File,
}

/// By what a run is known: FNV-1a over the program's version and what decides its result.
pub(crate) fn key<'a>(decisive: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (n, part) in std::iter::once(env!("CARGO_PKG_VERSION")).chain(decisive).enumerate() {
        let separator = if n == 0 { "" } else { "\n" };
        for byte in separator.bytes().chain(part.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// The runs that the text of an index names. A line that was cut off is a run that is made again.
pub(crate) fn parse(text: &[u8]) -> HashMap<String, serde_json::Value> {
    let lines = text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    lines.map(|line: Line<serde_json::Value>| (line.key, line.values)).collect()
}

/// An index of runs, as a file.
pub(crate) fn text(known: &HashMap<String, serde_json::Value>) -> Result<Vec<u8>, Failure> {
    let sorted: std::collections::BTreeMap<_, _> = known.iter().collect();
    let lines = sorted.into_iter().map(|(key, values)| {
        serde_json::to_string(&Line { key: key.clone(), values }).map(|line| line + "\n").map_err(Failure::other)
    });
    Ok(lines.collect::<Result<String, Failure>>()?.into_bytes())
}

impl Kept {
    /// An index that has `known` and goes on in `file`, which ends with a whole line.
    pub(crate) fn new(known: HashMap<String, serde_json::Value>, path: &Path, file: File) -> Kept {
        Kept { path: path.to_path_buf(), state: Mutex::new(State { known, file }) }
    }

    /// What is known of a run.
    pub(crate) fn known<V: DeserializeOwned>(&self, key: &str) -> Option<V> {
        let state = self.state.lock().ok()?;
        serde_json::from_value(state.known.get(key)?.clone()).ok()
    }

    /// How many runs are known.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().map_or(0, |state| state.known.len())
    }

    /// Adds a finished run.
    pub(crate) fn keep(&self, key: &str, values: &impl Serialize) -> Result<(), Failure> {
        let values = serde_json::to_value(values).map_err(Failure::other)?;
        let line = Line { key: key.to_owned(), values };
        let text = serde_json::to_string(&line).map_err(Failure::other)? + "\n";
        let mut state = self.state.lock().map_err(Failure::other)?;
        state.file.write_all(text.as_bytes()).map_err(|error| Failure::write(&self.path, &error))?;
        state.known.insert(line.key, line.values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_every_part() {
        let keys = [key(["a", "b"]), key(["a", "c"]), key(["b", "b"]), key(["a"])];
        for (n, one) in keys.iter().enumerate() {
            assert!(keys[..n].iter().all(|other| other != one), "{keys:?}");
        }
        assert_eq!(keys[0], key(["a", "b"]));
    }

    #[test]
    fn what_is_no_whole_line_is_not_known() {
        let text = b"{\"key\":\"a\",\"values\":[1.5,null]}\n\xff\xfe\n[]\n{\"key\":\"b\",\"val";
        let known = parse(text);
        assert_eq!(known.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(known["a"], serde_json::json!([1.5, null]));
    }
}
