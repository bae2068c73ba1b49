//! Drives the two of a pair, and compares.
use crate::draw::Phase;
use crate::ffi::{NextId, Shell, Totals};
use narrows_core::queue::{Ctx, LinkHint, Next, Observer, Queue, QueueConfig};
use narrows_core::registry::Registered;
use narrows_core::{Bytes, DropReason, Ecn, FlowId, PacketId, PacketMeta, Pool, Rate, Rng, Span, Time};
use std::collections::HashMap;

/// A discipline that exists twice.
pub(crate) trait Twin {
    /// What its runs must have come past, all in all: a run that never reaches a branch compares nothing there.
    const COVERS: &'static [&'static str];
    /// Rates of the link that are drawn, bit/s.
    const RATES: &'static [u64] = &[0, 1, 64_000, 10_000_000, 12_000_000, 1_000_000_000, 1 << 40];
    /// Parameters for a session: the core's configuration, and the same for the shell in C.
    fn draw(rng: &mut Rng, link: &LinkHint) -> (QueueConfig, Shell);
    /// The hash bits that tell flows apart under these parameters.
    fn mask(config: &QueueConfig) -> u32;
    /// Compares the gauges of the whole discipline, and counts what was seen.
    fn compare(gauges: &Gauges, totals: &Totals, covered: &mut Covered) -> Result<(), String>;
    /// Compares the gauges of one flow, and counts what was seen.
    fn compare_flow(_gauges: &HashMap<&'static str, f64>, _totals: &Totals, _: &mut Covered) -> Result<(), String> {
        Ok(())
    }
}

/// How often something was seen.
#[derive(Default)]
pub(crate) struct Covered(HashMap<&'static str, u64>);

impl Covered {
    pub(crate) fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// What a discipline shows.
#[derive(Default)]
pub(crate) struct Gauges {
    pub(crate) whole: HashMap<&'static str, f64>,
    flows: HashMap<FlowId, HashMap<&'static str, f64>>,
}

impl Observer for Gauges {
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.whole.insert(name, value);
    }
    fn flow_gauge(&mut self, flow: FlowId, name: &'static str, value: f64) {
        self.flows.entry(flow).or_default().insert(name, value);
    }
}

/// Two figures that must be the same; both are computed from integers in the same way.
pub(crate) fn same(name: &str, core: f64, c: f64) -> Result<(), String> {
    if core == c { Ok(()) } else { Err(format!("{name}: {core} in the core, {c} in C")) }
}

/// Runs sessions until there have been as many operations as asked for.
pub(crate) fn run<T: Twin>() {
    let wanted = from_environment("NARROWS_DECISIONS").unwrap_or(300_000);
    let first = from_environment("NARROWS_DECISIONS_SEED").unwrap_or(1);
    let (mut done, mut seed, mut covered) = (0, first, Covered::default());
    while done < wanted {
        let mut session = Session::<T>::new(seed);
        if let Err(error) = session.play(&mut covered) {
            panic!("seed {seed}, operation {} at {:?}: {error}; with {}", session.done, session.now, session.config);
        }
        done += session.done;
        seed += 1;
    }
    let missing: Vec<_> = T::COVERS.iter().filter(|what| !covered.0.contains_key(**what)).collect();
    assert!(missing.is_empty(), "never seen in {done} operations: {missing:?}; seen: {:?}", covered.0);
    println!("{done} operations in {} sessions, the same; seen: {:?}", seed - first, covered.0);
}

fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is `{value}`, not a number")))
}

/// The two, with one set of parameters.
struct Session<T> {
    rng: Rng,
    config: QueueConfig,
    core: Queue,
    shell: Shell,
    pool: Pool,
    now: Time,
    /// Hashes of flows. Some differ in bits that a mask leaves out.
    hashes: Vec<u32>,
    spins: Vec<bool>,
    /// By packet: it was marked before it came, so its mark says nothing.
    came_marked: Vec<bool>,
    drops: Vec<(PacketId, DropReason)>,
    drops_of_core: Vec<(u32, DropReason)>,
    drops_of_c: Vec<(u32, DropReason)>,
    done: u64,
    twin: core::marker::PhantomData<T>,
}

impl<T: Twin> Session<T> {
    fn new(seed: u64) -> Session<T> {
        let mut rng = Rng::stream(seed, "decisions");
        let rate = crate::draw::one_of(&mut rng, T::RATES);
        let mtu = crate::draw::one_of(&mut rng, &[1514, 1500, 1, 65_535]);
        let link = LinkHint { rate: Rate::bit(rate), rtt: Span::ms(50), mtu: Bytes(mtu) };
        let (config, shell) = T::draw(&mut rng, &link);
        if let Err(error) = config.validate() {
            panic!("seed {seed}: {error}: {config}");
        }
        let flows = crate::draw::one_of(&mut rng, &[1, 2, 3, 8, 40, 300]);
        let hashes = (0..flows).map(|_| rng.next_u32()).collect();
        Session {
            core: config.build(&link, Rng::stream(seed, "core")),
            rng,
            config,
            shell,
            pool: Pool::new(),
            now: Time::from_ns(0),
            hashes,
            spins: vec![false; flows],
            came_marked: Vec::new(),
            drops: Vec::new(),
            drops_of_core: Vec::new(),
            drops_of_c: Vec::new(),
            done: 0,
            twin: core::marker::PhantomData,
        }
    }

    /// A few thousand operations.
    fn play(&mut self, covered: &mut Covered) -> Result<(), String> {
        let mut phase = Phase::draw(&mut self.rng, self.hashes.len() as u64);
        for _ in 0..SESSION {
            if phase.left == 0 {
                phase = Phase::draw(&mut self.rng, self.hashes.len() as u64);
            }
            phase.left -= 1;
            self.done += 1;
            self.now += phase.pass(&mut self.rng);
            if self.rng.chance(0.005) {
                self.change_rate();
            }
            if self.rng.chance(phase.arrivals) {
                self.enqueue(&phase, covered)?;
            } else {
                self.dequeue(covered)?;
            }
            let (backlog, totals) = (self.core.backlog(), self.shell.observe(None, self.now));
            if (u64::from(backlog.packets), backlog.bytes.0) != (totals.packets, totals.bytes) {
                return Err(format!(
                    "{backlog:?} waits in the core, {} packets, {} B in C",
                    totals.packets, totals.bytes
                ));
            }
            if self.done.is_multiple_of(OBSERVE) {
                self.observe(covered)?;
            }
        }
        Ok(())
    }

    fn change_rate(&mut self) {
        let rate = crate::draw::one_of(&mut self.rng, &[0, 1_000_000, 12_000_000, 100_000_000]);
        self.core.on_rate(Rate::bit(rate), &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        self.shell.on_rate(rate, self.now);
    }

    fn enqueue(&mut self, phase: &Phase, covered: &mut Covered) -> Result<(), String> {
        let flow = self.rng.below(phase.flows) as usize;
        if self.rng.chance(phase.spins) {
            self.spins[flow] = !self.spins[flow];
        }
        // Some ask for a departure: at once, in a while, beyond every horizon.
        let ahead =
            crate::draw::one_of(&mut self.rng, &[0, 0, 0, 1, 100_000, 30_000_000, 10_000_000_000, 10_000_000_001]);
        let hash = self.hashes[flow];
        let meta = PacketMeta {
            arrived: self.now,
            depart: if self.rng.chance(0.5) { Time::ZERO } else { self.now + Span::ns(ahead) },
            hash,
            flow: FlowId(hash & T::mask(&self.config)),
            len: phase.length(&mut self.rng),
            ecn: phase.ecn(&mut self.rng),
            spin: self.spins[flow],
            ..PacketMeta::default()
        };
        let id = self.pool.insert(meta);
        let came_marked = meta.ecn == Ecn::Ce;
        self.came_marked.resize(self.came_marked.len().max(id.index() + 1), false);
        self.came_marked[id.index()] = came_marked;
        self.core.enqueue(id, &mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        let marked = self.pool.meta(id).ecn == Ecn::Ce;
        let queued = self.drops.iter().all(|&(drop, _)| drop != id);
        let marked_in_c = self.shell.enqueue(id.index() as u32, &meta, self.now, &mut self.drops_of_c);
        self.compare_drops(covered)?;
        if queued && !came_marked && marked != marked_in_c {
            return Err(format!("{meta:?} is marked in the core: {marked}, in C: {marked_in_c}"));
        }
        Ok(())
    }

    fn dequeue(&mut self, covered: &mut Covered) -> Result<(), String> {
        let next = self.core.dequeue(&mut Ctx { now: self.now, pool: &mut self.pool, drops: &mut self.drops });
        let (next_of_c, marked_in_c) = self.shell.dequeue(self.now, &mut self.drops_of_c);
        self.compare_drops(covered)?;
        if NextId::from(next) != next_of_c {
            return Err(format!("{next:?} comes next in the core, {next_of_c:?} in C"));
        }
        match next {
            Next::Packet(id) => {
                let meta = self.pool.remove(id);
                let marked = meta.ecn == Ecn::Ce;
                if marked != marked_in_c && !self.came_marked[id.index()] {
                    return Err(format!("{meta:?} is marked in the core: {marked}, in C: {marked_in_c}"));
                }
                if marked_in_c {
                    covered.count("marked");
                }
                covered.count("sent");
            }
            Next::At(_) => covered.count("waits for a departure"),
            Next::Empty => covered.count("empty"),
        }
        Ok(())
    }

    fn compare_drops(&mut self, covered: &mut Covered) -> Result<(), String> {
        self.drops_of_core.extend(self.drops.iter().map(|&(id, reason)| (id.index() as u32, reason)));
        if self.drops_of_core != self.drops_of_c {
            return Err(format!("{:?} are dropped in the core, {:?} in C", self.drops_of_core, self.drops_of_c));
        }
        for (_, reason) in self.drops_of_core.drain(..) {
            covered.count(match reason {
                DropReason::QueueFull => "queue full",
                DropReason::FlowLimit => "flow limit",
                DropReason::Policed => "policed",
                DropReason::Unclassified => "beyond the horizon",
                DropReason::Aqm => "codel",
                DropReason::Evicted => "evicted",
                _ => "another reason",
            });
        }
        if self.drops.len() > 1 {
            covered.count("several dropped at once");
        }
        for (id, _) in self.drops.drain(..) {
            self.pool.remove(id);
        }
        self.drops_of_c.clear();
        Ok(())
    }

    fn observe(&mut self, covered: &mut Covered) -> Result<(), String> {
        let mut gauges = Gauges::default();
        self.core.observe(&mut gauges);
        T::compare(&gauges, &self.shell.observe(None, self.now), covered)?;
        for (flow, of_flow) in &gauges.flows {
            let totals = self.shell.observe(Some(flow.0), self.now);
            T::compare_flow(of_flow, &totals, covered).map_err(|error| format!("{flow:?}: {error}"))?;
        }
        Ok(())
    }
}

/// Operations with one set of parameters.
const SESSION: u64 = 5000;
/// Operations from one comparison of flows' states to the next.
const OBSERVE: u64 = 32;
