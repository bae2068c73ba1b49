//! The laws that every registered item keeps, as functions: core's own tests run them for each entry of a registry. A crate that
//! implements a discipline, a controller or a detector of its own runs them in one line of a test, with the feature `contract`:
//! `narrows_core::contract::check_queue::<MyQueue>().unwrap()`.
use crate::congestion::{CongestionController, ControllerConfig};
use crate::detector::FairQueuingDetector;
use crate::queue::{QueueConfig, QueueDiscipline};
use crate::rng::Rng;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub mod adversaries;
mod bottleneck;
pub mod congestion;
pub mod detector;
pub mod isolation;
mod params;
pub mod queue;

/// Number of random scripts that each check plays by default; always the same ones.
const SCRIPTS: u32 = 256;
/// Bytes per script.
const LENGTH: usize = 600;

/// All laws of queue disciplines, for one that need not be registered. The error says which law is broken, with the shortest
/// script found that breaks it.
pub fn check_queue<Q>() -> Result<(), String>
where
    Q: QueueDiscipline<Params: Send + Sync> + Send + 'static,
{
    check_queue_config(&QueueConfig::custom::<Q>("checked", ""), SCRIPTS)
}

/// The same for a choice with its default parameters, with this number of random scripts.
pub fn check_queue_config(config: &QueueConfig, scripts: u32) -> Result<(), String> {
    queue::check_parameters(config)?;
    adversaries::check_adversaries(config)?;
    queue::check_service(config)?;
    isolation::check_isolation(config)?;
    on_scripts(scripts, |script| queue::check_run_with(config, script))?;
    on_scripts(scripts, |script| queue::check_run(config, script))
}

/// All laws of congestion controllers, for one that need not be registered.
pub fn check_controller<C>() -> Result<(), String>
where
    C: CongestionController<Params: Send + Sync> + Send + 'static,
{
    check_controller_config(&ControllerConfig::custom::<C>("checked", ""), SCRIPTS)
}

/// The same for a choice with its default parameters, with this number of random scripts.
pub fn check_controller_config(config: &ControllerConfig, scripts: u32) -> Result<(), String> {
    congestion::check_parameters(config)?;
    congestion::check_start(config)?;
    congestion::check_offered(config)?;
    on_scripts(scripts, |script| congestion::check_run(config, script))
}

/// All laws of detectors of fair queuing, for one that need not be registered.
pub fn check_detector<D: FairQueuingDetector>() -> Result<(), String> {
    detector::check_parameters::<D>()?;
    on_scripts(SCRIPTS, detector::check_run::<D>)
}

/// Plays random scripts. A script that breaks a law is shortened as far as it still breaks one.
fn on_scripts(scripts: u32, check: impl Fn(&[u8]) -> Result<(), String>) -> Result<(), String> {
    let mut rng = Rng::stream(1, "contract.scripts");
    for _ in 0..scripts {
        let mut script: Vec<u8> = (0..LENGTH).map(|_| (rng.next_u32() >> 24) as u8).collect();
        let Err(mut law) = check(&script) else { continue };
        let mut part = script.len();
        while part > 0 {
            let mut from = 0;
            while from < script.len() {
                let kept = |(n, &byte): (usize, &u8)| (n < from || n >= from + part).then_some(byte);
                let less: Vec<u8> = script.iter().enumerate().filter_map(kept).collect();
                match check(&less) {
                    Err(found) => (script, law) = (less, found),
                    Ok(()) => from += part,
                }
            }
            part /= 2;
        }
        return Err(format!("{law}; the script is {script:?}"));
    }
    Ok(())
}

/// Panics if proptest finds a script that breaks a law. The laws of all entries of a registry share it, because each use of `proptest!`
/// has the whole of proptest's runner compiled once more.
#[cfg(test)]
pub(crate) fn on_any_script(check: &dyn Fn(&[u8]) -> Result<(), String>) {
    use proptest::prelude::{ProptestConfig, TestCaseError, any, prop};
    let config = ProptestConfig { source_file: Some(file!()), ..ProptestConfig::default() };
    let scripts = prop::collection::vec(any::<u8>(), 0..LENGTH);
    let held = proptest::test_runner::TestRunner::new(config)
        .run(&scripts, |script| check(&script).map_err(TestCaseError::fail));
    held.unwrap_or_else(|error| panic!("{error}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::new_reno::NewReno;
    use crate::detector::rtt_gap::RttGap;
    use crate::queue::fifo::Fifo;

    #[test]
    fn lawful_ones_pass() {
        check_queue::<Fifo>().unwrap();
        check_controller::<NewReno>().unwrap();
        check_detector::<RttGap>().unwrap();
    }

    #[test]
    fn a_broken_law_is_shown_by_what_it_takes() {
        let law = on_scripts(SCRIPTS, |script| {
            if script.iter().filter(|&&b| b > 200).count() > 2 { Err("three".into()) } else { Ok(()) }
        });
        let law = law.unwrap_err();
        assert!(law.starts_with("three; the script is [") && law.matches(',').count() == 2, "{law}");
    }
}
