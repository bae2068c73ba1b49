//! The axes of a figure: linear or logarithmic, with what lies outside their ranges cut off.
use plotters::coord::combinators::{IntoLogRange as _, LogCoord};
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;

/// The ends of an axis; the values decide where there is none.
pub type Limits = (Option<f64>, Option<f64>);

/// How a figure is shown.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct View {
    /// Whether the x axis is logarithmic.
    pub log_x: bool,
    /// Whether the y axis is logarithmic.
    pub log_y: bool,
    /// The ends of the x axis.
    pub x: Limits,
    /// The ends of the y axis.
    pub y: Limits,
    /// Width and height, px; panels may need more height.
    pub size: Option<(i32, i32)>,
    /// A title above the figure; empty for none.
    pub title: String,
}

impl View {
    /// Whether something may lie outside the axes.
    pub(super) fn cuts(&self) -> bool {
        self.log_x || self.log_y || self.x != (None, None) || self.y != (None, None)
    }
}

/// An axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) range: Range<f64>,
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    Linear,
    /// With labels at powers of ten, for distributions.
    Decades,
    /// With labels at 1, 2, 5, 10, …
    Log,
}

impl Axis {
    /// A linear axis, or one of decades.
    pub(super) fn auto(range: Range<f64>, decades: bool) -> Axis {
        Axis { range, scale: if decades { Scale::Decades } else { Scale::Linear } }
    }

    /// The axis with these ends, logarithmic if `log`. `values` are those that it has to show; `flag` names it.
    pub(super) fn asked(
        self,
        flag: char,
        log: bool,
        (low, high): Limits,
        values: impl Iterator<Item = f64>,
    ) -> Result<Axis, String> {
        let Axis { mut range, mut scale } = self;
        if log {
            let positive = values.filter(|value| *value > 0.0 && value.is_finite());
            let (least, most) = positive.fold((f64::INFINITY, 0.0), |(a, b), v| (v.min(a), v.max(b)));
            if most == 0.0 {
                return Err(format!("--log {flag}: no value is above 0"));
            }
            (range, scale) = (least / 1.15..most * 1.15, Scale::Log);
        }
        range = low.unwrap_or(range.start)..high.unwrap_or(range.end);
        if scale != Scale::Linear && range.start <= 0.0 {
            return Err(format!("--{flag}range {}..: a logarithmic axis begins above 0", range.start));
        }
        if range.start >= range.end {
            return Err(format!("--{flag}range: no value is within {}..{}", range.start, range.end));
        }
        if range.end - range.start > LONGEST {
            return Err(format!("--{flag}range: the axis is too long; allowed: up to {LONGEST:e}"));
        }
        Ok(Axis { range, scale })
    }

    /// Whether the value is on the axis.
    pub(super) fn has(&self, value: f64) -> bool {
        (self.range.start..=self.range.end).contains(&value)
    }

    /// The nearest value on the axis.
    pub(super) fn nearest(&self, value: f64) -> f64 {
        value.max(self.range.start).min(self.range.end)
    }

    /// The value's place along the axis: 0 at its start, 1 at its end.
    fn place(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        if self.scale == Scale::Linear {
            (value - start) / (end - start)
        } else {
            (value / start).ln() / (end / start).ln()
        }
    }

    fn value(&self, place: f64) -> f64 {
        let Range { start, end } = self.range;
        if self.scale == Scale::Linear { start + place * (end - start) } else { start * (end / start).powf(place) }
    }

    fn log(&self) -> LogCoord<f64> {
        self.range.clone().log_scale().into()
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        if self.scale == Scale::Linear {
            RangedCoordf64::from(self.range.clone()).map(value, limit)
        } else {
            self.log().map(value, limit)
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self.scale {
            Scale::Linear => RangedCoordf64::from(self.range.clone()).key_points(hint),
            Scale::Decades => self.log().key_points(hint),
            Scale::Log => {
                let points = round_values(&self.range, hint.max_num_points().max(2));
                if points.len() < 2 { RangedCoordf64::from(self.range.clone()).key_points(hint) } else { points }
            }
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// At most this many of 1, 2, 5, 10, 20, …, or of powers of ten, within a range of positive numbers.
fn round_values(range: &Range<f64>, most: usize) -> Vec<f64> {
    let (first, last) = (range.start.log10().floor() as i32, range.end.log10().ceil() as i32);
    let within = |steps: &[f64], stride: usize| -> Vec<f64> {
        let decades = (first..=last).step_by(stride);
        let values = decades.flat_map(|n| steps.iter().map(move |step| format!("{step}e{n}").parse().unwrap_or(0.0)));
        values.filter(|value| range.start <= *value && *value <= range.end).collect()
    };
    let fine = within(&[1.0, 2.0, 5.0], 1);
    if fine.len() <= most { fine } else { within(&[1.0], ((last - first) as usize).div_ceil(most).max(1)) }
}

/// Longest axis, in its unit: its labels are still numbers apart.
const LONGEST: f64 = 1e100;

/// The parts of a line within the axes.
pub(super) fn within(points: &[(f64, f64)], x: &Axis, y: &Axis) -> Vec<Vec<(f64, f64)>> {
    let mut paths: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut is_open = false;
    for ends in points.windows(2) {
        let [from, to] = [ends[0], ends[1]].map(|(a, b)| (x.place(a), y.place(b)));
        let Some((enters, leaves)) = crossing(from, to) else {
            is_open = false;
            continue;
        };
        let at = |t: f64, end: (f64, f64)| {
            if t == 0.0 || t == 1.0 {
                end
            } else {
                (x.value(from.0 + t * (to.0 - from.0)), y.value(from.1 + t * (to.1 - from.1)))
            }
        };
        if !is_open {
            paths.push(vec![at(enters, ends[0])]);
        }
        if let Some(path) = paths.last_mut() {
            path.push(at(leaves, ends[1]));
        }
        is_open = leaves == 1.0;
    }
    paths
}

/// Where a segment enters and leaves the unit square, as shares of its length (Liang and Barsky 1984).
fn crossing(from: (f64, f64), to: (f64, f64)) -> Option<(f64, f64)> {
    let (mut enters, mut leaves) = (0.0f64, 1.0f64);
    for (start, end) in [(from.0, to.0), (from.1, to.1)] {
        if !start.is_finite() || !end.is_finite() {
            return None;
        }
        let step = end - start;
        if step == 0.0 && !(0.0..=1.0).contains(&start) {
            return None;
        }
        if step != 0.0 {
            let (a, b) = (-start / step, (1.0 - start) / step);
            enters = enters.max(a.min(b));
            leaves = leaves.min(a.max(b));
        }
    }
    (enters < leaves).then_some((enters, leaves))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(range: Range<f64>) -> Axis {
        Axis::auto(range, false)
    }

    fn log(range: Range<f64>) -> Axis {
        Axis { range, scale: Scale::Log }
    }

    #[test]
    fn a_line_ends_where_it_leaves_the_axes() {
        let (x, y) = (linear(0.0..10.0), linear(0.0..1.0));
        // It rises through the top at 5, and comes back at 7.5.
        let line = [(0.0, 0.0), (5.0, 1.0), (6.0, 2.0), (9.0, 0.0), (20.0, 0.0)];
        assert_eq!(within(&line, &x, &y), [vec![(0.0, 0.0), (5.0, 1.0)], vec![(7.5, 1.0), (9.0, 0.0), (10.0, 0.0)]]);
        assert!(within(&[(0.0, 2.0), (10.0, 3.0)], &x, &y).is_empty());
        // On logarithmic axes 1 to 100 is straight through 10, and what is not above zero has no place.
        let path = within(&[(0.0, 5.0), (1.0, 1.0), (100.0, 100.0)], &log(1.0..100.0), &log(1.0..10.0));
        assert_eq!((path.len(), path[0].len(), path[0][0]), (1, 2, (1.0, 1.0)));
        assert!((path[0][1].0 - 10.0).abs() < 1e-9 && (path[0][1].1 - 10.0).abs() < 1e-9, "{path:?}");
    }

    #[test]
    fn logarithmic_axes_have_round_labels() {
        assert_eq!(log(4.3..23.0).key_points(8), [5.0, 10.0, 20.0]);
        assert_eq!(log(0.5..2000.0).key_points(6), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(log(1e-3..1e9).key_points(6), [1e-3, 1e-1, 1e1, 1e3, 1e5, 1e7, 1e9][..].to_vec().as_slice());
        assert!(
            log(31.0..43.0).key_points(6).len() > 2,
            "between two round values the labels are those of a linear axis"
        );
    }

    #[test]
    fn ends_that_leave_nothing_are_refused() {
        let asked = |log: bool, limits: Limits| linear(0.0..10.0).asked('y', log, limits, [0.0, 2.0, 8.0].into_iter());
        assert_eq!(asked(false, (Some(1.0), None)).expect("it is valid").range, 1.0..10.0);
        let range = asked(true, (None, Some(100.0))).expect("it is valid").range;
        assert!(range.start > 1.0 && range.start < 2.0 && range.end == 100.0, "{range:?}");
        assert!(asked(false, (Some(11.0), None)).is_err_and(|error| error.contains("--yrange")));
        assert!(asked(false, (Some(-1e308), Some(1e308))).is_err_and(|error| error.contains("too long")));
        assert!(asked(true, (Some(0.0), None)).is_err_and(|error| error.contains("above 0")));
        let none = linear(0.0..1.0).asked('x', true, (None, None), [0.0].into_iter());
        assert_eq!(none.expect_err("nothing to show"), "--log x: no value is above 0");
    }
}
