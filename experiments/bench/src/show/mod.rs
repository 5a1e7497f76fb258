//! Reports as text: pure.

pub mod replay;
