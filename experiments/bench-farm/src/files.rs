//! Files that a run makes.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use eke_bench_core::fault::on;

use crate::error::Result;

/// Writes a file, over an earlier one of its name.
///
/// # Errors
/// The kernel refuses.
pub fn put(path: &Path, text: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    Ok(file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(on("write", path))?)
}
