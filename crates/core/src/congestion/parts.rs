//! Laws that several controllers share.
pub mod ack_aggregation;
pub mod bandwidth;
pub mod detecting;
pub mod hystart;
pub mod hystart_plus_plus;
pub mod monitor_interval;
pub mod quiet_time;
pub mod slow_start;
pub mod trials;
pub mod window;
pub mod windowed;

#[cfg(test)]
pub(crate) mod testing {
    //! Events for unit tests, filled in with what does not matter.
    use crate::congestion::{
        Ack, CongestionController, Flight, PacketFeedback, PacketOutcome, PathHint, Phase, RateSample, Sent,
    };
    use crate::{Bytes, Rate, Span, Time};
    use std::collections::VecDeque;
    use std::vec::Vec;

    /// Full-sized packets of these tests.
    pub(crate) const MSS: Bytes = Bytes(1448);

    /// A path with this initial window in packets.
    pub(crate) fn path(initial_window: u64, paced: bool) -> PathHint {
        PathHint { mss: MSS, initial_window: MSS * initial_window, rtt: None, paced, resume: None }
    }

    /// An acknowledgment of `packets` packets that may raise the window; no RTT sample.
    pub(crate) fn ack(now: Time, packets: u64) -> Ack {
        Ack {
            now,
            acked: MSS * packets,
            lost: Bytes::ZERO,
            marked: 0,
            total_lost: Bytes::ZERO,
            rtt: None,
            srtt: Span::ms(100),
            min_rtt: Span::ms(100),
            prior_inflight: Bytes::ZERO,
            inflight: Bytes::ZERO,
            una: Bytes::ZERO,
            nxt: Bytes::ZERO,
            delivered: Bytes::ZERO,
            in_reduction: false,
            phase: Phase::Open,
            edt: now,
            may_raise: true,
            cwnd_limited: true,
            rate: RateSample::default(),
        }
    }

    /// A link of one flow, a round trip from sender to sender, with a queue of one bandwidth-delay product.
    pub(crate) struct Pipe {
        rate: Rate,
        rtt: Span,
        now: Time,
        /// When the link will have sent what waits.
        free: Time,
        /// Packets on their way: when heard of, when sent, and their RTT unless they are lost.
        flight: VecDeque<(Time, Time, Option<Span>)>,
        delivered: Bytes,
    }

    impl Pipe {
        pub(crate) fn new(rate: Rate, rtt: Span) -> Pipe {
            let now = Time::ZERO;
            Pipe { rate, rtt, now, free: now, flight: VecDeque::new(), delivered: Bytes::ZERO }
        }

        /// Runs a controller that always has something to send, at the pace that it asks for; each packet is acknowledged.
        /// The rates at which the packets were sent are returned.
        pub(crate) fn drive<C: CongestionController>(&mut self, c: &mut C, length: Span) -> Vec<Rate> {
            let end = self.now + length;
            let (mut next, mut rates) = (self.now, Vec::new());
            while self.now < end {
                let inflight = MSS * self.flight.len() as u64;
                let may_send = inflight + MSS <= c.send_limits().cwnd;
                match self.flight.front() {
                    Some(&(heard, ..)) if !may_send || heard <= next => {
                        self.now = heard;
                        self.hear(c);
                    }
                    _ => {
                        self.now = self.now.max(next);
                        self.send(c, inflight + MSS);
                        let rate = c.send_limits().pacing.unwrap();
                        next = self.now + rate.tx_time(MSS).unwrap();
                        rates.push(rate);
                    }
                }
            }
            rates
        }

        fn send<C: CongestionController>(&mut self, c: &mut C, inflight: Bytes) {
            let now = self.now;
            let sent =
                Sent { now, bytes: MSS, inflight, retransmit: false, idle: None, app_limited: false, subflow: 0 };
            c.on_sent(&sent);
            let waits = self.free.since(now);
            let rtt = self.rtt + waits;
            let fits = waits <= self.rtt;
            if fits {
                self.free = now + waits + self.rate.tx_time(MSS).unwrap();
            }
            self.flight.push_back((now + rtt, now, fits.then_some(rtt)));
        }

        fn hear<C: CongestionController>(&mut self, c: &mut C) {
            let Some((now, sent, rtt)) = self.flight.pop_front() else { return };
            let outcome = rtt.map_or(PacketOutcome::Lost, |rtt| PacketOutcome::Delivered { rtt: Some(rtt) });
            c.on_packet_feedback(&PacketFeedback {
                now,
                sent,
                bytes: MSS,
                subflow: 0,
                flight: Flight::default(),
                outcome,
            });
            if let Some(rtt) = rtt {
                self.delivered += MSS;
                let inflight = MSS * self.flight.len() as u64;
                let delivered = self.delivered;
                c.on_ack(&Ack { rtt: Some(rtt), srtt: rtt, min_rtt: self.rtt, inflight, delivered, ..ack(now, 1) });
            }
        }
    }
}
