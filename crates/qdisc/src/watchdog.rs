//! A watchdog over an attached qdisc: packets that wait while none leaves, for too long.
//!
//! The kernel detects a device that has stopped, but not a queue that has. A queue that makes no progress cuts off the interface, and
//! with it perhaps the only way to the machine; detaching it restores the queue that was there before.
use crate::snapshot::Snapshot;

/// Looks at snapshots of one qdisc, in the order of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Watchdog {
    /// Time without progress that is too long, s.
    patience_s: f64,
    /// Packets sent at the last progress, and the time, s. `None` before the first look.
    progress: Option<(u64, f64)>,
}

/// A qdisc that makes no progress.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stuck {
    /// Packets that wait.
    pub packets: u64,
    /// How long none has left, s.
    pub for_s: f64,
}

impl Watchdog {
    /// A watchdog that allows this time without progress, s.
    pub fn new(patience_s: f64) -> Watchdog {
        Watchdog { patience_s, progress: None }
    }

    /// Packets wait, and none has left during the time allowed.
    pub fn look(&mut self, now: &Snapshot) -> Option<Stuck> {
        self.judge(now.sent.packets, now.backlog.packets, now.time_s)
    }

    fn judge(&mut self, sent: u64, waiting: u64, time_s: f64) -> Option<Stuck> {
        match self.progress {
            // An empty queue has nothing to send: the time starts with its first packet.
            Some((before, since)) if before == sent && waiting > 0 => {
                let for_s = time_s - since;
                (for_s >= self.patience_s).then_some(Stuck { packets: waiting, for_s })
            }
            _ => {
                self.progress = Some((sent, time_s));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks once a second; the numbers are packets sent and waiting.
    fn first_alarm(looks: &[(u64, u64)]) -> Option<usize> {
        let mut watchdog = Watchdog::new(3.0);
        looks.iter().enumerate().position(|(t, &(sent, waiting))| watchdog.judge(sent, waiting, t as f64).is_some())
    }

    #[test]
    fn waiting_packets_of_which_none_leaves_are_an_alarm() {
        assert_eq!(first_alarm(&[(5, 2), (5, 3), (5, 3), (5, 4)]), Some(3));
    }

    #[test]
    fn one_packet_is_progress() {
        assert_eq!(first_alarm(&[(5, 2), (5, 3), (5, 3), (6, 4), (6, 4), (6, 4), (6, 4)]), Some(6));
    }

    #[test]
    fn an_empty_queue_may_be_empty_for_ever() {
        assert_eq!(first_alarm(&[(5, 0); 20]), None);
    }

    #[test]
    fn the_time_starts_when_packets_begin_to_wait() {
        let mut looks = vec![(5, 0); 20];
        looks.extend([(5, 1); 4]);
        assert_eq!(first_alarm(&looks), Some(22), "the last look at an empty queue was at 19");
    }
}
