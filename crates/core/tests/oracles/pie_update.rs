//! PIE's probability against the pseudo-code of RFC 8033, update by update (`vectors/pie_update.py`).
use narrows_core::queue::parts::pie_law::{PieLaw, PieState};
use narrows_core::{Bytes, Span, Time};

#[test]
fn the_probability_follows_the_rfcs_pseudo_code() {
    let law = PieLaw {
        target: Span::ms(15),
        alpha: 2,
        beta: 20,
        bytemode: false,
        dq_rate_estimator: false,
        overshoot: false,
        mtu: Bytes(1500),
    };
    let mut state = PieState::default();
    let mut now = Time::ZERO + Span::s(10);
    let mut highest = 0.0f64;
    for (n, line) in include_str!("../vectors/pie_update.csv").lines().skip(1).enumerate() {
        let mut columns = line.split(',').map(|text| text.parse::<f64>().expect("a number"));
        let mut next = || columns.next().expect("three columns");
        let (delay_ms, queued, expected) = (next(), next() > 0.0, next());
        now += Span::ms(15);
        let arrived = now - Span::ns((delay_ms * 1e6) as u64);
        // Nothing behind the packet that leaves: no delay.
        let behind = if queued { Bytes(15_000) } else { Bytes::ZERO };
        state.on_departure(&law, arrived, 1500, behind, now);
        state.update(&law, behind);
        let got = state.probability();
        assert!((got - expected).abs() <= 1e-6 + 2e-3 * expected, "update {n}, {delay_ms} ms: {got}, not {expected}");
        highest = highest.max(got);
    }
    assert!(highest > 0.5, "the vectors reach {highest} only");
}
