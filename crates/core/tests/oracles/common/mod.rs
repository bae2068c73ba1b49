//! A sender that always has data, one bottleneck and a receiver with delayed acknowledgments: as little of a network as a
//! controller needs to be driven through its growth. Losses are reported, not simulated.
use narrows_core::congestion::{Ack, Controller, ControllerConfig, Loss, LossKind, PathHint, Phase, RateSample, Sent};
use narrows_core::{Bytes, Rng, Span, Time};
use std::collections::VecDeque;

/// Payload of a full-sized packet with timestamps.
pub(crate) const MSS: Bytes = Bytes(1448);

/// A path, and the flow on it.
pub(crate) struct Path {
    pub(crate) controller: Controller,
    pub(crate) now: Time,
    /// Time of a packet on the link.
    tx: Span,
    /// Without queue.
    rtt: Span,
    /// When the link is free again.
    free: Time,
    /// Packets in flight: when the receiver gets each, and when it was sent.
    pipe: VecDeque<(Time, Time)>,
    /// Acknowledged at the receiver: when that reaches the sender, how many packets, RTT of the last.
    acks: VecDeque<(Time, u64, Span)>,
    /// Received and not yet acknowledged.
    held: u64,
    received: u64,
    una: u64,
    nxt: u64,
    min_rtt: Span,
    srtt: Span,
}

impl Path {
    /// A flow whose first packets leave at `now`. The link hands a packet over when it begins to send it, as Linux's htb.
    pub(crate) fn new(config: &ControllerConfig, initial_window: u64, now: Time, tx: Span, rtt: Span) -> Path {
        let hint =
            PathHint { mss: MSS, initial_window: MSS * initial_window, rtt: Some(rtt), paced: false, resume: None };
        let mut path = Path {
            controller: config.build(&hint, now, Rng::stream(1, "path")),
            now,
            tx,
            rtt,
            free: now,
            pipe: VecDeque::new(),
            acks: VecDeque::new(),
            held: 0,
            received: 0,
            una: 0,
            nxt: 0,
            min_rtt: rtt,
            srtt: rtt,
        };
        path.send();
        path
    }

    /// The window in packets.
    pub(crate) fn cwnd(&self) -> u64 {
        self.controller.send_limits().cwnd.0 / MSS.0
    }

    /// The threshold in packets.
    pub(crate) fn ssthresh(&self) -> Option<u64> {
        self.controller.send_limits().ssthresh.map(|bytes| bytes.0 / MSS.0)
    }

    /// Lets acknowledgments come in up to and at `until`.
    pub(crate) fn run(&mut self, until: Time) {
        loop {
            self.receive(until);
            match self.acks.front() {
                Some(&(at, packets, rtt)) if at <= until => {
                    self.acks.pop_front();
                    self.now = at;
                    self.acknowledge(packets, rtt);
                    self.send();
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// A congestion event now. The recovery is not played: nothing happens until [`Path::reopen`].
    pub(crate) fn lose(&mut self, kind: LossKind) {
        let inflight = MSS * (self.nxt - self.una);
        let nxt = MSS * self.nxt;
        self.controller.on_loss(&Loss { now: self.now, kind, lost: MSS, total_lost: MSS, inflight, nxt, first: true });
        self.pipe.clear();
        self.acks.clear();
        (self.una, self.received, self.held) = (self.nxt, self.nxt, 0);
    }

    /// The recovery is over: a flight is on its way whose first acknowledgment comes at `at`.
    pub(crate) fn reopen(&mut self, at: Time) {
        self.now = at - self.rtt;
        self.free = self.now;
        self.send();
        self.now = at;
    }

    fn send(&mut self) {
        while self.nxt - self.una < self.cwnd() {
            let idle = None;
            self.nxt += 1;
            let start = self.free.max(self.now);
            self.free = start + self.tx;
            self.pipe.push_back((start, self.now));
            let inflight = MSS * (self.nxt - self.una);
            self.controller.on_sent(&Sent {
                now: self.now,
                bytes: MSS,
                inflight,
                retransmit: false,
                idle,
                app_limited: false,
                subflow: 0,
            });
        }
    }

    /// The receiver acknowledges the first packets of a connection one by one, then every second one.
    fn receive(&mut self, until: Time) {
        while let Some(&(arrival, sent)) = self.pipe.front() {
            if arrival > until {
                break;
            }
            self.pipe.pop_front();
            self.received += 1;
            self.held += 1;
            if self.received <= QUICK_ACKS || self.held == 2 {
                let at = arrival + self.rtt;
                self.acks.push_back((at, self.held, at.since(sent)));
                self.held = 0;
            }
        }
    }

    fn acknowledge(&mut self, packets: u64, rtt: Span) {
        let prior = self.nxt - self.una;
        self.una += packets;
        self.min_rtt = self.min_rtt.min(rtt);
        self.srtt = (self.srtt * 7 + rtt) / 8;
        self.controller.on_ack(&Ack {
            now: self.now,
            acked: MSS * packets,
            lost: Bytes::ZERO,
            marked: 0,
            total_lost: Bytes::ZERO,
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            prior_inflight: MSS * prior,
            inflight: MSS * (prior - packets),
            una: MSS * self.una,
            nxt: MSS * self.nxt,
            delivered: MSS * self.una,
            in_reduction: false,
            phase: Phase::Open,
            edt: self.now,
            may_raise: true,
            cwnd_limited: true,
            rate: RateSample::default(),
        });
    }
}

/// Packets acknowledged one by one at the start.
const QUICK_ACKS: u64 = 16;
