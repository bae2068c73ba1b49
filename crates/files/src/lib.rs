//! Where the program, the Python package and `narrows-quic` may write files, and how.
//!
//! "May this file be written?" has one answer, [`OutputFile::check`]:
//!
//! | at the path | without force | with force |
//! |---|---|---|
//! | nothing | yes | yes |
//! | a regular file that begins as our own do, or is empty | no | replaced |
//! | another regular file | no | no |
//! | a symbolic link | as for the file that it leads to, which is then written; the link stays | the same |
//! | a folder, a device, a FIFO, a socket, this program's own standard output | no | no |
//!
//! A file appears whole. Its bytes go into a new file beside its place, made under a name that nobody has (`O_EXCL`), which is synced
//! and then renamed. Without force the rename replaces nothing, whatever has appeared meanwhile. Nothing here waits for the other end
//! of a FIFO, and at most [`HEAD`] bytes of an existing file are read.
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, ErrorKind, Read as _, Write};
use std::path::{Path, PathBuf};

/// Bytes at the start of a file that say whose it is.
pub const HEAD: u64 = 512;

/// The kind of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket, a device.
    Special,
}

impl EntryKind {
    fn of(kind: fs::FileType) -> EntryKind {
        match kind {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Folder,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Special,
        }
    }

    /// The kind of the entry itself, even if it is a link; `None` if there is none.
    ///
    /// # Errors
    /// The file system's.
    pub fn at(path: &Path) -> io::Result<Option<EntryKind>> {
        found(fs::symlink_metadata(path))
    }

    /// The kind of what the path leads to; `None` if it leads to nothing.
    ///
    /// # Errors
    /// The file system's.
    pub fn behind(path: &Path) -> io::Result<Option<EntryKind>> {
        found(fs::metadata(path))
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            EntryKind::File => "a file",
            EntryKind::Folder => "a folder",
            EntryKind::Link => "a symbolic link",
            EntryKind::Special => "a FIFO, a socket or a device",
        }
    }
}

fn found(metadata: io::Result<fs::Metadata>) -> io::Result<Option<EntryKind>> {
    match metadata {
        Ok(metadata) => Ok(Some(EntryKind::of(metadata.file_type()))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What happens to a file that is there already.
#[derive(Clone, Copy, Debug)]
pub enum Existing {
    /// It stays, and the output is refused.
    Keep,
    /// It is replaced if its first bytes are those of our own files.
    Replace(fn(&[u8]) -> bool),
}

impl Existing {
    /// With force, files that begin as our own do are replaced.
    pub fn unless_forced(force: bool, is_own: fn(&[u8]) -> bool) -> Existing {
        if force { Existing::Replace(is_own) } else { Existing::Keep }
    }
}

/// Why a file may not be written.
#[derive(Debug)]
pub enum Refusal {
    /// There is a file, and nobody asked to replace it.
    Exists,
    /// There is a file that Narrows did not write.
    Foreign,
    /// There is something that is no file.
    NoFile(EntryKind),
    /// A symbolic link to nothing.
    Dangling,
    /// A file to which this program's standard output or its messages go.
    OwnStream,
    /// The path has no name of a file.
    Nameless,
    /// The folder does not exist.
    NoFolder,
    /// The file system does not say.
    Unknown(io::Error),
}

/// How a caller names what may be chosen instead: another `--out`, `--force`.
#[derive(Clone, Copy, Debug)]
pub struct Remedy<'a> {
    /// Another one of these.
    pub other: &'a str,
    /// Asks to replace a file.
    pub force: &'a str,
}

impl Refusal {
    /// What is wrong, without the path, and what is allowed instead.
    pub fn explain(&self, Remedy { other, force }: Remedy<'_>) -> String {
        match self {
            Refusal::Exists => format!("exists; choose another {other}, or replace it with {force}"),
            Refusal::Foreign => {
                format!("was not written by narrows and is left alone; move it away or choose another {other}")
            }
            Refusal::NoFile(kind) => format!("is {}, not a file; choose another {other}", kind.name()),
            Refusal::Dangling => format!("is a symbolic link to nowhere; choose another {other}"),
            Refusal::OwnStream => format!("is where this command's own output goes; choose another {other}"),
            Refusal::Nameless => format!("is no name of a file; choose another {other}"),
            Refusal::NoFolder => "cannot be made: there is no such folder".to_owned(),
            Refusal::Unknown(error) => format!("cannot be examined: {error}"),
        }
    }

    /// The refusal as an error of the file system.
    pub fn into_io(self, remedy: Remedy<'_>) -> io::Error {
        let kind = match &self {
            Refusal::Unknown(error) => error.kind(),
            Refusal::NoFolder => ErrorKind::NotFound,
            Refusal::Exists => ErrorKind::AlreadyExists,
            _ => ErrorKind::InvalidInput,
        };
        io::Error::new(kind, self.explain(remedy))
    }
}

/// Remedies of calls that know neither flags nor arguments.
const PLAIN: Remedy<'_> = Remedy { other: "file", force: "force" };

/// A place at which a file may be written.
#[derive(Clone, Debug)]
pub struct OutputFile {
    path: PathBuf,
    /// Without symbolic links: a rename would replace the link, not what it leads to.
    real: PathBuf,
    existing: Existing,
}

impl OutputFile {
    /// Checks that a file may be written here. Nothing is changed, so a command does this before its work.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check(path: &Path, existing: Existing) -> Result<OutputFile, Refusal> {
        let kind = EntryKind::at(path).map_err(Refusal::Unknown)?;
        let kind = match kind {
            Some(EntryKind::Link) => Some(EntryKind::behind(path).map_err(Refusal::Unknown)?.ok_or(Refusal::Dangling)?),
            kind => kind,
        };
        let real = match kind {
            None => absent(path)?,
            Some(EntryKind::File) => fs::canonicalize(path).map_err(Refusal::Unknown)?,
            Some(kind) => return Err(Refusal::NoFile(kind)),
        };
        if kind.is_some() {
            may_be_replaced(&real, existing)?;
        }
        Ok(OutputFile { path: path.to_owned(), real, existing })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path without symbolic links.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Writes the file, which appears when it is whole.
    ///
    /// # Errors
    /// The writer's, the file system's, or the refusal of something that has appeared since the check.
    pub fn write<T>(&self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
        let part = Part::beside(&self.real)?;
        let mut to = BufWriter::with_capacity(1 << 18, part.file.try_clone()?);
        let written = write(&mut to)?;
        to.flush()?;
        part.file.sync_all()?;
        self.put(part)?;
        Ok(written)
    }

    /// Makes the file, empty, for bytes that come as time goes on. One that was there is replaced.
    ///
    /// # Errors
    /// The file system's, or the refusal of something that has appeared since the check.
    pub fn create(&self) -> io::Result<File> {
        let part = Part::beside(&self.real)?;
        let file = part.file.try_clone()?;
        self.put(part)?;
        Ok(file)
    }

    /// Renames the new file to its place.
    fn put(&self, part: Part) -> io::Result<()> {
        match self.existing {
            Existing::Keep => rename_new(&part.path, &self.real)?,
            Existing::Replace(_) => {
                // Something may have appeared meanwhile. The link was followed once, at the check.
                match EntryKind::at(&self.real)? {
                    None => {}
                    Some(EntryKind::File) => {
                        may_be_replaced(&self.real, self.existing).map_err(|why| why.into_io(PLAIN))?
                    }
                    Some(kind) => return Err(Refusal::NoFile(kind).into_io(PLAIN)),
                }
                fs::rename(&part.path, &self.real)?;
            }
        }
        part.keep();
        Ok(())
    }
}

/// Writes a new file; whatever has its name is an error and stays as it is.
///
/// # Errors
/// The file system's.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a new file; whatever has its name is an error and stays as it is.
///
/// # Errors
/// The file system's.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Opens a file for reading and appending, and makes it if there is none. A link is followed; anything but a regular file is refused.
///
/// # Errors
/// The file system's, or `InvalidInput` for what is no file.
pub fn append(path: &Path) -> io::Result<File> {
    if let Some(kind) = EntryKind::behind(path)?.filter(|kind| *kind != EntryKind::File) {
        return Err(Refusal::NoFile(kind).into_io(PLAIN));
    }
    unhurried().read(true).append(true).create(true).open(path)
}

/// The text of a regular file of at most this many bytes; a device or a FIFO might never end.
///
/// # Errors
/// The file system's, or `InvalidInput` for what is no file or is longer.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    if let Some(kind) = EntryKind::behind(path)?.filter(|kind| *kind != EntryKind::File) {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {}, not a file", kind.name())));
    }
    let mut text = String::new();
    let read = unhurried().read(true).open(path)?.take(most + 1).read_to_string(&mut text)?;
    if read as u64 > most {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("it is longer than {most} bytes")));
    }
    Ok(text)
}

/// Makes a folder beside a place, under a name that nobody has.
///
/// # Errors
/// The file system's.
pub fn new_folder_beside(place: &Path) -> io::Result<PathBuf> {
    free_name(place, |path| fs::create_dir(path)).map(|(path, ())| path)
}

/// Whether these first bytes of a file belong to a qlog that Narrows has written.
pub fn is_qlog(head: &[u8]) -> bool {
    /// Begins every record (RFC 7464 §2.2).
    const RECORD_SEPARATOR: u8 = 0x1e;
    let program = b"\"title\":\"narrows ";
    head.first() == Some(&RECORD_SEPARATOR) && head.windows(program.len()).any(|bytes| bytes == program)
}

/// The real path of a file that does not exist yet.
fn absent(path: &Path) -> Result<PathBuf, Refusal> {
    let name = path.file_name().ok_or(Refusal::Nameless)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Refusal::NoFolder);
    }
    fs::canonicalize(folder).map(|folder| folder.join(name)).map_err(Refusal::Unknown)
}

/// Judges a regular file.
fn may_be_replaced(real: &Path, existing: Existing) -> Result<(), Refusal> {
    let Existing::Replace(is_own) = existing else { return Err(Refusal::Exists) };
    let file = unhurried().read(true).open(real).map_err(Refusal::Unknown)?;
    if is_own_stream(&file) {
        return Err(Refusal::OwnStream);
    }
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head).map_err(Refusal::Unknown)?;
    if head.is_empty() || is_own(&head) { Ok(()) } else { Err(Refusal::Foreign) }
}

/// A new file beside its place, removed unless it gets there.
struct Part {
    file: File,
    path: PathBuf,
    stays: bool,
}

impl Part {
    fn beside(place: &Path) -> io::Result<Part> {
        free_name(place, create_new).map(|(path, file)| Part { file, path, stays: false })
    }

    fn keep(mut self) {
        self.stays = true;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.stays {
            // The error that led here is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes something beside a place, under a random name that is free.
fn free_name<T>(place: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    for _ in 0..ATTEMPTS {
        // Keys of a new hasher are random.
        let path = place.with_file_name(format!(".narrows-{:016x}.part", RandomState::new().hash_one(())));
        match make(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (path, made)),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "no name is free for a new file"))
}

/// Attempts to find a free name.
const ATTEMPTS: u32 = 100;

/// Options with which a FIFO without another end does not wait.
#[cfg(unix)]
fn unhurried() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    options
}

#[cfg(not(unix))]
fn unhurried() -> OpenOptions {
    OpenOptions::new()
}

/// Renames if the new name is free; a file system that cannot do this in one step makes a second name first.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => link_new(from, to),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    link_new(from, to)
}

fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // A file system with neither: the check comes just before the rename.
        Err(_) if EntryKind::at(to)?.is_none() => fs::rename(from, to),
        Err(_) => Err(ErrorKind::AlreadyExists.into()),
    }
}

/// Whether standard output or standard error goes into this file.
#[cfg(unix)]
fn is_own_stream(file: &File) -> bool {
    let Ok(file) = rustix::fs::fstat(file) else { return false };
    let streams = [rustix::fs::fstat(io::stdout()), rustix::fs::fstat(io::stderr())];
    streams.iter().flatten().any(|stream| (stream.st_dev, stream.st_ino) == (file.st_dev, file.st_ino))
}

#[cfg(not(unix))]
fn is_own_stream(_: &File) -> bool {
    false
}

#[cfg(test)]
mod tests;
