//! Whether a discipline isolates flows is what it declares ([`QueueDiscipline::isolates`]), and how it serves them.
//!
//! Two flows between the same two hosts always have packets waiting, one of them twenty times as many as the other. Where they share
//! a queue, they are served in proportion. Where each has a queue of its own, they are served alike, however small the second one's is.
//! Hashes may meet in a bucket, so some pair of flows must be served apart, not each. Limits are left out: a buffer of a few packets
//! has no room for two queues.
use super::params::ensure;
use super::queue::{Ledger, values};
use crate::packet::{FlowId, PacketMeta};
use crate::params::Unit;
use crate::queue::parts::flow_table::mix;
use crate::queue::{Next, QueueConfig};
use crate::registry::Registered;
use crate::{Ecn, Span};
use alloc::format;
use alloc::string::String;

/// Packets of each flow that wait, or have just been dropped and are offered again.
const WAITING: [u32; 2] = [40, 2];
/// Packets delivered of a pair: several rounds of the largest quantum that is tried.
const DELIVERED: u32 = 4000;
/// Dequeues for them, at most.
const DEQUEUES: u32 = 5 * DELIVERED;
/// Pairs with other hashes: how many are tried to find one that is served apart, and how many must not be.
const PAIRS: u32 = 12;
const SHARED_PAIRS: u32 = 2;

/// A hash for each packet begins each round anew.
const LEFT_OUT: [(&str, &str); 1] = [("perturb", "1ms")];

/// Checks the declaration with the default parameters, and with each other value of each parameter.
pub fn check_isolation(default: &QueueConfig) -> Result<(), String> {
    check_declared(default)?;
    for spec in default.specs() {
        let is_limit = matches!(spec.unit, Unit::Packets | Unit::Limit) || spec.name == "memory_limit";
        for value in values(spec.unit).iter().filter(|value| !is_limit && !LEFT_OUT.contains(&(spec.name, value))) {
            let mut config = default.clone();
            if config.set(spec.name, value).is_ok() && config.validate().is_ok() {
                check_declared(&config)?;
            }
        }
    }
    Ok(())
}

fn check_declared(config: &QueueConfig) -> Result<(), String> {
    let declared = config.traits().isolates;
    let mut apart = false;
    for pair in 0..if declared { PAIRS } else { SHARED_PAIRS } {
        apart |= are_served_apart(config, pair)?;
        if apart {
            break;
        }
    }
    ensure(apart == declared, || {
        let (says, does) = if declared { ("isolates", "share a queue") } else { ("does not isolate", "do not share") };
        format!("{config} says that it {says} flows between two hosts, but they {does}")
    })
}

/// Serves a pair of flows. Is the one with few packets served as often as the other?
fn are_served_apart(config: &QueueConfig, pair: u32) -> Result<bool, String> {
    let mut ledger = Ledger::new(config);
    let offer = |ledger: &mut Ledger, flow: u32| {
        let hash = mix(2 * pair + flow, 1);
        ledger.offer(PacketMeta { hash, flow: FlowId(flow), len: 1500, ecn: Ecn::NotEct, ..PacketMeta::default() })
    };
    for flow in [0, 1] {
        (0..WAITING[flow as usize]).try_for_each(|_| offer(&mut ledger, flow))?;
    }
    let mut served = [0u32; 2];
    for _ in 0..DEQUEUES {
        ledger.pass(Span::ms(1))?;
        if let Next::At(time) = ledger.dequeue()? {
            ledger.pass_until(time)?;
        }
        for (flow, delivered) in core::mem::take(&mut ledger.left) {
            offer(&mut ledger, flow)?;
            served[flow as usize] += u32::from(delivered);
        }
        if served[0] + served[1] >= DELIVERED {
            break;
        }
    }
    // Shared, the second gets a twentieth of the first one's service; apart, as much.
    Ok(4 * served[1] > served[0])
}
