//! A time in which the controller itself keeps the rate down: what packets sent in it measure says nothing of the path.
//!
//! Source: Linux `bbr_update_min_rtt`, which marks the transport as application-limited. Here the
//! controller knows its own packets again by what had been delivered when they were sent.
use crate::Bytes;

/// From what had been delivered when it began to what will have been when it ends: packets sent in between are limited.
#[derive(Clone, Debug, Default)]
pub struct QuietTime(Option<(Bytes, Bytes)>);

impl QuietTime {
    /// It begins, or goes on: what is sent from now until all in flight now has been delivered is limited.
    pub fn extend(&mut self, delivered: Bytes, inflight: Bytes) {
        let until = delivered + inflight;
        self.0 = match self.0 {
            Some((from, end)) if delivered <= end => Some((from, until)),
            _ => Some((delivered, until)),
        };
    }

    /// Whether a packet was sent in it, if `prior_delivered` had been delivered at the time.
    pub fn covers(&self, prior_delivered: Bytes) -> bool {
        self.0.is_some_and(|(from, until)| (from..=until).contains(&prior_delivered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_until_its_last_flight_has_been_delivered() {
        let mut quiet = QuietTime::default();
        let covered = |quiet: &QuietTime| [999, 1000, 1500, 1600, 1601].map(|sent| quiet.covers(Bytes(sent)));
        assert_eq!(covered(&quiet), [false; 5]);
        quiet.extend(Bytes(1000), Bytes(100));
        quiet.extend(Bytes(1050), Bytes(550));
        assert_eq!(covered(&quiet), [false, true, true, true, false]);
        quiet.extend(Bytes(1601), Bytes(0));
        assert_eq!(covered(&quiet), [false, false, false, false, true], "another one");
    }
}
