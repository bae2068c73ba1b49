//! The guest's file system: this program, the tools it calls with their libraries, the files of the user's programs, kernel modules and the job,
//! as a cpio archive in memory.
use crate::kernels::Kernel;
use crate::message::{JOB, Job, MODULES, PLUGINS};
use crate::tools::find;
use cpio::newc::{Builder, ModeFileType, trailer};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs of the host that the guest calls.
const TOOLS: [&str; 2] = ["ip", "tc"];
/// Where a host has the tables of netem's distributions, which its `tc` reads: Debian's place, and iproute2's own.
const DISTRIBUTIONS: [&str; 3] = ["/usr/lib/x86_64-linux-gnu/tc", "/usr/lib/tc", "/usr/lib64/tc"];
/// Folders at the root, empty at first.
const FOLDERS: [&str; 7] = ["proc", "sys", "dev", "run", "tmp", "bin", "lab"];

/// An archive of the format `newc`, which the kernel unpacks.
struct Archive<W> {
    out: W,
    /// Names that are in it.
    names: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    fn folder(&mut self, name: &str) -> io::Result<()> {
        if name.is_empty() || !self.names.insert(name.to_owned()) {
            return Ok(());
        }
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.folder(parent)?;
        }
        let header = Builder::new(name).mode(0o755).set_mode_file_type(ModeFileType::Directory);
        header.write(&mut self.out, 0).finish().map(drop)
    }

    fn file(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.folder(parent)?;
        }
        if !self.names.insert(name.to_owned()) {
            return Ok(());
        }
        let len = u32::try_from(bytes.len()).map_err(|_| io::Error::other(format!("{name} is longer than 4 GB")))?;
        let header = Builder::new(name).mode(mode).set_mode_file_type(ModeFileType::Regular);
        let mut file = header.write(&mut self.out, len);
        file.write_all(bytes)?;
        file.finish().map(drop)
    }

    /// A program of the host, and the libraries that it is linked with, where they are.
    fn program(&mut self, name: &str, path: &Path) -> io::Result<()> {
        self.file(name, 0o755, &read(path)?)?;
        for library in libraries(path)? {
            self.file(&inside(&library), 0o755, &read(&library)?)?;
        }
        Ok(())
    }
}

/// Writes the archive for a job. `files` of the host are where they are there.
pub(crate) fn write(
    out: impl Write,
    program: &Path,
    kernel: &Kernel,
    modules: &[PathBuf],
    files: &BTreeSet<PathBuf>,
    job: &Job,
) -> io::Result<()> {
    let mut archive = Archive { out, names: BTreeSet::new() };
    FOLDERS.iter().try_for_each(|name| archive.folder(name))?;
    archive.program("init", program)?;
    for tool in TOOLS {
        archive.program(
            &format!("bin/{tool}"),
            &find(tool).ok_or_else(|| io::Error::other(format!("there is no program `{tool}`")))?,
        )?;
    }
    for module in modules {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("{}/{name}", &MODULES[1..]), 0o644, unsigned(&read(module)?))?;
    }
    for plugin in fs::read_dir(kernel.plugins()).into_iter().flatten().flatten() {
        let name = plugin.file_name().to_string_lossy().into_owned();
        archive.file(&format!("{}/{name}", &PLUGINS[1..]), 0o755, &read(&plugin.path())?)?;
    }
    for table in DISTRIBUTIONS.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten()) {
        let name = table.file_name().to_string_lossy().into_owned();
        if name.ends_with(".dist") {
            archive.file(&format!("{}/{name}", &PLUGINS[1..]), 0o644, &read(&table.path())?)?;
        }
    }
    for file in files {
        let mode = fs::metadata(file)?.permissions().mode() & 0o777;
        archive.file(&inside(file), mode, &read(file)?)?;
    }
    if let Some(surroundings) = &job.surroundings {
        archive.folder(&inside(Path::new(&surroundings.folder)))?;
    }
    archive.file(&JOB[1..], 0o644, &serde_json::to_vec(job)?)?;
    trailer(archive.out).map(drop)
}

/// A module without its signature, which an emulated processor would take long to check (Linux, include/linux/module_signature.h: the signature, a
/// header that ends with its length, a mark).
fn unsigned(module: &[u8]) -> &[u8] {
    const MARK: &[u8] = b"~Module signature appended~\n";
    const HEADER: usize = 12;
    let Some((signed, header)) = module.strip_suffix(MARK).and_then(|rest| rest.split_last_chunk::<HEADER>()) else {
        return module;
    };
    let length = header.last_chunk().map_or(0, |length| u32::from_be_bytes(*length) as usize);
    signed.len().checked_sub(length).map_or(module, |end| &signed[..end])
}

/// A path as the archive has it.
fn inside(path: &Path) -> String {
    path.to_string_lossy().trim_start_matches('/').to_owned()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// The shared libraries of a program and their loader; none of a static one.
pub(crate) fn libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = Command::new("ldd").arg(program).output()?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    if text.contains("not found") {
        return Err(io::Error::other(format!("{} lacks a library: {}", program.display(), text.trim())));
    }
    // "libm.so.6 => /lib/libm.so.6 (0x…)", "/lib64/ld-linux-x86-64.so.2 (0x…)"; the first column of other lines has no slash.
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(text.lines().filter_map(path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::newc::Reader;

    #[test]
    fn a_module_goes_without_its_signature() {
        let signed = |length: u32| {
            let header = [&[0; 8][..], &length.to_be_bytes()].concat();
            [b"module", b"signed", &header[..], b"~Module signature appended~\n"].concat()
        };
        assert_eq!(unsigned(&signed(6)), b"module");
        assert_eq!(unsigned(b"module"), b"module");
        // More than there is: a file that is damaged goes as it is, and the kernel says so.
        assert_eq!(unsigned(&signed(13)), signed(13));
        assert_eq!(unsigned(b"~Module signature appended~\n"), b"~Module signature appended~\n");
    }

    #[test]
    fn folders_come_before_what_is_in_them_and_nothing_twice() {
        let mut archive = Archive { out: Vec::new(), names: BTreeSet::new() };
        archive.file("lab/modules/a.ko", 0o644, b"abc").expect("memory");
        archive.file("lab/modules/a.ko", 0o644, b"xyz").expect("memory");
        archive.folder("lab").expect("memory");
        archive.file("init", 0o755, b"#").expect("memory");
        let bytes = trailer(archive.out).expect("memory");
        let (mut rest, mut names) = (&bytes[..], Vec::new());
        loop {
            let reader = Reader::new(rest).expect("an archive");
            if reader.entry().is_trailer() {
                break;
            }
            names.push((reader.entry().name().to_owned(), reader.entry().mode(), reader.entry().file_size()));
            rest = reader.finish().expect("an entry");
        }
        let folder = |name: &str| (name.to_owned(), 0o040_755, 0);
        let file = |name: &str, mode, size| (name.to_owned(), mode, size);
        assert_eq!(
            names,
            [folder("lab"), folder("lab/modules"), file("lab/modules/a.ko", 0o100_644, 3), file("init", 0o100_755, 1)]
        );
    }
}
