//! An unusable file is renamed, never deleted: it may be another program's.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The most renamed files; beyond it the file stays, and the page has no stored history.
const MOST: usize = 9;

/// A broken file and its new name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Its old name.
    pub path: PathBuf,
    /// Its new name.
    pub now: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, now) = (self.path.display(), self.now.display());
        write!(f, "{path} cannot be used: {}; it was renamed to {now}, and a new history begins", self.why)
    }
}

/// Renames it to the first free `FILE.broken-N`.
pub(super) fn set_aside(path: &Path, why: String) -> Result<SetAside> {
    let names = (1..=MOST).map(|n| beside(path, &format!(".broken-{n}")));
    let Some(now) = names.into_iter().find(|name| std::fs::symlink_metadata(name).is_err()) else {
        let why = format!("{why}; {MOST} broken files are beside it already: remove some");
        return Err(Error::Foreign { path: path.to_owned(), why });
    };
    std::fs::rename(path, &now).map_err(Error::file("rename", path))?;
    // its journal would be rolled back into the new file
    let _ = std::fs::rename(beside(path, "-journal"), beside(&now, "-journal"));
    Ok(SetAside { path: path.to_owned(), now, why })
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
