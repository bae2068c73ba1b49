//! quinn-proto as a peer, with the defaults that it has.
super::quic::quic_peer! {
    quinn_proto,
    endpoint(config, server) => Endpoint::new(config, server, true, None),
    path(remote) => remote, None;
    single => 1,
    shown(connection) => {
        let path = connection.stats().path;
        Shown {
            cwnd: Some(Bytes(connection.congestion_state().window())),
            srtt: Some(Span::ns(connection.rtt().as_nanos() as u64)),
            lost: Some(path.lost_packets),
            mss: Some(Bytes(connection.current_mtu().into())),
            inflight: None,
            failed: None,
        }
    },
}

use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};

/// Its controls; CUBIC is its default, BBR is called experimental.
pub const STACKS: [crate::Stack; 3] = [
    crate::Stack {
        name: "quinn:new_reno",
        control: "new_reno",
        repeats: true,
        ends: || ends(Arc::new(NewRenoConfig::default())),
    },
    crate::Stack {
        name: "quinn:cubic",
        control: "cubic",
        repeats: true,
        ends: || ends(Arc::new(CubicConfig::default())),
    },
    crate::Stack { name: "quinn:bbr", control: "bbr", repeats: true, ends: || ends(Arc::new(BbrConfig::default())) },
];
