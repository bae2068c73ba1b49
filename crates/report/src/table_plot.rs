//! A plot of the table of a sweep: one figure over one axis, a line for each value of other columns, means with error bars over the seeds.
use crate::draw::{Drawing, Line, View, tick};
use crate::estimate::Estimate;
use crate::palette;
use crate::quantity::{Quantity, capital};
use crate::spread::Point;
use narrows_results::figure::{Owner, Statistic};
use narrows_results::lookup::without_unit;
use narrows_results::{Datum, Rows};
use narrows_scenario::expect::{Amount, Relation, allowed, unit_of};
use narrows_scenario::hint;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The content of a plot.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Request {
    /// The column of the x axis, with or without its unit: `hop.rate`.
    pub x: String,
    /// The figure, as a column or as a path of the summary: `bulk.rtt.p99`.
    pub y: String,
    /// The columns with a line for each of their values.
    pub by: Vec<String>,
    /// Only rows that meet these conditions are drawn: `hop.queue != fifo`, `hop.rate >= 10mbit`.
    pub conditions: Vec<String>,
    /// All lines in one panel, however many they are.
    pub overlaid: bool,
    /// How it is shown.
    pub view: View,
}

impl Request {
    /// Draws the table. An error names the column and what the table has.
    pub fn drawing(&self, rows: &Rows) -> Result<Drawing, String> {
        let table = Table::of(rows)?;
        let (x, y) = (table.number("--x", &self.x)?, table.number("--y", &self.y)?);
        let by = self.by.iter().map(|name| table.find("--by", name)).collect::<Result<Vec<_>, _>>()?;
        let conditions =
            self.conditions.iter().map(|text| Condition::of(&table, text)).collect::<Result<Vec<_>, _>>()?;
        let mut lines: Vec<(String, BTreeMap<Key, Vec<Sample>>)> = Vec::new();
        for row in 0..rows.rows.len() {
            if !conditions.iter().all(|condition| condition.holds(&table, row)) {
                continue;
            }
            let values = table.value(&x, row).zip(table.value(&y, row));
            let Some((at, value)) = values.and_then(|(at, value)| at.number().zip(value.number())) else { continue };
            if !at.is_finite() || !value.is_finite() {
                continue;
            }
            if y.group.as_deref().is_some_and(|group| group != table.group(row)) {
                continue;
            }
            let label = by.iter().map(|column| table.label(column, row)).collect::<Vec<_>>().join(", ");
            let line = match lines.iter().position(|(known, _)| *known == label) {
                Some(line) => line,
                None => {
                    lines.push((label, BTreeMap::new()));
                    lines.len() - 1
                }
            };
            let (at, value) = (table.factor(&x) * at, table.factor(&y) * value);
            lines[line].1.entry(Key(at)).or_default().push(Sample { row, value });
        }
        if lines.is_empty() {
            let which = if conditions.is_empty() { "" } else { " that meets --where" };
            return Err(format!("--y {}: no run{which} has a number there", self.y));
        }
        let quantity_from_zero = Quantity::of(table.name(&y).split('.').next().unwrap_or_default()).from_zero();
        let line = |(n, (label, points)): (usize, (String, BTreeMap<Key, Vec<Sample>>))| {
            let bars = points.iter().map(|(at, samples)| self.point(&table, &y, at.0, samples));
            let bars = bars.collect::<Result<Vec<Point>, String>>()?;
            let points = bars.iter().map(|bar| (bar.x, bar.mean)).collect();
            Ok(Line { panel: label.clone(), label, paint: palette::paint(n), points, band: Vec::new(), bars })
        };
        Ok(Drawing {
            lines: lines.into_iter().enumerate().map(line).collect::<Result<_, String>>()?,
            x: table.title(&x),
            y: table.title(&y),
            cdf: false,
            from_zero: quantity_from_zero,
            end: 0.0,
            overlaid: self.overlaid,
            view: self.view.clone(),
        })
    }

    /// The mean over the seeds, with its 95 % confidence interval.
    fn point(&self, table: &Table<'_>, y: &Found, x: f64, samples: &[Sample]) -> Result<Point, String> {
        let mut runs: BTreeMap<u64, &Sample> = BTreeMap::new();
        let mut seeds: HashMap<u64, &Sample> = HashMap::new();
        for sample in samples {
            let (run, seed) = (table.run(sample.row), table.seed(sample.row));
            match runs.get(&run) {
                // Figures of hops and of the run are the same in all rows of a run.
                Some(other) if !table.is_of_flows(y) && other.value == sample.value => continue,
                Some(other) => {
                    let groups = [table.group(other.row), table.group(sample.row)];
                    let paths = groups.map(|group| format!("{group}.{}", self.y)).join(", ");
                    return Err(format!(
                        "--y {}: {} and {} have it; allowed: {paths}, or a line for each with --by flow",
                        self.y, groups[0], groups[1]
                    ));
                }
                None => {}
            }
            runs.insert(run, sample);
            if let Some(other) = seeds.insert(seed, sample) {
                let differ = table.differing(other.row, sample.row).join(", ");
                return Err(format!(
                    "--by: a point at {} = {} would be a mean of runs that differ in {differ}; name it in --by, too",
                    self.x,
                    tick(x)
                ));
            }
        }
        let estimate = Estimate::of(runs.values().map(|sample| sample.value));
        let estimate = estimate.ok_or_else(|| format!("--y {}: a value is not finite", self.y))?;
        let half = estimate.half_width.unwrap_or(0.0);
        Ok(Point { x, mean: estimate.mean, low: estimate.mean - half, high: estimate.mean + half })
    }
}

/// A value of the x axis, in the order of numbers.
#[derive(PartialEq)]
struct Key(f64);

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A row's value.
struct Sample {
    row: usize,
    value: f64,
}

/// A column, and the group of flows whose rows are meant.
struct Found {
    column: usize,
    group: Option<String>,
}

/// A condition on a column.
struct Condition {
    found: Found,
    relation: Relation,
    value: Datum,
}

impl Condition {
    /// Reads `COLUMN RELATION VALUE`; the value of a number has its column's unit, or is in it.
    fn of(table: &Table<'_>, text: &str) -> Result<Condition, String> {
        let fault = |what: String| format!("--where {text:?}: {what}");
        let (name, relation, written) = Relation::split(text).ok_or_else(|| {
            fault("no relation; allowed: COLUMN RELATION VALUE, such as 'hop.rate >= 10mbit'; relations: >=, <=, >, <, ==, !=".into())
        })?;
        let found = table.find("--where", name)?;
        if table.has_text(found.column) {
            return match relation {
                Relation::Equal | Relation::Unequal => {
                    Ok(Condition { found, relation, value: Datum::Text(written.to_owned()) })
                }
                _ => Err(fault(format!("{name} holds text; allowed: ==, !="))),
            };
        }
        let column = table.name(&found);
        let number = written.parse().ok().filter(|number: &f64| number.is_finite());
        let value = number.or_else(|| Amount::parse(written)?.in_unit_of(column)).ok_or_else(|| {
            let unit = unit_of(column);
            fault(format!("{name} cannot be {written:?}; allowed: {}", allowed(unit)))
        })?;
        Ok(Condition { found, relation, value: Datum::Number(value) })
    }

    fn holds(&self, table: &Table<'_>, row: usize) -> bool {
        match (table.value(&self.found, row), &self.value) {
            (Some(Datum::Number(number)), Datum::Number(value)) => self.relation.holds(*number, *value),
            (Some(Datum::Text(word)), Datum::Text(value)) => (word == value) == (self.relation == Relation::Equal),
            _ => false,
        }
    }
}

/// The table of a sweep.
struct Table<'a> {
    rows: &'a Rows,
    run: usize,
    seed: usize,
    flow: usize,
    /// The groups of flows, in order.
    groups: Vec<&'a str>,
    /// The row of a run's group.
    row_of: HashMap<(u64, &'a str), usize>,
}

impl<'a> Table<'a> {
    fn of(rows: &'a Rows) -> Result<Table<'a>, String> {
        let at = |name: &str| rows.columns.iter().position(|column| column.name == name);
        let (Some(run), Some(seed), Some(flow)) = (at("run"), at("seed"), at("flow")) else {
            return Err("this is no table of `narrows sweep`: it lacks one of the columns run, seed, flow".to_owned());
        };
        let mut table = Table { rows, run, seed, flow, groups: Vec::new(), row_of: HashMap::new() };
        for row in 0..rows.rows.len() {
            let group = table.group(row);
            if !table.groups.contains(&group) {
                table.groups.push(group);
            }
            table.row_of.insert((table.run(row), group), row);
        }
        Ok(table)
    }

    fn cell(&self, row: usize, column: usize) -> Option<&'a Datum> {
        self.rows.rows[row].get(column)?.as_ref()
    }

    fn whole(&self, row: usize, column: usize) -> u64 {
        self.cell(row, column).and_then(Datum::number).unwrap_or(0.0) as u64
    }

    fn run(&self, row: usize) -> u64 {
        self.whole(row, self.run)
    }

    fn seed(&self, row: usize) -> u64 {
        self.whole(row, self.seed)
    }

    fn group(&self, row: usize) -> &'a str {
        match self.cell(row, self.flow) {
            Some(Datum::Text(name)) => name,
            _ => "",
        }
    }

    fn name(&self, found: &Found) -> &'a str {
        &self.rows.columns[found.column].name
    }

    /// The column's value in a row, or in the row that the run has for the column's group.
    fn value(&self, found: &Found, row: usize) -> Option<&'a Datum> {
        let row = match &found.group {
            Some(group) => *self.row_of.get(&(self.run(row), group.as_str()))?,
            None => row,
        };
        self.cell(row, found.column)
    }

    /// The columns of the axes, which the sweep varied.
    fn axes(&self) -> std::ops::Range<usize> {
        self.seed + 1..self.flow.max(self.seed + 1)
    }

    /// The axes in which two rows differ.
    fn differing(&self, a: usize, b: usize) -> Vec<String> {
        let differ = self.axes().filter(|&column| self.cell(a, column) != self.cell(b, column));
        differ.map(|column| plain(&self.rows.columns[column].name)).collect()
    }

    /// Whether a column has figures of groups of flows, which differ from row to row of a run.
    fn is_of_flows(&self, found: &Found) -> bool {
        found.column > self.flow && Statistic::find(Owner::Flow, self.name(found)).is_some()
    }

    fn has_text(&self, column: usize) -> bool {
        self.rows.rows.iter().any(|row| matches!(row[column], Some(Datum::Text(_))))
    }

    /// The column of this name, which has to hold numbers.
    fn number(&self, flag: &str, wanted: &str) -> Result<Found, String> {
        let found = self.find(flag, wanted)?;
        let is_number = |column: usize| !self.has_text(column);
        if is_number(found.column) {
            return Ok(found);
        }
        let numbers = self.axes().filter(|&column| is_number(column));
        let names: Vec<String> = numbers.map(|column| plain(&self.rows.columns[column].name)).collect();
        let others = if names.is_empty() { String::new() } else { format!(" such as {}", names.join(", ")) };
        Err(format!("{flag} {wanted}: the column holds text; allowed: a column of numbers{others}"))
    }

    /// The column of this name or path.
    fn find(&self, flag: &str, wanted: &str) -> Result<Found, String> {
        let at = |name: &str| {
            let columns = || self.rows.columns.iter();
            columns()
                .position(|column| column.name == name)
                .or_else(|| columns().position(|column| plain(&column.name) == plain(name)))
        };
        let in_group = |group: &str, key: &str| {
            let known = [format!("application.{key}"), key.to_owned()];
            let delays = key.strip_prefix("delay").map(|rest| {
                ["one_way", "messages.delay"].map(|kind| format!("application.{kind}{}", without_unit_of_first(rest)))
            });
            let columns: Vec<usize> =
                known.iter().rev().chain(delays.iter().flatten()).filter_map(|name| at(name)).collect();
            let has = |column: usize| {
                let mut rows = 0..self.rows.rows.len();
                rows.any(|row| self.group(row) == group && self.cell(row, column).is_some())
            };
            columns.into_iter().find(|&column| has(column))
        };
        if let Some(column) = at(wanted) {
            return Ok(Found { column, group: None });
        }
        let path = wanted.strip_prefix("flow.").unwrap_or(wanted);
        let mut groups: Vec<(&str, &str)> = self
            .groups
            .iter()
            .filter_map(|group| Some((*group, path.strip_prefix(group)?.strip_prefix('.')?)))
            .collect();
        groups.sort_by_key(|(group, _)| std::cmp::Reverse(group.len()));
        let of_group = groups.iter().find_map(|(group, key)| Some((in_group(group, key)?, *group)));
        if let Some((column, group)) = of_group {
            return Ok(Found { column, group: Some(group.to_owned()) });
        }
        let others = [format!("hop.{wanted}"), format!("application.{wanted}")];
        let column = others.iter().find_map(|name| at(name));
        column.map(|column| Found { column, group: None }).ok_or_else(|| self.unknown(flag, wanted))
    }

    /// The message for a name that the table does not have.
    fn unknown(&self, flag: &str, wanted: &str) -> String {
        let columns = self.rows.columns.iter().enumerate().filter(|(n, _)| *n != self.run && *n != self.seed);
        let mut names: Vec<String> = Vec::new();
        for (n, column) in columns {
            let name = plain(&column.name);
            if flag == "--y" && Statistic::find(Owner::Flow, &column.name).is_some() {
                let rows = || self.rows.rows.iter().enumerate().filter(|(_, row)| row[n].is_some());
                let groups: BTreeSet<&str> = rows().map(|(row, _)| self.group(row)).collect();
                names.extend(groups.into_iter().map(|group| format!("{group}.{name}")));
            } else if flag != "--y" || n > self.flow {
                names.push(name);
            }
        }
        let hint = hint(wanted, names.iter().map(String::as_str));
        // Of a known hop or flow its own figures are listed.
        let first = wanted.split('.').next().unwrap_or_default();
        let prefixes = [format!("{first}."), format!("hop.{first}.")];
        let (near, far): (Vec<&String>, Vec<&String>) =
            names.iter().partition(|name| flag == "--y" && prefixes.iter().any(|prefix| name.starts_with(prefix)));
        let listed = if near.is_empty() { far } else { near };
        let shown = listed.iter().take(LISTED).map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let more = match listed.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{flag} {wanted}: the table has no such column; allowed: {shown}{more}{hint}")
    }

    /// The figure that a column holds.
    fn statistic(&self, found: &Found) -> Option<Statistic> {
        Statistic::at(self.name(found))
    }

    /// The number by which values are multiplied where they are shown.
    fn factor(&self, found: &Found) -> f64 {
        self.statistic(found).map_or(1.0, |statistic| statistic.figure.factor())
    }

    /// The title of an axis, with the unit: `RTT p99 of bulk (ms)`.
    fn title(&self, found: &Found) -> String {
        let name = self.name(found);
        let statistic = self.statistic(found);
        let (title, unit) = match &statistic {
            Some(statistic) => (capital(&statistic.title()), statistic.figure.unit().to_owned()),
            None => {
                let key = ["hop.", "flow."].iter().find_map(|owner| name.strip_prefix(owner)).unwrap_or(name);
                let quantity = Quantity::of(key);
                (quantity.title.replace('.', " "), quantity.unit)
            }
        };
        let several = self.groups.len() > 1;
        let hop =
            statistic.and_then(|statistic| name.strip_prefix("hop.")?.strip_suffix(&format!(".{}", statistic.key())));
        let owner = found.group.as_deref().filter(|_| several).or(hop.filter(|_| self.hops() > 1));
        let title = owner.map_or(title.clone(), |owner| format!("{title} of {owner}"));
        if unit.is_empty() { title } else { format!("{title} ({unit})") }
    }

    /// The number of hops.
    fn hops(&self) -> usize {
        let of_hop = |name: &str| name.starts_with("hop.") && name.ends_with(".utilisation");
        self.rows.columns.iter().filter(|column| of_hop(&column.name)).count()
    }

    /// The name of a row's line in the legend.
    fn label(&self, found: &Found, row: usize) -> String {
        let unit = unit_of(self.name(found));
        match self.value(found, row) {
            Some(Datum::Text(text)) => text.clone(),
            Some(Datum::Number(number)) if unit.is_empty() => {
                let name = plain(self.name(found));
                format!("{} {}", name.rsplit('.').next().unwrap_or_default(), tick(*number))
            }
            Some(Datum::Number(number)) => format!("{} {unit}", tick(*number)),
            None => "none".to_owned(),
        }
    }
}

/// A column's name without units: `rtt.p99` for `rtt_ms.p99`.
fn plain(name: &str) -> String {
    name.split('.').map(without_unit).collect::<Vec<_>>().join(".")
}

/// The rest of a path after `delay`, without the unit.
fn without_unit_of_first(rest: &str) -> &str {
    rest.strip_prefix("_ms").unwrap_or(rest)
}

/// Maximum number of names in a message.
const LISTED: usize = 20;
