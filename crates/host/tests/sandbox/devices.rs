//! The contents of new namespaces and TUN devices.
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use narrows_host::{Namespace, Route, Tun, TunSpec};
use rustix::io::Errno;

use super::{Test, skip};

pub(super) const TESTS: &[Test] = &[
    ("a_namespace_is_new_and_settled", a_namespace_is_new_and_settled),
    ("a_device_carries_both_protocols", a_device_carries_both_protocols),
    ("a_device_is_silent", a_device_is_silent),
    ("a_device_goes_with_its_descriptor", a_device_goes_with_its_descriptor),
    ("what_nobody_reads_is_counted", what_nobody_reads_is_counted),
    ("a_large_mtu", a_large_mtu),
    ("what_is_refused_is_named", what_is_refused_is_named),
];

fn sysctl(namespace: &Namespace, name: &str) -> String {
    let path = format!("/proc/sys/{name}");
    namespace.run(|| fs::read_to_string(path)).unwrap().unwrap().trim().to_owned()
}

pub(super) fn devices(namespace: &Namespace) -> Vec<String> {
    let table = namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
    table.lines().skip(2).map(|line| line.split(':').next().unwrap().trim().to_owned()).collect()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A device with 192.0.2.1/24 and 2001:db8::1/64 (documentation prefixes: RFC 5737, RFC 3849) and default routes.
fn spec() -> TunSpec {
    TunSpec {
        addresses: vec![(ip("192.0.2.1"), 24), (ip("2001:db8::1"), 64)],
        routes: vec![
            Route { to: None, via: Some(ip("192.0.2.2")), src: None },
            Route { to: Some((ip("2001:db8:1::"), 48)), via: Some(ip("2001:db8::2")), src: Some(ip("2001:db8::1")) },
        ],
        ..TunSpec::default()
    }
}

/// The next packet within half a second, with its header of ten bytes.
fn read(tun: &Tun) -> Option<Vec<u8>> {
    let mut frame = vec![0; 70_000];
    for _ in 0..50 {
        match rustix::io::read(tun, &mut frame) {
            Ok(len) => {
                frame.truncate(len);
                return Some(frame.split_off(10));
            }
            Err(Errno::AGAIN) => thread::sleep(Duration::from_millis(10)),
            Err(error) => panic!("{error}"),
        }
    }
    None
}

fn a_namespace_is_new_and_settled() {
    let (outside, inside) = (Namespace::current().unwrap(), Namespace::create().unwrap());
    assert_ne!(outside.id().unwrap(), inside.id().unwrap());
    assert_eq!(inside.run(|| Namespace::current().unwrap().id().unwrap()).unwrap(), inside.id().unwrap());
    assert_eq!(devices(&inside), ["lo"]);
    loopback_is_up(&inside);
    if inside.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap().is_err() {
        skip("/proc/sys cannot be written here, so nothing is set in a new namespace");
        return;
    }
    assert_eq!(sysctl(&inside, "net/ipv4/ip_forward"), "1");
    assert_eq!(sysctl(&inside, "net/ipv6/conf/all/forwarding"), "1");
    assert_eq!(sysctl(&inside, "net/ipv4/tcp_no_metrics_save"), "1");
    for copied in ["tcp_congestion_control", "tcp_ecn", "tcp_rmem", "tcp_sack", "tcp_slow_start_after_idle"] {
        let name = format!("net/ipv4/{copied}");
        assert_eq!(sysctl(&inside, &name), sysctl(&outside, &name), "{copied}");
    }
    // A second namespace, made from inside the first, gets the settings of the first.
    inside.run(|| fs::write("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0").unwrap()).unwrap();
    let nested = inside.run(|| Namespace::create().unwrap()).unwrap();
    assert_eq!(sysctl(&nested, "net/ipv4/tcp_slow_start_after_idle"), "0");
}

fn loopback_is_up(inside: &Namespace) {
    inside
        .run(|| {
            let (one, other) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("[::1]:0").unwrap());
            one.connect(one.local_addr().unwrap()).unwrap();
            assert_eq!(one.send(b"v4").unwrap(), 2);
            assert_eq!(other.send_to(b"v6", other.local_addr().unwrap()).unwrap(), 2);
        })
        .unwrap();
}

fn a_device_carries_both_protocols() {
    let inside = Namespace::create().unwrap();
    let tun = Tun::create(&inside, &spec()).unwrap();
    assert!(tun.name().starts_with("narrows"), "{}", tun.name());
    assert!(tun.ipv6());
    for (to, version) in [("192.0.2.9:9", 4), ("198.51.100.1:9", 4), ("[2001:db8::9]:9", 6), ("[2001:db8:1::9]:9", 6)] {
        let to: SocketAddr = to.parse().unwrap();
        let local = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let sent = inside.run(|| UdpSocket::bind(local).unwrap().send_to(b"narrows", to)).unwrap();
        assert_eq!(sent.unwrap(), 7, "{to}");
        let packet = read(&tun).unwrap();
        assert_eq!(packet[0] >> 4, version, "{to}");
        assert!(packet.ends_with(b"narrows"));
        let source = if version == 4 { packet[12..16].to_vec() } else { packet[8..24].to_vec() };
        let own = if version == 4 {
            vec![192, 0, 2, 1]
        } else {
            vec![0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        };
        assert_eq!(source, own);
    }
}

/// No router solicitation, no multicast report, no duplicate address detection: only programs' packets are in the queue.
fn a_device_is_silent() {
    let inside = Namespace::create().unwrap();
    let tun = Tun::create(&inside, &spec()).unwrap();
    for _ in 0..6 {
        assert_eq!(read(&tun), None);
    }
}

fn a_device_goes_with_its_descriptor() {
    let inside = Namespace::create().unwrap();
    let tun = Tun::create(&inside, &TunSpec { name: "mine".into(), ..TunSpec::default() }).unwrap();
    assert_eq!(devices(&inside), ["lo", "mine"]);
    drop(tun);
    assert_eq!(devices(&inside), ["lo"]);
}

/// Packets that the device or its discipline drops because nobody reads are counted, and the counter can be read from any
/// namespace.
fn what_nobody_reads_is_counted() {
    let inside = Namespace::create().unwrap();
    let tun = Tun::create(&inside, &TunSpec { queue: 10, ..spec() }).unwrap();
    assert_eq!(tun.dropped().unwrap(), 0);
    let socket = inside.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let sent = (0..100).filter(|_| socket.send_to(b"narrows", "192.0.2.9:9").is_ok()).count() as u64;
    let mut left = 0;
    while read(&tun).is_some() {
        left += 1;
    }
    assert!(left >= 10, "{left}");
    assert_eq!(tun.dropped().unwrap(), sent - left);
}

fn a_large_mtu() {
    let inside = Namespace::create().unwrap();
    let tun = Tun::create(&inside, &TunSpec { mtu: 9000, ..spec() }).unwrap();
    let to: SocketAddr = "192.0.2.9:9".parse().unwrap();
    inside.run(|| UdpSocket::bind("0.0.0.0:0").unwrap().send_to(&[7; 9000 - 28], to).unwrap()).unwrap();
    assert_eq!(read(&tun).unwrap().len(), 9000);
}

fn what_is_refused_is_named() {
    let inside = Namespace::create().unwrap();
    let said = |spec: &TunSpec| Tun::create(&inside, spec).unwrap_err().to_string();
    let long = said(&TunSpec { name: "a-name-of-16-byte".into(), ..TunSpec::default() });
    assert!(long.contains("a-name-of-16-byte") && long.contains("15 bytes"), "{long}");
    let nowhere = Route { to: None, via: Some(ip("203.0.113.1")), src: None };
    let unreachable = said(&TunSpec { routes: vec![nowhere], ..spec() });
    assert!(unreachable.starts_with("cannot add the route default through narrows0: "), "{unreachable}");
    let wide = said(&TunSpec { addresses: vec![(ip("192.0.2.1"), 33)], ..TunSpec::default() });
    assert!(wide.contains("192.0.2.1/33"), "{wide}");
}
