//! Fills holes between reads of a file, where reading a hole is faster than another request.

use std::collections::BTreeMap;

use super::choice::PlannedRead;
use super::unit::Holes;
use crate::pages::{Pages, Span};

/// A hole and the read before it.
#[derive(Debug)]
struct Hole {
    read: usize,
    pages: Pages,
}

/// Fills holes, the shortest first, with the rest of the budget; used pages come before holes. `numbers` are the reads' files as indexes into
/// `holes`.
pub(super) fn fill(reads: &mut [PlannedRead], numbers: &[usize], holes: &[Holes], mut left_bytes: u64) {
    let mut found = find(reads, numbers, holes);
    // A stable sort keeps holes of one length in the order of files and pages.
    found.sort_by_key(|hole| hole.pages.count());
    for Hole { read, pages } in found {
        let Some(rest) = left_bytes.checked_sub(pages.bytes()) else { return };
        left_bytes = rest;
        reads[read].bytes += pages.bytes();
        reads[read].pages = reads[read].pages.union(&pages);
    }
}

fn find(reads: &[PlannedRead], numbers: &[usize], holes: &[Holes]) -> Vec<Hole> {
    let mut by_file: BTreeMap<usize, Vec<(Span, usize)>> = BTreeMap::new();
    for (at, (read, number)) in reads.iter().zip(numbers).enumerate() {
        let spans = read.pages.spans().iter().map(|span| (*span, at));
        by_file.entry(*number).or_default().extend(spans);
    }
    let mut found = Vec::new();
    for (number, mut spans) in by_file {
        let Holes { longest, resident } = &holes[number];
        spans.sort_unstable();
        found.extend(spans.windows(2).filter_map(|pair| {
            let hole = Span::new(pair[0].0.end, pair[1].0.first).filter(|hole| hole.pages() <= *longest)?;
            let pages = Pages::from_iter([hole]).without(resident);
            (!pages.is_empty()).then_some(Hole { read: pair[0].1, pages })
        }));
    }
    found
}
