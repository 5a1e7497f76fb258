//! How much memory the store may have now.
//!
//! # Layout
//! - [`signals`]: the memory of the machine and of the groups
//! - [`others`]: the ceiling that protects the page cache of other files
//! - [`reserve`]: what is left to others in any case
//! - [`decide`](mod@decide): the limit from all that
//!
//! # Signals
//! Available memory, the headroom of each group with a limit, what others read from disks again, and pages swapped out while little memory is free. Memory pressure
//! (PSI) is not used: it counts a miss of this cache that waits for the disk as lack of memory, so the cache would shrink
//! because it is too small.

pub mod decide;
pub mod others;
pub mod reserve;
pub mod signals;

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

pub use decide::{Decision, LimitReason, decide};
pub use signals::{Group, Machine, OwnUse, Signals};

/// An amount of memory, or a share of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// In bytes.
    Bytes(Bytes),
    /// In percent of RAM, or of the group's limit if that is less: 1 to 85.
    Percent(u8),
}

/// The largest share of memory, in percent.
pub const MOST_PERCENT: u8 = 85;
/// What a cache gets if nobody chooses.
pub const DEFAULT: Memory = Memory::Percent(MOST_PERCENT);

/// The size of the store, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SizeReport {
    /// The memory asked for, resolved to bytes.
    pub asked: Bytes,
    /// The limit now.
    pub limit: Bytes,
    /// Memory beside the store that counts as well: tables of known files.
    pub beside: Bytes,
    /// The store's memory at the last reading.
    pub held: Bytes,
    /// Why the limit is what it is.
    pub why: LimitReason,
    /// The machine's available memory at the last reading.
    pub available: Bytes,
    /// The headroom of the tightest group, if one has a limit.
    pub headroom: Option<Bytes>,
    /// Seconds since the limit last changed by 1 MiB or more.
    pub changed_s: Option<u64>,
    /// How often memory was given back.
    pub shrinks: u64,
    /// Why the machine's memory could not be read last time; the limit stayed as it was.
    pub unreadable: Option<String>,
}

impl SizeReport {
    /// A sentence about the limit for people.
    pub fn sentence(&self) -> String {
        let Self { limit, available, .. } = self;
        match (self.why, self.headroom) {
            (LimitReason::Asked, _) if self.beside > Bytes(self.asked.0 / 16) => {
                format!(
                    "{limit} of the {} asked for: the tables of known files take {}",
                    self.asked, self.beside
                )
            }
            (LimitReason::Asked, _) => format!("{limit}, as asked"),
            (LimitReason::Group, Some(headroom)) => {
                format!("{limit}: its group has {headroom} left below its limit")
            }
            (LimitReason::Machine | LimitReason::Group, _) => {
                format!("{limit}: {available} are available on the machine")
            }
            (LimitReason::Others, _) => {
                format!("{limit}: with more, other files had to be read from the disk again")
            }
            (LimitReason::Swapping, _) => {
                format!("{limit}: others are swapped out, and little memory is free")
            }
            (LimitReason::Aside, _) => "none: the mount stands aside".to_owned(),
            (LimitReason::Growing, Some(headroom)) => {
                format!("{limit} and growing: its group has {headroom} left below its limit")
            }
            (LimitReason::Growing, None) => {
                format!("{limit} and growing: {available} are available on the machine")
            }
        }
    }
}
