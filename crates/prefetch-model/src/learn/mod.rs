//! Learning, pure: turns trace events into launches, and launches into a program's file set.
//!
//! # Layout
//! - [`event`]: trace events, as data
//! - [`script`]: which program an interpreter runs, from its arguments
//! - [`rules`]: which execs are recorded, what is left out, which launches are stored
//! - [`live`]: one launch while it is being recorded; [`learner`]: all of them
//! - [`unite`]: several launches as one file set

pub mod event;
pub mod learner;
mod live;
pub mod rules;
pub mod script;
mod unite;

pub use event::{Exec, Found, How, Inode, LaunchId, Seen};
pub use learner::{Finished, Learner};
pub use rules::{Known, Now, Settings};
pub use unite::unite;
