//! Picks units within the budget.

use std::collections::BTreeMap;

use super::choice::{Choice, PlannedRead};
use super::unit::{Looked, Seconds, Unit, Whole, sound};
use super::verdict::Verdict;
use super::{Candidate, Limits, holes};
use crate::file_set::Kind;
use crate::pages::{PAGE_BYTES, Pages, Span};

/// A unit to read, or the first part of it.
struct Taken<'a> {
    unit: &'a Unit<'a>,
    pages: Pages,
    bytes: u64,
    saved: f64,
    /// The picked share of the unit's bytes.
    part: f64,
}

pub(super) fn pick(candidates: &[Candidate<'_>], looked: Looked<'_>, limits: &Limits) -> Choice {
    let mut units: Vec<&Unit<'_>> =
        looked.units.iter().filter(|unit| unit.probability >= limits.least_probability).collect();
    units.sort_by(|a, b| density(b).total_cmp(&density(a)).then_with(|| order(a).cmp(&order(b))));
    let taken = take(&units, limits.budget_bytes);
    let probable = units.iter().map(|unit| (*unit, 1.0));
    let sums = Sums {
        all: sums(candidates.len(), looked.units.iter().map(|unit| (unit, 1.0))),
        probable: sums(candidates.len(), probable),
        taken: sums(candidates.len(), taken.iter().map(|taken| (taken.unit, taken.part))),
    };
    let verdicts = candidates.iter().enumerate();
    let verdicts = verdicts.map(|(at, c)| (c.id, verdict(at, c, &looked.wholes[at], &sums, limits)));
    let verdicts = verdicts.collect();
    let (mut reads, numbers) = reads(&taken);
    let left = limits.budget_bytes.saturating_sub(bytes(&reads));
    holes::fill(&mut reads, &numbers, &looked.holes, left);
    Choice { verdicts, bytes: bytes(&reads), saved_s: reads.iter().map(|read| read.saved_s).sum(), reads }
}

fn bytes(reads: &[PlannedRead]) -> u64 {
    reads.iter().map(|read| read.bytes).sum()
}

fn size(unit: &Unit<'_>) -> u64 {
    if unit.file.kind == Kind::Directory { PAGE_BYTES } else { unit.pages.bytes() }
}

fn density(unit: &Unit<'_>) -> f64 {
    unit.saved.sum() / size(unit).max(1) as f64
}

/// Breaks ties by order of first use, never by the order of candidates.
fn order(unit: &Unit<'_>) -> (usize, usize, Option<Span>) {
    (unit.place, unit.number, unit.pages.spans().first().copied())
}

fn take<'a>(units: &[&'a Unit<'a>], budget: u64) -> Vec<Taken<'a>> {
    let mut left = budget;
    let mut all = Vec::new();
    for unit in units {
        let bytes = size(unit);
        if bytes > left {
            all.extend(cut(unit, left));
            break;
        }
        left -= bytes;
        all.push(Taken { unit, pages: unit.pages.clone(), bytes, saved: unit.saved.sum(), part: 1.0 });
    }
    all
}

/// As much of a unit as fits. The program still requests the rest from the disk, so no request is saved.
fn cut<'a>(unit: &'a Unit<'a>, left: u64) -> Option<Taken<'a>> {
    let mut room = left / PAGE_BYTES;
    let first: Pages = unit
        .pages
        .spans()
        .iter()
        .map_while(|span| {
            let part = Span::new(span.first, span.end.min(span.first + room))?;
            room -= part.pages();
            Some(part)
        })
        .collect();
    let bytes = first.bytes();
    let part = bytes as f64 / size(unit).max(1) as f64;
    let Seconds { bytes: saved, .. } = unit.saved;
    (bytes > 0).then_some(Taken { unit, pages: first, bytes, saved: saved * part, part })
}

/// Merges units of a file with similar density into one read; the second list has the files' numbers.
fn reads(taken: &[Taken<'_>]) -> (Vec<PlannedRead>, Vec<usize>) {
    let mut at: BTreeMap<(i32, usize), usize> = BTreeMap::new();
    let mut reads: Vec<PlannedRead> = Vec::new();
    let mut numbers = Vec::new();
    for taken in taken {
        let band = density(taken.unit).log2().div_euclid(2.0) as i32;
        let index = *at.entry((band, taken.unit.number)).or_insert(reads.len());
        if index == reads.len() {
            reads.push(read(taken));
            numbers.push(taken.unit.number);
            continue;
        }
        let read = &mut reads[index];
        read.pages = read.pages.union(&taken.pages);
        read.bytes += taken.bytes;
        read.saved_s += taken.saved;
        read.place = read.place.min(taken.unit.place);
    }
    (reads, numbers)
}

fn read(taken: &Taken<'_>) -> PlannedRead {
    let file = taken.unit.file;
    PlannedRead {
        path: file.path.clone(),
        kind: file.kind,
        stamp: file.stamp,
        pages: taken.pages.clone(),
        bytes: taken.bytes,
        saved_s: taken.saved,
        place: taken.unit.place,
    }
}

/// Bytes and seconds per candidate.
struct Sums {
    /// Everything that is not in memory.
    all: Vec<(u64, f64)>,
    /// The part that is probable enough.
    probable: Vec<(u64, f64)>,
    /// The part that is read.
    taken: Vec<(u64, f64)>,
}

fn sums<'a>(candidates: usize, of: impl Iterator<Item = (&'a Unit<'a>, f64)>) -> Vec<(u64, f64)> {
    let mut sums = vec![(0, 0.0); candidates];
    for (unit, part) in of {
        for share in &unit.shares {
            let (bytes, s) = &mut sums[share.candidate];
            *bytes += (share.bytes as f64 * part) as u64;
            *s += share.cold_s * part;
        }
    }
    sums
}

fn verdict(at: usize, candidate: &Candidate<'_>, whole: &Whole, sums: &Sums, limits: &Limits) -> Verdict {
    let (of_bytes, of_s) = sums.all[at];
    let (bytes, saved_s) = sums.taken[at];
    if whole.readable == 0 {
        Verdict::NothingToRead { files: candidate.set.files.len() }
    } else if whole.not_worth {
        let took_s = candidate.took.map(|took| took.as_secs_f64());
        let of_launch = took_s.map_or(f64::INFINITY, |took_s| limits.least_saved_share * took_s);
        Verdict::NotWorth { cold_s: whole.cold_s, took_s, least_s: limits.least_saved_s.min(of_launch) }
    } else if of_bytes == 0 {
        Verdict::AlreadyResident
    } else if bytes > 0 {
        Verdict::Chosen { bytes, of_bytes, saved_s, of_s }
    } else if sums.probable[at].0 == 0 {
        Verdict::Improbable { probability: sound(candidate.probability), least: limits.least_probability }
    } else {
        Verdict::NoRoom { of_bytes, of_s, budget_bytes: limits.budget_bytes }
    }
}
