//! The back ends of compressed swap, and the disks behind them.

use eke_model::step::Reason;
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
    /// A zram device that somebody else set up as swap; only the knobs around it are set.
    Adopted {
        /// `zram0`.
        device: String,
    },
    /// None: the reason says why.
    Nothing,
}

pub(super) fn nothing(why: String) -> (Backend, Reason) {
    (Backend::Nothing, Reason::new(why))
}

/// The area that is filled first, and so the one that zswap writes on to.
pub(super) fn first_area(facts: &Facts) -> Option<&DiskArea> {
    let priority =
        |d: &DiskArea| facts.areas.iter().find(|a| a.path == d.path).map_or(i32::MIN, |a| a.priority);
    facts.disk_areas.iter().rev().max_by_key(|d| priority(d))
}

/// SSDs count as lasting: with a compressed pool in front little reaches them. SD cards, eMMC and USB sticks do not.
/// What is not known (a virtual disk) is not feared.
pub(super) fn lasts(kind: DiskKind) -> bool {
    matches!(kind, DiskKind::Rotating | DiskKind::Solid | DiskKind::Unknown)
}

pub(super) fn describe(kind: DiskKind) -> &'static str {
    match kind {
        DiskKind::Rotating => "a disk that seeks",
        DiskKind::Solid => "a solid-state disk",
        DiskKind::WearsOut => "a card or stick, which wears out",
        DiskKind::Network => "a network disk, where swapping can stall",
        DiskKind::Unknown => "a disk of unknown kind",
    }
}
