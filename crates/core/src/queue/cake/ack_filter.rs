//! CAKE's ACK filter: drops an acknowledgment that a later one in the same queue replaces (Linux `cake_ack_filter`).
//!
//! Cumulative acknowledgments need not all arrive. The filter drops the oldest one that is replaced, once two are, so that
//! one stays between it and the newest; the aggressive one leaves only the newest. An acknowledgment whose ECN echo differs from
//! its successor's is not dropped, nor are data.
//!
//! Deviates: Linux compares selective acknowledgments block by block and drops those that a later one covers; here nothing
//! that carries any is dropped.
use crate::{Chain, PacketId, PacketMeta, Pool};

choice! {
    /// Whether acknowledgments are filtered.
    pub enum AckFilter {
        /// No.
        Off = "off",
        /// Yes, but two are kept.
        On = "on",
        /// Yes, and one is kept.
        Aggressive = "aggressive",
    }
}

/// The acknowledgment that the last packet of a queue replaces.
pub(super) fn superseded(chain: &Chain, pool: &Pool, filter: AckFilter) -> Option<PacketId> {
    let tail = chain.back().filter(|_| chain.packets() > 1)?;
    let new = pool.meta(tail);
    if !new.role.is_ack() {
        return None;
    }
    let (mut oldest, mut before): (Option<(PacketId, bool)>, Option<PacketId>) = (None, None);
    for id in chain.iter(pool).take_while(|&id| id != tail) {
        let old = pool.meta(id);
        before = Some(id);
        if (old.hash, old.src, old.dst) != (new.hash, new.src, new.dst) {
            continue;
        }
        // The sender needs the candidate's echo unless its successor has the same.
        oldest = oldest.filter(|&(_, echo)| echo == old.role.echoes());
        if !replaces(new, old) {
            continue;
        }
        match oldest {
            Some((id, _)) => return Some(id),
            None => oldest = Some((id, old.role.echoes())),
        }
    }
    let (id, echo) = oldest.filter(|_| filter == AckFilter::Aggressive)?;
    (before == Some(id) && echo == new.role.echoes()).then_some(id)
}

/// Whether `new` acknowledges all that `old` does.
fn replaces(new: &PacketMeta, old: &PacketMeta) -> bool {
    // Modulo 2³²: ahead of means less than half the way round.
    let ahead = new.ack.wrapping_sub(old.ack);
    let not_behind = ahead < 1 << 31;
    let more = ahead > 0 || new.role.has_sack();
    old.role.is_ack() && !old.role.has_sack() && not_behind && more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role::{self, Ack, AckEcho, AckSack, Other};
    use std::vec::Vec;

    /// Which of these, as (role, number), the last one makes superfluous.
    fn dropped(packets: &[(Role, u32)], filter: AckFilter) -> Option<usize> {
        let (mut pool, mut chain) = (Pool::new(), Chain::new());
        let ids: Vec<PacketId> = packets
            .iter()
            .map(|&(role, ack)| {
                let id = pool.insert(PacketMeta { role, ack, len: 40, ..PacketMeta::default() });
                chain.push_back(id, &mut pool);
                id
            })
            .collect();
        let found = superseded(&chain, &pool, filter)?;
        ids.iter().position(|&id| id == found)
    }

    #[test]
    fn the_oldest_of_two_that_are_replaced_goes() {
        let on = |packets: &[_]| dropped(packets, AckFilter::On);
        assert_eq!(on(&[(Ack, 1)]), None);
        assert_eq!(on(&[(Ack, 1), (Ack, 2)]), None);
        assert_eq!(on(&[(Ack, 1), (Ack, 2), (Ack, 3)]), Some(0));
        assert_eq!(on(&[(Other, 1), (Ack, 1), (Ack, 2), (Ack, 3)]), Some(1));
        assert_eq!(on(&[(Ack, 1), (Ack, 2), (Other, 3)]), None, "data do not trigger it");
        assert_eq!(on(&[(Ack, u32::MAX - 1), (Ack, u32::MAX), (Ack, 1)]), Some(0), "numbers wrap around");
        assert_eq!(on(&[(Ack, 3), (Ack, 4), (Ack, 2)]), None, "an old one replaces nothing");
    }

    #[test]
    fn the_aggressive_one_leaves_the_newest() {
        let aggressive = |packets: &[_]| dropped(packets, AckFilter::Aggressive);
        assert_eq!(aggressive(&[(Ack, 1), (Ack, 2)]), Some(0));
        assert_eq!(aggressive(&[(Ack, 1), (Other, 0), (Ack, 2)]), None, "not next to it");
        assert_eq!(aggressive(&[(Ack, 1), (AckEcho, 2)]), None);
    }

    #[test]
    fn what_cannot_be_said_again_stays() {
        let on = |packets: &[_]| dropped(packets, AckFilter::On);
        // Duplicates count losses; selective acknowledgments name them.
        assert_eq!(on(&[(Ack, 1), (Ack, 1), (Ack, 1)]), None);
        assert_eq!(on(&[(AckSack, 1), (AckSack, 1), (AckSack, 2)]), None);
        assert_eq!(on(&[(Ack, 1), (Ack, 2), (AckSack, 2)]), Some(0));
        // The first echo of a mark, and the last packet before it.
        assert_eq!(on(&[(Ack, 1), (AckEcho, 2), (AckEcho, 3)]), None);
        assert_eq!(on(&[(Ack, 1), (AckEcho, 2), (AckEcho, 3), (AckEcho, 4)]), Some(1));
    }
}
