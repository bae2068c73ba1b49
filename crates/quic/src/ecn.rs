//! The ECN bits (RFC 3168 §5) of packets that arrive, by who sent them. noq keeps them to itself.
use noq::udp::{EcnCodepoint, RecvMeta};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Packets that arrived, by their ECN bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnCounts {
    /// Not ECN-capable.
    pub not_ect: u64,
    /// ECT(0).
    pub ect0: u64,
    /// ECT(1).
    pub ect1: u64,
    /// Congestion experienced.
    pub ce: u64,
}

impl EcnCounts {
    /// All of them.
    pub const fn packets(&self) -> u64 {
        self.not_ect + self.ect0 + self.ect1 + self.ce
    }

    fn of(&mut self, bits: Option<EcnCodepoint>) -> &mut u64 {
        match bits {
            None => &mut self.not_ect,
            Some(EcnCodepoint::Ect0) => &mut self.ect0,
            Some(EcnCodepoint::Ect1) => &mut self.ect1,
            Some(EcnCodepoint::Ce) => &mut self.ce,
        }
    }
}

/// Counts for the addresses that somebody watches; of an endpoint's sockets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<Mutex<Vec<(SocketAddr, EcnCounts)>>>);

impl Tally {
    /// Counts from zero for this address.
    pub(crate) fn watch(&self, from: SocketAddr) {
        self.forget(from);
        self.lock().push((plain(from), EcnCounts::default()));
    }

    /// Counts no more for this address.
    pub(crate) fn forget(&self, from: SocketAddr) {
        self.lock().retain(|&(watched, _)| watched != plain(from));
    }

    /// What has arrived from there.
    pub(crate) fn of(&self, from: SocketAddr) -> EcnCounts {
        let all = self.lock();
        all.iter().find(|&&(watched, _)| watched == plain(from)).map_or_else(EcnCounts::default, |&(_, counts)| counts)
    }

    /// These have arrived. One entry may stand for several packets of the same length.
    pub(crate) fn count(&self, arrived: &[RecvMeta]) {
        let mut all = self.lock();
        if all.is_empty() {
            return;
        }
        for one in arrived {
            if let Some((_, counts)) = all.iter_mut().find(|&&mut (watched, _)| watched == plain(one.addr)) {
                *counts.of(one.ecn) += one.len.div_ceil(one.stride.max(1)) as u64;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(SocketAddr, EcnCounts)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What arrives for one connection.
#[derive(Debug)]
pub(crate) struct Arrivals {
    tally: Tally,
    /// Of a client: the server, which has the same address on both paths.
    peer: Option<SocketAddr>,
    watched: Mutex<Vec<SocketAddr>>,
}

impl Arrivals {
    pub(crate) fn new(tally: Tally, peer: Option<SocketAddr>) -> Arrivals {
        Arrivals { tally, peer, watched: Mutex::default() }
    }

    /// Counts from zero, for a client's server or else for these addresses.
    pub(crate) fn watch(&self, peers: Vec<SocketAddr>) {
        let peers = self.peer.map_or(peers, |peer| vec![peer]);
        let mut watched = self.watched();
        watched.iter().for_each(|&from| self.tally.forget(from));
        peers.iter().for_each(|&from| self.tally.watch(from));
        *watched = peers;
    }

    /// What has arrived since.
    pub(crate) fn counts(&self) -> EcnCounts {
        let each = self.watched().iter().map(|&from| self.tally.of(from)).collect::<Vec<_>>();
        each.into_iter().fold(EcnCounts::default(), |sum, one| EcnCounts {
            not_ect: sum.not_ect + one.not_ect,
            ect0: sum.ect0 + one.ect0,
            ect1: sum.ect1 + one.ect1,
            ce: sum.ce + one.ce,
        })
    }

    fn watched(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.watched().iter().for_each(|&from| self.tally.forget(from));
    }
}

/// A socket for both families has IPv4 addresses in another form.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_watched_is_counted() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let arrived = |from: &str, len: usize, ecn: Option<EcnCodepoint>| {
            let mut meta = RecvMeta::default();
            (meta.addr, meta.len, meta.stride, meta.ecn) = (address(from), len, 1200, ecn);
            meta
        };
        let tally = Tally::default();
        tally.count(&[arrived("192.0.2.1:5", 1200, Some(EcnCodepoint::Ce))]);
        tally.watch(address("192.0.2.1:5"));
        tally.count(&[
            arrived("192.0.2.1:5", 2500, Some(EcnCodepoint::Ect0)),
            arrived("[::ffff:192.0.2.1]:5", 100, Some(EcnCodepoint::Ce)),
            arrived("192.0.2.1:5", 0, None),
            arrived("192.0.2.1:6", 1200, Some(EcnCodepoint::Ect1)),
        ]);
        let wanted = EcnCounts { ect0: 3, ce: 1, ..EcnCounts::default() };
        assert_eq!((tally.of(address("192.0.2.1:5")), wanted.packets()), (wanted, 4));
        assert_eq!(tally.of(address("192.0.2.1:6")), EcnCounts::default());
        tally.watch(address("192.0.2.1:5"));
        assert_eq!(tally.of(address("192.0.2.1:5")), EcnCounts::default(), "from zero again");
        tally.forget(address("192.0.2.1:5"));
        assert!(tally.lock().is_empty());
    }
}
