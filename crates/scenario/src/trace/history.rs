//! The history of a Starlink dish, as its gRPC interface writes it in JSON (`dish_get_history`): the rate of each of the last
//! seconds, in a ring whose oldest entry is the one that is written next. It is the rate that was used, not what the link could carry.
use super::{Carried, at};
use crate::error::ScenarioError;
use narrows_core::{Rate, Span};
use serde_json::Value;

/// Names of the list of rates, bit/s, in the spellings of JSON and of protocol buffers.
const RATES: [&str; 2] = ["downlinkThroughputBps", "downlink_throughput_bps"];
const INSIDE: [&str; 2] = ["dishGetHistory", "dish_get_history"];

pub(super) fn parse(text: &str, file: &str) -> Result<(Vec<Span>, Span), ScenarioError> {
    let fail = |line: usize, message: String| at(file, line, message);
    let value: Value = serde_json::from_str(text)
        .map_err(|error| fail(error.line().max(1), "not JSON of a dish's history".to_owned()))?;
    let history = INSIDE.iter().find_map(|key| value.get(key)).unwrap_or(&value);
    let rates = RATES.iter().find_map(|key| history.get(key)?.as_array());
    let rates = rates.ok_or_else(|| {
        fail(1, format!("JSON without a list {:?}; allowed: a dish's history, as dish_get_history prints it", RATES[0]))
    })?;
    // The number of seconds since the dish was started, which JSON of protocol buffers writes as text.
    let current = history.get("current");
    let current = current.and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
    let oldest = current.filter(|&n| n > rates.len() as u64).map_or(0, |n| (n % rates.len().max(1) as u64) as usize);
    let mut carried = Carried::default();
    for rate in rates[oldest..].iter().chain(&rates[..oldest]) {
        let bps = rate.as_f64().filter(|bps| (0.0..1e12).contains(bps));
        let bps =
            bps.ok_or_else(|| fail(1, "a rate that is not a number of bits per second from 0 to 1e12".to_owned()))?;
        let most = super::MOST;
        carried.hold(Rate::bit(bps.round() as u64), Span::s(1)).ok_or_else(|| {
            fail(1, format!("more than {most} opportunities of 1500 bytes; allowed: a shorter history"))
        })?;
    }
    if carried.opportunities.is_empty() {
        return Err(fail(1, "a link that never sends; allowed: a rate above zero somewhere".into()));
    }
    Ok(carried.finish())
}
