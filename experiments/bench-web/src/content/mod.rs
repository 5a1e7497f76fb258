//! What the server serves: files in the class mix of SPECweb2005 Support, cut from other files, as images of file systems.
//!
//! - [`classes`]: which files, and how large (pure)
//! - [`corpus`], [`cut`]: their bytes; [`ratio`]: how these pack
//! - [`image`]: an image for each file system, made once and kept in the cache

pub mod classes;
pub mod corpus;
pub mod cut;
pub mod image;
mod make;
pub mod ratio;

pub use corpus::Corpus;
pub use image::{Content, FileSystem, ensure};
