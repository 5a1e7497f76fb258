//! The results of experiments, with machine and conditions.
//!
//! # Layout
//! - [`report`]: a report as data, from and to JSON, and as a table
//! - [`rows`]: collects samples as tidy rows
//! - [`page`]: a report as one page with plots

pub mod page;
pub mod report;
pub mod rows;
