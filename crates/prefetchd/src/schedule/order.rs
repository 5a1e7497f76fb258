//! In what order and pieces files are read.

use crate::read::{Extent, Piece};
use eke_prefetch_model::pages::{PAGE_BYTES, Pages, Span};

/// Pages of a request, and where they lie.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// Which request, the caller's number of it.
    pub request: usize,
    /// On which file system: places are compared within one.
    pub file_system: u64,
    /// What is wanted.
    pub pages: &'a Pages,
    /// Where the file lies, in the order of the file; `None` where that is not known.
    pub extents: Option<&'a [Extent]>,
}

/// The pieces of requests in the order given, of each from front to back, none longer than `piece_bytes`; holes up to `hole_bytes` are
/// read too.
pub fn by_use<'a>(
    requests: impl IntoIterator<Item = (usize, &'a Pages)>,
    piece_bytes: u64,
    hole_bytes: u64,
) -> Vec<Piece> {
    let runs = requests.into_iter().flat_map(|(request, pages)| {
        pages.spans().iter().map(move |span| Run {
            file_system: 0,
            place: Some(span.first * PAGE_BYTES),
            request,
            span: *span,
        })
    });
    cut(&join(runs.collect(), hole_bytes), piece_bytes)
}

/// The pieces of all requests in the order of their places on the disk, none longer than `piece_bytes`. What is near in a file and on
/// the disk is read at once, with holes up to `hole_bytes`. What has no place, or none that is known, comes last, in the order given.
pub fn by_place(requests: &[Placed<'_>], piece_bytes: u64, hole_bytes: u64) -> Vec<Piece> {
    let mut runs: Vec<Run> = requests.iter().flat_map(placed_runs).collect();
    // A stable sort: what has no place stays in order.
    runs.sort_by_key(|run| (run.place.is_none(), run.place.map(|place| (run.file_system, place))));
    cut(&join(runs, hole_bytes), piece_bytes)
}

/// Pages that lie in a row in a file and on the disk.
#[derive(Debug, Clone, Copy)]
struct Run {
    file_system: u64,
    place: Option<u64>,
    request: usize,
    span: Span,
}

impl Run {
    /// The bytes between the end of this and the begin of `next`, if it goes on in the file as on the disk.
    fn hole_before(&self, next: &Self) -> Option<u64> {
        if self.request != next.request {
            return None;
        }
        let hole = next.span.first.checked_sub(self.span.end)?.checked_mul(PAGE_BYTES)?;
        match (self.place, next.place) {
            (Some(here), Some(there)) => {
                (here.checked_add(self.span.bytes())?.checked_add(hole)? == there).then_some(hole)
            }
            // What lies between may have a place, and be read there.
            (None, None) => (hole == 0).then_some(hole),
            _ => None,
        }
    }
}

/// The runs of a request's pages: each span cut where extents end.
fn placed_runs(placed: &Placed<'_>) -> Vec<Run> {
    let run = |span, place| Run { file_system: placed.file_system, place, request: placed.request, span };
    let Some(extents) = placed.extents else {
        return placed.pages.spans().iter().map(|span| run(*span, None)).collect();
    };
    let mut runs = Vec::new();
    for span in placed.pages.spans() {
        let mut from = span.first;
        let begin = extents.partition_point(|extent| end_page(extent) <= span.first);
        for extent in &extents[begin..] {
            // Extents of odd lengths (inline, compressed) may share a page: the first has it.
            let first = (extent.logical / PAGE_BYTES).max(from);
            let end = end_page(extent).min(span.end);
            if first >= span.end {
                break;
            }
            runs.extend(Span::new(from, first).map(|gap| run(gap, None)));
            let place = extent.physical.saturating_add((first * PAGE_BYTES).saturating_sub(extent.logical));
            runs.extend(Span::new(first, end).map(|part| run(part, Some(place))));
            from = from.max(end).max(first);
        }
        runs.extend(Span::new(from, span.end).map(|rest| run(rest, None)));
    }
    runs
}

fn end_page(extent: &Extent) -> u64 {
    extent.logical.saturating_add(extent.bytes).div_ceil(PAGE_BYTES)
}

/// Makes one of runs that follow each other with a hole that is read sooner than it is left out.
fn join(runs: Vec<Run>, hole_bytes: u64) -> Vec<Run> {
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut().filter(|last| last.hole_before(&run).is_some_and(|hole| hole <= hole_bytes)) {
            Some(last) => last.span.end = run.span.end,
            None => joined.push(run),
        }
    }
    joined
}

fn cut(runs: &[Run], piece_bytes: u64) -> Vec<Piece> {
    let most = (piece_bytes / PAGE_BYTES).max(1);
    let pieces = runs.iter().flat_map(|run| {
        let firsts = (run.span.first..run.span.end).step_by(usize::try_from(most).unwrap_or(usize::MAX));
        firsts.map(move |first| Piece {
            request: run.request,
            offset: first * PAGE_BYTES,
            bytes: (run.span.end - first).min(most) * PAGE_BYTES,
        })
    });
    pieces.collect()
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
