//! Why a packet was dropped. Every drop has exactly one reason.

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// The queue as a whole is at its limit.
    QueueFull,
    /// The packet's flow is at its own limit.
    FlowLimit,
    /// The byte budget for everything queued is used up.
    MemoryLimit,
    /// Evicted from the fattest flow to make room for another packet.
    Evicted,
    /// An AQM's control law: sojourn time, drop probability.
    Aqm,
    /// A policer: too few tokens.
    Policed,
    /// No bucket, class or horizon accepts the packet.
    Unclassified,
    /// The link's random loss.
    LinkLoss,
    /// A bit was changed behind the link: the receiver's checksum fails.
    Corrupted,
    /// The delay line behind the link is at its limit.
    DelayLine,
    /// An acknowledgment that a later one in the queue replaces.
    Superseded,
}

impl DropReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [DropReason; 11] = [
        DropReason::QueueFull,
        DropReason::FlowLimit,
        DropReason::MemoryLimit,
        DropReason::Evicted,
        DropReason::Aqm,
        DropReason::Policed,
        DropReason::Unclassified,
        DropReason::LinkLoss,
        DropReason::Corrupted,
        DropReason::DelayLine,
        DropReason::Superseded,
    ];

    /// Whether the packet had left its queue, and the link had sent it.
    pub const fn is_behind_link(self) -> bool {
        matches!(self, DropReason::LinkLoss | DropReason::Corrupted | DropReason::DelayLine)
    }

    /// The name in results: `queue_full`.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::FlowLimit => "flow_limit",
            DropReason::MemoryLimit => "memory_limit",
            DropReason::Evicted => "evicted",
            DropReason::Aqm => "aqm",
            DropReason::Policed => "policed",
            DropReason::Unclassified => "unclassified",
            DropReason::LinkLoss => "link_loss",
            DropReason::Corrupted => "corrupted",
            DropReason::DelayLine => "delay_line",
            DropReason::Superseded => "superseded",
        }
    }
}
