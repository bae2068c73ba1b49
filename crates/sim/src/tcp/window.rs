//! The receive window, as far as it decides what is acknowledged. Linux offers half of its receive buffer at first. From the
//! first full-sized segment it learns which share of the memory is payload, and then lets the window grow by two segments with
//! each one that arrives (`tcp_grow_window`). The sender hears of each growth at once.
//!
//! The receiver's application reads at once. If the buffer may grow, it is resized to twice the data of the last round trip, and
//! to more if that exceeded the round trip before (`tcp_rcv_space_adjust`). A round trip is the base RTT here, where Linux
//! measures it. With `receive_limit` the window limits the sender.
use narrows_core::{Span, Time};
use narrows_scenario::Family;
use narrows_scenario::transport::TcpParams;

/// Memory of a segment in addition to its payload, bytes: 320 of headers, a `sk_buff` of 256 and a `skb_shared_info` of 320.
const OVERHEAD: u64 = 896;
/// Share of the memory that counts as payload before the first segment, of 256 (Linux `TCP_DEFAULT_SCALING_RATIO`).
const FIRST_SHARE: u64 = 128;
/// Initial estimate of a full-sized segment, bytes (Linux `TCP_MSS_DEFAULT`).
const FIRST_LARGEST: u32 = 536;
/// Smaller segments do not make the window grow (Linux `tcp_event_data_recv`).
const MIN: u32 = 128;
/// IPv4 and TCP headers without options, bytes, which an advertised MSS does not count (RFC 6691).
const BARE_HEADERS: u64 = 40;
/// Number of segments assumed for the round trip before the first (Linux `TCP_INIT_CWND`).
const FIRST_ROUND: u64 = 10;
/// Segments for which the buffer has room in addition to twice a round trip's bytes.
const SPARE: u64 = 16;

/// The window that a receiver offers.
pub(super) struct ReceiveWindow {
    /// Size of the buffer, bytes of memory.
    buffer: u64,
    /// Linux `rcv_ssthresh`, bytes of payload.
    offered: u64,
    /// Payload per 256 bytes of memory (Linux `scaling_ratio`).
    share: u64,
    /// Payload of the largest segment so far (Linux `rcv_mss`).
    largest: u32,
    advertised_mss: u64,
    autotuning: Autotuning,
}

/// State of the buffer's automatic growth.
struct Autotuning {
    /// Maximum size, bytes.
    most: u64,
    rtt: Span,
    /// When the present round trip ends, and the number of segments before it.
    ends: Time,
    began: u64,
    /// Payload of the largest round trip so far, bytes (Linux `rcvq_space.space`).
    largest: u64,
}

impl ReceiveWindow {
    pub(super) fn new(params: &TcpParams, family: Family, rtt: Span) -> ReceiveWindow {
        let bare = BARE_HEADERS + family.extra().0;
        let (buffer, advertised_mss) = (params.receive_buffer.0, params.packet.0 - bare);
        let half = (buffer * FIRST_SHARE) >> 8;
        // Linux subtracts one segment (`tcp_init_buffer_space`).
        let offered = half.saturating_sub(advertised_mss).max(2 * advertised_mss).min(half);
        let most = params.receive_buffer_max.0.max(buffer);
        let autotuning = Autotuning { most, rtt, ends: Time::ZERO, began: 0, largest: FIRST_ROUND * advertised_mss };
        ReceiveWindow { buffer, offered, share: FIRST_SHARE, largest: FIRST_LARGEST, advertised_mss, autotuning }
    }

    /// Whether the buffer can still grow.
    pub(super) fn is_autotuned(&self) -> bool {
        self.buffer < self.autotuning.most
    }

    /// At the end of a round trip, resizes the buffer for its data. `segments` have come in order since the connection began.
    fn adjust(&mut self, segments: u64, now: Time) {
        let tuning = &mut self.autotuning;
        if now < tuning.ends {
            return;
        }
        let is_first = tuning.ends == Time::ZERO;
        let copied = (segments - tuning.began) * u64::from(self.largest);
        (tuning.ends, tuning.began) = (now + tuning.rtt, segments);
        if is_first || copied <= tuning.largest {
            return;
        }
        let room = 2 * copied + SPARE * self.advertised_mss;
        let growth = u128::from(room) * u128::from(copied - tuning.largest) / u128::from(tuning.largest);
        let room = u128::from(room) + 2 * growth;
        tuning.largest = copied;
        let buffer = u64::try_from((room << 8) / u128::from(self.share)).unwrap_or(u64::MAX);
        self.buffer = self.buffer.max(buffer.min(tuning.most));
    }

    /// Takes a new segment with `len` bytes of payload; returns whether the window grows with it. `before` is the number of
    /// segments that have come in order. Without a gap it includes this one; with a gap in the sequence it does not, even if
    /// this one fills the gap.
    #[inline]
    pub(super) fn grow(&mut self, len: u32, before: u64, now: Time) -> bool {
        if self.is_autotuned() {
            self.adjust(before, now);
        }
        let payload = u64::from(len);
        self.measure(len, len);
        let space = (self.buffer.saturating_sub(payload + OVERHEAD) * self.share) >> 8;
        if len < MIN || space <= self.offered {
            return false;
        }
        self.offered = space.min(self.offered + 2 * payload.max(self.advertised_mss));
        true
    }

    /// Learns the share of memory that is payload from the first packet with segments of this size (Linux `tcp_measure_rcv_mss`): a
    /// packet of several has more payload for the same headers and bookkeeping.
    pub(super) fn measure(&mut self, segment: u32, packet: u32) {
        if segment > self.largest {
            let payload = u64::from(packet);
            self.largest = segment;
            self.share = (payload << 8) / (payload + OVERHEAD);
            self.offered = self.offered.min((self.buffer * self.share) >> 8);
        }
    }

    /// The window, bytes of payload.
    pub(super) fn offered(&self) -> u32 {
        u32::try_from(self.offered).unwrap_or(u32::MAX)
    }

    /// Once the window has not grown with a segment, it grows only with one that has more payload than this.
    pub(super) fn largest(&self) -> u32 {
        self.largest
    }
}
