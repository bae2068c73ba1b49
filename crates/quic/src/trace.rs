//! Connections recorded and played back.
use crate::event::Event;
use crate::shared_control::{Settings, SharedControl};
use crate::verdict::TimedVerdict;
use narrows_core::Time;
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry;
use std::fmt;
use std::io::{self, BufRead, Write};

/// First words of a trace.
const MAGIC: &str = "narrows-quic 1";

/// Writes a connection's events.
pub(crate) struct Recorder {
    into: Box<dyn Write + Send>,
    /// The first write that failed; nothing is written after it.
    failed: Option<io::Error>,
}

impl Recorder {
    pub(crate) fn new(into: Box<dyn Write + Send>, settings: &Settings) -> Recorder {
        let mut recorder = Recorder { into, failed: None };
        let Settings { controller, fallback, then, seed } = settings;
        recorder.line(format_args!("{MAGIC}\ncontroller {controller}\nfallback {fallback}"));
        if let Some(then) = then {
            recorder.line(format_args!("then {then}"));
        }
        recorder.line(format_args!("seed {seed}"));
        recorder
    }

    pub(crate) fn record(&mut self, event: &Event) {
        self.line(format_args!("{event}"));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        if self.failed.is_none() {
            self.failed = writeln!(self.into, "{line}").err();
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.failed.take().map_or_else(|| self.into.flush(), Err)
    }
}

/// A recorded connection: what [`Config::record`](crate::Config::record) wrote.
#[derive(Clone, Debug)]
pub struct Trace {
    settings: Settings,
    events: Vec<Event>,
}

/// What is wrong with a trace.
#[derive(Debug)]
pub enum TraceError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// This line is not what belongs there.
    Line {
        /// From 1.
        line: usize,
        /// What belongs there.
        expected: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Unreadable(error) => write!(f, "a trace that cannot be read: {error}"),
            TraceError::Line { line, expected } => write!(f, "line {line} of a trace: expected {expected}"),
        }
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Whether these first bytes of a file belong to a trace.
    pub fn is_own(head: &[u8]) -> bool {
        head.starts_with(MAGIC.as_bytes())
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// When it cannot be read, or is not a trace of this version; the error names the line.
    pub fn read(from: impl BufRead) -> Result<Trace, TraceError> {
        let mut lines = (1..).zip(from.lines());
        let mut next = |expected: &str| match lines.next() {
            Some((line, Ok(text))) => Ok((line, text)),
            Some((_, Err(error))) => Err(TraceError::Unreadable(error)),
            None => Err(TraceError::Line { line: 1, expected: format!("{expected}, and not the end") }),
        };
        let wrong = |line: usize, expected: &str| TraceError::Line { line, expected: expected.into() };
        let (line, magic) = next(MAGIC)?;
        if magic != MAGIC {
            return Err(wrong(line, MAGIC));
        }
        let mut controller = |key: &str| -> Result<ControllerConfig, TraceError> {
            let (line, text) = next(key)?;
            let text = text.strip_prefix(key).ok_or_else(|| wrong(line, key))?;
            registry::read(text).map_err(|expected| TraceError::Line { line, expected })
        };
        let (config, fallback) = (controller("controller ")?, controller("fallback ")?);
        let (mut line, mut seed) = next("seed")?;
        let mut then = None;
        if let Some(text) = seed.strip_prefix("then ") {
            then = Some(registry::read(text).map_err(|expected| TraceError::Line { line, expected })?);
            (line, seed) = next("seed")?;
        }
        let seed =
            seed.strip_prefix("seed ").and_then(|seed| seed.parse().ok()).ok_or_else(|| wrong(line, "seed N"))?;
        let mut events: Vec<Event> = Vec::new();
        for (line, text) in lines {
            let event: Event = text.map_err(TraceError::Unreadable)?.parse().map_err(|_| wrong(line, "an event"))?;
            if events.last().is_some_and(|last| last.at > event.at) {
                return Err(wrong(line, "an event that is not earlier than the one before"));
            }
            events.push(event);
        }
        Ok(Trace { settings: Settings { controller: config, fallback, then, seed }, events })
    }

    /// Its events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Plays it to a new controller; returns the verdicts.
    pub fn replay(&self) -> Vec<TimedVerdict> {
        let mut shared = SharedControl::new(self.settings.clone());
        let decide = |event: &Event| {
            shared.apply(event);
            shared.new_verdict().map(|verdict| TimedVerdict { at: event.at, verdict })
        };
        self.events.iter().filter_map(decide).collect()
    }

    /// How long the connection lasted.
    pub fn duration(&self) -> Time {
        self.events.last().map_or(Time::ZERO, |event| event.at)
    }
}
