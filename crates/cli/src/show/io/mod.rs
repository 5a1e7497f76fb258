//! Latencies as text: pure.

pub mod compare;
pub mod csv;
pub mod histogram;
pub mod watch;
