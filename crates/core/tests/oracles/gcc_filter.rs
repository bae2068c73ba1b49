//! GCC's arrival filter and threshold against the draft's equations, group by group (`vectors/gcc_filter.py`).
use narrows_core::media::gcc::{ArrivalFilter, Step, Threshold};

#[test]
fn filter_and_threshold_follow_the_drafts_equations() {
    let (mut filter, mut threshold) = (ArrivalFilter::default(), Threshold::default());
    let (mut highest, mut lowest) = (0.0f64, f64::INFINITY);
    for (n, line) in include_str!("../vectors/gcc_filter.csv").lines().skip(1).enumerate() {
        let columns: Vec<f64> = line.split(',').map(|text| text.parse().expect("a number")).collect();
        let &[departure, arrival, m, expected] = columns.as_slice() else { panic!("four columns: {line}") };
        let scaled = filter.update(&Step { departure, arrival });
        threshold.update(scaled, arrival);
        let found = scaled / (n + 1).min(60) as f64;
        assert!((found - m).abs() <= 1e-6 * m.abs().max(1.0), "group {n}: {found}, not {m}");
        assert!((threshold.0 - expected).abs() <= 1e-6 * expected, "group {n}: {}, not {expected}", threshold.0);
        (highest, lowest) = (highest.max(m), lowest.min(m));
    }
    assert!(highest > 0.2 && lowest < -0.2, "the queue grows and drains: {lowest} to {highest}");
}
