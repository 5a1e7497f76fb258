//! Which mount a path means. A dead mount answers nothing and a stopped one never, so that a path is not asked before the
//! kernel's list is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use eke_cache_mounts::{Mount, mounts};
use eke_present::exit::{Failure, Outcome, Status};

/// All mounts of `eke-cache`.
pub fn all() -> Outcome<Vec<Mount>> {
    mounts::read().map_err(|e| Failure::new(Status::Failed, format!("cannot read /proc/self/mountinfo: {e}")))
}

/// The mount on top at this path.
pub fn at<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let absolute = std::path::absolute(path).ok()?;
    let by_name = mounts::at(mounts, &absolute);
    let by_parent = || mounts::at(mounts, &below_real_parent(&absolute)?);
    let by_link = || mounts::at(mounts, &std::fs::canonicalize(&absolute).ok()?);
    by_name.or_else(by_parent).or_else(by_link)
}

/// With the links in all but the last name followed.
fn below_real_parent(path: &Path) -> Option<PathBuf> {
    let name: &OsStr = path.file_name()?;
    Some(std::fs::canonicalize(path.parent()?).ok()?.join(name))
}

/// The same, or what is wrong with it.
pub fn of<'a>(mounts: &'a [Mount], path: &Path) -> Outcome<&'a Mount> {
    at(mounts, path).ok_or_else(|| {
        let none = format!("no compressed page cache is mounted at {}", path.display());
        Failure::new(Status::Failed, none).hint("`eke cache status` lists them")
    })
}
