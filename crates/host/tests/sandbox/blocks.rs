//! Shells' addresses, which nothing else uses.
use std::collections::HashSet;
use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

use narrows_host::HostError;
use narrows_host::{Block, Namespace, Tun, TunSpec};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::Test;
use super::roles::{NEST, VARIABLE};

pub(super) const TESTS: &[Test] = &[
    ("two_at_once_are_not_the_same", two_at_once_are_not_the_same),
    ("what_is_in_use_is_left", what_is_in_use_is_left),
    ("regression_a_stranger_cannot_occupy_the_blocks", regression_a_stranger_cannot_occupy_the_blocks),
    ("many_that_look_at_the_same_moment_get_different_ones", many_that_look_at_the_same_moment_get_different_ones),
    ("a_block_whose_device_name_is_taken_is_left", a_block_whose_device_name_is_taken_is_left),
    ("shells_nest", shells_nest),
];

fn first(block: &Block) -> String {
    block.outer()[0].0.to_string()
}

fn take(namespace: &Namespace) -> (Block, Tun) {
    Block::take(namespace, &TunSpec::default()).unwrap()
}

fn two_at_once_are_not_the_same() {
    let outside = Namespace::create().unwrap();
    let one = take(&outside);
    let other = take(&outside);
    assert_eq!((first(&one.0), first(&other.0)), ("100.64.0.1".into(), "100.65.0.1".into()));
    drop(one);
    assert_eq!(first(&take(&outside).0), "100.64.0.1");
    // Another namespace does not see the block.
    assert_eq!(first(&take(&Namespace::create().unwrap()).0), "100.64.0.1");
}

fn what_is_in_use_is_left() {
    let outside = Namespace::create().unwrap();
    let address = |text: &str, prefix| (text.parse().unwrap(), prefix);
    let addresses = vec![address("100.64.7.7", 32), address("100.65.0.1", 24)];
    let _tun = Tun::create(&outside, &TunSpec { addresses, ..TunSpec::default() }).unwrap();
    assert_eq!(first(&take(&outside).0), "100.66.0.1");
}

/// Any user can take names in the abstract socket namespace.
fn regression_a_stranger_cannot_occupy_the_blocks() {
    let outside = Namespace::create().unwrap();
    let squat = || {
        let name = |n: u32| SocketAddr::from_abstract_name(format!("narrows 100.{}.0.0/16", 64 + n)).unwrap();
        let bind = |n: u32| UnixDatagram::bind_addr(&name(n)).unwrap();
        (0..64).map(bind).collect::<Vec<_>>()
    };
    let _held = outside.run(squat).unwrap();
    assert_eq!(first(&take(&outside).0), "100.64.0.1");
    // Making a device, which reserves a block, needs a right that a stranger lacks.
    let stranger = || {
        let all = CapabilitySet::empty();
        let none = CapabilitySets { effective: all, permitted: all, inheritable: all };
        set_capabilities(None, none).unwrap();
        let file = File::options().read(true).write(true).open("/dev/net/tun");
        let Ok(file) = file else { return "no device" };
        drop(file);
        match Tun::create(&Namespace::current().unwrap(), &TunSpec { name: "narrows0".into(), ..TunSpec::default() }) {
            Err(HostError::NotAllowed(_)) => "refused",
            _ => "made",
        }
    };
    assert_ne!(outside.run(stranger).unwrap(), "made");
}

/// Sixteen threads, released together, each take a block before any address can be seen.
fn many_that_look_at_the_same_moment_get_different_ones() {
    let outside = Namespace::create().unwrap();
    let start = Barrier::new(16);
    let taken: Vec<(Block, Tun)> = thread::scope(|scope| {
        let look = || {
            start.wait();
            take(&outside)
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(look)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let different: HashSet<String> = taken.iter().map(|(block, _)| first(block)).collect();
    assert_eq!(different.len(), 16, "{different:?}");
    for (block, device) in &taken {
        // The block 100.(64 + n).0.1 is behind narrowsN.
        let n: u32 = first(block).split('.').nth(1).unwrap().parse().unwrap();
        assert_eq!(device.name(), format!("narrows{}", n - 64));
    }
}

fn a_block_whose_device_name_is_taken_is_left() {
    let outside = Namespace::create().unwrap();
    let _namesake = Tun::create(&outside, &TunSpec { name: "narrows0".into(), ..TunSpec::default() }).unwrap();
    let (block, device) = take(&outside);
    assert_eq!((first(&block).as_str(), device.name()), ("100.65.0.1", "narrows1"));
}

/// Shells nest as deep as their blocks allow, and the fifth says why it cannot.
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
