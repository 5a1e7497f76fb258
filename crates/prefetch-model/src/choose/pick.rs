//! Picks units within the budget.

use std::collections::BTreeMap;

use super::choice::{Choice, PlannedRead};
use super::outcome::ChoiceOutcome;
use super::unit::{CandidateTotal, Demand, Seconds, Unit, sound};
use super::{Candidate, Limits, holes};
use crate::file_set::Kind;
use crate::pages::{PAGE_BYTES, Pages, Span};

/// A unit to read, or the first part of it.
struct PickedUnit<'a> {
    unit: &'a Unit<'a>,
    pages: Pages,
    bytes: u64,
    saved: f64,
    /// The picked share of the unit's bytes.
    part: f64,
}

pub(super) fn pick(candidates: &[Candidate<'_>], demand: Demand<'_>, limits: &Limits) -> Choice {
    let mut units: Vec<&Unit<'_>> =
        demand.units.iter().filter(|unit| unit.probability >= limits.least_probability).collect();
    units.sort_by(|a, b| density(b).total_cmp(&density(a)).then_with(|| order(a).cmp(&order(b))));
    let taken = take(&units, limits.budget_bytes);
    let probable = units.iter().map(|unit| (*unit, 1.0));
    let sums = Sums {
        all: sums(candidates.len(), demand.units.iter().map(|unit| (unit, 1.0))),
        probable: sums(candidates.len(), probable),
        taken: sums(candidates.len(), taken.iter().map(|taken| (taken.unit, taken.part))),
    };
    let outcomes = candidates.iter().enumerate();
    let outcomes = outcomes.map(|(at, c)| (c.id, outcome(at, c, &demand.totals[at], &sums, limits)));
    let outcomes = outcomes.collect();
    let (mut reads, numbers) = reads(&taken);
    let left = limits.budget_bytes.saturating_sub(bytes(&reads));
    holes::fill(&mut reads, &numbers, &demand.holes, left);
    Choice { outcomes, bytes: bytes(&reads), saved_s: reads.iter().map(|read| read.saved_s).sum(), reads }
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
    (unit.position, unit.number, unit.pages.spans().first().copied())
}

fn take<'a>(units: &[&'a Unit<'a>], budget: u64) -> Vec<PickedUnit<'a>> {
    let mut left = budget;
    let mut all = Vec::new();
    for unit in units {
        let bytes = size(unit);
        if bytes > left {
            all.extend(cut(unit, left));
            break;
        }
        left -= bytes;
        all.push(PickedUnit { unit, pages: unit.pages.clone(), bytes, saved: unit.saved.sum(), part: 1.0 });
    }
    all
}

/// As much of a unit as fits. The program still requests the rest from the disk, so no request is saved.
fn cut<'a>(unit: &'a Unit<'a>, left: u64) -> Option<PickedUnit<'a>> {
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
    (bytes > 0).then_some(PickedUnit { unit, pages: first, bytes, saved: saved * part, part })
}

/// Merges units of a file with similar density into one read; the second list has the files' numbers.
fn reads(taken: &[PickedUnit<'_>]) -> (Vec<PlannedRead>, Vec<usize>) {
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
        read.position = read.position.min(taken.unit.position);
    }
    (reads, numbers)
}

fn read(taken: &PickedUnit<'_>) -> PlannedRead {
    let file = taken.unit.file;
    PlannedRead {
        path: file.path.clone(),
        kind: file.kind,
        stamp: file.stamp,
        pages: taken.pages.clone(),
        bytes: taken.bytes,
        saved_s: taken.saved,
        position: taken.unit.position,
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

fn outcome(
    at: usize,
    candidate: &Candidate<'_>,
    total: &CandidateTotal,
    sums: &Sums,
    limits: &Limits,
) -> ChoiceOutcome {
    let (of_bytes, of_s) = sums.all[at];
    let (bytes, saved_s) = sums.taken[at];
    let (probability, least) = (sound(candidate.probability), limits.least_probability);
    if total.readable == 0 {
        ChoiceOutcome::NothingToRead { files: candidate.set.files.len() }
    } else if total.is_small_gain {
        let took_s = candidate.took.map(|took| took.as_secs_f64());
        let of_launch = took_s.map_or(f64::INFINITY, |took_s| limits.least_saved_share * took_s);
        ChoiceOutcome::SmallGain {
            cold_s: total.cold_s,
            took_s,
            least_s: limits.least_saved_s.min(of_launch),
        }
    } else if total.costs_more() {
        ChoiceOutcome::CostsCpu { cold_s: total.cold_s, cpu_s: total.cpu_s }
    } else if of_bytes == 0 {
        ChoiceOutcome::AlreadyResident
    } else if bytes > 0 && probability < least {
        ChoiceOutcome::Shared { bytes, of_bytes, probability, least }
    } else if bytes > 0 {
        ChoiceOutcome::Chosen { bytes, of_bytes, saved_s, of_s }
    } else if sums.probable[at].0 == 0 || probability < least {
        ChoiceOutcome::Improbable { probability, least }
    } else {
        ChoiceOutcome::NoRoom { of_bytes, of_s, budget_bytes: limits.budget_bytes }
    }
}
