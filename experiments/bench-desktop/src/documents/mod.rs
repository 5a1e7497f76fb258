//! The documents that sessions show: PDF files of this machine's documentation packages, or the user's own.
//!
//! - [`find`], [`own`]: what there is, each file once, unpacked, with its pages
//! - [`choose`]: which of them an experiment takes (pure)
//! - [`pages`]: how many pages some bytes have (pure)

mod choose;
mod error;
mod find;
pub mod pages;

use std::path::PathBuf;

use eke_model::units::Bytes;
use serde::Serialize;

pub use choose::{Choice, Wish, choose};
pub use error::{Error, Result};
pub use find::{Found, PLACES, find, own};
pub use pages::Unfit;

/// A document that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Document {
    /// Where it can be read, unpacked.
    pub path: PathBuf,
    /// Its size.
    pub bytes: Bytes,
    /// How many pages it has.
    pub pages: u32,
    /// What it is called: `gnuplot.pdf`. Among chosen documents no two have the same.
    pub name: String,
}
