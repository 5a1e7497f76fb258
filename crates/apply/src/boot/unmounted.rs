//! Journaled files on a file system of the boot loader that is not mounted at the moment, as an EFI system partition that is mounted only when it is
//! needed. They would be taken for removed, and forgotten.

use super::OWNER;
use super::detect::ESPS;
use super::new_entries::is_entry;
use crate::files::journal::{self, Record};
use crate::files::state::State;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// Refuses an undo that would forget such a file.
///
/// # Errors
/// The refusal, with what to do. The journal cannot be read.
pub(super) fn refuse(root: &Root) -> Result<()> {
    let records = journal::load(root)?;
    let Some(record) = records.iter().find(|record| is_away(root, record)) else { return Ok(()) };
    let (dir, _) = parts(&record.path);
    let [file, dir] = [record.path.as_str(), dir].map(|path| root.path(path));
    Err(Error::Refused(format!(
        "{} is missing, which eke changed, and {} has nothing like it: mount {} first, then try again. If it is gone for good, `mkdir -p {1} && touch {1}/none.conf` lets eke forget it",
        file.display(),
        dir.display(),
        root.path(mount_point(&record.path)).display(),
    )))
}

/// Whether the file is absent, with all of its kind. A kernel's removal takes one entry and leaves others.
fn is_away(root: &Root, record: &Record) -> bool {
    let (dir, _) = parts(&record.path);
    let is_alike = |name: &String| !is_entry(&record.path) || name.ends_with(".conf");
    record.owner == OWNER
        && record.old != State::Absent
        && record.new != State::Absent
        && ESPS.iter().any(|esp| record.path.starts_with(&format!("{esp}/")))
        && !root.exists(&record.path)
        && !root.list(dir).unwrap_or_default().iter().any(is_alike)
}

/// Directory and name.
fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The longest one that the path is below.
fn mount_point(path: &str) -> &'static str {
    let above = ESPS.into_iter().filter(|esp| path.starts_with(&format!("{esp}/")));
    above.max_by_key(|esp| esp.len()).unwrap_or(ESPS[0])
}
