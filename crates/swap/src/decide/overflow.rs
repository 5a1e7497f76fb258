//! Another program's zram that is small, so that most swapped pages go to the disk behind it.

use eke_model::units::Bytes;

use super::backend::{first_area, slots};
use crate::facts::Facts;

/// The share of RAM that is likely swapped out on a machine that is short of memory.
const LIKELY_SWAPPED: f64 = 0.5;

/// With this share of the swapped pages in zram, a page from swap costs what one from zram does.
const MOST_IN_ZRAM: f64 = 0.5;

/// Where the swapped pages are, by the sizes of the areas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Overflow<'a> {
    /// The share of the swapped pages in zram, less than [`MOST_IN_ZRAM`].
    pub in_zram: f64,
    /// The first area on a disk.
    pub area: &'a str,
}

/// `None` if zram has room for most of the swapped pages: it has a quarter of RAM, or as much as the areas on disks. The order of the areas does not
/// matter: in front of zram a disk would get even more of them.
pub(super) fn of(facts: &Facts) -> Option<Overflow<'_>> {
    let area = &first_area(facts)?.path;
    let zram: Bytes = facts.areas.iter().filter(|a| a.zram_name().is_some()).map(|a| a.size).sum();
    let swapped = facts.ram.scaled(LIKELY_SWAPPED).min(zram + slots(facts));
    let in_zram = zram.0 as f64 / swapped.0.max(1) as f64;
    (in_zram < MOST_IN_ZRAM).then_some(Overflow { in_zram, area })
}
