//! Rate halving: how Linux 2.6 brought the window down after a loss, before it had proportional rate reduction (`tcp_cwnd_down`,
//! `tcp_complete_cwr` and `tcp_moderate_cwnd` of Linux 2.6.26). Counts segments.

/// Linux's `tcp_max_burst`.
const MAX_BURST: u32 = 3;

/// A reduction of the window.
#[derive(Clone, Debug, Default)]
pub struct RateHalving {
    cwnd: u32,
    /// The next acknowledgment takes one segment from the window.
    takes: bool,
}

impl RateHalving {
    /// A reduction starts from this window.
    pub fn start(&mut self, cwnd: u32) {
        *self = RateHalving { cwnd, takes: false };
    }

    /// The window now.
    pub const fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// An acknowledgment of something new. Every second one makes the window smaller by a segment, down to `floor`, and it exceeds what is
    /// in flight by one at most, so that no acknowledgment lets out more than one segment.
    pub fn on_ack(&mut self, floor: u32, inflight: u32) {
        let takes = self.takes;
        self.takes = !takes;
        if takes && self.cwnd > floor {
            self.cwnd -= 1;
        }
        self.cwnd = self.cwnd.min(inflight + 1);
    }

    /// The window after the reduction: slow start leads from there to `ssthresh`.
    pub fn end(&self, ssthresh: u32, inflight: u32) -> u32 {
        self.cwnd.min(ssthresh).min(inflight + MAX_BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_leaves_for_every_second_acknowledgment() {
        let mut halving = RateHalving::default();
        halving.start(20);
        let (mut inflight, mut sent) = (19, 0);
        for _ in 0..20 {
            halving.on_ack(10, inflight);
            let window = halving.cwnd();
            assert!(window <= inflight + 1);
            while inflight < window {
                (inflight, sent) = (inflight + 1, sent + 1);
            }
            inflight -= 1;
        }
        assert_eq!((sent, halving.cwnd), (10, 10));
    }

    #[test]
    fn the_window_stops_at_its_floor() {
        let mut halving = RateHalving::default();
        halving.start(8);
        let windows: [u32; 12] = core::array::from_fn(|_| {
            halving.on_ack(4, 20);
            halving.cwnd()
        });
        assert_eq!(windows, [8, 7, 7, 6, 6, 5, 5, 4, 4, 4, 4, 4]);
    }

    #[test]
    fn after_many_losses_it_ends_three_above_what_is_in_flight() {
        let mut halving = RateHalving::default();
        halving.start(20);
        halving.on_ack(10, 19);
        assert_eq!((halving.end(10, 30), halving.end(10, 2), halving.end(30, 30)), (10, 5, 20));
    }
}
