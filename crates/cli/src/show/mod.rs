//! Numbers and plans as text: pure, one file for each verb.

pub mod cache;
pub mod io;
pub mod link;
pub mod overview;
pub mod plan;
pub mod refresh;
pub mod status;

/// The columns of a label and the space behind it, in a line of `eke status`.
pub const LABEL: usize = 12;
