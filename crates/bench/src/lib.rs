//! `eke bench`: experiments whose figures come out as tidy rows.
//!
//! # Layout
//! - [`report`]: a report as data and as a table; [`page`]: as one HTML page with plots
//! - [`agent`]: what the agent itself costs
//! - [`progress`]: how far an experiment is, for whoever shows that
//! - [`session`]: what a person at a small machine does, as data and events
//! - [`process`]: what the kernel says of one process; text in, figures out

pub mod agent;
pub mod page;
pub mod process;
pub mod progress;
pub mod report;
pub mod session;
