//! Latencies as text: pure.

pub mod compare;
pub mod csv;
pub mod histogram;
pub mod report;
pub mod watch;
