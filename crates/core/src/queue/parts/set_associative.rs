//! A set-associative table of tags, as in a processor's cache (Linux `sch_cake`): a hash chooses a set of eight places and
//! one of them to begin with; a tag may lie in any place of its set, so that two flows share a place only when nine or more
//! are active in one set.
//!
//! A place keeps its tag after it has become vacant, so that a flow that returns finds its state.
use alloc::vec::Vec;

/// Places in a set (Linux: `CAKE_SET_WAYS`).
pub const WAYS: usize = 8;

/// The result of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A place with this tag.
    Match(usize),
    /// The tag is in no place of the set; this place is vacant.
    Vacant(usize),
    /// The tag is in no place of the set, and the set is full: the place of the hash, which another tag uses.
    Collision(usize),
}

impl Found {
    /// The place.
    pub const fn place(self) -> usize {
        match self {
            Found::Match(place) | Found::Vacant(place) | Found::Collision(place) => place,
        }
    }
}

/// Tags by place.
#[derive(Clone, Debug)]
pub struct SetAssociative {
    tags: Vec<u32>,
}

impl SetAssociative {
    /// A table of this many sets, at least one, all tags zero.
    pub fn new(sets: usize) -> SetAssociative {
        SetAssociative { tags: alloc::vec![0; sets.max(1) * WAYS] }
    }

    /// The place that a tag's hash names, when the tag lies there.
    #[inline]
    pub fn direct(&self, tag: u32) -> Option<usize> {
        let place = self.home(tag);
        (self.tags[place] == tag).then_some(place)
    }

    /// Looks for a tag in its set, else for a vacant place, from the place that its hash names onwards; writes the tag there.
    pub fn claim(&mut self, tag: u32, is_vacant: impl Fn(usize) -> bool) -> Found {
        let home = self.home(tag);
        let (set, first) = (home - home % WAYS, home % WAYS);
        let mut places = (0..WAYS).map(|n| set + (first + n) % WAYS);
        let found = match places.clone().find(|&place| self.tags[place] == tag) {
            Some(place) => Found::Match(place),
            None => places.find(|&place| is_vacant(place)).map_or(Found::Collision(home), Found::Vacant),
        };
        self.tags[found.place()] = tag;
        found
    }

    /// Places in all.
    pub fn places(&self) -> usize {
        self.tags.len()
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag as usize % self.tags.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_tags_of_one_set_have_a_place_each_and_the_ninth_collides() {
        let mut table = SetAssociative::new(128);
        let mut taken = std::vec![false; table.places()];
        // All at home in place 13, the sixth of the second set.
        let tags = (0..9).map(|n| 13 + n * 1024);
        let found: std::vec::Vec<Found> = tags
            .map(|tag| {
                let found = table.claim(tag, |place| !taken[place]);
                taken[found.place()] = true;
                found
            })
            .collect();
        let vacant = [13, 14, 15, 8, 9, 10, 11, 12].map(Found::Vacant);
        assert_eq!(found[..8], vacant);
        assert_eq!(found[8], Found::Collision(13));
        assert_eq!(table.direct(13), None, "the ninth has taken the first one's tag");
        assert_eq!(table.direct(13 + 8 * 1024), Some(13));
        assert_eq!(table.claim(13 + 3 * 1024, |_| false), Found::Match(8));
    }

    #[test]
    fn a_tag_that_returns_finds_its_place_though_another_is_vacant_before_it() {
        let mut table = SetAssociative::new(128);
        table.claim(5, |_| true);
        assert_eq!(table.claim(5 + 1024, |place| place != 5), Found::Vacant(6));
        assert_eq!(table.claim(5 + 1024, |_| true), Found::Match(6));
    }
}
