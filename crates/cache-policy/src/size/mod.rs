//! How much memory the store may have now.
//!
//! # Layout
//! - [`signals`]: what memory the machine and the groups have
//! - [`decide`](mod@decide): the limit from that
//!
//! # Signals
//! Available memory, the headroom of each group with a limit, and swap traffic while little memory is free. Not memory's
//! pressure (PSI): a miss of this cache that waits for the disk counts there as lack of memory, so the cache would shrink
//! because it is too small.

pub mod decide;
pub mod signals;

use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

pub use decide::{Decision, Why, decide};
pub use signals::{Group, Machine, Signals};

/// An amount of memory, or a share of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// So much.
    Bytes(Bytes),
    /// Of RAM, or of the group's limit if that is less: 1 to 85.
    Percent(u8),
}

/// The most that a share of memory can be, in percent.
pub const MOST_PERCENT: u8 = 85;

/// The size of the store, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The most that the store was asked to hold, resolved to bytes.
    pub asked: Bytes,
    /// The most that it may hold now.
    pub limit: Bytes,
    /// Memory beside the store that is within what was asked for: what is known of files.
    pub beside: Bytes,
    /// What it held at the last look.
    pub held: Bytes,
    /// Why the limit is what it is.
    pub why: Why,
    /// The machine's available memory at the last look.
    pub available: Bytes,
    /// What the tightest group had left below its limit, if one has a limit.
    pub headroom: Option<Bytes>,
    /// Seconds since the limit was changed last by 1 MiB or more.
    pub changed_s: Option<u64>,
    /// How often memory was given back.
    pub shrinks: u64,
    /// Why the machine could not be read the last time; the limit stays as it is then.
    pub unreadable: Option<String>,
}

impl Report {
    /// Why the limit is what it is, for people.
    pub fn sentence(&self) -> String {
        let Self { limit, available, .. } = self;
        match (self.why, self.headroom) {
            (Why::Asked, _) if self.beside > Bytes(self.asked.0 / 16) => {
                format!(
                    "{limit} of the {} asked for: what is known of files takes {}",
                    self.asked, self.beside
                )
            }
            (Why::Asked, _) => format!("{limit}, as asked"),
            (Why::Group, Some(headroom)) => format!("{limit}: its group has {headroom} left below its limit"),
            (Why::Machine | Why::Group, _) => format!("{limit}: {available} are available on the machine"),
            (Why::Swapping, _) => format!("{limit}: others are swapping and little memory is free"),
            (Why::Growing, _) => format!("{limit} and growing: {available} are available on the machine"),
        }
    }
}
