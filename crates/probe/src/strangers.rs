//! Connections whose clients have not shown the secret yet.
//!
//! A client takes a place at the server when it has shown the secret; until then it is a stranger. There are [`MOST`] of them at a time. One
//! more pushes out another one: the oldest from the address that has the most. A crowd from one address therefore pushes out only its own
//! connections, and a client from another address finds room. Addresses are validated (RFC 9000 §8.1.2) before a connection comes here.
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Strangers at a time.
const MOST: usize = 64;

/// All strangers, the oldest first.
#[derive(Default)]
pub(crate) struct Strangers(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    entries: Vec<Entry>,
}

struct Entry {
    number: u64,
    from: Network,
    leave: Arc<Notify>,
}

/// What one sender surely has: an address of IPv4, 64 bits of IPv6.
type Network = u128;

/// A connection among the strangers, until this is dropped.
pub(crate) struct Stranger {
    all: Arc<Strangers>,
    number: u64,
    leave: Arc<Notify>,
}

impl Strangers {
    /// Takes in a connection from this address.
    pub(crate) fn enter(self: &Arc<Strangers>, from: IpAddr) -> Stranger {
        let mut state = self.lock();
        let (number, leave) = (state.next, Arc::new(Notify::new()));
        state.next += 1;
        state.entries.push(Entry { number, from: network(from), leave: Arc::clone(&leave) });
        if state.entries.len() > MOST {
            state.push_out();
        }
        drop(state);
        Stranger { all: Arc::clone(self), number, leave }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Asks the oldest connection of the most crowded network to leave.
    fn push_out(&mut self) {
        let mut counts: HashMap<Network, usize> = HashMap::new();
        self.entries.iter().for_each(|entry| *counts.entry(entry.from).or_default() += 1);
        let most = counts.values().copied().max().unwrap_or_default();
        if let Some(oldest) = self.entries.iter().position(|entry| counts[&entry.from] == most) {
            self.entries.remove(oldest).leave.notify_one();
        }
    }
}

impl Stranger {
    /// Waits until another connection needs the room.
    pub(crate) async fn pushed_out(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.lock().entries.retain(|entry| entry.number != self.number);
    }
}

fn network(address: IpAddr) -> Network {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address) >> 64 << 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Duration, timeout};

    async fn is_pushed_out(stranger: &Stranger) -> bool {
        timeout(Duration::ZERO, stranger.pushed_out()).await.is_ok()
    }

    #[test]
    fn a_crowd_pushes_out_its_own_and_nobody_else() {
        crate::block_on(async {
            let strangers = Arc::new(Strangers::default());
            let owner = strangers.enter("192.0.2.1".parse().expect("an address"));
            // One sender of IPv6 has many addresses.
            let crowd: Vec<Stranger> = (0..1000_u32)
                .map(|n| strangers.enter(format!("2001:db8::{n:x}").parse().expect("an address")))
                .collect();
            assert!(!is_pushed_out(&owner).await);
            let (old, new) = crowd.split_at(1000 - (MOST - 1));
            assert!(is_pushed_out(&old[0]).await && is_pushed_out(&old[old.len() - 1]).await);
            assert!(!is_pushed_out(&new[0]).await && !is_pushed_out(&new[new.len() - 1]).await);
            assert_eq!(strangers.lock().entries.len(), MOST);
            drop(crowd);
            assert_eq!(strangers.lock().entries.len(), 1);
        })
        .expect("a runtime");
    }
}
