//! `narrows advise`: which queue for this link and these uses, and how to have it.
//!
//! The household is simulated behind every queue that can be deployed, and on the link as it is. The answer is the queue with which
//! the use that is worst off fares best.
use crate::failure::Failure;
use crate::flags::{MAX_JOBS, MAX_SEED, whole};
use crate::grid::{self, Job, Options};
use crate::interrupt;
use crate::output::{OutArgs, Output, Request};
use crate::term;
use household::{Household, Use};
use link_layer::LinkLayer;
use narrows_core::{Bytes, Rate, Span};
use narrows_report::{PAGE, sheet};
use narrows_results::Summary;
use narrows_runner::Room;
use narrows_scenario::{RateSpec, shorthand};
use narrows_sim::Simulator;
pub(crate) use queues::below_htb;
use queues::{Candidate, Shaping};
use score::{outcomes, ranked};
use show::{AS_IT_IS, Answer};

mod household;
mod link_layer;
mod queues;
mod score;
mod show;

/// Recommend a queue for a link, and print how to deploy it
#[derive(clap::Args)]
#[command(after_help = "  narrows advise --down 50mbit --up 10mbit
  narrows advise --down 16mbit --up 1mbit --link adsl --uses call,game,2xdownload")]
pub(crate) struct Advise {
    /// Rate of the link, down, or a trace as trace:FILE or trace:NAME (`narrows list traces`)
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    down: String,
    /// Rate of the link, up, or a trace
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    up: String,
    /// The kind of the link. What its rate counts beside the IP packets, for the simulation and for the commands: docsis, vdsl, adsl,
    /// ethernet, lte, or any for nothing. What decides when it sends: cellular, wifi, leo (satellites), and docsis up; --down and --up are the
    /// highest rates then
    #[arg(long, value_name = "KIND", default_value = "any", allow_hyphen_values = true)]
    link: String,
    /// Base round-trip time to the servers
    #[arg(long, value_name = "TIME", default_value = "30ms", allow_hyphen_values = true)]
    rtt: String,
    /// The buffer in front of the link, in each direction: the provider's and the modem's
    #[arg(long, value_name = "SIZE", default_value = "1MB", allow_hyphen_values = true)]
    buffer: String,
    /// What happens on the link at the same time: call, video-call, game, web, video-stream, download, upload, each with a number before it if
    /// several do it (2xdownload) [default: call,game,web,video-stream,download,upload]
    #[arg(long, allow_hyphen_values = true)]
    uses: Option<String>,
    /// This many users, each with a host of their own, instead of a household: an office, a conference. --uses are shares then [default:
    /// 60xweb,12xcall,6xvideo-call,10xvideo-stream,8xdownload,4xupload]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=household::MOST_USERS))]
    users: Option<u64>,
    /// Candidates; of two with a slash the first is for what is received, fq_codel/cake. cake@50 is shaped to half of the mean rate where
    /// that varies, and not to 95 %; with cocoa+autorate the shaper of what is sent follows the link [default: every queue that can be deployed]
    #[arg(long, allow_hyphen_values = true)]
    queues: Option<String>,
    /// Name of the interface to the link, for the commands
    #[arg(long, value_name = "NAME", default_value = "wan", allow_hyphen_values = true)]
    interface: String,
    /// Length of a run; its first fifth is left out, with a video call its first half [default: 60s; without a video call less on a link of
    /// more than 100 Mbit/s, at least 20s]
    #[arg(short = 't', long, value_name = "TIME", allow_hyphen_values = true)]
    duration: Option<String>,
    /// Runs of each candidate, with seeds counting up from --seed
    #[arg(long, value_name = "N", default_value = "5", allow_hyphen_values = true, value_parser = whole(1..=MAX_RUNS))]
    runs: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = whole(0..=MAX_SEED - MAX_RUNS))]
    seed: u64,
    /// Threads [default: one per core]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, value_parser = whole(1..=MAX_JOBS))]
    jobs: Option<u64>,
    /// Print the answer as JSON on stdout and nothing else
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    place: OutArgs,
}

/// Most runs of each candidate.
const MAX_RUNS: u64 = 1000;

/// Runs the command.
pub(crate) fn main(args: &Advise) -> Result<(), Failure> {
    let household = args.household()?;
    let candidates = args.candidates(&household)?;
    let interface = args.interface()?;
    interrupt::install()?;
    let jobs = args.jobs_of(&household, &candidates)?;
    // Without --out nothing is written.
    let output = match &args.place.out {
        Some(out) => {
            Some(Output::claim(Request { out: Some(out), force: args.place.force, command: "advise", keys: &[] })?)
        }
        None => None,
    };
    let room = Room { given: None, together: true };
    let options = Options { threads: args.jobs, quiet: args.json, memory: room, ..Options::of(&Simulator) };
    let summaries = grid::run(&jobs, options, |_, run| Ok::<Summary, Failure>(run.result.summary))?;
    interrupt::check()?;
    let names = candidates.iter().map(|(one, _)| one.label()).chain([AS_IT_IS.to_owned()]);
    let runs: Vec<(String, Vec<Summary>)> =
        names.zip(summaries.chunks(args.runs as usize)).map(|(name, runs)| (name, runs.to_vec())).collect();
    let mut fares = outcomes(&household, &runs);
    let Some(as_it_is) = fares.pop() else { return Err(Failure::other("there was no run")) };
    let candidates = candidates.into_iter().map(|(one, _)| one).collect();
    let (ranked, runs) = (ranked(fares), args.runs as usize);
    let answer = Answer { household: &household, candidates, ranked, as_it_is, interface, runs };
    let written = output.map(|output| write(output, &answer, &jobs, args)).transpose()?;
    if args.json {
        return term::print_json(&answer.json());
    }
    let mut text = sheet::text(&answer.sheet(), &term::style());
    text += &format!("\n{}\n{}", answer.reason(), answer.commands());
    if let Some(page) = written {
        text += &format!("\n{page}\n");
    }
    term::print(&text)
}

/// A fast link takes longer to simulate, and has more packets from which to measure. A video call takes its time at any rate.
fn usual_duration(link: [Rate; 2], has_video_call: bool) -> Span {
    let mbit = link.iter().map(|rate| rate.as_bps() / 1_000_000).sum::<u64>();
    Span::s((60 * 100 / mbit.max(1)).clamp(if has_video_call { 60 } else { 20 }, 60))
}

/// Writes the answer, the page, its picture and the scenarios; returns the page's place.
fn write(output: Output, answer: &Answer<'_>, jobs: &[Job], args: &Advise) -> Result<String, Failure> {
    let sheets = [answer.sheet(), answer.commands_sheet()];
    let title = "narrows advise";
    let fill = || -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(&answer.json()).map_err(Failure::other)?;
        output.write("advice.json", format!("{json}\n"))?;
        output.write(PAGE, sheet::page(title, &sheets).map_err(Failure::other)?)?;
        for (name, svg) in sheet::drawings(title, &sheets) {
            output.write(std::path::Path::new(narrows_report::FIGURES).join(name), svg)?;
        }
        // The first run of each.
        for job in jobs.iter().step_by(args.runs as usize) {
            let name = narrows_results::folder::folder_name(job.label.split(" seed ").next().unwrap_or_default());
            output.write(std::path::Path::new("scenarios").join(format!("{name}.toml")), job.scenario.to_toml())?;
        }
        Ok(())
    };
    match fill() {
        Ok(()) => Ok(output.publish()?.folder.join(PAGE).display().to_string()),
        Err(failure) => Err(output.unfinished(failure)),
    }
}

impl Advise {
    fn household(&self) -> Result<Household, Failure> {
        let link = Household::link(&self.down, &self.up)?;
        let layer = LinkLayer::named(&self.link).ok_or_else(|| {
            let allowed: Vec<String> =
                link_layer::ALL.iter().map(|one| format!("{} ({})", one.name, one.about)).collect();
            Failure::usage(format!("--link: cannot be {:?}; allowed: {}", self.link, allowed.join(", ")))
        })?;
        let flags = ["--down", "--up"].into_iter().zip(&link).zip(layer.mechanisms());
        if let Some(((flag, _), _)) =
            { flags }.find(|((_, rate), mechanism)| mechanism.is_some() && matches!(rate, RateSpec::Trace { .. }))
        {
            return Err(Failure::usage(format!(
                "{flag}: a trace says itself when the link sends, and so does --link {}; allowed: the highest rate, such as 100mbit, or --link any",
                layer.name
            )));
        }
        let buffer: Bytes = shorthand::value("--buffer", &self.buffer).map_err(Failure::usage)?;
        if buffer < Bytes(3000) {
            let message = format!("--buffer: cannot be {:?}; allowed: 3000B and more", self.buffer);
            return Err(Failure::usage(message));
        }
        let uses = self.uses.as_deref();
        let members = match self.users {
            None => household::members(uses.unwrap_or("call,game,web,video-stream,download,upload"))?,
            Some(users) => household::shared(&household::members(uses.unwrap_or(household::OFFICE))?, users)?,
        };
        let has_video_call = members.iter().any(|member| member.what == Use::VideoCall);
        let duration = match &self.duration {
            Some(text) => {
                let duration = shorthand::duration("--duration", text).map_err(Failure::usage)?;
                if duration < Span::s(5) {
                    return Err(Failure::usage(format!("--duration: cannot be {text:?}; allowed: 5s and more")));
                }
                duration
            }
            None => usual_duration(link.each_ref().map(RateSpec::initial), has_video_call),
        };
        Ok(Household {
            layer,
            link,
            rtt: shorthand::span("--rtt", &self.rtt).map_err(Failure::usage)?,
            buffer,
            members,
            has_many_hosts: self.users.is_some(),
            duration,
            // GCC needs half a minute from its first rate to that of a good picture, however empty the link is.
            warmup: if has_video_call { duration / 2 } else { duration / 5 },
        })
    }

    /// The candidates, with what their commands deploy.
    fn candidates(&self, household: &Household) -> Result<Vec<(Candidate, [Shaping; 2])>, Failure> {
        let chosen = match &self.queues {
            None if household.can_be_followed() => Candidate::all_of_mechanisms(household.varies()),
            None => Candidate::all(),
            Some(text) => {
                let one = |text: &str| {
                    Candidate::named(text).map_err(|name| {
                        let allowed = queues::ALL.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
                        let why = if name.starts_with('@') { "is no share of a rate" } else { "cannot be deployed on a router" };
                        Failure::usage(format!(
                            "--queues: {name:?} {why}; allowed: {allowed}, each perhaps with @1 to @100 behind it, and +autorate"
                        ))
                    })
                };
                text.split(',').map(one).collect::<Result<Vec<_>, _>>()?
            }
        };
        if let Some(twice) = (1..chosen.len()).find(|&n| chosen[..n].iter().any(|one| one.label() == chosen[n].label()))
        {
            return Err(Failure::usage(format!("--queues: \"{}\" is given twice", chosen[twice].label())));
        }
        for one in &chosen {
            let refuse = |what: &str| Err(Failure::usage(format!("--queues: \"{}\": {what}", one.label())));
            if one.follows() && !household.can_be_followed() {
                return refuse("a shaper follows a link that changes; allowed with --link docsis, cellular, wifi, leo");
            }
            if one.follows() && !one.can_follow() {
                return refuse("probes would wait with all other packets; allowed: queues that serve flows in turn");
            }
            if one.percent() != Candidate::USUAL_PERCENT && !one.follows() && !household.varies() {
                return refuse(
                    "the link's rate is constant; allowed where it varies: with a trace, and with --link cellular, wifi, leo",
                );
            }
        }
        let shaped =
            |one: Candidate| Ok((one, one.shaping(household.rates(), household.layer).map_err(Failure::other)?));
        chosen.into_iter().map(shaped).collect()
    }

    /// The interface's name. It goes into commands for a shell, so it may have no letter that means something there.
    fn interface(&self) -> Result<String, Failure> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let name = &self.interface;
        if (1..=15).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with(['-', '.']) {
            Ok(name.clone())
        } else {
            Err(Failure::usage(format!(
                "--interface: cannot be {name:?}; allowed: 1 to 15 letters, digits, \"_\", \".\" and \"-\", beginning with a letter or digit"
            )))
        }
    }

    /// Every run of every candidate, and of the link as it is at the end.
    fn jobs_of(&self, household: &Household, candidates: &[(Candidate, [Shaping; 2])]) -> Result<Vec<Job>, Failure> {
        let queues = candidates.iter().map(|(one, shaping)| (one.label(), Some(shaping)));
        let seeds = self.seed..self.seed + self.runs;
        let job = |name: &str, shaping: Option<&[Shaping; 2]>, seed: u64| {
            let scenario = household.scenario(shaping, seed).repeated();
            scenario.validate().map_err(Failure::usage)?;
            Ok::<Job, Failure>(Job { label: format!("{name} seed {seed}"), scenario })
        };
        let mut jobs = Vec::new();
        for (name, shaping) in queues.chain([(AS_IT_IS.to_owned(), None)]) {
            for seed in seeds.clone() {
                jobs.push(job(&name, shaping, seed)?);
            }
        }
        Ok(jobs)
    }
}
