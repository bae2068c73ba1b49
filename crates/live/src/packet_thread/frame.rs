//! Reading and changing packets: sans-I/O, without allocation, in buffers that belong to the caller.
//!
//! A packet comes from a TUN device as an IP packet with a virtio-net header ([`Offload`]) before it. The kernel leaves work to
//! the device: segmentation of TCP payloads larger than the MTU, and checksums that are only partly computed.
//!
//! - [`Segments`] cuts such a super-packet into the packets that a wire would have seen;
//! - [`Header`] reads the fields that a queue may use: flow, ECN, DSCP, TCP's numbers; [`Header::hash`] is the flow's hash;
//! - [`mark_ce`] marks a packet, [`complete_checksum`] completes a partial checksum;
//! - [`Join`] joins consecutive packets of one flow, so that the receiving kernel gets them in one call.
//!
//! Headers: IPv4 (RFC 791), IPv6 and its extension headers (RFC 8200), TCP (RFC 9293), UDP (RFC 768), ICMP's echo (RFC 792,
//! RFC 4443), checksums (RFC 1071, RFC 1624), offloads (Virtio 1.2 §5.1.6).
use narrows_host::protocol;

mod checksum;
mod corrupt;
mod hash;
mod header;
mod join;
mod layout;
mod malformed;
mod mark;
mod offload;
#[cfg(test)]
mod samples;
mod segments;

pub use checksum::complete_checksum;
pub use corrupt::corrupt;
pub(crate) use hash::hash_both_ways;
pub use header::{Header, TcpHeader};
pub use join::Join;
pub use malformed::Malformed;
pub use mark::mark_ce;
pub use offload::Offload;
pub use segments::Segments;

/// Flags in the fourteenth byte of a TCP header (RFC 9293 §3.1).
mod flag {
    pub(super) const FIN: u8 = 0x01;
    pub(super) const SYN: u8 = 0x02;
    pub(super) const RST: u8 = 0x04;
    pub(super) const PSH: u8 = 0x08;
    pub(super) const ACK: u8 = 0x10;
    pub(super) const ECE: u8 = 0x40;
    pub(super) const CWR: u8 = 0x80;
}
