//! Delay mark: a FIFO that marks packets at random, or drops those without ECN, so that the queuing delay stays near a target.
//!
//! - A timer moves `p` every `interval` by up to `step`, in proportion to how far the delay is from the target.
//! - A packet is marked with the probability p². The rate of a loss-based flow falls with the root of its loss ratio, so a
//!   step of `p` changes rates about equally at low and at high probabilities.
use narrows_core::params::Packets;
use narrows_core::queue::{Backlog, Ctx, LinkHint, Next, Observer, QueueDiscipline};
use narrows_core::{Chain, DropReason, PacketId, Rate, Rng, Span, Time, params};

params! {
    /// Delay mark's parameters.
    pub struct DelayMarkParams {
        /// Maximum queue length in packets.
        pub limit: Packets = Packets(1000), from Packets(1), to Packets(1_000_000);
        /// The queuing delay to keep.
        pub target: Span = Span::ms(15), from Span::us(1), to Span::s(10);
        /// Time between two updates of the probability.
        pub interval: Span = Span::ms(16), from Span::ms(1), to Span::s(10);
        /// Largest change of `p` in one update.
        pub step: f64 = 0.002, from 0.000_001, to 1.0;
    }
}

/// One queue and its probability.
pub struct DelayMark {
    params: DelayMarkParams,
    chain: Chain,
    rate: Rate,
    /// Its square is the probability of a mark.
    p: f64,
    next_update: Time,
    rng: Rng,
}

impl QueueDiscipline for DelayMark {
    type Params = DelayMarkParams;

    fn new(params: &DelayMarkParams, link: &LinkHint, rng: Rng) -> DelayMark {
        let next_update = Time::ZERO + params.interval;
        DelayMark { params: params.clone(), chain: Chain::new(), rate: link.rate, p: 0.0, next_update, rng }
    }

    fn enqueue(&mut self, id: PacketId, cx: &mut Ctx<'_>) {
        if self.chain.packets() >= self.params.limit.0 {
            cx.drop_packet(id, DropReason::QueueFull);
        } else if self.rng.chance(self.p * self.p) && !cx.mark_ce(id) {
            cx.drop_packet(id, DropReason::Aqm);
        } else {
            self.chain.push_back(id, cx.pool);
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>) -> Next {
        self.chain.pop_front(cx.pool).map_or(Next::Empty, Next::Packet)
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_>) {
        self.next_update = cx.now + self.params.interval;
        // A link whose rate is zero has no delay to compute.
        if self.rate > Rate::ZERO {
            let delay = (8 * self.chain.bytes().0) as f64 / self.rate.as_bps() as f64;
            let target = self.params.target.as_secs_f64();
            let error = ((delay - target) / target).clamp(-1.0, 1.0);
            self.p = (self.p + self.params.step * error).clamp(0.0, 1.0);
        }
    }

    fn on_rate(&mut self, rate: Rate, _cx: &mut Ctx<'_>) {
        self.rate = rate;
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.packets(), bytes: self.chain.bytes() }
    }

    fn observe(&self, out: &mut dyn Observer) {
        out.gauge("mark_probability", self.p * self.p);
    }
}

#[test]
fn keeps_the_laws() {
    narrows_core::contract::check_queue::<DelayMark>().unwrap();
}
