//! Sets of pages of a file.

use eke_model::units::PageSize;
use serde::{Deserialize, Serialize};

/// The page size of everything that is learned, stored, chosen and read: 4 KiB on every machine, so that another kernel can use the store. arm64 has
/// kernels with pages of 4, 16 and 64 KiB. Counts in the kernel's own pages enter as [`MachineSpan`].
pub const PAGE_BYTES: u64 = 4096;

/// A non-empty run of machine pages, as the kernel reports it; see [`Span`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineSpan {
    /// The first page: file offset divided by the machine's page size.
    pub first: u64,
    /// The page after the last.
    pub end: u64,
}

impl MachineSpan {
    /// The pages from `first` up to and excluding `end`; `None` if empty.
    pub fn new(first: u64, end: u64) -> Option<Self> {
        (first < end).then_some(Self { first, end })
    }

    /// Converts to pages of 4 KiB.
    pub fn in_4k(self, page: PageSize) -> Span {
        let each = page.bytes() / PAGE_BYTES;
        let end = self.end.saturating_mul(each);
        Span { first: self.first.saturating_mul(each).min(end.saturating_sub(1)), end }
    }
}

/// A non-empty run of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The first page: file offset divided by [`PAGE_BYTES`].
    pub first: u64,
    /// The page after the last.
    pub end: u64,
}

impl Span {
    /// The pages from `first` up to and excluding `end`; `None` if empty.
    pub fn new(first: u64, end: u64) -> Option<Self> {
        (first < end).then_some(Self { first, end })
    }

    /// Number of pages.
    pub fn pages(self) -> u64 {
        self.end - self.first
    }

    /// Number of bytes.
    pub fn bytes(self) -> u64 {
        self.pages() * PAGE_BYTES
    }
}

/// A set of pages, as sorted spans with gaps between them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pages(Vec<Span>);

impl Pages {
    /// The spans in order, with at least one page between any two.
    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of pages.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|span| span.pages()).sum()
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.count() * PAGE_BYTES
    }

    /// Whether the set has this page.
    pub fn has(&self, page: u64) -> bool {
        let after = self.0.partition_point(|span| span.first <= page);
        after > 0 && page < self.0[after - 1].end
    }

    /// Adds a span.
    pub fn insert(&mut self, span: Span) {
        let begin = self.0.partition_point(|have| have.end < span.first);
        let end = self.0.partition_point(|have| have.first <= span.end);
        let met = &self.0[begin..end];
        let first = met.first().map_or(span.first, |have| have.first.min(span.first));
        let last = met.last().map_or(span.end, |have| have.end.max(span.end));
        self.0.splice(begin..end, [Span { first, end: last }]);
    }

    /// Pages in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.0.iter().chain(&other.0).copied().collect()
    }

    /// Pages in this set and not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.0.iter().flat_map(|span| gaps(*span, &other.0)).collect()
    }

    /// Pages in both sets.
    #[must_use]
    pub fn both(&self, other: &Self) -> Self {
        self.without(&self.without(other))
    }
}

/// The parts of `span` outside of `taken`.
fn gaps(span: Span, taken: &[Span]) -> Vec<Span> {
    let begin = taken.partition_point(|have| have.end <= span.first);
    let mut left = Vec::new();
    let mut from = span.first;
    for have in taken[begin..].iter().take_while(|have| have.first < span.end) {
        left.extend(Span::new(from, have.first));
        from = have.end;
    }
    left.extend(Span::new(from, span.end));
    left
}

impl FromIterator<Span> for Pages {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut spans: Vec<Span> = spans.into_iter().collect();
        spans.sort_unstable();
        let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut().filter(|last| span.first <= last.end) {
                Some(last) => last.end = last.end.max(span.end),
                None => merged.push(span),
            }
        }
        Self(merged)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn some() -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::vec((0u64..60, 1u64..12), 0..12)
    }

    fn pages(spans: &[(u64, u64)]) -> Pages {
        spans.iter().filter_map(|(first, count)| Span::new(*first, first + count)).collect()
    }

    fn plain(pages: &Pages) -> BTreeSet<u64> {
        pages.spans().iter().flat_map(|span| span.first..span.end).collect()
    }

    #[test]
    fn the_machines_pages_are_so_many_of_4_kib() {
        for (kib, span) in [(4, (3, 5)), (16, (12, 20)), (64, (48, 80))] {
            let page = PageSize::new(kib << 10).unwrap();
            let in_4k = MachineSpan { first: 3, end: 5 }.in_4k(page);
            assert_eq!((in_4k.first, in_4k.end), span);
            let last = MachineSpan { first: u64::MAX - 1, end: u64::MAX }.in_4k(page);
            assert!(last.first < last.end);
        }
        assert_eq!(MachineSpan::new(2, 2), None);
    }

    proptest! {
        #[test]
        fn it_is_a_set(a in some(), b in some(), page in 0u64..80) {
            let (x, y) = (pages(&a), pages(&b));
            let (px, py) = (plain(&x), plain(&y));
            let mut inserted = Pages::default();
            a.iter().filter_map(|(first, count)| Span::new(*first, first + count)).for_each(|span| inserted.insert(span));
            prop_assert_eq!(&inserted, &x);
            prop_assert!(x.spans().windows(2).all(|pair| pair[0].end < pair[1].first));
            prop_assert_eq!(x.count(), px.len() as u64);
            prop_assert_eq!(x.has(page), px.contains(&page));
            prop_assert_eq!(plain(&x.union(&y)), px.union(&py).copied().collect::<BTreeSet<_>>());
            prop_assert_eq!(plain(&x.without(&y)), px.difference(&py).copied().collect::<BTreeSet<_>>());
            prop_assert_eq!(plain(&x.both(&y)), px.intersection(&py).copied().collect::<BTreeSet<_>>());
        }
    }
}
