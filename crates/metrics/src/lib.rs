//! A reading of the machine as text for Prometheus and its like, from one table.
//!
//! # Layout
//! - [`reading`]: what the metrics are about: the agent's snapshot, and the caches, which it knows nothing of
//! - [`metric`]: what a row of the table is
//! - [`histogram`]: a histogram as samples
//! - [`table`]: the rows, one file for each subject
//! - [`text`]: a reading as OpenMetrics text, or in Prometheus' older format
//! - [`markdown`]: the table as `docs/metrics.md`
//!
//! Pure: nothing here opens a file, asks for the time or knows a socket.

pub mod histogram;
pub mod markdown;
pub mod metric;
pub mod reading;
pub mod table;
pub mod text;

pub use metric::{Kind, Metric, Sample};
pub use reading::{Cache, Reading};
pub use text::Format;
