//! The documents that sessions show: PDF files of this machine's documentation packages, or the user's own.
//!
//! - [`find`], [`own`]: find documents, each content once, decompressed, with its number of pages
//! - [`choose`]: chooses the documents of an experiment (pure)
//! - [`pages`]: counts the pages of a PDF (pure)

mod choose;
mod error;
mod find;
pub mod pages;

use std::path::PathBuf;

use eke_model::units::Bytes;
use serde::Serialize;

pub use choose::{Choice, Requirements, choose};
pub use error::{Error, Result};
pub use find::{DIRECTORIES, Found, find, own};
pub use pages::Unfit;

/// A document that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Document {
    /// The path of the uncompressed file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: Bytes,
    /// Its number of pages.
    pub pages: u32,
    /// Its file name: `gnuplot.pdf`. Names of chosen documents are unique.
    pub name: String,
}
