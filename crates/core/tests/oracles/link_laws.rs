//! What every link keeps to, whatever its rate does and whatever is offered: it never sends more than its rate allows, and
//! never less while packets wait.
use narrows_core::link::{Link, Poll, Service};
use narrows_core::queue::{Ctx, LinkHint, QueueConfig};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, DropReason, PacketId, PacketMeta, Pool, Rate, Rng, Span, Time};
use proptest::prelude::*;

/// Largest packet here.
const LARGEST: u64 = 3000;

/// (when it was sent, its length), in order.
type Sent = Vec<(Time, u64)>;

/// Offers packets to a link with room for all, driving it as the simulator does, until nothing is left.
fn drive(service: Service, offers: &[(Time, u32)]) -> Sent {
    let hint = LinkHint { rate: Rate::mbit(10), rtt: Span::ms(10), mtu: Bytes(1500) };
    let queue = QueueConfig::named("fifo").expect("fifo is registered").build(&hint, Rng::stream(1, "queue"));
    let mut link = Link::new(queue, service);
    let (mut pool, mut drops) = (Pool::new(), Vec::<(PacketId, DropReason)>::new());
    let (mut sent, mut wake) = (Vec::new(), None::<Time>);
    let mut offers = offers.iter().copied().peekable();
    loop {
        let offered = offers.peek().map(|&(at, _)| at);
        let now = match (wake, offered) {
            (Some(wake), Some(offered)) => wake.min(offered),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => break,
        };
        while let Some((_, len)) = offers.next_if(|&(at, _)| at == now) {
            let id = pool.insert(PacketMeta { arrived: now, len, ..PacketMeta::default() });
            link.offer(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
        }
        wake = loop {
            match link.poll(&mut Ctx { now, pool: &mut pool, drops: &mut drops }) {
                Poll::Sent(id) => sent.push((now, u64::from(pool.remove(id).len))),
                Poll::Wait(at) => {
                    assert!(at > now, "asked to be polled at {at:?}, which is not after {now:?}");
                    break Some(at);
                }
                Poll::Idle => break None,
            }
        };
    }
    assert!(drops.is_empty());
    assert_eq!(link.queue().backlog().packets, 0, "the link stopped although packets wait");
    sent
}

/// What a schedule carries in [from, to), in bits · 10⁹.
fn carried(steps: &[(Time, Rate)], from: Time, to: Time) -> u128 {
    let ends = steps.iter().skip(1).map(|&(at, _)| at).chain([to]);
    let part = |(&(start, rate), end): (&(Time, Rate), Time)| {
        u128::from(rate.as_bps()) * u128::from(end.min(to).since(start.max(from)).as_ns())
    };
    steps.iter().zip(ends).filter(|((start, _), end)| *start < to && *end > from).map(part).sum()
}

fn bits(bytes: u64) -> u128 {
    u128::from(bytes) * 8_000_000_000
}

/// Rates over time, outages among them; the last goes on.
fn schedule() -> impl Strategy<Value = Vec<(Time, Rate)>> {
    let rate = prop_oneof![1 => Just(0u64), 4 => 1_000u64..200_000_000];
    (1_000u64..200_000_000, prop::collection::vec((1u64..20_000, rate), 0..6), 1_000u64..200_000_000).prop_map(
        |(first, middle, last)| {
            let (mut steps, mut at) = (vec![(Time::ZERO, Rate::bit(first))], Time::ZERO);
            for (after, rate) in middle {
                at += Span::us(after);
                steps.push((at, Rate::bit(rate)));
            }
            steps.push((at + Span::ms(1), Rate::bit(last)));
            steps
        },
    )
}

/// Packets at ascending times, some at once.
fn offers() -> impl Strategy<Value = Vec<(Time, u32)>> {
    let gap = prop_oneof![2 => Just(0u64), 3 => 1u64..3_000_000];
    prop::collection::vec((gap, 40u32..=LARGEST as u32), 1..80).prop_map(|packets| {
        let mut at = Time::ZERO;
        let later = |(gap, len)| {
            at += Span::ns(gap);
            (at, len)
        };
        packets.into_iter().map(later).collect()
    })
}

/// Busy periods: (from the first packet's arrival, to the last departure, bytes).
fn busy_periods(offers: &[(Time, u32)], sent: &Sent) -> Vec<(Time, Time, u64)> {
    let mut periods: Vec<(Time, Time, u64)> = Vec::new();
    for (&(arrived, _), &(left, len)) in offers.iter().zip(sent) {
        match periods.last_mut() {
            Some((_, end, bytes)) if arrived < *end => (*end, *bytes) = (left, *bytes + len),
            _ => periods.push((arrived, left, len)),
        }
    }
    periods
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_busy_wire_sends_what_its_rate_carries_no_more_and_no_less(steps in schedule(), offers in offers()) {
        let sent = drive(Service::Wire(steps.clone()), &offers);
        let lengths: Vec<u64> = offers.iter().map(|&(_, len)| u64::from(len)).collect();
        prop_assert_eq!(sent.iter().map(|&(_, len)| len).collect::<Vec<_>>(), lengths, "in order of arrival");
        for (from, to, bytes) in busy_periods(&offers, &sent) {
            let allowed = carried(&steps, from, to);
            // A departure is rounded to a nanosecond, down while the remainder is carried along, and the remainder starts
            // anew with each step.
            let fastest = steps.iter().map(|step| u128::from(step.1.as_bps())).max().unwrap_or(0);
            let slack = fastest * (steps.len() as u128 + 1 + u128::from(bytes / 40));
            prop_assert!(bits(bytes) <= allowed + fastest * (steps.len() as u128 + 1), "too much: {} B", bytes);
            prop_assert!(bits(bytes) + slack >= allowed, "idle while packets waited: {} B", bytes);
        }
    }

    #[test]
    fn a_shaper_sends_a_bucket_per_rate_and_a_packet_more_at_most(
        steps in schedule(), offers in offers(), burst in 0u64..20_000,
    ) {
        let sent = drive(Service::Shaper { rate: steps.clone(), burst: Bytes(burst) }, &offers);
        prop_assert_eq!(sent.len(), offers.len());
        for first in 0..sent.len() {
            let mut bytes = 0;
            for &(left, len) in &sent[first..] {
                bytes += len;
                let allowed = carried(&steps, sent[first].0, left);
                // What is in the bucket is kept as a time: a change of rate may find it full again.
                let changes = steps.iter().filter(|step| step.0 > sent[first].0 && step.0 <= left).count() as u64;
                let bucket = bits((burst + 1) * (changes + 1));
                let fast = steps.iter().map(|step| step.1.as_bps()).max().unwrap_or(1);
                let rounding = u128::from(fast) * (sent.len() + steps.len()) as u128;
                prop_assert!(bits(bytes) <= allowed + bucket + bits(LARGEST) + rounding, "{} B", bytes);
            }
        }
    }

    #[test]
    fn a_trace_sends_1500_bytes_per_opportunity_at_most(
        gaps in prop::collection::vec(0u64..20, 1..30), offers in offers(),
    ) {
        let mut ms = 0;
        let mut at = Vec::new();
        for gap in gaps.into_iter().chain([1]) {
            ms += gap;
            at.push(Span::ms(ms));
        }
        let period = Span::ms(ms);
        let sent = drive(Service::Opportunities { at: at.clone().into(), period }, &offers);
        prop_assert_eq!(sent.len(), offers.len());
        let until = |time: Time| -> u64 {
            let periods = time.as_ns() / period.as_ns();
            let offset = time.since(Time::ZERO + period * periods);
            periods * at.len() as u64 + at.partition_point(|&at| at <= offset) as u64
        };
        for (n, &(left, _)) in sent.iter().enumerate() {
            let bytes: u64 = sent[..=n].iter().map(|&(_, len)| len).sum();
            prop_assert!(bytes <= 1500 * until(left), "{} B by {:?}", bytes, left);
        }
    }
}
