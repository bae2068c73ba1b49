//! Sentences that belong below a result's table, for a terminal and for the page: which hops it leaves out, how exactly a world
//! in real time kept its times, whether it fell behind, and what the compared queues do to an application.
use crate::comparison::{Comparison, Group};
use crate::table::{Column, Row, Table};
use narrows_results::summary::Timing;
use std::cmp::Ordering;

/// A remark on how a result was obtained.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Without a full stop at its end.
    pub text: String,
    /// Whether the figures are less reliable than usual.
    pub is_warning: bool,
}

/// A share of late packets below this changes no figure that is shown.
const FEW: f64 = 0.001;

/// The remarks on these results; of a group's runs the worst counts, figure by figure.
pub fn notes(comparison: &Comparison) -> Vec<Note> {
    let several = comparison.groups.len() > 1;
    let of = |group: &Group| of_group(group, if several { format!("{} ", group.label) } else { String::new() });
    of_hops(comparison).into_iter().chain(comparison.groups.iter().flat_map(of)).chain(of_queues(comparison)).collect()
}

/// Says in a sentence what the queues do to the first application, and what its neighbour gets; nothing if they hardly differ.
fn of_queues(comparison: &Comparison) -> Option<Note> {
    let table = Table::of_queues_by_flow_group(comparison)?;
    let is = |title: &'static str| move |column: &Column| column.statistic.title() == title;
    let delay = table.columns.iter().position(is("delay p99"))?;
    let named = |index: usize| table.columns[index].flows.as_deref().unwrap_or_default();
    let ms = |row: &&Row| row.cells[delay].map(|estimate| estimate.mean);
    let of_delay = |a: &&Row, b: &&Row| ms(a).partial_cmp(&ms(b)).unwrap_or(Ordering::Equal);
    let measured = || table.rows.iter().filter(|row| ms(row).is_some());
    let (worst, best) = (measured().max_by(of_delay)?, measured().min_by(of_delay)?);
    if ms(&worst)? < NOTICEABLE * ms(&best)? {
        return None;
    }
    let (long, short) = (whole(ms(&worst)?), whole(ms(&best)?));
    let mut text =
        format!("{}: {long} ms (p99) behind {}, {short} behind {}", named(delay), worst.heads[0], best.heads[0]);
    if let Some(goodput) = table.columns.iter().position(is("goodput"))
        && let (Some(there), Some(here)) = (worst.cells[goodput], best.cells[goodput])
    {
        text += &format!("; {}: {:.1} and {:.1} Mbit/s", named(goodput), there.mean, here.mean);
    }
    Some(Note { text, is_warning: false })
}

/// A ratio of delays below this is not worth a sentence.
const NOTICEABLE: f64 = 1.2;

fn whole(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Says which hops are shown, if there are too many for a table.
fn of_hops(comparison: &Comparison) -> Option<Note> {
    let (shown, all) = (comparison.hops().len(), comparison.hop_count());
    let text = || format!("shown are the {shown} of {all} hops with the longest queues; summary.json has all");
    (shown < all).then(|| Note { text: text(), is_warning: false })
}

fn of_group(group: &Group, who: String) -> Vec<Note> {
    let timings: Vec<&Timing> = group.runs.iter().filter_map(|run| run.result.summary.timing.as_ref()).collect();
    if timings.is_empty() {
        return Vec::new();
    }
    let worst = |of: fn(&Timing) -> f64| timings.iter().map(|timing| of(timing)).fold(0.0, f64::max);
    let (p99, max) = (worst(|t| t.late_ms.p99), worst(|t| t.late_ms.max));
    let text = format!("{who}kept its times: 99 % within {} ms, at worst {} ms", short(p99), short(max));
    let mut notes = vec![Note { text, is_warning: false }];
    let mut warn = |text: String| notes.push(Note { text, is_warning: true });
    let late = worst(|t| t.late_share);
    if late > FEW {
        let share = short(100.0 * late);
        warn(format!("{who}fell behind by {} ms, {share} % of packets by more than 1 ms", short(max)));
    }
    let stamped = worst(|t| t.stamped_late_share);
    if stamped > FEW {
        let share = short(100.0 * stamped);
        warn(format!(
            "{who}read {share} % of packets after more than 1 ms of oversleeping: their delays seem too short"
        ));
    }
    let overrun = timings.iter().map(|timing| timing.overrun_packets).max().unwrap_or(0);
    if overrun > 0 {
        let packets = if overrun == 1 { "packet" } else { "packets" };
        warn(format!("{who}lost {overrun} {packets} at the devices: not read in time, or not taken"));
    }
    let most = |count: fn(&Timing) -> u64| timings.iter().map(|timing| count(timing)).max().unwrap_or(0);
    let (unsent, broken) = (most(|t| t.unsent_packets), most(|t| t.broken_connections));
    if unsent > 0 {
        let datagrams = if unsent == 1 { "datagram" } else { "datagrams" };
        warn(format!(
            "{who}did not send {unsent} {datagrams}: the sender was too late, or the system did not take them"
        ));
    }
    if broken > 0 {
        let connections = if broken == 1 { "connection" } else { "connections" };
        warn(format!("{who}lost {broken} {connections} before they had finished"));
    }
    notes
}

/// Two significant digits, at least a thousandth.
fn short(value: f64) -> String {
    let decimals = match value {
        v if v >= 9.95 => 0,
        v if v >= 0.995 => 1,
        v if v >= 0.0995 => 2,
        _ => 3,
    };
    let text = format!("{:.decimals$}", if value > 0.0 { value.max(0.001) } else { 0.0 });
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn two_digits_are_enough() {
        let shown = [0.0, 1e-9, 0.0804, 0.0996, 0.9, 0.996, 4.0, 4.26, 9.96, 10.0, 1234.5].map(short);
        assert_eq!(shown, ["0", "0.001", "0.08", "0.1", "0.9", "1", "4", "4.3", "10", "10", "1234"]);
    }
}
