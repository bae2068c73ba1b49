//! `.narrows`: the list of the files that narrows wrote to a folder. It marks the folder as results and says which files
//! `--force` may remove.
//!
//! The list is written before the folder appears under its name and never changes. If it is damaged, `--force` recognises results
//! by their file names.
use super::disk::{Disk, Done};
use crate::failure::Failure;
use narrows_files::EntryKind;
use narrows_results::folder;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

/// Name of the list.
pub(super) const MANIFEST: &str = ".narrows";
/// The list's first line.
const HEADING: &str = "# Written by narrows, which may replace or remove these files.";
/// Prefix of the line with the number of files, which reveals a truncated list.
const COUNT: &str = "# files: ";
/// Prefix of the line with the id.
const ID: &str = "# id: ";

/// The contents of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Manifest {
    /// The id of the command that published the folder.
    pub(super) id: Option<String>,
    /// Paths within the folder, without the list itself.
    pub(super) files: BTreeSet<PathBuf>,
}

/// The list in a folder.
#[derive(Debug)]
pub(super) enum Marker {
    /// There is none.
    Missing,
    /// The list is unusable, for this reason.
    Damaged(String),
    /// The list is valid.
    Good(Manifest),
}

impl Manifest {
    /// The list as text.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{HEADING}\n");
        if let Some(id) = &self.id {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{ID}{id}");
        }
        let _ = writeln!(text, "{COUNT}{}", self.files.len());
        self.files.iter().for_each(|file| text += &format!("{}\n", file.display()));
        text
    }

    /// Parses a list; `None` if it is not one, or is truncated.
    fn parse(bytes: &[u8]) -> Option<Manifest> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (heading, rest) = text.split_once('\n')?;
        let value = |start: &str| rest.lines().find_map(|line| line.strip_prefix(start));
        let lines = rest.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        // A path that leaves the folder is not one of ours.
        let inside = |file: &PathBuf| file.components().all(|part| matches!(part, Component::Normal(_)));
        let files: BTreeSet<PathBuf> = lines.map(PathBuf::from).filter(inside).collect();
        let whole = value(COUNT).is_some_and(|count| count.parse() == Ok(files.len()));
        let id = value(ID).map(str::to_owned);
        (heading == HEADING && whole).then_some(Manifest { id, files })
    }
}

/// Reads a folder's list.
pub(super) fn read(disk: &Disk, dir: &Path) -> Result<Marker, Failure> {
    let path = dir.join(MANIFEST);
    match disk.kind(&path)? {
        None => return Ok(Marker::Missing),
        Some(EntryKind::File) => {}
        Some(kind) => return Ok(Marker::Damaged(format!("it is {}", kind.name()))),
    }
    let Some(bytes) = disk.read(&path)? else { return Ok(Marker::Missing) };
    Ok(Manifest::parse(&bytes).map_or(Marker::Damaged("it is not a whole list of files".to_owned()), Marker::Good))
}

/// Everything in a folder: files, other entries, and folders with the deepest last.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) files: Vec<(PathBuf, EntryKind)>,
    pub(super) folders: Vec<PathBuf>,
}

impl Tree {
    /// Walks a folder. Paths are relative to it.
    pub(super) fn of(disk: &Disk, root: &Path) -> Done<Tree> {
        let (mut tree, mut next) = (Tree::default(), vec![PathBuf::new()]);
        while let Some(folder) = next.pop() {
            for name in disk.list(&root.join(&folder))? {
                let path = folder.join(name);
                match disk.kind(&root.join(&path))? {
                    None => {}
                    Some(EntryKind::Folder) => {
                        next.push(path.clone());
                        tree.folders.push(path);
                    }
                    Some(kind) => tree.files.push((path, kind)),
                }
            }
        }
        Ok(tree)
    }
}

/// Whether this is the name of a file of results. Used if there is no list.
pub(super) fn is_name_of_results(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let drawing = file.parent().is_some_and(|dir| dir.ends_with(narrows_report::FIGURES)) && name.ends_with(".svg");
    let own = [folder::SCENARIO, folder::SUMMARY, folder::SERIES, folder::CDFS, narrows_report::PAGE];
    own.contains(&name)
        || ["figures.json", "predicted.svg", "runs.jsonl", "table.csv", "table.parquet", "table.jsonl"].contains(&name)
        || folder::is_hop_file(name)
        || drawing
}

/// Removes the results in a folder, and the folder if it is then empty; returns whether it is gone. The list is removed last, so
/// that an interrupted removal can be finished.
pub(super) fn remove_results(disk: &Disk, dir: &Path) -> Result<bool, Failure> {
    if disk.kind(dir)?.is_none() {
        return Ok(true);
    }
    let marker = read(disk, dir)?;
    let tree = Tree::of(disk, dir)?;
    let ours = |file: &Path| match &marker {
        Marker::Good(manifest) => manifest.files.contains(file),
        Marker::Missing | Marker::Damaged(_) => is_name_of_results(file),
    };
    for (file, _) in tree.files.iter().filter(|(file, kind)| *kind == EntryKind::File && ours(file)) {
        disk.remove_file(&dir.join(file))?;
    }
    let mut left =
        tree.files.iter().any(|(file, kind)| file != Path::new(MANIFEST) && !(*kind == EntryKind::File && ours(file)));
    for folder in tree.folders.iter().rev() {
        left |= disk.remove_folder(&dir.join(folder)).is_err();
    }
    if left {
        return Ok(false);
    }
    disk.remove_file(&dir.join(MANIFEST))?;
    Ok(disk.remove_folder(dir).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_and_a_cut_one_does_not() {
        let files = ["a/summary.json", "b"].map(PathBuf::from).into();
        let manifest = Manifest { id: Some("1f".to_owned()), files };
        let text = manifest.text();
        assert_eq!(Manifest::parse(text.as_bytes()), Some(manifest));
        for end in 0..text.len() - 1 {
            assert_eq!(Manifest::parse(&text.as_bytes()[..end]), None, "{end}");
        }
        assert_eq!(Manifest::parse(&[HEADING.as_bytes(), b"\n\xff\n"].concat()), None);
    }

    #[test]
    fn a_list_never_leads_out_of_its_folder() {
        let text = format!("{HEADING}\n{COUNT}1\n../x\n/etc/passwd\na/../../b\nkept\n");
        let files = Manifest::parse(text.as_bytes()).map(|manifest| manifest.files);
        assert_eq!(files, Some([PathBuf::from("kept")].into()));
    }

    #[test]
    fn names_of_results() {
        for ours in [
            "summary.json",
            "fifo/seed-1/hop0-lte.mahi",
            "hop0.mahi",
            "hop1-rain.loss",
            "hop0.dist",
            "svg/rtt.svg",
            "predicted.svg",
            "runs.jsonl",
        ] {
            assert!(is_name_of_results(Path::new(ours)), "{ours}");
        }
        for other in ["notes.txt", "hop.mahi", "hopx.mahi", "rtt.svg", "thesis.csv", "svg/notes.txt", ""] {
            assert!(!is_name_of_results(Path::new(other)), "{other}");
        }
    }
}
