//! Compares two revisions that were measured alternately: changes, and noise.
//!
//! - [`report`]: the parts of a report that a comparison needs
//! - [`rows`]: compares the runs of both revisions, one row per metric. Pure
//! - [`table`]: the rows as text

pub mod report;
pub mod rows;
pub mod table;
