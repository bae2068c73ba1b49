//! What stands at a path, and what becomes of it.
use super::*;

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("narrows-files-{}-{test}", std::process::id()));
        fs::create_dir(&path).expect("a new folder");
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.at(name), text).expect("a file");
        self.at(name)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).expect("a folder").flatten();
        let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const REMEDY: Remedy<'_> = Remedy { other: "file", force: "--force" };
const FORCED: Existing = Existing::Replace(|head| head.starts_with(b"ours"));

fn write(path: &Path, existing: Existing, text: &str) -> io::Result<()> {
    let file = OutputFile::check(path, existing).map_err(|why| why.into_io(REMEDY))?;
    file.write(|to| to.write_all(text.as_bytes()))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a text")
}

#[test]
fn a_file_is_replaced_only_if_asked_and_only_if_it_is_ours() {
    let folder = Folder::new("files");
    write(&folder.at("new"), Existing::Keep, "ours 1").expect("it is new");
    let again = write(&folder.at("new"), Existing::Keep, "ours 2").expect_err("it exists");
    assert_eq!(again.to_string(), "exists; choose another file, or replace it with --force");
    write(&folder.at("new"), FORCED, "ours 3").expect("it is replaced");
    assert_eq!(text(&folder.at("new")), "ours 3");
    let thesis = folder.file("thesis", "mine");
    let refused = write(&thesis, FORCED, "ours").expect_err("it is foreign");
    assert!(refused.to_string().contains("was not written by narrows"), "{refused}");
    write(&folder.file("empty", ""), FORCED, "ours").expect("an empty file holds nothing to lose");
    assert_eq!(text(&thesis), "mine");
    assert_eq!(folder.names(), ["empty", "new", "thesis"]);
}

#[test]
fn a_file_that_appears_after_the_check_stays() {
    let folder = Folder::new("appears");
    let path = folder.at("out");
    for existing in [Existing::Keep, FORCED] {
        let checked = OutputFile::check(&path, existing).expect("nothing is there");
        folder.file("out", "mine");
        checked.write(|to| to.write_all(b"ours")).expect_err("somebody else was first");
        checked.create().expect_err("somebody else was first");
        assert_eq!(text(&path), "mine");
        assert_eq!(folder.names(), ["out"]);
        fs::remove_file(&path).expect("a file");
    }
    link_new(&folder.file("from", "new"), &folder.file("to", "mine")).expect_err("the name is taken");
    assert_eq!(text(&folder.at("to")), "mine");
}

#[test]
fn a_writer_that_fails_leaves_what_was_there() {
    let folder = Folder::new("fails");
    let path = folder.file("out", "ours 1");
    let place = OutputFile::check(&path, FORCED).expect("it is ours");
    place.write(|to| to.write_all(b"ours 2").and(Err::<(), _>(io::Error::other("no")))).expect_err("it fails");
    assert_eq!((text(&path).as_str(), folder.names()), ("ours 1", vec!["out".to_owned()]));
}

#[test]
fn folders_and_missing_folders_are_refused() {
    let folder = Folder::new("folders");
    let refused = |path: &Path| OutputFile::check(path, FORCED).expect_err("it is refused").explain(REMEDY);
    assert_eq!(refused(&folder.0), "is a folder, not a file; choose another file");
    assert_eq!(refused(&folder.at("none/out")), "cannot be made: there is no such folder");
    assert_eq!(refused(Path::new("/")), "is a folder, not a file; choose another file");
    assert_eq!(refused(Path::new("")), "is no name of a file; choose another file");
}

#[cfg(unix)]
#[test]
fn links_stay_and_lead_to_what_is_judged_and_written() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new("links");
    for (link, to) in [("ours", "target"), ("foreign", "thesis"), ("nowhere", "missing"), ("folder", ".")] {
        symlink(to, folder.at(link)).expect("a link");
    }
    let (target, thesis) = (folder.file("target", "ours 1"), folder.file("thesis", "mine"));
    write(&folder.at("ours"), Existing::Keep, "ours 2").expect_err("it exists");
    write(&folder.at("ours"), FORCED, "ours 2").expect("the target is replaced");
    for link in ["foreign", "nowhere", "folder"] {
        write(&folder.at(link), FORCED, "ours").expect_err("it is refused");
    }
    assert_eq!((text(&target).as_str(), text(&thesis).as_str()), ("ours 2", "mine"));
    for link in ["ours", "foreign", "nowhere", "folder"] {
        assert_eq!(EntryKind::at(&folder.at(link)).expect("an entry"), Some(EntryKind::Link), "{link}");
    }
    // A link that takes the place after the check is not followed.
    let checked = OutputFile::check(&folder.at("late"), FORCED).expect("nothing is there");
    symlink("thesis", folder.at("late")).expect("a link");
    checked.write(|to| to.write_all(b"ours")).expect_err("a link is there");
    assert_eq!(text(&thesis), "mine");
}

/// Each would wait, or be read for ever, if it were opened carelessly.
#[cfg(unix)]
#[test]
fn devices_fifos_and_sockets_are_never_written() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let folder = Folder::new("special");
    mkfifoat(CWD, folder.at("fifo"), Mode::RUSR | Mode::WUSR).expect("a FIFO");
    let _socket = std::os::unix::net::UnixListener::bind(folder.at("socket")).expect("a socket");
    let special = [folder.at("fifo"), folder.at("socket"), "/dev/null".into(), "/dev/full".into()];
    for path in special {
        for existing in [Existing::Keep, FORCED] {
            let refused = OutputFile::check(&path, existing).expect_err("it is no file");
            assert!(matches!(refused, Refusal::NoFile(EntryKind::Special)), "{}: {refused:?}", path.display());
        }
        assert_eq!(append(&path).expect_err("it is no file").kind(), ErrorKind::InvalidInput);
        assert_eq!(read_text(&path, 10).expect_err("it is no file").kind(), ErrorKind::InvalidInput);
        assert_eq!(EntryKind::at(&path).expect("an entry"), Some(EntryKind::Special), "{}", path.display());
    }
}

#[test]
fn a_long_text_is_refused() {
    let folder = Folder::new("long");
    let path = folder.file("text", "12345");
    assert_eq!(read_text(&path, 5).expect("it is short enough"), "12345");
    assert!(read_text(&path, 4).expect_err("it is too long").to_string().contains("longer than 4 bytes"));
}
