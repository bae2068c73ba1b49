//! The lab as a world: checks a scenario, runs it in a machine of its own.
use crate::kernels::Kernel;
use crate::machine::Told;
use crate::message::{Job, Recorded};
use crate::pace::Pace;
use crate::programs::Host;
use crate::sightings::{self, Spot};
use crate::{initramfs, machine, network};
use narrows_core::Time;
use narrows_host::endpoint;
use narrows_host::layout::Layout;
use narrows_results::folder;
use narrows_results::packets::Capture;
use narrows_results::summary::{MadeIn, Passing};
use narrows_scenario::{Scenario, Transport};
use narrows_world::record::packets::most_packets;
use narrows_world::{Memory, Packets, Run, Wanted, Watch, World, WorldError};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Whether this program can have a guest.
///
/// # Errors
/// Always succeeds on Linux, always fails elsewhere.
pub const fn usable() -> Result<(), WorldError> {
    Ok(())
}

/// The kernel's world: this kernel, with this program as the guest's first process.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The guest's kernel.
    pub kernel: Kernel,
    /// The program that becomes the guest's `init`: one that calls [`crate::guest::main`] if it [is one](crate::guest::is_guest).
    pub program: PathBuf,
    /// How the guest's time passes.
    pub pace: Pace,
}

/// The modules of the line to the host.
const LINE: [&str; 2] = ["virtio_pci", "virtio_console"];
/// The module that reports the state of connections.
const DIAGNOSTICS: &str = "tcp_diag";
/// Bytes of a flow's state in the guest, beside its distributions: two sockets with their buffers.
const FLOW: u64 = 100_000;
/// Bytes of a program of the user's in the guest, in addition to its file.
const PROGRAM: u64 = 64 << 20;

/// Bytes of a recorded packet in the guest: its row at each place that it passes, twice while a list grows, and its first bytes.
const PACKET: u64 = 1000;

/// The number of programs that a scenario runs.
fn programs(scenario: &Scenario) -> u64 {
    scenario.flows.iter().map(|flow| u64::from(flow.count) * flow.programs().count() as u64).sum()
}

/// What a scenario needs of the host.
struct Plan {
    /// If the scenario runs programs, where they are found.
    host: Option<Host>,
    modules: Vec<PathBuf>,
    files: BTreeSet<PathBuf>,
    layout: Layout,
    /// Where packets can be seen.
    spots: Vec<Spot>,
}

impl World for Lab {
    fn name(&self) -> &'static str {
        "kernel"
    }

    /// A guest is one thread of the host.
    fn threads(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), WorldError> {
        self.plan(scenario).map(drop)
    }

    fn sides(&self, scenario: &Scenario) -> Result<[&'static str; 2], WorldError> {
        if let Some(flow) = scenario.flows.iter().find(|flow| flow.transport.gso_max_segs() > 1) {
            let (name, segments) = (&flow.name, flow.transport.gso_max_segs());
            return Err(WorldError::Refused(format!(
                "flow \"{name}\": gso_max_segs is {segments}, and a queue may cut such packets up; allowed for a capture in the kernel's world: 1"
            )));
        }
        Ok(self.plan(scenario)?.layout.side_names())
    }

    fn memory(&self, scenario: &Scenario, wanted: &Wanted) -> Memory {
        let memory = Memory::estimate(scenario, FLOW);
        let packets = wanted.capture.map_or(0, |capture| most_packets(scenario, &capture));
        Memory {
            // The guest's own, its file system, and the emulator's.
            hops: memory.hops + (1 << 30) + PROGRAM * programs(scenario),
            // In the guest, and again here.
            packets: memory.packets.saturating_add(packets.saturating_mul(2 * PACKET)),
            ..memory
        }
    }

    fn run(&self, scenario: &Scenario, wanted: &Wanted, watch: &mut dyn Watch) -> Result<Run, WorldError> {
        let Plan { host, modules, files, spots, layout } = self.plan(scenario)?;
        let ns = |at: Time| at.since(Time::ZERO).as_ns();
        let recorded = |Capture { from, until, limit, .. }| Recorded { from: ns(from), until: until.map(ns), limit };
        let failed =
            |error: std::io::Error| WorldError::Failed(format!("cannot make the guest's file system: {error}"));
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (scenario_text, files_of_hops) = folder::apart(scenario);
        let job = Job {
            scenario: scenario_text,
            files: files_of_hops,
            modules: modules.iter().map(name).collect(),
            surroundings: host.map(|host| host.surroundings()),
            capture: wanted.capture.map(recorded),
        };
        let archive = machine::file_in_memory("narrows-kernel").map_err(failed)?;
        initramfs::write(std::io::BufWriter::new(&archive), &self.program, &self.kernel, &modules, &files, &job)
            .map_err(failed)?;
        let size = archive.metadata().map_err(failed)?.len();
        let packets = wanted.capture.map_or(0, |capture| most_packets(scenario, &capture).saturating_mul(PACKET));
        let run = Memory::estimate(scenario, FLOW).total() + PROGRAM * programs(scenario) + packets;
        let memory_mb = machine::memory_mb(size, run);
        let machine = machine::Machine { image: &self.kernel.image(), memory_mb, seed: scenario.seed, pace: self.pace };
        let Told { mut result, sightings, missed } = machine.run(&archive, Time::ZERO + scenario.duration, watch)?;
        let time = if self.pace == Pace::Virtual { Passing::Virtual } else { Passing::Real };
        result.summary.world = Some(MadeIn { name: self.name().to_owned(), linux: self.kernel.release(), time });
        let log = |capture| sightings::log((scenario, &layout), &spots, sightings, capture, missed);
        Ok(Run { result, packets: wanted.capture.map(log).map(Packets::Real) })
    }
}

impl Lab {
    /// The modules and the files of a scenario, if the kernel can run it.
    fn plan(&self, scenario: &Scenario) -> Result<Plan, WorldError> {
        let refused = |error: String| WorldError::Refused(error);
        endpoint::check(scenario).map_err(|error| refused(error.to_string()))?;
        let layout = Layout::new(scenario).map_err(|error| refused(error.to_string()))?;
        let network = network::network(scenario, &layout).map_err(refused)?;
        let spots = sightings::spots(&network, &layout);
        let mut names = network.modules;
        for flow in scenario.flows.iter().filter(|flow| matches!(flow.transport, Transport::Tcp(_))) {
            let controller = flow.controller.as_ref().map(narrows_core::registry::Registered::name);
            let module = match controller {
                None | Some("cubic" | "new_reno") => continue,
                Some(name) => format!("tcp_{name}"),
            };
            if !names.contains(&module) {
                names.push(module);
            }
        }
        let has_programs = programs(scenario) > 0;
        if has_programs {
            names.push(DIAGNOSTICS.to_owned());
        }
        names.extend(LINE.map(str::to_owned));
        let modules = self.kernel.modules(&names).map_err(|missing| refused(missing.to_string()))?;
        let host = has_programs.then(Host::here).transpose().map_err(refused)?;
        let files = host.as_ref().map(|host| host.files(scenario, &layout)).transpose().map_err(refused)?;
        Ok(Plan { host, modules, files: files.unwrap_or_default(), layout, spots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_scenario::NoTraces;
    use std::fs;

    const SCENARIO: &str = "duration = \"1s\"\n[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n\
        [[flow]]\nname = \"bulk\"\ncontroller = \"cubic\"\nrtt = \"20ms\"\nroute = [\"link\"]\n";

    /// Debian's 6.1 has it as modules, 7.2 in its image.
    #[test]
    fn the_line_to_the_host_is_in_the_image_or_comes_as_modules() {
        let folder = std::env::temp_dir().join(format!("narrows-line-{}", std::process::id()));
        fs::create_dir_all(folder.join("modules")).expect("a folder");
        let kernel = Kernel { folder: folder.clone() };
        let write = |name: &str, needs: &str| {
            fs::write(kernel.module(name), format!("ELF\0license=GPL\0depends={needs}\0")).expect("a file");
        };
        for name in ["sch_htb", "sch_netem", "veth", "virtio", "ifb"] {
            write(name, "");
        }
        write("virtio_pci", "virtio");
        write("virtio_console", "virtio");
        let lab = Lab { kernel: kernel.clone(), program: PathBuf::new(), pace: Pace::Virtual };
        let scenario = Scenario::parse(SCENARIO, "x.toml", &NoTraces).expect("a scenario");
        let names = || {
            let modules = lab.plan(&scenario).map_err(|error| error.to_string())?.modules;
            let name = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok::<_, String>(modules.iter().map(name).filter(|name| name.starts_with("virtio")).collect::<Vec<_>>())
        };
        assert_eq!(names(), Ok(["virtio", "virtio_pci", "virtio_console"].map(str::to_owned).into()));
        for name in ["virtio", "virtio_pci", "virtio_console"] {
            fs::remove_file(kernel.module(name)).expect("it was made");
        }
        let told = names().expect_err("there is no line");
        assert!(told.contains("has no module virtio_pci; `narrows lab fetch` has to get this kernel again"), "{told}");
        let built_in = "kernel/drivers/virtio/virtio_pci.ko\nkernel/drivers/char/virtio_console.ko\n";
        fs::write(folder.join(crate::kernels::BUILT_IN), built_in).expect("a file");
        assert_eq!(names(), Ok(Vec::new()));
        fs::remove_dir_all(&folder).expect("it was made");
    }
}
