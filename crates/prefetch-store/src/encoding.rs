//! Encodes a program's files. For each file, in order of first use, LEB128 integers ([`spans`]): the difference between its key and the previous one
//! (0 before the first), zigzag encoded (0, -1, 1, -2 ... become 0, 1, 2, 3 ...); the file's version; its weight in parts of 10,000; the number of
//! bytes of its pages; these; the same for its stale pages.

use super::spans::{self, put, take};
use eke_prefetch_model::file_set::Touched;
use eke_prefetch_model::pages::Pages;

/// The stored precision of weights.
const WEIGHT_PARTS: f32 = 10_000.0;

/// A distance between keys with four bytes.
const FAR: i64 = 1 << 26;

/// A program's use of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileEntry {
    /// The file's key.
    pub file: i64,
    /// The file's version.
    pub version: u64,
    /// The share of launches that use it.
    pub weight: f32,
    /// The used pages.
    pub pages: Pages,
    /// The subset of `pages` without a recent use.
    pub stale: Pages,
}

/// Appends an entry; `before` is the key of the previous one.
pub(super) fn encode(bytes: &mut Vec<u8>, before: i64, entry: &FileEntry) {
    let weight = if entry.weight.is_nan() { 0.0 } else { entry.weight.clamp(0.0, 1.0) };
    put(bytes, zigzag(entry.file.wrapping_sub(before)));
    put(bytes, entry.version);
    put(bytes, (weight * WEIGHT_PARTS).round() as u64);
    put_pages(bytes, &entry.pages);
    put_pages(bytes, &entry.stale);
}

/// The most bytes of a file's path and its entry, as long as keys and versions have at most four bytes.
pub(super) fn most_bytes(file: &Touched) -> usize {
    let (pages, stale) = (file.pages.clone(), file.stale.clone());
    let entry = FileEntry { file: FAR, version: 0, weight: file.weight, pages, stale };
    let mut bytes = Vec::new();
    encode(&mut bytes, 0, &entry);
    file.path.as_os_str().len() + bytes.len()
}

fn put_pages(bytes: &mut Vec<u8>, pages: &Pages) {
    let pages = spans::encode(pages);
    put(bytes, pages.len() as u64);
    bytes.extend(pages);
}

/// Decodes as many entries as are valid: SQLite does not detect all damage.
pub(super) fn decode(mut bytes: &[u8]) -> Vec<FileEntry> {
    let mut all: Vec<FileEntry> = Vec::new();
    while let Some(entry) = one(&mut bytes, all.last().map_or(0, |last| last.file)) {
        all.push(entry);
    }
    all
}

fn one(bytes: &mut &[u8], before: i64) -> Option<FileEntry> {
    let file = before.wrapping_add(unzigzag(take(bytes)?));
    let version = take(bytes)?;
    let weight = take(bytes)?.min(WEIGHT_PARTS as u64) as f32 / WEIGHT_PARTS;
    let (pages, stale) = (pages(bytes)?, pages(bytes)?);
    Some(FileEntry { file, version, weight, pages, stale })
}

fn pages(bytes: &mut &[u8]) -> Option<Pages> {
    let length = usize::try_from(take(bytes)?).ok()?;
    let (pages, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    spans::decode(pages)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use eke_prefetch_model::pages::Span;

    fn entry() -> impl Strategy<Value = FileEntry> {
        let spans = || proptest::collection::vec((0u64..1000, 1u64..50), 0..6);
        let pages = |spans: Vec<(u64, u64)>| {
            spans.into_iter().filter_map(|(first, count)| Span::new(first, first + count)).collect()
        };
        (any::<i64>(), any::<u64>(), 0u16..=10_000, spans(), spans()).prop_map(
            move |(file, version, weight, used, stale)| FileEntry {
                file,
                version,
                weight: f32::from(weight) / WEIGHT_PARTS,
                pages: pages(used),
                stale: pages(stale),
            },
        )
    }

    #[test]
    fn neighbours_take_few_bytes() {
        let pages: Pages = Span::new(0, 16).into_iter().collect();
        let mut bytes = Vec::new();
        encode(
            &mut bytes,
            7,
            &FileEntry { file: 8, version: 0, weight: 1.0, pages, stale: Pages::default() },
        );
        assert_eq!(bytes, [2, 0, 0x90, 0x4e, 2, 0, 15, 0]);
        assert_eq!([0, -1, 1, -2, i64::MIN].map(zigzag), [0, 1, 2, 3, u64::MAX]);
    }

    proptest! {
        #[test]
        fn it_comes_back(all in proptest::collection::vec(entry(), 0..10)) {
            let mut bytes = Vec::new();
            let mut before = 0;
            for entry in &all {
                encode(&mut bytes, before, entry);
                before = entry.file;
            }
            prop_assert_eq!(decode(&bytes), all);
        }

        #[test]
        fn anything_is_read_as_far_as_it_goes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
