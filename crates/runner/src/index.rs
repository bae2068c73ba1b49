//! An index of finished runs, so that long commands need not repeat them.
//!
//! The key of a run is a digest of the program and of everything that determines its result. The program is represented by the
//! linker's build id, not by its version: a program built from changed sources has the same version, but may give other results.
//! A line is added as soon as a run is finished, so that a command can continue after any kind of stop. Each line ends with a checksum
//! over its key and values. A line that a disk, a crash or a person has changed does not agree with it, and its run is made again.
//!
//! Where the program is an interpreter, its file says nothing; [`SOURCES`] then stands for it.
use object::read::{Object as _, ReadCache};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

/// A line of the index.
#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    values: serde_json::Value,
    /// The [`digest`] of key and values.
    sum: String,
}

impl Line {
    fn new(key: String, values: serde_json::Value) -> Line {
        let sum = Line::sum(&key, &values);
        Line { key, values, sum }
    }

    /// Numbers are written with the digits that restore them, so values that were read have the text that was written.
    fn sum(key: &str, values: &serde_json::Value) -> String {
        digest([key.as_bytes(), values.to_string().as_bytes()])
    }

    fn agrees(&self) -> bool {
        self.sum == Line::sum(&self.key, &self.values)
    }

    fn text(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

/// The index.
pub struct Index {
    state: Mutex<State>,
}

struct State {
    known: HashMap<String, serde_json::Value>,
    file: File,
}

/// A digest of the sources that decide a simulation's figures: builds that have the same compute the same.
pub const SOURCES: &str = env!("NARROWS_SOURCES");

/// The key of a run: FNV-1a over the program and the texts that determine its result.
pub fn key<'a>(decisive: impl IntoIterator<Item = &'a str>) -> String {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    key_of(PROGRAM.get_or_init(program), decisive)
}

/// The key of a run of a program with another identity than its file: [`SOURCES`].
pub fn key_of<'a>(program: &'a str, decisive: impl IntoIterator<Item = &'a str>) -> String {
    digest(std::iter::once(program).chain(decisive).map(str::as_bytes))
}

/// FNV-1a over these parts.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = OFFSET;
    for (n, part) in parts.into_iter().enumerate() {
        let separator: &[u8] = if n == 0 { b"" } else { b"\n" };
        for &byte in separator.iter().chain(part) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    format!("{hash:016x}")
}

/// The identity of this program: its build id or, if the linker gave it none, a digest of its file. A program that cannot read its own
/// file reuses no run of another process.
fn program() -> String {
    let file = own_file();
    let known = file.and_then(|mut file| build_id(&file).map_or_else(|| digest_of(&mut file), Ok));
    known.unwrap_or_else(|_| format!("{:016x}", RandomState::new().hash_one(())))
}

/// The running program's file: where `/proc` exists, the right one even if another file has its name now.
fn own_file() -> io::Result<File> {
    File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))
}

/// What the linker has made of the program's contents: an ELF build id or a Mach-O UUID.
fn build_id(file: &File) -> Option<String> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    let id = object.build_id().ok()?.map(<[u8]>::to_vec).or_else(|| Some(object.mach_uuid().ok()??.to_vec()))?;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn digest_of(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(digest([bytes.as_slice()]))
}

/// The offset basis of FNV-1a.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The runs in the text of an index. A line that was cut off or changed is left out, so that its run is made again.
pub fn parse(text: &[u8]) -> HashMap<String, serde_json::Value> {
    let lines = text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    lines.filter(Line::agrees).map(|line| (line.key, line.values)).collect()
}

/// Every line begins with it.
const BEGINNING: &[u8] = b"{\"key\":";

/// The text of an index with these runs.
pub fn text(known: &HashMap<String, serde_json::Value>) -> io::Result<Vec<u8>> {
    let sorted: std::collections::BTreeMap<_, _> = known.iter().collect();
    let line = |(key, values): (&String, &serde_json::Value)| Line::new(key.clone(), values.clone()).text();
    Ok(sorted.into_iter().map(line).collect::<io::Result<String>>()?.into_bytes())
}

impl Index {
    /// An index that contains `known` and appends to `file`, which ends with a whole line.
    pub fn new(known: HashMap<String, serde_json::Value>, file: File) -> Index {
        Index { state: Mutex::new(State { known, file }) }
    }

    /// Opens the file of an index for this process alone, and makes it if there is none.
    ///
    /// # Errors
    /// `InvalidData` for a file that is no index, `InvalidInput` for what is no file, `WouldBlock` for one that another process uses, or
    /// what the file system says.
    pub fn open(path: &Path) -> io::Result<Index> {
        let mut file = narrows_files::append(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            // Some file systems have no locks. Whole lines are appended there, too.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let start = &BEGINNING[..BEGINNING.len().min(text.len())];
        if !text.starts_with(start) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match text.last() {
            // The first line was cut off within the mark of an index.
            Some(_) if text.len() < BEGINNING.len() => file.set_len(0)?,
            // The rest of a line that was cut off; `parse` leaves it out, unless only its end is missing.
            Some(&last) if last != b'\n' => file.write_all(b"\n")?,
            _ => {}
        }
        Ok(Index::new(parse(&text), file))
    }

    /// The stored values of a run; `None` if the index does not have it.
    pub fn known<V: DeserializeOwned>(&self, key: &str) -> Option<V> {
        let state = self.state.lock().ok()?;
        serde_json::from_value(state.known.get(key)?.clone()).ok()
    }

    /// Number of runs in the index.
    pub fn count(&self) -> usize {
        self.state.lock().map_or(0, |state| state.known.len())
    }

    /// Adds a finished run; it is in the file when this returns.
    pub fn keep(&self, key: &str, values: &impl Serialize) -> io::Result<()> {
        let line = Line::new(key.to_owned(), serde_json::to_value(values)?);
        let text = line.text()?;
        let mut state = self.state.lock().map_err(|_| io::Error::other("another run has failed"))?;
        state.file.write_all(text.as_bytes())?;
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
        assert_ne!(key_of("one program", ["a"]), key_of("another", ["a"]));
    }

    #[test]
    fn a_program_is_its_build_id_or_every_byte_of_its_file() {
        assert_eq!(program(), program(), "it can be read");
        let own = own_file().unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(build_id(&own), Some(program()), "the linker gives this program a build id");
        }
        let path = std::env::temp_dir().join(format!("narrows-program-{}", std::process::id()));
        let of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let mut file = File::open(&path).unwrap();
            assert_eq!(build_id(&file), None, "no program");
            digest_of(&mut file).unwrap()
        };
        assert_ne!(of(b"a program"), of(b"a program\0"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_keeps_whole_lines_for_one_process_at_a_time() {
        let folder = std::env::temp_dir().join(format!("narrows-index-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("runs.jsonl");
        let index = Index::open(&path).unwrap();
        index.keep("a", &1.5).unwrap();
        assert_eq!(Index::open(&path).err().map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
        drop(index);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let index = Index::open(&path).unwrap();
            assert_eq!(index.count(), usize::from(cut + 1 == whole.len()), "{cut}: only a whole object is a run");
            index.keep("b", &cut).unwrap();
            drop(index);
            assert_eq!(Index::open(&path).unwrap().known::<usize>("b"), Some(cut));
        }
        std::fs::write(&path, "run,seed\n1,1\n").unwrap();
        assert_eq!(Index::open(&path).err().map(|error| error.kind()), Some(io::ErrorKind::InvalidData));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_whole_line_is_not_known() {
        let whole = text(&HashMap::from([("a".to_owned(), serde_json::json!([1.5, null]))])).unwrap();
        let known = parse(&[&whole, &b"\xff\xfe\n[]\n{\"key\":\"b\",\"val"[..]].concat());
        assert_eq!(known.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(known["a"], serde_json::json!([1.5, null]));
    }

    #[test]
    fn a_line_that_was_changed_is_not_known() {
        let values = serde_json::json!({ "goodput_mbit": 47.125, "rtt_ms": [1e-300, 0.1, -0.0, 3], "queue": "fifo" });
        let known = HashMap::from([("a".to_owned(), values)]);
        let whole = text(&known).unwrap();
        assert_eq!(parse(&whole), known);
        // Whatever the byte, and whatever it becomes: the line is left out, or its meaning is the same.
        for place in 0..whole.len() - 1 {
            for flip in [1, 2, 4, 16] {
                let mut changed = whole.clone();
                changed[place] ^= flip;
                let found = parse(&changed);
                assert!(found.is_empty() || found == known, "{}", String::from_utf8_lossy(&changed));
            }
        }
        // A line of a build that wrote no checksum.
        assert_eq!(parse(b"{\"key\":\"a\",\"values\":[1.5]}\n").len(), 0);
    }
}
