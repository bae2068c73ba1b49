//! The tidy table of a sweep: one row for each run and group of flows.
//!
//! Columns: the run, its seed, the axes, the study's metrics; the group of flows and its figures, the run's figures, each hop's; the
//! conditions of flows and hops. Those of a kind are in the order of their names, whichever runs have them.
use super::{RunFigures, Sweep};
use crate::cells::Cell;
use crate::model::Axis;
use narrows_results::figures::{Datum, Part, order};
use narrows_results::rows::{Column, Rows};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Maximum number of hops with columns.
const MAX_HOPS: usize = 32;

/// The table; `kept` are the runs of each cell.
pub(super) fn rows(sweep: &Sweep, kept: &[Vec<&RunFigures>]) -> Rows {
    let Sweep { study, cells, .. } = sweep;
    let layout = Layout::of(sweep, kept);
    let known: Vec<HashMap<String, f64>> = study.axes.iter().map(amounts).collect();
    let of_cell =
        |cell: &Cell| known.iter().zip(&cell.labels).map(|(known, label)| known.get(label).copied()).collect();
    let axes: Vec<Vec<Option<f64>>> = cells.iter().map(of_cell).collect();
    let mut rows = Vec::new();
    let mut number = 0;
    for ((cell, runs), amounts) in cells.iter().zip(kept).zip(&axes) {
        for run in runs {
            number += 1;
            for flow in 0..run.figures.flows.len() {
                rows.push(layout.row(number, run, flow, cell, amounts));
            }
        }
    }
    Rows { columns: layout.columns(), rows }
}

/// The columns after the axes, without the names that are taken.
struct Layout {
    /// Run, seed, axes, metrics, group and its size: always there.
    fixed: Vec<String>,
    metrics: usize,
    flow: Vec<String>,
    run: Vec<String>,
    /// Hop, key.
    hop: Vec<(String, String)>,
    flow_conditions: Vec<String>,
    hop_conditions: Vec<(String, String)>,
}

/// The part's figures, or its conditions.
type Values = fn(&Part) -> &BTreeMap<String, Datum>;

impl Layout {
    fn of(sweep: &Sweep, kept: &[Vec<&RunFigures>]) -> Layout {
        let study = &sweep.study;
        let all = || kept.iter().flatten().map(|run| &run.figures);
        let axes = study.axes.iter().map(|axis| {
            let unit = axis.amounts().map_or("", |(unit, _)| unit.suffix);
            format!("{}{unit}", axis.name)
        });
        let mut fixed: Vec<String> = ["run", "seed"].map(str::to_owned).into();
        fixed.extend(axes);
        fixed.extend(study.metrics[..sweep.own_metrics].iter().map(|metric| metric.name.clone()));
        fixed.extend(["flow", "flows"].map(str::to_owned));
        let mut taken: HashSet<String> = HashSet::new();
        for (n, name) in fixed.iter_mut().enumerate() {
            // A study may call an axis or a metric as a column is called.
            while !taken.insert(name.clone()) {
                *name = format!("{name}.{n}");
            }
        }
        let sorted = |names: BTreeSet<&String>, taken: &mut HashSet<String>| {
            let mut names: Vec<String> =
                names.into_iter().filter(|name| taken.insert((*name).clone())).cloned().collect();
            names.sort_by(|a, b| order(a, b));
            names
        };
        let flows = || all().flat_map(|figures| &figures.flows);
        let hops = || all().flat_map(|figures| &figures.hops);
        let mut seen = HashSet::new();
        let names: Vec<&str> =
            hops().map(|part| part.name.as_str()).filter(|name| seen.insert(*name)).take(MAX_HOPS).collect();
        let of_hops = |values: Values, taken: &mut HashSet<String>| {
            let mut columns = Vec::new();
            for name in &names {
                let keys: BTreeSet<&String> =
                    hops().filter(|part| part.name == *name).flat_map(|part| values(part).keys()).collect();
                let mut keys: Vec<&String> =
                    keys.into_iter().filter(|key| taken.insert(hop_column(name, key))).collect();
                keys.sort_by(|a, b| order(a, b));
                columns.extend(keys.into_iter().map(|key| ((*name).to_owned(), key.clone())));
            }
            columns
        };
        let flow = sorted(flows().flat_map(|part| part.figures.keys()).collect(), &mut taken);
        let run = sorted(all().flat_map(|figures| figures.run.keys()).collect(), &mut taken);
        let hop = of_hops(|part| &part.figures, &mut taken);
        let flow_conditions = sorted(flows().flat_map(|part| part.conditions.keys()).collect(), &mut taken);
        let hop_conditions = of_hops(|part| &part.conditions, &mut taken);
        Layout { fixed, metrics: sweep.own_metrics, flow, run, hop, flow_conditions, hop_conditions }
    }

    fn columns(&self) -> Vec<Column> {
        let whole = |name: &str| ["run", "seed", "flows"].contains(&name);
        let fixed = self.fixed.iter().map(|name| Column { name: name.clone(), whole: whole(name) });
        let of_hop = |(hop, key): &(String, String)| hop_column(hop, key);
        let other = self.flow.iter().chain(&self.run).cloned().chain(self.hop.iter().map(of_hop));
        let other = other.chain(self.flow_conditions.iter().cloned()).chain(self.hop_conditions.iter().map(of_hop));
        fixed.chain(other.map(|name| Column { name, whole: false })).collect()
    }

    fn row(
        &self,
        number: u64,
        run: &RunFigures,
        flow: usize,
        cell: &Cell,
        amounts: &[Option<f64>],
    ) -> Vec<Option<Datum>> {
        let count = |count: u64| Some(Datum::Number(count as f64));
        let text = |text: &str| Some(Datum::Text(text.to_owned()));
        let part = &run.figures.flows[flow];
        let mut row = vec![count(number), count(run.seed)];
        row.extend(cell.labels.iter().zip(amounts).map(|(label, amount)| amount.map(Datum::Number).or(text(label))));
        row.extend(run.values[..self.metrics].iter().map(|value| value.map(Datum::Number)));
        row.extend([text(&part.name), count(part.count as u64)]);
        row.extend(self.flow.iter().map(|key| part.figures.get(key).cloned()));
        row.extend(self.run.iter().map(|key| run.figures.run.get(key).cloned()));
        let hop = |name: &str| run.figures.hops.iter().find(|part| part.name == name);
        row.extend(self.hop.iter().map(|(name, key)| hop(name)?.figures.get(key).cloned()));
        row.extend(self.flow_conditions.iter().map(|key| part.conditions.get(key).cloned()));
        row.extend(self.hop_conditions.iter().map(|(name, key)| hop(name)?.conditions.get(key).cloned()));
        row
    }
}

fn hop_column(hop: &str, key: &str) -> String {
    format!("hop.{hop}.{key}")
}

/// The values of an axis by their labels, if they are amounts.
fn amounts(axis: &Axis) -> HashMap<String, f64> {
    axis.amounts().map_or_else(HashMap::new, |(_, amounts)| axis.labels().into_iter().zip(amounts).collect())
}
