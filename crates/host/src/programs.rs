//! The user's programs that make flows: starts and stops them when the scenario says, and reads the state of their sockets.
//!
//! What the kernel says of their TCP connections is counted: retransmissions, and the payload that was acknowledged. The last state of a
//! connection that has ended counts, too, so that those that live for less than a look at them are not missed.
use crate::endpoint::{EndpointPair, Plan};
use crate::socket::{Diag, TcpInfo};
use crate::{Clock, EndpointStats, FlowKey, HostError, LONGEST_START, Launch, Namespace, Process, Status, Stream};
use narrows_core::{Span, Time};
use narrows_scenario::command::{CommandLine, Fill};
use narrows_world::build;
use narrows_world::meters::SenderStats;
use std::collections::HashMap;

/// The programs of a scenario.
pub struct Programs<'a> {
    flows: Vec<Program<'a>>,
    namespaces: &'a [Namespace],
    /// Socket diagnostics for each namespace from which a program sends.
    diags: Vec<Option<Diag>>,
    looked: Time,
    /// End of the run. Later counts are not measured.
    end: Time,
}

struct Program<'a> {
    number: usize,
    name: String,
    /// Its index within its group.
    member: u32,
    start: Time,
    stop: Time,
    pair: EndpointPair,
    client: &'a CommandLine,
    server: Option<&'a CommandLine>,
    sending: Stage,
    serving: Option<Process>,
    /// Counters of its connections, by their cookies.
    open: HashMap<[u8; 8], Counters>,
    /// Sums of the counters of connections that have ended.
    ended: Counters,
    /// Payload that has been posted, bytes.
    posted: u64,
}

/// Counters of a connection.
#[derive(Clone, Copy, Default)]
struct Counters {
    stats: SenderStats,
    /// Payload acknowledged, bytes.
    acked: u64,
}

impl Counters {
    fn of(info: &TcpInfo) -> Counters {
        Counters { stats: info.stats(), acked: info.acked.unwrap_or(0) }
    }

    fn and(self, other: &Counters) -> Counters {
        let stats = SenderStats {
            retransmits: self.stats.retransmits + other.stats.retransmits,
            timeouts: self.stats.timeouts + other.stats.timeouts,
        };
        Counters { stats, acked: self.acked + other.acked }
    }
}

enum Stage {
    Waiting,
    Running(Process),
    /// It was asked to end. Its status is ignored.
    Stopping(Process),
    Ended,
}

/// Time that a program with a known duration gets beyond it before it is interrupted: it has to close connections and exchange
/// figures through a queue that it has filled.
const PATIENCE: Span = Span::s(10);
/// Time that an interrupted program gets to end before it is killed.
const GRACE: Span = Span::ms(500);
/// Interval between reads of the programs' sockets.
const LOOK: Span = Span::ms(50);

impl<'a> Programs<'a> {
    /// Starts the servers, and waits until they serve.
    ///
    /// # Errors
    /// When a server cannot be started, or the kernel has no socket diagnostics.
    pub fn prepare(plan: &Plan<'a>) -> Result<Programs<'a>, HostError> {
        let Plan { scenario, namespaces, pairs, .. } = *plan;
        let members = scenario.flows.iter().flat_map(|group| (0..group.count).map(move |member| (group, member)));
        let (mut flows, end) = (Vec::new(), Time::ZERO + scenario.duration);
        for ((number, (group, member)), (name, pair)) in
            members.enumerate().zip(scenario.flow_names().into_iter().zip(pairs))
        {
            let Some(command) = &group.command else { continue };
            let mut program = Program {
                number,
                name,
                member,
                start: build::start(scenario, group, member),
                stop: group.stop,
                pair: *pair,
                client: command,
                server: group.server.as_ref(),
                sending: Stage::Waiting,
                serving: None,
                open: HashMap::new(),
                ended: Counters::default(),
                posted: 0,
            };
            if let Some(server) = program.server {
                program.serving = Some(program.spawn(server, &namespaces[pair.receiver_namespace])?);
            }
            flows.push(program);
        }
        let mut diags: Vec<Option<Diag>> = namespaces.iter().map(|_| None).collect();
        for program in &flows {
            let place = program.pair.sender_namespace;
            if diags[place].is_none() {
                diags[place] = Some(Diag::with_ended(&namespaces[place])?);
            }
        }
        let (clock, all_serve) = (Clock::start(), Time::ZERO + LONGEST_START);
        for program in &mut flows {
            if let Some(server) = &mut program.serving {
                let mut diag = Diag::open(&namespaces[program.pair.receiver_namespace])?;
                // One that has ended is judged when the programs are attended.
                server.wait_until_serving(&mut diag, all_serve.since(clock.now()))?;
            }
        }
        Ok(Programs { flows, namespaces, diags, looked: Time::ZERO, end })
    }

    /// How long after the end of the run a program may still run.
    pub fn patience(&self) -> Span {
        self.flows.iter().map(Program::patience).max().unwrap_or(Span::ZERO)
    }

    /// Have all programs ended that were given time to finish by themselves?
    pub fn have_finished(&self) -> bool {
        let at_work = |program: &Program<'_>| matches!(program.sending, Stage::Running(_) | Stage::Stopping(_));
        !self.flows.iter().any(|program| program.patience() > Span::ZERO && at_work(program))
    }

    /// Starts and stops the programs that are due.
    pub fn attend(&mut self, now: Time, endpoint_stats: &EndpointStats) -> Result<(), HostError> {
        for program in &mut self.flows {
            match &mut program.sending {
                Stage::Waiting if now >= program.start => {
                    let process = program.spawn(program.client, &self.namespaces[program.pair.sender_namespace])?;
                    program.sending = Stage::Running(process);
                }
                Stage::Running(process) => {
                    if let Some(status) = process.try_wait() {
                        program.sending = Stage::Ended;
                        // After its stop time, its status is ignored.
                        if now < program.stop {
                            program.judge(program.client, status)?;
                        }
                    } else if now >= program.stop + program.patience() {
                        program.interrupt();
                    }
                }
                Stage::Stopping(process) => {
                    if process.try_wait().is_some() || now >= program.stop + program.patience() + GRACE {
                        // Dropping the process kills what is left of it.
                        program.sending = Stage::Ended;
                    }
                }
                Stage::Waiting | Stage::Ended => {}
            }
            // A server that succeeds has served its client. A failure is reported.
            if let (Some(process), Some(server)) = (&mut program.serving, program.server)
                && let Some(status) = process.try_wait()
            {
                program.serving = None;
                // After its client was stopped, a server's status is ignored.
                if now < program.stop {
                    program.judge(server, status)?;
                }
            }
        }
        if now.since(self.looked) >= LOOK && now < self.end {
            self.looked = now;
            self.look(endpoint_stats)?;
        }
        Ok(())
    }

    /// When the next program is due to start or to be stopped.
    pub fn due(&self) -> Option<Time> {
        let due = |program: &Program<'_>| match program.sending {
            Stage::Waiting => Some(program.start),
            Stage::Running(_) => Some(program.stop + program.patience()),
            Stage::Stopping(_) | Stage::Ended => None,
        };
        self.flows.iter().filter_map(due).min()
    }

    /// Interrupts all programs, and kills those that do not end in time.
    pub fn finish(mut self) {
        self.flows.iter_mut().for_each(Program::interrupt);
        for program in self.flows {
            if let Stage::Stopping(mut process) = program.sending {
                // If it has not ended by then, the drop kills it.
                let _ = process.wait_for(std::time::Duration::from_nanos(GRACE.as_ns()));
            }
        }
    }

    /// Posts the kernel's figures of the programs' connections.
    ///
    /// # Errors
    /// When the kernel does not report them.
    pub fn look(&mut self, endpoint_stats: &EndpointStats) -> Result<(), HostError> {
        for (place, diag) in self.diags.iter_mut().enumerate() {
            let Some(diag) = diag else { continue };
            let (connections, ended) = (diag.connections()?, diag.ended()?);
            for program in self.flows.iter_mut().filter(|program| program.pair.sender_namespace == place) {
                let pair = program.pair;
                let own = |(key, _): &&(FlowKey, _)| key.source == pair.sender && key.destination == pair.receiver;
                for (_, sample) in connections.iter().filter(own) {
                    program.open.insert(sample.cookie, Counters::of(&sample.info));
                    // A connection with nothing in flight does not measure the path.
                    if sample.info.inflight() > 0 {
                        endpoint_stats.post(program.number, |report| {
                            report.rtts.extend(sample.info.srtt);
                            report.meters = Some(sample.info.meters(sample.is_paced()));
                        });
                    }
                }
                for (_, sample) in ended.iter().filter(own) {
                    program.open.remove(&sample.cookie);
                    program.ended = program.ended.and(&Counters::of(&sample.info));
                }
                let Counters { stats, acked } = program.open.values().fold(program.ended, Counters::and);
                endpoint_stats.post(program.number, |report| report.stats = stats);
                endpoint_stats.read(program.number, acked - std::mem::replace(&mut program.posted, acked));
            }
        }
        Ok(())
    }
}

impl Program<'_> {
    /// Time that the program gets to finish by itself after its stop time.
    fn patience(&self) -> Span {
        if self.client.says_duration() { PATIENCE } else { Span::ZERO }
    }

    /// Sends one interrupt. Many programs take a second one as a request to quit at once.
    fn interrupt(&mut self) {
        self.sending = match std::mem::replace(&mut self.sending, Stage::Ended) {
            Stage::Running(process) => {
                process.interrupt();
                Stage::Stopping(process)
            }
            other => other,
        };
    }

    /// Starts a command line with its placeholders filled in. Its output goes to stderr, because stdout is for results.
    fn spawn(&self, line: &CommandLine, namespace: &Namespace) -> Result<Process, HostError> {
        let duration = self.stop.since(self.start);
        let argv = line.argv(&Fill { peer: self.pair.receiver, duration, n: self.member });
        let launch = Launch {
            argv: argv.into_iter().map(Into::into).collect(),
            stdin: Stream::Null,
            stdout: Stream::Stderr,
            stderr: Stream::Stderr,
            ..Launch::default()
        };
        Process::spawn(namespace, &launch)
    }

    /// A program that failed makes the run fail.
    fn judge(&self, line: &CommandLine, status: Status) -> Result<(), HostError> {
        if status.success() {
            return Ok(());
        }
        Err(HostError::Program { flow: self.name.clone(), command: line.text().to_owned(), status })
    }
}
