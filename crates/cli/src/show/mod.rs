//! Numbers and plans as text: pure, one file for each verb.

pub mod cache;
pub mod io;
pub mod link;
pub mod overview;
pub mod plan;
pub mod refresh;
pub mod status;
