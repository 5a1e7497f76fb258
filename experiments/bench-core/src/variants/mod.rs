//! What is compared: today's tools and eke, as data and as an arrangement on the machine.
//!
//! - [`table`]: each peer with its documented values and where they are documented
//! - [`host`]: what the arrangements stand on, read from the machine
//! - [`in_box`]: which arrangements an experiment in a box compares (pure)
//! - [`ours`]: eke's own plan for the box, and each of its levers on and off (pure)
//! - [`arranged`]: applies an arrangement and takes it away again
//!
//! In a box every formula gets the box's budget as RAM: a tool's own package would take the host's.

pub mod arranged;
pub mod host;
pub mod in_box;
pub mod ours;
pub mod table;

use eke_model::step::{Plan, Reason, Step};
use eke_results::report::Variant;

pub use arranged::ArrangedMachine;
pub use host::Host;
pub use in_box::{InBox, in_box, size_name, sizes};
pub use ours::{Levers, lever_names, levers, ours};

/// In whose name an experiment's changes stand in the journal.
pub const OWNER: &str = "bench";

/// What Linux has by itself: where a variant names no other, it gets this, whatever the machine has.
const KERNELS_SWAPPINESS: u32 = 60;
const KERNELS_PAGE_CLUSTER: u32 = 3;

/// A variant and what must be so while it is measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arrangement {
    /// Its name, whose it is, and how it is set up.
    pub variant: Variant,
    /// What is changed on the machine, in order; empty where nothing is.
    pub plan: Plan,
    /// May the box swap?
    pub swap: bool,
    /// The box's own swappiness (cgroup v1); `None` is the machine's.
    pub swappiness: Option<u32>,
    /// Are the session's programs to ask for the merging of equal pages (`PR_SET_MEMORY_MERGE`)?
    pub merge_same_pages: bool,
}

/// Why there is no arrangement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is not in the table.
    #[error("there is no variant \"{name}\"; there are: {}", .known.join(", "))]
    Unknown {
        /// As asked for.
        name: String,
        /// What could have been.
        known: Vec<String>,
    },
    /// eke would be measured on top of itself.
    #[error("eke is up: its swap would serve every variant. `eke down` first")]
    EkeIsUp,
    /// Somebody else's changes are in force.
    #[error("another eke ({owner}) is at work on this machine; try again when it is done")]
    Busy {
        /// In whose name.
        owner: String,
    },
    /// Something of an earlier eke is still there.
    #[error("what an earlier eke left cannot be undone now: {0}; `eke down` tries again")]
    Left(String),
    /// eke's own plan cannot be made.
    #[error(transparent)]
    Plan(#[from] eke_swap::decide::BadOverride),
    /// Reading the machine or measuring on it.
    #[error(transparent)]
    Swap(#[from] eke_swap::Error),
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
}

/// A plan of the experiment's, each step for the same reason.
fn plan(steps: impl IntoIterator<Item = Step>, why: &str) -> Plan {
    let mut plan = Plan { remedy: OWNER.to_owned(), ..Plan::default() };
    steps.into_iter().for_each(|step| plan.push(step, Reason::new(why)));
    plan
}
