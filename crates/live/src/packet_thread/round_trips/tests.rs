use super::*;
use std::sync::atomic::AtomicU32;
use std::thread;

/// A hash: the low 12 bits are the slot, the high 20 the flow.
const HASH: u32 = 0x5_1234;
const AT_ITS_PLACE: u32 = 0x6_1234;

/// Both directions of one bottleneck, with a clock.
struct Bench {
    both: [RoundTrips; 2],
    now: Time,
}

impl Bench {
    fn new() -> Bench {
        Bench { both: RoundTrips::both(1), now: Time::ZERO + Span::s(1) }
    }

    fn flow(&mut self, hash: u32, direction: usize, value: u32, echo: u32) -> bool {
        self.now += Span::us(1);
        self.both[direction].on_stamp(hash, Some(Stamp { value, echo, opens: false }), self.now)
    }

    fn there(&mut self, value: u32, echo: u32) -> bool {
        self.flow(HASH, 0, value, echo)
    }

    fn back(&mut self, value: u32, echo: u32) -> bool {
        self.flow(HASH, 1, value, echo)
    }

    fn opens(&mut self, direction: usize, value: u32, echo: u32) -> bool {
        self.both[direction].on_stamp(HASH, Some(Stamp { value, echo, opens: true }), self.now)
    }
}

#[test]
fn the_bit_turns_with_what_answers_the_answer() {
    let mut b = Bench::new();
    // Ten packets in flight in one direction. The bottleneck is next to their sender, whose clock is 1000 ahead of the
    // receiver's.
    let there: Vec<bool> = (0..10).map(|n| b.there(1000 + n, 0)).collect();
    assert_eq!(there, [false; 10]);
    assert!(!b.back(10, 1000), "the answer to the first");
    assert!(b.there(1010, 10), "and the answer to that");
    // The round that begins there ends only with the answer to an echo of 1010.
    for n in 1..10 {
        b.back(10 + n, 1000 + n);
        assert!(b.there(1010 + n, 10 + n), "{n}");
    }
    b.back(20, 1010);
    assert!(!b.there(1020, 20));
}

#[test]
fn each_direction_has_its_own_bit() {
    let mut b = Bench::new();
    let mut seen = [Vec::new(), Vec::new()];
    // One packet is in flight at a time, so every packet ends the round that its predecessor began.
    for n in 1..=4 {
        seen[0].push(b.there(n, 100 + n - 1));
        seen[1].push(b.back(100 + n, n));
    }
    assert_eq!(seen, [[false, true, false, true], [false, true, false, true]]);
}

#[test]
fn values_that_others_have_had_neither_begin_nor_answer() {
    let mut b = Bench::new();
    b.there(1, 0);
    b.back(50, 0);
    b.back(50, 1);
    assert!(!b.there(2, 50), "50 may be the echo of what came before the answer");
    b.back(51, 1);
    assert!(b.there(2, 51), "it turns there, but 2 has been seen");
    b.back(52, 2);
    assert!(b.there(2, 52), "so no round has begun yet");
    assert!(b.there(3, 52));
    b.back(53, 3);
    assert!(!b.there(4, 53));
}

#[test]
fn clocks_wrap_around() {
    let mut b = Bench::new();
    let mut bits = Vec::new();
    for n in 0..6u32 {
        let (value, reply) = (u32::MAX - 2, u32::MAX - 1);
        bits.push(b.there(value.wrapping_add(n), reply.wrapping_add(n).wrapping_sub(1)));
        b.back(reply.wrapping_add(n), value.wrapping_add(n));
    }
    assert_eq!(bits, [false, true, false, true, false, true]);
}

#[test]
fn a_loss_makes_a_round_longer_and_none_stop() {
    let mut b = Bench::new();
    b.there(1, 0);
    // 2 is lost behind the bottleneck. The later packets are acknowledged with the echo of 1 until 9 fills the gap.
    b.back(101, 1);
    let begun = b.there(2, 101);
    for n in 3..9 {
        b.back(99 + n, 1);
        assert_eq!(b.there(n, 99 + n), begun, "{n}");
    }
    b.there(9, 107);
    b.back(108, 9);
    assert_ne!(b.there(10, 108), begun);
    // The answer is lost before the other host. The next packet carries the same information.
    b.back(109, 10);
    b.back(110, 10);
    assert_eq!(b.there(11, 108), !begun);
    assert_eq!(b.there(12, 110), begun);
}

#[test]
fn what_comes_late_changes_nothing() {
    let mut b = Bench::new();
    b.there(10, 0);
    b.back(100, 10);
    assert!(b.there(20, 100));
    // Reordered packets: older values, older echoes.
    assert!(b.there(11, 99) && b.there(12, 100));
    // The same the other way: the round ends only with an echo of 20.
    b.back(99, 9);
    b.back(101, 12);
    assert!(b.there(21, 101));
    b.back(102, 20);
    assert!(!b.there(22, 102));
}

#[test]
fn one_way_alone_never_turns() {
    let mut b = Bench::new();
    assert!((0..1000).all(|n| !b.there(n, 0)));
    assert!((0..1000).all(|n| !b.both[0].on_stamp(7, None, Time::from_ns(n))), "nor without timestamps");
}

#[test]
fn a_packet_without_timestamps_has_the_bit_as_it_is() {
    let mut b = Bench::new();
    b.there(1, 0);
    b.back(101, 1);
    assert!(b.there(2, 101));
    let now = b.now;
    // Resets often have no timestamps (RFC 7323 §3.2).
    assert!(b.both[0].on_stamp(HASH, None, now));
    assert!(!b.both[0].on_stamp(AT_ITS_PLACE, None, now), "another flow");
    assert!(!b.both[1].on_stamp(HASH, None, now));
}

#[test]
fn a_connection_that_begins_anew_may_have_an_older_clock() {
    let mut b = Bench::new();
    b.there(1000, 0);
    b.back(5000, 1000);
    // A new connection with the same hash: both sides have new clocks.
    assert!(!b.opens(0, 10, 0));
    assert!(!b.opens(1, 20, 10));
    assert!(b.there(11, 20));
    b.back(21, 11);
    assert!(!b.there(12, 21));
}

#[test]
fn a_place_is_held_until_its_flow_is_silent() {
    let mut b = Bench::new();
    for n in 1..=2 {
        b.there(n, 99 + n);
        b.back(100 + n, n);
    }
    let round = |b: &mut Bench, n: u32| {
        b.flow(AT_ITS_PLACE, 1, n + 700, n);
        b.flow(AT_ITS_PLACE, 0, n + 1, n + 700)
    };
    assert!((0..10).all(|n| !round(&mut b, n)), "a second flow at the place has none");
    // The first flow's rounds continue undisturbed.
    assert_eq!([b.there(3, 102), b.back(103, 3), b.there(4, 103)], [false, false, true]);
    b.now += SILENT;
    let seen: Vec<bool> = (10..14).map(|n| round(&mut b, n)).collect();
    assert_eq!(seen, [false, true, false, true], "it begins with its first packet after that");
    assert!(!b.there(5, 103), "the first one has lost it");
}

/// A flow that two threads carry, each at its own speed: each one's newest value, up to which the other may echo.
#[derive(Default)]
struct Both {
    newest: [AtomicU32; 2],
}

/// A thread's packets: value, echo, and whether the bit flipped.
type Log = Vec<(u32, u32, bool)>;

/// Two threads send packets of flows, some of which share slots, as fast as they can. Whenever they see each other's words, each
/// round must have an answer: a packet in the opposite direction that echoes the round's beginning and whose value the round's
/// end echoes.
#[test]
fn two_threads_at_full_speed_never_see_a_round_too_many() {
    const PACKETS: u32 = 100_000;
    // Two flows in each of eight slots, and eight flows alone.
    let hashes: Vec<u32> = (0..24).map(|n| (n << 12) | if n < 16 { n / 2 } else { n }).collect();
    let flows: Vec<Both> = hashes.iter().map(|_| Both::default()).collect();
    let drive = |mut rounds: RoundTrips| {
        let (own, mut logs): (usize, Vec<Log>) = (rounds.own, vec![Log::new(); hashes.len()]);
        let mut bits = vec![false; hashes.len()];
        for n in 1..=PACKETS {
            // A microsecond per packet, so no flow loses its slot. Three packets in a row share a value.
            let now = Time::ZERO + Span::us(u64::from(n));
            // Neither thread gets far ahead of the other, however the machine schedules them.
            while flows[0].newest[1 - own].load(Ordering::Acquire) + 100 < n / 3 {
                thread::yield_now();
            }
            for (flow, &hash) in hashes.iter().enumerate() {
                let echo = flows[flow].newest[1 - own].load(Ordering::Acquire);
                let value = n / 3 + 1;
                let bit = rounds.on_stamp(hash, Some(Stamp { value, echo, opens: false }), now);
                logs[flow].push((value, echo, std::mem::replace(&mut bits[flow], bit) != bit));
                // From here on the value may have arrived.
                flows[flow].newest[own].store(value, Ordering::Release);
            }
        }
        logs
    };
    let logs = thread::scope(|scope| {
        let threads = RoundTrips::both(1).map(|rounds| scope.spawn(move || drive(rounds)));
        threads.map(|thread| thread.join().unwrap())
    });
    let mut turns = [0, 0];
    for flow in 0..hashes.len() {
        for own in [0, 1] {
            let other = &logs[1 - own][flow];
            let mut begun: Option<u32> = None;
            for &(value, echo, _) in logs[own][flow].iter().filter(|(.., turned)| *turned) {
                turns[usize::from(flow >= 16)] += 1;
                if let Some(begun) = begun {
                    let answer = other.partition_point(|&(_, echo, _)| echo < begun);
                    assert!(
                        other.get(answer).is_some_and(|&(value, ..)| value <= echo),
                        "flow {flow}: {begun} to {value}"
                    );
                }
                begun = Some(value);
            }
        }
    }
    println!("rounds where flows share places: {}, elsewhere: {}", turns[0], turns[1]);
    assert!(turns.iter().all(|&turns| turns > 0), "{turns:?}");
}
