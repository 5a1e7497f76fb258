//! Orders and cuts the reads of files.

use crate::read::{Extent, Piece};
use eke_prefetch_model::pages::{PAGE_BYTES, Pages, Span};

/// A request with its extents.
#[derive(Debug, Clone, Copy)]
pub struct LocatedRequest<'a> {
    /// The caller's index of the request.
    pub request: usize,
    /// The file system's number: positions are comparable within one.
    pub file_system: u64,
    /// The requested pages.
    pub pages: &'a Pages,
    /// The file's extents, in file order; `None` if unknown.
    pub extents: Option<&'a [Extent]>,
}

/// Pieces in the order of requests, each request from front to back, none longer than `piece_bytes`; holes up to `hole_bytes` are read too.
pub fn by_use<'a>(
    requests: impl IntoIterator<Item = (usize, &'a Pages)>,
    piece_bytes: u64,
    hole_bytes: u64,
) -> Vec<Piece> {
    let runs = requests.into_iter().flat_map(|(request, pages)| {
        pages.spans().iter().map(move |span| Run {
            file_system: 0,
            position: Some(span.first * PAGE_BYTES),
            request,
            span: *span,
        })
    });
    cut(&join(runs.collect(), hole_bytes), piece_bytes)
}

/// Pieces of all requests in disk order, none longer than `piece_bytes`. Pages near in the file and on the disk are one read, with holes up to
/// `hole_bytes`. Pages without a known position come last, in the order of requests.
pub fn by_position(requests: &[LocatedRequest<'_>], piece_bytes: u64, hole_bytes: u64) -> Vec<Piece> {
    let mut runs: Vec<Run> = requests.iter().flat_map(positioned_runs).collect();
    // A stable sort: pages without a position stay in order.
    runs.sort_by_key(|run| {
        (run.position.is_none(), run.position.map(|position| (run.file_system, position)))
    });
    cut(&join(runs, hole_bytes), piece_bytes)
}

/// Pages that are contiguous in a file and on the disk.
#[derive(Debug, Clone, Copy)]
struct Run {
    file_system: u64,
    position: Option<u64>,
    request: usize,
    span: Span,
}

impl Run {
    /// The hole in bytes between this run and `next`, if the disk has the same hole.
    fn hole_before(&self, next: &Self) -> Option<u64> {
        if self.request != next.request {
            return None;
        }
        let hole = next.span.first.checked_sub(self.span.end)?.checked_mul(PAGE_BYTES)?;
        match (self.position, next.position) {
            (Some(here), Some(there)) => {
                (here.checked_add(self.span.bytes())?.checked_add(hole)? == there).then_some(hole)
            }
            // Unknown pages between them may have a position, and are read there.
            (None, None) => (hole == 0).then_some(hole),
            _ => None,
        }
    }
}

/// The runs of a request's pages: each span cut where extents end.
fn positioned_runs(placed: &LocatedRequest<'_>) -> Vec<Run> {
    let run =
        |span, position| Run { file_system: placed.file_system, position, request: placed.request, span };
    let Some(extents) = placed.extents else {
        return placed.pages.spans().iter().map(|span| run(*span, None)).collect();
    };
    let mut runs = Vec::new();
    for span in placed.pages.spans() {
        let mut from = span.first;
        let begin = extents.partition_point(|extent| end_page(extent) <= span.first);
        for extent in &extents[begin..] {
            // Extents of odd lengths (inline, compressed) may share a page: the first takes it.
            let first = (extent.logical / PAGE_BYTES).max(from);
            let end = end_page(extent).min(span.end);
            if first >= span.end {
                break;
            }
            runs.extend(Span::new(from, first).map(|gap| run(gap, None)));
            let position =
                extent.physical.saturating_add((first * PAGE_BYTES).saturating_sub(extent.logical));
            runs.extend(Span::new(first, end).map(|part| run(part, Some(position))));
            from = from.max(end).max(first);
        }
        runs.extend(Span::new(from, span.end).map(|rest| run(rest, None)));
    }
    runs
}

fn end_page(extent: &Extent) -> u64 {
    extent.logical.saturating_add(extent.bytes).div_ceil(PAGE_BYTES)
}

/// Joins adjacent runs whose hole is faster to read than to skip.
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
