//! What has been done to an interface, as a file: what was there before and what was made, so that all of it can be undone.
//!
//! The file is written before the first change and again when more is known. If there is a file and no qdisc in the kernel, an
//! attachment was interrupted or somebody removed the qdisc, and the rest has to be undone.
use crate::layout::Layout;
use crate::names::Direction;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of the files. It is empty after a restart, as the kernel's side is.
pub const FOLDER: &str = "/run/narrows/qdisc";

/// One attachment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attachment {
    /// Of this file: [`VERSION`].
    pub version: u32,
    /// The interface that was asked for.
    pub interface: String,
    /// Its number.
    pub index: u32,
    /// Which of its packets.
    pub direction: Direction,
    /// The device at whose root the qdisc is: the interface, or the ifb device that its received packets are redirected to.
    pub device: String,
    /// Its number; zero until the ifb device is there.
    pub device_index: u32,
    /// The queue with parameters, as on the command line.
    pub queue: String,
    /// The program's name.
    pub program: String,
    /// The qdisc's name in the kernel; empty until it is registered.
    pub id: String,
    /// The shaper's rate, bit/s.
    pub rate_bit_s: Option<u64>,
    /// What the shaper adds to each packet's length, bytes.
    pub overhead_bytes: i32,
    /// What was there.
    pub before: Before,
    /// A `clsact` was put at the interface's ingress.
    pub made_clsact: bool,
    /// Everything has been done.
    pub complete: bool,
    /// Where the program's variables are.
    pub layout: Layout,
}

/// What was changed, as it had been.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Before {
    /// Most segments in a packet that senders hand to the device.
    pub gso_max_segs: Option<u32>,
    /// Most bytes in a packet joined from received ones: for IPv6, for IPv4.
    pub gro_max_sizes: Option<(u32, u32)>,
    /// A qdisc that somebody had put at the root.
    pub root: Option<Root>,
}

/// A qdisc that was replaced.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Root {
    /// Its name.
    pub kind: String,
    /// Its number.
    pub handle: u32,
    /// Its options as sent over netlink.
    pub options: Vec<u8>,
}

/// Of the file's form.
pub const VERSION: u32 = 1;

impl Attachment {
    /// Writes it in place of an earlier version, in one step.
    ///
    /// # Errors
    /// When the folder cannot be made or the file cannot be written.
    pub fn write(&self, folder: &Path, key: &str) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let unfinished = folder.join(format!("{key}.new"));
        fs::write(&unfinished, serde_json::to_vec_pretty(self)?)?;
        fs::rename(unfinished, path(folder, key))
    }

    /// Reads one; `None` if there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or is not one of this version.
    pub fn read(folder: &Path, key: &str) -> io::Result<Option<Attachment>> {
        let path = path(folder, key);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let wrong = |told: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {told}", path.display()));
        let attachment: Attachment = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if attachment.version != VERSION {
            return Err(wrong(format!(
                "written by another version of narrows ({}), which can detach",
                attachment.version
            )));
        }
        Ok(Some(attachment))
    }

    /// Removes the file.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn remove(folder: &Path, key: &str) -> io::Result<()> {
        match fs::remove_file(path(folder, key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The keys of all attachments, sorted.
///
/// # Errors
/// When the folder is there and cannot be read.
pub fn keys(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut keys = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        keys.extend(name.to_str().and_then(|name| name.strip_suffix(SUFFIX)).map(str::to_owned));
    }
    keys.sort();
    Ok(keys)
}

fn path(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("{key}{SUFFIX}"))
}

const SUFFIX: &str = ".json";

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn attachment() -> Attachment {
        Attachment {
            version: VERSION,
            interface: "eth0".into(),
            index: 2,
            direction: Direction::Egress,
            device: "eth0".into(),
            device_index: 2,
            queue: "cocoa".into(),
            program: "cocoa".into(),
            id: "nw_cocoa.2".into(),
            rate_bit_s: Some(10_000_000),
            overhead_bytes: 18,
            before: Before {
                gso_max_segs: Some(65_535),
                gro_max_sizes: Some((65_536, 65_536)),
                root: Some(Root { kind: "fq_codel".into(), handle: 0x8001_0000, options: vec![8, 0, 1, 0] }),
            },
            made_clsact: false,
            complete: true,
            layout: Layout::default(),
        }
    }

    /// A folder of the test's own, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("narrows-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let folder = Folder::new("attachment");
        assert_eq!(Attachment::read(&folder.0, "eth0").expect("a folder"), None);
        let mut attachment = attachment();
        attachment.write(&folder.0, "eth0").expect("written");
        attachment.id = "nw_cocoa.2a".into();
        attachment.write(&folder.0, "eth0").expect("written again");
        assert_eq!(Attachment::read(&folder.0, "eth0").expect("read"), Some(attachment));
        assert_eq!(keys(&folder.0).expect("keys"), ["eth0"]);
        Attachment::remove(&folder.0, "eth0").expect("removed");
        Attachment::remove(&folder.0, "eth0").expect("nothing to remove");
        assert_eq!(keys(&folder.0).expect("keys"), [""; 0]);
    }

    #[test]
    fn another_versions_file_is_refused() {
        let folder = Folder::new("version");
        let other = Attachment { version: VERSION + 1, ..attachment() };
        other.write(&folder.0, "eth0").expect("written");
        let error = Attachment::read(&folder.0, "eth0").expect_err("refused").to_string();
        assert!(error.contains("eth0.json: written by another version of narrows (2)"), "{error}");
        fs::write(folder.0.join("eth0.json"), "{").expect("written");
        assert!(Attachment::read(&folder.0, "eth0").is_err());
    }

    #[test]
    fn no_folder_is_no_attachment() {
        assert_eq!(keys(Path::new("/nonexistent/narrows")).expect("none"), [""; 0]);
    }
}
