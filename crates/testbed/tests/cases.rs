//! The cases are themselves tested: the reference meets each, and a control that is wrong on purpose fails it.
use narrows_testbed::cases::{CASES, Case, Verdict, Verdicts};
use narrows_testbed::{Subject, mutants};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does something for every case, on all cores, in order of the cases.
fn each<T: Send>(work: impl Fn(&Case) -> T + Sync) -> Vec<T> {
    let (next, cores) = (AtomicUsize::new(0), thread::available_parallelism().map_or(1, usize::from));
    let one = || {
        let mut done = Vec::new();
        while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((&case.name, work(case)));
        }
        done
    };
    let mut all: Vec<(&String, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(one)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no case panics")).collect()
    });
    all.sort_by_key(|&(name, _)| name.clone());
    all.into_iter().map(|(_, done)| done).collect()
}

fn described(verdicts: &Verdicts) -> String {
    let mut text = format!("{} {:?}", verdicts.case, verdicts.verdict);
    if let Some(failure) = &verdicts.failure {
        write!(text, ": {failure}").expect("writing into a string");
    }
    for reading in &verdicts.readings {
        let spread = reading.measured.map_or((0.0, 0.0), |all| (all.min, all.max));
        let beside = reading.reference.map_or((0.0, 0.0), |all| (all.min, all.max));
        let (name, bound) = (&reading.figure, reading.bound.unwrap_or(f64::NAN));
        write!(
            text,
            "\n    {:?} {name} {:.3}..{:.3} {} = {bound:.3}, reference {:.3}..{:.3}",
            reading.verdict, spread.0, spread.1, reading.expected, beside.0, beside.1
        )
        .expect("writing into a string");
    }
    text
}

#[test]
fn the_reference_meets_every_case_and_each_mutant_fails_its_own() {
    mutants::register();
    let wrong = each(|case| {
        let reference = case.reference();
        let mut wrong = Vec::new();
        let verdicts = case.judge(&reference, &reference);
        if verdicts.verdict != Verdict::Holds {
            wrong.push(format!("the reference fails {}", described(&verdicts)));
        }
        for fault in &case.mutants {
            let mutant = case.mutant(fault).unwrap_or_else(|| panic!("{}: no mutant {fault}", case.name));
            let name = mutant.name();
            let verdicts = case.judge(&case.run(&mutant), &reference);
            if verdicts.verdict != Verdict::Fails {
                wrong.push(format!("{name} passes {}", described(&verdicts)));
            }
        }
        wrong
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What controls of ours miss.
const MISSES: [(&str, &[&str]); 3] = [
    // BBRv1 takes the link from CUBIC and Reno, keeps a queue when the application pauses, and is slow after an outage.
    (
        "bbr",
        &[
            "guidelines/beside-cubic-one-bdp",
            "guidelines/beside-cubic-shallow",
            "guidelines/beside-reno",
            "recovery/app-limited",
            "recovery/outage",
        ],
    ),
    // GCC gives little to a call that starts late on a long path, and bears longer queues while TCP makes them.
    ("gcc", &["media/beside-short-tcp", "media/far-and-near"]),
    // NADA swings between its lowest and its highest rate where a fall has filled the queue; why is not known.
    ("nada", &["media/capacity-varies", "media/capacity-varies-for-two"]),
];

/// A case that a control of ours misses without being named here is wrong, or the control is.
#[test]
fn our_controllers_meet_what_concerns_them() {
    let wrong = each(|case| {
        let judged = ["new_reno", "cubic", "bbr", "bbr3", "gcc", "nada"].into_iter().filter(|name| {
            case.concerns(name) && *name != case.reference.control() && {
                let control = Subject::read("control", name).expect("it is registered");
                let verdicts = case.judge(&case.run(&control), &case.reference());
                let misses = MISSES.iter().any(|(of, cases)| of == name && cases.contains(&case.name.as_str()));
                (verdicts.verdict == Verdict::Fails) != misses
            }
        });
        judged.map(|name| format!("{name} in {}", case.name)).collect::<Vec<_>>()
    });
    assert_eq!(wrong.concat(), Vec::<String>::new());
}

#[test]
fn a_case_of_calls_judges_no_control_of_data() {
    let case = CASES.iter().find(|case| case.name == "media/three-share").expect("it is there");
    let cubic = Subject::read("control", "cubic").expect("it is registered");
    let refused = case.run(&cubic).swap_remove(0).err();
    assert_eq!(refused.as_deref(), Some("media/three-share is about gcc and nada; cubic is none"));
    assert!(!case.concerns("cubic") && case.concerns("nada"));
    assert!(CASES.iter().all(|case| case.group() == "media" || !case.concerns("gcc")), "any is any of data");
}

#[test]
fn there_are_at_least_sixty_cases_with_a_source_each() {
    assert!(CASES.len() >= 60, "{}", CASES.len());
    for case in CASES.iter() {
        let texts = [&case.title, &case.source, &case.why];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", case.name);
        assert!(case.holds.iter().all(|hold| !hold.because.is_empty()), "{}", case.name);
    }
}
