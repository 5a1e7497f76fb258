use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const PIECE: u64 = 1 << 20;

fn pages(spans: &[(u64, u64)]) -> Pages {
    spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect()
}

fn extent(logical_page: u64, physical_page: u64, count: u64) -> Extent {
    Extent {
        logical: logical_page * PAGE_BYTES,
        physical: physical_page * PAGE_BYTES,
        bytes: count * PAGE_BYTES,
    }
}

/// Pieces as (request, first page, pages).
fn short(pieces: &[Piece]) -> Vec<(usize, u64, u64)> {
    pieces.iter().map(|p| (p.request, p.offset / PAGE_BYTES, p.bytes / PAGE_BYTES)).collect()
}

#[test]
fn in_order_of_use_nothing_is_sorted_and_only_near_parts_of_a_file_are_joined() {
    let (one, two) = (pages(&[(10, 12), (13, 14), (20, 21)]), pages(&[(0, 300)]));
    let requests = [(1, &one), (0, &two)];
    assert_eq!(
        short(&by_use(requests, PIECE, 0)),
        [(1, 10, 2), (1, 13, 1), (1, 20, 1), (0, 0, 256), (0, 256, 44)]
    );
    assert_eq!(short(&by_use([(1, &one)], PIECE, PAGE_BYTES)), [(1, 10, 4), (1, 20, 1)]);
}

#[test]
fn fragments_are_read_in_the_order_of_their_places() {
    let all = pages(&[(0, 30)]);
    let scattered = [extent(0, 500, 10), extent(10, 100, 10), extent(20, 110, 10)];
    let other = [extent(0, 105_000, 4)];
    let few = pages(&[(1, 3)]);
    let requests = [
        LocatedRequest { request: 0, file_system: 1, pages: &few, extents: Some(&other) },
        LocatedRequest { request: 1, file_system: 1, pages: &all, extents: Some(&scattered) },
    ];
    assert_eq!(short(&by_position(&requests, PIECE, 0)), [(1, 10, 20), (1, 0, 10), (0, 1, 2)]);
}

#[test]
fn holes_are_read_only_where_the_disk_passes_over_them() {
    let some = pages(&[(0, 2), (4, 6), (8, 10)]);
    // Pages 0 to 6 are contiguous; page 8, near in the file, is far away on the disk.
    let extents = [extent(0, 50, 7), extent(7, 9000, 10)];
    let requests = [LocatedRequest { request: 0, file_system: 1, pages: &some, extents: Some(&extents) }];
    assert_eq!(short(&by_position(&requests, PIECE, 2 * PAGE_BYTES)), [(0, 0, 6), (0, 8, 2)]);
    assert_eq!(short(&by_position(&requests, PIECE, PAGE_BYTES)), [(0, 0, 2), (0, 4, 2), (0, 8, 2)]);
}

#[test]
fn file_systems_of_one_disk_are_read_one_by_one_and_unknown_positions_last() {
    let some = pages(&[(0, 1)]);
    let (near, far) = ([extent(0, 5, 1)], [extent(0, 900, 1)]);
    let placed =
        |request, file_system, extents| LocatedRequest { request, file_system, pages: &some, extents };
    let requests = [
        placed(0, 2, Some(&near[..])),
        placed(1, 1, None),
        placed(2, 1, Some(&far[..])),
        placed(3, 1, Some(&[])),
    ];
    assert_eq!(short(&by_position(&requests, PIECE, 0)), [(2, 0, 1), (0, 0, 1), (1, 0, 1), (3, 0, 1)]);
}

fn some_pages() -> impl Strategy<Value = Pages> {
    proptest::collection::vec((0u64..3000, 1u64..400), 1..8)
        .prop_map(|spans| spans.into_iter().filter_map(|(first, n)| Span::new(first, first + n)).collect())
}

/// Extents of odd offsets and lengths, some of which share a page, with holes.
fn some_extents() -> impl Strategy<Value = Option<Vec<Extent>>> {
    let all =
        proptest::collection::vec((0u64..200_000, 1u64..2_000_000, 0u64..1 << 40), 0..12).prop_map(|parts| {
            let mut at = 0;
            let each = parts.into_iter().map(|(gap, bytes, physical)| {
                let logical = at + gap;
                at = logical + bytes;
                Extent { logical, physical, bytes }
            });
            each.collect()
        });
    proptest::option::of(all)
}

fn plain<'a>(pieces: impl IntoIterator<Item = &'a Piece>) -> BTreeSet<(usize, u64)> {
    let pages = |p: &Piece| {
        (p.offset / PAGE_BYTES..(p.offset + p.bytes) / PAGE_BYTES)
            .map(|page| (p.request, page))
            .collect::<Vec<_>>()
    };
    pieces.into_iter().flat_map(pages).collect()
}

proptest! {
    #[test]
    fn every_page_is_read_once_and_no_piece_is_too_long(
        files in proptest::collection::vec((some_pages(), some_extents()), 1..5),
        piece_pages in 1u64..300,
        hole_pages in 0u64..40,
    ) {
        let placed: Vec<LocatedRequest> = files.iter().enumerate().map(|(request, (pages, extents))| LocatedRequest {
            request, file_system: request as u64 % 2, pages, extents: extents.as_deref(),
        }).collect();
        let requested: BTreeSet<(usize, u64)> = files.iter().enumerate().flat_map(|(request, (pages, _))| {
            pages.spans().iter().flat_map(|s| s.first..s.end).map(move |page| (request, page)).collect::<Vec<_>>()
        }).collect();
        let uses = files.iter().enumerate().map(|(request, (pages, _))| (request, pages));
        for holes in [0, hole_pages] {
            for pieces in [
                by_position(&placed, piece_pages * PAGE_BYTES, holes * PAGE_BYTES),
                by_use(uses.clone(), piece_pages * PAGE_BYTES, holes * PAGE_BYTES),
            ] {
                prop_assert!(pieces.iter().all(|p| p.bytes > 0 && p.bytes <= piece_pages * PAGE_BYTES));
                let count: u64 = pieces.iter().map(|p| p.bytes / PAGE_BYTES).sum();
                let read = plain(&pieces);
                prop_assert_eq!(count, read.len() as u64, "no page twice");
                prop_assert!(read.is_superset(&requested));
                if holes == 0 {
                    prop_assert_eq!(read.len(), requested.len(), "without holes it is a permutation");
                }
            }
        }
    }

    #[test]
    fn places_never_go_back_within_a_file_system(files in proptest::collection::vec((some_pages(), some_extents()), 1..5)) {
        let placed: Vec<LocatedRequest> = files.iter().enumerate().map(|(request, (pages, extents))| LocatedRequest {
            request, file_system: 0, pages, extents: extents.as_deref(),
        }).collect();
        let position = |piece: &Piece| {
            let extents = placed[piece.request].extents?;
            let page = piece.offset / PAGE_BYTES;
            let extent = extents.iter().find(|e| end_page(e) > page)?;
            (extent.logical / PAGE_BYTES <= page).then(|| extent.physical + piece.offset.saturating_sub(extent.logical))
        };
        let places: Vec<u64> = by_position(&placed, PIECE, 0).iter().filter_map(position).collect();
        prop_assert!(places.is_sorted(), "{places:?}");
    }
}
