//! noq-proto as a peer over one path, with the defaults that it has.
use noq_proto::{FourTuple, PathId};
use std::num::NonZeroUsize;

super::quic::quic_peer! {
    noq_proto,
    endpoint(config, server) => Endpoint::new(config, server, true),
    path(remote) => FourTuple::from_remote(remote);
    single => NonZeroUsize::MIN,
    shown(connection) => Shown {
        cwnd: connection.congestion_state(PathId::ZERO).map(|control| Bytes(control.window())),
        srtt: connection.rtt(PathId::ZERO).map(|rtt| Span::ns(rtt.as_nanos() as u64)),
        lost: None,
        mss: Some(Bytes(connection.current_mtu().into())),
        inflight: None,
        failed: None,
    },
}

use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};

/// Its controls; CUBIC is its default.
pub const STACKS: [crate::Stack; 3] = [
    crate::Stack {
        name: "noq:new_reno",
        control: "new_reno",
        repeats: true,
        ends: || ends(Arc::new(NewRenoConfig::default())),
    },
    crate::Stack {
        name: "noq:cubic",
        control: "cubic",
        repeats: true,
        ends: || ends(Arc::new(CubicConfig::default())),
    },
    crate::Stack { name: "noq:bbr3", control: "bbr3", repeats: false, ends: || ends(Arc::new(Bbr3Config::default())) },
];
