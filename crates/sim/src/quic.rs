//! A QUIC connection over one or two subflows, with RFC 9002's loss recovery and one congestion window for all subflows.
//!
//! Each subflow is a path as in multipath QUIC. It has its own packet numbers, acknowledgments, RTT, loss detection and flow
//! identity in the network. The subflows share the congestion controller, the window and the data, which are a stream divided
//! into chunks with one chunk per packet. Data lost on one subflow may be retransmitted on the other. As everywhere in `sim`,
//! neither side knows a clock or a network.
//!
//! Sources: RFC 9000 §13 (acknowledgments), RFC 9002 (RTT §5, loss detection §6, congestion events §7),
//! draft-ietf-quic-multipath. Not modelled: the handshake's packet number spaces (one round trip opens a connection), flow
//! control, and undoing a reduction that a late acknowledgment proves wrong.
mod endpoint;
mod receiver;
mod sender;
mod subflow;
#[cfg(test)]
mod tests;

pub(crate) use endpoint::Quic;
use receiver::Incoming;
pub(crate) use receiver::Receiver;
use sender::Datagram;
pub(crate) use sender::Sender;

pub(crate) use narrows_core::sender::packetwise::SUBFLOWS;
use narrows_world::record::packets::{Answer, RANGES};

/// Ranges in an acknowledgment; each range is repeated in as many acknowledgments.
const MAX_RANGES: usize = 3;

/// An ACK frame (RFC 9000 §19.3) for one subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckFrame {
    /// Largest packet number received.
    largest: u64,
    /// Received packets: (distance of the range's end from `largest`, number of packets), the highest first.
    ranges: [(u32, u32); MAX_RANGES],
    /// Delay of the acknowledgment of the largest packet, µs.
    delay_us: u32,
    /// Number of CE-marked packets, modulo 2^16 (RFC 9000 §19.3.2).
    marked: u16,
    /// The subflow of these packets.
    pub(crate) subflow: u8,
    /// The number of ranges in `ranges`.
    count: u8,
}

// Return pipes have slots of one size for all transports.
const _: () = assert!(size_of::<AckFrame>() <= 48);

impl AckFrame {
    /// Its fields, for the record of packets.
    pub(crate) fn recorded(&self) -> Answer {
        let mut ranges = [(0, 0); RANGES];
        ranges.iter_mut().zip(self.ranges()).for_each(|(slot, (first, last))| *slot = (first, last + 1));
        let (number, count, delay_us, marks) = (self.largest, self.count, self.delay_us, self.marked);
        Answer { number, ranges, count, delay_us, marks, subflow: self.subflow, ..Answer::default() }
    }

    /// The received packet numbers as (first, last), the highest first.
    fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges[..usize::from(self.count)].iter().map(|&(back, packets)| {
            let last = self.largest - u64::from(back);
            (last + 1 - u64::from(packets), last)
        })
    }
}
