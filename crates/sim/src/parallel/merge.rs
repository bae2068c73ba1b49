//! The packets of a window from several threads, in the order in which one thread would have sent them.
//!
//! Every batch is in the order of [`Departure::turn`], and no flow is in two of them. So the next packet is the least of the batches' first
//! ones.
use crate::side::Departure;

/// The next packet of a batch: its turn, and its index. After the last one the turn is later than any.
#[derive(Clone, Copy, Debug)]
struct Head {
    turn: u128,
    index: usize,
}

impl Head {
    #[inline(always)]
    fn of(batch: &[Departure], index: usize) -> Head {
        Head { turn: batch.get(index).map_or(u128::MAX, Departure::turn), index }
    }
}

/// The memory that a merge needs.
#[derive(Default)]
pub(super) struct Heads(Vec<Head>);

impl Heads {
    /// The packets of these batches, in order.
    pub(super) fn merge<'a>(&'a mut self, batches: &'a [Vec<Departure>]) -> impl Iterator<Item = &'a Departure> {
        self.0.clear();
        self.0.extend(batches.iter().map(|batch| Head::of(batch, 0)));
        std::iter::from_fn(move || {
            let (head, batch) = self.0.iter_mut().zip(batches).min_by_key(|(head, _)| head.turn)?;
            let next = batch.get(head.index)?;
            *head = Head::of(batch, head.index + 1);
            Some(next)
        })
    }
}
