//! What a transfer's delays and losses show of the bottleneck's buffer: its depth, and whether an AQM drops before it is full.
//!
//! No figure hangs on single samples, because a busy host holds some packets back. A depth is the delay that 95 % of the packets of a
//! tenth of a second do not exceed; the delay at a loss is the median of the packets sent next to it.
use crate::meter::{Load, Loss, Meter, Sample};
use narrows_core::{Span, Time};
use narrows_quic::PATHS;

/// Depths are looked for in windows of this length…
const WINDOW: Span = Span::ms(100);
/// …of this many samples or more…
const ENOUGH: usize = 5;
/// …and a window's is the delay that this share of its samples does not exceed.
const CREST: f64 = 0.95;
/// A queuing delay below this is no queue.
pub(crate) const NO_QUEUE: Span = Span::ms(2);
/// A drop below this share of the depth happened while the queue was not full…
const NOT_FULL: f64 = 0.75;
/// …as did one after which the packets of the next round trip waited longer, by this factor.
const LONGER: f64 = 1.15;
/// There is an AQM if so large a share of the drops happened while the queue was not full, and at least this number.
const MOST: f64 = 0.25;
const LEAST: u32 = 2;
/// Samples on each side of a loss that show the delay there.
const BESIDE: usize = 3;

impl Meter {
    /// Largest queuing delay before the first loss was noticed.
    pub(crate) fn deepest(&self, base: Span, load: Load) -> Option<Span> {
        let until = self.losses.iter().map(|loss| loss.at).min();
        let before = |sample: &&Sample| until.is_none_or(|until| sample.sent + sample.rtt <= until);
        let paths = self.samples.iter().filter_map(|samples| {
            let loaded = samples.iter().filter(|sample| sample.sent >= load.from);
            crest(loaded.filter(before))
        });
        paths.max().map(|rtt| rtt.saturating_sub(base))
    }

    /// An AQM drops or marks while the queue is not full. What is lost without any queue is the path's.
    pub(crate) fn aqm(&self, base: Span, load: Load) -> Option<bool> {
        if self.marks > 0 {
            return Some(true);
        }
        let depth = |path: usize| crest(self.samples[path].iter().filter(|sample| sample.sent >= load.from));
        let depths: [Option<Span>; PATHS] = std::array::from_fn(|path| Some(depth(path)?.saturating_sub(base)));
        let (mut last, mut not_full, mut all) = ([None::<Loss>; PATHS], 0u32, 0u32);
        for loss in &self.losses {
            let path = usize::from(loss.path);
            let depth = depths[path]?;
            // Losses come in clusters; one of each round trip counts.
            if last[path].is_some_and(|last| loss.sent.since(last.sent) < base + depth / 2) {
                continue;
            }
            last[path] = Some(*loss);
            let Some(here) = self.delay_at(path, loss.sent, base) else { continue };
            all += 1;
            if here < NO_QUEUE {
                continue;
            }
            let later = self.samples[path].iter().filter(|sample| sample.sent > loss.sent);
            let later = later.take_while(|sample| sample.sent <= loss.sent + base + here);
            let grows = median(later.map(|sample| sample.rtt.saturating_sub(base)).collect());
            let is_longer = grows.is_some_and(|grows| grows > scaled(here, LONGER) + NO_QUEUE);
            not_full += u32::from(here < scaled(depth, NOT_FULL) || is_longer);
        }
        (all > 0).then(|| f64::from(not_full) >= MOST * f64::from(all) && not_full >= LEAST)
    }

    /// Queuing delay of what was sent on this path next to that time.
    fn delay_at(&self, path: usize, sent: Time, base: Span) -> Option<Span> {
        let samples = &self.samples[path];
        let after = samples.partition_point(|sample| sample.sent < sent);
        let beside = &samples[after.saturating_sub(BESIDE)..(after + BESIDE).min(samples.len())];
        median(beside.iter().map(|sample| sample.rtt.saturating_sub(base)).collect())
    }
}

/// The largest RTT that lasted; of few samples the one that most do not exceed.
fn crest<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Span> {
    let mut all: Vec<(u64, Span)> = samples.map(|sample| (sample.sent.as_ns() / WINDOW.as_ns(), sample.rtt)).collect();
    all.sort_unstable();
    let high = |some: &[(u64, Span)]| some.get((some.len() as f64 * CREST) as usize).map(|&(_, rtt)| rtt);
    let windows = all.chunk_by(|one, next| one.0 == next.0).filter(|window| window.len() >= ENOUGH);
    windows.filter_map(high).max().or_else(|| {
        all.sort_unstable_by_key(|&(_, rtt)| rtt);
        high(&all)
    })
}

fn median(mut spans: Vec<Span>) -> Option<Span> {
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
}

fn scaled(span: Span, by: f64) -> Span {
    Span::from_secs_f64(span.as_secs_f64() * by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::hint::LinkHint;
    use narrows_core::queue::{Ctx, Next, QueueConfig};
    use narrows_core::registry::Registered;
    use narrows_core::{Bytes, FlowId, PacketMeta, Pool, Rate, Rng};
    use narrows_quic::{Event, What};

    const BASE: Span = Span::ms(20);
    const LEN: u32 = 1228;

    /// Two flows that share a window, as a probe's do, through a queue at 20 Mbit/s for four seconds. The window grows by CUBIC's rule
    /// with a slow start, and shrinks by 0.3 once in a round trip with losses. `late`: how much later than they came acknowledgments are
    /// heard of, by their time.
    fn probed(queue: &str, late: impl Fn(Time) -> Span) -> (Meter, Load) {
        let (name, limit) = queue.split_once(' ').map_or((queue, None), |(name, limit)| (name, Some(limit)));
        let mut config = QueueConfig::named(name).expect("a queue");
        if let Some(limit) = limit {
            config.set(if name == "fq" { "flow_limit" } else { "limit" }, limit).expect("a limit");
        }
        let rate = Rate::mbit(20);
        let hint = LinkHint { rate, rtt: BASE, mtu: Bytes(1500) };
        let mut queue = config.build(&hint, Rng::stream(3, "queue"));
        let (mut pool, mut drops) = (Pool::new(), Vec::new());
        let mut meter = Meter::default();
        meter.begin(Time::ZERO);
        meter.idle(BASE);
        let (mut window, mut ssthresh, mut w_max, mut epoch) = (10.0f64, f64::MAX, 0.0f64, Time::ZERO);
        let (mut inflight, mut number, mut free, mut reduced) = (0u32, 0u64, Time::ZERO, Time::ZERO);
        let (mut left, mut queued) = (Vec::<Time>::new(), 0u64);
        // What is heard of: when, sent when, number, is it lost?
        let mut news: Vec<(Time, Time, u64, bool)> = Vec::new();
        let tx = rate.tx_time(Bytes(u64::from(LEN))).expect("a rate");
        let mut now = Time::ZERO;
        while now < Time::ZERO + Span::s(4) {
            news.sort_by_key(|one| std::cmp::Reverse(one.0));
            while let Some(&(at, sent, number, is_lost)) = news.last().filter(|one| one.0 <= now) {
                news.pop();
                inflight -= 1;
                let path = (number % 2) as u8;
                if is_lost {
                    meter.apply(&Event { at, what: What::Lost { path, number, bytes: 1200 } });
                    if sent >= reduced {
                        (w_max, window, epoch, reduced) = (window, window * 0.7, at, at);
                        ssthresh = window;
                    }
                    continue;
                }
                meter.apply(&Event { at, what: What::Acknowledged { path, number, bytes: 1200 } });
                meter.apply(&Event {
                    at,
                    what: What::EndAcks { path, inflight: 1, app_limited: false, largest: number },
                });
                if window < ssthresh {
                    window += 1.0;
                } else {
                    let k = (w_max * 0.3 / 0.4).cbrt();
                    let cubic = 0.4 * (at.since(epoch).as_secs_f64() - k).powi(3) + w_max;
                    window += ((cubic - window) / window).clamp(0.3 / window, 0.5);
                }
            }
            while f64::from(inflight) < window {
                let path = (number % 2) as u8;
                meter.apply(&Event { at: now, what: What::Sent { path, number, bytes: 1200 } });
                let flow = u32::from(path);
                let id = pool.insert(PacketMeta {
                    arrived: now,
                    hash: (flow + 1).wrapping_mul(0x9e37_79b9),
                    flow: FlowId(flow),
                    len: LEN,
                    ack: number as u32,
                    ..PacketMeta::default()
                });
                left.push(now);
                queued += 1;
                queue.enqueue(id, &mut Ctx { now, pool: &mut pool, drops: &mut drops });
                (number, inflight) = (number + 1, inflight + 1);
            }
            if queue.next_timer().is_some_and(|at| at <= now) {
                queue.on_timer(&mut Ctx { now, pool: &mut pool, drops: &mut drops });
            }
            if free <= now
                && let Next::Packet(id) = queue.dequeue(&mut Ctx { now, pool: &mut pool, drops: &mut drops })
            {
                free = now + tx;
                queued -= 1;
                let number = u64::from(pool.remove(id).ack);
                let sent = left[number as usize];
                let at = free + BASE;
                news.push((at + late(at), sent, number, false));
            }
            for (id, _) in drops.drain(..) {
                let number = u64::from(pool.remove(id).ack);
                queued -= 1;
                // The packets behind it show it.
                news.push((now + tx * (queued + 3) + BASE, left[number as usize], number, true));
            }
            now += tx / 4;
        }
        meter.end(now);
        let load = meter.load().expect("it has begun");
        (meter, load)
    }

    const ON_TIME: fn(Time) -> Span = |_| Span::ZERO;

    /// A drop counted for an AQM below half of the largest delay of any packet: PIE, RED and FQ-PIE seldom drop there.
    #[test]
    fn an_aqm_drops_before_the_queue_is_full() {
        for queue in ["pie", "red", "fq_pie", "codel", "fq_codel"] {
            let (meter, load) = probed(queue, ON_TIME);
            assert!(!meter.losses.is_empty(), "{queue}");
            assert_eq!(meter.aqm(BASE, load), Some(true), "{queue}: {} losses", meter.losses.len());
        }
        for queue in ["fifo 30p", "fifo 100p", "fifo 300p", "fq 30p", "fq 100p"] {
            let (meter, load) = probed(queue, ON_TIME);
            assert_eq!(meter.aqm(BASE, load), Some(false), "{queue}: {} losses", meter.losses.len());
        }
    }

    /// The largest delay was that of the latest packet: 33 ms fit, and 123 were reported; plain tail drop looked like an AQM, because all
    /// its drops were far below that.
    #[test]
    fn packets_that_a_busy_host_holds_back_make_no_buffer() {
        // 67 packets of 1228 B at 20 Mbit/s are 33 ms. Each 300 ms all that comes within 4 ms is heard of 90 ms late.
        let late = |at: Time| if at.as_ns() / 1_000_000 % 300 < 4 { Span::ms(90) } else { Span::ZERO };
        let (meter, load) = probed("fifo 67p", late);
        let depth = meter.deepest(BASE, load).expect("there were losses").as_ms_f64();
        assert!((30.0..=36.0).contains(&depth), "{depth} ms");
        assert_eq!(meter.aqm(BASE, load), Some(false), "{} losses", meter.losses.len());
    }
}
