//! `eke bench`: experiments whose figures come out as tidy rows.
//!
//! # Layout
//! - [`report`]: a report as data and as a table
//! - [`agent`]: what the agent itself costs
//! - [`progress`]: how far an experiment is, for whoever shows that
//! - [`guest`]: a session in the small machine
//! - [`session`]: what a person at a small machine does, as data and events
//! - [`desktop`]: the driver that does it, with a real X server, window manager and viewers
//! - [`stage`]: programs and documents on a slow disk
//! - [`documents`]: the PDF files that sessions show
//! - [`process`]: what the kernel says of one process; text in, figures out

pub mod agent;
pub mod desktop;
pub mod documents;
pub mod guest;
pub mod process;
pub mod progress;
pub mod report;
pub mod session;
pub mod stage;
