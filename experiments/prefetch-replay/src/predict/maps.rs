//! The parts of files that programs use when they start; a part shared by several programs is stored once.

use std::collections::{BTreeMap, BTreeSet};

use eke_prefetch_model::pages::{PAGE_BYTES, Span};
use eke_prefetch_model::program::ProgramId;

/// A part of a file, which preload calls a map. Parts of one file do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Map {
    /// The file, an index of [`Maps::files`].
    pub file: usize,
    /// The pages.
    pub span: Span,
}

impl Map {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.span.bytes()
    }
}

/// All maps, with the programs that use them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Maps {
    files: Vec<String>,
    all: Vec<Map>,
    of: BTreeMap<ProgramId, Vec<usize>>,
    users: Vec<Vec<ProgramId>>,
}

impl Maps {
    /// The names of the files, in order.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// All maps, sorted by file and position.
    pub fn all(&self) -> &[Map] {
        &self.all
    }

    /// The maps of a program, in order; none if it is unknown.
    pub fn of(&self, program: ProgramId) -> &[usize] {
        self.of.get(&program).map_or(&[], Vec::as_slice)
    }

    /// The programs that use a map, sorted by number.
    pub fn users(&self, map: usize) -> &[ProgramId] {
        self.users.get(map).map_or(&[], Vec::as_slice)
    }

    /// The programs that have maps, sorted by number.
    pub fn programs(&self) -> impl Iterator<Item = ProgramId> + '_ {
        self.of.keys().copied()
    }

    /// Bytes used by a program.
    pub fn bytes_of(&self, program: ProgramId) -> u64 {
        self.of(program).iter().fold(0, |sum, map| sum.saturating_add(self.all[*map].bytes()))
    }

    /// Bytes of all maps.
    pub fn bytes(&self) -> u64 {
        self.all.iter().fold(0, |sum, map| sum.saturating_add(map.bytes()))
    }
}

/// Maps as they are found: overlapping, repeated, in any order.
#[derive(Debug, Clone, Default)]
pub struct MapsBuilder {
    found: BTreeMap<String, BTreeSet<(Span, ProgramId)>>,
    programs: BTreeSet<ProgramId>,
}

impl MapsBuilder {
    /// Adds a part of a file that a program uses.
    pub fn add(&mut self, program: ProgramId, file: &str, span: Span) {
        self.found.entry(file.to_owned()).or_default().insert((span, program));
        self.programs.insert(program);
    }

    /// Builds the maps. Overlapping parts of a file are split, so that each page is in one map.
    pub fn build(self) -> Maps {
        let mut maps =
            Maps { of: self.programs.into_iter().map(|p| (p, Vec::new())).collect(), ..Maps::default() };
        for (name, found) in self.found {
            let file = maps.files.len();
            maps.files.push(name);
            for (span, users) in cut(&found) {
                let map = maps.all.len();
                maps.all.push(Map { file, span });
                users.iter().for_each(|program| maps.of.entry(*program).or_default().push(map));
                maps.users.push(users);
            }
        }
        maps
    }
}

/// The parts between all borders in one file, each with the programs that use it.
fn cut(found: &BTreeSet<(Span, ProgramId)>) -> Vec<(Span, Vec<ProgramId>)> {
    let mut borders: BTreeMap<u64, Vec<(ProgramId, i32)>> = BTreeMap::new();
    for (span, program) in found {
        borders.entry(span.first).or_default().push((*program, 1));
        borders.entry(span.end).or_default().push((*program, -1));
    }
    let mut open: BTreeMap<ProgramId, i32> = BTreeMap::new();
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, changes) in borders {
        if let Some(span) = Span::new(from, at).filter(|_| !open.is_empty()) {
            parts.push((span, open.keys().copied().collect()));
        }
        for (program, change) in changes {
            *open.entry(program).or_insert(0) += change;
        }
        open.retain(|_, count| *count > 0);
        from = at;
    }
    parts
}

/// The pages of a byte range; `None` if it is empty or ends beyond the largest file.
pub fn span_of_bytes(offset: u64, length: u64) -> Option<Span> {
    let end = offset.checked_add(length)?;
    Span::new(offset / PAGE_BYTES, end.div_ceil(PAGE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_parts_are_split_so_that_each_page_is_in_one() {
        let (a, b) = (ProgramId(1), ProgramId(2));
        let mut builder = MapsBuilder::default();
        for (program, first, end) in [(a, 0, 10), (a, 4, 12), (b, 8, 20), (b, 8, 20)] {
            builder.add(program, "lib", Span { first, end });
        }
        builder.add(b, "own", Span { first: 0, end: 1 });
        let maps = builder.build();
        let spans: Vec<_> = maps.all().iter().map(|map| (map.file, map.span.first, map.span.end)).collect();
        assert_eq!(spans, [(0, 0, 4), (0, 4, 8), (0, 8, 10), (0, 10, 12), (0, 12, 20), (1, 0, 1)]);
        assert_eq!(maps.of(a), [0, 1, 2, 3]);
        assert_eq!(maps.of(b), [2, 3, 4, 5]);
        assert_eq!(maps.users(2), [a, b]);
        assert_eq!((maps.bytes_of(a), maps.bytes()), (12 * PAGE_BYTES, 21 * PAGE_BYTES));
    }

    #[test]
    fn bytes_are_whole_pages() {
        assert_eq!(span_of_bytes(4095, 2), Some(Span { first: 0, end: 2 }));
        assert_eq!(span_of_bytes(8192, 0), None);
        assert_eq!(span_of_bytes(u64::MAX, 2), None);
    }
}
