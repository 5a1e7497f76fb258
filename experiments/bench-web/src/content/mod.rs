//! The served content: files in the class mix of SPECweb2005 Support, cut from other files, as images of file systems.
//!
//! - [`classes`]: the files and their sizes (pure)
//! - [`corpus`], [`cut`]: their bytes; [`ratio`]: the compression ratio of these
//! - [`filled`]: bytes that compress by a chosen ratio instead
//! - [`image`]: the content and its images; `cached`: keeps images in a cache; `make`: makes an image

mod cached;
pub mod classes;
pub mod corpus;
pub mod cut;
pub mod filled;
pub mod image;
mod make;
pub mod ratio;

pub use cached::ensure;
pub use corpus::Corpus;
pub use image::{Content, FileSystem};
