//! TCP as in Linux: a sender and a receiver, which are state machines that know neither a clock nor a network.
//!
//! Sequence numbers count segments, as Linux does when every buffer is one segment: segment n is the n-th that was sent for the
//! first time, and each has its own length. Segments cross the network one way, alone or several in one packet
//! (`offload.rs`), and [`AckSegment`]s the other.
//!
//! Sources: RFC 9293, 6298 (RTO), 2018/2883 (SACK, D-SACK), 8985 (RACK-TLP), 9937 (PRR), 5682 (F-RTO), 3168 (ECN),
//! draft-cheng-iccrg-delivery-rate-estimation; where they leave room, Linux's `tcp_input.c`, `tcp_output.c`,
//! `tcp_recovery.c`, `tcp_rate.c`.
mod ack;
mod delayed_ack;
mod endpoint;
mod linux26;
mod offload;
mod receiver;
mod recovery;
mod reordering;
mod rtt;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;
mod ticks;
mod window;

use narrows_core::{Role, Time};
use narrows_world::record::packets::{Answer, RANGES};

pub(crate) use endpoint::{Spin, Tcp};
use receiver::Incoming;
pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;
use sender::Transmission;

/// Number of SACK blocks that fit beside timestamps (RFC 2018 §3).
const MAX_SACKS: usize = 3;
/// Length of the SACK option without blocks, with two bytes of padding (Linux `TCPOLEN_SACK_BASE_ALIGNED`), and of a block (RFC 2018 §3).
const SACK_OPTION_LEN: u32 = 4;
const SACK_BLOCK_LEN: u32 = 8;

/// The fields of an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSegment {
    /// Next segment expected; all earlier ones have arrived.
    pub(crate) ack: u64,
    /// SACK blocks as (start, end) offsets from `ack`, modulo 2³²: a D-SACK if `duplicate` is set, then blocks beyond `ack`, the most
    /// recent first.
    sacks: [(u32, u32); MAX_SACKS],
    /// Timestamp of the acknowledged segment, ms (RFC 7323 §4.3).
    echo: u32,
    /// The receiver has room for this much beyond `ack`, bytes, if that limits its sender.
    window: Option<u32>,
    /// The number of blocks in `sacks`.
    blocks: u8,
    /// The ECE flag (RFC 3168 §6.1).
    ece: bool,
    /// Number of CE-marked packets, modulo 256, in place of the ECE flag. (AccECN counts modulo 8 in the header and more
    /// precisely in an option.)
    marked: u8,
    /// The first block is a D-SACK: its segments arrived twice (RFC 2883).
    duplicate: bool,
}

// Return pipes have slots of one size for all transports.
const _: () = assert!(size_of::<AckSegment>() <= 48);

impl AckSegment {
    /// Its role, as a middlebox can read it.
    pub(crate) fn role(&self) -> Role {
        Role::ack(self.blocks > 0, self.ece)
    }

    /// Its length at the IP layer, bytes; `header` is that of a packet without SACK blocks (Linux `tcp_established_options`).
    #[inline]
    pub(crate) fn ip_len(&self, header: u32) -> u32 {
        match u32::from(self.blocks) {
            0 => header,
            blocks => header + SACK_OPTION_LEN + SACK_BLOCK_LEN * blocks,
        }
    }

    /// Its fields, for the record of packets.
    pub(crate) fn recorded(&self) -> Answer {
        let mut ranges = [(0, 0); RANGES];
        ranges.iter_mut().zip(self.blocks()).for_each(|(slot, range)| *slot = range);
        let (count, marks) = (self.blocks, u16::from(self.marked));
        let (number, duplicate, echo, ece) = (self.ack, self.duplicate, self.echo, self.ece);
        Answer { number, ranges, count, duplicate, echo, ece, marks, ..Answer::default() }
    }

    /// All blocks.
    fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        // A D-SACK may lie before `ack`.
        let place = |offset: u32| self.ack.saturating_add_signed(i64::from(offset as i32));
        self.sacks[..usize::from(self.blocks)].iter().map(move |&(start, end)| (place(start), place(end)))
    }

    /// The blocks without the D-SACK.
    fn sacks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.blocks().skip(usize::from(self.duplicate))
    }
}

/// The clock of timestamps (RFC 7323 §5.4), which ticks every millisecond as Linux's.
#[inline]
fn milliseconds(now: Time) -> u32 {
    (now.as_ns() / 1_000_000) as u32
}
