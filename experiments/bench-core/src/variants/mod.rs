//! The variants of experiments in a box: today's tools and eke, as data and as an arrangement of the machine.
//!
//! - [`table`]: each peer with its documented values and where they are documented
//! - [`host`]: the facts of the machine that arrangements depend on
//! - [`in_box`]: which arrangements an experiment in a box compares (pure)
//! - [`ours`]: eke's own plan for the box, and that plan with one feature changed (pure)
//! - [`arranged`]: applies an arrangement and restores the machine
//!
//! In a box, every formula gets the box's budget as RAM. A tool's own package would take the host's.

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
pub use ours::{Features, ours, variation_names, variations};

/// The owner of an experiment's changes in the journal.
pub const OWNER: &str = "bench";

/// The kernel's defaults. A variant that names no other value gets them, whatever the machine has.
const KERNELS_SWAPPINESS: u32 = 60;
const KERNELS_PAGE_CLUSTER: u32 = 3;

/// A variant, and the machine's settings while it is measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arrangement {
    /// Its name, its role, and its set-up.
    pub variant: Variant,
    /// The changes of the machine, in order.
    pub plan: Plan,
    /// May the box swap?
    pub swap: bool,
    /// The box's own swappiness (cgroup v1); `None` for the machine's.
    pub swappiness: Option<u32>,
    /// Do the session's programs ask for the merging of equal pages (`PR_SET_MEMORY_MERGE`)?
    pub merge_same_pages: bool,
}

/// Why a variant cannot be arranged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is not in the table.
    #[error("there is no variant \"{name}\"; there are: {}", .known.join(", "))]
    Unknown {
        /// As given.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// eke would be measured on top of itself.
    #[error("eke is up: its swap would serve every variant. `eke down` first")]
    EkeIsUp,
    /// Another process's changes are in force.
    #[error("another eke ({owner}) is at work on this machine; try again when it is done")]
    Busy {
        /// Its owner.
        owner: String,
    },
    /// Changes of an earlier eke remain.
    #[error("changes of an earlier eke cannot be undone now: {0}; `eke down` tries again")]
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

/// A plan of the experiment. Every step has the same reason.
fn plan(steps: impl IntoIterator<Item = Step>, why: &str) -> Plan {
    let mut plan = Plan { remedy: OWNER.to_owned(), ..Plan::default() };
    steps.into_iter().for_each(|step| plan.push(step, Reason::new(why)));
    plan
}
