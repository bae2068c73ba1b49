//! A recorded trace of arrivals, sent through the disciplines as they are loaded into a Linux kernel: the core makes the same decisions.
//!
//! `arrivals.csv` is what a queue of Linux was given by CUBIC, Reno, BBR and UDP (`tests/guest/record.sh`). A virtual machine sends it at a link of four fifths of
//! the rate (`tests/guest/replay.sh`), through each module and through the BPF programs of `cocoa` and `lfq`. Kernel probes tell when each packet
//! arrived and left, by the discipline's own reading of the clock, to the nanosecond. The core gets the same packets at the same times. Every packet must be
//! taken or refused alike, and leave in the same order at the times at which the kernel asked for one; in the end the kernel's counters are those of the core.
//!
//! What is not the same:
//!
//! - The times of departures are the kernel's: `htb` (for BPF the program's own shaper) decides when it asks.
//! - Hashes: the kernel's have a random key. Masks are wide; where a discipline counts its flows, they are as many as the trace has.
//! - Which packets a module drops at other times than at their arrival follows from what leaves, and from its counters.
//! - The BPF program of `cp` is not tried: it calls nothing of the kernel's with the packet that arrives, and a probe cannot be set in a program.
//!
//! Without a virtual machine or a fetched kernel with our modules it is skipped, with the reason. `NARROWS_BPF_PROGRAM` names a program `narrows` that was built with
//! `--features bpf`; without it the BPF program is left out.
#![cfg(target_os = "linux")]

use narrows_core::params::{Auto, Packets};
use narrows_core::queue::cocoa::CocoaParams;
use narrows_core::queue::cp::CpParams;
use narrows_core::queue::fq_codel_fair::FqCodelFairParams;
use narrows_core::queue::fq_cp::FqCpParams;
use narrows_core::queue::lfq::LfqParams;
use narrows_core::queue::{Ctx, LinkHint, Next, Queue, QueueConfig};
use narrows_core::registry::Registered as _;
use narrows_core::{Bytes, DropReason, FlowId, PacketId, PacketMeta, Pool, Rate, Rng, Span, Time};
use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A discipline in the kernel, and its model.
struct Pair {
    /// A module, or else the BPF program.
    is_module: bool,
    /// Options as `tc` or `narrows qdisc attach` takes them.
    options: &'static str,
    config: QueueConfig,
}

/// The rate of the link, bit/s. What is sent at it is 9.8 Mbit/s.
const RATE: u64 = 8_000_000;

fn pairs() -> Vec<Pair> {
    let pair = |is_module, options, config| Pair { is_module, options, config };
    let every_flow = "buckets 65536 orphan_mask 65535";
    let (buckets, orphan_mask) = (65_536, 65_535);
    let cocoa = CocoaParams { buckets, orphan_mask, ..CocoaParams::default() };
    // Both sides express this congestion alike, so that the bucket of the rule is the same to the byte.
    let cp = CpParams { max_congestion: 1.25, rate: Auto::Is(Rate::bit(RATE)), ecn: false, ..CpParams::default() };
    let fq_cp = FqCpParams { max_congestion: 1.25, ecn: false, buckets, orphan_mask, ..FqCpParams::default() };
    let lfq = LfqParams { buckets, orphan_mask, ..LfqParams::default() };
    let fair = FqCodelFairParams { flows: 32_768, limit: Packets(150), ..FqCodelFairParams::default() };
    vec![
        pair(true, every_flow, QueueConfig::Cocoa(cocoa)),
        pair(true, "limit 100p max_congestion 1.25 rate 8mbit", QueueConfig::Cp(cp)),
        pair(true, "max_congestion 1.25 rate 8mbit buckets 65536 orphan_mask 65535", QueueConfig::FqCp(fq_cp)),
        pair(true, "flows 32768 limit 150p rate 8mbit", QueueConfig::FqCodelFair(fair)),
        pair(true, every_flow, QueueConfig::Lfq(lfq)),
        pair(false, "limit=10000p", QueueConfig::Cocoa(CocoaParams::default())),
        pair(false, "limit=10000p", QueueConfig::Lfq(LfqParams::default())),
    ]
}

/// A packet of the trace.
struct Arrival {
    flow: u32,
    len: u32,
}

/// What a discipline in the kernel did; packets are numbered as they arrive.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next packet of the trace arrived.
    Arrived { now: u64, taken: bool },
    /// The kernel asked for a packet, and got this one, or none.
    Asked { now: u64, packet: Option<usize> },
    /// A packet was dropped.
    Dropped { packet: usize },
}

#[test]
fn the_kernel_decides_as_the_core_does() {
    let Some(lab) = Lab::find() else { return };
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let trace = here.join("replay/arrivals.csv");
    let arrivals = read(&trace);
    let bpf = env::var_os("NARROWS_BPF_PROGRAM");
    let pairs: Vec<Pair> = pairs().into_iter().filter(|pair| pair.is_module || bpf.is_some()).collect();
    let mut boot = Command::new(here.join("guest/boot.sh"));
    boot.env("NARROWS_LAB_DIR", &lab.folder).args(["-k", &lab.release, "-f"]).arg(&trace);
    if let Some(program) = bpf {
        boot.arg("-p").arg(program);
    }
    boot.args(["replay.sh", &RATE.to_string()]).args(pairs.iter().map(|pair| lab.run(pair)));
    let output = boot.output().expect("boot.sh can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "boot.sh ended with {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        said.lines().filter(|line| !line.starts_with(['e', 'r', 'd', 'n', 'x'])).collect::<Vec<_>>().join("\n")
    );
    let runs: Vec<&str> = said.split("\n= ").skip(1).collect();
    assert_eq!(runs.len(), pairs.len(), "each discipline has a run");
    for (pair, run) in pairs.iter().zip(runs) {
        let (name, told) = run.split_once('\n').expect("a name, and what follows");
        let events = events(told);
        let counters: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("! ")).collect();
        match compare(pair, &arrivals, &events, &counters) {
            Ok(figures) => println!("{name}: {figures}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

/// Drives the core as the kernel's discipline was driven.
fn compare(pair: &Pair, arrivals: &[Arrival], events: &[Event], counters: &[&str]) -> Result<String, String> {
    let flows = arrivals.iter().map(|arrival| arrival.flow).max().unwrap_or_default() + 1;
    let told = counters.join(" ");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    if matches!(pair.config, QueueConfig::Cocoa(_) | QueueConfig::FqCp(_) | QueueConfig::Lfq(_))
        && !told.contains(&format!(" flows {flows} "))
    {
        return Err(format!("the kernel does not tell {flows} flows apart: {told}"));
    }
    let link = LinkHint { rate: Rate::bit(RATE), rtt: Span::ms(50), mtu: Bytes(1514) };
    let mut core = Core {
        queue: pair.config.build(&link, Rng::stream(1, "replay")),
        pool: Pool::new(),
        drops: Vec::new(),
        number: HashMap::new(),
    };
    let (mut came, mut sent, mut refused, mut late_drops) = (0, 0, 0, 0);
    let mut events = events.iter().enumerate().peekable();
    while let Some((at, &event)) = events.next() {
        let place =
            |what: String| format!("event {at} ({event:?}, after {came} arrivals and {sent} departures): {what}");
        match event {
            Event::Arrived { now, mut taken } => {
                let arrival = arrivals.get(came).ok_or_else(|| place("more packets than the trace has".into()))?;
                let mut dropped = core.enqueue(came, arrival, now);
                // A BPF program says which packets it drops.
                while let Some(&(_, &Event::Dropped { packet })) = events.peek() {
                    events.next();
                    if !dropped.contains(&packet) {
                        return Err(place(format!("packet {packet} is dropped in the kernel only")));
                    }
                    taken &= packet != came;
                }
                if taken == dropped.contains(&came) {
                    return Err(place(format!(
                        "packet {came} is dropped in {}",
                        if taken { "the core only" } else { "the kernel only" }
                    )));
                }
                refused += usize::from(!taken);
                dropped.retain(|&number| number != came);
                late_drops += dropped.len();
                came += 1;
            }
            Event::Asked { now, packet } => {
                let (of_core, dropped) = core.dequeue(now);
                late_drops += dropped.len();
                if of_core != packet {
                    return Err(place(format!("packet {of_core:?} leaves in the core")));
                }
                sent += usize::from(packet.is_some());
            }
            Event::Dropped { .. } => return Err(place("a drop outside of an arrival".into())),
        }
    }
    let left = core.queue.backlog().packets;
    if came != arrivals.len() || sent + refused + late_drops != came || left != 0 {
        return Err(format!(
            "{came} of {} packets came, {sent} left, {refused} were refused, {late_drops} dropped later, {left} wait in the core",
            arrivals.len()
        ));
    }
    if refused + late_drops < 100 {
        return Err(format!("only {} packets were dropped: that tries little", refused + late_drops));
    }
    let wanted = if pair.is_module {
        format!("{sent} pkt (dropped {},", refused + late_drops)
    } else {
        format!("{sent} packets")
    };
    // The first lines are the shaper's, which counts the same.
    if !told.contains(&wanted) {
        return Err(format!("the kernel's counters do not say `{wanted}`:\n{told}"));
    }
    Ok(format!(
        "{came} packets in {flows} flows came, {sent} left in the same order, {refused} were refused, {late_drops} dropped later"
    ))
}

/// The core's discipline.
struct Core {
    queue: Queue,
    pool: Pool,
    drops: Vec<(PacketId, DropReason)>,
    /// Numbers of the arrivals that wait.
    number: HashMap<PacketId, usize>,
}

impl Core {
    /// Which arrivals are dropped with this one.
    fn enqueue(&mut self, number: usize, arrival: &Arrival, now: u64) -> Vec<usize> {
        // Flows differ in the high bits and in the low ones, whichever a discipline looks at.
        let hash = arrival.flow << 28 | arrival.flow;
        let now = Time::from_ns(now);
        let meta =
            PacketMeta { arrived: now, hash, flow: FlowId(arrival.flow), len: arrival.len, ..PacketMeta::default() };
        let id = self.pool.insert(meta);
        self.number.insert(id, number);
        self.queue.enqueue(id, &mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
        self.dropped()
    }

    /// Which arrival leaves, and which are dropped.
    fn dequeue(&mut self, now: u64) -> (Option<usize>, Vec<usize>) {
        let now = Time::from_ns(now);
        let next = self.queue.dequeue(&mut Ctx { now, pool: &mut self.pool, drops: &mut self.drops });
        let packet = match next {
            Next::Packet(id) => {
                self.pool.remove(id);
                self.number.remove(&id)
            }
            Next::At(_) | Next::Empty => None,
        };
        (packet, self.dropped())
    }

    fn dropped(&mut self) -> Vec<usize> {
        let (pool, number) = (&mut self.pool, &mut self.number);
        let gone = self.drops.drain(..).map(|(id, _)| {
            pool.remove(id);
            number.remove(&id).expect("it waited")
        });
        gone.collect()
    }
}

/// `arrivals.csv`: microseconds since the one before, flow, bytes.
fn read(trace: &Path) -> Vec<Arrival> {
    let text = std::fs::read_to_string(trace).expect("it is in the repository");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let numbers =
        lines.map(|line| line.split(',').map(|number| number.parse().expect("a number")).collect::<Vec<u32>>());
    numbers.map(|numbers| Arrival { flow: numbers[1], len: numbers[2] }).collect()
}

/// Reads what `replay.sh` prints: a line for each event, with the time since the event before.
fn events(told: &str) -> Vec<Event> {
    let mut time = 0;
    let mut event = |line: &str| {
        let mut words = line.split(' ');
        let kind = words.next().filter(|kind| ["e", "r", "d", "n", "x"].contains(kind))?;
        let numbers: Vec<u64> = words.map(|word| word.parse().expect("a number")).collect();
        if kind != "x" {
            time += numbers[0];
        }
        let packet = || usize::try_from(*numbers.last().expect("one or two")).expect("a number of the trace");
        Some(match kind {
            "e" | "r" => Event::Arrived { now: time, taken: kind == "e" },
            "d" => Event::Asked { now: time, packet: Some(packet()) },
            "n" => Event::Asked { now: time, packet: None },
            _ => Event::Dropped { packet: packet() },
        })
    };
    told.lines().filter_map(&mut event).collect()
}

/// A kernel of the lab's folder that has our modules.
struct Lab {
    folder: PathBuf,
    release: String,
}

impl Lab {
    /// The newest of them, or a word that there is none.
    fn find() -> Option<Lab> {
        let cache = || {
            env::var_os("XDG_CACHE_HOME")
                .map_or_else(|| Path::new(&env::var_os("HOME").unwrap_or_default()).join(".cache"), PathBuf::from)
        };
        let folder = env::var_os("NARROWS_LAB_DIR").map_or_else(|| cache().join("narrows/lab"), PathBuf::from);
        let tools = ["qemu-system-x86_64", "busybox", "cpio", "cc", "ip", "tc", "objdump"];
        let path = env::var_os("PATH").unwrap_or_default();
        if let Some(tool) = tools.iter().find(|tool| !env::split_paths(&path).any(|place| place.join(tool).is_file())) {
            println!("skipped: there is no program {tool}");
            return None;
        }
        let kernels = std::fs::read_dir(folder.join("kernels")).into_iter().flatten().flatten();
        let releases = kernels.filter_map(|entry| entry.file_name().into_string().ok());
        // The probes' registers and the script are for these.
        let mut releases: Vec<String> = releases.filter(|release| release.starts_with("7.")).collect();
        releases.retain(|release| pairs().iter().all(|pair| file(&folder, release, pair.config.name()).is_file()));
        releases.sort();
        let Some(release) = releases.pop() else {
            println!(
                "skipped: there is no kernel 7 with our modules in {}; `narrows lab fetch` gets one",
                folder.display()
            );
            return None;
        };
        Some(Lab { folder, release })
    }

    /// An argument of `replay.sh`.
    fn run(&self, pair: &Pair) -> String {
        let options = pair.options.replace(' ', ",");
        let name = pair.config.name();
        if !pair.is_module {
            return format!("bpf:{name}:{options}");
        }
        let code = Command::new("objdump")
            .args(["-dr", "--no-show-raw-insn"])
            .arg(file(&self.folder, &self.release, name))
            .output();
        let code = String::from_utf8_lossy(&code.expect("objdump can be started").stdout).into_owned();
        let [enqueue, dequeue] = ["enqueue", "dequeue"].map(|what| {
            let function = format!("{name}_{what}");
            let offset = clock_is_read(&code, &function);
            format!("{function}+{}", offset.unwrap_or_else(|| panic!("{function} of {name} does not read the clock")))
        });
        format!("narrows_{name}:{enqueue}:{dequeue}:{options}")
    }
}

fn file(lab: &Path, release: &str, name: &str) -> PathBuf {
    lab.join("kernels").join(release).join("modules").join(format!("sch_narrows_{name}.ko"))
}

/// Where in a function `ktime_get` has returned: bytes from its begin. `code` is what objdump says.
fn clock_is_read(code: &str, function: &str) -> Option<u64> {
    let address = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    let mut lines = code.lines().skip_while(|line| !line.ends_with(&format!("<{function}>:")));
    let begin = address(lines.next()?.split_once(' ')?.0)?;
    let mut of_function = lines.take_while(|line| !line.ends_with(">:"));
    of_function.find(|line| line.contains("R_X86_64_") && line.contains("\tktime_get-"))?;
    Some(address(of_function.next()?.split_once(':')?.0)? - begin)
}
