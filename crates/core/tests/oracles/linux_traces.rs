//! Windows of a real Linux 7.2 kernel (`tests/vectors/README.md`) against ours on the same path: 50 Mbit/s, 40 ms.
//!
//! Growth is compared, epoch by epoch: slow start, HyStart's exit, the cubic function before and after its origin, New
//! Reno's region, fast convergence. When a loss is found and when its recovery ends is taken from the trace, which samples
//! every 20 ms: each is put in the middle between two samples, so it may be 10 ms too early or too late. That is worth one
//! packet of window, in slow start (2 packets per 0.48 ms) a few; hence the tolerances.
use crate::common::Path;
use narrows_core::congestion::{ControllerConfig, LossKind};
use narrows_core::registry::Registered;
use narrows_core::{Span, Time};

/// 1500 bytes at 50 Mbit/s.
const TX: Span = Span::us(240);
/// The lowest RTT in the traces; the first data leave one RTT after the SYN, where the traces' clock starts.
const RTT: Span = Span::us(40_020);

const CUBIC_50P: &str = include_str!("../vectors/linux72_cubic_50p.csv");
const CUBIC_1000P: &str = include_str!("../vectors/linux72_cubic_1000p.csv");
const RENO_50P: &str = include_str!("../vectors/linux72_reno_50p.csv");

#[derive(Clone, Copy, Debug)]
struct Row {
    at: Time,
    cwnd: u64,
    ssthresh: Option<u64>,
    recovery: bool,
}

fn trace(csv: &str) -> Vec<Row> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        Row {
            at: Time::ZERO + Span::from_secs_f64(fields[0].parse().unwrap()),
            cwnd: fields[1].parse().unwrap(),
            ssthresh: fields[2].parse().ok(),
            recovery: fields[3] == "3",
        }
    };
    csv.lines().skip(1).map(row).collect()
}

/// Ours less Linux's, in packets, at each sample outside of recoveries.
#[derive(Default)]
struct Off {
    /// The windows of the first slow start.
    slow_start: Vec<i64>,
    /// The windows afterwards.
    avoidance: Vec<i64>,
    /// The thresholds afterwards.
    ssthresh: Vec<i64>,
}

impl Off {
    fn worst(values: &[i64]) -> i64 {
        values.iter().map(|off| off.abs()).max().unwrap()
    }

    fn exact(&self) -> f64 {
        self.avoidance.iter().filter(|&&off| off == 0).count() as f64 / self.avoidance.len() as f64
    }
}

fn replay(controller: &str, settings: &[(&str, &str)], csv: &str) -> Off {
    let mut config = ControllerConfig::named(controller).unwrap();
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    let rows = trace(csv);
    let mut path = Path::new(&config, 10, Time::ZERO + RTT, TX, RTT);
    let (mut off, mut last) = (Off::default(), rows[0]);
    for row in rows {
        let between = last.at + row.at.since(last.at) / 2;
        match (last.recovery, row.recovery) {
            (false, true) => {
                path.run(between);
                path.lose(LossKind::Loss);
            }
            (true, false) => path.reopen(between),
            _ => {}
        }
        last = row;
        if row.recovery {
            continue;
        }
        path.run(row.at);
        let window = path.cwnd() as i64 - row.cwnd as i64;
        match row.ssthresh {
            None => off.slow_start.push(window),
            Some(ssthresh) => {
                off.avoidance.push(window);
                off.ssthresh.push(path.ssthresh().unwrap_or(0) as i64 - ssthresh as i64);
            }
        }
    }
    off
}

#[test]
fn cubic_climbs_as_linux_does_between_three_losses() {
    let off = replay("cubic", &[], CUBIC_50P);
    assert_eq!(off.slow_start.len() + off.avoidance.len(), 486);
    assert!(Off::worst(&off.slow_start) <= 3, "{:?}", off.slow_start);
    assert!(Off::worst(&off.avoidance) <= 1, "{:?}", off.avoidance);
    assert!(Off::worst(&off.ssthresh) <= 1, "{:?}", off.ssthresh);
    assert!(off.exact() > 0.8, "{}", off.exact());
}

#[test]
fn cubic_leaves_slow_start_where_linux_does_and_grows_by_5_percent_from_there() {
    let off = replay("cubic", &[], CUBIC_1000P);
    assert!(Off::worst(&off.slow_start) <= 3, "{:?}", off.slow_start);
    assert!(Off::worst(&off.avoidance) <= 2, "{:?}", off.avoidance);
    // HyStart found the train at 247 packets, here at 246.
    assert!(Off::worst(&off.ssthresh) <= 1, "{:?}", off.ssthresh);
}

#[test]
fn new_reno_grows_as_linux_does() {
    let off = replay("new_reno", &[], RENO_50P);
    assert!(Off::worst(&off.slow_start) <= 3, "{:?}", off.slow_start);
    assert!(Off::worst(&off.avoidance) <= 2, "{:?}", off.avoidance);
    assert!(Off::worst(&off.ssthresh) <= 1, "{:?}", off.ssthresh);
}

#[test]
fn the_comparison_sees_each_mechanism() {
    for (name, value) in [
        ("fast_convergence", "false"),
        ("tcp_friendliness", "false"),
        ("beta", "0.69"),
        ("c", "0.45"),
        ("hystart", "false"),
        ("hystart_kind", "plus_plus"),
    ] {
        let csv = if name.starts_with("hystart") { CUBIC_1000P } else { CUBIC_50P };
        let off = replay("cubic", &[(name, value)], csv);
        assert!(Off::worst(&off.avoidance) > 2, "{name} = {value} makes no difference");
    }
    // Linux's clock ticked at 250 Hz.
    let off = replay("cubic", &[("tick", "1ms")], CUBIC_50P);
    assert!(off.exact() < 0.5, "{}", off.exact());
}
