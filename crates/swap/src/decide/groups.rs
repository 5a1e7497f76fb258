//! Control groups with memory limits. A page that leaves a group for zram is charged to nobody, so with zram a group at its limit takes more RAM than that.
//! Compressed pages of zswap stay charged to their group on cgroup v2 (`obj_cgroup_charge_zswap`, Linux 5.19).

use eke_model::step::Reason;
use eke_model::text;
use eke_model::units::Bytes;

use super::backend::Backend;
use crate::facts::{DiskArea, Facts};

/// From this share of RAM on that groups with limits may have together, their limits count for more than what zram holds.
const MOST_OF_RAM: f64 = 0.5;
/// The longest name of a group in a sentence.
const NAME: usize = 60;

/// May groups that zswap's pool is charged to have most of the memory?
pub(super) fn need_zswap(facts: &Facts) -> bool {
    are_charged(facts) && limits(facts) >= facts.ram.scaled(MOST_OF_RAM)
}

fn are_charged(facts: &Facts) -> bool {
    !facts.limited_groups.is_empty() && facts.limited_groups.iter().all(|group| group.zswap_is_charged)
}

/// The memory that groups with limits may have together.
pub(super) fn limits(facts: &Facts) -> Bytes {
    facts.limited_groups.iter().map(|group| group.limit).sum::<Bytes>().min(facts.ram)
}

/// Why zswap, although its area has fewer slots than zram would have room.
pub(super) fn why_zswap(facts: &Facts, area: &DiskArea) -> String {
    let (limits, ram) = (limits(facts), facts.ram);
    format!(
        "zswap in front of {}, because control groups may have {limits} of the {ram} of RAM: zswap's compressed pages count towards their limits, and zram's, of which it would hold more, towards none",
        area.path
    )
}

/// What the chosen compressed swap means for the limits; `None` without groups that have one.
pub(super) fn note(facts: &Facts, backend: &Backend) -> Option<Reason> {
    let who = named(facts)?;
    let takes_more =
        "so at its limit a group takes more RAM than that; `eke box` charges a program for its share";
    let text = match backend {
        Backend::Nothing => return None,
        Backend::Zswap { .. } if are_charged(facts) => {
            format!("{who}: pages that zswap compresses count towards the limit, as they would not with zram")
        }
        Backend::Zswap { .. } => format!(
            "{who}: this kernel charges no group for zswap's compressed pages (cgroup v2 does, from Linux 5.19 on), {takes_more}"
        ),
        Backend::Zram | Backend::Adopted { .. } if are_charged(facts) => format!(
            "{who}: zram's compressed pages are charged to no group, {takes_more}, and zswap, in front of enough swap on a disk, charges its group"
        ),
        Backend::Zram | Backend::Adopted { .. } => {
            format!("{who}: zram's compressed pages are charged to no group, {takes_more}")
        }
    };
    let count = facts.limited_groups.len() as f64;
    Some(Reason::new(text).with("limited_groups", count).with("limits_bytes", limits(facts).0 as f64))
}

/// The group with the largest limit, and the number of the others.
fn named(facts: &Facts) -> Option<String> {
    let first = facts.limited_groups.first()?;
    let others = match facts.limited_groups.len() - 1 {
        0 => String::new(),
        1 => ", and 1 other has one".to_owned(),
        n => format!(", and {n} others have one"),
    };
    Some(format!("{} has a memory limit of {}{others}", text::name(&first.group, NAME), first.limit))
}
