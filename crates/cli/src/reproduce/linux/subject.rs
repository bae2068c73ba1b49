//! What stands beside the recorded figures: the simulator's, or those of a kernel that is measured now.
use narrows_core::Span;

/// Whose figures are compared with the recorded ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Subject {
    /// The simulator: does the model agree with the kernel?
    Simulator,
    /// A kernel of this release in a virtual machine: does a new measurement agree with the recorded one?
    Lab {
        /// The release, in full.
        release: String,
    },
}

/// The kernel's own delay in addition to `netem`'s on an idle path: the measured `min_rtt_ms` is 0.019–0.020 ms above the base
/// RTT, except where a retransmission's timestamp, in whole milliseconds, has replaced it.
const PROCESSING: Span = Span::us(20);

impl Subject {
    /// The heading of its columns.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Subject::Simulator => "Narrows",
            Subject::Lab { .. } => "lab",
        }
    }

    /// Its keys in JSON and CSV.
    pub(super) const fn key(&self) -> &'static str {
        match self {
            Subject::Simulator => "narrows",
            Subject::Lab { .. } => "lab",
        }
    }

    /// The comparison in a line.
    pub(super) fn title(&self) -> String {
        match self {
            Subject::Simulator => "Linux 7.2 and Narrows".to_owned(),
            Subject::Lab { release } => format!("Linux 7.2 as recorded, and Linux {release} measured in the lab"),
        }
    }

    /// Headings of the two groups of cells: those on which the model was developed, and the others.
    pub(super) const fn groups(&self) -> [&'static str; 2] {
        match self {
            Subject::Simulator => ["The model was worked out on these cells", "Never fitted"],
            Subject::Lab { .. } => ["Recorded in experiments/linux", "Recorded in experiments/linux/unseen"],
        }
    }

    /// What a scenario adds to the base RTT for the processing that a kernel does by itself.
    pub(super) const fn processing(&self) -> Span {
        match self {
            Subject::Simulator => PROCESSING,
            Subject::Lab { .. } => Span::ZERO,
        }
    }

    /// Whether it knows how long single packets and messages take.
    pub(super) const fn sees_packets(&self) -> bool {
        matches!(self, Subject::Simulator)
    }
}
