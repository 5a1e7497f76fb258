//! Learning, pure: turns trace events into launches, and launches into a program's file set.
//!
//! # Layout
//! - [`event`]: trace events, as data
//! - [`script`]: which program an interpreter runs, from its arguments
//! - [`rules`]: which execs are recorded, what is left out, which launches are stored
//! - [`recording`]: one launch while it is being recorded; [`learner`]: all of them
//! - [`unite`]: several launches as one file set

pub mod event;
pub mod learner;
mod recording;
pub mod rules;
pub mod script;
mod unite;

pub use event::{Exec, Inode, LaunchId, PageUse, TraceEvent, TracedFile};
pub use learner::{Finished, Learner};
pub use rules::{Now, ProgramState, Settings};
pub use unite::unite;
