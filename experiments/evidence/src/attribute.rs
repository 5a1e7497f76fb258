//! Of which commit each measurement of a continued result is.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use eke_results::report::{Report, saved};

/// Writes the commits of rows into `file`, by earlier results that have the same rows; programs of before December 2026 continued a result
/// without naming them. Returns a sentence for the user.
///
/// # Errors
/// A file cannot be read or is no result, or no row of it is in an earlier one.
pub fn attribute(file: &Path, earlier: &[PathBuf]) -> anyhow::Result<String> {
    let mut report = read(file)?;
    let mut known = 0;
    for path in earlier {
        known += report.attribute(&read(path)?);
    }
    ensure!(known > 0, "{}: no row of it is in the earlier results", file.display());
    let text = serde_json::to_string_pretty(&report)? + "\n";
    write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    let (name, commits) = (file.display(), report.commits().join(" and "));
    Ok(format!("{name}: {known} of {} rows are in earlier results; it is of {commits}", report.rows.len()))
}

fn read(file: &Path) -> anyhow::Result<Report> {
    let name = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(name)?;
    saved::parse(&text).with_context(name)
}

/// Replaces the file as a whole.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let new = file.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    let mut opened = options.write(true).create(true).truncate(true).open(&new)?;
    std::io::Write::write_all(&mut opened, text.as_bytes())?;
    std::fs::rename(&new, file)
}
