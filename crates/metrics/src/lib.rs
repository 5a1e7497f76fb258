//! A reading of the machine as text for Prometheus, from one table.
//!
//! # Layout
//! - [`reading`]: the input: the agent's snapshot, and the caches, which the agent does not know
//! - [`metric`]: a row of the table
//! - [`histogram`]: a histogram as samples
//! - [`table`]: the rows, one file for each subject
//! - [`text`]: a reading as OpenMetrics text, or in Prometheus' older format
//! - [`parse`]: such a text as data again, of a client's page
//! - [`markdown`]: the table as `docs/metrics.md`
//!
//! Pure: no file, clock or socket.

pub mod histogram;
pub mod markdown;
pub mod metric;
pub mod parse;
pub mod reading;
pub mod table;
pub mod text;

pub use metric::{Kind, Metric, Sample};
pub use reading::{Cache, Reading, SharedTier};
pub use text::Format;
