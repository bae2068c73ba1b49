//! CAKE's hosts: how many bulk flows each has at the moment, so that hosts share before flows do (Linux `struct cake_host`).
use crate::queue::parts::set_associative::SetAssociative;
use alloc::vec::Vec;

/// Hosts on one side of the link: senders, or receivers.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    table: SetAssociative,
    /// Bulk flows, by host.
    bulk: Vec<u16>,
    /// By number of bulk flows: how many hosts have that number.
    having: Vec<u16>,
    /// The smallest number that some host has; zero when no host has any.
    least: u16,
}

impl Hosts {
    /// Room for `sets` × 8 hosts and as many flows.
    pub(super) fn new(sets: usize) -> Hosts {
        let table = SetAssociative::new(sets);
        let places = table.places();
        Hosts { table, bulk: alloc::vec![0; places], having: alloc::vec![0; places + 1], least: 0 }
    }

    /// The place of the host with this hash. In a full set it is shared with another host.
    pub(super) fn place(&mut self, hash: u32) -> u16 {
        let bulk = &self.bulk;
        self.table.claim(hash, |place| bulk[place] == 0).place() as u16
    }

    /// Bulk flows of a host.
    #[inline]
    pub(super) fn bulk(&self, host: u16) -> u16 {
        self.bulk[usize::from(host)]
    }

    /// Bulk flows of the host with the fewest, among hosts that have any.
    #[inline]
    pub(super) fn min(&self) -> u16 {
        self.least
    }

    /// One of a host's flows has become bulk.
    pub(super) fn add(&mut self, host: u16) {
        let count = &mut self.bulk[usize::from(host)];
        let before = *count;
        *count += 1;
        self.having[usize::from(before) + 1] += 1;
        if before == 0 {
            self.least = 1;
        } else {
            self.left(before);
        }
    }

    /// One of a host's flows is no longer bulk.
    pub(super) fn remove(&mut self, host: u16) {
        let count = &mut self.bulk[usize::from(host)];
        let before = *count;
        debug_assert!(before > 0, "every flow that leaves has come");
        *count = before.saturating_sub(1);
        if before > 1 {
            self.having[usize::from(before) - 1] += 1;
            self.least = self.least.min(before - 1);
        }
        self.left(before);
    }

    /// One host fewer has `count` bulk flows.
    fn left(&mut self, count: u16) {
        let having = &mut self.having;
        having[usize::from(count)] = having[usize::from(count)].saturating_sub(1);
        if count == self.least && having[usize::from(count)] == 0 {
            let next = having.iter().skip(usize::from(count)).position(|&hosts| hosts > 0);
            self.least = next.map_or(0, |more| count + more as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_least_is_what_a_search_finds(ops in proptest::collection::vec((0usize..5, proptest::bool::ANY), 0..300)) {
            let mut hosts = Hosts::new(1);
            let mut model = [0u16; 5];
            for (host, more) in ops {
                if more && model.iter().sum::<u16>() < 8 {
                    hosts.add(host as u16);
                    model[host] += 1;
                } else if model[host] > 0 {
                    hosts.remove(host as u16);
                    model[host] -= 1;
                }
                let least = model.iter().copied().filter(|&count| count > 0).min().unwrap_or(0);
                proptest::prop_assert_eq!((hosts.min(), hosts.bulk(host as u16)), (least, model[host]));
            }
        }
    }

    #[test]
    fn a_host_keeps_its_place_while_it_has_bulk_flows() {
        let mut hosts = Hosts::new(128);
        let first = hosts.place(77);
        hosts.add(first);
        assert_ne!(hosts.place(77 + 1024), first);
        assert_eq!(hosts.place(77), first);
    }
}
