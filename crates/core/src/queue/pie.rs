//! PIE (RFC 8033; Linux `pie`): drops at random on arrival, with a probability that keeps the queuing delay at a target.
//!
//! - [`PieLaw`]: how the probability changes, and which packets are exempt.
//! - Marks instead of drops for ECN-capable packets while the probability is at most 10 % (§5.1).
//!
//! Deviates: updates come exactly `tupdate` apart; with `jiffy` they come when Linux's timer makes them. The probability is at most one; with `overshoot` it is not, as
//! in Linux.
use super::parts::limits::MAX_LIMIT;
use super::parts::pie_law::{MAX_JIFFY, PieLaw, PieState, Updates};
use super::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use crate::params::Packets;
use crate::{Chain, DropReason, PacketId, Rng, Span, Time};

params! {
    /// PIE's parameters, with `tc`'s names and defaults.
    pub struct PieParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(1000), from Packets(1), to MAX_LIMIT;
        /// The delay to keep.
        pub target: Span = Span::ms(15), from Span::us(1), to Span::s(10);
        /// Time between two updates of the probability.
        pub tupdate: Span = Span::ms(15), from Span::us(100), to Span::s(10);
        /// Weight of the deviation from the target, sixteenths of 1/s.
        pub alpha: u32 = 2, from 1, to 32;
        /// Weight of the delay's change, sixteenths of 1/s.
        pub beta: u32 = 20, from 1, to 32;
        /// Mark instead of dropping if the transport uses ECN.
        pub ecn: bool = false;
        /// Drop small packets less often, in proportion to their size.
        pub bytemode: bool = false;
        /// Estimate the delay from the departure rate instead of from the packets' own times.
        pub dq_rate_estimator: bool = false;
        /// A tick of the Linux kernel whose timer is imitated: it makes updates later than `tupdate`, and the first one after half a second. Zero is exact.
        pub jiffy: Span = Span::ZERO, from Span::ZERO, to MAX_JIFFY;
        /// Let the drop probability rise above one, as Linux does.
        pub overshoot: bool = false;
    }
}

/// §5.1: mark_ecnth, percent.
const MARK_ECNTH: u32 = 10;

/// One queue under PIE's law.
pub struct Pie {
    limit: u32,
    ecn: bool,
    law: PieLaw,
    state: PieState,
    updates: Updates,
    chain: Chain,
    rng: Rng,
}

impl QueueDiscipline for Pie {
    type Params = PieParams;

    fn new(p: &PieParams, link: &LinkHint, rng: Rng) -> Pie {
        let law = PieLaw {
            target: p.target,
            alpha: p.alpha,
            beta: p.beta,
            bytemode: p.bytemode,
            dq_rate_estimator: p.dq_rate_estimator,
            overshoot: p.overshoot,
            mtu: link.mtu,
        };
        Pie {
            limit: p.limit.0,
            ecn: p.ecn,
            law,
            state: PieState::default(),
            updates: Updates::new(p.tupdate, p.jiffy),
            chain: Chain::new(),
            rng,
        }
    }

    #[inline]
    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        if self.chain.packets() >= self.limit {
            self.state.on_drop();
            return cx.drop_packet(id, DropReason::QueueFull);
        }
        let len = cx.pool.meta(id).len;
        if self.state.drops_early(&self.law, self.chain.bytes(), len, &mut self.rng)
            && !(self.ecn && self.state.may_mark(MARK_ECNTH) && cx.mark_ce(id))
        {
            self.state.on_drop();
            return cx.drop_packet(id, DropReason::Aqm);
        }
        self.chain.push_back(id, cx.pool);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        let Some(id) = self.chain.pop_front(cx.pool) else { return Next::Empty };
        let meta = cx.pool.meta(id);
        self.state.on_departure(&self.law, meta.arrived, meta.len, self.chain.bytes(), cx.now);
        Next::Packet(id)
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.updates.next())
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        self.state.update(&self.law, self.chain.bytes());
        self.updates.done(cx.now);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("drop_probability", self.state.probability());
        out.gauge("delay_ms", self.state.delay().as_ms_f64());
    }
}
