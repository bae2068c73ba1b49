//! The system calls for publishing results, one method for each.
//!
//! No method follows a symbolic link as the last component of its path, and none waits for the other end of a FIFO. A call
//! interrupted by a signal is repeated. The unit tests make each of these calls fail, or make it the last one before the process
//! is killed.
use crate::failure::Failure;
use narrows_files::EntryKind;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A call that failed, and its path.
#[derive(Debug)]
pub(super) struct DiskError {
    pub(super) path: PathBuf,
    pub(super) error: io::Error,
}

impl From<DiskError> for Failure {
    fn from(fault: DiskError) -> Failure {
        Failure::write(&fault.path, &fault.error)
    }
}

/// The result of a call.
pub(super) type Done<T> = Result<T, DiskError>;

/// The result of locking a file.
#[derive(Debug)]
pub(super) enum Lock {
    /// Locked by this process until the file is closed.
    Held(File),
    /// Locked by another process.
    Busy,
    /// The file or its folder was removed meanwhile.
    Gone,
    /// The file system has no locks.
    None,
}

/// The file system operations that publishing needs.
#[derive(Clone, Default)]
pub(super) struct Disk {
    #[cfg(test)]
    pub(super) faults: std::sync::Arc<super::tests::Faults>,
}

impl Disk {
    /// Makes a call, and repeats it if a signal interrupts it.
    fn call<T>(&self, path: &Path, mut call: impl FnMut() -> io::Result<T>) -> Done<T> {
        loop {
            #[cfg(test)]
            let result = self.faults.before().and_then(|()| call());
            #[cfg(not(test))]
            let result = call();
            match result {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other.map_err(|error| DiskError { path: path.to_path_buf(), error }),
            }
        }
    }

    /// The kind of `path`, which may be a link; `None` if it does not exist.
    pub(super) fn kind(&self, path: &Path) -> Done<Option<EntryKind>> {
        self.call(path, || EntryKind::at(path))
    }

    /// The names in a folder, sorted.
    pub(super) fn list(&self, dir: &Path) -> Done<Vec<OsString>> {
        self.call(dir, || {
            let mut names =
                fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<OsString>>>()?;
            names.sort();
            Ok(names)
        })
    }

    /// Makes a folder; `false` if the name exists.
    pub(super) fn create_folder(&self, path: &Path) -> Done<bool> {
        self.call(path, || match fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            other => other.map(|()| true),
        })
    }

    /// Makes a new file and syncs it to the disk.
    pub(super) fn create_file(&self, path: &Path, bytes: &[u8]) -> Done<()> {
        let mut file = self.call(path, || narrows_files::create_new(path))?;
        self.call(path, || file.write_all(bytes))?;
        self.call(path, || file.sync_all())
    }

    /// Opens a file for appending.
    pub(super) fn append(&self, path: &Path) -> Done<File> {
        self.regular(path)?;
        self.call(path, || careful().append(true).create(true).open(path))
    }

    /// The bytes of a regular file; `None` if the name does not exist.
    pub(super) fn read(&self, path: &Path) -> Done<Option<Vec<u8>>> {
        if !self.regular(path)? {
            return Ok(None);
        }
        let mut file = self.call(path, || careful().read(true).open(path))?;
        let mut bytes = Vec::new();
        self.call(path, || {
            bytes.clear();
            file.read_to_end(&mut bytes)
        })?;
        Ok(Some(bytes))
    }

    /// Whether there is a regular file. Any other kind of entry is an error.
    fn regular(&self, path: &Path) -> Done<bool> {
        match self.kind(path)? {
            None => Ok(false),
            Some(EntryKind::File) => Ok(true),
            Some(kind) => {
                let message = format!("it is {}, not a file", kind.name());
                Err(DiskError { path: path.to_path_buf(), error: io::Error::new(ErrorKind::InvalidInput, message) })
            }
        }
    }

    /// Syncs a file's contents or a folder's entries to the disk.
    pub(super) fn sync(&self, path: &Path) -> Done<()> {
        let file = self.call(path, || careful().read(true).open(path))?;
        self.call(path, || match file.sync_all() {
            // Some file systems cannot sync folders; they would promise nothing more.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            other => other,
        })
    }

    /// Renames. An empty folder at the new path is replaced, as `rename(2)` does.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> Done<()> {
        self.call(to, || fs::rename(from, to))
    }

    /// Exchanges two folders in one step; `false` if this system or file system cannot.
    pub(super) fn exchange(&self, one: &Path, other: &Path) -> Done<bool> {
        #[cfg(test)]
        if self.faults.without_exchange() {
            return Ok(false);
        }
        self.call(other, || exchange(one, other))
    }

    /// Removes a file, or the link itself. A missing one is not an error.
    pub(super) fn remove_file(&self, path: &Path) -> Done<()> {
        self.call(path, || gone(fs::remove_file(path)))
    }

    /// Removes an empty folder. A missing one is not an error.
    pub(super) fn remove_folder(&self, path: &Path) -> Done<()> {
        self.call(path, || gone(fs::remove_dir(path)))
    }

    /// Removes whatever is there, without following links.
    pub(super) fn remove_all(&self, path: &Path) -> Done<()> {
        match self.kind(path)? {
            None => Ok(()),
            Some(EntryKind::Folder) => self.call(path, || gone(fs::remove_dir_all(path))),
            Some(_) => self.remove_file(path),
        }
    }

    /// Gives a folder the permissions of another one, if that exists.
    pub(super) fn adopt_mode(&self, folder: &Path, from: &Path) -> Done<()> {
        match self.call(from, || fs::metadata(from)) {
            Ok(found) => self.call(folder, || fs::set_permissions(folder, found.permissions())),
            Err(fault) if fault.error.kind() == ErrorKind::NotFound => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Makes a symbolic link at a path that does not exist.
    pub(super) fn link(&self, to: &Path, at: &Path) -> Done<()> {
        self.call(at, || symlink(to, at))
    }

    /// Locks a file. It is created if it does not exist, and never changed.
    pub(super) fn lock(&self, path: &Path) -> Done<Lock> {
        self.regular(path)?;
        let open = || match careful().read(true).write(true).create(true).truncate(false).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        };
        let Some(file) = self.call(path, open)? else { return Ok(Lock::Gone) };
        let locked = self.call(path, || match file.try_lock() {
            Ok(()) => Ok(Some(true)),
            Err(TryLockError::WouldBlock) => Ok(Some(false)),
            Err(TryLockError::Error(error)) if has_no_locks(&error) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        })?;
        match locked {
            Some(false) => return Ok(Lock::Busy),
            None => return Ok(Lock::None),
            Some(true) => {}
        }
        // The previous owner of the lock may have removed the file. Then this lock excludes nobody.
        if self.call(path, || same_file(&file, path))? { Ok(Lock::Held(file)) } else { Ok(Lock::Gone) }
    }
}

/// Options that neither follow a link nor wait for the other end of a FIFO.
#[cfg(unix)]
fn careful() -> OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

#[cfg(not(unix))]
fn careful() -> OpenOptions {
    OpenOptions::new()
}

/// Exchanges two names in one step on Linux and macOS, if the file system can.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
fn symlink(to: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn symlink(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// NFS and Lustre can be mounted without locks.
#[cfg(unix)]
fn has_no_locks(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::NOLCK, Errno::NOSYS, Errno::NOTSUP].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(not(unix))]
fn has_no_locks(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Unsupported
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn same_file(_: &File, path: &Path) -> io::Result<bool> {
    Ok(path.exists())
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
