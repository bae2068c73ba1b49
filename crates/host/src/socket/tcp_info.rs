//! The kernel's state of a TCP connection (`struct tcp_info`, linux/tcp.h), from `TCP_INFO` or socket diagnostics.
//!
//! The structure only grows at its end, so its fields are read as bytes at their offsets: fields that an older kernel lacks are
//! absent, fields that a newer one adds are ignored.
use super::option::Opt;
use narrows_core::{Rate, Span};
use narrows_world::meters::{Meters, SenderStats};
use std::io;
use std::os::fd::AsFd;

/// The fields that are used.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TcpInfo {
    /// The connection's state (linux/tcp_states.h); 1 is established.
    pub state: u8,
    /// Whether ECN has been negotiated.
    pub ecn: bool,
    /// Payload of a full-sized packet, bytes.
    pub segment: u32,
    /// Sent and not acknowledged cumulatively, packets.
    pub unacked: u32,
    /// Of those, packets acknowledged selectively.
    pub sacked: u32,
    /// Of those, packets marked lost.
    pub lost: u32,
    /// Retransmitted packets in flight.
    pub retrans: u32,
    /// Smoothed RTT, when there has been a sample.
    pub srtt: Option<Span>,
    /// Slow-start threshold, packets, once it is set.
    pub ssthresh: Option<u32>,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Packets retransmitted in total.
    pub total_retrans: u32,
    /// The pacing rate, which Linux computes even for connections that do not pace.
    pub pacing: Option<Rate>,
    /// Payload acknowledged in total, bytes (Linux 4.19).
    pub acked: Option<u64>,
    /// Packets delivered in total (Linux 4.18).
    pub delivered: Option<u32>,
    /// Of those, packets reported as CE-marked (Linux 4.18).
    pub delivered_ce: Option<u32>,
    /// Retransmission timeouts in total (Linux 6.7).
    pub timeouts: Option<u16>,
}

/// Buffer size, bytes: larger than the structure of any kernel so far.
pub(crate) const ROOM: usize = 512;
/// `TCPI_OPT_ECN`.
const OPT_ECN: u8 = 8;
/// Linux: `TCP_INFINITE_SSTHRESH`.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

impl TcpInfo {
    /// What the kernel says of a connection now.
    ///
    /// # Errors
    /// When the socket is no TCP socket.
    pub fn of(socket: impl AsFd) -> io::Result<TcpInfo> {
        let mut bytes = [0; ROOM];
        let len = Opt::TCP_INFO.get(socket, &mut bytes)?;
        TcpInfo::read(&bytes[..len]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads the kernel's bytes; `None` if not even the oldest fields are there.
    pub fn read(bytes: &[u8]) -> Option<TcpInfo> {
        let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        Some(TcpInfo {
            state: *bytes.first()?,
            ecn: bytes.get(5)? & OPT_ECN != 0,
            segment: u32_at(16)?,
            unacked: u32_at(24)?,
            sacked: u32_at(28)?,
            lost: u32_at(32)?,
            retrans: u32_at(36)?,
            srtt: u32_at(68).filter(|&us| us > 0).map(|us| Span::us(u64::from(us))),
            ssthresh: u32_at(76).filter(|&packets| packets < NO_THRESHOLD),
            cwnd: u32_at(80)?,
            total_retrans: u32_at(100)?,
            pacing: u64_at(104).filter(|&rate| rate > 0 && rate < u64::MAX / 8).map(|rate| Rate::bit(rate * 8)),
            // The kernel counts SYN and FIN as a byte each where they are acknowledged, but not where they are sent.
            acked: u64_at(120)
                .zip(u64_at(200).zip(u64_at(208)))
                .map(|(acked, (sent, resent))| acked.min(sent.saturating_sub(resent))),
            delivered: u32_at(192),
            delivered_ce: u32_at(196),
            timeouts: u16_at(240),
        })
    }

    /// Packets in flight (Linux: `tcp_packets_in_flight`).
    pub fn inflight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// The sender's state, for the records. Linux computes a pacing rate for every connection; `paced` says whether this one uses
    /// it.
    pub fn meters(&self, paced: bool) -> Meters {
        Meters {
            cwnd: f64::from(self.cwnd),
            inflight: Some(f64::from(self.inflight())),
            ssthresh: self.ssthresh.map(f64::from),
            pacing: self.pacing.filter(|_| paced),
            srtt: self.srtt,
        }
    }

    /// The sender's counters, for the records.
    pub fn stats(&self) -> SenderStats {
        SenderStats { retransmits: u64::from(self.total_retrans), timeouts: self.timeouts.map_or(0, u64::from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut put = |at: usize, value: u32| {
            if let Some(field) = bytes.get_mut(at..at + 4) {
                field.copy_from_slice(&value.to_ne_bytes());
            }
        };
        put(24, 30);
        put(28, 5);
        put(32, 4);
        put(36, 2);
        put(68, 41_000);
        put(76, NO_THRESHOLD);
        put(80, 33);
        put(100, 7);
        put(120, 5_002);
        put(200, 6_000);
        put(208, 1_000);
        put(192, 900);
        bytes
    }

    #[test]
    fn what_a_kernel_does_not_have_is_absent() {
        let old = TcpInfo::read(&bytes(104)).unwrap();
        assert_eq!((old.cwnd, old.total_retrans, old.srtt), (33, 7, Some(Span::ms(41))));
        assert_eq!((old.ssthresh, old.pacing, old.acked, old.delivered, old.timeouts), (None, None, None, None, None));
        let new = TcpInfo::read(&bytes(248)).unwrap();
        assert_eq!((new.acked, new.delivered, new.timeouts), (Some(5_000), Some(900), Some(0)));
        assert_eq!(TcpInfo::read(&bytes(80)), None);
        assert_eq!(TcpInfo::read(&[]), None);
    }

    #[test]
    fn in_flight_is_what_is_neither_acknowledged_nor_lost() {
        assert_eq!(TcpInfo::read(&bytes(104)).unwrap().inflight(), 30 - 5 - 4 + 2);
    }
}
