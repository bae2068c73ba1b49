//! The receive window as far as it decides what is acknowledged: Linux offers half of its receive buffer at first, learns
//! from the first full-sized segment how much of the memory is payload, and then lets the window grow by two segments with
//! each one that arrives (`tcp_grow_window`). The sender is told of each growth at once.
//!
//! The receiver's application reads at once, and the buffer keeps its size. Neither Linux's autotuning of the buffer nor
//! the limit that the window is to a sender is modelled.
use narrows_scenario::transport::TcpParams;

/// Memory that a segment takes beside its payload: 320 bytes of headers, a `sk_buff` of 256 and a `skb_shared_info` of 320.
const OVERHEAD: u64 = 896;
/// Share of the memory that counts as payload until a segment has been seen, of 256 (Linux `TCP_DEFAULT_SCALING_RATIO`).
const FIRST_SHARE: u64 = 128;
/// What is taken for a full-sized segment at first (Linux `TCP_MSS_DEFAULT`).
const FIRST_LARGEST: u32 = 536;
/// Smaller segments do not make it grow (Linux `tcp_event_data_recv`).
const LEAST: u32 = 128;
/// IP and TCP headers without options, which an advertised MSS leaves out (RFC 6691).
const BARE_HEADERS: u64 = 40;

/// The window that a receiver offers.
pub(super) struct ReceiveWindow {
    /// Memory for it.
    buffer: u64,
    /// Linux `rcv_ssthresh`, bytes of payload.
    offered: u64,
    /// Payload per 256 bytes of memory (Linux `scaling_ratio`).
    share: u64,
    /// Payload of the largest segment so far (Linux `rcv_mss`).
    largest: u32,
    advertised_mss: u64,
}

impl ReceiveWindow {
    pub(super) fn new(params: &TcpParams) -> ReceiveWindow {
        let (buffer, advertised_mss) = (params.receive_buffer.0, params.packet.0 - BARE_HEADERS);
        let half = (buffer * FIRST_SHARE) >> 8;
        // One segment is kept back (Linux `tcp_init_buffer_space`).
        let offered = half.saturating_sub(advertised_mss).max(2 * advertised_mss).min(half);
        ReceiveWindow { buffer, offered, share: FIRST_SHARE, largest: FIRST_LARGEST, advertised_mss }
    }

    /// A new segment with so much payload arrives: does the window grow with it?
    pub(super) fn grow(&mut self, len: u32) -> bool {
        let payload = u64::from(len);
        if len > self.largest {
            self.largest = len;
            self.share = (payload << 8) / (payload + OVERHEAD);
            self.offered = self.offered.min((self.buffer * self.share) >> 8);
        }
        let space = (self.buffer.saturating_sub(payload + OVERHEAD) * self.share) >> 8;
        if len < LEAST || space <= self.offered {
            return false;
        }
        self.offered = space.min(self.offered + 2 * payload.max(self.advertised_mss));
        true
    }

    /// Once it has not grown with a segment, it grows only with one that has more payload than this.
    pub(super) fn largest(&self) -> u32 {
        self.largest
    }
}
