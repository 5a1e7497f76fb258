//! The directory below, as the worker reaches it: by descriptors, never by a path that somebody could replace.

pub mod at;
mod dirty;
pub mod file;
pub mod stamp;

pub use file::File;
pub use stamp::{Stamp, tick};
