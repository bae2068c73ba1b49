//! Unusual and hostile traffic against every discipline, under the laws of [`super::queue`].
use super::queue::Ledger;
use crate::queue::QueueConfig;
use crate::{Ecn, Rate, Span};
use alloc::format;
use alloc::string::String;

/// Plays every adversary against a discipline.
pub fn check_adversaries(config: &QueueConfig) -> Result<(), String> {
    let play = |who: &str, adversary: fn(&mut Ledger) -> Result<(), String>| {
        let mut ledger = Ledger::new(config);
        adversary(&mut ledger).and_then(|()| ledger.drain()).map_err(|law| format!("{who}: {law}"))
    };
    play("a flood of new flows", flood)?;
    play("packets of one byte", tiny)?;
    play("flows that stop and come back", on_and_off)?;
    play("a link whose rate is 0 for ten seconds", outage)?;
    play("a rate that jumps", jumps)
}

/// Every packet is a flow of its own, and two arrive for each that is sent.
fn flood(ledger: &mut Ledger) -> Result<(), String> {
    for n in 0..12_000 {
        ledger.enqueue(n, 100, Ecn::NotEct, Span::ZERO)?;
        if n % 2 == 0 {
            ledger.pass(Span::us(67))?;
            ledger.dequeue()?;
        }
    }
    Ok(())
}

fn tiny(ledger: &mut Ledger) -> Result<(), String> {
    for n in 0..12_000 {
        ledger.enqueue(n % 5, 1, Ecn::Ect0, Span::ZERO)?;
        if n % 3 != 0 {
            ledger.pass(Span::us(1))?;
            ledger.dequeue()?;
        }
    }
    Ok(())
}

/// Bursts after ever longer silences.
fn on_and_off(ledger: &mut Ledger) -> Result<(), String> {
    for burst in 0..8u32 {
        for n in 0..300 {
            ledger.enqueue(n % 4, 1500, Ecn::NotEct, Span::ZERO)?;
            if n % 3 == 0 {
                ledger.pass(Span::ms(1))?;
                ledger.dequeue()?;
            }
        }
        ledger.drain()?;
        ledger.pass(Span::ms(10u64.pow(burst / 2)))?;
    }
    Ok(())
}

/// The rate is zero: nothing leaves for ten seconds while packets arrive.
fn outage(ledger: &mut Ledger) -> Result<(), String> {
    ledger.rate(Rate::ZERO)?;
    for n in 0..3000 {
        ledger.enqueue(n % 7, 1500, Ecn::Ect0, Span::ZERO)?;
        ledger.pass(Span::us(3333))?;
    }
    // A quotient with the rate is not a number here.
    ledger.shows_numbers()?;
    ledger.rate(Rate::mbit(12))
}

/// From 1 kbit/s to 10 Gbit/s and back.
fn jumps(ledger: &mut Ledger) -> Result<(), String> {
    for n in 0..4000u32 {
        if n % 100 == 0 {
            ledger.rate([Rate::kbit(1), Rate::mbit(12), Rate::gbit(10)][(n / 100 % 3) as usize])?;
        }
        ledger.enqueue(n % 3, 1500, Ecn::NotEct, Span::ZERO)?;
        ledger.pass(Span::us(u64::from(n % 1000)))?;
        if n % 3 != 2 {
            ledger.dequeue()?;
        }
    }
    Ok(())
}
