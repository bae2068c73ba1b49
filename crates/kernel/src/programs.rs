//! The user's programs, found on the host: which files of its file system the guest needs to run them.
//!
//! A program is looked up as the live world does it, in `PATH` or from the working directory. What it needs is what the kernel and the dynamic
//! loader need to start it: the interpreter of a script, the shared libraries of a binary. Files that the command line names are taken along.
//! What a program opens while it runs, and programs that it starts, are not known before it runs.
use crate::initramfs::libraries;
use crate::message::Surroundings;
use narrows_host::layout::Layout;
use narrows_scenario::Scenario;
use narrows_scenario::command::{CommandLine, Fill};
use rustix::fs::{Access, access};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Where the loader finds libraries that are in none of its own folders.
const LOADERS_CACHE: &str = "/etc/ld.so.cache";
/// The most bytes of a script's first line that the kernel reads (`BINPRM_BUF_SIZE`).
const FIRST_LINE: u64 = 256;
/// Interpreters of interpreters that are followed, as the kernel does it.
const DEPTH: usize = 5;

/// The host as programs see it.
pub(crate) struct Host {
    path: Vec<PathBuf>,
    folder: PathBuf,
}

impl Host {
    /// The host as this process sees it.
    pub(crate) fn here() -> Result<Host, String> {
        let folder = std::env::current_dir().map_err(|error| format!("cannot find the working directory: {error}"))?;
        let path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
        Ok(Host { path, folder })
    }

    /// What the programs of a guest find around them: this process's environment and working directory. What is not text is left out. So is
    /// the locale, because the guest does not have its files.
    pub(crate) fn surroundings(&self) -> Surroundings {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Surroundings {
            environment: std::env::vars_os().filter_map(text).filter(|(name, _)| !is_locale(name)).collect(),
            folder: self.folder.to_string_lossy().into_owned(),
        }
    }

    /// The files of the host that a scenario's programs need; none if it has no programs.
    ///
    /// # Errors
    /// Names the flow, and the program, interpreter or library that is missing.
    pub(crate) fn files(&self, scenario: &Scenario, layout: &Layout) -> Result<BTreeSet<PathBuf>, String> {
        let mut files = BTreeSet::new();
        for flow in &layout.flows {
            let group = &scenario.flows[flow.group];
            let fill = Fill { peer: flow.receiver, duration: flow.stop.since(flow.start), n: flow.member };
            for line in group.programs() {
                self.line(line, &fill, &mut files).map_err(|what| format!("flow \"{}\": {what}", group.name))?;
            }
        }
        if !files.is_empty() && Path::new(LOADERS_CACHE).is_file() {
            files.insert(LOADERS_CACHE.into());
        }
        Ok(files)
    }

    fn line(&self, line: &CommandLine, fill: &Fill, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
        let argv = line.argv(fill);
        let Some((program, arguments)) = argv.split_first() else { return Ok(()) };
        self.program(program, files)?;
        for path in arguments.iter().map(|word| self.folder.join(word)).filter(|path| path.is_file()) {
            // It may be a program, which the other one starts. If that cannot be started, the run says so.
            let mut needed = BTreeSet::new();
            if can_run(&path) && self.needs(&path, DEPTH, &mut needed).is_ok() {
                files.extend(needed);
            }
            files.insert(plain(&path));
        }
        Ok(())
    }

    /// A program by its name, and what it needs.
    fn program(&self, name: &str, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
        let path = if name.contains('/') {
            let path = self.folder.join(name);
            match (path.is_file(), can_run(&path)) {
                (false, _) => return Err(format!("there is no program `{name}`")),
                (true, false) => return Err(format!("`{name}` may not be executed")),
                (true, true) => path,
            }
        } else {
            let mut there = self.path.iter().map(|folder| self.folder.join(folder).join(name));
            there.find(|path| can_run(path)).ok_or_else(|| format!("there is no program `{name}`"))?
        };
        self.needs(&path, DEPTH, files)
    }

    /// Adds a program's file and the files that are needed to start it.
    fn needs(&self, path: &Path, depth: usize, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
        if files.contains(&plain(path)) {
            return Ok(());
        }
        let shown = path.display();
        let unread = |error: io::Error| format!("cannot read `{shown}`: {error}");
        let mut head = Vec::new();
        File::open(path).and_then(|file| file.take(FIRST_LINE).read_to_end(&mut head)).map_err(unread)?;
        if let Some(line) = head.strip_prefix(b"#!") {
            let line =
                String::from_utf8_lossy(line.split(|&byte| byte == b'\n').next().unwrap_or_default()).into_owned();
            let mut words = line.split_whitespace();
            let interpreter = words.next().ok_or_else(|| format!("the script `{shown}` names no interpreter"))?;
            let missing = |what: String| format!("the script `{shown}` needs `{}`: {what}", line.trim());
            if depth == 0 {
                return Err(missing("too many interpreters".into()));
            }
            let at = self.folder.join(interpreter);
            if !can_run(&at) {
                return Err(missing(format!("there is no program `{interpreter}`")));
            }
            self.needs(&at, depth - 1, files).map_err(missing)?;
            if at.file_name().is_some_and(|name| name == "env") {
                // `env -S name`, `env NAME=value name`
                let mut names = words.filter(|word| !word.starts_with('-') && !word.contains('='));
                if let Some(name) = names.next() {
                    self.program(name, files).map_err(missing)?;
                }
            }
        } else if head.starts_with(b"\x7fELF") {
            files.extend(libraries(path).map_err(|error| error.to_string())?);
        } else {
            return Err(format!("`{shown}` is neither a program nor a script that names its interpreter"));
        }
        files.insert(plain(path));
        Ok(())
    }
}

/// Without `.` between folders.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

fn is_locale(name: &str) -> bool {
    name.starts_with("LANG") || name.starts_with("LC_")
}

fn can_run(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    /// A folder with programs, removed at the end.
    struct Place(Host);

    impl Place {
        fn new(name: &str) -> Place {
            let folder = std::env::temp_dir().join(format!("narrows-programs-{}-{name}", std::process::id()));
            fs::create_dir_all(folder.join("bin")).expect("a folder");
            let path = vec![folder.join("bin"), "/usr/bin".into(), "/bin".into()];
            Place(Host { path, folder })
        }

        fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
            let path = self.0.folder.join(name);
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            path
        }

        fn line(&self, text: &str) -> Result<BTreeSet<PathBuf>, String> {
            let line = CommandLine::parse(text).expect("a command line");
            let fill = Fill { peer: [10, 2, 0, 1].into(), duration: narrows_core::Span::s(1), n: 0 };
            let mut files = BTreeSet::new();
            self.0.line(&line, &fill, &mut files).map(|()| files)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.folder);
        }
    }

    #[test]
    fn a_program_comes_with_its_libraries_and_the_files_that_it_is_told() {
        let place = Place::new("libraries");
        let data = place.write("data.bin", "some bytes", 0o644);
        let files = place.line("cat data.bin {peer} absent").expect("there is cat");
        assert!(files.contains(&data), "{files:?}");
        assert!(files.iter().any(|file| file.ends_with("bin/cat")), "{files:?}");
        let has_libc = files.iter().any(|file| file.to_string_lossy().contains("libc.so"));
        assert_eq!(has_libc, !libraries(Path::new("/bin/cat")).expect("ldd").is_empty(), "{files:?}");
    }

    #[test]
    fn a_script_comes_with_its_interpreters() {
        let place = Place::new("scripts");
        let inner = place.write("bin/inner", "#!/bin/sh -e\n", 0o755);
        let outer = place.write("outer", "#!/usr/bin/env -S inner\necho\n", 0o755);
        let files = place.line("./outer").expect("all are there");
        for file in [inner, outer, "/bin/sh".into(), "/usr/bin/env".into()] {
            assert!(files.contains(&file), "{} in {files:?}", file.display());
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let place = Place::new("missing");
        let said = |text: &str| {
            place.line(text).expect_err("it is missing").replace(&*place.0.folder.to_string_lossy(), "HERE")
        };
        assert_eq!(said("no-such-program {peer}"), "there is no program `no-such-program`");
        assert_eq!(said("./no-such-program"), "there is no program `./no-such-program`");
        place.write("data", "x", 0o644);
        assert_eq!(said("./data"), "`./data` may not be executed");
        place.write("text", "echo 1\n", 0o755);
        assert_eq!(said("./text"), "`HERE/./text` is neither a program nor a script that names its interpreter");
        place.write("bin/script", "#!/no/such/interpreter -x\n", 0o755);
        assert_eq!(
            said("script"),
            "the script `HERE/bin/script` needs `/no/such/interpreter -x`: there is no program `/no/such/interpreter`"
        );
        place.write("bin/script", "#!/usr/bin/env no-such-interpreter\n", 0o755);
        assert_eq!(
            said("script"),
            "the script `HERE/bin/script` needs `/usr/bin/env no-such-interpreter`: there is no program `no-such-interpreter`"
        );
        place.write("bin/script", "#!/bin/sh", 0o755);
        let itself = place.0.folder.join("bin/script");
        place.write("bin/script", &format!("#!{}\n", itself.display()), 0o755);
        assert!(said("script").ends_with("too many interpreters"), "{}", said("script"));
    }
}
