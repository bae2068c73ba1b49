//! What a sender learns from its packets: when each was sent, acknowledged or lost. No clock: times are those of the events.
use narrows_core::detector::Verdict;
use narrows_core::{Span, Time};
use narrows_quic::{Event, PATHS, TimedVerdict, What};
use std::collections::VecDeque;

/// Collects the events of a connection.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    paths: [Path; PATHS],
    /// The bulk transfer, once it has begun.
    load: Option<Load>,
    /// Of the bulk transfer's packets.
    pub(crate) acknowledged: Vec<Acknowledged>,
    pub(crate) losses: Vec<Loss>,
    /// RTTs of all packets, including those sent before the bulk transfer.
    pub(crate) samples: [Vec<Sample>; PATHS],
    pub(crate) verdicts: Vec<TimedVerdict>,
    /// Marks that came back.
    pub(crate) marks: u32,
    /// Bytes of UDP payload that were sent, in all.
    pub(crate) sent_bytes: u64,
    /// Lowest time to an answer without load, by the application's clock.
    pub(crate) idle: Option<Span>,
}

/// A bulk transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Its begin.
    pub from: Time,
    /// When nothing was sent any more.
    pub to: Option<Time>,
    /// Whether the rate was limited by this sender, and not by the path.
    pub capped: bool,
}

/// RTT of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) sent: Time,
    pub(crate) rtt: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) sent: Time,
    pub(crate) at: Time,
    pub(crate) path: u8,
    pub(crate) bytes: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub(crate) sent: Time,
    /// When it was noticed.
    pub(crate) at: Time,
    pub(crate) path: u8,
    pub(crate) bytes: u32,
}

#[derive(Clone, Debug, Default)]
struct Path {
    /// Number, time, length; a length of 0: its fate is known.
    flying: VecDeque<(u64, Time, u32)>,
    /// The packet with the largest number of the acknowledgments that came together.
    newest: Option<(u64, Time)>,
    /// Packets of the bulk transfer.
    sent: u64,
}

impl Meter {
    /// Something has happened.
    pub fn apply(&mut self, event: &Event) {
        let at = event.at;
        match event.what {
            What::Sent { path, number, bytes } => {
                self.sent_bytes += u64::from(bytes);
                let counts = self.load.is_some_and(|load| load.to.is_none());
                let path = &mut self.paths[usize::from(path)];
                path.sent += u64::from(counts);
                path.flying.push_back((number, at, bytes));
            }
            What::Acknowledged { path: index, number, .. } => {
                let path = &mut self.paths[usize::from(index)];
                let Some((sent, bytes)) = path.take(number) else { return };
                if path.newest.is_none_or(|(newest, _)| number > newest) {
                    path.newest = Some((number, sent));
                }
                if self.is_loaded(sent) {
                    self.acknowledged.push(Acknowledged { sent, at, path: index, bytes });
                }
            }
            What::EndAcks { path, .. } => {
                let index = usize::from(path);
                if let Some((_, sent)) = self.paths[index].newest.take() {
                    self.samples[index].push(Sample { sent, rtt: at.since(sent) });
                }
            }
            What::Lost { path, number, .. } => {
                let Some((sent, bytes)) = self.paths[usize::from(path)].take(number) else { return };
                if self.is_loaded(sent) {
                    self.losses.push(Loss { sent, at, path, bytes });
                }
            }
            What::Congestion { ecn, .. } => self.marks += u32::from(ecn),
            What::Begin { .. } | What::Only { .. } | What::Switch | What::Timer => {}
        }
    }

    /// The idle path answers so fast.
    pub fn idle(&mut self, rtt: Span) {
        self.idle = Some(rtt);
    }

    /// A bulk transfer begins. There is one for a meter.
    pub fn begin(&mut self, at: Time) {
        self.load = Some(Load { from: at, to: None, capped: false });
    }

    /// It sends no more.
    pub fn end(&mut self, at: Time) {
        if let Some(load) = &mut self.load {
            load.to = Some(at);
        }
    }

    /// This sender's own limit held it back.
    pub fn cap(&mut self) {
        if let Some(load) = &mut self.load {
            load.capped = true;
        }
    }

    /// The detector's verdict at this time.
    pub fn look(&mut self, at: Time, verdict: Verdict) {
        if self.verdicts.last().is_none_or(|last| last.verdict != verdict) {
            self.verdicts.push(TimedVerdict { at, verdict });
        }
    }

    /// The bulk transfer.
    pub const fn load(&self) -> Option<Load> {
        self.load
    }

    /// Bytes of UDP payload that were sent, in all.
    pub const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Packets of the bulk transfer, by path.
    pub(crate) fn sent(&self) -> [u64; PATHS] {
        self.paths.each_ref().map(|path| path.sent)
    }

    fn is_loaded(&self, sent: Time) -> bool {
        self.load.is_some_and(|load| sent >= load.from && load.to.is_none_or(|to| sent <= to))
    }
}

impl Path {
    fn take(&mut self, number: u64) -> Option<(Time, u32)> {
        let place = self.flying.partition_point(|&(flying, _, _)| flying < number);
        let (found, sent, bytes) = self.flying.get_mut(place)?;
        let taken = (*found == number && *bytes > 0).then_some((*sent, *bytes));
        if taken.is_some() {
            *bytes = 0;
        }
        while self.flying.front().is_some_and(|&(_, _, bytes)| bytes == 0) {
            self.flying.pop_front();
        }
        taken
    }
}
