//! Two revisions, measured in turn: what changed, and what is noise.
//!
//! - [`report`]: the part of a report that a comparison needs
//! - [`rows`]: runs of the base and of the new revision to one row for each figure. Pure
//! - [`table`]: the rows as text

pub mod report;
pub mod rows;
pub mod table;
