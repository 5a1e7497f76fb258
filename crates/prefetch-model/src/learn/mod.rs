//! Learning, pure: what tracers see becomes launches, launches become what is known of a program.
//!
//! # Layout
//! - [`event`]: what tracers tell, as data
//! - [`script`]: which program an interpreter runs, by its arguments
//! - [`rules`]: which execs are learned, what is left out, what is worth keeping
//! - [`live`]: one launch while it is being learned; [`learner`]: all of them
//! - [`unite`]: what several launches of a program say together

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
