//! The parts of a test image, as plain lists.

use std::path::{Path, PathBuf};

/// The directory of documents in the tree.
pub const DOCUMENTS: &str = "/documents";

/// The parts of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// Programs, with everything that they need to start: absolute paths, or names to be found in `PATH`. They keep their paths.
    pub programs: Vec<PathBuf>,
    /// Files, and directories with their contents. They keep their paths. Missing ones are left out ([`super::Tree::missing`]).
    pub files: Vec<PathBuf>,
    /// As `files`, for whole packages. They contain what their programs and modules need, so nothing is searched for. A link to a
    /// directory adds that directory without its contents.
    pub plain: Vec<PathBuf>,
    /// Files with another path in the tree. Programs among them bring everything that they need.
    pub placed: Vec<Placed>,
}

/// A file that has another path in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// On this machine.
    pub from: PathBuf,
    /// In the tree, absolute.
    pub to: PathBuf,
}

impl Parts {
    /// Adds a document to [`DOCUMENTS`] in the tree. Returns its path there.
    pub fn document(&mut self, from: &Path, name: &str) -> PathBuf {
        let to = Path::new(DOCUMENTS).join(name);
        self.placed.push(Placed { from: from.to_owned(), to: to.clone() });
        to
    }
}

/// Finds a program. A name without a slash is searched in `path` (the variable's value), then in the directories that an
/// ordinary user's `PATH` lacks.
pub(super) fn program(name: &Path, path: &std::ffi::OsStr) -> Option<PathBuf> {
    if name.is_absolute() {
        return name.is_file().then(|| name.to_owned());
    }
    let others = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let absolute = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    absolute.chain(others).map(|dir| dir.join(name)).find(|file| file.is_file())
}
