//! What is handed out: a static program with its manual pages and completions, as an archive and as a package for Debian; and the Python
//! package as a wheel, where maturin is installed.
//!
//! The program is linked with musl, so that it runs on every Linux of its architecture. The archive is made by `tar` and the package
//! by `dpkg-deb`, which every Debian has; the folder that they pack stays beside them.
use crate::disk::{copy, copy_into, files, files_below, folder, fresh, write};
use crate::{cargo, needs_target, root, run, target_folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Shells, and where Debian's packages have their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/narrows"),
    ("zsh", "usr/share/zsh/vendor-completions/_narrows"),
    ("fish", "usr/share/fish/vendor_completions.d/narrows.fish"),
];
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// Files of the repository that come along.
const BESIDE: [&str; 2] = ["README.md", "CHANGELOG.md"];

/// Builds, and packs into `target/dist`. Without a target it is this machine's architecture with musl.
pub(crate) fn dist(flags: &[&str]) -> Result<String, String> {
    let Flags { target, profile } = Flags::parse(flags)?;
    let program = build(&target, profile)?;
    is_static(&program)?;
    let version = env!("CARGO_PKG_VERSION");
    let dist = root().join("target/dist");
    let name = format!("narrows-{version}-{target}");
    let tree = fresh(&dist.join(&name))?;
    copy(&program, &tree.join("narrows"))?;
    for file in LICENSES.iter().chain(&BESIDE) {
        copy(&root().join(file), &tree.join(file))?;
    }
    run(Command::new(&program).args(["man", "--out"]).arg(tree.join("man")))?;
    folder(&tree.join("completions"))?;
    for (shell, place) in COMPLETIONS {
        let file = Path::new(place).file_name().unwrap_or_default();
        // Bash's has the program's own name, which says nothing in a folder of several shells.
        let file = if shell == "bash" { Path::new("narrows.bash") } else { Path::new(file) };
        write(&tree.join("completions").join(file), &completions(&program, shell)?)?;
    }
    let archive = dist.join(format!("{name}.tar.gz"));
    run(Command::new("tar")
        .args(["--owner=0", "--group=0", "--sort=name", "-czf"])
        .arg(&archive)
        .arg("-C")
        .arg(&dist)
        .arg(&name))?;
    let mut made = vec![archive];
    match on_debian(&target) {
        Some(architecture) => made.push(package(&dist, &tree, &program, version, architecture)?),
        None => eprintln!("no package for Debian: {target} is none of its architectures known here"),
    }
    match wheel(&dist, &target, profile)? {
        Ok(wheel) => made.push(wheel),
        Err(why) => eprintln!("no Python wheel: {why}"),
    }
    Ok(made.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join("\n"))
}

/// The Python package for this machine's architecture and C library, or why there is none.
fn wheel(dist: &Path, target: &str, profile: &str) -> Result<Result<PathBuf, String>, String> {
    if !target.starts_with(std::env::consts::ARCH) {
        return Ok(Err(format!("{target} is of another architecture than this machine")));
    }
    if Command::new("maturin").arg("--version").output().is_err() {
        return Ok(Err("`pip install maturin`".to_owned()));
    }
    // Emptied, so that what lies there afterwards is this build's.
    let place = fresh(&dist.join("wheel"))?;
    let manifest = root().join("crates/python/Cargo.toml");
    let mut command = Command::new("maturin");
    command.args(["build", "--profile", profile, "--manifest-path"]).arg(manifest).arg("--out").arg(&place);
    run(&mut command)?;
    let built = fs::read_dir(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let built = built.flatten().map(|entry| entry.path()).next().ok_or("maturin has made no wheel")?;
    let wheel = dist.join(built.file_name().unwrap_or_default());
    copy(&built, &wheel)?;
    Ok(Ok(wheel))
}

struct Flags<'a> {
    target: String,
    profile: &'a str,
}

impl<'a> Flags<'a> {
    fn parse(flags: &[&'a str]) -> Result<Flags<'a>, String> {
        let mut parsed = Flags { target: format!("{}-unknown-linux-musl", std::env::consts::ARCH), profile: "lto" };
        for pair in flags.chunks(2) {
            match pair {
                ["--target", target] => parsed.target = (*target).to_owned(),
                ["--profile", profile] => parsed.profile = profile,
                _ => return Err(format!("{}: allowed: --target TRIPLE, --profile PROFILE", pair.join(" "))),
            }
        }
        Ok(parsed)
    }
}

/// The program, built for a target.
fn build(target: &str, profile: &str) -> Result<PathBuf, String> {
    needs_target(target)?;
    // The C parts of `ring` need a compiler for musl; its name is that of Debian's package musl-tools.
    if target.ends_with("-musl") && !Command::new("musl-gcc").arg("-v").output().is_ok_and(|out| out.status.success()) {
        return Err("musl-gcc is missing: on Debian the package musl-tools has it".to_owned());
    }
    let mut cargo = cargo();
    cargo.args(["build", "--package", "narrows", "--locked", "--target", target, "--profile", profile]);
    // Line numbers would make up most of the file; the names of functions stay.
    cargo.arg("--config").arg(format!("profile.{profile}.strip=\"debuginfo\""));
    run(&mut cargo)?;
    // Cargo's folder for the profile `dev` has another name.
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target_folder().join(target).join(folder).join("narrows"))
}

/// A program without an interpreter in its ELF header needs no library of the system.
fn is_static(program: &Path) -> Result<(), String> {
    let headers = Command::new("readelf").args(["-l", "-W"]).arg(program).output();
    let headers = headers.map_err(|error| format!("readelf does not start: {error}"))?;
    if String::from_utf8_lossy(&headers.stdout).contains("INTERP") {
        Err(format!("{} is not static; allowed: a target such as x86_64-unknown-linux-musl", program.display()))
    } else {
        Ok(())
    }
}

fn completions(program: &Path, shell: &str) -> Result<Vec<u8>, String> {
    let output = Command::new(program).args(["completions", shell]).output();
    let output = output.map_err(|error| format!("{} does not start: {error}", program.display()))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("completions of {shell}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Debian's name of the target's architecture.
fn on_debian(target: &str) -> Option<&'static str> {
    let known = [("x86_64-", "amd64"), ("aarch64-", "arm64"), ("riscv64gc-", "riscv64")];
    known.into_iter().find(|(start, _)| target.starts_with(start)).map(|(_, name)| name)
}

/// `narrows_VERSION_ARCHITECTURE.deb`.
fn package(dist: &Path, tree: &Path, program: &Path, version: &str, architecture: &str) -> Result<PathBuf, String> {
    let base = fresh(&dist.join("deb"))?;
    copy_into(program, &base.join("usr/bin/narrows"))?;
    for (shell, place) in COMPLETIONS {
        let place = base.join(place);
        folder(place.parent().unwrap_or(&base))?;
        write(&place, &completions(program, shell)?)?;
    }
    for page in files(&tree.join("man"))? {
        let to = base.join("usr/share/man/man1").join(page.file_name().unwrap_or_default());
        copy_into(&page, &to)?;
        // Debian's manual pages are compressed; without a name and a time in them, the same pages are the same bytes.
        run(Command::new("gzip").arg("-9n").arg(&to))?;
    }
    let docs = base.join("usr/share/doc/narrows");
    for file in LICENSES.iter().chain(&BESIDE) {
        copy_into(&root().join(file), &docs.join(file))?;
    }
    let copyright = "Narrows, by the Narrows developers.\n\nLicensed under the MIT licence (LICENSE-MIT) or the Apache licence 2.0\n\
                     (LICENSE-APACHE, also /usr/share/common-licenses/Apache-2.0), at your option.\n";
    write(&docs.join("copyright"), copyright.as_bytes())?;
    let size = files_below(&base)?.iter().map(|file| fs::metadata(file).map_or(0, |data| data.len())).sum::<u64>();
    let control = format!(
        "Package: narrows\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: the Narrows developers <nobody@localhost>\n\
         Section: net\nPriority: optional\nInstalled-Size: {}\nSuggests: iperf3, iproute2, qemu-system-x86\n\
         Description: bottleneck queues and congestion control, simulated and real\n \
         Runs any queue discipline against any congestion control, from one scenario\n \
         file, in a deterministic simulator, in real time, or in a Linux kernel of a\n \
         virtual machine, and shows what they do to each other.\n",
        size.div_ceil(1024)
    );
    folder(&base.join("DEBIAN"))?;
    write(&base.join("DEBIAN/control"), control.as_bytes())?;
    let file = dist.join(format!("narrows_{version}_{architecture}.deb"));
    run(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&base).arg(&file))?;
    Ok(file)
}
