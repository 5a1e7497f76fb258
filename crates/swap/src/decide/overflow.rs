//! Another program's zram that has room for few pages, or that the kernel fills after a disk: then most swapped pages are on the disk.

use std::cmp::Reverse;

use eke_model::sample::SwapArea;
use eke_model::units::Bytes;

use super::backend::{first_area, slots};
use crate::facts::Facts;

/// The share of RAM that is likely swapped out on a machine that is short of memory.
const LIKELY_SWAPPED: f64 = 0.5;

/// With this share of the swapped pages in zram, a page from swap costs what one from zram does.
const MOST_IN_ZRAM: f64 = 0.5;

/// Where the swapped pages are, by the sizes and priorities of the areas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Overflow<'a> {
    /// The share of the swapped pages in zram.
    pub in_zram: f64,
    /// The first area on a disk.
    pub area: &'a str,
    /// Does the kernel fill that before zram, or both in turn?
    pub before_zram: Option<Before<'a>>,
}

/// A disk that is filled no later than zram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Before<'a> {
    /// The zram device with the highest priority.
    pub zram: &'a SwapArea,
    /// The area on the disk.
    pub disk: &'a SwapArea,
}

/// `None` if zram is filled first and has room for most of the swapped pages: it has a quarter of RAM, or as much as the areas on disks.
pub(super) fn of(facts: &Facts) -> Option<Overflow<'_>> {
    let area = &first_area(facts)?.path;
    let zram: Bytes = facts.areas.iter().filter(|a| a.zram_name().is_some()).map(|a| a.size).sum();
    let swapped = facts.ram.scaled(LIKELY_SWAPPED).min(zram + slots(facts));
    let in_zram = in_zram(facts, swapped).0 as f64 / swapped.0.max(1) as f64;
    let before_zram = before(facts);
    (in_zram < MOST_IN_ZRAM || before_zram.is_some()).then_some(Overflow { in_zram, area, before_zram })
}

/// The disk that is filled before zram, or in turn with it.
pub(super) fn before(facts: &Facts) -> Option<Before<'_>> {
    let first = |is_zram: bool| {
        let areas = facts.areas.iter().rev().filter(move |a| a.zram_name().is_some() == is_zram);
        areas.max_by_key(|a| a.priority)
    };
    let (zram, disk) = (first(true)?, first(false)?);
    (disk.priority >= zram.priority).then_some(Before { zram, disk })
}

/// How much of `swapped` gets to zram: the kernel fills the areas of the highest priority first, and those of one priority in turn.
fn in_zram(facts: &Facts, swapped: Bytes) -> Bytes {
    let mut priorities: Vec<i32> = facts.areas.iter().map(|a| a.priority).collect();
    priorities.sort_unstable_by_key(|priority| Reverse(*priority));
    priorities.dedup();
    let (mut left, mut stored) = (swapped, Bytes(0));
    for priority in priorities {
        let size = |is_zram: bool| -> Bytes {
            let areas = facts.areas.iter().filter(|a| a.priority == priority);
            areas.filter(|a| a.zram_name().is_some() == is_zram).map(|a| a.size).sum()
        };
        let (zram, disk) = (size(true), size(false));
        let here = left.min(zram + disk);
        stored = stored + zram.min(here.scaled(0.5).max(here.saturating_sub(disk)));
        left = left.saturating_sub(here);
    }
    stored
}
