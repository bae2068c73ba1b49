//! Fetches a kernel from a distribution's packages, and builds our queue disciplines for it.
//!
//! `apt-get` does it, with a configuration of its own, so that the host's packages stay as they are. It takes the mirror that the host uses, and checks
//! signatures and digests as for any other package. The packages are unpacked, not installed.
use crate::kernels::{BUILT_IN, Kernel, Missing};
use crate::tools::{find, output, watched};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernel to fetch, and what to build for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelRequest {
    /// The release of Debian: `bookworm`, `trixie`. Its backports are used, too, if it has any.
    pub suite: String,
    /// How the kernel's release begins; the newest of all if `None`.
    pub release: Option<String>,
    /// The mirror; that of the host if `None`.
    pub mirror: Option<String>,
    /// The folder `crates/qdisc/c`, to build the modules and plug-ins in it.
    pub sources: Option<PathBuf>,
    /// Disciplines of Linux to build, if the kernel has been configured without them: `dualpi2`. They need `sources`, too.
    pub also: Vec<String>,
}

/// The kernel's flavour: the smallest with every queue discipline and congestion control.
const FLAVOUR: &str = "cloud-amd64";
/// Folders of a kernel's modules that a guest may need.
const MODULES: [&str; 8] =
    ["net/sched", "net/ipv4", "net/ipv6", "net/netfilter", "drivers/char", "drivers/net", "drivers/virtio", "lib"];

/// Shows how far a fetch is, and can end it.
pub trait Watch {
    /// A step begins.
    fn step(&mut self, what: &str);
    /// Called several times a second with the bytes of the step's files so far. The fetch goes on while this is true.
    fn go_on(&mut self, bytes: u64) -> bool;
}

/// Fetches a kernel into a lab's folder.
///
/// # Errors
/// Names the tool that is missing, or the step that failed with its last lines.
pub fn fetch(lab: &Path, request: &KernelRequest, watch: &mut dyn Watch) -> Result<Kernel, Missing> {
    let also = request.also.iter().map(|name| linux_module(name)).collect::<Result<Vec<_>, _>>()?;
    for (tool, package) in [("apt-get", "apt"), ("apt-cache", "apt"), ("dpkg-deb", "dpkg"), ("xz", "xz-utils")] {
        if find(tool).is_none() {
            return Err(Missing(format!(
                "there is no program `{tool}`; kernels come from Debian's packages (install {package})"
            )));
        }
    }
    let mirror = request.mirror.clone().map_or_else(mirror, Ok)?;
    let scratch = Scratch::new(lab)?;
    let apt = Apt::new(&scratch.0, &mirror, &request.suite)?;
    watch.step(&format!("reading the lists of {}", request.suite));
    apt.update(&mut || watch.go_on(size_below(&scratch.0)))?;
    let release = apt.newest(request.release.as_deref())?;
    let (names, bytes) = apt.packages(&release)?;
    watch.step(&format!("fetching Linux {release} ({:.0} MB)", bytes as f64 / 1e6));
    let packages = scratch.0.join("packages");
    apt.download(&names, &packages, &mut || watch.go_on(size_below(&packages)))?;
    watch.step("unpacking it");
    let unpacked = scratch.0.join("unpacked");
    for package in list(&packages)? {
        output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
    }
    let made = scratch.0.join("kernel");
    let kernel = Kernel { folder: lab.join("kernels").join(&release) };
    collect(&unpacked, &release, &made, watch)?;
    if let Some(sources) = &request.sources {
        watch.step("building the plug-ins for tc");
        build_plugins(sources, &scratch.0, &made.join("tc"))?;
        watch.step("building our modules in a chroot with the kernel's own compiler");
        let lacking: Vec<&str> = also.into_iter().filter(|name| !Kernel { folder: made.clone() }.has(name)).collect();
        let chroot = Chroot { sources, mirror: &mirror, suite: &request.suite, release: &release };
        let source = if lacking.is_empty() { None } else { Some(apt.source(&release)?) };
        let built = &mut || watch.go_on(size_below(&scratch.0.join("chroot")));
        chroot.build(&scratch.0, source.map(|source| (lacking, source)), &made.join("modules"), built)?;
    }
    // Complete or not there at all.
    let failed = |error: io::Error| Missing(format!("cannot write {}: {error}", kernel.folder.display()));
    fs::create_dir_all(lab.join("kernels")).map_err(failed)?;
    let old = scratch.0.join("old");
    if kernel.folder.exists() {
        fs::rename(&kernel.folder, &old).map_err(failed)?;
    }
    fs::rename(&made, &kernel.folder).map_err(failed)?;
    Ok(kernel)
}

/// A folder that is removed in the end.
struct Scratch(PathBuf);

/// Its name, before the number of its process.
const FETCHING: &str = "fetching-";

impl Scratch {
    fn new(lab: &Path) -> Result<Scratch, Missing> {
        remove_abandoned(lab);
        let folder = lab.join(format!("{FETCHING}{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| Missing(format!("cannot make {}: {error}", folder.display())))?;
        Ok(Scratch(folder))
    }
}

/// Removes the folders of processes that were killed.
fn remove_abandoned(lab: &Path) {
    let process = |path: &Path| path.file_name()?.to_str()?.strip_prefix(FETCHING)?.parse::<u32>().ok();
    for path in list(lab).unwrap_or_default() {
        if process(&path).is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // If it cannot be removed it does no harm.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Bytes of the files below a folder.
fn size_below(folder: &Path) -> u64 {
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    fs::read_dir(folder).map_or(0, |entries| entries.flatten().map(size).sum())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The mirror from which this host has its own Debian.
fn mirror() -> Result<String, Missing> {
    let told = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(SITE) $(RELEASE) $(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    of_debian(&told).ok_or_else(|| {
        Missing("no mirror of Debian is configured for apt on this host; name one with --mirror URL".into())
    })
}

/// The first repository that has a release itself, not its updates.
fn of_debian(told: &str) -> Option<String> {
    let line = told.lines().find(|line| {
        let mut words = line.split(' ');
        let release = words.nth(1).unwrap_or_default();
        ["bookworm", "trixie", "forky", "stable", "testing", "sid", "unstable"].contains(&release)
    })?;
    line.split(' ').nth(2).map(|uri| uri.trim_end_matches('/').to_owned())
}

/// `apt` with a configuration of its own.
struct Apt {
    configuration: PathBuf,
    default_release: String,
}

impl Apt {
    fn new(scratch: &Path, mirror: &str, suite: &str) -> Result<Apt, Missing> {
        let folder = scratch.join("apt");
        let write = || -> io::Result<PathBuf> {
            for name in ["lists/partial", "cache/archives/partial"] {
                fs::create_dir_all(folder.join(name))?;
            }
            fs::write(folder.join("status"), "")?;
            let backports =
                if suite == "bookworm" { String::new() } else { format!("deb {mirror} {suite}-backports main\n") };
            fs::write(folder.join("sources.list"), format!("deb {mirror} {suite} main\n{backports}"))?;
            let path = |name: &str| folder.join(name).display().to_string();
            let lines = [
                format!("Dir::Etc::SourceList \"{}\";", path("sources.list")),
                "Dir::Etc::SourceParts \"/dev/null\";".into(),
                "Dir::Etc::Preferences \"/dev/null\";".into(),
                "Dir::Etc::PreferencesParts \"/dev/null\";".into(),
                format!("Dir::State::Lists \"{}\";", path("lists")),
                format!("Dir::State::Status \"{}\";", path("status")),
                format!("Dir::Cache \"{}\";", path("cache")),
                "APT::Architecture \"amd64\";".into(),
                "APT::Architectures { \"amd64\"; };".into(),
                "APT::Sandbox::User \"root\";".into(),
                "Acquire::Languages \"none\";".into(),
                "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";".into(),
            ];
            let configuration = folder.join("apt.conf");
            fs::write(&configuration, lines.join("\n") + "\n")?;
            Ok(configuration)
        };
        let configuration = write().map_err(|error| Missing(format!("cannot write {}: {error}", folder.display())))?;
        let default_release = if suite == "bookworm" { suite.to_owned() } else { format!("{suite}-backports") };
        Ok(Apt { configuration, default_release })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.configuration).args([
            "-q",
            "-o",
            &format!("APT::Default-Release={}", self.default_release),
        ]);
        command
    }

    fn update(&self, go_on: &mut dyn FnMut() -> bool) -> Result<(), Missing> {
        // Without it, a list that cannot be fetched is only a warning.
        watched(self.command("apt-get").args(["update", "--error-on=any"]), go_on).map(drop)
    }

    /// The newest kernel whose release begins with this text.
    fn newest(&self, wanted: Option<&str>) -> Result<String, Missing> {
        let names = output(self.command("apt-cache").args(["pkgnames", "linux-image-"]))?;
        let mut releases = releases(&names);
        releases.sort_by_key(|release| crate::kernels::numbers(release));
        let found = releases.iter().rev().find(|release| wanted.is_none_or(|wanted| release.starts_with(wanted)));
        found.cloned().ok_or_else(|| {
            let known = if releases.is_empty() { "none".to_owned() } else { releases.join(", ") };
            Missing(format!("there is no kernel {}; allowed: {known}", wanted.unwrap_or(FLAVOUR)))
        })
    }

    /// The packages with the kernel and its modules, and their bytes.
    fn packages(&self, release: &str) -> Result<(BTreeSet<String>, u64), Missing> {
        let (mut found, mut open, mut bytes) = (BTreeSet::new(), vec![format!("linux-image-{release}")], 0);
        while let Some(name) = open.pop() {
            let about = output(self.command("apt-cache").args(["show", "--no-all-versions", &name]))?;
            open.extend(needed(&about, release).into_iter().filter(|needed| !found.contains(needed)));
            if found.insert(name) {
                bytes += size(&about);
            }
        }
        Ok((found, bytes))
    }

    /// The package with a kernel's source, in the same version.
    fn source(&self, release: &str) -> Result<String, Missing> {
        let image = format!("linux-image-{release}");
        source(release, &output(self.command("apt-cache").args(["show", "--no-all-versions", &image]))?)
    }

    fn download(
        &self,
        packages: &BTreeSet<String>,
        into: &Path,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Missing> {
        fs::create_dir_all(into).map_err(|error| Missing(format!("cannot make {}: {error}", into.display())))?;
        watched(self.command("apt-get").arg("download").args(packages).current_dir(into), go_on).map(drop)
    }
}

/// Releases of the flavour among names of packages.
fn releases(names: &str) -> Vec<String> {
    let release = |name: &str| {
        let release = name.strip_prefix("linux-image-")?;
        (release.ends_with(FLAVOUR) && release.starts_with(|c: char| c.is_ascii_digit())).then(|| release.to_owned())
    };
    names.lines().filter_map(release).collect()
}

/// Bytes of a package's file.
fn size(about: &str) -> u64 {
    about.lines().find_map(|line| line.strip_prefix("Size: ")?.trim().parse().ok()).unwrap_or_default()
}

/// The packages of the same release that a package depends on.
fn needed(about: &str, release: &str) -> Vec<String> {
    let depends = about.lines().filter_map(|line| line.strip_prefix("Depends: "));
    let names = depends.flat_map(|list| list.split([',', '|'])).filter_map(|one| one.split_whitespace().next());
    names.filter(|name| name.starts_with("linux-") && name.ends_with(release)).map(str::to_owned).collect()
}

/// The package with the source of a release: `linux-source-7.2=7.2.12-1~bpo13+1`, from what apt says about the image's package.
fn source(release: &str, about: &str) -> Result<String, Missing> {
    let series: Vec<&str> = release.splitn(3, '.').take(2).collect();
    let version = about.lines().find_map(|line| line.strip_prefix("Version: "));
    let version = version.ok_or_else(|| Missing(format!("apt does not know the version of linux-image-{release}")))?;
    Ok(format!("linux-source-{}={version}", series.join(".")))
}

/// The module of one of Linux's own disciplines.
fn linux_module(name: &str) -> Result<&'static str, Missing> {
    let modules = crate::queue::linux_modules();
    let found = modules.iter().find(|(known, _)| *known == name).map(|(_, module)| *module);
    found.ok_or_else(|| {
        let known: Vec<&str> = modules.iter().map(|(known, _)| *known).collect();
        Missing(format!("Linux has no module for a discipline \"{name}\"; allowed: {}", known.join(", ")))
    })
}

/// Takes the image and the modules out of unpacked packages.
fn collect(unpacked: &Path, release: &str, into: &Path, watch: &mut dyn Watch) -> Result<(), Missing> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| Missing(format!("{path}: {error}"))
    };
    let modules = into.join("modules");
    fs::create_dir_all(&modules).map_err(failed(&modules))?;
    let places = ["usr/lib/modules", "lib/modules"].map(|place| unpacked.join(place).join(release));
    let image = places
        .iter()
        .map(|place| place.join("vmlinuz"))
        .chain([unpacked.join("boot").join(format!("vmlinuz-{release}"))]);
    let image = image.into_iter().find(|path| path.is_file());
    let image = image.ok_or_else(|| Missing(format!("the packages of {release} have no image")))?;
    fs::copy(&image, into.join("vmlinuz")).map_err(failed(&image))?;
    if let Some(reason) = crate::image::unpack(&image, &into.join(crate::kernels::UNPACKED))? {
        watch.step(&format!("the kernel stays compressed, and starts two seconds later each time: {reason}"));
    }
    // The list of what is in the image itself.
    if let Some(list) = places.iter().map(|place| place.join(BUILT_IN)).find(|path| path.is_file()) {
        fs::copy(&list, into.join(BUILT_IN)).map_err(failed(&list))?;
    }
    for folder in places.iter().flat_map(|place| MODULES.map(|part| place.join("kernel").join(part))) {
        for path in files_below(&folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
            if name.ends_with(".ko") || name.ends_with(".ko.xz") {
                fs::copy(&path, modules.join(&name)).map_err(failed(&path))?;
            }
        }
    }
    let compressed: Vec<PathBuf> =
        list(&modules)?.into_iter().filter(|path| path.extension().is_some_and(|e| e == "xz")).collect();
    if !compressed.is_empty() {
        output(Command::new("xz").args(["-d", "--"]).args(compressed))?;
    }
    Ok(())
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, Missing> {
    let entries = fs::read_dir(folder).map_err(|error| Missing(format!("{}: {error}", folder.display())))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(paths) = list(folder) else { return Vec::new() };
    paths.into_iter().flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The plug-ins for the `tc` of this host.
fn build_plugins(sources: &Path, scratch: &Path, into: &Path) -> Result<(), Missing> {
    // In a copy, so that the sources stay clean.
    let copy = scratch.join("qdisc");
    output(Command::new("cp").arg("-r").arg(sources).arg(&copy))?;
    output(Command::new("make").args(["-s", "-C"]).arg(copy.join("tc")))?;
    take(&copy.join("tc"), "so", into)
}

/// A chroot of the distribution, in which modules are built.
struct Chroot<'a> {
    sources: &'a Path,
    mirror: &'a str,
    suite: &'a str,
    release: &'a str,
}

impl Chroot<'_> {
    /// Our modules, and Linux's own from the package with its source.
    fn build(
        &self,
        scratch: &Path,
        also: Option<(Vec<&str>, String)>,
        into: &Path,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Missing> {
        let work = scratch.join("chroot");
        let headers = format!("linux-headers-{}", self.release);
        let mut command = Command::new("sh");
        command.arg(self.sources.join("module/build-in-chroot.sh")).arg(&work).args([self.suite, &headers]);
        command.env("MIRROR", self.mirror).env_remove("ALSO");
        if let Some((modules, source)) = also {
            command.env("ALSO", modules.join(" ")).env("SOURCE", source);
        }
        watched(&mut command, go_on)?;
        take(&work.join(format!("{}-{headers}.out", self.suite)), "ko", into)
    }
}

fn take(from: &Path, extension: &str, into: &Path) -> Result<(), Missing> {
    fs::create_dir_all(into).map_err(|error| Missing(format!("cannot make {}: {error}", into.display())))?;
    for path in list(from)?.into_iter().filter(|path| path.extension().is_some_and(|e| e == extension)) {
        fs::copy(&path, into.join(path.file_name().unwrap_or_default()))
            .map_err(|error| Missing(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_where_the_release_itself_is() {
        let told = "http://a.test bookworm-security http://a.test/security/\nhttp://b.test nodistro http://b.test/\n\
                    http://c.test bookworm http://c.test/debian/\n";
        assert_eq!(of_debian(told).as_deref(), Some("http://c.test/debian"));
        assert_eq!(of_debian("http://b.test nodistro http://b.test/\n"), None);
    }

    #[test]
    fn folders_of_killed_fetches_are_removed_and_others_stay() {
        let lab = std::env::temp_dir().join(format!("narrows-fetch-{}", std::process::id()));
        // No process has this number: it is above what Linux allows.
        let names =
            ["fetching-4194999/apt", &format!("fetching-{}", std::process::id()), "fetching-mine", "kernels/7.2"];
        names.iter().for_each(|name| fs::create_dir_all(lab.join(name)).expect("a folder"));
        let scratch = Scratch::new(&lab).expect("a folder");
        assert!(!lab.join("fetching-4194999").exists());
        assert!(names[1..].iter().all(|name| lab.join(name).is_dir()));
        fs::write(scratch.0.join("a"), [0; 100]).expect("a file");
        assert_eq!(size_below(&lab), 100);
        drop(scratch);
        assert!(!lab.join(names[1]).exists());
        fs::remove_dir_all(&lab).expect("it was made");
    }

    #[test]
    fn a_program_is_watched_and_can_be_ended() {
        let mut looks = 0;
        let began = std::time::Duration::from_secs(3600);
        let slow = watched(Command::new("sleep").arg(began.as_secs().to_string()), &mut || {
            looks += 1;
            looks < 3
        });
        assert_eq!(slow.map_err(|missing| missing.to_string()), Err("`sleep` was ended".into()));
        // More than a pipe holds.
        let long =
            watched(Command::new("sh").args(["-c", "yes | head -c 300000; yes | head -c 300000 >&2"]), &mut || true);
        assert_eq!(long.map(|text| text.len()).map_err(|missing| missing.to_string()), Ok(300_000));
    }

    #[test]
    fn releases_are_those_of_the_flavour() {
        let names = "linux-image-cloud-amd64\nlinux-image-7.2.12+deb13-cloud-amd64\nlinux-image-7.2.12+deb13-amd64\n\
                     linux-image-6.1.0-50-cloud-amd64\nlinux-image-6.1.0-50-cloud-amd64-dbg\nlinux-image-6.1.0-50-cloud-amd64-unsigned\n";
        assert_eq!(releases(names), ["7.2.12+deb13-cloud-amd64", "6.1.0-50-cloud-amd64"]);
    }

    #[test]
    fn the_source_has_the_images_version() {
        let about = "Package: linux-image-7.2.12+deb13-cloud-amd64\nVersion: 7.2.12-1~bpo13+1\n";
        let source = |release: &str, about: &str| source(release, about).map_err(|missing| missing.to_string());
        assert_eq!(source("7.2.12+deb13-cloud-amd64", about), Ok("linux-source-7.2=7.2.12-1~bpo13+1".into()));
        assert_eq!(source("6.1.0-50-cloud-amd64", "Version: 6.1.170-1\n"), Ok("linux-source-6.1=6.1.170-1".into()));
        assert!(source("7.2", "Package: linux-image-7.2\n").is_err());
    }

    #[test]
    fn disciplines_of_linux_can_be_built_and_ours_are_no_extra() {
        assert_eq!(linux_module("dualpi2"), Ok("sch_dualpi2"));
        for name in ["cocoa", "fifo", "no such"] {
            let told = linux_module(name).map_err(|missing| missing.to_string()).unwrap_err();
            assert!(told.contains(&format!("\"{name}\"")) && told.contains("fq_pie, "), "{told}");
        }
    }

    #[test]
    fn packages_of_the_same_release_are_needed() {
        let about = "Package: linux-image-7.2\nDepends: linux-base-7.2 (= 7.2-1), linux-modules-7.2 (= 7.2-1) | other, kmod\nSize: 1\n";
        assert_eq!(needed(about, "7.2"), ["linux-base-7.2", "linux-modules-7.2"]);
    }
}
