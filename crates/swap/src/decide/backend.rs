//! The back ends of compressed swap, and the disks behind them.

use eke_model::step::Reason;
use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::facts::{DiskArea, DiskKind, Facts};

/// The back end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Backend {
    /// A compressed block device in RAM.
    Zram,
    /// A compressed cache in front of this swap area.
    Zswap {
        /// The area.
        area: String,
    },
    /// A zram device that another program set up as swap; eke sets only the knobs around it.
    Adopted {
        /// `zram0`.
        device: String,
    },
    /// None; the decision has the reason.
    Nothing,
}

pub(super) fn nothing(why: String) -> (Backend, Reason) {
    (Backend::Nothing, Reason::new(why))
}

/// The area with the highest priority: zswap writes to it.
pub(super) fn first_area(facts: &Facts) -> Option<&DiskArea> {
    let priority =
        |d: &DiskArea| facts.areas.iter().find(|a| a.path == d.path).map_or(i32::MIN, |a| a.priority);
    facts.disk_areas.iter().rev().max_by_key(|d| priority(d))
}

/// The size of all areas that are no zram: each page in zswap needs a slot there.
pub(super) fn slots(facts: &Facts) -> Bytes {
    facts.areas.iter().filter(|a| a.zram_name().is_none()).map(|a| a.size).sum()
}

/// Does the disk stand swapping? An SSD does, since behind a compressed pool it gets few writes. SD cards, eMMC and USB sticks do not. An unknown
/// disk (a virtual one) counts as durable.
pub(super) fn is_durable(kind: DiskKind) -> bool {
    matches!(kind, DiskKind::Rotating | DiskKind::Solid | DiskKind::Unknown)
}

pub(super) fn describe(kind: DiskKind) -> &'static str {
    match kind {
        DiskKind::Rotating => "a rotating disk",
        DiskKind::Solid => "a solid-state disk",
        DiskKind::WearsOut => "a card or stick, which wears out",
        DiskKind::Network => "a disk behind a network or ZFS, where swapping can stall",
        DiskKind::Unknown => "a disk of unknown kind",
    }
}
