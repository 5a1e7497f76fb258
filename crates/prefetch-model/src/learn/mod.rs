//! Learning, pure: turns trace events into launches, and launches into a program's file set.
//!
//! # Layout
//! - [`event`]: trace events, as data
//! - [`script`]: which program an interpreter runs, from its arguments; `interpreters`: the table of these and their options
//! - [`arguments`]: the files that a launch was given
//! - [`lineage`]: who started whom; [`wrappers`]: which programs only start others
//! - [`owners`]: whose account a process is on
//! - [`rules`]: which execs are recorded, what is left out, which launches are stored
//! - [`recording`]: one launch while it is being recorded; [`learner`]: all of them
//! - [`unite`]: several launches as one file set

pub mod arguments;
pub mod event;
mod interpreters;
pub mod learner;
pub mod lineage;
pub mod owners;
mod recording;
pub mod rules;
pub mod script;
mod unite;
pub mod wrappers;

pub use arguments::GivenPaths;
pub use event::{Exec, Inode, LaunchId, PageUse, TraceEvent, TracedFile};
pub use learner::{Finished, Learner};
pub use lineage::Lineage;
pub use owners::Owners;
pub use rules::{Now, ProgramState, Settings};
pub use unite::unite;
pub use wrappers::Wrappers;

#[cfg(test)]
mod lineage_tests;
#[cfg(test)]
mod wrappers_tests;
