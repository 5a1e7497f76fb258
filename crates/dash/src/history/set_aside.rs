//! A file that cannot be used is renamed, never deleted: it may be somebody's.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The most that are left under such names; then the file stays where it is and the page goes without a history.
const MOST: usize = 9;

/// A file that was broken, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// What it was called.
    pub path: PathBuf,
    /// What it is called now.
    pub now: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, now) = (self.path.display(), self.now.display());
        write!(f, "{path} cannot be used: {}; it is {now} now, and a new history begins", self.why)
    }
}

/// Renames it to the first free `FILE.broken-N`.
pub(super) fn set_aside(path: &Path, why: String) -> Result<SetAside> {
    let names = (1..=MOST).map(|n| beside(path, &format!(".broken-{n}")));
    let Some(now) = names.into_iter().find(|name| std::fs::symlink_metadata(name).is_err()) else {
        let why = format!("{why}; and there are {MOST} broken ones beside it already: remove some");
        return Err(Error::Foreign { path: path.to_owned(), why });
    };
    std::fs::rename(path, &now).map_err(Error::file("rename", path))?;
    // a journal of its own would be rolled back into the new file
    let _ = std::fs::rename(beside(path, "-journal"), beside(&now, "-journal"));
    Ok(SetAside { path: path.to_owned(), now, why })
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
