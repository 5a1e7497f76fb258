//! Which blocks are on the list, and in which order they are read again. Pure.
//!
//! Hotter blocks come first. Among equally hot ones the order is that of the inodes, which on most file systems is about that on the disk. If
//! the list would be too long, the parts with the most blocks stay: a line costs the same for one block as for a thousand.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use eke_cache_store::{FileId, Heat};

use super::list::{HotList, HotPart};

/// The longest list in bytes.
pub const MOST_BYTES: usize = 1 << 20;

/// A stored block: its file, its number, and how long it will stay.
pub type StoredBlock = (FileId, u64, Heat);

/// A part, with its place in the order.
type Ordered = (u64, HotPart);

/// Fills `list` with the parts for these blocks, and with `pending`, parts of the last list that were not read yet.
pub fn fill(
    list: &mut HotList,
    mut blocks: Vec<StoredBlock>,
    path_of: impl Fn(FileId) -> Option<PathBuf>,
    pending: &[HotPart],
) {
    blocks.sort_unstable();
    let mut parts = parts(&blocks, path_of);
    let after = blocks.last().map_or(0, |(file, ..)| file.0).saturating_add(1);
    for (at, part) in (after..).zip(pending) {
        let merged = parts.entry((part.heat, part.path.clone())).or_insert_with(|| (at, Vec::new()));
        merged.1.extend(part.blocks.iter().cloned());
    }
    let all = parts
        .into_iter()
        .map(|((heat, path), (order, blocks))| (order, HotPart { heat, path, blocks: merged(blocks) }));
    list.parts = within_bounds(all.collect(), MOST_BYTES);
}

/// Parts by heat and path: each with its place in the order, and its ranges.
type Parts = BTreeMap<(u8, PathBuf), (u64, Vec<Range<u64>>)>;

/// The parts by heat and path.
fn parts(sorted: &[StoredBlock], path_of: impl Fn(FileId) -> Option<PathBuf>) -> Parts {
    let mut parts = Parts::new();
    for blocks in sorted.chunk_by(|one, next| one.0 == next.0) {
        let Some(file) = blocks.first().map(|block| block.0) else { continue };
        let Some(path) = path_of(file) else { continue };
        for run in blocks.chunk_by(|one, next| one.1 + 1 == next.1 && one.2 == next.2) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let part = parts.entry((heat(first.2), path.clone())).or_insert_with(|| (file.0, Vec::new()));
            part.1.push(first.1..last.1 + 1);
        }
    }
    parts
}

fn heat(heat: Heat) -> u8 {
    match heat {
        Heat::New => 0,
        Heat::Requested => 1,
        Heat::Main => 2,
        Heat::MainRequested => 3,
    }
}

/// Ascending and without overlap.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The hottest and largest parts whose lines have at most `most` bytes together, in the order of reading.
fn within_bounds(mut parts: Vec<Ordered>, most: usize) -> Vec<HotPart> {
    parts.sort_unstable_by_key(|(_, part)| (Reverse(part.heat), Reverse(part.count())));
    let mut bytes = 0;
    let mut kept: Vec<Ordered> = parts
        .into_iter()
        .take_while(|(_, part)| {
            bytes += part.line().len();
            bytes <= most
        })
        .collect();
    kept.sort_unstable_by(|(one, a), (other, b)| {
        (Reverse(a.heat), one, &a.path).cmp(&(Reverse(b.heat), other, &b.path))
    });
    kept.into_iter().map(|(_, part)| part).collect()
}

#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges with one of them")]
#[cfg(test)]
mod tests {
    use super::*;

    fn name(file: FileId) -> Option<PathBuf> {
        (file.0 < 100).then(|| format!("f{}", file.0).into())
    }

    fn filled(blocks: Vec<StoredBlock>, pending: &[HotPart]) -> Vec<String> {
        let mut list = HotList { block_size: 65_536, ..HotList::default() };
        fill(&mut list, blocks, name, pending);
        list.parts.iter().map(HotPart::line).collect()
    }

    #[test]
    fn hotter_blocks_come_first_and_neighbours_are_one_range() {
        let block = |file, block, heat| (FileId(file), block, heat);
        let blocks = vec![
            block(7, 2, Heat::Main),
            block(7, 1, Heat::Main),
            block(7, 3, Heat::MainRequested),
            block(7, 9, Heat::Main),
            block(5, 0, Heat::Main),
            block(5, 1, Heat::New),
            block(100, 0, Heat::MainRequested),
        ];
        assert_eq!(filled(blocks, &[]), ["3 3-3 f7\n", "2 0-0 f5\n", "2 1-2,9-9 f7\n", "0 1-1 f5\n"]);
    }

    #[test]
    fn what_was_not_read_again_yet_stays_on_the_list() {
        let pending = [
            HotPart { heat: 2, path: "f5".into(), blocks: vec![0..2, 5..6] },
            HotPart { heat: 2, path: "other".into(), blocks: vec![1..2] },
        ];
        let blocks = vec![(FileId(5), 1, Heat::Main), (FileId(5), 2, Heat::Main)];
        assert_eq!(filled(blocks, &pending), ["2 0-2,5-5 f5\n", "2 1-1 other\n"]);
    }

    #[test]
    fn a_list_that_would_be_too_long_keeps_the_largest_of_the_hottest() {
        let part = |heat, path: &str, blocks| (0, HotPart { heat, path: path.into(), blocks });
        let all = || {
            vec![
                part(3, "small", vec![0..1]),
                part(2, "c", vec![0..1]),
                part(2, "a", vec![0..9]),
                part(2, "b", vec![0..5]),
            ]
        };
        let kept = |most| within_bounds(all(), most).into_iter().map(|part| part.path).collect::<Vec<_>>();
        assert_eq!(kept(28), [PathBuf::from("small"), "a".into(), "b".into()]);
        assert_eq!(kept(20), [PathBuf::from("small"), "a".into()]);
        assert_eq!(kept(0), Vec::<PathBuf>::new());
    }
}
