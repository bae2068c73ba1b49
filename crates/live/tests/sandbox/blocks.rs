//! Addresses that nobody else has.
use std::process::{Command, Stdio};

use narrows_live::sandbox::{Block, Namespace, Tun, TunSpec};

use super::Test;
use super::roles::{NEST, VARIABLE};

pub(super) const TESTS: &[Test] = &[
    ("two_at_once_are_not_the_same", two_at_once_are_not_the_same),
    ("what_is_in_use_is_left", what_is_in_use_is_left),
    ("shells_nest", shells_nest),
];

fn first(block: &Block) -> String {
    block.outer()[0].0.to_string()
}

fn two_at_once_are_not_the_same() {
    let outside = Namespace::create().unwrap();
    let one = Block::free_in(&outside).unwrap();
    let other = Block::free_in(&outside).unwrap();
    assert_eq!((first(&one), first(&other)), ("100.64.0.1".into(), "100.65.0.1".into()));
    drop(one);
    assert_eq!(first(&Block::free_in(&outside).unwrap()), "100.64.0.1");
    // Another namespace knows nothing of it.
    assert_eq!(first(&Block::free_in(&Namespace::create().unwrap()).unwrap()), "100.64.0.1");
}

fn what_is_in_use_is_left() {
    let outside = Namespace::create().unwrap();
    let address = |text: &str, prefix| (text.parse().unwrap(), prefix);
    let addresses = vec![address("100.64.7.7", 32), address("100.65.0.1", 24)];
    let _tun = Tun::create(&outside, &TunSpec { addresses, ..TunSpec::default() }).unwrap();
    assert_eq!(first(&Block::free_in(&outside).unwrap()), "100.66.0.1");
}

/// Each as deep as its block allows, and the fifth says why it cannot.
fn shells_nest() {
    let outside = Namespace::create().unwrap();
    let role = || {
        let program = std::env::current_exe().unwrap();
        Command::new(program).env(VARIABLE, format!("{NEST} 5")).stderr(Stdio::inherit()).output()
    };
    let output = outside.run(role).unwrap().unwrap();
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(),
        [
            "100.64.0.1/16 fd6e:6172:7277::6440:2/112",
            "100.64.16.1/20 fd6e:6172:7277::6440:1002/116",
            "100.64.17.1/24 fd6e:6172:7277::6440:1102/120",
            "100.64.17.17/28 fd6e:6172:7277::6440:1112/124",
            "shells nest four deep, not deeper",
        ]
    );
}
