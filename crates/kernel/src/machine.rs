//! A virtual machine, from its start to its result.
//!
//! In virtual time `qemu` emulates one processor whose clock counts instructions, one nanosecond each, and skips the time in which it is idle
//! (`-icount shift=0,sleep=off`). The archive with the guest's file system is a file in memory without a name, so nothing is left on the disk;
//! `setpriv --pdeathsig` ends the machine with the thread that started it, however that ends.
use crate::message::{MARK, Message};
use crate::pace::Pace;
use crate::sightings::Sighting;
use narrows_core::{Span, Time};
use narrows_results::RunResult;
use narrows_world::{Watch, WorldError};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How often the watch is asked.
const TICK: Duration = Duration::from_millis(50);
/// Kill a guest that has been silent for this much CPU time. Wall-clock time would not do: on a busy host a guest may wait for most of it.
const PATIENCE: Duration = Duration::from_secs(300);
/// A guest that says nothing for so long in wall-clock time is ended, too: it may wait for something that never comes.
const LONG_PATIENCE: Duration = Duration::from_secs(3600);
/// A guest in real time that has said nothing at all for so long has not started.
const START: Duration = Duration::from_secs(60);
/// Lines of the console that an error shows.
const TAIL: usize = 30;

/// What a machine is made of.
pub(crate) struct Machine<'a> {
    pub(crate) image: &'a Path,
    pub(crate) memory_mb: u64,
    pub(crate) seed: u64,
    pub(crate) pace: Pace,
}

/// What a guest has sent to the host.
pub(crate) struct Told {
    pub(crate) result: RunResult,
    /// The packets that were recorded, where they came by.
    pub(crate) sightings: Vec<Sighting>,
    /// Packets that the limit left out.
    pub(crate) missed: u64,
}

/// A file in memory that another process can open by its descriptor.
pub(crate) fn file_in_memory(name: &str) -> io::Result<File> {
    // Without CLOEXEC: the machine opens it as /dev/fd/N.
    Ok(File::from(memfd_create(name, MemfdFlags::empty())?))
}

impl Machine<'_> {
    /// Runs the archive's job.
    pub(crate) fn run(&self, initrd: &File, end: Time, watch: &mut dyn Watch) -> Result<Told, WorldError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| WorldError::Failed(format!("cannot {what}: {error}"))
        };
        let (from_guest, to_host) = io::pipe().map_err(failed("make a pipe"))?;
        let to_host = OwnedFd::from(to_host);
        rustix::io::fcntl_setfd(&to_host, rustix::io::FdFlags::empty())
            .map_err(|error| failed("prepare a pipe")(error.into()))?;
        let child = self.command(initrd.as_raw_fd(), to_host.as_raw_fd()).spawn();
        let mut child = KilledOnDrop(child.map_err(failed("start qemu-system-x86_64"))?);
        // The pipe ends with the machine.
        drop(to_host);
        let console = child.0.stdout.take();
        let complaints = child.0.stderr.take();
        thread::scope(|scope| {
            let console = scope.spawn(move || tail(console));
            let complaints = scope.spawn(move || tail(complaints));
            let (sender, receiver) = channel();
            scope.spawn(move || {
                for line in BufReader::new(from_guest).lines() {
                    let Ok(line) = line else { break };
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
            let process = child.0.id();
            let worked = || processor_time(process);
            let outcome = attend(&receiver, end, self.pace, &worked, watch);
            drop(child);
            let shown = [console, complaints].map(|thread| thread.join().unwrap_or_default()).concat();
            outcome.unwrap_or_else(|what| {
                let shown = shown.lines().map(|line| format!("\n  {line}")).collect::<String>();
                Err(WorldError::Failed(format!("the virtual machine {what}; the end of its console:{shown}")))
            })
        })
    }

    fn command(&self, initrd: i32, port: i32) -> Command {
        let kernel = format!("{} {MARK}=1", self.pace.command_line());
        let mut command = Command::new("setpriv");
        command.args([
            "--pdeathsig",
            "KILL",
            "qemu-system-x86_64",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ]);
        command.args(["-machine", "pc"]).args(self.pace.arguments());
        command.args(["-m", &self.memory_mb.to_string(), "-seed", &self.seed.to_string()]);
        command.arg("-kernel").arg(self.image).args(["-initrd", &format!("/dev/fd/{initrd}"), "-append", &kernel]);
        command.args(["-serial", "stdio", "-device", "virtio-serial-pci"]);
        command.args([
            "-chardev",
            &format!("file,id=host,path=/dev/fd/{port}"),
            "-device",
            "virtserialport,chardev=host",
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A process that ends when this is dropped.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Until the result is there. The error says what happened to the machine.
fn attend(
    receiver: &Receiver<String>,
    end: Time,
    pace: Pace,
    worked: &dyn Fn() -> Duration,
    watch: &mut dyn Watch,
) -> Result<Result<Told, WorldError>, String> {
    let (mut sightings, mut missed) = (Vec::new(), 0);
    let (mut at, mut silent, mut worked_before) = (Time::ZERO, Duration::ZERO, worked());
    let mut has_started = pace == Pace::Virtual;
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(line) => {
                (silent, worked_before, has_started) = (Duration::ZERO, worked(), true);
                match serde_json::from_str(&line) {
                    Ok(Message::At(ns)) => at = Time::from_ns(ns).min(end),
                    Ok(Message::Said(text)) => said(&text),
                    Ok(Message::Late(ns)) => match overload(Span::ns(ns), end, pace) {
                        Some(Err(text)) => return Ok(Err(WorldError::Failed(text))),
                        Some(Ok(text)) => said(&format!("narrows: {text}\n")),
                        None => {}
                    },
                    Ok(Message::Seen(more)) => sightings.extend(more),
                    Ok(Message::Missed(packets)) => missed = packets,
                    Ok(Message::Done(result)) => return Ok(Ok(Told { result: *result, sightings, missed })),
                    Ok(Message::Refused(text)) => return Ok(Err(WorldError::Refused(text))),
                    Ok(Message::Failed(text)) => return Ok(Err(WorldError::Failed(text))),
                    Err(error) => return Err(format!("said what cannot be understood ({error})")),
                }
            }
            Err(RecvTimeoutError::Timeout) => silent += TICK,
            Err(RecvTimeoutError::Disconnected) => return Err("ended without a result".into()),
        }
        if !watch.tick(at) {
            return Ok(Err(WorldError::Cancelled));
        }
        if silent > START && !has_started {
            let help = if pace == Pace::Kvm { "; `--real-time=emulated` does without KVM" } else { "" };
            return Err(format!("said nothing in the first {} s{help}", START.as_secs()));
        }
        if silent > PATIENCE {
            let worked = worked().saturating_sub(worked_before);
            if is_stuck(silent, worked) {
                return Err(format!(
                    "said nothing for {} s, in which it worked for {} s, after {} s of the run",
                    silent.as_secs(),
                    worked.as_secs(),
                    at.since(Time::ZERO).as_secs_f64()
                ));
            }
        }
    }
}

/// What to say of a guest whose run ended so late. Its figures are those of a longer run than they are divided by; in virtual time that is an error if
/// it is a tenth, since nothing but the traffic can be the cause.
fn overload(late: Span, end: Time, pace: Pace) -> Option<Result<String, String>> {
    let duration = end.since(Time::ZERO);
    let text = format!(
        "the guest's processor cannot keep up: {:.1} s of the scenario took {:.1} s of its time; with a lower rate, larger packets or gso_max_segs it has less to do, and without --pcap",
        duration.as_secs_f64(),
        (duration + late).as_secs_f64()
    );
    if late * 10 > duration && pace == Pace::Virtual {
        return Some(Err(text));
    }
    (late * 100 > duration).then_some(Ok(text))
}

/// Whether to give a guest up that has said nothing for so long, and has worked for so long since.
fn is_stuck(silent: Duration, worked: Duration) -> bool {
    worked > PATIENCE || silent > LONG_PATIENCE
}

/// The processor's time that a process has used (`proc_pid_stat(5)`, fields 14 and 15); none if it has ended.
fn processor_time(process: u32) -> Duration {
    const TICKS_PER_S: u32 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let ticks = ticks(&stat).unwrap_or_default();
    Duration::from_secs(ticks) / TICKS_PER_S
}

/// User and system time of a line of `/proc/PID/stat`. The program's name, in parentheses, may have spaces.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

/// Shows what the user's programs have written, as a live run does: stdout is for results.
fn said(text: &str) {
    // Nobody may be listening.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The last lines of a stream, read to its end.
fn tail(stream: Option<impl Read>) -> String {
    let mut lines = VecDeque::new();
    let Some(stream) = stream else { return String::new() };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
        lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
        if lines.len() > TAIL {
            lines.pop_front();
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Memory of a guest, MB: the kernel, the archive twice while it is unpacked, and what the run itself needs, bytes.
pub(crate) fn memory_mb(archive: u64, run: u64) -> u64 {
    const KERNEL: u64 = 256;
    KERNEL + (2 * archive + run).div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_time_that_it_worked() {
        let line = "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 31 5 6 20 0 1 0 100 0 0";
        assert_eq!(ticks(line), Some(281));
        assert_eq!(ticks("7 (short) S 1"), None);
        let before = processor_time(std::process::id());
        let mut sum = 0_u64;
        while processor_time(std::process::id()) < before + Duration::from_millis(30) {
            sum = (0..100_000_u64).fold(sum, u64::wrapping_add);
        }
        assert!(sum > 0);
    }

    #[test]
    fn a_run_that_took_much_longer_than_its_scenario_is_none() {
        let of = |late, pace| overload(Span::ms(late), Time::from_ns(10_000_000_000), pace);
        assert_eq!((of(0, Pace::Virtual), of(100, Pace::Virtual)), (None, None));
        assert!(of(101, Pace::Virtual).is_some_and(|said| said.is_ok()));
        let told = of(1001, Pace::Virtual).and_then(Result::err).expect("an error");
        assert!(told.contains("10.0 s of the scenario took 11.0 s"), "{told}");
        assert!(of(1001, Pace::Emulated).is_some_and(|said| said.is_ok()), "there the host may be the cause");
    }

    #[test]
    fn a_guest_that_waits_for_the_processor_of_a_busy_host_is_not_ended() {
        let [short, long] = [PATIENCE, PATIENCE + TICK];
        assert!(is_stuck(long, long), "it worked all the time");
        assert!(!is_stuck(long, short) && !is_stuck(10 * PATIENCE, short), "it had little time to work");
        assert!(is_stuck(LONG_PATIENCE + TICK, Duration::ZERO));
    }
}
