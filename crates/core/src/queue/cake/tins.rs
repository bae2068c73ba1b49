//! CAKE's tins: the tin of each code point, and each tin's threshold rate, weight and times (Linux `cake_config_*`,
//! `cake_set_rate`).
use super::shaper::Pace;
use crate::queue::parts::cobalt_law::{CobaltLaw, P_DEC, P_INC};
use crate::{Bytes, Dscp, Rate, Span};
use alloc::vec::Vec;

choice! {
    /// How traffic is divided into tins.
    pub enum Diffserv {
        /// One tin.
        Besteffort = "besteffort",
        /// Eight, by the three bits of the old IP precedence.
        Precedence = "precedence",
        /// Bulk, best effort, latency-sensitive.
        Diffserv3 = "diffserv3",
        /// Bulk, best effort, streaming, latency-sensitive.
        Diffserv4 = "diffserv4",
        /// Eight, from background to network control.
        Diffserv8 = "diffserv8",
    }
}

/// Most tins (Linux: `CAKE_MAX_TINS`).
pub(super) const MAX_TINS: usize = 8;

impl Diffserv {
    /// The tin of a code point.
    #[inline]
    pub(super) fn tin(self, dscp: Dscp) -> usize {
        let code = usize::from(dscp.0 & 63);
        usize::from(match self {
            Diffserv::Besteffort => 0,
            Diffserv::Precedence => dscp.0 >> 3 & 7,
            Diffserv::Diffserv3 => DIFFSERV3[code],
            Diffserv::Diffserv4 => DIFFSERV4[code],
            Diffserv::Diffserv8 => DIFFSERV8[code],
        })
    }

    /// Each tin's share of the rate and weight among tins when there is no rate, as (numerator, bits to shift, quantum).
    fn shares(self) -> Vec<Share> {
        match self {
            Diffserv::Besteffort => alloc::vec![Share { rate: Fraction::Shifted(0), quantum: 65_535 }],
            Diffserv::Diffserv3 => shifted(&[0, 4, 2]),
            Diffserv::Diffserv4 => shifted(&[0, 4, 1, 2]),
            // Each has seven eighths of the one before.
            Diffserv::Precedence | Diffserv::Diffserv8 => {
                let mut quantum = 256;
                let share = |n| {
                    let share = Share { rate: Fraction::SevenEighths(n), quantum };
                    quantum = quantum * 7 / 8;
                    share
                };
                (0..MAX_TINS as u32).map(share).collect()
            }
        }
    }

    /// Every tin's constants.
    pub(super) fn tins(self, bandwidth: Option<Rate>, times: Times) -> Vec<TinLaw> {
        let law =
            |share: Share| TinLaw::new(bandwidth.map(|rate| share.rate.of(rate.as_bps() / 8)), share.quantum, times);
        self.shares().into_iter().map(law).collect()
    }
}

/// The constants in which the tins of a mode differ.
struct Share {
    rate: Fraction,
    quantum: i32,
}

enum Fraction {
    Shifted(u32),
    SevenEighths(u32),
}

impl Fraction {
    /// Of a rate in bytes per second, rounded down at each step.
    fn of(&self, rate: u64) -> u64 {
        match *self {
            Fraction::Shifted(bits) => rate >> bits,
            Fraction::SevenEighths(steps) => (0..steps).fold(rate, |rate, _| rate * 7 / 8),
        }
    }
}

fn shifted(bits: &[u32]) -> Vec<Share> {
    bits.iter().map(|&bits| Share { rate: Fraction::Shifted(bits), quantum: 1024 >> bits }).collect()
}

/// The times from which a tin's are derived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) target: Span,
    pub(super) rtt: Span,
    pub(super) mtu: Bytes,
}

/// A tin's constants.
#[derive(Clone, Copy, Debug)]
pub(super) struct TinLaw {
    /// The threshold up to which the tin has priority.
    pub(super) pace: Option<Pace>,
    /// Weight among tins when there is no shaper, bytes per round.
    pub(super) tin_quantum: i32,
    /// Bytes per round of a flow.
    pub(super) flow_quantum: i32,
    pub(super) cobalt: CobaltLaw,
}

/// Least and most bytes that a flow may send per round (Linux `cake_set_rate`).
const QUANTA: (u64, u64) = (300, 1514);

impl TinLaw {
    fn new(bytes_per_s: Option<u64>, tin_quantum: i32, times: Times) -> TinLaw {
        let pace = bytes_per_s.map(Pace::new);
        let flow_quantum = bytes_per_s.map_or(QUANTA.1, |rate| (rate >> 12).clamp(QUANTA.0, QUANTA.1));
        let mtu_time = pace.map_or(Span::ZERO, |pace| pace.time(times.mtu.0 as u32));
        let target = times.target.max(mtu_time * 3 / 2);
        let interval = (times.rtt + target - times.target).max(target * 2);
        let cobalt = CobaltLaw { target, interval, mtu_time, p_inc: P_INC, p_dec: P_DEC };
        TinLaw { pace, tin_quantum, flow_quantum: flow_quantum as i32, cobalt }
    }
}

/// Linux's tables, 16 code points a line: bulk is CS1 and LE, latency-sensitive TOS4, VA, EF, CS6, CS7.
#[rustfmt::skip]
const DIFFSERV3: [u8; 64] = [
    0, 1, 0, 0, 2, 0, 0, 0,  1, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 2, 0, 2, 0,
    2, 0, 0, 0, 0, 0, 0, 0,  2, 0, 0, 0, 0, 0, 0, 0,
];

/// Streaming is AF2x to AF4x, CS2, CS3, TOS4; latency-sensitive CS4 to CS7, VA, EF.
#[rustfmt::skip]
const DIFFSERV4: [u8; 64] = [
    0, 1, 0, 0, 2, 0, 0, 0,  1, 0, 0, 0, 0, 0, 0, 0,
    2, 0, 2, 0, 2, 0, 2, 0,  2, 0, 2, 0, 2, 0, 2, 0,
    3, 0, 2, 0, 2, 0, 2, 0,  3, 0, 0, 0, 3, 0, 3, 0,
    3, 0, 0, 0, 0, 0, 0, 0,  3, 0, 0, 0, 0, 0, 0, 0,
];

/// Background, high throughput, best effort, video, transactions, shell, minimum latency, network control.
#[rustfmt::skip]
const DIFFSERV8: [u8; 64] = [
    2, 0, 1, 2, 4, 2, 2, 2,  1, 2, 1, 2, 1, 2, 1, 2,
    5, 2, 4, 2, 4, 2, 4, 2,  3, 2, 3, 2, 3, 2, 3, 2,
    6, 2, 3, 2, 3, 2, 3, 2,  6, 2, 2, 2, 6, 2, 6, 2,
    7, 2, 2, 2, 2, 2, 2, 2,  7, 2, 2, 2, 2, 2, 2, 2,
];

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { target: Span::ms(5), rtt: Span::ms(100), mtu: Bytes(1500) };

    #[test]
    fn code_points_go_where_linux_puts_them() {
        // CS0, LE, CS1, AF11, AF41, CS5, VA, EF, CS7.
        let tins = |mode: Diffserv| [0, 1, 8, 10, 34, 40, 44, 46, 56].map(|code| mode.tin(Dscp(code)));
        assert_eq!(tins(Diffserv::Besteffort), [0; 9]);
        assert_eq!(tins(Diffserv::Precedence), [0, 0, 1, 1, 4, 5, 5, 5, 7]);
        assert_eq!(tins(Diffserv::Diffserv3), [0, 1, 1, 0, 0, 0, 2, 2, 2]);
        assert_eq!(tins(Diffserv::Diffserv4), [0, 1, 1, 0, 2, 3, 3, 3, 3]);
        assert_eq!(tins(Diffserv::Diffserv8), [2, 0, 1, 1, 3, 6, 6, 6, 7]);
    }

    #[test]
    fn thresholds_and_weights_of_the_tins() {
        let of = |mode: Diffserv| -> Vec<(u64, i32, i32)> {
            let tins = mode.tins(Some(Rate::mbit(16)), TIMES);
            let per_byte = |tin: &TinLaw| tin.pace.map_or(0, |pace| pace.time(1_000_000).as_ns() / 1_000_000);
            tins.iter().map(|tin| (per_byte(tin), tin.tin_quantum, tin.flow_quantum)).collect()
        };
        // Nanoseconds per byte at 16 Mbit/s: 500; a quarter of it 2000, a sixteenth 8000. Quanta: a 4096th of the rate.
        let near = |got: Vec<(u64, i32, i32)>, want: &[(u64, i32, i32)]| {
            assert_eq!(got.len(), want.len());
            for (got, want) in got.iter().zip(want) {
                assert!(got.0.abs_diff(want.0) <= 1 && (got.1, got.2) == (want.1, want.2), "{got:?} {want:?}");
            }
        };
        near(of(Diffserv::Diffserv3), &[(500, 1024, 488), (8000, 64, 300), (2000, 256, 300)]);
        near(of(Diffserv::Diffserv4), &[(500, 1024, 488), (8000, 64, 300), (1000, 512, 300), (2000, 256, 300)]);
        assert_eq!(of(Diffserv::Diffserv8)[7].1, 98);
        assert_eq!(of(Diffserv::Besteffort).len(), 1);
    }

    #[test]
    fn a_slow_tin_has_longer_times() {
        // Bulk of diffserv3 at 1 Mbit/s: 62.5 kbit/s, 1500 B take 192 ms.
        let tins = Diffserv::Diffserv3.tins(Some(Rate::mbit(1)), TIMES);
        let ms = |span: Span| span.as_ns() / 1_000_000;
        let times = |tin: &TinLaw| (ms(tin.cobalt.target), ms(tin.cobalt.interval));
        // Targets: one and a half packets. Interval: 100 + target − 5, or twice the target.
        assert_eq!((times(&tins[0]), times(&tins[1])), ((18, 113), (288, 576)));
        let unshaped = Diffserv::Diffserv3.tins(None, TIMES);
        assert_eq!(times(&unshaped[1]), (5, 100));
        assert_eq!(unshaped[1].flow_quantum, 1514);
    }
}
