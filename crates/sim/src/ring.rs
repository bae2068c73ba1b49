//! A FIFO in a ring whose size is a power of two, for values that are entered and left once per packet: a push and a pop take a few
//! instructions each, where `VecDeque` takes some thirty.

/// The values, the oldest first.
pub(crate) struct Ring<T> {
    /// The places; those without a value have some older one. Their number is a power of two, or zero before the first value.
    places: Vec<T>,
    first: usize,
    len: usize,
}

/// Places at first.
const FEW: usize = 4;

impl<T: Copy + Default> Ring<T> {
    /// An empty one without memory.
    pub(crate) const fn new() -> Ring<T> {
        Ring { places: Vec::new(), first: 0, len: 0 }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of values.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Exchanges two values, which are this many places behind the oldest one.
    pub(crate) fn swap(&mut self, one: usize, other: usize) {
        let [one, other] = [one, other].map(|n| (self.first + n) & (self.places.len() - 1));
        self.places.swap(one, other);
    }

    /// The value that is `n` places behind the oldest one.
    #[inline]
    pub(crate) fn get(&self, n: usize) -> Option<&T> {
        if n < self.len { self.places.get((self.first + n) & (self.places.len() - 1)) } else { None }
    }

    /// Adds the newest value.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        if self.len == self.places.len() {
            self.grow();
        }
        let place = (self.first + self.len) & (self.places.len() - 1);
        self.places[place] = value;
        self.len += 1;
    }

    /// Removes the oldest value, if there is one.
    #[inline]
    pub(crate) fn drop_first(&mut self) {
        if self.len > 0 {
            self.first += 1;
            self.len -= 1;
        }
    }

    /// Doubles the places.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let count = (2 * self.len).max(FEW);
        let mut places = Vec::with_capacity(count);
        places.extend(self.iter());
        places.resize(count, T::default());
        (self.places, self.first) = (places, 0);
    }

    /// All values, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).filter_map(|n| self.get(n))
    }

    /// Memory, bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    proptest::proptest! {
        #[test]
        fn it_is_a_deque(pushes in proptest::collection::vec(proptest::bool::weighted(0.6), 0..300)) {
            let (mut ring, mut model) = (Ring::new(), VecDeque::new());
            for (n, push) in pushes.into_iter().enumerate() {
                if push {
                    ring.push(n);
                    model.push_back(n);
                } else {
                    ring.drop_first();
                    model.pop_front();
                }
                if n % 5 == 0 && model.len() > 1 {
                    ring.swap(0, model.len() - 1);
                    model.swap(0, model.len() - 1);
                }
                assert!(ring.iter().eq(model.iter()));
                assert_eq!((ring.get(0), ring.get(2), ring.is_empty()), (model.front(), model.get(2), model.is_empty()));
                assert_eq!(ring.len(), model.len());
            }
        }
    }
}
