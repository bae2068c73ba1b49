//! COBALT's law against recorded decisions: Linux's functions worked out a second time in another language
//! (`vectors/cobalt.py`). Every verdict, and the state after it, must be the recorded one.
use narrows_core::queue::parts::cobalt_law::{CobaltDecision, CobaltLaw, CobaltState, P_DEC, P_INC, Packet};
use narrows_core::{Span, Time};

#[test]
fn every_verdict_is_the_recorded_one() {
    let fresh = |target, interval, mtu_time| CobaltLaw {
        target: Span::ns(target),
        interval: Span::ns(interval),
        mtu_time: Span::ns(mtu_time),
        p_inc: P_INC,
        p_dec: P_DEC,
    };
    let (mut law, mut state) = (fresh(1, 1, 0), CobaltState::default());
    let (mut marks, mut drops) = (0, 0);
    for (n, row) in include_str!("../vectors/cobalt.csv").lines().enumerate() {
        let (op, rest) = row.split_once(',').expect("an operation and its values");
        let values: Vec<u64> = rest.split(',').map(|value| value.parse().expect(row)).collect();
        let now = Time::from_ns(values[0]);
        match op {
            "new" => {
                (law, state) = (fresh(values[0], values[1], values[2]), CobaltState::default());
                continue;
            }
            "full" => state.queue_full(&law, now),
            "empty" => state.queue_empty(&law, now),
            "packet" => {
                let packet = Packet { sojourn: Span::ns(values[1]), markable: values[2] == 1 };
                let verdict = state.judge(&law, packet, now, values[3] as u32, || values[4] as u32);
                let recorded = CobaltDecision { mark: values[5] == 1, drop: values[6] == 1 };
                assert_eq!(verdict, recorded, "line {}: {row}", n + 1);
                marks += values[5];
                drops += values[6];
            }
            _ => panic!("line {}: {row}", n + 1),
        }
        let after = &values[values.len() - 3..];
        // Exact: a probability in 1/2³² is a float.
        let p = state.p_drop() * 4_294_967_296.0;
        let got = [p as u64, state.count().into(), state.is_dropping().into()];
        assert_eq!(got, after, "line {}: {row}", n + 1);
    }
    assert!(marks > 100 && drops > 500, "{marks} marks and {drops} drops are too few to say anything");
}
