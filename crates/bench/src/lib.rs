//! `eke bench`: experiments whose figures come out as tidy rows.
//!
//! # Layout
//! - [`report`]: a report as data and as a table
//! - [`agent`]: what the agent itself costs
//! - [`process`]: what the kernel says of one process; text in, figures out

pub mod agent;
pub mod process;
pub mod report;
