//! Segments in the order in which they were written, each in a slot of the file. The oldest makes room for the next. Pure.

use std::collections::VecDeque;

/// The ring. Segments have consecutive numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ring {
    /// The slots, the oldest segment's first.
    slots: VecDeque<u32>,
    /// The number that the next segment gets.
    next: u64,
    /// Slots that were ever used.
    used: u32,
    /// The most slots.
    most: u32,
}

/// Where the next segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advance {
    pub slot: u32,
    /// The segment that was there.
    pub recycled: Option<u64>,
}

impl Ring {
    /// An empty one. Its first segment gets the number `next`.
    pub fn new(next: u64, most: u32) -> Self {
        Self { slots: VecDeque::new(), next, used: 0, most }
    }

    /// One with the segments of an earlier mount. `None`: they do not fit, or are none.
    pub fn restored(slots: Vec<u32>, next: u64, most: u32) -> Option<Self> {
        let used = u32::try_from(slots.len()).ok().filter(|&used| used <= most)?;
        let mut seen = vec![false; slots.len()];
        for &slot in &slots {
            let seen = seen.get_mut(slot as usize)?;
            if std::mem::replace(seen, true) {
                return None;
            }
        }
        (next >= slots.len() as u64).then_some(Self { slots: slots.into(), next, used, most })
    }

    /// The number of the next segment.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The number of segments.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number of the oldest segment.
    pub fn oldest(&self) -> u64 {
        self.next - self.slots.len() as u64
    }

    /// True if the next segment takes the oldest one's place in any case.
    pub fn is_full(&self) -> bool {
        self.used >= self.most
    }

    /// The slot of a segment.
    pub fn slot(&self, number: u64) -> Option<u32> {
        self.slots.get(usize::try_from(number.checked_sub(self.oldest())?).ok()?).copied()
    }

    /// All slots, the oldest segment's first.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.slots.iter().copied()
    }

    /// Places the next segment: in a new slot, if there is one and the file may grow, otherwise in the oldest one's. `None`: there is
    /// neither.
    pub fn advance(&mut self, may_grow: bool) -> Option<Advance> {
        let oldest = self.oldest();
        let advance = if may_grow && !self.is_full() && self.slots.try_reserve(1).is_ok() {
            self.used += 1;
            Advance { slot: self.used - 1, recycled: None }
        } else {
            Advance { slot: self.slots.pop_front()?, recycled: Some(oldest) }
        };
        self.slots.push_back(advance.slot);
        self.next += 1;
        Some(advance)
    }

    /// Its memory, in bytes.
    pub fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_oldest_segment_makes_room() {
        let mut ring = Ring::new(7, 3);
        assert_eq!(ring.advance(false), None);
        let places: Vec<_> = (0..5).map(|_| ring.advance(true).unwrap()).collect();
        let of = |slot, recycled| Advance { slot, recycled };
        assert_eq!(places, [of(0, None), of(1, None), of(2, None), of(0, Some(7)), of(1, Some(8))]);
        assert_eq!((ring.oldest(), ring.next(), ring.slot(9), ring.slot(11)), (9, 12, Some(2), Some(1)));
        assert_eq!((ring.slot(8), ring.slot(12)), (None, None));
    }

    #[test]
    fn a_foreign_ring_is_refused() {
        assert!(Ring::restored(vec![2, 0, 1], 9, 3).is_some());
        for (slots, next, most) in
            [(vec![0, 0], 9, 3), (vec![0, 2], 9, 3), (vec![0, 1], 9, 1), (vec![0], 0, 3)]
        {
            assert_eq!(Ring::restored(slots.clone(), next, most), None, "{slots:?}");
        }
    }

    proptest! {
        #[test]
        fn each_segment_has_a_slot_of_its_own(most in 1..9_u32, grows in prop::collection::vec(any::<bool>(), 0..60)) {
            let mut ring = Ring::new(0, most);
            for grow in grows {
                let before = ring.clone();
                match ring.advance(grow) {
                    None => prop_assert!(!grow && before.len() == 0),
                    Some(advance) => {
                        prop_assert_eq!(ring.slot(before.next()), Some(advance.slot));
                        prop_assert_eq!(advance.recycled.is_some(), ring.len() == before.len());
                        prop_assert_eq!(advance.recycled.map(|number| before.slot(number)), advance.recycled.map(|_| Some(advance.slot)));
                    }
                }
                let slots: Vec<u32> = ring.slots().collect();
                prop_assert!(ring.len() <= most as usize);
                prop_assert_eq!(Ring::restored(slots, ring.next(), most), Some(ring.clone()));
            }
        }
    }
}
