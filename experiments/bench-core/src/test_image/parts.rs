//! What is to be on a stage, as plain lists.

use std::path::{Path, PathBuf};

/// In the tree, where documents lie.
pub const DOCUMENTS: &str = "/documents";

/// What a tree is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// Programs, with all that they need to start: absolute paths, or names which are looked for in `PATH`. They keep their
    /// paths.
    pub programs: Vec<PathBuf>,
    /// Files, and directories with all that is in them; they keep their paths. What is not there is left out
    /// ([`super::Tree::missing`]).
    pub files: Vec<PathBuf>,
    /// The same as `files` for whole packages: what programs and modules among them need is not looked for, since it is among them too,
    /// and a link to a directory brings that directory, but not what is in it.
    pub plain: Vec<PathBuf>,
    /// Files with another path in the tree; programs among them with all that they need.
    pub placed: Vec<Placed>,
}

/// A file which has another path in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// On this machine.
    pub from: PathBuf,
    /// In the tree, absolute.
    pub to: PathBuf,
}

impl Parts {
    /// Adds a file (a document) to [`DOCUMENTS`] in the tree and gives its path there.
    pub fn document(&mut self, from: &Path, name: &str) -> PathBuf {
        let to = Path::new(DOCUMENTS).join(name);
        self.placed.push(Placed { from: from.to_owned(), to: to.clone() });
        to
    }
}

/// A program's path: a name without a slash is looked for in `path` (the variable's value), then in the directories that
/// an ordinary user's `PATH` lacks.
pub(super) fn program(name: &Path, path: &std::ffi::OsStr) -> Option<PathBuf> {
    if name.is_absolute() {
        return name.is_file().then(|| name.to_owned());
    }
    let others = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let absolute = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    absolute.chain(others).map(|dir| dir.join(name)).find(|file| file.is_file())
}
